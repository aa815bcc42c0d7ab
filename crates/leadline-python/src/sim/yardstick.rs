//! The kernel's yardsticks.

use leadline_sim::models::{MClock, VmRequest};
use leadline_sim::time::Nanos;
use leadline_sim::yardstick::{self, Deciding, Done};
use pyo3::prelude::*;

use crate::errors::to_python;

/// Adds the functions of this file to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(simulation_mm1, module)?)?;
    module.add_function(wrap_pyfunction!(simulation_hold, module)?)?;
    module.add_function(wrap_pyfunction!(simulation_host, module)?)?;
    module.add_class::<SimulationDecisions>()
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

/// Simulate a host of machines at 1,000 IOPS each under mClock for so many virtual ns, to measure schedulers at work.
#[pyfunction]
fn simulation_host(py: Python<'_>, machines: u32, length: Nanos, seed: u64) -> PyResult<Measured> {
    py.detach(|| yardstick::host(machines, length, seed))
        .map(measured)
        .map_err(|error| to_python(py, &error))
}

/// mClock with so many clients that always have requests waiting, to measure its decisions.
#[pyclass]
struct SimulationDecisions(Deciding<MClock<VmRequest>>);

#[pymethods]
impl SimulationDecisions {
    #[new]
    fn new(py: Python<'_>, clients: u32, seed: u64) -> PyResult<Self> {
        yardstick::deciding(clients, seed)
            .map(Self)
            .map_err(|error| to_python(py, &error))
    }

    /// Decide so often; how many of them served a request.
    fn decide(&mut self, py: Python<'_>, count: u64) -> u64 {
        let own = &mut self.0;
        py.detach(|| (0..count).map(|_| u64::from(own.step())).sum())
    }
}
