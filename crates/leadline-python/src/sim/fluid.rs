//! `leadline._core.fluid_allocation`.

use leadline_sim::models::{QosPolicy, fluid_allocation as allocation};
use pyo3::prelude::*;

use crate::errors::simulation_error;

/// Adds the functions of this file to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(fluid_allocation, module)?)
}

/// What clients of (weight, reservation, limit) get of a capacity if requests are infinitely small; all rates per second,
/// no limit is infinite.
///
/// Raises `SimulationError` when a policy makes no sense.
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
            .map_err(|error| simulation_error(py, &error))?;
        known.push(policy);
    }
    Ok(allocation(&known, capacity))
}
