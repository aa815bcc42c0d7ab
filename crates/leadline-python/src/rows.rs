//! Arithmetic on rows of matrices: `leadline._core.episodes`, `episodes_beyond` and the functions `rows_*`.

use leadline_stats::beyond::{self, Condition, Load, Matrix};
use leadline_stats::episodes::{Clock, Episodes, episodes as episodes_of};
use leadline_stats::rows::{self, Fold};
use leadline_stats::sample::Sample;
use leadline_stats::windows::window_means;
use numpy::ndarray::{Array2, ArrayView2};
use numpy::{Element, IntoPyArray, PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

/// Adds the functions of this file to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(episodes, module)?)?;
    module.add_function(wrap_pyfunction!(episodes_beyond, module)?)?;
    module.add_function(wrap_pyfunction!(episode_is_critical, module)?)?;
    module.add_function(wrap_pyfunction!(rows_quantiles, module)?)?;
    module.add_function(wrap_pyfunction!(rows_means, module)?)?;
    module.add_function(wrap_pyfunction!(rows_span_means, module)?)?;
    module.add_function(wrap_pyfunction!(rows_window_means, module)?)?;
    module.add_function(wrap_pyfunction!(rows_extents, module)?)?;
    module.add_function(wrap_pyfunction!(rows_folded, module)?)
}

/// A matrix of single or double precision.
enum Values<'py> {
    Single(PyReadonlyArray2<'py, f32>),
    Double(PyReadonlyArray2<'py, f64>),
}

impl<'py> Values<'py> {
    fn of(values: &Bound<'py, PyAny>) -> PyResult<Self> {
        Ok(match values.extract() {
            Ok(single) => Self::Single(single),
            Err(_) => Self::Double(values.extract()?),
        })
    }

    fn shape(&self) -> (usize, usize) {
        match self {
            Self::Single(single) => single.as_array().dim(),
            Self::Double(double) => double.as_array().dim(),
        }
    }

    fn matrix(&self) -> PyResult<Matrix<'_>> {
        Ok(match self {
            Self::Single(single) => Matrix::Single(rows_of(single)?),
            Self::Double(double) => Matrix::Double(rows_of(double)?),
        })
    }
}

/// The rows of a matrix, whose samples must lie side by side; the rows need not.
fn rows_of<'a, T: Element>(matrix: &'a PyReadonlyArray2<'_, T>) -> PyResult<Vec<&'a [T]>> {
    let view: ArrayView2<'a, T> = matrix.as_array();
    view.into_outer_iter()
        .map(|row| {
            row.to_slice()
                .ok_or_else(|| PyTypeError::new_err("the samples of a row have gaps"))
        })
        .collect()
}

fn shaped<T: Element>(
    py: Python<'_>,
    shape: (usize, usize),
    numbers: Vec<T>,
) -> PyResult<Bound<'_, PyArray2<T>>> {
    let matrix = Array2::from_shape_vec(shape, numbers)
        .map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(matrix.into_pyarray(py))
}

/// Whether the rows of a matrix have another number of samples.
fn rows_differ(values: &Bound<'_, PyAny>, count: usize) -> bool {
    Values::of(values).is_ok_and(|values| values.shape().1 != count)
}

/// The same call for either precision: `$rows` are the rows of the matrix.
macro_rules! either {
    ($values:expr, $rows:ident => $call:expr) => {
        match Values::of($values)?.matrix()? {
            Matrix::Single($rows) => $call,
            Matrix::Double($rows) => $call,
        }
    };
}

/// Quantiles of every row, in the precision of the values.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)]
fn rows_quantiles<'py>(
    py: Python<'py>,
    values: &Bound<'py, PyAny>,
    shares: Vec<f64>,
) -> PyResult<Bound<'py, PyAny>> {
    Ok(either!(values, rows => {
        shaped(py, (rows.len(), shares.len()), rows::quantiles(&rows, &shares))?.into_any()
    }))
}

