//! Hosts before one array as a system: their document and what comes out.

use serde::{Deserialize, Serialize};

use super::{PardaCluster, PardaHost};
use crate::document::{Failure, Head, Timed, Watch, measured};
use crate::measure::WindowSeries;
use crate::models::storage_path::Arrivals;
use crate::models::{Drawn, QosVm, RequestSize, Shares, WindowLaw};
use crate::outcome::{Completed, LittleFigures};
use crate::random::{Constant, Distribution, Exponential, Sample, Streams};
use crate::sources::{AnySource, Closed, Paced, Renewal, RequestMix};
use crate::time::{Nanos, SECOND};
use leadline_stats::error::{LeadlineError, wrong};

/// A machine.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VmSpec {
    /// Its name.
    pub name: String,
    /// Its part of its host's window, against the other machines'.
    pub shares: u32,
    /// How requests come; recordings are not replayed here.
    pub arrivals: Arrivals,
    /// Sizes in bytes with their weights.
    pub sizes: Vec<(u32, f64)>,
}

/// A host.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostSpec {
    /// Its name.
    pub name: String,
    /// Its machines.
    pub vms: Vec<VmSpec>,
}

/// All of it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Seed of all random numbers.
    pub seed: u64,
    /// Width of the series, ns.
    pub window: Nanos,
    /// Whether windows are set at all.
    pub is_controlled: bool,
    /// How.
    pub law: WindowLaw,
    /// Hosts.
    pub hosts: Vec<HostSpec>,
    /// Requests the array works on at once.
    pub slots: u32,
    /// What it takes for one.
    pub service: Distribution,
}

/// What comes out; times in ns. Series begin with the run, windows of hosts are one for each period.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    #[serde(flatten)]
    head: Head,
    /// Slots of the array in use.
    busy_mean: Option<f64>,
    little: Option<LittleFigures>,
    hosts: Vec<HostFigures>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct HostFigures {
    windows: Vec<f64>,
    /// Mean time at the array.
    array_mean: Option<f64>,
    vms: Vec<VmFigures>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct VmFigures {
    #[serde(flatten)]
    completed: Completed,
    /// Completions by window.
    counts: Vec<u64>,
    latency_ms: Vec<f64>,
}

type Cluster = PardaCluster<AnySource, Drawn<Distribution>>;

fn vm(
    spec: &VmSpec,
    place: &str,
    window: Nanos,
    streams: Streams,
) -> Result<QosVm<AnySource>, LeadlineError> {
    let stream = streams.stream(place, "arrivals");
    let source = match spec.arrivals {
        Arrivals::Closed { outstanding, think } => {
            let think = Distribution::Constant(Constant(think as f64));
            AnySource::Closed(Closed::new(outstanding, think, stream))
        }
        Arrivals::Poisson(rate) | Arrivals::Even(rate) if !(rate > 0.0 && rate.is_finite()) => {
            return wrong(place, format!("{rate} per second"), "a rate above 0");
        }
        Arrivals::Even(rate) => AnySource::Paced(Paced::new(rate)),
        Arrivals::Poisson(rate) => {
            let mean = SECOND as f64 / rate;
            let gap = Distribution::Exponential(Exponential { mean });
            AnySource::Renewal(Renewal::new(gap, stream))
        }
        Arrivals::Recorded { .. } | Arrivals::Replay { .. } => {
            return wrong(place, "a recording", "requests outstanding, or a rate");
        }
    };
    let mix = RequestMix::new(&spec.sizes, 1.0, 1.0, streams.stream(place, "mix"));
    let Some(mix) = mix else {
        return wrong(place, "no sizes", "sizes with weights above 0");
    };
    Ok(QosVm::new(source, RequestSize::Mixed(mix)).with_series(window))
}

fn cluster(spec: &Spec) -> Result<Cluster, LeadlineError> {
    let streams = Streams::new(spec.seed);
    let mut hosts = Vec::new();
    for host in &spec.hosts {
        let mut vms = Vec::new();
        for machine in &host.vms {
            let place = format!("{}/{}", host.name, machine.name);
            let shares = Shares::Custom(machine.shares);
            vms.push((vm(machine, &place, spec.window, streams)?, shares));
        }
        hosts.push(PardaHost::new(vms));
    }
    let service = spec.service.clone();
    if service.mean() <= 0.0 || spec.slots == 0 {
        let expected = "slots and a service time above 0";
        return wrong("array", "no slots, or a time of 0", expected);
    }
    let service = Drawn::new(service, streams.stream("array", "service"));
    let cluster = Cluster::new(hosts, spec.law, spec.slots, service)?;
    Ok(if spec.is_controlled {
        cluster
    } else {
        cluster.uncontrolled()
    })
}

/// One run.
///
/// # Errors
/// When the document makes no run, the run broke a law, or the watcher ended it.
#[allow(clippy::needless_pass_by_value)] // a document is used up
pub fn simulate(document: Timed<Spec>, watch: &mut Watch<'_>) -> Result<Outcome, Failure> {
    let spans = (document.warm_up, document.measured);
    let model = cluster(&document.spec);
    let (run, head) = measured(model, spans, watch, PardaCluster::restart_measuring)?;
    let (array, now) = (&run.model.array, run.now());
    Ok(Outcome {
        head,
        busy_mean: array.busy().mean(now),
        little: array.little(now).map(Into::into),
        hosts: run.model.hosts().iter().map(host).collect(),
    })
}

fn host(host: &PardaHost<AnySource>) -> HostFigures {
    let vms = host.vms().iter().map(|vm| {
        let series = vm.series.as_ref();
        VmFigures {
            completed: Completed {
                responses: (&vm.responses).into(),
                bytes: vm.bytes_completed,
            },
            counts: series.map(WindowSeries::counts).unwrap_or_default(),
            latency_ms: series.map(WindowSeries::means).unwrap_or_default(),
        }
    });
    HostFigures {
        windows: host.windows().to_vec(),
        array_mean: host.residences.mean(),
        vms: vms.collect(),
    }
}
