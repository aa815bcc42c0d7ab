//! Simulations: `leadline._core.simulate_*`, a file for each model, and what they share.

mod cache_tier;
mod cluster_storage;
mod far_memory;
mod fluid;
mod gpu_time_slicing;
mod hypervisor_cpu;
mod management_plane;
mod parda;
mod read_cache;
mod storage_path;
mod write_cache;
mod yardstick;

use std::hash::Hash;
use std::sync::Arc;

use leadline_sim::error::SimError;
use leadline_sim::kernel::{Model, Simulation};
use leadline_sim::measure::{Interval, LogLinear, TraceHash};
use leadline_sim::models::{IoMeasures, Little, SCHEDULERS};
use leadline_sim::random::{
    Constant, Distribution, Empirical, Erlang, Exponential, LogNormal, Normal, Pareto, Uniform,
};
use leadline_sim::time::Nanos;
use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::{SimulationError, simulation_error};

/// Events between two looks for an interrupt: some 10 ms.
const SLICE_EVENTS: u64 = 50_000;

/// Adds the functions of this folder to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("SimulationError", module.py().get_type::<SimulationError>())?;
    module.add("SIMULATION_SCHEDULERS", SCHEDULERS.to_vec())?;
    cache_tier::register(module)?;
    cluster_storage::register(module)?;
    far_memory::register(module)?;
    fluid::register(module)?;
    gpu_time_slicing::register(module)?;
    hypervisor_cpu::register(module)?;
    management_plane::register(module)?;
    parda::register(module)?;
    read_cache::register(module)?;
    storage_path::register(module)?;
    write_cache::register(module)?;
    yardstick::register(module)
}

/// Kind, parameters, and buckets of (lower, upper, weight) for `empirical`.
type PlainDistribution = (String, Vec<f64>, Vec<(f64, f64, f64)>);

fn distribution(plain: &PlainDistribution, place: &str) -> Result<Distribution, SimError> {
    let (kind, numbers, buckets) = plain;
    let made = match (kind.as_str(), numbers.as_slice()) {
        ("constant", [value]) => Distribution::Constant(Constant(*value)),
        ("uniform", [low, high]) => Distribution::Uniform(Uniform {
            low: *low,
            high: *high,
        }),
        ("exponential", [mean]) => Distribution::Exponential(Exponential { mean: *mean }),
        ("erlang", [mean, stages]) => Distribution::Erlang(Erlang {
            mean: *mean,
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // `as` saturates
            stages: *stages as u32,
        }),
        ("normal", [mean, deviation]) => Distribution::Normal(Normal {
            mean: *mean,
            deviation: *deviation,
        }),
        ("lognormal", [mean, variation]) => {
            Distribution::LogNormal(LogNormal::from_mean(*mean, *variation))
        }
        ("pareto", [mean, shape]) => Distribution::Pareto(Pareto::from_mean(*mean, *shape)),
        ("empirical", []) => match Empirical::from_buckets(buckets) {
            Some(found) => Distribution::Empirical(Arc::new(found)),
            None => return Err(no_distribution(place, "buckets without weight")),
        },
        _ => return Err(no_distribution(place, &format!("{kind} of {numbers:?}"))),
    };
    made.check(place)?;
    Ok(made)
}

fn no_distribution(place: &str, found: &str) -> SimError {
    let expected = "a distribution: constant, uniform, exponential, erlang, normal, lognormal, pareto or empirical";
    SimError::new(place, found, expected, "Correct the scenario.")
}

type Run<M> = Simulation<M, TraceHash>;

/// What becomes of a run between two slices.
enum Ended {
    Whole,
    Overrun,
    Stopped(PyErr),
}

/// Runs to `end`; signals and `progress`, told the virtual time in ns, are looked after between slices.
fn run_to<M: Model<Event: Hash>>(
    run: &mut Run<M>,
    end: Nanos,
    progress: Option<&Py<PyAny>>,
) -> Ended {
    loop {
        let handled = run.run(end, SLICE_EVENTS);
        if run.is_stopped() {
            return Ended::Overrun;
        }
        let now = run.now();
        let told = Python::attach(|py| {
            progress.map_or(Ok(()), |call| call.call1(py, (now,)).map(drop))?;
            py.check_signals()
        });
        if let Err(error) = told {
            return Ended::Stopped(error);
        }
        if handled < SLICE_EVENTS {
            return Ended::Whole;
        }
    }
}

