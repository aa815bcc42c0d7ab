//! The average over time of something that changes in steps.

use crate::time::Nanos;

/// A level (queue length, busy servers, bytes in a buffer) and its average, weighted by how long it lasted. The
/// integral is exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeWeighted {
    level: u64,
    max: u64,
    start: Nanos,
    since: Nanos,
    area: u128,
}

impl TimeWeighted {
    /// The level is `level` from now, ns, on.
    #[inline]
    pub fn set(&mut self, now: Nanos, level: u64) {
        self.area += u128::from(self.level) * u128::from(now - self.since);
        self.since = now;
        self.level = level;
        self.max = self.max.max(level);
    }

    /// The level rises.
    #[inline]
    pub fn add(&mut self, now: Nanos, amount: u64) {
        self.set(now, self.level + amount);
    }

    /// The level falls, at most to 0.
    #[inline]
    pub fn sub(&mut self, now: Nanos, amount: u64) {
        self.set(now, self.level.saturating_sub(amount));
    }

    /// The current level.
    #[inline]
    #[must_use]
    pub fn level(&self) -> u64 {
        self.level
    }

    /// The highest level since the start or restart.
    #[must_use]
    pub fn max(&self) -> u64 {
        self.max
    }

    /// Level times ns since the start or restart.
    #[must_use]
    pub fn area(&self, now: Nanos) -> u128 {
        self.area + u128::from(self.level) * u128::from(now - self.since)
    }

    /// The average level since the start or restart; None when no time has passed.
    #[must_use]
    pub fn mean(&self, now: Nanos) -> Option<f64> {
        (now > self.start).then(|| self.area(now) as f64 / (now - self.start) as f64)
    }

    /// Forgets what was, keeps the level: the end of the warm-up.
    pub fn restart(&mut self, now: Nanos) {
        (self.start, self.since, self.area, self.max) = (now, now, 0, self.level);
    }
}
