//! Cluster storage as a system: its document and what comes out.

use serde::Serialize;

use super::{ClusterStorage, Healing, Spec, Traffic};
use crate::document::{Failure, Head, Timed, Watch, measured};
use crate::outcome::IoFigures;

/// What comes out; times in ns.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    #[serde(flatten)]
    head: Head,
    /// Raw bytes by byte of data, before anything failed.
    raw_by_data: f64,
    groups: Vec<IoFigures>,
    /// Of each VM.
    latency_p95: Vec<Option<f64>>,
    /// Share of the time each disk was busy.
    disk_use: Vec<f64>,
    /// Share of each node's network, out and in.
    wire_use: Vec<[f64; 2]>,
    /// Bytes resynchronised by window.
    resynced: Vec<f64>,
    traffic: Traffic,
    healing: Healing,
    chunk_count: u64,
    unreadable_count: u64,
    parked_count: u64,
}

/// One run.
///
/// # Errors
/// When the document makes no run, the run broke a law, or the watcher ended it.
pub fn simulate(document: Timed<Spec>, watch: &mut Watch<'_>) -> Result<Outcome, Failure> {
    let spans = (document.warm_up, document.measured);
    let model = ClusterStorage::new(document.spec)?;
    let raw_by_data = model.layout.raw_by_data();
    let mut warm_up = Vec::new();
    let (run, head) = measured(Ok(model), spans, watch, |model, now| {
        warm_up.clone_from(&model.groups);
        model.restart_measuring(now);
    })?;
    let (model, now) = (&run.model, run.now());
    let groups = model.groups.iter().zip(&warm_up);
    Ok(Outcome {
        head,
        raw_by_data,
        groups: groups
            .map(|(group, warm_up)| IoFigures::new(group, warm_up, now))
            .collect(),
        latency_p95: model.by_vm.iter().map(|vm| vm.quantile(0.95)).collect(),
        disk_use: model.disk_use(now),
        wire_use: model.wire_use(now),
        resynced: model.resynced.sums(),
        traffic: model.traffic,
        healing: model.healing,
        chunk_count: model.layout.chunk_count() as u64,
        unreadable_count: model.layout.unreadable_count() as u64,
        parked_count: model.parked_count() as u64,
    })
}
