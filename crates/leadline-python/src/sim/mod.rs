//! Simulations: `leadline._core.simulate`, what is known without one, and the kernel's yardsticks.

mod closed_forms;
mod recorded;
mod yardstick;

use std::ops::ControlFlow;

use leadline_sim::document::{Failure, simulate as run};
use leadline_sim::models::SCHEDULERS;
use leadline_sim::models::gpu_time_slicing::POLICIES as GPU_POLICIES;
use leadline_sim::models::hypervisor_cpu::CPU_SCHEDULERS;
use leadline_sim::models::read_cache::READ_CACHE_POLICIES;
use leadline_sim::models::write_cache::WRITE_CACHES;
use pyo3::prelude::*;
use recorded::RecordedInput;

use crate::errors::to_python;

/// Adds the functions of this folder to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("READ_CACHE_POLICIES", READ_CACHE_POLICIES.to_vec())?;
    module.add("SIMULATION_CPU_SCHEDULERS", CPU_SCHEDULERS.to_vec())?;
    module.add("SIMULATION_GPU_POLICIES", GPU_POLICIES.to_vec())?;
    module.add("SIMULATION_SCHEDULERS", SCHEDULERS.to_vec())?;
    module.add("WRITE_CACHES", WRITE_CACHES.to_vec())?;
    module.add_function(wrap_pyfunction!(simulate, module)?)?;
    closed_forms::register(module)?;
    recorded::register(module)?;
    yardstick::register(module)
}

/// Run the system of that name on a document, JSON; its outcome as JSON. What the document names by index is `recorded`.
///
/// `progress` is told the share that is done. Raises `CoreError` when the document makes no run, or the run broke a
/// law; what `progress` raises ends it.
#[pyfunction]
#[pyo3(signature = (system, document, recorded=Vec::new(), progress=None))]
#[allow(clippy::needless_pass_by_value)]
fn simulate(
    py: Python<'_>,
    system: &str,
    document: &str,
    recorded: Vec<RecordedInput>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let recorded = recorded.iter().map(|input| input.recorded(py));
    let recorded = recorded.collect::<PyResult<Vec<_>>>()?;
    let mut raised = None;
    let outcome = py.detach(|| {
        let mut watch = |share: f64| {
            let looked = Python::attach(|py| {
                if let Some(call) = &progress {
                    call.call1(py, (share,))?;
                }
                py.check_signals()
            });
            match looked {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    raised = Some(error);
                    ControlFlow::Break(())
                }
            }
        };
        run(system, document, &recorded, &mut watch)
    });
    match (outcome, raised) {
        (_, Some(error)) => Err(error),
        (Ok(outcome), None) => Ok(outcome),
        (Err(Failure::Wrong(error)), None) => Err(to_python(py, &error)),
        (Err(Failure::Stopped), None) => unreachable!("only a watcher that raised stops a run"),
    }
}
