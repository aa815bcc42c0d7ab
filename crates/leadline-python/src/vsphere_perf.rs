//! `leadline._core.VspherePerfAnswer`: vCenter's samples as columns.

use leadline_parse::vsphere_perf::{Answer, read};
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;

use crate::errors::to_python;

/// Adds the class of this file to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<VspherePerfAnswer>()
}

/// Times and intervals.
type Columns = (Py<PyArray1<i64>>, Py<PyArray1<i32>>);

/// An answer to `QueryPerf` in the format `csv`.
#[pyclass(frozen, module = "leadline._core")]
pub struct VspherePerfAnswer {
    /// Type and id of each entity.
    #[pyo3(get)]
    entities: Vec<(String, String)>,
    /// Which of the moments the samples of each entity have, uint32 [entities].
    #[pyo3(get)]
    entity_moments: Py<PyArray1<u32>>,
    /// The different moments: UTC nanoseconds int64 [n], seconds that each sample stands for int32 [n].
    #[pyo3(get)]
    moments: Vec<Columns>,
    /// Which entity each series is of, uint32 [series].
    #[pyo3(get)]
    series_entities: Py<PyArray1<u32>>,
    /// The id of each series' counter, int32 [series].
    #[pyo3(get)]
    series_counters: Py<PyArray1<i32>>,
    /// Which of the instances each series is of, uint32 [series].
    #[pyo3(get)]
    series_instances: Py<PyArray1<u32>>,
    /// The different instances.
    #[pyo3(get)]
    instances: Vec<String>,
    /// The samples, float32, one series after the other; NaN is not measured.
    #[pyo3(get)]
    values: Py<PyArray1<f32>>,
}

#[pymethods]
impl VspherePerfAnswer {
    /// Read the text of an answer; name is used in messages.
    ///
    /// Raises `CoreError` when the text is cut or is no such answer.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8], name: &str) -> PyResult<Self> {
        let answer = py.detach(|| read(data, name));
        let Answer {
            entities,
            entity_moments,
            moments,
            series_entities,
            series_counters,
            series_instances,
            instances,
            values,
        } = answer.map_err(|error| to_python(py, &error))?;
        Ok(Self {
            entities,
            entity_moments: entity_moments.into_pyarray(py).unbind(),
            moments: moments
                .into_iter()
                .map(|m| {
                    let times_ns = m.times_ns.into_pyarray(py).unbind();
                    (times_ns, m.intervals_s.into_pyarray(py).unbind())
                })
                .collect(),
            series_entities: series_entities.into_pyarray(py).unbind(),
            series_counters: series_counters.into_pyarray(py).unbind(),
            series_instances: series_instances.into_pyarray(py).unbind(),
            instances,
            values: values.into_pyarray(py).unbind(),
        })
    }
}
