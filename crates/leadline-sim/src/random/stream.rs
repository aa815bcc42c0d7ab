//! Streams of random numbers, one per component, keyed by the run's seed and the component's name.
//!
//! What a component draws depends on its own name and on nothing else: not on the order in which components are listed,
//! not on how many there are, not on what the others draw. Two variants of a scenario see the same arrivals and the
//! same service times (common random numbers), which makes their difference sharper than either result.
//!
//! Sources: Blackman and Vigna, "Scrambled linear pseudorandom number generators" (ACM TOMS 47, 2021), xoshiro256++;
//! Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (OOPSLA 2014), `SplitMix64` for seeding;
//! Fowler, Noll and Vo's hash 1a for names.

/// The streams of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Streams {
    seed: u64,
}

impl Streams {
    /// The streams of a run with this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// The stream of a component's purpose, as `stream("vm3", "arrivals")`. The name is a key, not a label: a component
    /// that is given another label and keeps its key draws the same numbers.
    #[must_use]
    pub fn stream(&self, component: &str, purpose: &str) -> Stream {
        let component = fnv1a(component.as_bytes(), FNV_OFFSET);
        let separated = fnv1a(&[0], component); // "a" + "bc" is not "ab" + "c"
        Stream::from_key(self.seed, fnv1a(purpose.as_bytes(), separated))
    }
}

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

fn fnv1a(bytes: &[u8], start: u64) -> u64 {
    bytes.iter().fold(start, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(FNV_PRIME)
    })
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mix(*state)
}

fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// A stream of random numbers: xoshiro256++, period 2^256 - 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    state: [u64; 4],
}

impl Stream {
    /// The stream of a seed and a key.
    #[must_use]
    pub fn from_key(seed: u64, key: u64) -> Self {
        let mut state = mix(seed.wrapping_add(0x9e37_79b9_7f4a_7c15)) ^ key;
        Self {
            state: std::array::from_fn(|_| split_mix(&mut state)),
        }
    }

    /// 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        let [s0, s1, s2, s3] = self.state;
        let result = s0.wrapping_add(s3).rotate_left(23).wrapping_add(s0);
        let (t2, t3) = (s2 ^ s0, s3 ^ s1);
        self.state = [s0 ^ t3, s1 ^ t2, t2 ^ (s1 << 17), t3.rotate_left(45)];
        result
    }

    /// A number from 0 up to but not including 1, in steps of 2^-53.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        const STEP: f64 = 1.0 / (1u64 << 53) as f64;
        (self.bits() >> 11) as f64 * STEP
    }

    /// A number above 0 and up to 1, in steps of 2^-53; its logarithm is finite.
    #[inline]
    pub fn unit_above_zero(&mut self) -> f64 {
        1.0 - self.unit()
    }

    /// A whole number from 0 up to but not including `count`; 0 when `count` is 0. Its bias is below `count` / 2^64.
    #[inline]
    pub fn below(&mut self, count: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(count)) >> 64) as u64
    }

    /// True with this probability.
    #[inline]
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::float_cmp)] // a test may end so, and these numbers are exact
mod tests {
    use super::*;

    /// Source: the authors' `xoshiro256plusplus.c` started from the state 1, 2, 3, 4.
    #[test]
    fn numbers_are_those_of_the_reference() {
        let mut stream = Stream {
            state: [1, 2, 3, 4],
        };
        let drawn: [u64; 5] = std::array::from_fn(|_| stream.bits());
        assert_eq!(
            drawn,
            [
                41_943_041,
                58_720_359,
                3_588_806_011_781_223,
                3_591_011_842_654_386,
                9_228_616_714_210_784_205
            ]
        );
    }

    /// Source: `splitmix64.c` started from 1234567 (also Rosetta Code, "Pseudo-random numbers/Splitmix64").
    #[test]
    fn seeding_is_that_of_the_reference() {
        let mut state = 1_234_567;
        assert_eq!(split_mix(&mut state), 6_457_827_717_110_365_317);
        assert_eq!(split_mix(&mut state), 3_203_168_211_198_807_973);
    }

    #[test]
    fn names_are_keys() {
        let streams = Streams::new(7);
        assert_eq!(streams.stream("vm1", "size"), streams.stream("vm1", "size"));
        let others = [
            streams.stream("vm2", "size"),
            streams.stream("vm1", "sizes"),
            streams.stream("vm", "1size"),
            Streams::new(8).stream("vm1", "size"),
        ];
        for other in others {
            assert_ne!(streams.stream("vm1", "size"), other);
        }
    }

    #[test]
    fn whole_numbers_stay_below_and_reach_all() {
        let mut stream = Streams::new(1).stream("dice", "throw");
        let mut seen = [0u32; 6];
        for _ in 0..6000 {
            seen[usize::try_from(stream.below(6)).unwrap()] += 1;
        }
        assert!(
            seen.iter().all(|count| (850..1150).contains(count)),
            "{seen:?}"
        );
        assert_eq!(stream.below(0), 0);
    }
}
