//! `leadline._core.PdhFile`: recordings of esxtop and Windows Performance Monitor.
#![allow(clippy::doc_markdown, reason = "these comments are Python docstrings")]
#![allow(
    clippy::needless_pass_by_value,
    reason = "Python hands over values and handles"
)]

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Mutex;

use leadline_parse::pdh::packed::{Packed, Value};
use leadline_parse::pdh::{self, Request, write};
use leadline_stats::error::LeadlineError;
use numpy::ndarray::Array2;
use numpy::{Element, IntoPyArray, PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::{PyMemoryError, PyValueError};
use pyo3::prelude::*;

use crate::errors::to_python;

/// Adds the classes and functions of this file to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PdhFile>()?;
    module.add_class::<PdhTable>()?;
    module.add_function(wrap_pyfunction!(pdh_write_header, module)?)?;
    module.add_function(wrap_pyfunction!(pdh_write_rows, module)?)
}

/// Runs `work` without the interpreter lock. `work` gets a function that calls `progress(done, total)`, lets Python
/// handle signals, and returns false when either raised.
fn run<R: Send>(
    py: Python<'_>,
    progress: Option<&Py<PyAny>>,
    work: impl FnOnce(&mut dyn FnMut(u64, u64) -> bool) -> Result<R, LeadlineError> + Send,
) -> PyResult<R> {
    let raised: Mutex<Option<PyErr>> = Mutex::new(None);
    let outcome = py.detach(|| {
        work(&mut |done, total| {
            let told = Python::attach(|py| {
                py.check_signals()?;
                progress.map_or(Ok(()), |p| p.call1(py, (done, total)).map(drop))
            });
            match told {
                Ok(()) => true,
                Err(error) => {
                    *raised
                        .lock()
                        .unwrap_or_else(std::sync::PoisonError::into_inner) = Some(error);
                    false
                }
            }
        })
    });
    match raised
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
    {
        Some(error) => Err(error),
        None => outcome.map_err(|e| to_python(py, &e)),
    }
}

/// A recording in PDH format (esxtop -b, resxtop, Windows Performance Monitor; CSV or TSV), opened but not yet read.
#[pyclass(frozen, module = "leadline._core")]
pub struct PdhFile {
    file: pdh::PdhFile,
}

#[pymethods]
impl PdhFile {
    /// Open a file and parse its header.
    ///
    /// encoding is a label such as "windows-1251"; None guesses.
    /// Raises CoreError when the file cannot be read or is no PDH recording.
    #[staticmethod]
    #[pyo3(signature = (path, encoding=None))]
    fn open(py: Python<'_>, path: PathBuf, encoding: Option<String>) -> PyResult<Self> {
        let file = py.detach(|| pdh::PdhFile::open(&path, encoding.as_deref()));
        Ok(Self {
            file: file.map_err(|e| to_python(py, &e))?,
        })
    }

    /// A recording in memory, such as a member of an archive.
    ///
    /// modified_ns (nanoseconds since the epoch, UTC) dates times that have no date.
    /// Raises CoreError when the bytes are no PDH recording.
    #[staticmethod]
    #[pyo3(signature = (name, data, modified_ns=None, encoding=None))]
    fn from_bytes(
        py: Python<'_>,
        name: &str,
        data: Cow<'_, [u8]>,
        modified_ns: Option<i64>,
        encoding: Option<String>,
    ) -> PyResult<Self> {
        let data = data.into_owned();
        let file =
            py.detach(|| pdh::PdhFile::from_bytes(name, data, modified_ns, encoding.as_deref()));
        Ok(Self {
            file: file.map_err(|e| to_python(py, &e))?,
        })
    }

    /// Number of columns, the time not counted.
    #[getter]
    fn n_columns(&self) -> usize {
        self.file.names().len()
    }

    /// Distinct host names, in order of appearance; "" where a column has none.
    #[getter]
    fn hosts(&self) -> Vec<String> {
        self.file.names().hosts.clone()
    }

    /// Time zone name as the recorder wrote it, or None.
    #[getter]
    fn zone_name(&self) -> Option<&str> {
        self.file.zone_name()
    }

    /// Minutes added to recorded times to get UTC (positive west of Greenwich); None where the header states none.
    #[getter]
    fn utc_offset_min(&self) -> Option<i32> {
        self.file.utc_offset_min()
    }

    /// Format, separator, quoting, encoding and line ends in words.
    #[getter]
    fn dialect(&self) -> String {
        self.file.dialect()
    }

    /// Distinct (object, counter) pairs, in order of appearance.
    fn counters(&self) -> Vec<(String, String)> {
        self.file.names().counters.clone()
    }

    /// Per column, index into counters(): uint32[n_columns].
    #[getter]
    fn column_counter<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u32>> {
        PyArray1::from_slice(py, &self.file.names().column_counter)
    }

    /// Per column, index into hosts: uint32[n_columns].
    #[getter]
    fn column_host<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u32>> {
        PyArray1::from_slice(py, &self.file.names().column_host)
    }

    /// Instances of the given columns (uint32[k]); None where the object has none.
    ///
    /// Raises ValueError when a column does not exist.
    fn instances(&self, columns: PyReadonlyArray1<'_, u32>) -> PyResult<Vec<Option<&str>>> {
        let names = self.file.names();
        let columns = columns.as_array();
        if let Some(column) = columns.iter().find(|c| **c as usize >= names.len()) {
            return Err(PyValueError::new_err(format!(
                "column {column}: there are {} columns",
                names.len()
            )));
        }
        Ok(columns
            .iter()
            .map(|c| names.instance(*c as usize))
            .collect())
    }

