//! What a model sees of the kernel: the clock and a place to put events.

use super::queue::EventQueue;
use crate::time::Nanos;

/// The clock and the pending events.
#[derive(Clone, Debug)]
pub struct Schedule<E> {
    pub(super) queue: EventQueue<E>,
    pub(super) now: Nanos,
    pub(super) stopped: bool,
}

impl<E: Copy> Default for Schedule<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E: Copy> Schedule<E> {
    /// Nothing pending, at time 0.
    #[must_use]
    pub fn new() -> Self {
        Self {
            queue: EventQueue::new(),
            now: 0,
            stopped: false,
        }
    }

    /// The current time, ns.
    #[inline]
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// Lets an event happen at `time`, ns; a time that has passed means now. Events of one time happen in the order of
    /// the calls.
    #[inline]
    pub fn at(&mut self, time: Nanos, event: E) {
        self.queue.push(time.max(self.now), event);
    }

    /// Lets an event happen after `delay`, ns; beyond the end of time it never happens.
    #[inline]
    pub fn after(&mut self, delay: Nanos, event: E) {
        self.queue.push(self.now.saturating_add(delay), event);
    }

    /// Ends the run when the current event has been handled; what is pending stays pending.
    #[inline]
    pub fn stop(&mut self) {
        self.stopped = true;
    }

    /// How many events are pending.
    #[inline]
    #[must_use]
    pub fn pending_count(&self) -> usize {
        self.queue.len()
    }
}
