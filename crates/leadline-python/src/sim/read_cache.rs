//! `leadline._core.simulate_read_cache`.

use std::path::PathBuf;

use leadline_parse::trace::{Wanted, accesses};
use leadline_sim::error::SimError;
use leadline_sim::measure::TraceHash;
use leadline_sim::models::read_cache::{
    AnyReadCache, Kind, LruCurve, Part, READ_CACHE_POLICIES, Trace, hits, synthetic,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::hash::Hasher;

use crate::errors::{simulation_error, to_python};

/// Adds the functions of this file to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("READ_CACHE_POLICIES", READ_CACHE_POLICIES.to_vec())?;
    module.add_function(wrap_pyfunction!(simulate_read_cache, module)?)
}

/// Uses a trace may have: 1 GiB of memory.
const USES_MAX: usize = 50_000_000;

/// Name, weight, blocks, exponent of a Zipf distribution or None for a scan, blocks of a run.
type PlainPart = (String, f64, u64, Option<f64>, u64);

/// Files with their names, disk, whether only reads are taken.
type PlainFiles = (Vec<(PathBuf, String)>, Option<String>, bool);

/// `ends`: seconds at which the warm-up and each window end. A trace of parts has `rate` uses per second, one of files its
/// own times. `caches`: policy and bytes. `curves`: policies with the bytes of their points.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct PlainSpec {
    seed: u64,
    parts: Vec<PlainPart>,
    files: Option<PlainFiles>,
    rate: f64,
    block_bytes: u64,
    line_bytes: u64,
    ends: Vec<f64>,
    caches: Vec<(String, u64)>,
    curves: Vec<(String, Vec<u64>)>,
}

fn part(plain: &PlainPart) -> Part {
    let (name, weight, blocks, exponent, run) = plain;
    Part {
        name: name.clone(),
        weight: *weight,
        blocks: *blocks,
        kind: exponent.map_or(Kind::Scan, Kind::Zipf),
        run: *run,
    }
}

/// A trace, the index of the use before which each span ends, and what was repaired while reading.
type Uses = (Trace, Vec<usize>, Vec<String>);

fn too_many(count: f64) -> SimError {
    SimError::new(
        "trace",
        format!("{count:.3e} uses"),
        format!("at most {USES_MAX}"),
        "Take a lower rate or less time.",
    )
}

fn made(plain: &PlainSpec) -> Result<Uses, SimError> {
    let whole = |seconds: &f64| {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // `as` saturates
        let index = (seconds * plain.rate + 0.5) as usize;
        index
    };
    let ends: Vec<usize> = plain.ends.iter().map(whole).collect();
    let count = ends.last().copied().unwrap_or(0);
    if count > USES_MAX {
        return Err(too_many(count as f64));
    }
    let parts: Vec<Part> = plain.parts.iter().map(part).collect();
    let line_blocks = (plain.line_bytes / plain.block_bytes.max(1)).max(1);
    Ok((
        Trace::of(&synthetic(&parts, line_blocks, count, plain.seed)),
        ends,
        Vec::new(),
    ))
}

fn recorded(py: Python<'_>, plain: &PlainSpec, files: &PlainFiles) -> PyResult<Uses> {
    let (files, disk, reads_only) = files;
    let wanted = Wanted {
        disk: disk.clone(),
        reads_only: *reads_only,
        line_bytes: plain.line_bytes,
        uses_max: USES_MAX,
    };
    let found = py.detach(|| accesses(files, &wanted, &mut |_| true));
    let found = found
        .map_err(|error| to_python(py, &error))?
        .unwrap_or_default();
    let ends = plain.ends.iter().map(|seconds| {
        let end = leadline_sim::time::from_seconds(*seconds);
        found.times_ns.partition_point(|time| *time < end)
    });
    let ends: Vec<usize> = ends.collect();
    let kept = ends.last().copied().unwrap_or(0);
    let notes = found.notes.into_iter();
    let notes = notes.map(|own| format!("{}: {}", own.count, own.message));
    Ok((Trace::of(&found.lines[..kept]), ends, notes.collect()))
}

fn capacity(bytes: u64, line_bytes: u64) -> usize {
    usize::try_from(bytes / line_bytes.max(1)).unwrap_or(usize::MAX)
}

/// Run a trace through caches; hits by span of each, and curves as plain data.
///
/// `progress` is told the share that is done. Raises `SimulationError` or `ParseError` when the scenario makes no run; what
/// `progress` raises ends it.
#[pyfunction]
#[pyo3(signature = (plain, progress=None))]
#[allow(clippy::needless_pass_by_value)]
fn simulate_read_cache(
    py: Python<'_>,
    plain: PlainSpec,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'_, PyDict>> {
    let failed = |error: SimError| simulation_error(py, &error);
    let (trace, ends, notes) = match &plain.files {
        Some(files) => recorded(py, &plain, files)?,
        None => py.detach(|| made(&plain)).map_err(failed)?,
    };
    let jobs = plain.caches.len() + plain.curves.len();
    let mut done = 0.0;
    let mut tell = || -> PyResult<()> {
        done += 1.0;
        progress.as_ref().map_or(Ok(()), |call| {
            call.call1(py, (done / jobs as f64,)).map(drop)
        })?;
        py.check_signals()
    };
    let mut hash = TraceHash::default();
    for line in &trace.lines {
        hash.write_u32(*line);
    }
    let mut caches: Vec<Vec<u64>> = Vec::new();
    for (policy, bytes) in &plain.caches {
        let lines = capacity(*bytes, plain.line_bytes);
        let mut cache = AnyReadCache::new(policy, lines, trace.distinct).map_err(failed)?;
        let found = py.detach(|| hits(&mut cache, &trace.lines, &ends));
        for count in &found {
            hash.write_u64(*count);
        }
        caches.push(found);
        tell()?;
    }
    let mut curves: Vec<Vec<u64>> = Vec::new();
    for (policy, sizes) in &plain.curves {
        let sizes: Vec<usize> = sizes
            .iter()
            .map(|own| capacity(*own, plain.line_bytes))
            .collect();
        let found = py
            .detach(|| curve(policy, &sizes, &trace, &ends))
            .map_err(failed)?;
        curves.push(found);
        tell()?;
    }
    let found = PyDict::new(py);
    found.set_item("trace", format!("{:016x}", hash.value()))?;
    found.set_item("distinct", trace.distinct)?;
    found.set_item("ends", ends)?;
    found.set_item("notes", notes)?;
    found.set_item("caches", caches)?;
    found.set_item("curves", curves)?;
    Ok(found)
}

/// Hits after the warm-up of each size: of LRU all in one pass, of others one by one.
fn curve(
    policy: &str,
    sizes: &[usize],
    trace: &Trace,
    ends: &[usize],
) -> Result<Vec<u64>, SimError> {
    let warm = ends.first().copied().unwrap_or(0);
    if policy == "lru" {
        let found = LruCurve::new(&trace.lines, warm);
        return Ok(sizes.iter().map(|size| found.hits(*size)).collect());
    }
    let whole = [warm, trace.lines.len()];
    let simulated = sizes.iter().map(|size| {
        let mut cache = AnyReadCache::new(policy, *size, trace.distinct)?;
        Ok(hits(&mut cache, &trace.lines, &whole)[1])
    });
    simulated.collect()
}
