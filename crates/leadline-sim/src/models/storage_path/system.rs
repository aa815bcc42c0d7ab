//! A storage path as a system: what comes out.

use serde::Serialize;

use super::{Arrivals, STAGES, Spec, StoragePath, VmMeasures};
use crate::document::{Failure, Head, Recorded, Timed, Watch, measured};
use crate::outcome::IoFigures;
use crate::time::Nanos;

/// What comes out; times in ns.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    #[serde(flatten)]
    head: Head,
    vms: Vec<VmFigures>,
    devices: Vec<DeviceFigures>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct VmFigures {
    #[serde(flatten)]
    io: IoFigures,
    stages: Vec<StageFigures>,
}

/// Requests of a VM at one stage.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct StageFigures {
    name: &'static str,
    inside_mean: Option<f64>,
    inside_max: u64,
    stay_mean: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct DeviceFigures {
    busy_mean: Option<f64>,
    inside_mean: Option<f64>,
}

/// One run; recordings are those that arrivals name by index.
///
/// # Errors
/// When the document makes no run, the run broke a law, or the watcher ended it.
pub fn simulate(
    mut document: Timed<Spec>,
    recorded: &[Recorded],
    watch: &mut Watch<'_>,
) -> Result<Outcome, Failure> {
    let sources = document.spec.vms.iter_mut().flat_map(|vm| &mut vm.sources);
    for source in sources {
        let Arrivals::Recorded {
            index,
            speed,
            repeats,
        } = source.arrivals
        else {
            continue;
        };
        if let Some(Recorded::Requests(recording)) = recorded.get(index) {
            source.arrivals = Arrivals::Replay {
                recording: recording.clone(),
                speed,
                repeats,
            };
        }
    }
    let spans = (document.warm_up, document.measured);
    let model = StoragePath::new(document.spec);
    let mut warm_up = Vec::new();
    let (run, head) = measured(model, spans, watch, |model, now| {
        warm_up.clone_from(&model.measures);
        model.restart_measuring(now);
    })?;
    let now = run.now();
    let vms = run.model.measures.iter().zip(&warm_up);
    let devices = run.model.devices().iter().map(|device| DeviceFigures {
        busy_mean: device.busy().mean(now),
        inside_mean: device.in_system().mean(now),
    });
    Ok(Outcome {
        head,
        vms: vms
            .map(|(measures, warm_up)| vm(measures, warm_up, now))
            .collect(),
        devices: devices.collect(),
    })
}

fn vm(measures: &VmMeasures, warm_up: &VmMeasures, now: Nanos) -> VmFigures {
    let stages = STAGES.iter().zip(&measures.stages);
    VmFigures {
        io: IoFigures::new(&measures.whole, &warm_up.whole, now),
        stages: stages
            .map(|(name, stage)| StageFigures {
                name,
                inside_mean: stage.inside().mean(now),
                inside_max: stage.inside().max(),
                stay_mean: stage.stay_mean(),
            })
            .collect(),
    }
}