/// The mean of every row, of the flagged samples alone where there are flags.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)]
fn rows_means<'py>(
    py: Python<'py>,
    values: &Bound<'py, PyAny>,
    flags: Option<PyReadonlyArray1<'py, bool>>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let flags = flags.as_ref().map(|flags| flags.as_slice()).transpose()?;
    if flags.is_some_and(|flags| rows_differ(values, flags.len())) {
        return Err(PyTypeError::new_err("values and flags differ in number"));
    }
    let means = either!(values, rows => match flags {
        None => rows::means(&rows),
        Some(flags) => rows::flagged_means(&rows, flags),
    });
    Ok(means.into_pyarray(py))
}

/// The mean of every row over spans of samples.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)]
fn rows_span_means<'py>(
    py: Python<'py>,
    values: &Bound<'py, PyAny>,
    spans: Vec<(usize, usize)>,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let spans: Vec<_> = spans.iter().map(|&(first, end)| first..end).collect();
    either!(values, rows => shaped(py, (rows.len(), spans.len()), rows::span_means(&rows, &spans)))
}

/// The mean of every row over windows of time.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)]
fn rows_window_means<'py>(
    py: Python<'py>,
    values: &Bound<'py, PyAny>,
    bounds: (PyReadonlyArray1<'py, i64>, PyReadonlyArray1<'py, i64>),
    windows: (PyReadonlyArray1<'py, i64>, PyReadonlyArray1<'py, i64>),
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let bounds = (bounds.0.as_slice()?, bounds.1.as_slice()?);
    let windows = (windows.0.as_slice()?, windows.1.as_slice()?);
    if bounds.0.len() != bounds.1.len()
        || windows.0.len() != windows.1.len()
        || rows_differ(values, bounds.0.len())
    {
        return Err(PyTypeError::new_err(
            "values, starts and ends differ in number",
        ));
    }
    let count = windows.0.len();
    either!(values, rows => shaped(py, (rows.len(), count), window_means(&rows, bounds, windows)))
}

/// The lowest and the highest sample of every row, in the precision of the values.
#[pyfunction]
fn rows_extents<'py>(
    py: Python<'py>,
    values: &Bound<'py, PyAny>,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    Ok(either!(values, rows => {
        let (lows, highs) = rows::extents(&rows);
        (lows.into_pyarray(py).into_any(), highs.into_pyarray(py).into_any())
    }))
}

/// The rows of each owner as one row.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)]
fn rows_folded<'py>(
    py: Python<'py>,
    values: &Bound<'py, PyAny>,
    owners: PyReadonlyArray1<'py, i64>,
    owner_count: usize,
    fold: &str,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let fold = match fold {
        "sum" => Fold::Sum,
        "mean" => Fold::Mean,
        "lowest" => Fold::Lowest,
        "highest" => Fold::Highest,
        _ => return Err(PyValueError::new_err("no such fold")),
    };
    let nobody = usize::MAX;
    let owners = owners.as_slice()?.iter();
    let owners: Vec<usize> = owners
        .map(|&owner| usize::try_from(owner).unwrap_or(nobody))
        .collect();
    let values = Values::of(values)?;
    let (row_count, count) = values.shape();
    if owners.len() != row_count {
        return Err(PyTypeError::new_err("rows and owners differ in number"));
    }
    let results = match values.matrix()? {
        Matrix::Single(rows) => rows::folded(&rows, &owners, owner_count, count, fold),
        Matrix::Double(rows) => rows::folded(&rows, &owners, owner_count, count, fold),
    };
    shaped(py, (owner_count, count), results)
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

