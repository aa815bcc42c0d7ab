//! `leadline._core.simulate_write_cache`.

use leadline_sim::error::SimError;
use leadline_sim::models::write_cache::{
    Backing, Kind, Spec, WRITE_CACHES, WriteCache, WriteMeasures,
};
use leadline_sim::time::Nanos;
use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::{columns, plain_interval, ran};

/// Adds the functions of this file to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("WRITE_CACHES", WRITE_CACHES.to_vec())?;
    module.add_function(wrap_pyfunction!(simulate_write_cache, module)?)
}

/// Times in ns, rates per second, shares from 0 to 1; `backing`: least and most seek, rotation, bytes per second.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct PlainSpec {
    seed: u64,
    cache: String,
    is_sorted: bool,
    blocks: u32,
    block_bytes: u32,
    outstanding: Option<u32>,
    rate: f64,
    random_share: f64,
    cache_blocks: usize,
    ram: Nanos,
    log_latency: f64,
    log_bytes_per_second: f64,
    batch_blocks: usize,
    backing: (f64, f64, f64, f64),
    warm_up: Nanos,
    measured: Nanos,
    window: Nanos,
}

fn spec(plain: &PlainSpec) -> Result<Spec, SimError> {
    let (seek_least, seek_most, rotation, bytes_per_second) = plain.backing;
    Ok(Spec {
        seed: plain.seed,
        kind: Kind::named(&plain.cache)?,
        is_sorted: plain.is_sorted,
        blocks: plain.blocks,
        block_bytes: plain.block_bytes,
        outstanding: plain.outstanding,
        rate: plain.rate,
        random_share: plain.random_share,
        cache_blocks: plain.cache_blocks,
        ram: plain.ram,
        log_latency: plain.log_latency,
        log_bytes_per_second: plain.log_bytes_per_second,
        batch_blocks: plain.batch_blocks,
        backing: Backing {
            seek_least,
            seek_most,
            rotation,
            bytes_per_second,
        },
        window: plain.window,
    })
}

/// Run a write cache: warm up, measure; what came out as plain data. Times are ns, but for `latency_ms`.
///
/// Raises `SimulationError` when the scenario makes no run, or a run broke a law; what `progress` raises ends it.
#[pyfunction]
#[pyo3(signature = (plain, progress=None))]
#[allow(clippy::needless_pass_by_value)]
fn simulate_write_cache(
    py: Python<'_>,
    plain: PlainSpec,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'_, PyDict>> {
    let spans = (plain.warm_up, plain.measured);
    let made = spec(&plain).and_then(WriteCache::new);
    let mut before = None;
    let (run, found) = ran(py, made, spans, progress.as_ref(), |model, now| {
        before = Some(model.measures.clone());
        model.restart_measuring(now);
    })?;
    measures(&found, &run.model.measures)?;
    let warm_up = before.map(|own| own.latency_ms.counts().into_pyarray(py));
    found.set_item("warm_up", warm_up)?;
    Ok(found)
}

fn measures(found: &Bound<'_, PyDict>, own: &WriteMeasures) -> PyResult<()> {
    let py = found.py();
    found.set_item("count", own.responses.count())?;
    found.set_item("mean", own.responses.mean())?;
    found.set_item("histogram", columns(py, own.responses.histogram()))?;
    let latency = own.in_order.interval_after(0).map(plain_interval);
    found.set_item("latency_interval", latency)?;
    found.set_item("counts", own.latency_ms.counts().into_pyarray(py))?;
    found.set_item("latency_ms", own.latency_ms.means().into_pyarray(py))?;
    found.set_item("written", own.written.counts().into_pyarray(py))?;
    let looks = own.looks.iter();
    let looks = looks.map(|look| (look.lost_blocks, look.held_blocks));
    found.set_item("looks", looks.collect::<Vec<_>>())?;
    found.set_item("backing", own.backing)?;
    found.set_item("log", own.log)
}
