//! Lengths of time: a histogram and their exact sum.

use crate::time::Nanos;
use leadline_stats::histogram::LogLinear;

/// Lengths in ns: quantiles within 0.78 %, mean, least and largest exactly. Merges as histograms do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Durations {
    histogram: LogLinear,
    sum: u128,
}

impl Durations {
    /// Adds one length, ns.
    #[inline]
    pub fn record(&mut self, nanos: Nanos) {
        self.histogram.record(nanos);
        self.sum += u128::from(nanos);
    }

    /// Adds all lengths of another.
    pub fn merge(&mut self, other: &Self) {
        self.histogram.merge(&other.histogram);
        self.sum += other.sum;
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.histogram.total()
    }

    /// Their sum, ns.
    #[must_use]
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// Their mean, ns; None without any.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.count() > 0).then(|| self.sum as f64 / self.count() as f64)
    }

    /// The value below which this share of them lies, ns; None without any.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<f64> {
        self.histogram.quantile(share)
    }

    /// The histogram, ns.
    #[must_use]
    pub fn histogram(&self) -> &LogLinear {
        &self.histogram
    }
}
