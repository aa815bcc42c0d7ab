//! Events that may be taken back.

/// Takes back events without searching the queue: setting or cancelling makes earlier stamps stale.
///
/// A model keeps the timer, puts the stamp from [`Timer::set`] into its event and ignores an event whose stamp is no
/// longer current. A stale event costs one pop.
///
/// ```
/// let mut timer = leadline_sim::kernel::Timer::default();
/// let first = timer.set();
/// let second = timer.set();
/// assert!(!timer.is_current(first) && timer.is_current(second));
/// timer.cancel();
/// assert!(!timer.is_current(second));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timer {
    stamp: u32,
}

impl Timer {
    /// Makes earlier stamps stale and returns the one to put into the new event.
    #[inline]
    pub fn set(&mut self) -> u32 {
        self.stamp = self.stamp.wrapping_add(1);
        self.stamp
    }

    /// Makes all stamps stale.
    #[inline]
    pub fn cancel(&mut self) {
        self.stamp = self.stamp.wrapping_add(1);
    }

    /// Whether the event with this stamp still counts.
    #[inline]
    #[must_use]
    pub fn is_current(&self, stamp: u32) -> bool {
        self.stamp == stamp
    }
}
