//! Completions per second with an interval.

use super::{Batches, Interval, WindowSeries};
use crate::time::Nanos;

/// Windows of the batch means of a rate.
const WINDOWS: Nanos = 1_000;

/// Completions counted in short windows of the measured time.
#[derive(Clone, Debug)]
pub struct Rate {
    counts: WindowSeries,
    windows: usize,
}

impl Rate {
    /// Nothing counted yet of a time of `measured` ns.
    #[must_use]
    pub fn new(measured: Nanos) -> Self {
        let width = measured.div_ceil(WINDOWS).max(1);
        #[allow(clippy::cast_possible_truncation)] // at most WINDOWS
        let windows = (measured / width) as usize;
        Self {
            counts: WindowSeries::new(width),
            windows,
        }
    }

    /// One is completed, so many ns after measuring began.
    #[inline]
    pub fn record(&mut self, since: Nanos) {
        self.counts.record(since, 1.0);
    }

    /// Per second, with its interval by batch means; None when the measured time was too short.
    #[must_use]
    pub fn interval(&self) -> Option<Interval> {
        let mut batches = Batches::default();
        let rates = self.counts.rates();
        for index in 0..self.windows {
            batches.record(rates.get(index).copied().unwrap_or(0.0));
        }
        batches.interval_after(0)
    }
}
