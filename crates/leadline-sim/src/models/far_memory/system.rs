//! Far memory as a system: what comes out.

use serde::Serialize;

use super::{Counts, FarMemory, Spec};
use crate::document::{Failure, Head, Watch};

/// Touches between two looks at the watcher: some 50 ms.
const SLICE_TOUCHES: u64 = 1_000_000;

/// What comes out; counts in pages, times in ns.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    #[serde(flatten)]
    head: Head,
    /// When the program ended.
    now: f64,
    stalled: f64,
    counts: Counts,
    major_series: Vec<u64>,
    stalled_series: Vec<f64>,
}

/// One run, to the end of the program.
///
/// # Errors
/// When the document makes no run, the run broke a law, or the watcher ended it.
pub fn simulate(document: Spec, watch: &mut Watch<'_>) -> Result<Outcome, Failure> {
    let mut run = FarMemory::new(document)?;
    loop {
        let touches = run.run(SLICE_TOUCHES);
        if watch(run.share()).is_break() {
            return Err(Failure::Stopped);
        }
        if touches < SLICE_TOUCHES {
            break;
        }
    }
    let counts = run.finish()?;
    Ok(Outcome {
        head: Head::new(run.trace(), counts.touches),
        now: run.now(),
        stalled: run.stalled,
        counts,
        major_series: run.major_series,
        stalled_series: run.stalled_series,
    })
}
