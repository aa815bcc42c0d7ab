//! Python bindings: the module `leadline._core`. No arithmetic here.

mod errors;
mod iostat;
mod logs;
mod nmon;
mod pattern;
mod pdh;
mod rows;
#[cfg(feature = "simulator")]
mod sim;
mod trace;
mod vsphere_perf;

use pyo3::prelude::*;

/// The native part of Leadline.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    errors::register(module)?;
    iostat::register(module)?;
    pattern::register(module)?;
    logs::register(module)?;
    nmon::register(module)?;
    pdh::register(module)?;
    rows::register(module)?;
    trace::register(module)?;
    vsphere_perf::register(module)?;
    #[cfg(feature = "simulator")]
    sim::register(module)?;
    #[cfg(not(feature = "simulator"))]
    module.add_function(wrap_pyfunction!(__getattr__, module)?)?;
    Ok(())
}

/// What the simulator would have here (PEP 562): Leadline's own error, which every verb turns into one line.
#[cfg(not(feature = "simulator"))]
#[pyfunction]
fn __getattr__(py: Python<'_>, name: &str) -> PyResult<()> {
    use pyo3::exceptions::PyAttributeError;
    use pyo3::types::{IntoPyDict, PyAnyMethods};

    if name.starts_with('_') {
        return Err(PyAttributeError::new_err(name.to_owned()));
    }
    let parts = [
        ("found", "not built"),
        ("expected", "the extension with the simulator"),
        (
            "advice",
            "After `make run` it is compiled in the background (target/simulator.log); `make simulator` waits for it.",
        ),
    ];
    let error = py
        .import("leadline.core.model.errors")?
        .getattr("ToolError")?;
    let error = error.call(("the simulator",), Some(&parts.into_py_dict(py)?))?;
    Err(PyErr::from_value(error))
}
