//! A limit of I/O operations per second that delays.
//!
//! # Model
//! A token bucket: an operation of n units takes n tokens; tokens come at the limit's rate. An operation waits, in
//! order of arrival, until those before it are paid for, and then goes at once. Nothing is refused.
//!
//! # Assumptions
//! Operations count in units of 32 KB, rounded up: what is up to 32 KB counts as one, up to 64 KB as two.
//!
//! # Parameters
//! The limit in units per second; the burst in units that may go at once after an idle time.
//!
//! # Limits
//! The size counts after the fact: a large operation goes when the ones before it are paid for, and those after it
//! wait for its cost.
//!
//! # Sources
//! C. Hogan, "VSAN 6.2 part 4: IOPS limit for object" (cormachogan.com, 2016): normalised to 32 KB, 10,000 pass 5,000 of 64 KB.
//! ITU-T I.371 annex A for the equivalence of bucket and virtual schedule.

use crate::sources::Pace;
use crate::time::Nanos;

/// Bytes that count as one operation. Source: Hogan, as above.
pub const IO_UNIT_BYTES: u64 = 32 * 1024;

/// Units that an operation of `bytes` counts as: 1 up to 32 KB, 2 up to 64 KB; 1 for none.
#[inline]
#[must_use]
pub fn io_units(bytes: u64) -> u64 {
    bytes.div_ceil(IO_UNIT_BYTES).max(1)
}

/// A limit of I/O operations per second, 32 KB counting as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IopsLimit {
    pace: Pace,
}

impl IopsLimit {
    /// A limit in operations of up to 32 KB per second, with up to `burst` of them at once after an idle time.
    #[must_use]
    pub fn new(iops: f64, burst: u64) -> Self {
        Self {
            pace: Pace::with_burst(iops, burst),
        }
    }

    /// When the operation of `bytes` that arrives now may go, ns. Call in order of arrival; times do not descend.
    #[inline]
    pub fn admit(&mut self, now: Nanos, bytes: u64) -> Nanos {
        self.pace.admit(now, io_units(bytes))
    }
}
