//! Python bindings: the module `leadline._core`. No arithmetic here.

mod errors;
mod iostat;
mod pdh;
mod sim;
mod trace;

use pyo3::prelude::*;

/// The native part of Leadline.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    iostat::register(module)?;
    pdh::register(module)?;
    sim::register(module)?;
    trace::register(module)?;
    Ok(())
}
