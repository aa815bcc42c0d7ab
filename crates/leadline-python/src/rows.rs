//! Arithmetic on rows of matrices: `leadline._core.episodes`.

use leadline_stats::episodes::{Clock, Episodes, Sample, episodes as episodes_of};
use numpy::{Element, IntoPyArray, PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

/// Adds the functions of this file to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(episodes, module)?)
}

type Columns<'py> = (
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<f64>>,
);

/// Columns of the episodes of a condition: row, first and last sample, time held in ns, median, lowest, highest.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)]
fn episodes<'py>(
    py: Python<'py>,
    met: PyReadonlyArray2<'py, bool>,
    values: &Bound<'py, PyAny>,
    starts: PyReadonlyArray1<'py, i64>,
    ends: PyReadonlyArray1<'py, i64>,
    duration_s: f64,
) -> PyResult<Columns<'py>> {
    let clock = Clock {
        starts: starts.as_slice()?,
        ends: ends.as_slice()?,
        duration_s,
    };
    let found = if let Ok(single) = values.extract::<PyReadonlyArray2<'py, f32>>() {
        of(&met, &single, clock)?
    } else {
        of(
            &met,
            &values.extract::<PyReadonlyArray2<'py, f64>>()?,
            clock,
        )?
    };
    Ok((
        found.rows.into_pyarray(py),
        found.firsts.into_pyarray(py),
        found.lasts.into_pyarray(py),
        found.held_ns.into_pyarray(py),
        found.medians.into_pyarray(py),
        found.lows.into_pyarray(py),
        found.peaks.into_pyarray(py),
    ))
}

fn of<S: Sample + Element>(
    met: &PyReadonlyArray2<'_, bool>,
    values: &PyReadonlyArray2<'_, S>,
    clock: Clock<'_>,
) -> PyResult<Episodes> {
    let shape = met.as_array().dim();
    if values.as_array().dim() != shape
        || clock.ends.len() != shape.1
        || clock.starts.len() != shape.1
    {
        return Err(PyTypeError::new_err(
            "condition, values and times differ in shape",
        ));
    }
    Ok(episodes_of(met.as_slice()?, values.as_slice()?, clock))
}
