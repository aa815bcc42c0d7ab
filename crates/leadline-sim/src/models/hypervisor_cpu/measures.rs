//! What is measured of a VM and of the host.

use crate::measure::{Batches, Durations, LevelSeries, Rate, TimeWeighted, WindowSeries};
use crate::models::account::Account;
use crate::time::Nanos;

/// States of a vCPU, as the columns of its account have them.
pub const STATES: [&str; 4] = ["run", "ready", "co_stop", "wait"];

/// A level over windows and on average; times from the beginning of measuring.
#[derive(Clone, Debug)]
pub struct Level {
    /// By window.
    pub series: LevelSeries,
    /// On average.
    pub weighted: TimeWeighted,
}

impl Level {
    pub(super) fn new(window: Nanos) -> Self {
        Self {
            series: LevelSeries::new(window),
            weighted: TimeWeighted::default(),
        }
    }

    /// The same level, measured from time 0 on.
    pub(super) fn restarted(&self, window: Nanos) -> Self {
        let mut fresh = Self::new(window);
        fresh.add(0, self.weighted.level());
        fresh.weighted.restart(0);
        fresh
    }

    pub(super) fn add(&mut self, now: Nanos, amount: u64) {
        self.weighted.add(now, amount);
        self.series.set(now, self.weighted.level());
    }

    pub(super) fn sub(&mut self, now: Nanos, amount: u64) {
        self.weighted.sub(now, amount);
        self.series.set(now, self.weighted.level());
    }
}

/// What is measured of a virtual machine.
#[derive(Clone, Debug)]
pub struct VmMeasures {
    /// Transactions, from beginning to end.
    pub total: Account,
    /// Their response times.
    pub responses: Durations,
    /// Response times in ms by time of completion since measuring began.
    pub latency_ms: WindowSeries,
    /// Completions per second.
    pub rate: Rate,
    /// Response times in ns in order of completion.
    pub in_order: Batches,
    /// vCPUs by state, in the order of [`STATES`].
    pub states: [Level; 4],
    /// Tasks that run or wait for a vCPU, as the guest counts its run queue.
    pub run_queue: Level,
    /// How often it was moved to another node.
    pub migration_count: u64,
}

impl VmMeasures {
    pub(super) fn new(measured: Nanos, window: Nanos) -> Self {
        Self {
            total: Account::default(),
            responses: Durations::default(),
            latency_ms: WindowSeries::new(window),
            rate: Rate::new(measured),
            in_order: Batches::default(),
            states: std::array::from_fn(|_| Level::new(window)),
            run_queue: Level::new(window),
            migration_count: 0,
        }
    }

    pub(super) fn restarted(&self, now: Nanos, measured: Nanos, window: Nanos) -> Self {
        let mut fresh = Self::new(measured, window);
        fresh.total = self.total.clone();
        fresh.total.restart_measuring(now);
        for (own, old) in fresh.states.iter_mut().zip(&self.states) {
            *own = old.restarted(window);
        }
        fresh.run_queue = self.run_queue.restarted(window);
        fresh
    }

    /// A transaction that took `response` ends `since` after measuring began, both ns.
    pub(super) fn completed(&mut self, since: Nanos, response: Nanos) {
        self.responses.record(response);
        self.latency_ms.record(since, crate::time::millis(response));
        self.rate.record(since);
        self.in_order.record(response as f64);
    }
}
