//! The error of the Rust crates as a Python exception.

use leadline_stats::error::LeadlineError;
use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

create_exception!(
    leadline._core,
    CoreError,
    PyValueError,
    "Input that cannot be read, a scenario that makes no run, or a run that broke a law. Attributes: where, found, expected, advice (each a str)."
);

/// Adds the exception to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("CoreError", module.py().get_type::<CoreError>())
}

/// The Python exception for an error, its four parts as attributes.
pub fn to_python(py: Python<'_>, error: &LeadlineError) -> PyErr {
    let exception = CoreError::new_err(error.to_string());
    let parts = [
        ("where", &error.place),
        ("found", &error.found),
        ("expected", &error.expected),
        ("advice", &error.advice),
    ];
    for (name, text) in parts {
        if let Err(failure) = exception.value(py).setattr(name, text) {
            return failure;
        }
    }
    exception
}
