//! What a scheduler must know of a request.

use super::station::Waiting;
use crate::time::Nanos;

/// Why a scheduler let a request go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Its client's reservation was due.
    Reservation,
    /// By weight, after all reservations that were due.
    #[default]
    Weight,
}

/// What a client received from other servers since its last request to this one; dmClock's δ and ρ without the
/// request itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Elsewhere {
    /// Requests served by other servers, whatever the phase.
    pub served: u32,
    /// Those of them served for the reservation.
    pub reserved: u32,
}

/// A request of one of several clients.
pub trait Request: Copy {
    /// Whose it is, from 0.
    fn client(&self) -> u32;

    /// Its size, bytes.
    fn bytes(&self) -> u32;

    /// What its client received elsewhere; nothing unless the storage is distributed.
    #[inline]
    fn elsewhere(&self) -> Elsewhere {
        Elsewhere::default()
    }

    /// Told when a scheduler lets it go.
    #[inline]
    fn released(&mut self, _phase: Phase) {}
}

impl<J: Request> Request for Waiting<J> {
    #[inline]
    fn client(&self) -> u32 {
        self.job.client()
    }

    #[inline]
    fn bytes(&self) -> u32 {
        self.job.bytes()
    }

    #[inline]
    fn elsewhere(&self) -> Elsewhere {
        self.job.elsewhere()
    }

    #[inline]
    fn released(&mut self, phase: Phase) {
        self.job.released(phase);
    }
}

/// A virtual machine's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VmRequest {
    /// Which machine's, from 0.
    pub vm: u32,
    /// Its size, bytes.
    pub bytes: u32,
    /// When the machine issued it, ns.
    pub issued: Nanos,
}

impl Request for VmRequest {
    #[inline]
    fn client(&self) -> u32 {
        self.vm
    }

    #[inline]
    fn bytes(&self) -> u32 {
        self.bytes
    }
}
