//! `leadline._core.simulate_storage_path`.

use leadline_sim::error::SimError;
use leadline_sim::models::storage_path::{
    Arrivals, DeviceSpec, DiskSpec, HostSpec, STAGES, SourceSpec, Spec, StoragePath, VmMeasures,
    VmSpec,
};
use leadline_sim::models::{Client, Curve, Drive, Speed, Times};
use leadline_sim::time::Nanos;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::{PlainDistribution, distribution, io_found, ran};
use crate::trace::TraceRequests;

/// Adds the functions of this file to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(simulate_storage_path, module)?)
}

/// Times in ns, sizes in bytes, rates per second, shares from 0 to 1 everywhere below.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct PlainSource {
    name: String,
    disk: usize,
    outstanding: Option<u32>,
    think: Nanos,
    rate: f64,
    even: bool,
    burst: Option<(Nanos, Nanos)>,
    sizes: Vec<(u32, f64)>,
    read_share: f64,
    random_share: f64,
    then: Option<(usize, usize)>,
    /// Requests as recorded, how many times as fast, whether again and again.
    replay: Option<(Py<TraceRequests>, f64, bool)>,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct PlainVm {
    name: String,
    host: usize,
    adapter_depth: u32,
    sources: Vec<PlainSource>,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct PlainDisk {
    name: String,
    device: usize,
    limit: Option<(f64, u64)>,
    shares: f64,
    reservation_iops: f64,
    limit_iops: f64,
    idle_credit: f64,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct PlainHost {
    name: String,
    queue_depth: u32,
    scheduler: String,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct PlainDevice {
    name: String,
    parallelism: u32,
    read: PlainDistribution,
    write: PlainDistribution,
    sequential: Option<PlainDistribution>,
    bytes_per_second: f64,
    curve: Vec<(f64, f64)>,
    drive: Option<PlainDrive>,
    network: Option<(Nanos, f64)>,
    threshold: Nanos,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct PlainDrive {
    settle: f64,
    full_stroke: f64,
    revolution: f64,
    bytes_per_second: (f64, f64),
    capacity: f64,
    queue: u32,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct PlainSpec {
    seed: u64,
    warm_up: Nanos,
    measured: Nanos,
    window: Nanos,
    vms: Vec<PlainVm>,
    disks: Vec<PlainDisk>,
    hosts: Vec<PlainHost>,
    devices: Vec<PlainDevice>,
}

fn source(plain: PlainSource) -> Result<SourceSpec, SimError> {
    let arrivals = match (plain.replay, plain.outstanding, plain.even) {
        (Some((requests, speed, repeats)), _, _) => Arrivals::Replay {
            recording: requests.get().recording().ok_or_else(|| {
                let advice = "Record while there is load.";
                SimError::new(&plain.name, "no request", "a trace of requests", advice)
            })?,
            speed,
            repeats,
        },
        (None, Some(outstanding), _) => Arrivals::Closed {
            outstanding,
            think: plain.think,
        },
        (None, None, true) => Arrivals::Even(plain.rate),
        (None, None, false) => Arrivals::Poisson(plain.rate),
    };
    Ok(SourceSpec {
        name: plain.name,
        disk: plain.disk,
        arrivals,
        burst: plain.burst,
        sizes: plain.sizes,
        read_share: plain.read_share,
        random_share: plain.random_share,
        then: plain.then,
    })
}

fn device(plain: PlainDevice) -> Result<DeviceSpec, SimError> {
    let place = format!("device {}", plain.name);
    let read = distribution(&plain.read, &place)?;
    let speed = if let Some(own) = plain.drive {
        Speed::Drive(Drive {
            settle: own.settle,
            full_stroke: own.full_stroke,
            revolution: own.revolution,
            bytes_per_second: own.bytes_per_second,
            capacity: own.capacity,
            queue: own.queue,
        })
    } else if plain.curve.is_empty() {
        let sequential = plain.sequential.map(|own| distribution(&own, &place));
        Speed::Times(Times {
            read,
            write: distribution(&plain.write, &place)?,
            sequential: sequential.transpose()?,
            bytes_per_second: plain.bytes_per_second,
        })
    } else {
        Speed::Curve(Curve::new(&plain.curve, read, &place)?)
    };
    Ok(DeviceSpec {
        name: plain.name,
        parallelism: plain.parallelism,
        speed,
        network: plain.network,
        threshold: plain.threshold,
    })
}

fn spec(plain: PlainSpec) -> Result<Spec, SimError> {
    let vms = plain.vms.into_iter().map(|vm| {
        Ok(VmSpec {
            name: vm.name,
            host: vm.host,
            adapter_depth: vm.adapter_depth,
            sources: vm
                .sources
                .into_iter()
                .map(source)
                .collect::<Result<_, _>>()?,
        })
    });
    let disks = plain.disks.into_iter().map(|disk| DiskSpec {
        client: Client {
            name: disk.name,
            shares: disk.shares,
            reservation_iops: disk.reservation_iops,
            limit_iops: disk.limit_iops,
            idle_credit: disk.idle_credit,
        },
        device: disk.device,
        limit: disk.limit,
    });
    let hosts = plain.hosts.into_iter().map(|host| HostSpec {
        name: host.name,
        queue_depth: host.queue_depth,
        scheduler: host.scheduler,
    });
    Ok(Spec {
        seed: plain.seed,
        measured: plain.measured,
        window: plain.window,
        vms: vms.collect::<Result<_, SimError>>()?,
        disks: disks.collect(),
        hosts: hosts.collect(),
        devices: plain
            .devices
            .into_iter()
            .map(device)
            .collect::<Result<_, _>>()?,
    })
}

/// Run a storage path: warm up, measure; what came out as plain data. Times are ns, but for `latency_ms`.
///
/// Raises `SimulationError` when the scenario makes no run, or a run broke a law; what `progress` raises ends it.
#[pyfunction]
#[pyo3(signature = (plain, progress=None))]
#[allow(clippy::needless_pass_by_value)]
fn simulate_storage_path(
    py: Python<'_>,
    plain: PlainSpec,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'_, PyDict>> {
    let (warm_up, measured) = (plain.warm_up, plain.measured);
    let made = spec(plain).and_then(StoragePath::new);
    let mut before = Vec::new();
    let (run, found) = ran(
        py,
        made,
        (warm_up, measured),
        progress.as_ref(),
        |model, now| {
            before.clone_from(&model.measures);
            model.restart_measuring(now);
        },
    )?;
    let vms = run.model.measures.iter().zip(&before);
    let vms = vms.map(|(own, before)| vm(py, own, before, run.now()));
    found.set_item("vms", vms.collect::<PyResult<Vec<_>>>()?)?;
    let devices = run.model.devices().iter();
    let devices = devices.map(|own| (own.busy().mean(run.now()), own.in_system().mean(run.now())));
    found.set_item("devices", devices.collect::<Vec<_>>())?;
    Ok(found)
}

fn vm<'py>(
    py: Python<'py>,
    own: &VmMeasures,
    before: &VmMeasures,
    now: Nanos,
) -> PyResult<Bound<'py, PyDict>> {
    let found = io_found(py, &own.whole, &before.whole, now)?;
    let stages = STAGES.iter().zip(&own.stages);
    let stages = stages.map(|(name, stage)| {
        let inside = stage.inside();
        (*name, inside.mean(now), inside.max(), stage.stay_mean())
    });
    found.set_item("stages", stages.collect::<Vec<_>>())?;
    Ok(found)
}
