//! `leadline._core.simulate_management_plane`.

use leadline_sim::models::management_plane::{
    ManagementPlane, OperationMeasures, OperationSpec, Spec,
};
use leadline_sim::time::Nanos;
use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::{columns, ran};

/// Adds the functions of this file to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(simulate_management_plane, module)?)
}

/// Times in ns everywhere below.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct PlainOperation {
    name: String,
    round_trips: u32,
    request_bytes: u64,
    response_bytes: u64,
    work: Nanos,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct PlainSpec {
    seed: u64,
    warm_up: Nanos,
    measured: Nanos,
    window: Nanos,
    round_trip: Nanos,
    bits_per_second: f64,
    loss: f64,
    reconnects: bool,
    clients: u32,
    operations: Vec<PlainOperation>,
}

fn spec(plain: PlainSpec) -> Spec {
    let operations = plain.operations.into_iter().map(|own| OperationSpec {
        name: own.name,
        round_trips: own.round_trips,
        request_bytes: own.request_bytes,
        response_bytes: own.response_bytes,
        work: own.work,
    });
    Spec {
        seed: plain.seed,
        round_trip: plain.round_trip,
        bits_per_second: plain.bits_per_second,
        loss: plain.loss,
        reconnects: plain.reconnects,
        clients: plain.clients,
        window: plain.window,
        operations: operations.collect(),
    }
}

/// Run operations over a link: warm up, measure; what came out as plain data. Times are ns, but for `times_ms`.
///
/// Raises `SimulationError` when the scenario makes no run, or a run broke a law; what `progress` raises ends it.
#[pyfunction]
#[pyo3(signature = (plain, progress=None))]
#[allow(clippy::needless_pass_by_value)]
fn simulate_management_plane(
    py: Python<'_>,
    plain: PlainSpec,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'_, PyDict>> {
    let spans = (plain.warm_up, plain.measured);
    let made = ManagementPlane::new(spec(plain));
    let mut before = Vec::new();
    let (run, found) = ran(py, made, spans, progress.as_ref(), |model, now| {
        before.clone_from(&model.measures);
        model.restart_measuring(now);
    })?;
    found.set_item("sent", run.model.sent)?;
    found.set_item("segments", run.model.segments)?;
    let operations = run.model.measures.iter().zip(&before);
    let operations = operations.map(|(own, before)| operation(py, own, before));
    found.set_item("operations", operations.collect::<PyResult<Vec<_>>>()?)?;
    Ok(found)
}

fn operation<'py>(
    py: Python<'py>,
    own: &OperationMeasures,
    before: &OperationMeasures,
) -> PyResult<Bound<'py, PyDict>> {
    let found = PyDict::new(py);
    found.set_item("count", own.times.count())?;
    found.set_item("mean", own.times.mean())?;
    found.set_item("histogram", columns(py, own.times.histogram()))?;
    found.set_item("counts", own.times_ms.counts().into_pyarray(py))?;
    found.set_item("times_ms", own.times_ms.means().into_pyarray(py))?;
    found.set_item("warm_up_counts", before.times_ms.counts().into_pyarray(py))?;
    Ok(found)
}
