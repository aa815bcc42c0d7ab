//! What is measured.

use super::servers::Class;
use super::spec::Spec;
use crate::measure::{Batches, Interval, WindowSeries};
use crate::models::account::Account;
use crate::models::storage_path::Done;
use crate::time::{Nanos, millis};

/// Windows of the batch means of a rate.
const RATE_WINDOWS: Nanos = 1_000;

/// What is measured of a group of virtual machines, or of all.
#[derive(Clone, Debug)]
pub struct GroupMeasures {
    /// From issue to completion.
    pub total: Account,
    /// Reads and writes of each source, in the source's order.
    pub done: Vec<[Done; 2]>,
    /// Response times in ms, by time of completion since measuring began.
    pub latency_ms: WindowSeries,
    /// Bytes completed likewise.
    pub bytes: WindowSeries,
    /// Response times in ns in order of completion.
    pub in_order: Batches,
    rate: WindowSeries,
    rate_windows: usize,
}

impl GroupMeasures {
    /// Nothing measured yet of VMs with so many sources.
    #[must_use]
    pub fn new(spec: &Spec, source_count: usize) -> Self {
        let width = spec.measured.div_ceil(RATE_WINDOWS).max(1);
        #[allow(clippy::cast_possible_truncation)] // at most RATE_WINDOWS
        let rate_windows = (spec.measured / width) as usize;
        Self {
            total: Account::default(),
            done: vec![Default::default(); source_count],
            latency_ms: WindowSeries::new(spec.window),
            bytes: WindowSeries::new(spec.window),
            in_order: Batches::default(),
            rate: WindowSeries::new(width),
            rate_windows,
        }
    }

    /// The same, empty, with those that are inside.
    #[must_use]
    pub fn restarted(&self, now: Nanos, spec: &Spec) -> Self {
        let mut total = self.total.clone();
        total.restart_measuring(now);
        Self {
            total,
            ..Self::new(spec, self.done.len())
        }
    }

    /// A request of a source is done that was issued then; `since` is the start of measuring.
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
            done[usize::from(is_write)].responses.record(response);
            done[usize::from(is_write)].bytes += u64::from(bytes);
        }
        self.latency_ms.record(now - since, millis(response));
        self.bytes.record(now - since, f64::from(bytes));
        self.rate.record(now - since, 1.0);
        self.in_order.record(response as f64);
    }

    /// Completions per second with their interval by batch means; None when the measured time was too short.
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

/// What the disks and the network did, for guests and for resynchronising.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
