//! `leadline._core.simulate_hypervisor_cpu`.

use leadline_sim::error::SimError;
use leadline_sim::models::hypervisor_cpu::{
    CPU_SCHEDULERS, HostSpec, HypervisorCpu, Level, LoadSpec, Policy, STATES, Spec, Users,
    VmMeasures, VmSpec,
};
use leadline_sim::time::Nanos;
use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::{PlainDistribution, columns, distribution, plain_interval, plain_little, ran};

/// Adds the functions of this file to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("SIMULATION_CPU_SCHEDULERS", CPU_SCHEDULERS.to_vec())?;
    module.add_function(wrap_pyfunction!(simulate_hypervisor_cpu, module)?)
}

/// Times in ns, rates per second, CPU in cores, gains and penalties as shares everywhere below.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct PlainHost {
    name: String,
    nodes: usize,
    cores_per_node: usize,
    threads_per_core: usize,
    thread_gain: f64,
    scheduler: String,
    quantum: Nanos,
    co_stop: Nanos,
    co_start: Nanos,
    remote_penalty: f64,
    balance_every: Nanos,
    memory_move: Nanos,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct PlainLoad {
    users: Option<u32>,
    think: PlainDistribution,
    rate: f64,
    bursts: u32,
    burst: PlainDistribution,
    wait: PlainDistribution,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct PlainVm {
    name: String,
    vcpus: usize,
    shares: f64,
    reservation: f64,
    limit: f64,
    vnuma: bool,
    overhead: f64,
    load: PlainLoad,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct PlainSpec {
    seed: u64,
    warm_up: Nanos,
    measured: Nanos,
    window: Nanos,
    host: PlainHost,
    vms: Vec<PlainVm>,
}

fn host(plain: PlainHost) -> Result<HostSpec, SimError> {
    let Some(policy) = Policy::named(&plain.scheduler) else {
        return Err(SimError::new(
            format!("host {}: scheduler", plain.name),
            plain.scheduler,
            CPU_SCHEDULERS.join(", "),
            "Correct the scenario.",
        ));
    };
    Ok(HostSpec {
        name: plain.name,
        nodes: plain.nodes,
        cores_per_node: plain.cores_per_node,
        threads_per_core: plain.threads_per_core,
        thread_gain: plain.thread_gain,
        policy,
        quantum: plain.quantum,
        co_stop: plain.co_stop,
        co_start: plain.co_start,
        remote_penalty: plain.remote_penalty,
        balance_every: plain.balance_every,
        memory_move: plain.memory_move,
    })
}

fn vm(plain: PlainVm) -> Result<VmSpec, SimError> {
    let place = format!("vm {}", plain.name);
    let load = plain.load;
    let users = match load.users {
        Some(count) => Users::Closed {
            count,
            think: distribution(&load.think, &place)?,
        },
        None => Users::Poisson(load.rate),
    };
    Ok(VmSpec {
        load: LoadSpec {
            users,
            burst_count: load.bursts,
            burst: distribution(&load.burst, &place)?,
            wait: distribution(&load.wait, &place)?,
        },
        name: plain.name,
        vcpus: plain.vcpus,
        shares: plain.shares,
        reservation: plain.reservation,
        limit: plain.limit,
        has_vnuma: plain.vnuma,
        overhead: plain.overhead,
    })
}

fn spec(plain: PlainSpec) -> Result<Spec, SimError> {
    Ok(Spec {
        seed: plain.seed,
        measured: plain.measured,
        window: plain.window,
        host: host(plain.host)?,
        vms: plain.vms.into_iter().map(vm).collect::<Result<_, _>>()?,
    })
}

/// Run a hypervisor's CPU scheduler with its guests: warm up, measure; what came out as plain data. Times are ns, but
/// for `latency_ms`; levels are vCPUs, tasks, cores and threads.
///
/// Raises `SimulationError` when the scenario makes no run, or a run broke a law; what `progress` raises ends it.
#[pyfunction]
#[pyo3(signature = (plain, progress=None))]
#[allow(clippy::needless_pass_by_value)]
fn simulate_hypervisor_cpu(
    py: Python<'_>,
    plain: PlainSpec,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'_, PyDict>> {
    let (warm_up, measured) = (plain.warm_up, plain.measured);
    let made = spec(plain).and_then(HypervisorCpu::new);
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
    let model = &run.model;
    let (now, passed) = (run.now(), run.now() - model.measured_from());
    let mut vms = Vec::new();
    for (index, (own, before)) in model.measures.iter().zip(&before).enumerate() {
        let vm = vm_found(py, own, now, passed)?;
        vm.set_item("spent", model.spent(index, now))?;
        vm.set_item("warm_up", before.latency_ms.counts().into_pyarray(py))?;
        vms.push(vm);
    }
    found.set_item("vms", vms)?;
    for (name, own) in [
        ("cores", &model.cores_busy),
        ("threads", &model.threads_busy),
    ] {
        found.set_item(name, level(py, own, passed)?)?;
    }
    Ok(found)
}

fn level<'py>(py: Python<'py>, own: &Level, passed: Nanos) -> PyResult<Bound<'py, PyDict>> {
    let found = PyDict::new(py);
    found.set_item("mean", own.weighted.mean(passed))?;
    found.set_item("max", own.weighted.max())?;
    found.set_item("series", own.series.means(passed).into_pyarray(py))?;
    Ok(found)
}

fn vm_found<'py>(
    py: Python<'py>,
    own: &VmMeasures,
    now: Nanos,
    passed: Nanos,
) -> PyResult<Bound<'py, PyDict>> {
    let found = PyDict::new(py);
    for (name, state) in STATES.iter().zip(&own.states) {
        found.set_item(name, level(py, state, passed)?)?;
    }
    found.set_item("run_queue", level(py, &own.run_queue, passed)?)?;
    found.set_item("migration_count", own.migration_count)?;
    found.set_item("little", own.total.little(now).map(plain_little))?;
    found.set_item("rate_interval", own.rate.interval().map(plain_interval))?;
    let latency = own.in_order.interval_after(0).map(plain_interval);
    found.set_item("latency_interval", latency)?;
    found.set_item("steady_after", own.in_order.warm_up())?;
    let latency = &own.latency_ms;
    found.set_item("counts", latency.counts().into_pyarray(py))?;
    found.set_item("latency_ms", latency.means().into_pyarray(py))?;
    found.set_item("count", own.responses.count())?;
    found.set_item("mean", own.responses.mean())?;
    found.set_item("histogram", columns(py, own.responses.histogram()))?;
    Ok(found)
}
