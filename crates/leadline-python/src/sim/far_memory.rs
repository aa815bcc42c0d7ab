//! `leadline._core.simulate_far_memory`.

use leadline_sim::error::SimError;
use leadline_sim::models::far_memory::{FarMemory, Pattern, Replacement, Spec};
use leadline_sim::time::Nanos;
use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::simulation_error;

/// Touches between two looks for an interrupt: some 50 ms.
const SLICE_TOUCHES: u64 = 1_000_000;

/// Adds the functions of this file to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(simulate_far_memory, module)?)
}

/// Times in ns everywhere below.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct PlainSpec {
    seed: u64,
    pages: u32,
    local_pages: u32,
    stands_for: u32,
    pattern: String,
    passes: u32,
    visits: f64,
    skew: f64,
    alone: Nanos,
    replacement: String,
    read: Nanos,
    transfer: Nanos,
    minor: Nanos,
    reclaim: Nanos,
    window: u32,
    width: Nanos,
}

fn unknown<T>(place: &str, found: &str, expected: &str) -> Result<T, SimError> {
    Err(SimError::new(
        place,
        found,
        expected,
        "Correct the scenario.",
    ))
}

fn spec(plain: &PlainSpec) -> Result<Spec, SimError> {
    let (visits, skew, passes) = (plain.visits, plain.skew, plain.passes);
    let pattern = match plain.pattern.as_str() {
        "sequential" => Pattern::Sequential { passes },
        "uniform" => Pattern::Uniform { visits },
        "zipf" => Pattern::Zipf { visits, skew },
        "quicksort" => Pattern::Quicksort,
        "growing" => Pattern::Growing { visits },
        other => {
            let expected = "sequential, uniform, zipf, quicksort or growing";
            return unknown("pattern", other, expected);
        }
    };
    let replacement = match plain.replacement.as_str() {
        "lru" => Replacement::Lru,
        "clock" => Replacement::Clock,
        other => return unknown("replacement", other, "lru or clock"),
    };
    Ok(Spec {
        seed: plain.seed,
        pages: plain.pages,
        local_pages: plain.local_pages,
        stands_for: plain.stands_for,
        pattern,
        alone: plain.alone,
        replacement,
        read: plain.read,
        transfer: plain.transfer,
        minor: plain.minor,
        reclaim: plain.reclaim,
        window: plain.window,
        width: plain.width,
    })
}

/// Run a program with part of its memory elsewhere to its end; counts in pages, times in ns.
///
/// Raises `SimulationError` when the scenario makes no run, or a run broke a law; what `progress`, told the share that is
/// done, raises ends it.
#[pyfunction]
#[pyo3(signature = (plain, progress=None))]
#[allow(clippy::needless_pass_by_value)]
fn simulate_far_memory(
    py: Python<'_>,
    plain: PlainSpec,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'_, PyDict>> {
    let failed = |error: SimError| simulation_error(py, &error);
    let mut run = spec(&plain).and_then(FarMemory::new).map_err(failed)?;
    loop {
        let done = py.detach(|| run.run(SLICE_TOUCHES));
        if let Some(call) = &progress {
            call.call1(py, (run.share(),))?;
        }
        py.check_signals()?;
        if done < SLICE_TOUCHES {
            break;
        }
    }
    let counts = run.finish().map_err(failed)?;
    let found = PyDict::new(py);
    found.set_item("trace", format!("{:016x}", run.trace()))?;
    found.set_item("now", run.now())?;
    found.set_item("stalled", run.stalled)?;
    for (name, count) in [
        ("touches", counts.touches),
        ("allocated", counts.allocated),
        ("major", counts.major),
        ("minor", counts.minor),
        ("ahead", counts.ahead),
        ("wasted", counts.wasted),
        ("evicted", counts.evicted),
        ("resident", counts.resident),
    ] {
        found.set_item(name, count)?;
    }
    found.set_item("major_series", run.major_series.into_pyarray(py))?;
    found.set_item("stalled_series", run.stalled_series.into_pyarray(py))?;
    Ok(found)
}
