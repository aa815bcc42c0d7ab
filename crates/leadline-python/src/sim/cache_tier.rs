//! `leadline._core.simulate_cache_tier` and `leadline._core.protection_scheme`.

use leadline_sim::error::SimError;
use leadline_sim::models::cache_tier::{
    CacheTier, FailureSpec, GroupSpec, GroupWindow, LoadSpec, LoadWindow, Part, Protection, Spec,
};
use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::simulation_error;

/// Adds the functions of this file to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(simulate_cache_tier, module)?)?;
    module.add_function(wrap_pyfunction!(protection_scheme, module)?)
}

/// Seconds, bytes, and shares from 0 to 1 everywhere below.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct PlainGroup {
    name: String,
    cache_bytes: f64,
    cache_write: f64,
    write_share: f64,
    buffer_bytes_max: f64,
    fill: f64,
    device_count: u32,
    device_write: f64,
    fetch_seconds: f64,
    device_used: f64,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct PlainLoad {
    outstanding: Option<f64>,
    rate: f64,
    bytes: f64,
    read_share: f64,
    burst: Option<(f64, f64)>,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct PlainFailure {
    at: f64,
    group: usize,
    is_cache: bool,
    delay: f64,
}

/// `protection`: data units and parity units; copies with no data unit.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct PlainSpec {
    groups: Vec<PlainGroup>,
    loads: Vec<PlainLoad>,
    protection: (usize, usize),
    read_hits: f64,
    write_latency: f64,
    hit_latency: f64,
    miss_latency: f64,
    destage_from: f64,
    slow_from: f64,
    slow_to: f64,
    failures: Vec<PlainFailure>,
    rebuild_rate: f64,
    step: f64,
    window_steps: u64,
    windows: u64,
}

fn scheme((data, other): (usize, usize)) -> Protection {
    if data == 0 {
        return Protection::Copies(other);
    }
    Protection::Code {
        data,
        parity: other,
    }
}

fn spec(plain: PlainSpec) -> Spec {
    let groups = plain.groups.into_iter().map(|own| GroupSpec {
        name: own.name,
        cache_bytes: own.cache_bytes,
        cache_write: own.cache_write,
        write_share: own.write_share,
        buffer_bytes_max: own.buffer_bytes_max,
        fill: own.fill,
        device_count: own.device_count,
        device_write: own.device_write,
        fetch_seconds: own.fetch_seconds,
        device_used: own.device_used,
    });
    let loads = plain.loads.into_iter().map(|own| LoadSpec {
        outstanding: own.outstanding,
        rate: own.rate,
        bytes: own.bytes,
        read_share: own.read_share,
        burst: own.burst,
    });
    let failures = plain.failures.into_iter().map(|own| FailureSpec {
        at: own.at,
        group: own.group,
        part: if own.is_cache {
            Part::Cache
        } else {
            Part::Device
        },
        delay: own.delay,
    });
    Spec {
        groups: groups.collect(),
        loads: loads.collect(),
        protection: scheme(plain.protection),
        read_hits: plain.read_hits,
        write_latency: plain.write_latency,
        hit_latency: plain.hit_latency,
        miss_latency: plain.miss_latency,
        destage_from: plain.destage_from,
        slow_from: plain.slow_from,
        slow_to: plain.slow_to,
        failures: failures.collect(),
        rebuild_rate: plain.rebuild_rate,
        step: plain.step,
        window_steps: plain.window_steps,
    }
}

/// Run disk groups for so many windows; what came out of each window as plain data.
///
/// `progress` is told the virtual time in ns. Raises `SimulationError` when the scenario makes no run, or a run broke a
/// law; what `progress` raises ends it.
#[pyfunction]
#[pyo3(signature = (plain, progress=None))]
#[allow(clippy::needless_pass_by_value)]
fn simulate_cache_tier(
    py: Python<'_>,
    plain: PlainSpec,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'_, PyDict>> {
    let failed = |error: SimError| simulation_error(py, &error);
    let (windows, groups, loads) = (plain.windows, plain.groups.len(), plain.loads.len());
    let mut model = CacheTier::new(spec(plain)).map_err(failed)?;
    for _ in 0..windows {
        py.detach(|| model.run(1));
        if let Some(call) = &progress {
            call.call1(py, (model.now() * 1e9,))?;
        }
        py.check_signals()?;
    }
    model.check().map_err(failed)?;
    let found = PyDict::new(py);
    found.set_item("trace", format!("{:016x}", model.trace()))?;
    found.set_item("step_count", model.step_count())?;
    let groups = (0..groups).map(|index| group(py, &model, index));
    found.set_item("groups", groups.collect::<PyResult<Vec<_>>>()?)?;
    let loads = (0..loads).map(|index| load(py, model.load(index)));
    found.set_item("loads", loads.collect::<PyResult<Vec<_>>>()?)?;
    let rebuilds = model.rebuilds().iter();
    let rebuilds = rebuilds.map(|own| (own.failed, own.lost, own.began, own.ended));
    found.set_item("rebuilds", rebuilds.collect::<Vec<_>>())?;
    Ok(found)
}

fn group<'py>(py: Python<'py>, model: &CacheTier, index: usize) -> PyResult<Bound<'py, PyDict>> {
    let windows = model.group(index);
    let column = |value: fn(&GroupWindow) -> f64| {
        let values: Vec<f64> = windows.iter().map(value).collect();
        values.into_pyarray(py)
    };
    let found = PyDict::new(py);
    found.set_item("fill", column(|own| own.fill))?;
    found.set_item("inflow", column(|own| own.inflow))?;
    found.set_item("destage", column(|own| own.destaged))?;
    found.set_item("congestion", column(|own| own.congestion))?;
    found.set_item("read_busy", column(|own| own.read_busy))?;
    found.set_item("slowed", model.slowed(index))?;
    Ok(found)
}

fn load<'py>(py: Python<'py>, windows: &[LoadWindow]) -> PyResult<Bound<'py, PyDict>> {
    let column = |value: fn(&LoadWindow) -> f64| {
        let values: Vec<f64> = windows.iter().map(value).collect();
        values.into_pyarray(py)
    };
    let found = PyDict::new(py);
    found.set_item("reads", column(|own| own.reads))?;
    found.set_item("writes", column(|own| own.writes))?;
    found.set_item("bytes", column(|own| own.bytes))?;
    found.set_item("inside", column(|own| own.inside))?;
    Ok(found)
}

/// Raw by usable capacity, and the reads and writes of a small write, of `other` parity units beside `data` data units; of
/// `other` copies without data units.
///
/// Raises `SimulationError` when there is no such scheme.
#[pyfunction]
fn protection_scheme(py: Python<'_>, data: usize, other: usize) -> PyResult<(f64, usize, usize)> {
    let scheme = scheme((data, other));
    scheme
        .check()
        .map_err(|error| simulation_error(py, &error))?;
    let count = scheme.small_write();
    Ok((scheme.capacity_factor(), count.read, count.written))
}
