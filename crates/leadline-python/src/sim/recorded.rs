//! Recordings that a simulated system is given beside its document.

use std::path::PathBuf;
use std::sync::Arc;

use leadline_parse::trace::{Wanted, accesses};
use leadline_sim::document::Recorded;
use leadline_sim::models::read_cache::Uses;
use leadline_sim::models::read_cache::system::USES_MAX;
use leadline_stats::error::LeadlineError;
use pyo3::prelude::*;

use crate::errors::to_python;
use crate::trace::{Notes, TraceRequests, plain, working};

/// Adds the functions and types of this file to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<TraceUses>()?;
    module.add_function(wrap_pyfunction!(trace_uses, module)?)
}

/// What Python gives as a recording.
#[derive(FromPyObject)]
pub enum RecordedInput {
    /// Requests that are replayed.
    Requests(Py<TraceRequests>),
    /// Uses of a cache.
    Uses(Py<TraceUses>),
}

impl RecordedInput {
    /// As the simulator takes it.
    pub fn recorded(&self, py: Python<'_>) -> PyResult<Recorded> {
        match self {
            Self::Uses(uses) => Ok(Recorded::Uses(Arc::clone(&uses.get().uses))),
            Self::Requests(requests) => {
                let recording = requests.get().recording().ok_or_else(|| {
                    let (expected, advice) = ("a trace of requests", "Record while there is load.");
                    to_python(
                        py,
                        &LeadlineError::new("trace", "no request", expected, advice),
                    )
                })?;
                Ok(Recorded::Requests(recording))
            }
        }
    }
}

/// Uses of the lines of one disk, in the order of time.
#[pyclass(frozen, module = "leadline._core")]
pub struct TraceUses {
    uses: Arc<Uses>,
    /// What was repaired or left out: (code, message, how often).
    #[pyo3(get)]
    notes: Notes,
}

/// Uses of the lines of one disk, by its name, None where there is only one.
///
/// Raises `CoreError` when the trace cannot be read, has no such disk, or more uses than a simulation takes.
#[pyfunction]
#[pyo3(signature = (files, disk, reads_only, line_bytes, progress=None))]
#[allow(clippy::needless_pass_by_value)]
fn trace_uses(
    py: Python<'_>,
    files: Vec<(PathBuf, String)>,
    disk: Option<String>,
    reads_only: bool,
    line_bytes: u64,
    progress: Option<Py<PyAny>>,
) -> PyResult<TraceUses> {
    let wanted = Wanted {
        disk,
        reads_only,
        line_bytes,
        uses_max: USES_MAX,
    };
    let trace = working(py, progress.as_ref(), |step| {
        accesses(&files, &wanted, step)
    })?;
    let uses = Uses {
        times: trace.times_ns,
        lines: trace.lines,
    };
    Ok(TraceUses {
        uses: Arc::new(uses),
        notes: plain(trace.notes),
    })
}
