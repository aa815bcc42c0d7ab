//! mClock: reservation, limit and weight for each client; with dmClock's tags for distributed storage.
//!
//! # Model
//! Three tags for each request of client i, t the time of its arrival and c the cost of the request before it:
//! R = max(R' + c/r, t), L = max(L' + c/l, t), P = P' + c/w. When a server is free, the request with the least R goes
//! if that has come (constraint phase); otherwise, of those whose L has come, the one with the least P (weight phase),
//! and then c/r is taken off all R of its client, so that what it got by weight is not charged to its reservation.
//! When none may go, the next R or L to come is waited for. Requests of one client stay in order.
//!
//! A client that wakes gets the later of P' + c/w and the least P among clients that wait, less its idle credit σ/w. The paper
//! moves all other clients' P instead; only differences of P count, so that is the same.
//!
//! dmClock: a request brings what its client received from other servers since its last request here. That many
//! requests advance L and P, those of them served for the reservation advance R.
//!
//! # Assumptions
//! Cost is charged behind a request: with requests of one size that is the paper's rule. Equal tags go in the order of
//! clients.
//!
//! # Parameters
//! A [`QosPolicy`] for each client; the rule by which size becomes cost.
//!
//! # Limits
//! Times are kept to 1/16 ns, steps c/r and c/l rounded to it; a run may last 4 years. Rates below 0.001 count as that.
//! P knows no time of arrival: the paper's P = max(P' + 1/w, t) makes shares depend on whether weights are
//! written 1 : 2 or 1000 : 2000, this one does not. A client held below its share by its limit lags in P; the paper's
//! pseudo-code would lend that lag to every client that wakes. Here a client wakes no earlier than the virtual time, the
//! largest P that was served by weight. A client that got more than its share by its reservation stays ahead in P for
//! as long: when capacity rises, it first falls behind the shares of the fluid allocation, as it does in the paper.
//! Idle means that nothing of the client waits, whether or not something is in service. Reservations that exceed the
//! capacity are met in proportion only of clients whose backlog lasts: R = max(.., t) lets a closed loop forget what it
//! waited for longer than its own queue lasts.
//!
//! # Sources
//! Gulati, Merchant and Varman, "mClock: handling throughput variability for hypervisor IO scheduling" (OSDI 2010),
//! algorithm 1 and sections 3.1, 3.2 (idle credit, request size) and 3.3 (dmClock).

use super::client_queues::{ClientQueues, Line};
use super::cost::{COST_BITS, CostRule, ONE};
use super::discipline::{Discipline, Next};
use super::min_tree::{ABSENT, MinTree};
use super::policy::QosPolicy;
use super::request::{Phase, Request};
use super::sfq::{advance, virtual_steps};
use crate::time::{Nanos, SECOND};
use leadline_stats::error::LeadlineError;

/// Binary places of a ns in tags of time.
const TICK_BITS: u32 = 4;
/// Tags of time end here: 4.5 years.
const HORIZON: i64 = 1 << 61;
/// The lowest rate, per second.
const RATE_MIN: f64 = 0.001;

#[inline]
fn ticks(now: Nanos) -> i64 {
    i64::try_from(now)
        .unwrap_or(HORIZON)
        .min(HORIZON >> TICK_BITS)
        << TICK_BITS
}

/// Ticks per cost of 1 at this rate; 0 when there is no such rule.
fn time_step(rate: f64) -> i64 {
    if rate == 0.0 || rate == f64::INFINITY {
        return 0;
    }
    let second = (SECOND << TICK_BITS) as f64;
    #[allow(clippy::cast_possible_truncation)] // below 2^44
    let step = (second / rate.max(RATE_MIN) + 0.5) as i64;
    step.max(1)
}

/// A request that waits, with the tags that were given when it came.
#[derive(Clone, Copy, Debug)]
struct Tagged<J> {
    job: J,
    /// R, plus what has been taken off its client's tags until it came.
    reservation: i64,
    limit: i64,
    cost: i64,
    /// What its client received elsewhere, in requests; advances P when it becomes the first one.
    elsewhere: u32,
}

/// How many of a client's requests went, and why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Released {
    /// For its reservation.
    pub by_reservation: u64,
    /// By weight.
    pub by_weight: u64,
}

