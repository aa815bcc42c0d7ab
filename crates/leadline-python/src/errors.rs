//! Errors of the parsers as Python exceptions.

use leadline_parse::error::ParseError as Error;
use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

create_exception!(
    leadline._core,
    ParseError,
    PyValueError,
    "Input that cannot be read. Attributes: where, found, expected, advice (each a str)."
);

/// The Python exception for a parser's error, its four parts as attributes.
pub fn to_python(py: Python<'_>, error: &Error) -> PyErr {
    let exception = ParseError::new_err(error.to_string());
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
