//! I/O traces: `leadline._core.TraceProfile` and the functions that make them.

use std::path::PathBuf;
use std::sync::Arc;

use leadline_parse::trace::{
    Burst, DiskProfile, Lanes, Load, LoadStream, Mapping, NO_LATENCY, Note, Options, Requests,
    Split, Spread, Way, characterise, distances, format_name, requests, synthesise, write_lanes,
};
#[cfg(feature = "simulator")]
use leadline_sim::sources::{Recording, Request};
use leadline_stats::error::LeadlineError;
use leadline_stats::histogram::LogLinear;
use leadline_stats::limits::Limits;
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::to_python;

/// Adds the classes and functions of this file to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<TraceProfile>()?;
    module.add_class::<Trace>()?;
    module.add_class::<TraceRequests>()?;
    module.add_function(wrap_pyfunction!(trace_format, module)?)?;
    module.add_function(wrap_pyfunction!(trace_characterise, module)?)?;
    module.add_function(wrap_pyfunction!(trace_requests, module)?)?;
    module.add_function(wrap_pyfunction!(trace_write_lanes, module)?)?;
    module.add_function(wrap_pyfunction!(trace_synthesise, module)?)
}

type Files = Vec<(PathBuf, String)>;
/// Window, index of dispersion, busiest window over mean, share of idle windows.
type Burstiness = (u64, Option<f64>, Option<f64>, Option<f64>);
/// Code, message, how often.
pub type Notes = Vec<(&'static str, String, u64)>;
/// Kind, way, limits, counts, and smallest, largest and mean.
type Table = (
    &'static str,
    &'static str,
    Vec<i64>,
    Vec<u64>,
    Option<(i64, i64, f64)>,
);
type Columns<'py> = (
    Bound<'py, PyArray1<u64>>,
    Bound<'py, PyArray1<u64>>,
    Bound<'py, PyArray1<u64>>,
);

/// What one disk's requests are like.
#[pyclass(frozen, module = "leadline._core")]
pub struct TraceProfile {
    /// The disk's name.
    #[pyo3(get)]
    name: String,
    inner: Arc<DiskProfile>,
}

impl TraceProfile {
    fn way(&self, name: &str) -> &Way {
        match name {
            "read" => &self.inner.read,
            "write" => &self.inner.write,
            _ => &self.inner.all,
        }
    }

    fn spread(&self, kind: &str, way: &str) -> Option<&Spread> {
        let way = self.way(way);
        match kind {
            "io_size_bytes" => Some(&way.size),
            "outstanding_count" => Some(&way.depth),
            "latency_us" => Some(&way.latency),
            "interarrival_us" => Some(&way.interarrival),
            _ => None,
        }
    }
}

fn table(kind: &'static str, way: &'static str, limits: &Limits) -> Table {
    (
        kind,
        way,
        limits.limits().to_vec(),
        limits.counts().to_vec(),
        limits.summary(),
    )
}

#[pymethods]
impl TraceProfile {
    /// Histograms over vscsiStats' limits: (kind, way, limits, counts with one more for what is above, (smallest,
    /// largest, mean) or None when empty).
    fn tables(&self) -> Vec<Table> {
        let mut found = Vec::new();
        for (name, way) in [
            ("all", &self.inner.all),
            ("read", &self.inner.read),
            ("write", &self.inner.write),
        ] {
            found.push(table("io_size_bytes", name, &way.size.limits));
            found.push(table("seek_distance_blocks", name, &way.seek));
            found.push(table("outstanding_count", name, &way.depth.limits));
            found.push(table("latency_us", name, &way.latency.limits));
            found.push(table("interarrival_us", name, &way.interarrival.limits));
        }
        found.push(table(
            "seek_distance_blocks_closest",
            "all",
            &self.inner.seek_closest,
        ));
        found
    }

