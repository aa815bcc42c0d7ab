//! Exponential and normal numbers by Marsaglia and Tsang's ziggurat of 256 layers.
//!
//! Ninety-nine draws in a hundred cost one multiplication and one comparison; the rest call `libm`, whose results do
//! not differ between machines as those of the operating system's library do. The tables are computed when the crate
//! is compiled.
//!
//! Source: Marsaglia and Tsang, "The ziggurat method for generating random variables" (J. Stat. Software 5, 2000); Doornik,
//! "An improved ziggurat method to generate normal random samples" (2005) for taking layer and abscissa from different bits.

use super::stream::Stream;

const LAYERS: usize = 256;

/// Where the exponential's tail starts, and the area of a layer. Source: Marsaglia and Tsang, section 3.
const EXPONENTIAL_TAIL: f64 = 7.697_117_470_131_05;
const EXPONENTIAL_AREA: f64 = 0.003_949_659_822_581_557;
/// Where the normal's tail starts, and the area of a layer. Source: the same for 256 layers.
const NORMAL_TAIL: f64 = 3.654_152_885_361_009;
const NORMAL_AREA: f64 = 0.004_928_673_233_99;

struct Tables {
    /// Right ends of the layers, from the base up.
    ends: [f64; LAYERS + 1],
    /// The density there, unnormalised.
    heights: [f64; LAYERS + 1],
}

static EXPONENTIAL: Tables = exponential_tables();
static NORMAL: Tables = normal_tables();

const fn exponential_tables() -> Tables {
    let mut ends = [0.0; LAYERS + 1];
    let mut heights = [1.0; LAYERS + 1];
    ends[0] = EXPONENTIAL_AREA / exp(-EXPONENTIAL_TAIL);
    ends[1] = EXPONENTIAL_TAIL;
    heights[0] = exp(-ends[0]);
    heights[1] = exp(-EXPONENTIAL_TAIL);
    let mut layer = 2;
    while layer < LAYERS {
        heights[layer] = EXPONENTIAL_AREA / ends[layer - 1] + heights[layer - 1];
        ends[layer] = -ln(heights[layer]);
        layer += 1;
    }
    Tables { ends, heights }
}

const fn normal_tables() -> Tables {
    let mut ends = [0.0; LAYERS + 1];
    let mut heights = [1.0; LAYERS + 1];
    ends[1] = NORMAL_TAIL;
    heights[1] = exp(-NORMAL_TAIL * NORMAL_TAIL / 2.0);
    ends[0] = NORMAL_AREA / heights[1];
    heights[0] = exp(-ends[0] * ends[0] / 2.0);
    let mut layer = 2;
    while layer < LAYERS {
        heights[layer] = NORMAL_AREA / ends[layer - 1] + heights[layer - 1];
        ends[layer] = sqrt(-2.0 * ln(heights[layer]));
        layer += 1;
    }
    Tables { ends, heights }
}

/// exp(x) by its series, for tables; x within 100 of 0.
const fn exp(x: f64) -> f64 {
    let reduced = x / 128.0;
    let (mut sum, mut term, mut index) = (1.0, 1.0, 1.0);
    while index < 24.0 {
        term *= reduced / index;
        sum += term;
        index += 1.0;
    }
    let mut squarings = 0;
    while squarings < 7 {
        sum *= sum;
        squarings += 1;
    }
    sum
}

/// ln(x) by the series of the inverse hyperbolic tangent, for tables; x above 0.
const fn ln(x: f64) -> f64 {
    let (mut mantissa, mut halvings) = (x, 0.0);
    while mantissa < 0.75 {
        mantissa *= 2.0;
        halvings += 1.0;
    }
    let ratio = (mantissa - 1.0) / (mantissa + 1.0);
    let (mut sum, mut power, mut index) = (0.0, ratio, 1.0);
    while index < 60.0 {
        sum += power / index;
        power *= ratio * ratio;
        index += 2.0;
    }
    2.0 * sum - halvings * std::f64::consts::LN_2
}

/// The square root by Newton's method, for tables.
const fn sqrt(x: f64) -> f64 {
    let mut root = 1.0;
    let mut step = 0;
    while step < 60 {
        root = f64::midpoint(root, x / root);
        step += 1;
    }
    root
}

const UNIT_STEP: f64 = 1.0 / (1u64 << 53) as f64;

impl Stream {
    /// A number with the exponential distribution of mean 1.
    #[inline]
    pub fn exponential(&mut self) -> f64 {
        let bits = self.bits();
        let layer = (bits & 0xff) as usize;
        let unit = (bits >> 11) as f64 * UNIT_STEP;
        let x = unit * EXPONENTIAL.ends[layer];
        if x < EXPONENTIAL.ends[layer + 1] {
            return x;
        }
        self.exponential_edge(layer, x)
    }

