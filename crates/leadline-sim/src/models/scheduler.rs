//! The schedulers a scenario can name for a queue of I/O: the one place that lists them.
//!
//! A discipline is a file of its own with a type that implements [`Discipline`] for [`Io`]; to let scenarios choose it,
//! add it to the four places marked "one line per scheduler" below.

use serde::Deserialize;
use std::collections::VecDeque;

use super::cost::CostRule;
use super::discipline::{Discipline, Fifo, Next};
use super::mclock::MClock;
use super::policy::QosPolicy;
use super::request::Request;
use super::sfq::Sfq;
use crate::time::Nanos;
use leadline_stats::error::LeadlineError;

/// One request where schedulers see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Io {
    /// Which request, as its owner counts them.
    pub slot: u32,
    /// Whose it is: an index into the clients the scheduler was made for.
    pub client: u32,
    /// Its size, bytes.
    pub bytes: u32,
    /// Whether it writes.
    pub is_write: bool,
    /// Whether it goes to a place of its own rather than behind the request before it.
    pub is_random: bool,
    /// Where on the device, in units of 2^-32 of it; 0 where that does not matter.
    pub place: u32,
}

impl Request for Io {
    #[inline]
    fn client(&self) -> u32 {
        self.client
    }

    #[inline]
    fn bytes(&self) -> u32 {
        self.bytes
    }
}

/// What a client of a scheduler is entitled to.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Client {
    /// Its name, for errors.
    pub name: String,
    /// Its weight against the others; 1000 is `VMware`'s "normal".
    pub shares: f64,
    /// Operations per second it gets first; 0 for none.
    pub reservation_iops: f64,
    /// Operations per second it never exceeds; infinite for none.
    #[serde(deserialize_with = "crate::document::or_infinite")]
    pub limit_iops: f64,
    /// Requests that go before those of equal claim after an idle time, by schedulers with tags; 0 for none.
    pub idle_credit: f64,
}

impl Client {
    /// The same for schedulers with tags. Without the limit: the disk's own bucket stands before the queue and keeps
    /// it, with its burst.
    fn policy(&self) -> Result<QosPolicy, LeadlineError> {
        let whole = QosPolicy {
            reservation: self.reservation_iops,
            limit: self.limit_iops,
            weight: self.shares,
            burst: self.idle_credit,
        };
        whole.check(&format!("disk {}", self.name))?;
        Ok(whole.limited(f64::INFINITY))
    }
}

/// What schedulers are made for.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    /// Who shares the queue, by [`Io::client`].
    pub clients: &'a [Client],
    /// How many requests may be out at once.
    pub depth: u32,
}

/// Names of all schedulers. One line per scheduler.
pub const SCHEDULERS: &[&str] = &["fifo", "round-robin", "sfq", "mclock", "sioc-v1", "sioc-v2"];

/// A scheduler chosen when the program runs. One line per scheduler.
#[derive(Clone, Debug)]
pub enum Scheduler {
    /// First come, first served.
    Fifo(Fifo<Io>),
    /// One request of each client in turn.
    RoundRobin(RoundRobin),
    /// By shares: SFQ(D), D the depth of the queue behind it; or the window of SIOC, version 1.
    Sfq(Sfq<Io>),
    /// By reservation and shares; every request counts as one.
    MClock(MClock<Io>),
    /// The same; requests count in units of 32 KB.
    SiocV2(MClock<Io>),
}

impl Scheduler {
    /// The scheduler of that name. One line per scheduler.
    ///
    /// # Errors
    /// When none has that name; `place` says who names it.
    pub fn named(name: &str, place: &str, setting: Setting<'_>) -> Result<Self, LeadlineError> {
        Ok(match name {
            "fifo" => Self::Fifo(Fifo::default()),
            "round-robin" => Self::RoundRobin(RoundRobin::new(setting.clients.len())),
            // Its window is the owner's: see `storage_path`.
            "sfq" | "sioc-v1" => {
                let weights: Vec<f64> = policies(setting)?.iter().map(|own| own.weight).collect();
                Self::Sfq(Sfq::new(&weights, CostRule::Request))
            }
            "mclock" => Self::MClock(MClock::new(&policies(setting)?, CostRule::Request)?),
            "sioc-v2" => Self::SiocV2(MClock::new(&policies(setting)?, CostRule::Units32Kb)?),
            _ => {
                return Err(LeadlineError::new(
                    format!("{place}: scheduler"),
                    name,
                    format!("one of {}", SCHEDULERS.join(", ")),
                    "Leave it out for fifo.",
                ));
            }
        })
    }
}

