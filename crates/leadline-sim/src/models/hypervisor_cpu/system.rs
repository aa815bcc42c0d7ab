//! A hypervisor's CPU scheduler as a system: what comes out.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{HypervisorCpu, Level, STATES, Spec, VmMeasures};
use crate::document::{Failure, Head, Timed, Watch, measured};
use crate::outcome::{IntervalFigures, LittleFigures, Spread};
use crate::time::Nanos;

/// What comes out; times in ns, levels in vCPUs, tasks, cores and threads.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    #[serde(flatten)]
    head: Head,
    vms: Vec<VmFigures>,
    cores: LevelFigures,
    threads: LevelFigures,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct LevelFigures {
    mean: Option<f64>,
    max: u64,
    series: Vec<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct VmFigures {
    /// vCPUs in each state.
    states: BTreeMap<&'static str, LevelFigures>,
    run_queue: LevelFigures,
    migration_count: u64,
    little: Option<LittleFigures>,
    rate_interval: Option<IntervalFigures>,
    latency_interval: Option<IntervalFigures>,
    steady_after: Option<u64>,
    /// Transactions by window.
    counts: Vec<u64>,
    latency_ms: Vec<f64>,
    #[serde(flatten)]
    responses: Spread,
    /// How long each vCPU was in each of [`STATES`].
    spent: Vec<[Nanos; 4]>,
    /// Transactions by window of the warm-up.
    warm_up_counts: Vec<u64>,
}

/// One run.
///
/// # Errors
/// When the document makes no run, the run broke a law, or the watcher ended it.
pub fn simulate(document: Timed<Spec>, watch: &mut Watch<'_>) -> Result<Outcome, Failure> {
    let spans = (document.warm_up, document.measured);
    let model = HypervisorCpu::new(document.spec);
    let mut warm_up = Vec::new();
    let (run, head) = measured(model, spans, watch, |model, now| {
        warm_up.clone_from(&model.measures);
        model.restart_measuring(now);
    })?;
    let (model, now) = (&run.model, run.now());
    let passed = now - model.measured_from();
    let vms = model.measures.iter().zip(&warm_up).enumerate();
    Ok(Outcome {
        head,
        vms: vms
            .map(|(index, (measures, warm_up))| VmFigures {
                spent: model.spent(index, now),
                warm_up_counts: warm_up.latency_ms.counts(),
                ..vm(measures, now, passed)
            })
            .collect(),
        cores: level(&model.cores_busy, passed),
        threads: level(&model.threads_busy, passed),
    })
}

fn level(level: &Level, passed: Nanos) -> LevelFigures {
    LevelFigures {
        mean: level.weighted.mean(passed),
        max: level.weighted.max(),
        series: level.series.means(passed),
    }
}

fn vm(measures: &VmMeasures, now: Nanos, passed: Nanos) -> VmFigures {
    let states = STATES.iter().zip(&measures.states);
    VmFigures {
        states: states
            .map(|(name, state)| (*name, level(state, passed)))
            .collect(),
        run_queue: level(&measures.run_queue, passed),
        migration_count: measures.migration_count,
        little: measures.total.little(now).map(Into::into),
        rate_interval: measures.rate.interval().map(Into::into),
        latency_interval: measures.in_order.interval_after(0).map(Into::into),
        steady_after: measures.in_order.warm_up(),
        counts: measures.latency_ms.counts(),
        latency_ms: measures.latency_ms.means(),
        responses: (&measures.responses).into(),
        spent: Vec::new(),
        warm_up_counts: Vec::new(),
    }
}
