//! Cache tiers as a system: their document and what comes out.

use serde::{Deserialize, Serialize};

use super::{CacheTier, GroupWindow, LoadWindow, Rebuild, Spec};
use crate::document::{Failure, Head, Watch};

/// What goes in.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// Windows of the series, the warm-up's first.
    pub windows: u64,
    /// The system.
    pub spec: Spec,
}

/// What comes out; seconds, bytes and shares by window.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    #[serde(flatten)]
    head: Head,
    groups: Vec<GroupFigures>,
    loads: Vec<LoadSeries>,
    rebuilds: Vec<Rebuild>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct GroupFigures {
    fill: Vec<f64>,
    inflow: Vec<f64>,
    destage: Vec<f64>,
    congestion: Vec<f64>,
    read_busy: Vec<f64>,
    /// When the buffer first slowed writes.
    slowed: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct LoadSeries {
    reads: Vec<f64>,
    writes: Vec<f64>,
    bytes: Vec<f64>,
    inside: Vec<f64>,
}

/// One run.
///
/// # Errors
/// When the document makes no run, the run broke a law, or the watcher ended it.
pub fn simulate(document: Document, watch: &mut Watch<'_>) -> Result<Outcome, Failure> {
    let counts = (document.spec.groups.len(), document.spec.loads.len());
    let mut model = CacheTier::new(document.spec)?;
    for window in 1..=document.windows {
        model.run(1);
        if watch(window as f64 / document.windows as f64).is_break() {
            return Err(Failure::Stopped);
        }
    }
    model.check()?;
    Ok(Outcome {
        head: Head::new(model.trace(), model.step_count()),
        groups: (0..counts.0).map(|index| group(&model, index)).collect(),
        loads: (0..counts.1).map(|index| load(model.load(index))).collect(),
        rebuilds: model.rebuilds().to_vec(),
    })
}

fn group(model: &CacheTier, index: usize) -> GroupFigures {
    let windows = model.group(index);
    let column = |value: fn(&GroupWindow) -> f64| windows.iter().map(value).collect();
    GroupFigures {
        fill: column(|window| window.fill),
        inflow: column(|window| window.inflow),
        destage: column(|window| window.destaged),
        congestion: column(|window| window.congestion),
        read_busy: column(|window| window.read_busy),
        slowed: model.slowed(index),
    }
}

fn load(windows: &[LoadWindow]) -> LoadSeries {
    let column = |value: fn(&LoadWindow) -> f64| windows.iter().map(value).collect();
    LoadSeries {
        reads: column(|window| window.reads),
        writes: column(|window| window.writes),
        bytes: column(|window| window.bytes),
        inside: column(|window| window.inside),
    }
}