    /// Times of all rows: int64[n], nanoseconds since the epoch, UTC. Reads the file once; later calls are free.
    ///
    /// Raises CoreError when a row has no time.
    #[pyo3(signature = (progress=None))]
    fn times_ns<'py>(
        &self,
        py: Python<'py>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let times_ns = run(py, progress.as_ref(), |told| self.file.times_ns(told))?;
        Ok(PyArray1::from_slice(py, times_ns))
    }

    /// Read the given columns (uint32[k]) of all rows, or of those with start_ns <= time < end_ns.
    ///
    /// sentinels: -1 and -3 in rates, percentages and latencies mean "not measured" (esxtop).
    /// progress(done, total) is called now and then; what it raises ends the reading.
    /// Raises CoreError when a row has other cells than the header.
    #[pyo3(signature = (columns, *, start_ns=None, end_ns=None, sentinels=false, progress=None))]
    fn read(
        &self,
        py: Python<'_>,
        columns: PyReadonlyArray1<'_, u32>,
        start_ns: Option<i64>,
        end_ns: Option<i64>,
        sentinels: bool,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<PdhTable> {
        let columns = columns.as_array().to_vec();
        let request = Request {
            columns: &columns,
            start_ns,
            end_ns,
            sentinels,
        };
        let table = run(py, progress.as_ref(), |told| self.file.read(&request, told))?;
        Ok(PdhTable {
            times_ns: table.times_ns.into_pyarray(py).unbind(),
            series: table.series,
        })
    }

    /// What was repaired, as (code, message, count): in the header, among the rows, and in the cells of the latest read.
    fn warnings(&self) -> Vec<(&'static str, String, u64)> {
        self.file
            .warnings()
            .into_iter()
            .map(|w| (w.code, w.message, w.count))
            .collect()
    }
}

/// Series of the selected columns on their common times, packed without loss.
#[pyclass(frozen, module = "leadline._core")]
pub struct PdhTable {
    times_ns: Py<PyArray1<i64>>,
    series: Packed,
}

#[pymethods]
impl PdhTable {
    /// int64[n]: nanoseconds since the epoch, UTC.
    #[getter]
    fn times_ns(&self, py: Python<'_>) -> Py<PyArray1<i64>> {
        self.times_ns.clone_ref(py)
    }

    /// Bytes the packed values take.
    #[getter]
    fn size_bytes(&self) -> usize {
        self.series.size_bytes()
    }

    /// Unpack series (uint32[k], positions among the columns asked for): [k, n], C-contiguous; NaN is "not measured".
    ///
    /// dtype: "f64", or "f32", which keeps 24 bits in half the memory.
    /// Raises ValueError when there is no such series, MemoryError when there is no room.
    fn rows<'py>(
        &self,
        py: Python<'py>,
        series: PyReadonlyArray1<'_, u32>,
        dtype: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let series = series.as_array().to_vec();
        if let Some(row) = series
            .iter()
            .find(|row| **row as usize >= self.series.width())
        {
            return Err(PyValueError::new_err(format!(
                "series {row}: there are {}",
                self.series.width()
            )));
        }
        match dtype {
            "f64" => self.unpacked::<f64>(py, &series),
            "f32" => self.unpacked::<f32>(py, &series),
            _ => Err(PyValueError::new_err(format!(
                "dtype {dtype}: f64 or f32 is expected"
            ))),
        }
    }
}

impl PdhTable {
    fn unpacked<'py, T: Value + Element>(
        &self,
        py: Python<'py>,
        series: &[u32],
    ) -> PyResult<Bound<'py, PyAny>> {
        let (columns, rows) = (series.len(), self.series.rows());
        let mut values: Vec<T> = Vec::new();
        let count = columns
            .checked_mul(rows)
            .filter(|count| values.try_reserve_exact(*count).is_ok())
            .ok_or_else(|| PyMemoryError::new_err(format!("{columns} series of {rows} rows")))?;
        py.detach(|| {
            values.resize(count, T::MISSING);
            self.series.unpack(series, &mut values);
        });
        let values = Array2::from_shape_vec((columns, rows), values)
            .map_err(|e| PyValueError::new_err(e.to_string()))?;
        Ok(values.into_pyarray(py).into_any())
    }
}

/// Create (or empty) a file and write the header of a recording.
///
/// zone is a zone name (then at UTC), "(Name)(minutes)", or the whole first cell; cells are counter paths.
/// Raises CoreError when the file cannot be written.
#[pyfunction]
fn pdh_write_header(py: Python<'_>, path: PathBuf, zone: &str, cells: Vec<String>) -> PyResult<()> {
    py.detach(|| write::write_header(&path, zone, cells.iter().map(String::as_str)))
        .map_err(|e| to_python(py, &e))
}

/// Append rows as esxtop writes them: times int64[n] (nanoseconds, written in UTC), values float64[n, k] row-major.
///
/// NaN becomes an empty cell. Raises CoreError when sizes disagree or the file cannot be written, ValueError when
/// values are not row-major.
#[pyfunction]
fn pdh_write_rows(
    py: Python<'_>,
    path: PathBuf,
    times_ns: PyReadonlyArray1<'_, i64>,
    values: PyReadonlyArray2<'_, f64>,
    decimals: usize,
) -> PyResult<()> {
    let times = times_ns.as_slice()?;
    if times.len() != values.as_array().nrows() {
        return Err(PyValueError::new_err(format!(
            "{} times for {} rows",
            times.len(),
            values.as_array().nrows()
        )));
    }
    let rows = values.as_slice()?;
    py.detach(|| write::write_rows(&path, times, rows, decimals))
        .map_err(|e| to_python(py, &e))
}
