//! `leadline._core.simulate_cluster_storage`.

use leadline_sim::error::SimError;
use leadline_sim::models::Times;
use leadline_sim::models::cluster_storage::{
    ClusterStorage, DiskSpec, FailureSpec, NodeSpec, Protection, RecoverySpec, SourceSpec, Spec,
    VmSpec,
};
use leadline_sim::models::storage_path::Arrivals;
use leadline_sim::time::Nanos;
use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::{PlainDistribution, distribution, io_found, ran};
use crate::errors::simulation_error;

/// Adds the functions of this file to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(protection_facts, module)?)?;
    module.add_function(wrap_pyfunction!(simulate_cluster_storage, module)?)
}

/// Times in ns, sizes in bytes, rates per second, shares from 0 to 1 everywhere below.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct PlainSource {
    name: String,
    outstanding: Option<u32>,
    think: Nanos,
    rate: f64,
    even: bool,
    burst: Option<(Nanos, Nanos)>,
    sizes: Vec<(u32, f64)>,
    read_share: f64,
    random_share: f64,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct PlainVm {
    name: String,
    group: usize,
    node: usize,
    bytes: u64,
    limit: Option<(f64, u64)>,
    sources: Vec<PlainSource>,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct PlainDisk {
    name: String,
    node: usize,
    parallelism: u32,
    read: PlainDistribution,
    write: PlainDistribution,
    sequential: Option<PlainDistribution>,
    bytes_per_second: f64,
    capacity: Option<u64>,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct PlainFailure {
    at: Nanos,
    disks: Vec<usize>,
    node: Option<usize>,
    is_lost: bool,
    returns_after: Option<Nanos>,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct PlainRecovery {
    share: f64,
    streams: u32,
    piece_bytes: u32,
    absent_delay: Nanos,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct PlainSpec {
    seed: u64,
    warm_up: Nanos,
    measured: Nanos,
    window: Nanos,
    protection: String,
    chunk_bytes: u64,
    unit_bytes: u64,
    network_latency: Nanos,
    nodes: Vec<(String, f64)>,
    disks: Vec<PlainDisk>,
    group_count: usize,
    vms: Vec<PlainVm>,
    failures: Vec<PlainFailure>,
    recovery: PlainRecovery,
}

fn source(plain: PlainSource) -> SourceSpec {
    let arrivals = match (plain.outstanding, plain.even) {
        (Some(outstanding), _) => Arrivals::Closed {
            outstanding,
            think: plain.think,
        },
        (None, true) => Arrivals::Even(plain.rate),
        (None, false) => Arrivals::Poisson(plain.rate),
    };
    SourceSpec {
        name: plain.name,
        arrivals,
        burst: plain.burst,
        sizes: plain.sizes,
        read_share: plain.read_share,
        random_share: plain.random_share,
    }
}

fn vm(plain: PlainVm) -> VmSpec {
    VmSpec {
        name: plain.name,
        group: plain.group,
        node: plain.node,
        bytes: plain.bytes,
        limit: plain.limit,
        sources: plain.sources.into_iter().map(source).collect(),
    }
}

fn disk(plain: PlainDisk) -> Result<DiskSpec, SimError> {
    let place = format!("disk {}", plain.name);
    let sequential = plain.sequential.map(|own| distribution(&own, &place));
    Ok(DiskSpec {
        node: plain.node,
        parallelism: plain.parallelism,
        times: Times {
            read: distribution(&plain.read, &place)?,
            write: distribution(&plain.write, &place)?,
            sequential: sequential.transpose()?,
            bytes_per_second: plain.bytes_per_second,
        },
        capacity: plain.capacity.unwrap_or(u64::MAX),
        name: plain.name,
    })
}

fn failure(plain: PlainFailure) -> FailureSpec {
    FailureSpec {
        at: plain.at,
        disks: plain.disks,
        node: plain.node,
        is_lost: plain.is_lost,
        returns_after: plain.returns_after,
    }
}

fn spec(plain: PlainSpec) -> Result<Spec, SimError> {
    let nodes = plain
        .nodes
        .into_iter()
        .map(|(name, bytes_per_second)| NodeSpec {
            name,
            bytes_per_second,
        });
    let disks: Result<_, SimError> = plain.disks.into_iter().map(disk).collect();
    Ok(Spec {
        seed: plain.seed,
        measured: plain.measured,
        window: plain.window,
        protection: Protection::named(&plain.protection)?,
        chunk_bytes: plain.chunk_bytes,
        unit_bytes: plain.unit_bytes,
        network_latency: plain.network_latency,
        nodes: nodes.collect(),
        disks: disks?,
        group_count: plain.group_count,
        vms: plain.vms.into_iter().map(vm).collect(),
        failures: plain.failures.into_iter().map(failure).collect(),
        recovery: RecoverySpec {
            share: plain.recovery.share,
            streams: plain.recovery.streams,
            piece_bytes: plain.recovery.piece_bytes,
            absent_delay: plain.recovery.absent_delay,
        },
    })
}

/// Fragments of a chunk, failures of nodes it survives, raw bytes for a byte of data.
///
/// Raises `SimulationError` when the name is no protection scheme.
#[pyfunction]
fn protection_facts(py: Python<'_>, name: &str) -> PyResult<(u32, u32, f64)> {
    let own = Protection::named(name).map_err(|error| simulation_error(py, &error))?;
    Ok((own.width(), own.survives(), own.capacity_factor()))
}

/// Run cluster storage: warm up, measure; what came out as plain data. Times are ns, but for `latency_ms`.
///
/// Raises `SimulationError` when the scenario makes no run, or a run broke a law; what `progress` raises ends it.
#[pyfunction]
#[pyo3(signature = (plain, progress=None))]
#[allow(clippy::needless_pass_by_value)]
fn simulate_cluster_storage(
    py: Python<'_>,
    plain: PlainSpec,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'_, PyDict>> {
    let (warm_up, measured) = (plain.warm_up, plain.measured);
    let made = spec(plain).and_then(ClusterStorage::new);
    // Before anything fails.
    let raw_by_data = made
        .as_ref()
        .map_or(f64::NAN, |own| own.layout.raw_by_data());
    let mut before = Vec::new();
    let (run, found) = ran(
        py,
        made,
        (warm_up, measured),
        progress.as_ref(),
        |model, now| {
            before.clone_from(&model.groups);
            model.restart_measuring(now);
        },
    )?;
    found.set_item("raw_by_data", raw_by_data)?;
    let groups = run.model.groups.iter().zip(&before);
    let groups = groups.map(|(own, before)| io_found(py, own, before, run.now()));
    found.set_item("groups", groups.collect::<PyResult<Vec<_>>>()?)?;
    let tails = run.model.by_vm.iter().map(|own| own.quantile(0.95));
    found.set_item("latency_p95", tails.collect::<Vec<_>>())?;
    cluster(py, &run.model, run.now(), &found)?;
    Ok(found)
}

/// What the cluster itself did.
fn cluster(
    py: Python<'_>,
    model: &ClusterStorage,
    now: Nanos,
    found: &Bound<'_, PyDict>,
) -> PyResult<()> {
    found.set_item("disk_use", model.disk_use(now).into_pyarray(py))?;
    found.set_item("wire_use", model.wire_use(now).concat().into_pyarray(py))?;
    found.set_item("resynced", model.resynced.sums().into_pyarray(py))?;
    let (traffic, healing) = (model.traffic, model.healing);
    let kinds = [
        ("reads", traffic.reads),
        ("writes", traffic.writes),
        ("read_bytes", traffic.read_bytes),
        ("written_bytes", traffic.written_bytes),
        ("sent_bytes", traffic.sent_bytes),
    ];
    for (name, [guest, resync]) in kinds {
        found.set_item(name, (guest, resync))?;
    }
    let healed = PyDict::new(py);
    healed.set_item("failed", healing.failed)?;
    healed.set_item("began", healing.began)?;
    healed.set_item("ended", healing.ended)?;
    healed.set_item("bytes", healing.bytes)?;
    healed.set_item("fragment_count", healing.fragment_count)?;
    healed.set_item("stalled_count", healing.stalled_count)?;
    found.set_item("healing", healed)?;
    found.set_item("chunk_count", model.layout.chunk_count())?;
    found.set_item("unreadable_count", model.layout.unreadable_count())?;
    found.set_item("parked_count", model.parked_count())
}