    #[cold]
    #[inline(never)]
    fn exponential_edge(&mut self, layer: usize, x: f64) -> f64 {
        let (mut layer, mut x) = (layer, x);
        loop {
            if layer == 0 {
                return EXPONENTIAL_TAIL - libm::log(self.unit_above_zero());
            }
            if accepts(&EXPONENTIAL, layer, self.unit(), libm::exp(-x)) {
                return x;
            }
            let bits = self.bits();
            layer = (bits & 0xff) as usize;
            x = (bits >> 11) as f64 * UNIT_STEP * EXPONENTIAL.ends[layer];
            if x < EXPONENTIAL.ends[layer + 1] {
                return x;
            }
        }
    }

    /// A number with the normal distribution of mean 0 and standard deviation 1.
    #[inline]
    pub fn normal(&mut self) -> f64 {
        loop {
            let bits = self.bits();
            let layer = (bits & 0xff) as usize;
            let sign = if bits & 0x100 == 0 { 1.0 } else { -1.0 };
            let x = (bits >> 11) as f64 * UNIT_STEP * NORMAL.ends[layer];
            if x < NORMAL.ends[layer + 1] {
                return sign * x;
            }
            if layer == 0 {
                return sign * self.normal_tail();
            }
            if accepts(&NORMAL, layer, self.unit(), libm::exp(-x * x / 2.0)) {
                return sign * x;
            }
        }
    }

    #[cold]
    fn normal_tail(&mut self) -> f64 {
        loop {
            let x = -libm::log(self.unit_above_zero()) / NORMAL_TAIL;
            let y = -libm::log(self.unit_above_zero());
            if 2.0 * y >= x * x {
                return NORMAL_TAIL + x;
            }
        }
    }
}

/// Whether a point at share `unit` of a layer's height lies under the density.
#[inline]
fn accepts(tables: &Tables, layer: usize, unit: f64, density: f64) -> bool {
    let (low, high) = (tables.heights[layer], tables.heights[layer + 1]);
    low + (high - low) * unit < density
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Streams;

    fn moments(mut draw: impl FnMut() -> f64) -> [f64; 4] {
        let count = 2_000_000;
        let mut sums = [0.0; 4];
        for _ in 0..count {
            let x = draw();
            let mut power = 1.0;
            for sum in &mut sums {
                power *= x;
                *sum += power;
            }
        }
        sums.map(|sum| sum / f64::from(count))
    }

    fn close(found: f64, expected: f64, allowed: f64) {
        assert!(
            (found - expected).abs() <= allowed,
            "{found} for {expected}"
        );
    }

    #[test]
    fn tables_agree_with_libm_and_close_at_the_top() {
        for layer in 1..LAYERS {
            let (end, height) = (EXPONENTIAL.ends[layer], EXPONENTIAL.heights[layer]);
            close(libm::exp(-end), height, 1e-14);
            let (end, height) = (NORMAL.ends[layer], NORMAL.heights[layer]);
            close(libm::exp(-end * end / 2.0), height, 1e-14);
        }
        let top = LAYERS - 1;
        let closing = EXPONENTIAL_AREA / EXPONENTIAL.ends[top] + EXPONENTIAL.heights[top];
        close(closing, 1.0, 1e-9);
        close(
            NORMAL_AREA / NORMAL.ends[top] + NORMAL.heights[top],
            1.0,
            1e-9,
        );
    }

    #[test]
    fn exponential_numbers_have_its_moments_and_tail() {
        let mut stream = Streams::new(1).stream("test", "exponential");
        let [first, second, third, _] = moments(|| stream.exponential());
        close(first, 1.0, 0.004);
        close(second, 2.0, 0.02);
        close(third, 6.0, 0.2);
        let beyond = (0..2_000_000)
            .filter(|_| stream.exponential() > 8.0)
            .count();
        close(beyond as f64, 2_000_000.0 * libm::exp(-8.0), 120.0);
        let small = (0..2_000_000)
            .filter(|_| stream.exponential() < 0.1)
            .count();
        close(small as f64, 2_000_000.0 * (1.0 - libm::exp(-0.1)), 2_400.0);
    }

    #[test]
    fn normal_numbers_have_its_moments_and_tail() {
        let mut stream = Streams::new(1).stream("test", "normal");
        let [first, second, third, fourth] = moments(|| stream.normal());
        close(first, 0.0, 0.004);
        close(second, 1.0, 0.006);
        close(third, 0.0, 0.02);
        close(fourth, 3.0, 0.04);
        let beyond = (0..4_000_000).filter(|_| stream.normal() > 3.7).count();
        close(beyond as f64, 4_000_000.0 * 1.078e-4, 90.0);
    }
}
