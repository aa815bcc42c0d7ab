//! What is measured of everything that issues requests for blocks: a virtual machine, a group of them, or all.

use super::account::Account;
use crate::measure::{Batches, Durations, Rate, WindowSeries};
use crate::time::{Nanos, millis};

/// What one kind of request of a source did.
#[derive(Clone, Debug, Default)]
pub struct Done {
    /// From issue to completion.
    pub responses: Durations,
    /// Bytes of those that completed.
    pub bytes: u64,
}

/// Requests from issue to completion; times of windows from the beginning of measuring.
#[derive(Clone, Debug)]
pub struct IoMeasures {
    /// From issue to completion.
    pub total: Account,
    /// Reads and writes of each source, in the source's order.
    pub done: Vec<[Done; 2]>,
    /// Response times in ms, by time of completion.
    pub latency_ms: WindowSeries,
    /// Bytes completed likewise.
    pub bytes: WindowSeries,
    /// Completions per second.
    pub rate: Rate,
    /// Response times in ns in order of completion.
    pub in_order: Batches,
}

impl IoMeasures {
    /// Nothing measured yet of so many sources; the measured time and the windows of the series in ns.
    #[must_use]
    pub fn new(source_count: usize, measured: Nanos, window: Nanos) -> Self {
        Self {
            total: Account::default(),
            done: vec![Default::default(); source_count],
            latency_ms: WindowSeries::new(window),
            bytes: WindowSeries::new(window),
            rate: Rate::new(measured),
            in_order: Batches::default(),
        }
    }

    /// The same, empty, with those that are inside now.
    #[must_use]
    pub fn restarted(&self, now: Nanos, measured: Nanos, window: Nanos) -> Self {
        let mut total = self.total.clone();
        total.restart_measuring(now);
        Self {
            total,
            ..Self::new(self.done.len(), measured, window)
        }
    }

    /// A request of a source that was issued then is done now; `since` is the start of measuring.
    #[inline]
    pub fn record(
        &mut self,
        source: usize,
        is_write: bool,
        bytes: u32,
        (issued, now): (Nanos, Nanos),
        since: Nanos,
    ) {
        let response = now - issued;
        self.total.leave(now, issued);
        if let Some(done) = self.done.get_mut(source) {
            let way = &mut done[usize::from(is_write)];
            way.responses.record(response);
            way.bytes += u64::from(bytes);
        }
        self.latency_ms.record(now - since, millis(response));
        self.bytes.record(now - since, f64::from(bytes));
        self.rate.record(now - since);
        self.in_order.record(response as f64);
    }
}
