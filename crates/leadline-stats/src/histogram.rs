//! A log-linear histogram of 64-bit counts: 64 buckets per power of two.
//!
//! A bucket's width is at most 1/64 of its lower bound, so its middle is within 1/128 (0.78 %) of every value in it.
//! Values below 128 have buckets of their own and are exact. Histograms merge by adding counts, which is associative
//! and commutative: percentiles of a merged histogram are those of the pooled samples within that error.

const SUB_BITS: u32 = 6;
const SUB_COUNT: u64 = 1 << SUB_BITS;
/// The largest share by which a reported value differs from the sample it stands for.
pub const RELATIVE_ERROR: f64 = 1.0 / (2.0 * SUB_COUNT as f64);

/// Counts of values; grows with the largest value recorded, to at most 3,776 buckets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLinear {
    counts: Vec<u64>,
    /// The largest number there is when nothing was counted.
    min: u64,
    max: u64,
}

impl Default for LogLinear {
    fn default() -> Self {
        Self {
            counts: Vec::new(),
            min: u64::MAX,
            max: 0,
        }
    }
}

/// One bucket that holds something: values from `lower` up to but not including `upper`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Inclusive lower bound.
    pub lower: u64,
    /// Exclusive upper bound; saturates at the largest number.
    pub upper: u64,
    /// How many values.
    pub count: u64,
}

#[inline]
#[allow(clippy::cast_possible_truncation)] // at most 3,775
fn index_of(value: u64) -> usize {
    if value < SUB_COUNT {
        return value as usize;
    }
    let shift = value.ilog2() - SUB_BITS;
    ((u64::from(shift) << SUB_BITS) + (value >> shift)) as usize
}

fn bounds_of(index: usize) -> (u64, u64) {
    let index = index as u64;
    if index < 2 * SUB_COUNT {
        return (index, index + 1);
    }
    let shift = (index >> SUB_BITS) - 1;
    let lower = ((index & (SUB_COUNT - 1)) + SUB_COUNT) << shift;
    (lower, lower.saturating_add(1 << shift))
}

impl LogLinear {
    /// Counts one value.
    #[inline]
    pub fn record(&mut self, value: u64) {
        self.record_n(value, 1);
    }

    /// Counts a value `count` times.
    #[inline]
    pub fn record_n(&mut self, value: u64, count: u64) {
        if count == 0 {
            return;
        }
        let index = index_of(value);
        match self.counts.get_mut(index) {
            Some(held) => *held += count,
            None => self.grow(index, count),
        }
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, index: usize, count: u64) {
        self.counts.resize(index + 1, 0);
        self.counts[index] = count;
    }

    /// Adds all values of another histogram.
    pub fn merge(&mut self, other: &Self) {
        if other.counts.len() > self.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// How many values there are.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The smallest value, exactly.
    #[must_use]
    pub fn min(&self) -> Option<u64> {
        (!self.counts.is_empty()).then_some(self.min)
    }

    /// The largest value, exactly.
    #[must_use]
    pub fn max(&self) -> Option<u64> {
        self.min().map(|_| self.max)
    }

    /// The mean of the buckets' middles; within the relative error of the mean of the values.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        let sum: f64 = self.buckets().map(|b| middle(b) * b.count as f64).sum();
        let total = self.total();
        (total > 0).then(|| sum / total as f64)
    }

    /// The value at rank ceil(share * total), as the middle of its bucket kept within the extremes; None when empty.
    #[must_use]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a rank lies between 1 and the total
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let total = self.total();
        let rank = ((share.clamp(0.0, 1.0) * total as f64).ceil() as u64).clamp(1, total.max(1));
        let mut passed = 0;
        let bucket = self.buckets().find(|bucket| {
            passed += bucket.count;
            passed >= rank
        })?;
        let (low, high) = (self.min()? as f64, self.max as f64);
        Some(middle(bucket).clamp(low, high))
    }

    /// The buckets that hold something, ascending.
    pub fn buckets(&self) -> impl Iterator<Item = Bucket> + '_ {
        let held = self
            .counts
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0);
        held.map(|(index, count)| {
            let (lower, upper) = bounds_of(index);
            Bucket {
                lower,
                upper,
                count: *count,
            }
        })
    }

    /// The largest difference between the cumulative shares of two histograms (Kolmogorov and Smirnov), from 0 to 1;
    /// None when either is empty.
    #[must_use]
    pub fn distance(&self, other: &Self) -> Option<f64> {
        distance_of_counts(&self.counts, &other.counts)
    }
}

/// Kolmogorov and Smirnov's distance of two rows of counts over the same buckets; a shorter row ends in zeros.
#[must_use]
pub fn distance_of_counts(first: &[u64], second: &[u64]) -> Option<f64> {
    let totals = (first.iter().sum::<u64>(), second.iter().sum::<u64>());
    if totals.0 == 0 || totals.1 == 0 {
        return None;
    }
    let (mut passed, mut largest) = ((0u64, 0u64), 0f64);
    for index in 0..first.len().max(second.len()) {
        passed.0 += first.get(index).copied().unwrap_or(0);
        passed.1 += second.get(index).copied().unwrap_or(0);
        let apart = passed.0 as f64 / totals.0 as f64 - passed.1 as f64 / totals.1 as f64;
        largest = largest.max(apart.abs());
    }
    Some(largest)
}

fn middle(bucket: Bucket) -> f64 {
    if bucket.upper - bucket.lower <= 1 {
        return bucket.lower as f64;
    }
    bucket.lower as f64 + (bucket.upper - bucket.lower) as f64 / 2.0
}