#[derive(Clone, Debug)]
struct Client {
    reservation_step: i64,
    limit_step: i64,
    weight_step: i64,
    credit: i64,
    /// The R of a next request, plus `taken_off`.
    reservation_next: i64,
    /// What has been taken off all R so far; wraps, and differences from it do not.
    taken_off: i64,
    /// The L of a next request.
    limit_next: i64,
    /// The P of the first request, or of a next one when none waits.
    weight_tag: i64,
    line: Line,
    released: Released,
}

impl Client {
    fn new(policy: &QosPolicy, weight_step: i64) -> Self {
        #[allow(clippy::cast_possible_truncation)] // `as` saturates
        let burst = (policy.burst * ONE as f64 + 0.5) as i64;
        Self {
            reservation_step: time_step(policy.reservation),
            limit_step: time_step(policy.limit),
            weight_step,
            credit: advance(weight_step, burst),
            reservation_next: 0,
            taken_off: 0,
            limit_next: 0,
            weight_tag: 0,
            line: Line::EMPTY,
            released: Released::default(),
        }
    }

    /// Gives a request that comes at `time`, ticks, its tags.
    #[inline]
    fn tag<J: Request>(&mut self, time: i64, job: J, cost: i64) -> Tagged<J> {
        let elsewhere = job.elsewhere();
        let in_step = |step: i64, count: u32| step.saturating_mul(i64::from(count));
        let mut tagged = Tagged {
            job,
            reservation: 0,
            limit: 0,
            cost,
            elsewhere: elsewhere.served,
        };
        if self.reservation_step > 0 {
            let next = self.reservation_next.wrapping_sub(self.taken_off);
            let next = next.saturating_add(in_step(self.reservation_step, elsewhere.reserved));
            let tag = next.max(time).min(HORIZON);
            let after = tag.saturating_add(advance(self.reservation_step, cost));
            tagged.reservation = tag.wrapping_add(self.taken_off);
            self.reservation_next = after.min(HORIZON).wrapping_add(self.taken_off);
        }
        if self.limit_step > 0 {
            let next = self.limit_next;
            let next = next.saturating_add(in_step(self.limit_step, elsewhere.served));
            tagged.limit = next.max(time).min(HORIZON);
            self.limit_next = tagged.limit.saturating_add(advance(self.limit_step, cost));
        }
        tagged
    }
}

/// The mClock scheduler; a [`Discipline`] of the station whose servers are the device's queue depth.
#[derive(Clone, Debug)]
pub struct MClock<J> {
    clients: Vec<Client>,
    waiting: ClientQueues<Tagged<J>>,
    cost: CostRule,
    /// R of each client's first request.
    reservations: MinTree,
    /// L of first requests whose time has not come.
    held: MinTree,
    /// P of first requests whose L has come.
    ready: MinTree,
    /// The client that woke last, if no tree knows of it yet: most requests that find a free server go before another
    /// comes, and then no tree need ever know.
    fresh: Option<u32>,
    virtual_time: i64,
}

impl<J: Request> MClock<J> {
    /// Clients with these policies; those of requests are their indices.
    ///
    /// # Errors
    /// When a policy makes no sense.
    pub fn new(policies: &[QosPolicy], cost: CostRule) -> Result<Self, LeadlineError> {
        for (index, policy) in policies.iter().enumerate() {
            policy.check(&format!("client {index}"))?;
        }
        let steps = virtual_steps(policies.iter().map(|policy| policy.weight));
        let clients = policies.iter().zip(steps);
        Ok(Self {
            clients: clients.map(|(p, step)| Client::new(p, step)).collect(),
            waiting: ClientQueues::new(),
            cost,
            reservations: MinTree::new(policies.len()),
            held: MinTree::new(policies.len()),
            ready: MinTree::new(policies.len()),
            fresh: None,
            virtual_time: 0,
        })
    }

    /// How many of a client's requests went, and why.
    #[must_use]
    pub fn released(&self, client: usize) -> Released {
        self.clients
            .get(client)
            .map_or_else(Released::default, |client| client.released)
    }

    /// Shows the first request of a client to the trees.
    #[inline]
    fn show(&mut self, index: usize, time: i64) {
        let client = &mut self.clients[index];
        let Some(first) = self.waiting.front(client.line) else {
            self.reservations.set(index, ABSENT);
            self.ready.set(index, ABSENT);
            return;
        };
        if client.reservation_step > 0 {
            let tag = first.reservation.wrapping_sub(client.taken_off);
            self.reservations.set(index, tag);
        }
        if first.limit > time {
            self.held.set(index, first.limit);
            self.ready.set(index, ABSENT);
        } else {
            self.ready.set(index, client.weight_tag);
        }
    }

