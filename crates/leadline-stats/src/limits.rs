//! A histogram over fixed upper limits, as vscsiStats keeps them: a bucket counts what is at most its limit and above
//! the one before, the last what is above them all.

/// Counts per limit, and one more for what lies above.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    bounds: &'static [i64],
    counts: Vec<u64>,
    sum: i128,
    min: i64,
    max: i64,
}

impl Limits {
    /// An empty histogram; `limits` ascend.
    #[must_use]
    pub fn new(limits: &'static [i64]) -> Self {
        let counts = vec![0; limits.len() + 1];
        Self {
            bounds: limits,
            counts,
            sum: 0,
            min: i64::MAX,
            max: i64::MIN,
        }
    }

    /// Counts one value.
    #[inline]
    pub fn record(&mut self, value: i64) {
        let index = self.bounds.partition_point(|limit| *limit < value);
        self.counts[index] += 1;
        self.sum += i128::from(value);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Adds all values of another histogram over the same limits.
    pub fn merge(&mut self, other: &Self) {
        debug_assert_eq!(self.bounds, other.bounds);
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// The limits; the last bucket, above them all, has none.
    #[must_use]
    pub fn limits(&self) -> &'static [i64] {
        self.bounds
    }

    /// Counts, one more than there are limits.
    #[must_use]
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// How many values there are.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Smallest, largest and mean, exactly; None when empty.
    #[must_use]
    pub fn summary(&self) -> Option<(i64, i64, f64)> {
        let total = self.total();
        (total > 0).then(|| (self.min, self.max, self.sum as f64 / total as f64))
    }
}