    /// Fine buckets of a kind and way: lower and upper bounds and counts; times are nanoseconds.
    fn buckets<'py>(&self, py: Python<'py>, kind: &str, way: &str) -> Option<Columns<'py>> {
        let fine: Vec<_> = self.spread(kind, way)?.fine.buckets().collect();
        let column = |value: fn(&leadline_stats::histogram::Bucket) -> u64| {
            fine.iter()
                .map(value)
                .collect::<Vec<u64>>()
                .into_pyarray(py)
        };
        Some((
            column(|b| b.lower),
            column(|b| b.upper),
            column(|b| b.count),
        ))
    }

    /// The value at a share of a kind and way, None when there is none; times are nanoseconds.
    fn quantile(&self, kind: &str, way: &str, share: f64) -> Option<f64> {
        self.spread(kind, way)?.fine.quantile(share)
    }

    /// Single numbers by name; None is not measured.
    fn facts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (inner, facts) = (&self.inner, PyDict::new(py));
        facts.set_item("read_count", inner.read.size.fine.total())?;
        facts.set_item("write_count", inner.write.size.fine.total())?;
        facts.set_item("read_bytes", inner.read_bytes)?;
        facts.set_item("write_bytes", inner.write_bytes)?;
        facts.set_item("duration_ns", inner.duration_ns())?;
        facts.set_item("end_bytes", inner.end_bytes)?;
        facts.set_item("read_share", inner.read_share())?;
        facts.set_item("sequential_share", inner.sequential_share())?;
        for (name, streams) in [
            ("read", &inner.reads_streams),
            ("write", &inner.writes_streams),
        ] {
            facts.set_item(format!("sequential_{name}_count"), streams.continued)?;
            facts.set_item(format!("{name}_stream_count"), streams.count)?;
            facts.set_item(
                format!("{name}_stream_bytes_p50"),
                streams.stream_bytes.quantile(0.5),
            )?;
        }
        facts.set_item("pause_count", inner.pause_count)?;
        facts.set_item("pause_ns", inner.pause_ns)?;
        facts.set_item("working_set_bytes", inner.working_set_bytes())?;
        facts.set_item("page_sampling_rate", inner.pages.rate())?;
        facts.set_item("page_use_count", inner.pages.uses())?;
        Ok(facts)
    }

    /// Burstiness: (window in nanoseconds, index of dispersion, busiest window over mean, share of idle windows).
    fn dispersion(&self) -> Vec<Burstiness> {
        let windows = self.inner.dispersion.iter();
        windows
            .map(|d| (d.window_ns(), d.index(), d.peak_to_mean(), d.idle_share()))
            .collect()
    }

    /// Miss-ratio curve: (cache size in bytes, share of page uses that miss).
    fn curve(&self) -> Vec<(u64, f64)> {
        self.inner.curve()
    }

    /// How far another profile is from this: (characteristic, 0 to 1 or None).
    fn distances(&self, other: &Self) -> Vec<(&'static str, Option<f64>)> {
        distances(&self.inner, &other.inner)
    }
}

/// What a trace holds.
#[pyclass(frozen, module = "leadline._core")]
pub struct Trace {
    /// Name of the format.
    #[pyo3(get)]
    format: &'static str,
    /// Profiles in order of appearance.
    #[pyo3(get)]
    profiles: Vec<Py<TraceProfile>>,
    /// What was repaired or left out: (code, message, how often).
    #[pyo3(get)]
    notes: Notes,
}

/// Notes of a reader as Python has them.
pub fn plain(notes: Vec<Note>) -> Notes {
    notes
        .into_iter()
        .map(|note| (note.code, note.message, note.count))
        .collect()
}