    /// Shows the client that woke last.
    #[inline]
    fn show_fresh(&mut self, time: i64) {
        if let Some(index) = self.fresh.take() {
            self.show(index as usize, time);
        }
    }

    /// Why the client that woke last goes before all others, if it does.
    #[inline]
    fn phase_of_fresh(&mut self, index: usize, time: i64) -> Option<Phase> {
        let client = &self.clients[index];
        let first = self.waiting.front(client.line)?;
        let least = self.reservations.min();
        if client.reservation_step > 0 {
            let tag = first.reservation.wrapping_sub(client.taken_off);
            if tag <= time {
                return (tag < least).then_some(Phase::Reservation);
            }
        }
        if least <= time || first.limit > time {
            return None;
        }
        let tag = client.weight_tag;
        self.admit(time);
        (tag < self.ready.min()).then_some(Phase::Weight)
    }

    /// Lets clients join whose limit allows it by now.
    #[inline]
    fn admit(&mut self, time: i64) {
        while self.held.min() <= time {
            let index = self.held.first();
            self.held.set(index, ABSENT);
            self.ready.set(index, self.clients[index].weight_tag);
        }
    }

    #[inline]
    fn release(&mut self, index: usize, phase: Phase, time: i64) -> Next<J> {
        let client = &mut self.clients[index];
        let Some(mut first) = self.waiting.pop(&mut client.line) else {
            return Next::Empty;
        };
        match phase {
            Phase::Reservation => {
                client.released.by_reservation += 1;
                if client.limit_step > 0 {
                    self.held.set(index, ABSENT); // a reservation goes before a limit
                }
            }
            Phase::Weight => {
                client.released.by_weight += 1;
                self.virtual_time = self.virtual_time.max(client.weight_tag);
                let charged = advance(client.reservation_step, first.cost);
                client.taken_off = client.taken_off.wrapping_add(charged);
            }
        }
        client.weight_tag += advance(client.weight_step, first.cost);
        if let Some(next) = self.waiting.front(client.line) {
            client.weight_tag += client.weight_step * i64::from(next.elsewhere);
        }
        self.show(index, time);
        first.job.released(phase);
        Next::Job(first.job)
    }

    /// The time, ns, at which something may go.
    fn wait(&self) -> Next<J> {
        let until = self.reservations.min().min(self.held.min());
        if until == ABSENT {
            return Next::Empty;
        }
        let until = Nanos::try_from(until).unwrap_or(0);
        Next::Wait(until.div_ceil(1 << TICK_BITS))
    }
}

impl<J: Request> Discipline<J> for MClock<J> {
    #[inline]
    fn push(&mut self, now: Nanos, job: J) {
        let (index, time) = (job.client() as usize, ticks(now));
        let cost = self.cost.fixed(job.bytes());
        let client = &mut self.clients[index];
        let tagged = client.tag(time, job, cost);
        if self.waiting.push(&mut client.line, tagged) {
            self.show_fresh(time);
            self.admit(time);
            let client = &mut self.clients[index];
            let least = match self.ready.min() {
                ABSENT => self.virtual_time,
                tag => tag.max(self.virtual_time),
            };
            client.weight_tag += client.weight_step * i64::from(tagged.elsewhere);
            client.weight_tag = client.weight_tag.max(least - client.credit);
            self.fresh = Some(job.client());
        }
    }

    #[inline]
    fn next(&mut self, now: Nanos) -> Next<J> {
        let time = ticks(now);
        if let Some(index) = self.fresh {
            let index = index as usize;
            if let Some(phase) = self.phase_of_fresh(index, time) {
                self.fresh = None;
                return self.release(index, phase, time);
            }
            self.show_fresh(time);
        }
        if self.reservations.min() <= time {
            return self.release(self.reservations.first(), Phase::Reservation, time);
        }
        if self.ready.min() == ABSENT {
            if self.held.min() > time {
                return self.wait();
            }
            let index = self.held.first();
            self.held.set(index, ABSENT);
            if self.held.min() > time {
                // The only one whose time has come: it goes without ever being ready.
                return self.release(index, Phase::Weight, time);
            }
            self.ready.set(index, self.clients[index].weight_tag);
        }
        self.admit(time);
        self.release(self.ready.first(), Phase::Weight, time)
    }

    #[inline]
    fn len(&self) -> usize {
        self.waiting.len()
    }
}

const _: () = assert!(ONE == 1 << COST_BITS);
