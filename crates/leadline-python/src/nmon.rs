//! `leadline._core.NmonRecording`: what nmon recorded.

use std::path::PathBuf;

use leadline_parse::nmon::{Recording, Section, read};
use leadline_stats::error::LeadlineError;
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;

use crate::errors::to_python;
use crate::logs::open;

/// Adds the classes of this file to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<NmonRecording>()
}

/// A recording of nmon, read whole; its numbers are packed until they are taken.
#[pyclass(module = "leadline._core")]
pub struct NmonRecording {
    /// Whether the last line has no end; it was left out.
    #[pyo3(get)]
    is_cut: bool,
    /// What was left out by reason: the first line, from 1, how many, the problem with `{}` for the detail, the detail.
    #[pyo3(get)]
    damages: Vec<(u64, u64, String, String)>,
    /// Lines that were left out for further reasons.
    #[pyo3(get)]
    further_damage_count: u64,
    /// Facts: name and text.
    #[pyo3(get)]
    facts: Vec<(String, String)>,
    /// For each snapshot whether any section has a row of it, bool [snapshots].
    #[pyo3(get)]
    has_row: Py<PyArray1<bool>>,
    /// Which snapshot each time stamp is of, uint64 [stamps].
    #[pyo3(get)]
    stamp_snapshots: Py<PyArray1<u64>>,
    /// The time of day of each stamp, as printed.
    #[pyo3(get)]
    clocks: Vec<String>,
    /// Dates as printed.
    #[pyo3(get)]
    days: Vec<String>,
    /// Which of the dates each stamp has, uint64 [stamps].
    #[pyo3(get)]
    stamp_days: Py<PyArray1<u64>>,
    sections: Vec<(String, Section)>,
}

#[pymethods]
impl NmonRecording {
    /// Read a file; name is used in messages.
    ///
    /// Raises `CoreError` when the file cannot be read.
    #[staticmethod]
    #[allow(clippy::needless_pass_by_value)]
    fn open(py: Python<'_>, path: PathBuf, name: &str) -> PyResult<Self> {
        let recording = py.detach(|| read(open(&path, name)?, name));
        Self::wrap(py, recording)
    }

    /// Read bytes in memory, such as a text that had another encoding.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8], name: &str) -> PyResult<Self> {
        let recording = py.detach(|| read(data, name));
        Self::wrap(py, recording)
    }

    /// Names of the sections and of their columns.
    #[getter]
    fn sections(&self) -> Vec<(String, Vec<String>)> {
        self.sections
            .iter()
            .map(|(name, section)| (name.clone(), section.columns().to_vec()))
            .collect()
    }

    /// The values float64 [columns, length] of a section, NaN where there is no row; they can be taken once.
    ///
    /// places is int64 [snapshots]: where each snapshot stands among the length, negative to leave it out.
    ///
    /// Raises `IndexError` when there is no such section.
    #[allow(clippy::needless_pass_by_value)]
    fn take_values<'py>(
        &mut self,
        py: Python<'py>,
        section_index: usize,
        places: PyReadonlyArray1<'py, i64>,
        length: usize,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let Some((_, section)) = self.sections.get_mut(section_index) else {
            return Err(PyIndexError::new_err("no such section"));
        };
        let places: Vec<Option<usize>> = places
            .as_array()
            .iter()
            .map(|&place| usize::try_from(place).ok())
            .collect();
        let columns = section.columns().len();
        let values = py.detach(|| section.take_values(&places, length));
        values.into_pyarray(py).reshape([columns, length])
    }
}

impl NmonRecording {
    fn wrap(py: Python<'_>, recording: Result<Recording, LeadlineError>) -> PyResult<Self> {
        let recording = recording.map_err(|error| to_python(py, &error))?;
        let has_row: Vec<bool> = (0..recording.snapshot_count)
            .map(|snapshot| recording.sections.iter().any(|s| s.1.has_row(snapshot)))
            .collect();
        let stamps = &recording.stamps;
        let snapshots: Vec<u64> = stamps.iter().map(|s| s.snapshot_index as u64).collect();
        let days: Vec<u64> = stamps.iter().map(|s| s.day_index as u64).collect();
        Ok(Self {
            is_cut: recording.is_cut,
            damages: recording
                .damages
                .into_iter()
                .map(|damage| (damage.line, damage.count, damage.problem, damage.detail))
                .collect(),
            further_damage_count: recording.further_damage_count,
            facts: recording.facts,
            has_row: has_row.into_pyarray(py).unbind(),
            stamp_snapshots: snapshots.into_pyarray(py).unbind(),
            clocks: recording.stamps.into_iter().map(|s| s.clock).collect(),
            days: recording.days,
            stamp_days: days.into_pyarray(py).unbind(),
            sections: recording.sections,
        })
    }
}