fn policies(setting: Setting<'_>) -> Result<Vec<QosPolicy>, LeadlineError> {
    setting.clients.iter().map(Client::policy).collect()
}

/// Calls the chosen scheduler, without a table of functions. One line per scheduler.
macro_rules! each {
    ($self:ident, $own:ident => $call:expr) => {
        match $self {
            Scheduler::Fifo($own) => $call,
            Scheduler::RoundRobin($own) => $call,
            Scheduler::Sfq($own) => $call,
            Scheduler::MClock($own) | Scheduler::SiocV2($own) => $call,
        }
    };
}

impl Discipline<Io> for Scheduler {
    #[inline]
    fn push(&mut self, now: Nanos, io: Io) {
        each!(self, own => own.push(now, io));
    }

    #[inline]
    fn next(&mut self, now: Nanos) -> Next<Io> {
        each!(self, own => own.next(now))
    }

    fn len(&self) -> usize {
        each!(self, own => own.len())
    }
}

/// One request of each client that has any, in turn: equal shares of requests, whatever their size.
///
/// Source: Nagle, "On packet switches with infinite storage" (RFC 970, 1985), fair queueing.
#[derive(Clone, Debug)]
pub struct RoundRobin {
    waiting: Vec<VecDeque<Io>>,
    /// Clients that have requests, the next one first.
    turn: VecDeque<u32>,
    count: usize,
}

impl RoundRobin {
    /// For this many clients.
    #[must_use]
    pub fn new(client_count: usize) -> Self {
        Self {
            waiting: vec![VecDeque::new(); client_count],
            turn: VecDeque::new(),
            count: 0,
        }
    }
}

impl Discipline<Io> for RoundRobin {
    fn push(&mut self, _now: Nanos, io: Io) {
        let own = &mut self.waiting[io.client as usize];
        if own.is_empty() {
            self.turn.push_back(io.client);
        }
        own.push_back(io);
        self.count += 1;
    }

    fn next(&mut self, _now: Nanos) -> Next<Io> {
        let Some(client) = self.turn.pop_front() else {
            return Next::Empty;
        };
        let own = &mut self.waiting[client as usize];
        let Some(io) = own.pop_front() else {
            return Next::Empty;
        };
        if !own.is_empty() {
            self.turn.push_back(client);
        }
        self.count -= 1;
        Next::Job(io)
    }

    fn len(&self) -> usize {
        self.count
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test may end so
mod tests {
    use super::*;

    fn io(slot: u32, client: u32) -> Io {
        Io {
            slot,
            client,
            bytes: 4096,
            is_write: false,
            is_random: true,
            place: 0,
        }
    }

    #[test]
    fn clients_take_turns() {
        let mut scheduler = RoundRobin::new(3);
        for (slot, client) in [(0, 0), (1, 0), (2, 0), (3, 2), (4, 1), (5, 1)] {
            scheduler.push(0, io(slot, client));
        }
        assert_eq!(scheduler.len(), 6);
        let order: Vec<_> = std::iter::from_fn(|| match scheduler.next(0) {
            Next::Job(io) => Some(io.slot),
            _ => None,
        })
        .collect();
        assert_eq!(order, [0, 3, 4, 1, 5, 2]);
        assert!(scheduler.is_empty());
    }

    #[test]
    fn every_name_makes_a_scheduler_and_others_are_refused() {
        let clients = [Client {
            name: "db01".to_owned(),
            shares: 1000.0,
            reservation_iops: 0.0,
            limit_iops: f64::INFINITY,
            idle_credit: 0.0,
        }];
        let setting = Setting {
            clients: &clients,
            depth: 32,
        };
        for name in SCHEDULERS {
            let mut made = Scheduler::named(name, "host esx01", setting).unwrap();
            made.push(0, io(7, 0));
            assert_eq!(made.len(), 1);
            assert_eq!(made.next(0), Next::Job(io(7, 0)), "{name}");
        }
        let error = Scheduler::named("lottery", "host esx01", setting).unwrap_err();
        assert_eq!(error.place, "host esx01: scheduler");
    }
}