fn overrun<M: Model<Event: Hash>>(run: &Run<M>) -> SimError {
    SimError::new(
        format!("after {:.3} s", leadline_sim::time::seconds(run.now())),
        "more requests waiting than a run keeps",
        "a system that can do what it is offered",
        "Lower the rate of an open stream, or give it outstanding requests instead.",
    )
}

/// A model that warmed up and was measured, and what to say of any: the hash of its trace, its number of events.
///
/// Both spans are ns of virtual time; `measure` lets measuring begin.
fn ran<'py, M>(
    py: Python<'py>,
    made: Result<M, SimError>,
    (warm_up, measured): (Nanos, Nanos),
    progress: Option<&Py<PyAny>>,
    measure: impl FnOnce(&mut M, Nanos) + Send,
) -> PyResult<(Run<M>, Bound<'py, PyDict>)>
where
    M: Model<Event: Hash> + Send,
    Run<M>: Send,
{
    let failed = |error: SimError| simulation_error(py, &error);
    let mut run = Simulation::observed(made.map_err(failed)?, TraceHash::default());
    let ended = py.detach(|| {
        let ended = run_to(&mut run, warm_up, progress);
        if !matches!(ended, Ended::Whole) {
            return ended;
        }
        measure(&mut run.model, warm_up);
        run_to(&mut run, warm_up.saturating_add(measured), progress)
    });
    match ended {
        Ended::Stopped(error) => return Err(error),
        Ended::Overrun => return Err(failed(overrun(&run))),
        Ended::Whole => run.check().map_err(failed)?,
    }
    let found = PyDict::new(py);
    found.set_item("trace", format!("{:016x}", run.observer.value()))?;
    found.set_item("event_count", run.event_count())?;
    Ok((run, found))
}

/// L, rate per second, W in seconds, imbalance.
fn plain_little(own: Little) -> (f64, f64, f64, f64) {
    let imbalance = own.imbalance();
    (
        own.in_system_mean,
        own.rate_per_second,
        own.residence_seconds_mean,
        imbalance,
    )
}

/// Mean, half width, batches, correlation.
fn plain_interval(own: Interval) -> (f64, f64, usize, f64) {
    (own.mean, own.half_width, own.batch_count, own.correlation)
}

fn columns<'py>(py: Python<'py>, histogram: &LogLinear) -> [Bound<'py, PyAny>; 3] {
    let held: Vec<_> = histogram.buckets().collect();
    let column = |value: fn(&leadline_sim::measure::Bucket) -> u64| {
        let values: Vec<u64> = held.iter().map(value).collect();
        values.into_pyarray(py).into_any()
    };
    [
        column(|bucket| bucket.lower),
        column(|bucket| bucket.upper),
        column(|bucket| bucket.count),
    ]
}

/// What is measured of requests, as plain data; `before` is the same of the warm-up.
fn io_found<'py>(
    py: Python<'py>,
    own: &IoMeasures,
    before: &IoMeasures,
    now: Nanos,
) -> PyResult<Bound<'py, PyDict>> {
    let found = PyDict::new(py);
    found.set_item("little", own.total.little(now).map(plain_little))?;
    found.set_item("inside_mean", own.total.inside().mean(now))?;
    found.set_item("inside_end", own.total.inside().level())?;
    found.set_item("rate_interval", own.rate.interval().map(plain_interval))?;
    let latency = own.in_order.interval_after(0).map(plain_interval);
    found.set_item("latency_interval", latency)?;
    found.set_item("steady_after", own.in_order.warm_up())?;
    found.set_item("series", io_series(py, own)?)?;
    found.set_item("warm_up", io_series(py, before)?)?;
    let mut done = Vec::new();
    for own in own.done.iter().flatten() {
        let way = PyDict::new(py);
        way.set_item("count", own.responses.count())?;
        way.set_item("bytes", own.bytes)?;
        way.set_item("mean", own.responses.mean())?;
        way.set_item("histogram", columns(py, own.responses.histogram()))?;
        done.push(way);
    }
    found.set_item("done", done)?;
    Ok(found)
}

fn io_series<'py>(py: Python<'py>, own: &IoMeasures) -> PyResult<Bound<'py, PyDict>> {
    let found = PyDict::new(py);
    found.set_item("count", own.latency_ms.counts().into_pyarray(py))?;
    found.set_item("latency_ms", own.latency_ms.means().into_pyarray(py))?;
    found.set_item("latency_ms_max", own.latency_ms.maxima().into_pyarray(py))?;
    found.set_item("bytes", own.bytes.sums().into_pyarray(py))?;
    Ok(found)
}
