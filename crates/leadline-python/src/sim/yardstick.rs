//! The kernel's yardsticks.

use leadline_sim::time::Nanos;
use leadline_sim::yardstick::{self, Done};
use pyo3::prelude::*;

/// Adds the functions of this file to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(simulation_mm1, module)?)?;
    module.add_function(wrap_pyfunction!(simulation_hold, module)?)
}

/// Events handled, virtual ns, mean wait in ns (NaN for the hold model).
type Measured = (u64, Nanos, f64);

fn measured(done: Done) -> Measured {
    (done.event_count, done.now, done.wait_mean)
}

/// Handle events of an M/M/1 system with all its measurements, to measure the kernel.
#[pyfunction]
fn simulation_mm1(py: Python<'_>, events: u64, seed: u64) -> Measured {
    py.detach(|| measured(yardstick::mm1(events, seed)))
}

/// Handle events of the hold model with so many pending, to measure the kernel.
#[pyfunction]
fn simulation_hold(py: Python<'_>, pending: u32, events: u64, seed: u64) -> Measured {
    py.detach(|| measured(yardstick::hold(pending, events, seed)))
}
