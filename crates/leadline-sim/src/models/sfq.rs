//! Start-time fair queueing with depth D.
//!
//! # Model
//! A request that arrives gets a start tag, the later of the virtual time and the finish tag of its client's request
//! before it, and a finish tag, its cost by its client's weight later. The waiting request with the least start tag
//! goes first; virtual time is its start tag. D, how many may be in service at once, is the number of servers of the
//! station.
//!
//! # Assumptions
//! Clients are told apart by [`Request::client`]; equal tags go in the order of clients.
//!
//! # Parameters
//! Weights; the rule by which size becomes cost.
//!
//! # Limits
//! Knows neither reservation nor limit. Over any time in which two clients have requests waiting, what they received by
//! weight differs by no more than (D + 1) × (c₁/w₁ + c₂/w₂), c their largest cost. The virtual time is not set anew
//! when the system runs empty, so that a client may carry a debt of one request into the next busy time.
//!
//! # Sources
//! Goyal, Vin and Cheng, "Start-time fair queuing" (SIGCOMM 1996). Jin, Chase and Kaur, "Interposed proportional sharing
//! for a storage service utility" (SIGMETRICS 2004), sections 3.2 (SFQ(D)) and 3.3 (bound).

use super::client_queues::{ClientQueues, Line};
use super::cost::{COST_BITS, CostRule};
use super::discipline::{Discipline, Next};
use super::min_tree::{ABSENT, MinTree};
use super::request::Request;
use crate::time::Nanos;

/// What a request of cost 1 costs the client of the largest weight, in units of virtual time.
const UNIT: f64 = (1u64 << 16) as f64;
/// The most that a cost of 1 advances virtual time: smaller weights than a millionth of the largest count as that, so
/// that a client of the least weight alone may send 10^8 requests before numbers end.
const STEP_MAX: f64 = (1u64 << 36) as f64;

/// Steps of virtual time per cost of 1 for each weight: inverse to it, in units that the largest weight sets.
pub(super) fn virtual_steps(weights: impl Iterator<Item = f64> + Clone) -> Vec<i64> {
    let largest = weights.clone().fold(0.0, f64::max);
    #[allow(clippy::cast_possible_truncation)] // clamped
    let step = |weight: f64| (UNIT * largest / weight + 0.5).clamp(1.0, STEP_MAX) as i64;
    weights.map(step).collect()
}

/// A step times a cost.
#[inline]
pub(super) fn advance(step: i64, cost: i64) -> i64 {
    step.saturating_mul(cost) >> COST_BITS
}

#[derive(Clone, Debug)]
struct Client {
    step: i64,
    finish: i64,
    line: Line,
}

/// Start-time fair queueing.
#[derive(Clone, Debug)]
pub struct Sfq<J> {
    clients: Vec<Client>,
    starts: MinTree,
    waiting: ClientQueues<J>,
    cost: CostRule,
    virtual_time: i64,
}

impl<J: Request> Sfq<J> {
    /// Clients of these weights, above 0; those of requests are their indices.
    #[must_use]
    pub fn new(weights: &[f64], cost: CostRule) -> Self {
        let client = |step| Client {
            step,
            finish: 0,
            line: Line::EMPTY,
        };
        let steps = virtual_steps(weights.iter().copied());
        Self {
            clients: steps.into_iter().map(client).collect(),
            starts: MinTree::new(weights.len()),
            waiting: ClientQueues::new(),
            cost,
            virtual_time: 0,
        }
    }
}

impl<J: Request> Discipline<J> for Sfq<J> {
    #[inline]
    fn push(&mut self, _now: Nanos, job: J) {
        let index = job.client() as usize;
        let client = &mut self.clients[index];
        if self.waiting.push(&mut client.line, job) {
            let start = client.finish.max(self.virtual_time);
            client.finish = start;
            self.starts.set(index, start);
        }
    }

    #[inline]
    fn next(&mut self, _now: Nanos) -> Next<J> {
        if self.starts.min() == ABSENT {
            return Next::Empty;
        }
        let index = self.starts.first();
        let client = &mut self.clients[index];
        let Some(job) = self.waiting.pop(&mut client.line) else {
            return Next::Empty;
        };
        self.virtual_time = self.starts.min();
        // While requests wait, a finish tag is the next one's start tag: the virtual time never passes it.
        client.finish = self.virtual_time + advance(client.step, self.cost.fixed(job.bytes()));
        let more = self.waiting.front(client.line).is_some();
        self.starts
            .set(index, if more { client.finish } else { ABSENT });
        Next::Job(job)
    }

    #[inline]
    fn len(&self) -> usize {
        self.waiting.len()
    }
}
