//! What is known without a run: `leadline._core.fluid_allocation`, `protection_facts` and `protection_scheme`.

use leadline_sim::models::cache_tier::Protection as Scheme;
use leadline_sim::models::cluster_storage::Protection;
use leadline_sim::models::{QosPolicy, fluid_allocation as allocation};
use pyo3::prelude::*;

use crate::errors::to_python;

/// Adds the functions of this file to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(fluid_allocation, module)?)?;
    module.add_function(wrap_pyfunction!(protection_facts, module)?)?;
    module.add_function(wrap_pyfunction!(protection_scheme, module)?)
}

/// What clients of (weight, reservation, limit) get of a capacity if requests are infinitely small; all rates per second,
/// no limit is infinite.
///
/// Raises `CoreError` when a policy makes no sense.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)]
fn fluid_allocation(
    py: Python<'_>,
    policies: Vec<(f64, f64, f64)>,
    capacity: f64,
) -> PyResult<Vec<f64>> {
    let mut known = Vec::new();
    for (index, (weight, reservation, limit)) in policies.into_iter().enumerate() {
        let policy = QosPolicy::weighing(weight)
            .reserving(reservation)
            .limited(limit);
        policy
            .check(&format!("client {index}"))
            .map_err(|error| to_python(py, &error))?;
        known.push(policy);
    }
    Ok(allocation(&known, capacity))
}

/// Fragments of a chunk, failures of nodes it survives, raw bytes for a byte of data.
///
/// Raises `CoreError` when the name is no protection scheme.
#[pyfunction]
fn protection_facts(py: Python<'_>, name: &str) -> PyResult<(u32, u32, f64)> {
    let scheme = Protection::named(name).map_err(|error| to_python(py, &error))?;
    Ok((scheme.width(), scheme.survives(), scheme.capacity_factor()))
}

/// Raw by usable capacity, and the reads and writes of a small write, of `other` parity units beside `data` data units; of
/// `other` copies without data units.
///
/// Raises `CoreError` when there is no such scheme.
#[pyfunction]
fn protection_scheme(py: Python<'_>, data: usize, other: usize) -> PyResult<(f64, usize, usize)> {
    let scheme = match data {
        0 => Scheme::Copies(other),
        _ => Scheme::Code {
            data,
            parity: other,
        },
    };
    scheme.check().map_err(|error| to_python(py, &error))?;
    let count = scheme.small_write();
    Ok((scheme.capacity_factor(), count.read, count.written))
}
