//! What is measured of the cluster itself.

use serde::Serialize;

use super::servers::Class;
use crate::time::Nanos;

/// What the disks and the network did, for guests and for resynchronising.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Traffic {
    /// Reads of disks.
    pub reads: [u64; 2],
    /// Writes of disks.
    pub writes: [u64; 2],
    /// Bytes read from disks.
    pub read_bytes: [u64; 2],
    /// Bytes written to disks.
    pub written_bytes: [u64; 2],
    /// Bytes sent from node to node.
    pub sent_bytes: [u64; 2],
}

impl Traffic {
    pub(super) fn disk(&mut self, class: Class, is_write: bool, bytes: u32) {
        let own = class as usize;
        let (count, sum) = if is_write {
            (&mut self.writes, &mut self.written_bytes)
        } else {
            (&mut self.reads, &mut self.read_bytes)
        };
        count[own] += 1;
        sum[own] += u64::from(bytes);
    }
}

/// How what failed was made good; times since the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Healing {
    /// When the first failure came, ns.
    pub failed: Option<Nanos>,
    /// When the first fragment began to be rebuilt or brought up to date, ns.
    pub began: Option<Nanos>,
    /// When the last was whole again and none waited, ns.
    pub ended: Option<Nanos>,
    /// Fragments made whole.
    pub fragment_count: u64,
    /// Bytes written to make them so.
    pub bytes: u64,
    /// Fragments that cannot be made whole for want of a node or of other fragments.
    pub stalled_count: u64,
}
