//! Errors of the parsers as Python exceptions.

use leadline_parse::error::ParseError as Error;
#[cfg(feature = "simulator")]
use leadline_sim::error::SimError;
use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

create_exception!(
    leadline._core,
    ParseError,
    PyValueError,
    "Input that cannot be read. Attributes: where, found, expected, advice (each a str)."
);

#[cfg(feature = "simulator")]
create_exception!(
    leadline._core,
    SimulationError,
    PyValueError,
    "A scenario that makes no run, or a run that broke a law. Attributes: where, found, expected, advice (each a str)."
);

#[cfg(feature = "simulator")]
/// The Python exception for a simulator's error, its four parts as attributes.
pub fn simulation_error(py: Python<'_>, error: &SimError) -> PyErr {
    let exception = SimulationError::new_err(error.to_string());
    with_parts(
        py,
        exception,
        [&error.place, &error.found, &error.expected, &error.advice],
    )
}

/// The Python exception for a parser's error, its four parts as attributes.
pub fn to_python(py: Python<'_>, error: &Error) -> PyErr {
    let exception = ParseError::new_err(error.to_string());
    with_parts(
        py,
        exception,
        [&error.place, &error.found, &error.expected, &error.advice],
    )
}

fn with_parts(py: Python<'_>, exception: PyErr, parts: [&String; 4]) -> PyErr {
    let names = ["where", "found", "expected", "advice"];
    for (name, text) in names.into_iter().zip(parts) {
        if let Err(failure) = exception.value(py).setattr(name, text) {
            return failure;
        }
    }
    exception
}
