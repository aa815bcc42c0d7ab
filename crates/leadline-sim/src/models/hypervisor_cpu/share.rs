//! What a VM is entitled to: its virtual time, its reservation and its limit, brought up to date when they are needed.

use crate::kernel::Timer;
use crate::time::{MILLISECOND, Nanos};

/// Shares at which virtual time is CPU time: those of one vCPU.
const SHARES_UNIT: f64 = 1_000.0;
/// How long a claim by reservation is kept, ns. Judgement: two quanta, so that one quantum of another loses nothing.
const RESERVATION_KEPT: f64 = 400.0 * MILLISECOND as f64;
/// A limit is spent and refilled in turns of this length, ns. Judgement: far below a quantum, far above a burst.
const LIMIT_TURN: f64 = 20.0 * MILLISECOND as f64;

/// Rank of a VM among those that want a thread: the lower goes first.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub(super) struct Rank {
    /// 0 the hypervisor's own work, 1 below its reservation, 2 by shares.
    pub(super) class: u8,
    /// Virtual time, ns.
    pub(super) vtime: f64,
}

#[derive(Clone, Debug)]
pub(super) struct Share {
    weight: f64,
    is_system: bool,
    vtime: f64,
    /// Cores in use.
    rate: f64,
    since: Nanos,
    reservation: f64,
    reserved: f64,
    limit: f64,
    allowed: f64,
    pub(super) is_throttled: bool,
    pub(super) timer: Timer,
}

impl Share {
    pub(super) fn new(shares: f64, reservation: f64, limit: f64, is_system: bool) -> Self {
        Self {
            weight: shares / SHARES_UNIT,
            is_system,
            vtime: 0.0,
            rate: 0.0,
            since: 0,
            reservation,
            reserved: 0.0,
            limit,
            allowed: limit * LIMIT_TURN,
            is_throttled: false,
            timer: Timer::default(),
        }
    }

    /// Brings everything to `now`, ns.
    pub(super) fn advance(&mut self, now: Nanos) {
        let passed = (now - self.since) as f64;
        self.since = now;
        self.vtime += self.rate * passed / self.weight;
        let kept = self.reservation * RESERVATION_KEPT;
        self.reserved += (self.reservation - self.rate) * passed;
        self.reserved = self.reserved.clamp(-kept, kept);
        if self.limit.is_finite() {
            let most = self.limit * LIMIT_TURN;
            self.allowed = (self.allowed + (self.limit - self.rate) * passed).min(most);
        }
    }

    /// Uses so many cores from now on; call [`Share::advance`] before.
    pub(super) fn set_rate(&mut self, rate: f64) {
        self.rate = rate;
    }

    pub(super) fn rate(&self) -> f64 {
        self.rate
    }

    pub(super) fn has_limit(&self) -> bool {
        self.limit.is_finite()
    }

    /// How long from now until the limit's allowance is spent or, when throttled, back, ns; None for never.
    pub(super) fn limit_turns_in(&self) -> Option<f64> {
        if self.is_throttled {
            let missing = self.limit * LIMIT_TURN / 2.0 - self.allowed;
            return Some((missing / self.limit).max(0.0));
        }
        (self.rate > self.limit).then(|| (self.allowed / (self.rate - self.limit)).max(0.0))
    }

    /// A VM that wants CPU again has no claim to what it did not want while it slept, but for the last quantum of it.
    pub(super) fn lift(&mut self, vtime: f64) {
        self.vtime = self.vtime.max(vtime);
    }

    /// Its rank at the time of the last [`Share::advance`].
    pub(super) fn rank(&self) -> Rank {
        let class = if self.is_system {
            0
        } else {
            2 - u8::from(self.reservation > 0.0 && self.reserved > 0.0)
        };
        Rank {
            class,
            vtime: self.vtime,
        }
    }
}