fn columns(py: Python<'_>, found: Episodes) -> Columns<'_> {
    (
        found.rows.into_pyarray(py),
        found.firsts.into_pyarray(py),
        found.lasts.into_pyarray(py),
        found.held_ns.into_pyarray(py),
        found.medians.into_pyarray(py),
        found.lows.into_pyarray(py),
        found.peaks.into_pyarray(py),
    )
}

type Times<'py> = (PyReadonlyArray1<'py, i64>, PyReadonlyArray1<'py, i64>, f64);

fn clock<'a>(times: &'a Times<'_>, count: usize) -> PyResult<Clock<'a>> {
    let (starts, ends) = (times.0.as_slice()?, times.1.as_slice()?);
    if starts.len() != count || ends.len() != count {
        return Err(differ());
    }
    Ok(Clock {
        starts,
        ends,
        duration_s: times.2,
    })
}

fn differ() -> PyErr {
    PyTypeError::new_err("condition, values and times differ in shape")
}

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
    let values = Values::of(values)?;
    let times = (starts, ends, duration_s);
    let (_, count) = values.shape();
    let clock = clock(&times, count)?;
    if met.as_array().dim() != values.shape() {
        return Err(differ());
    }
    let met = rows_of(&met)?;
    let found = match values.matrix()? {
        Matrix::Single(rows) => episodes_of(&met, &rows, clock),
        Matrix::Double(rows) => episodes_of(&met, &rows, clock),
    };
    Ok(columns(py, found))
}

/// Both limits, whether bad is below them, whether they are inclusive, and the reach of the majority.
type Limits = (f64, Option<f64>, bool, bool, usize);

fn condition((warn, crit, below, inclusive, reach): Limits) -> Condition {
    Condition {
        warn,
        crit,
        below,
        inclusive,
        reach,
    }
}

/// Columns of the episodes beyond a limit, as `episodes` has them, and which of them are critical.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)]
fn episodes_beyond<'py>(
    py: Python<'py>,
    values: &Bound<'py, PyAny>,
    limits: Limits,
    times: Times<'py>,
    load: Option<(Vec<Bound<'py, PyAny>>, f64)>,
) -> PyResult<(Columns<'py>, Bound<'py, PyArray1<bool>>)> {
    let values = Values::of(values)?;
    let (_, count) = values.shape();
    let clock = clock(&times, count)?;
    let (metrics, least) = load.unwrap_or_default();
    let metrics = metrics
        .iter()
        .map(Values::of)
        .collect::<PyResult<Vec<_>>>()?;
    if metrics
        .iter()
        .any(|metric| metric.shape() != values.shape())
    {
        return Err(differ());
    }
    let matrices = metrics.iter().map(Values::matrix);
    let load = Load {
        metrics: matrices.collect::<PyResult<_>>()?,
        least,
    };
    let load = (!load.metrics.is_empty()).then_some(&load);
    let condition = condition(limits);
    let found = match values.matrix()? {
        Matrix::Single(rows) => beyond::episodes_beyond(&rows, load, condition, clock),
        Matrix::Double(rows) => beyond::episodes_beyond(&rows, load, condition, clock),
    };
    Ok((columns(py, found.episodes), found.critical.into_pyarray(py)))
}

/// Whether the samples of an episode that met a condition are beyond the second limit for the duration too.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)]
fn episode_is_critical<'py>(
    met: PyReadonlyArray1<'py, bool>,
    values: &Bound<'py, PyAny>,
    span: (usize, usize),
    limits: Limits,
    times: Times<'py>,
) -> PyResult<bool> {
    fn of<S: Sample + PartialOrd + Element>(
        met: &[bool],
        values: &PyReadonlyArray1<'_, S>,
        span: (usize, usize),
        limits: Limits,
        clock: Clock<'_>,
    ) -> PyResult<bool> {
        let values = values.as_slice()?;
        if values.len() != met.len() || span.1 >= met.len() {
            return Err(differ());
        }
        Ok(beyond::is_critical(
            (met, values),
            span,
            condition(limits),
            clock,
        ))
    }
    let met = met.as_slice()?;
    let clock = clock(&times, met.len())?;
    if let Ok(single) = values.extract::<PyReadonlyArray1<'py, f32>>() {
        return of(met, &single, span, limits, clock);
    }
    of(
        met,
        &values.extract::<PyReadonlyArray1<'py, f64>>()?,
        span,
        limits,
        clock,
    )
}
