//! A GPU in slices of time as a system: what comes out.

use serde::Serialize;

use super::{GpuTimeSlicing, Spec, VmMeasures};
use crate::document::{Failure, Head, Timed, Watch, measured};
use crate::outcome::Spread;
use crate::time::Nanos;

/// What comes out; times in ns.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    #[serde(flatten)]
    head: Head,
    busy_mean: Option<f64>,
    vms: Vec<VmFigures>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct VmFigures {
    #[serde(flatten)]
    steps: Spread,
    gpu: Nanos,
    finished: Option<Nanos>,
    alone: Nanos,
    /// Steps by window.
    counts: Vec<u64>,
    step_ms: Vec<f64>,
    /// Steps by window of the warm-up.
    warm_up_counts: Vec<u64>,
}

/// One run.
///
/// # Errors
/// When the document makes no run, the run broke a law, or the watcher ended it.
pub fn simulate(document: Timed<Spec>, watch: &mut Watch<'_>) -> Result<Outcome, Failure> {
    let spans = (document.warm_up, document.measured);
    let model = GpuTimeSlicing::new(document.spec);
    let mut warm_up = Vec::new();
    let (mut run, head) = measured(model, spans, watch, |model, now| {
        warm_up.clone_from(&model.measures);
        model.restart_measuring(now);
    })?;
    run.model.account(run.now());
    let vms = run.model.measures.iter().zip(&warm_up);
    Ok(Outcome {
        head,
        busy_mean: run.model.busy.mean(run.now()),
        vms: vms
            .map(|(measures, warm_up)| vm(measures, warm_up))
            .collect(),
    })
}

fn vm(measures: &VmMeasures, warm_up: &VmMeasures) -> VmFigures {
    VmFigures {
        steps: (&measures.steps).into(),
        gpu: measures.gpu,
        finished: measures.finished,
        alone: measures.alone,
        counts: measures.step_ms.counts(),
        step_ms: measures.step_ms.means(),
        warm_up_counts: warm_up.step_ms.counts(),
    }
}