/// Runs work without the interpreter's lock; signals and `progress` are looked after between batches.
pub fn working<T: Send>(
    py: Python<'_>,
    progress: Option<&Py<PyAny>>,
    work: impl FnOnce(&mut dyn FnMut(u64) -> bool) -> Result<Option<T>, LeadlineError> + Send,
) -> PyResult<T> {
    let mut stopped: Option<PyErr> = None;
    let found = py.detach(|| {
        work(&mut |done| {
            Python::attach(|py| {
                let told = progress.map_or(Ok(()), |call| call.call1(py, (done,)).map(drop));
                match told.and_then(|()| py.check_signals()) {
                    Ok(()) => true,
                    Err(error) => {
                        stopped = Some(error);
                        false
                    }
                }
            })
        })
    });
    match (stopped, found) {
        (Some(error), _) => Err(error),
        (None, Ok(Some(found))) => Ok(found),
        (None, Ok(None)) => Err(pyo3::exceptions::PyKeyboardInterrupt::new_err(())),
        (None, Err(error)) => Err(to_python(py, &error)),
    }
}

/// The name of a file's format.
///
/// Raises `CoreError` when it cannot be read or is no trace.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)]
fn trace_format(py: Python<'_>, path: PathBuf, name: &str) -> PyResult<&'static str> {
    format_name(&path, name).map_err(|error| to_python(py, &error))
}

/// Characterise the files of one trace per disk, or per class of one disk's requests.
///
/// Raises `CoreError` when it cannot be read.
#[pyfunction]
#[pyo3(signature = (files, sample_keys, classes_of=None, progress=None))]
#[allow(clippy::needless_pass_by_value)]
fn trace_characterise(
    py: Python<'_>,
    files: Files,
    sample_keys: usize,
    classes_of: Option<u16>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Trace> {
    let split = classes_of.map_or(Split::Disks, Split::Classes);
    let options = Options { sample_keys, split };
    let found = working(py, progress.as_ref(), |step| {
        characterise(&files, &options, step)
    })?;
    let profiles = found
        .profiles
        .into_iter()
        .map(|(name, inner)| wrapped(py, name, inner));
    Ok(Trace {
        format: found.format,
        profiles: profiles.collect::<PyResult<_>>()?,
        notes: plain(found.notes),
    })
}

fn wrapped(py: Python<'_>, name: String, inner: DiskProfile) -> PyResult<Py<TraceProfile>> {
    Py::new(
        py,
        TraceProfile {
            name,
            inner: Arc::new(inner),
        },
    )
}

/// Write one disk's requests as iologs for fio, dealt out to lanes; the profile of what was written, how many requests
/// were moved to fit the target, how many widened to its unit, how many left out as larger than it, and notes. Offsets
/// are scaled from a disk of `scaled_from` bytes, or wrapped around the target's end when it is None.
///
/// Raises `CoreError` when the trace cannot be read or a lane cannot be written.
#[pyfunction]
#[pyo3(signature = (files, paths, disk, target, target_bytes, scaled_from, unit_bytes, speed_pct, duration_ns, sample_keys, progress=None))]
#[allow(clippy::too_many_arguments, clippy::needless_pass_by_value)]
fn trace_write_lanes(
    py: Python<'_>,
    files: Files,
    paths: Vec<PathBuf>,
    disk: u16,
    target: String,
    target_bytes: u64,
    scaled_from: Option<u64>,
    unit_bytes: u64,
    speed_pct: u32,
    duration_ns: Option<u64>,
    sample_keys: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<(Py<TraceProfile>, u64, u64, u64, Notes)> {
    let lanes = Lanes {
        paths,
        disk,
        target,
        target_bytes,
        mapping: scaled_from.map_or(Mapping::Wrapped, Mapping::Scaled),
        unit_bytes,
        speed_pct,
        duration_ns,
    };
    let made = working(py, progress.as_ref(), |step| {
        write_lanes(&files, &lanes, sample_keys, step)
    })?;
    let profile = wrapped(py, lanes.target.clone(), made.profile)?;
    let counts = (made.moved, made.aligned, made.too_large);
    Ok((profile, counts.0, counts.1, counts.2, plain(made.notes)))
}

/// Times, ns; bytes; whether it writes, whether it is random; latency, ns, NaN where it is not known.
type RequestColumns<'py> = (
    Bound<'py, PyArray1<u64>>,
    Bound<'py, PyArray1<u32>>,
    Bound<'py, PyArray1<bool>>,
    Bound<'py, PyArray1<bool>>,
    Bound<'py, PyArray1<f64>>,
);

/// Every request of one disk, in the order of time.
#[pyclass(frozen, module = "leadline._core")]
pub struct TraceRequests {
    inner: Requests,
}

#[cfg(feature = "simulator")]
impl TraceRequests {
    /// As a simulation replays them; None without any.
    pub fn recording(&self) -> Option<Recording> {
        let own = &self.inner;
        let columns = own.bytes.iter().zip(&own.is_write).zip(&own.is_random);
        let asked = columns.map(|((bytes, is_write), is_random)| Request {
            bytes: *bytes,
            is_write: *is_write,
            is_random: *is_random,
        });
        Recording::new(own.times_ns.as_slice().into(), asked.collect())
    }
}

#[pymethods]
impl TraceRequests {
    /// Since the first was issued, ns; bytes; whether it writes; whether it begins elsewhere than where an earlier one
    /// of its kind ended; latency in ns, NaN where the trace does not tell.
    fn columns<'py>(&self, py: Python<'py>) -> RequestColumns<'py> {
        let own = &self.inner;
        let latency = own.latency_ns.iter().map(|ns| match *ns {
            NO_LATENCY => f64::NAN,
            known => known as f64,
        });
        (
            own.times_ns.clone().into_pyarray(py),
            own.bytes.clone().into_pyarray(py),
            own.is_write.clone().into_pyarray(py),
            own.is_random.clone().into_pyarray(py),
            latency.collect::<Vec<_>>().into_pyarray(py),
        )
    }

    /// What was repaired or left out: (code, message, how often).
    #[getter]
    fn notes(&self) -> Notes {
        plain(self.inner.notes.clone())
    }
}

