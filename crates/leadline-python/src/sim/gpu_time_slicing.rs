//! `leadline._core.simulate_gpu_time_slicing`.

use leadline_sim::error::SimError;
use leadline_sim::models::gpu_time_slicing::{
    GpuTimeSlicing, POLICIES, Policy, Spec, VmMeasures, VmSpec,
};
use leadline_sim::time::Nanos;
use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::{PlainDistribution, columns, distribution, ran};

/// Adds the functions of this file to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("SIMULATION_GPU_POLICIES", POLICIES.to_vec())?;
    module.add_function(wrap_pyfunction!(simulate_gpu_time_slicing, module)?)
}

/// Times in ns everywhere below.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct PlainVm {
    name: String,
    start: Nanos,
    steps: Option<u64>,
    cpu: PlainDistribution,
    gpu: PlainDistribution,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct PlainSpec {
    seed: u64,
    warm_up: Nanos,
    measured: Nanos,
    window: Nanos,
    policy: String,
    strict: bool,
    averaging_factor: u32,
    slice: Nanos,
    grain: Nanos,
    switch: Nanos,
    places: u32,
    vms: Vec<PlainVm>,
}

fn spec(plain: PlainSpec) -> Result<Spec, SimError> {
    let Some(policy) = Policy::named(&plain.policy) else {
        let expected = POLICIES.join(", ");
        return Err(SimError::new(
            "GPU",
            plain.policy,
            expected,
            "Correct the scenario.",
        ));
    };
    let vms = plain.vms.into_iter().map(|vm| {
        let place = format!("vm {}", vm.name);
        Ok(VmSpec {
            start: vm.start,
            steps: vm.steps,
            cpu: distribution(&vm.cpu, &place)?,
            gpu: distribution(&vm.gpu, &place)?,
            name: vm.name,
        })
    });
    Ok(Spec {
        seed: plain.seed,
        policy,
        strict: plain.strict,
        averaging_factor: plain.averaging_factor,
        slice: plain.slice,
        grain: plain.grain,
        switch: plain.switch,
        places: plain.places,
        window: plain.window,
        vms: vms.collect::<Result<_, SimError>>()?,
    })
}

/// Run virtual machines that share a GPU: warm up, measure; what came out as plain data. Times are ns, but for `step_ms`.
///
/// Raises `SimulationError` when the scenario makes no run, or a run broke a law; what `progress` raises ends it.
#[pyfunction]
#[pyo3(signature = (plain, progress=None))]
#[allow(clippy::needless_pass_by_value)]
fn simulate_gpu_time_slicing(
    py: Python<'_>,
    plain: PlainSpec,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'_, PyDict>> {
    let spans = (plain.warm_up, plain.measured);
    let made = spec(plain).and_then(GpuTimeSlicing::new);
    let mut before = Vec::new();
    let (mut run, found) = ran(py, made, spans, progress.as_ref(), |model, now| {
        before.clone_from(&model.measures);
        model.restart_measuring(now);
    })?;
    run.model.account(run.now());
    found.set_item("busy_mean", run.model.busy.mean(run.now()))?;
    let vms = run.model.measures.iter().zip(&before);
    let vms = vms.map(|(own, before)| vm(py, own, before));
    found.set_item("vms", vms.collect::<PyResult<Vec<_>>>()?)?;
    Ok(found)
}

fn vm<'py>(py: Python<'py>, own: &VmMeasures, before: &VmMeasures) -> PyResult<Bound<'py, PyDict>> {
    let found = PyDict::new(py);
    found.set_item("count", own.steps.count())?;
    found.set_item("mean", own.steps.mean())?;
    found.set_item("histogram", columns(py, own.steps.histogram()))?;
    found.set_item("gpu", own.gpu)?;
    found.set_item("finished", own.finished)?;
    found.set_item("alone", own.alone)?;
    found.set_item("counts", own.step_ms.counts().into_pyarray(py))?;
    found.set_item("step_ms", own.step_ms.means().into_pyarray(py))?;
    found.set_item("warm_up_counts", before.step_ms.counts().into_pyarray(py))?;
    Ok(found)
}
