//! A write cache as a system: what comes out.

use serde::Serialize;

use super::{Look, Spec, WriteCache};
use crate::document::{Failure, Head, Timed, Watch, measured};
use crate::outcome::{IntervalFigures, Spread};

/// What comes out; times in ns.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    #[serde(flatten)]
    head: Head,
    #[serde(flatten)]
    responses: Spread,
    latency_interval: Option<IntervalFigures>,
    /// Writes acknowledged, by window.
    counts: Vec<u64>,
    latency_ms: Vec<f64>,
    /// Blocks the backing device wrote, by window.
    written: Vec<u64>,
    looks: Vec<Look>,
    backing: BackingFigures,
    log: LogFigures,
    /// Writes acknowledged, by window of the warm-up.
    warm_up_counts: Vec<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct BackingFigures {
    write_count: u64,
    /// Of those, writes that followed the one before.
    sequential_count: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct LogFigures {
    append_count: u64,
    block_count: u64,
}

/// One run.
///
/// # Errors
/// When the document makes no run, the run broke a law, or the watcher ended it.
pub fn simulate(document: Timed<Spec>, watch: &mut Watch<'_>) -> Result<Outcome, Failure> {
    let spans = (document.warm_up, document.measured);
    let model = WriteCache::new(document.spec);
    let mut warm_up_counts = Vec::new();
    let (run, head) = measured(model, spans, watch, |model, now| {
        warm_up_counts = model.measures.latency_ms.counts();
        model.restart_measuring(now);
    })?;
    let measures = run.model.measures;
    Ok(Outcome {
        head,
        responses: (&measures.responses).into(),
        latency_interval: measures.in_order.interval_after(0).map(Into::into),
        counts: measures.latency_ms.counts(),
        latency_ms: measures.latency_ms.means(),
        written: measures.written.counts(),
        looks: measures.looks,
        backing: BackingFigures {
            write_count: measures.backing.0,
            sequential_count: measures.backing.1,
        },
        log: LogFigures {
            append_count: measures.log.0,
            block_count: measures.log.1,
        },
        warm_up_counts,
    })
}
