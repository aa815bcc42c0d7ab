//! Latencies added up one by one: count, mean, spread, range and histogram, in memory that does not grow with them.

/// Buckets are exact up to `2 ** (EXACT_BITS + 1)`, then `2 ** -EXACT_BITS` of their value wide.
const EXACT_BITS: u32 = 10;
/// Whole numbers above are put into the last bucket.
const WHOLE_MAX: u64 = 1 << 62;

/// Count, mean, spread and range of latencies.
///
/// Source: B. P. Welford, Note on a method for calculating corrected sums of squares and products, 1962; for pooling
/// two of them T. F. Chan, G. H. Golub and R. J. `LeVeque`, 1979.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moments {
    /// How many.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// The sum of the squares of their distances from the mean.
    pub squares: f64,
    /// The lowest; infinite when there is none.
    pub low: f64,
    /// The highest; minus infinity when there is none.
    pub high: f64,
}

impl Default for Moments {
    fn default() -> Self {
        Self {
            count: 0,
            mean: 0.0,
            squares: 0.0,
            low: f64::INFINITY,
            high: f64::NEG_INFINITY,
        }
    }
}

impl Moments {
    /// Takes in a latency.
    #[allow(clippy::cast_precision_loss)] // counts stay far below 2^53
    pub fn add(&mut self, latency: f64) {
        self.count += 1;
        let distance = latency - self.mean;
        self.mean += distance / self.count as f64;
        self.squares += distance * (latency - self.mean);
        self.low = self.low.min(latency);
        self.high = self.high.max(latency);
    }

    /// Takes in all of another.
    #[allow(clippy::cast_precision_loss)]
    pub fn pool(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        let (own, others) = (self.count as f64, other.count as f64);
        let distance = other.mean - self.mean;
        self.count += other.count;
        self.mean += distance * (others / (own + others));
        self.squares += other.squares + distance * distance * (own * (others / (own + others)));
        self.low = self.low.min(other.low);
        self.high = self.high.max(other.high);
    }
}

/// Moments with a histogram of whole latencies.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Latencies {
    /// Count, mean, spread and range.
    pub moments: Moments,
    counts: Vec<u64>,
}

impl Latencies {
    /// Takes in a latency.
    #[allow(clippy::cast_precision_loss)]
    pub fn add(&mut self, latency: u64) {
        self.moments.add(latency as f64);
        let bucket = bucket_of(latency.min(WHOLE_MAX));
        if bucket >= self.counts.len() {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] += 1;
    }

    /// Takes in all of another.
    pub fn pool(&mut self, other: &Self) {
        self.moments.pool(&other.moments);
        if other.counts.len() > self.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (count, others) in self.counts.iter_mut().zip(&other.counts) {
            *count += others;
        }
    }

    /// The buckets that hold something, ascending: (lowest latency of the bucket, count).
    #[must_use]
    pub fn buckets(&self) -> Vec<(u64, u64)> {
        let held = self
            .counts
            .iter()
            .enumerate()
            .filter(|&(_, &count)| count > 0);
        held.map(|(bucket, &count)| (lowest_of(bucket), count))
            .collect()
    }
}

/// The bucket of a whole number.
///
/// Source: `HdrHistogram`'s bucket layout with ten bits of precision.
fn bucket_of(whole: u64) -> usize {
    let shift = (whole | 1).ilog2().saturating_sub(EXACT_BITS);
    let bucket = (u64::from(shift) << EXACT_BITS) + (whole >> shift);
    usize::try_from(bucket).unwrap_or(usize::MAX)
}

/// The lowest whole number of a bucket.
fn lowest_of(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let shift = (bucket >> EXACT_BITS).saturating_sub(1);
    (bucket - (shift << EXACT_BITS)) << shift
}

#[cfg(test)]
mod tests {
    use super::{Latencies, Moments, WHOLE_MAX, bucket_of, lowest_of};
    use proptest::prelude::*;

    #[test]
    fn buckets_are_exact_up_to_2047_then_of_a_thousandth() {
        let mut latencies = Latencies::default();
        for latency in [3, 3, 2047, 5001] {
            latencies.add(latency);
        }
        assert_eq!(latencies.buckets(), [(3, 2), (2047, 1), (5000, 1)]);
    }

    proptest! {
        #[test]
        fn a_bucket_begins_at_most_a_thousandth_below(whole in 0..=WHOLE_MAX) {
            let lowest = lowest_of(bucket_of(whole));
            prop_assert!(lowest <= whole && (whole - lowest) <= lowest / 1024);
            prop_assert_eq!(bucket_of(lowest), bucket_of(whole));
        }

        #[test]
        fn pooling_equals_adding_one_by_one(
            first in prop::collection::vec(0u64..1 << 40, 0..50),
            second in prop::collection::vec(0u64..1 << 40, 0..50),
        ) {
            let of = |samples: &[u64]| {
                let mut latencies = Latencies::default();
                for &sample in samples {
                    latencies.add(sample);
                }
                latencies
            };
            let mut pooled = of(&first);
            pooled.pool(&of(&second));
            let all = of(&[first, second].concat());
            prop_assert_eq!(pooled.buckets(), all.buckets());
            let Moments { count, mean, squares, low, high } = pooled.moments;
            prop_assert_eq!((count, low, high), (all.moments.count, all.moments.low, all.moments.high));
            prop_assert!((mean - all.moments.mean).abs() <= 1e-12 * mean.abs());
            prop_assert!((squares - all.moments.squares).abs() <= 1e-9 * squares.abs());
        }
    }
}
