//! Means of batches and the confidence interval they give.
//!
//! Sources: Law, "Simulation modeling and analysis" (5th ed.), section 9.5.3; Schmeiser, "Batch size effects in the analysis
//! of simulation output" (Operations Research 30, 1982) for 10 to 30 batches.

use super::steady::mser;

/// Values of the first batches; MSER-5.
const BATCH_SIZE_START: u64 = 5;
/// Neighbouring batches are joined when there are this many, so that memory and accuracy stay.
const BATCHES_MAX: usize = 4096;
/// Batches that an interval is computed from. Source: Schmeiser; more add little and cost independence.
const INTERVAL_BATCHES: usize = 30;
const INTERVAL_BATCHES_MIN: usize = 10;

/// Values in order of time, kept as means of batches of equal size.
#[derive(Clone, Debug, PartialEq)]
pub struct Batches {
    means: Vec<f64>,
    size: u64,
    sum: f64,
    count: u64,
}

/// A mean and how far to trust it; in the unit of the values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The mean.
    pub mean: f64,
    /// Half the width of the 95 % confidence interval.
    pub half_width: f64,
    /// How many batches it is computed from.
    pub batch_count: usize,
    /// How many values each of them holds.
    pub batch_size: u64,
    /// Correlation of neighbouring batches; above 0.3 the run is too short and the interval too narrow.
    pub correlation: f64,
}

impl Default for Batches {
    fn default() -> Self {
        Self {
            means: Vec::new(),
            size: BATCH_SIZE_START,
            sum: 0.0,
            count: 0,
        }
    }
}

impl Batches {
    /// Adds a value.
    #[inline]
    pub fn record(&mut self, value: f64) {
        self.sum += value;
        self.count += 1;
        if self.count == self.size {
            self.close();
        }
    }

    #[cold]
    fn close(&mut self) {
        self.means.push(self.sum / self.size as f64);
        (self.sum, self.count) = (0.0, 0);
        if self.means.len() == BATCHES_MAX {
            self.means = self.means.chunks_exact(2).map(mean_of).collect();
            self.size *= 2;
        }
    }

    /// Means of the complete batches.
    #[must_use]
    pub fn means(&self) -> &[f64] {
        &self.means
    }

    /// How many values a batch holds.
    #[must_use]
    pub fn batch_size(&self) -> u64 {
        self.size
    }

    /// How many leading values are warm-up by MSER; None when the run never became steady.
    #[must_use]
    pub fn warm_up(&self) -> Option<u64> {
        mser(&self.means).map(|warm_up| warm_up.batch_count as u64 * self.size)
    }

    /// The interval of the mean after the warm-up; None when the run never became steady.
    #[must_use]
    pub fn steady_interval(&self) -> Option<Interval> {
        self.interval_after(self.warm_up()?)
    }

    /// The interval of the mean without the first `skipped` values (rounded up to whole batches); None when fewer than
    /// ten batches are left.
    #[must_use]
    pub fn interval_after(&self, skipped: u64) -> Option<Interval> {
        let skipped = usize::try_from(skipped.div_ceil(self.size)).ok()?;
        let kept = self.means.get(skipped..)?;
        let group = (kept.len() / INTERVAL_BATCHES).max(1);
        // What does not fill a group is left out at the beginning, where the warm-up would linger.
        let start = kept.len() % group;
        let means: Vec<f64> = kept[start..].chunks_exact(group).map(mean_of).collect();
        (means.len() >= INTERVAL_BATCHES_MIN).then(|| interval(&means, self.size * group as u64))
    }
}

fn mean_of(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn interval(means: &[f64], batch_size: u64) -> Interval {
    let count = means.len() as f64;
    let mean = mean_of(means);
    let squares: f64 = means.iter().map(|m| (m - mean) * (m - mean)).sum();
    let products: f64 = means
        .windows(2)
        .map(|pair| (pair[0] - mean) * (pair[1] - mean))
        .sum();
    let error = libm::sqrt(squares / (count - 1.0) / count);
    Interval {
        mean,
        half_width: student(means.len() - 1) * error,
        batch_count: means.len(),
        batch_size,
        correlation: if squares > 0.0 {
            products / squares
        } else {
            0.0
        },
    }
}

/// The 97.5 % quantile of Student's distribution by degrees of freedom.
///
/// Source: expansion of Cornish and Fisher (Abramowitz and Stegun 26.7.5); within 0.0005 from 9 degrees on.
fn student(degrees: usize) -> f64 {
    const NORMAL: f64 = 1.959_963_984_540_054;
    let (z, n) = (NORMAL, degrees as f64);
    let z2 = z * z;
    let first = z * (z2 + 1.0) / 4.0;
    let second = z * (5.0 * z2 * z2 + 16.0 * z2 + 3.0) / 96.0;
    let third = z * (3.0 * z2 * z2 * z2 + 19.0 * z2 * z2 + 17.0 * z2 - 15.0) / 384.0;
    z + first / n + second / (n * n) + third / (n * n * n)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::float_cmp)] // a test may end so, and these numbers are exact
mod tests {
    use super::*;
    use crate::random::Streams;

    /// Source: tables of Student's distribution.
    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (degrees, expected) in [
            (9, 2.2622),
            (14, 2.1448),
            (19, 2.0930),
            (29, 2.0452),
            (59, 2.0010),
        ] {
            assert!((student(degrees) - expected).abs() < 0.0005, "{degrees}");
        }
    }

    #[test]
    fn memory_stays_and_the_mean_is_kept() {
        let mut batches = Batches::default();
        for value in 0..1_000_000u32 {
            batches.record(f64::from(value % 10));
        }
        assert!(batches.means().len() < BATCHES_MAX);
        let interval = batches.interval_after(0).unwrap();
        assert!((interval.mean - 4.5).abs() < 0.01, "{interval:?}");
        assert!(batches.interval_after(999_999).is_none());
    }

    /// An autoregressive series, whose neighbours correlate at 0.9: the interval holds the mean about 95 times in 100.
    #[test]
    fn intervals_of_correlated_values_cover() {
        let covered = (0..300).filter(|seed| {
            let mut stream = Streams::new(*seed).stream("test", "series");
            let (mut batches, mut value) = (Batches::default(), 0.0);
            for _ in 0..20_000 {
                value = 0.9 * value + stream.normal();
                batches.record(value + 3.0);
            }
            let interval = batches.steady_interval().unwrap();
            (interval.mean - 3.0).abs() <= interval.half_width
        });
        let covered = covered.count();
        assert!((272..=297).contains(&covered), "{covered} of 300");
    }
}
