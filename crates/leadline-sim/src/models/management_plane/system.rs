//! Management over a link as a system: what comes out.

use serde::Serialize;

use super::{ManagementPlane, OperationMeasures, Spec};
use crate::document::{Failure, Head, Timed, Watch, measured};
use crate::outcome::Spread;
use crate::time::Nanos;

/// What comes out; times in ns.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    #[serde(flatten)]
    head: Head,
    /// How long each direction sent: to the hosts, and back.
    sent: [Nanos; 2],
    /// Segments sent, sent again at once, and after a timeout.
    segments: [u64; 3],
    operations: Vec<OperationFigures>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct OperationFigures {
    #[serde(flatten)]
    times: Spread,
    /// By window.
    counts: Vec<u64>,
    times_ms: Vec<f64>,
    /// By window of the warm-up.
    warm_up_counts: Vec<u64>,
}

/// One run.
///
/// # Errors
/// When the document makes no run, the run broke a law, or the watcher ended it.
pub fn simulate(document: Timed<Spec>, watch: &mut Watch<'_>) -> Result<Outcome, Failure> {
    let spans = (document.warm_up, document.measured);
    let model = ManagementPlane::new(document.spec);
    let mut warm_up = Vec::new();
    let (run, head) = measured(model, spans, watch, |model, now| {
        warm_up.clone_from(&model.measures);
        model.restart_measuring(now);
    })?;
    let operations = run.model.measures.iter().zip(&warm_up);
    Ok(Outcome {
        head,
        sent: run.model.sent,
        segments: run.model.segments,
        operations: operations
            .map(|(measures, warm_up)| operation(measures, warm_up))
            .collect(),
    })
}

fn operation(measures: &OperationMeasures, warm_up: &OperationMeasures) -> OperationFigures {
    OperationFigures {
        times: (&measures.times).into(),
        counts: measures.times_ms.counts(),
        times_ms: measures.times_ms.means(),
        warm_up_counts: warm_up.times_ms.counts(),
    }
}
