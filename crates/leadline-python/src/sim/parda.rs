//! `leadline._core.simulate_parda`.

use leadline_sim::error::SimError;
use leadline_sim::models::{Drawn, PardaCluster, PardaHost, QosVm, RequestSize, Shares, WindowLaw};
use leadline_sim::random::{Constant, Distribution, Exponential, Sample, Streams};
use leadline_sim::sources::{AnySource, Closed, Paced, Renewal, RequestMix};
use leadline_sim::time::{Nanos, SECOND};
use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::{PlainDistribution, columns, distribution, plain_little, ran};

/// Adds the functions of this file to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(simulate_parda, module)?)
}

/// Times in ns, sizes in bytes, rates per second, shares of a whole from 0 to 1 everywhere below.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct PlainVm {
    name: String,
    shares: u32,
    outstanding: Option<u32>,
    think: Nanos,
    rate: f64,
    even: bool,
    sizes: Vec<(u32, f64)>,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct PlainHost {
    name: String,
    vms: Vec<PlainVm>,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct PlainLaw {
    threshold: Nanos,
    period: Nanos,
    gain: f64,
    memory: f64,
    beta_per_1000_shares: f64,
    window_min: f64,
    window_max: f64,
    is_latency_shared: bool,
    adapts_to_idle: bool,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct PlainSpec {
    seed: u64,
    warm_up: Nanos,
    measured: Nanos,
    window: Nanos,
    is_controlled: bool,
    law: PlainLaw,
    hosts: Vec<PlainHost>,
    slots: u32,
    service: PlainDistribution,
}

type Cluster = PardaCluster<AnySource, Drawn<Distribution>>;

fn wrong(place: &str, found: &str, expected: &str) -> SimError {
    SimError::new(place, found, expected, "Correct the scenario.")
}

fn vm(
    plain: &PlainVm,
    place: &str,
    window: Nanos,
    streams: Streams,
) -> Result<QosVm<AnySource>, SimError> {
    let stream = streams.stream(place, "arrivals");
    let gap = SECOND as f64 / plain.rate;
    let source = match (plain.outstanding, plain.even) {
        (Some(outstanding), _) => {
            let think = Distribution::Constant(Constant(plain.think as f64));
            AnySource::Closed(Closed::new(outstanding, think, stream))
        }
        _ if !(plain.rate > 0.0 && plain.rate.is_finite()) => {
            let found = format!("{} per second", plain.rate);
            return Err(wrong(place, &found, "a rate above 0"));
        }
        (None, true) => AnySource::Paced(Paced::new(plain.rate)),
        (None, false) => {
            let gap = Distribution::Exponential(Exponential { mean: gap });
            AnySource::Renewal(Renewal::new(gap, stream))
        }
    };
    let mix = RequestMix::new(&plain.sizes, 1.0, 1.0, streams.stream(place, "mix"));
    let Some(mix) = mix else {
        return Err(wrong(place, "no sizes", "sizes with weights above 0"));
    };
    Ok(QosVm::new(source, RequestSize::Mixed(mix)).with_series(window))
}

fn cluster(plain: &PlainSpec) -> Result<Cluster, SimError> {
    let streams = Streams::new(plain.seed);
    let law = WindowLaw {
        threshold: plain.law.threshold,
        period: plain.law.period,
        gain: plain.law.gain,
        memory: plain.law.memory,
        beta_per_1000_shares: plain.law.beta_per_1000_shares,
        window_min: plain.law.window_min,
        window_max: plain.law.window_max,
        is_latency_shared: plain.law.is_latency_shared,
        adapts_to_idle: plain.law.adapts_to_idle,
    };
    let mut hosts = Vec::new();
    for host in &plain.hosts {
        let mut vms = Vec::new();
        for own in &host.vms {
            let place = format!("{}/{}", host.name, own.name);
            let made = vm(own, &place, plain.window, streams)?;
            vms.push((made, Shares::Custom(own.shares)));
        }
        hosts.push(PardaHost::new(vms));
    }
    let time = distribution(&plain.service, "array")?;
    if time.mean() <= 0.0 || plain.slots == 0 {
        return Err(wrong(
            "array",
            "no slots, or a time of 0",
            "slots and a service time above 0",
        ));
    }
    let service = Drawn::new(time, streams.stream("array", "service"));
    let made = Cluster::new(hosts, law, plain.slots, service)?;
    Ok(if plain.is_controlled {
        made
    } else {
        made.uncontrolled()
    })
}

/// Run hosts before one array: warm up, measure; what came out as plain data. Times are ns, but for `latency_ms`; series
/// begin with the run, windows of hosts are one for each period.
///
/// Raises `SimulationError` when the scenario makes no run, or a run broke a law; what `progress` raises ends it.
#[pyfunction]
#[pyo3(signature = (plain, progress=None))]
#[allow(clippy::needless_pass_by_value)]
fn simulate_parda(
    py: Python<'_>,
    plain: PlainSpec,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'_, PyDict>> {
    let made = cluster(&plain);
    let (run, found) = ran(
        py,
        made,
        (plain.warm_up, plain.measured),
        progress.as_ref(),
        PardaCluster::restart_measuring,
    )?;
    let array = &run.model.array;
    found.set_item("busy_mean", array.busy().mean(run.now()))?;
    found.set_item("inside_mean", array.in_system().mean(run.now()))?;
    found.set_item("little", array.little(run.now()).map(plain_little))?;
    let hosts = run.model.hosts().iter().map(|own| host(py, own));
    found.set_item("hosts", hosts.collect::<PyResult<Vec<_>>>()?)?;
    Ok(found)
}

fn host<'py>(py: Python<'py>, own: &PardaHost<AnySource>) -> PyResult<Bound<'py, PyDict>> {
    let found = PyDict::new(py);
    found.set_item("windows", own.windows().to_vec().into_pyarray(py))?;
    found.set_item("array_mean", own.residences.mean())?;
    let mut vms = Vec::new();
    for vm in own.vms() {
        let part = PyDict::new(py);
        part.set_item("count", vm.responses.count())?;
        part.set_item("bytes", vm.bytes_completed)?;
        part.set_item("mean", vm.responses.mean())?;
        part.set_item("histogram", columns(py, vm.responses.histogram()))?;
        let series = vm.series.as_ref();
        let counts = series.map(leadline_sim::measure::WindowSeries::counts);
        let means = series.map(leadline_sim::measure::WindowSeries::means);
        part.set_item("counts", counts.unwrap_or_default().into_pyarray(py))?;
        part.set_item("latency_ms", means.unwrap_or_default().into_pyarray(py))?;
        vms.push(part);
    }
    found.set_item("vms", vms)?;
    Ok(found)
}
