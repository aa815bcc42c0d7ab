//! What a host of machines knows of events to come, beside what is scheduled.

use super::arrivals::Arrivals;
use crate::time::Nanos;

/// What need not be scheduled when all sources are open and pass no limit: their requests, and wakes. Of equal times the
/// event that became known first goes first; stamps are events handled until then.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub arrivals: Arrivals,
    pub handled: u64,
    /// Of the wakes that are pending, the next one last.
    pub wakes: Vec<u64>,
    /// Of the requests in service, by slot.
    pub services: Vec<u64>,
    pub is_wake: bool,
    pub time: Nanos,
}

impl Known {
    /// Sets what comes next. A request was known before what a later step of the same event made known.
    #[inline]
    pub fn look(&mut self, wake: Nanos) {
        let time = self.arrivals.time();
        self.time = time.min(wake);
        self.is_wake = wake < time;
        if wake == time && wake != Nanos::MAX {
            let wake_stamp = self.wakes.last().copied().unwrap_or(0);
            self.is_wake = wake_stamp < self.arrivals.stamp();
        }
    }

    #[inline]
    pub fn stamp(&self) -> (u64, bool) {
        if self.is_wake {
            return (self.wakes.last().copied().unwrap_or(0), true);
        }
        (self.arrivals.stamp(), false)
    }
}
