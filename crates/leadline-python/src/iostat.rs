//! `leadline._core.IostatRecording`: what sysstat's iostat printed.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use leadline_parse::iostat::{Cells, Column, Recording, read};
use leadline_stats::error::LeadlineError;
use numpy::{IntoPyArray, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PySlice;

use crate::errors::to_python;

/// Adds the classes of this file to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<IostatRecording>()
}

/// A recording of iostat, read whole.
#[pyclass(frozen, module = "leadline._core")]
pub struct IostatRecording {
    /// Number of reports.
    #[pyo3(get)]
    report_count: usize,
    /// Per report, its time as printed; empty where there is none.
    #[pyo3(get)]
    stamps: Vec<String>,
    /// Runs of iostat: (first report, banner line, whether the first report is an average since boot).
    #[pyo3(get)]
    runs: Vec<(usize, String, bool)>,
    /// The CPU report: (field, float32 or float64 [1, `report_count`]); NaN is not printed.
    #[pyo3(get)]
    cpu: Vec<(String, Py<PyAny>)>,
    /// Devices in order of appearance.
    #[pyo3(get)]
    devices: Vec<String>,
    /// The device report: (field, float32 or float64 [devices, `report_count`]); NaN is not printed.
    #[pyo3(get)]
    disks: Vec<(String, Py<PyAny>)>,
    /// What was left out: (code, message, how often).
    #[pyo3(get)]
    notes: Vec<(&'static str, String, usize)>,
}

#[pymethods]
impl IostatRecording {
    /// Read a file; name is used in messages, wanted are the column names to keep (None: all).
    ///
    /// Raises `CoreError` when the file cannot be read or is not what iostat prints.
    #[staticmethod]
    #[pyo3(signature = (path, name, wanted=None))]
    #[allow(clippy::needless_pass_by_value)]
    fn open(
        py: Python<'_>,
        path: PathBuf,
        name: &str,
        wanted: Option<Vec<String>>,
    ) -> PyResult<Self> {
        let wanted = wanted.map(|names| names.into_iter().collect());
        let recording = py.detach(|| {
            let file =
                File::open(&path).map_err(|error| LeadlineError::from_io(name, "open", &error))?;
            let bytes = file.metadata().map_or(0, |metadata| metadata.len());
            // A recording that still grows is read to the size it has now.
            read(file.take(bytes), name, bytes, &wanted)
        });
        Self::wrap(py, recording)
    }

    /// Read bytes in memory, such as a text that had another encoding.
    ///
    /// Raises `CoreError` when they are not what iostat prints.
    #[staticmethod]
    #[pyo3(signature = (data, name, wanted=None))]
    fn from_bytes(
        py: Python<'_>,
        data: &[u8],
        name: &str,
        wanted: Option<Vec<String>>,
    ) -> PyResult<Self> {
        let wanted = wanted.map(|names| names.into_iter().collect());
        let recording = py.detach(|| read(data, name, data.len() as u64, &wanted));
        Self::wrap(py, recording)
    }
}

impl IostatRecording {
    fn wrap(py: Python<'_>, recording: Result<Recording, LeadlineError>) -> PyResult<Self> {
        let recording = recording.map_err(|error| to_python(py, &error))?;
        let (reports, devices) = (recording.report_count, recording.devices.len());
        Ok(Self {
            report_count: reports,
            stamps: recording.stamps,
            runs: recording
                .runs
                .into_iter()
                .map(|run| (run.first_report, run.banner, run.since_boot))
                .collect(),
            cpu: arrays(py, recording.cpu, 1, reports)?,
            devices: recording.devices,
            disks: arrays(py, recording.disks, devices, reports)?,
            notes: recording
                .notes
                .into_iter()
                .map(|note| (note.code, note.message, note.count))
                .collect(),
        })
    }
}

fn arrays(
    py: Python<'_>,
    columns: Vec<Column>,
    rows: usize,
    reports: usize,
) -> PyResult<Vec<(String, Py<PyAny>)>> {
    columns
        .into_iter()
        .map(|column| {
            Ok((
                column.field,
                view(py, column.cells, column.stride, rows, reports)?,
            ))
        })
        .collect()
}

/// The first `rows` x `reports` of a buffer as an array, without copying it.
fn view(
    py: Python<'_>,
    cells: Cells,
    stride: usize,
    rows: usize,
    reports: usize,
) -> PyResult<Py<PyAny>> {
    let stride = stride.max(1);
    let whole = match cells {
        Cells::Narrow(cells) => {
            let shape = [cells.len() / stride, stride];
            cells.into_pyarray(py).reshape(shape)?.into_any()
        }
        Cells::Wide(cells) => {
            let shape = [cells.len() / stride, stride];
            cells.into_pyarray(py).reshape(shape)?.into_any()
        }
    };
    let part =
        |length: usize| PySlice::new(py, 0, isize::try_from(length).unwrap_or(isize::MAX), 1);
    Ok(whole.get_item((part(rows), part(reports)))?.unbind())
}