/// Every request of one disk, by its name, None where there is only one.
///
/// Raises `CoreError` when the trace cannot be read, has no such disk, or more than `requests_max`.
#[pyfunction]
#[pyo3(signature = (files, disk, requests_max, progress=None))]
#[allow(clippy::needless_pass_by_value)]
fn trace_requests(
    py: Python<'_>,
    files: Files,
    disk: Option<String>,
    requests_max: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<TraceRequests> {
    let inner = working(py, progress.as_ref(), |step| {
        requests(&files, disk.as_deref(), requests_max, step)
    })?;
    Ok(TraceRequests { inner })
}

/// One stream: sizes with shares, read and random percentages, outstanding requests, jobs, rate, (on, off) seconds,
/// working set.
type Stream = (
    Vec<(u32, f64)>,
    f64,
    f64,
    u32,
    u32,
    f64,
    Option<(f64, f64)>,
    u64,
);

/// Characterise the requests a workload gives; latencies are drawn from `like`.
#[pyfunction]
fn trace_synthesise(
    py: Python<'_>,
    streams: Vec<Stream>,
    duration_s: f64,
    requests_max: u64,
    seed: u64,
    like: &TraceProfile,
    sample_keys: usize,
) -> PyResult<Py<TraceProfile>> {
    let streams = streams.into_iter().map(
        |(block, read_pct, random_pct, oio, jobs, rate_iops, burst, working_set)| {
            let burst = burst.map(|(on_s, off_s)| Burst { on_s, off_s });
            LoadStream {
                block,
                read_pct,
                random_pct,
                oio,
                jobs,
                rate_iops,
                burst,
                working_set,
            }
        },
    );
    let load = Load {
        streams: streams.collect(),
        duration_s,
        requests_max,
        seed,
    };
    let latency: [&LogLinear; 2] = [
        &like.inner.read.latency.fine,
        &like.inner.write.latency.fine,
    ];
    let made = py.detach(|| synthesise(&load, latency, sample_keys));
    wrapped(py, "synthetic".to_owned(), made)
}
