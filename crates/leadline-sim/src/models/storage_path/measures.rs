//! What is measured of each virtual machine.

use super::spec::{Spec, VmSpec};
use crate::measure::{Batches, Durations, Interval, WindowSeries};
use crate::models::account::Account;
use crate::time::Nanos;

/// Windows of the batch means of a rate.
const RATE_WINDOWS: Nanos = 1_000;

/// What one kind of request of a source did.
#[derive(Clone, Debug, Default)]
pub struct Done {
    /// From issue to completion.
    pub responses: Durations,
    /// Bytes of those that completed.
    pub bytes: u64,
}

/// What is measured of a virtual machine.
#[derive(Clone, Debug)]
pub struct VmMeasures {
    /// By part of the way, see [`STAGES`].
    pub stages: [Account; 5],
    /// From issue to completion.
    pub total: Account,
    /// Reads and writes of each source, in the source's order.
    pub done: Vec<[Done; 2]>,
    /// Response times in ms, by time of completion since measuring began.
    pub latency_ms: WindowSeries,
    /// Bytes completed likewise.
    pub bytes: WindowSeries,
    /// Completions in short windows, for the interval of the rate.
    pub rate: WindowSeries,
    /// How many of them were over when measuring ended.
    pub rate_windows: usize,
    /// Response times in ns in order of completion.
    pub in_order: Batches,
}

impl VmMeasures {
    /// Completions per second with their interval by batch means, over the measured time; None when it was too short.
    #[must_use]
    pub fn rate_interval(&self) -> Option<Interval> {
        let mut batches = Batches::default();
        let counts = self.rate.rates();
        for index in 0..self.rate_windows {
            batches.record(counts.get(index).copied().unwrap_or(0.0));
        }
        batches.interval_after(0)
    }
}

pub(super) fn measures_of(vm: &VmSpec, spec: &Spec) -> VmMeasures {
    let width = spec.measured.div_ceil(RATE_WINDOWS).max(1);
    #[allow(clippy::cast_possible_truncation)] // at most RATE_WINDOWS
    let rate_windows = (spec.measured / width) as usize;
    VmMeasures {
        stages: Default::default(),
        total: Account::default(),
        done: vec![Default::default(); vm.sources.len()],
        latency_ms: WindowSeries::new(spec.window),
        bytes: WindowSeries::new(spec.window),
        rate: WindowSeries::new(width),
        rate_windows,
        in_order: Batches::default(),
    }
}
