//! The network between hosts and a device: a latency, and a rate in each direction.

use crate::time::{Nanos, SECOND, whole};

/// Data goes one after the other in each direction; what has none (a read's request, a write's answer) takes the latency.
#[derive(Clone, Debug)]
pub(super) struct Link {
    latency: Nanos,
    nanos_per_byte: f64,
    /// Until when each direction is taken.
    taken: [Nanos; 2],
}

impl Link {
    pub(super) fn new(latency: Nanos, bytes_per_second: f64) -> Self {
        Self {
            latency,
            nanos_per_byte: SECOND as f64 / bytes_per_second,
            taken: [0; 2],
        }
    }

    /// When bytes sent now in a direction are there.
    pub(super) fn pass(&mut self, way: usize, now: Nanos, bytes: u32) -> Nanos {
        let mut at = now;
        if bytes > 0 {
            let free = now.max(self.taken[way]);
            at = free + whole(f64::from(bytes) * self.nanos_per_byte);
            self.taken[way] = at;
        }
        at + self.latency
    }
}
