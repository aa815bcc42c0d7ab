//! Systems as documents: what a scenario says goes in as JSON, what was measured comes out as JSON.
//!
//! A document is a system's `Spec` with times in ns, sizes in bytes, rates per second and shares from 0 to 1; lengths of
//! time that are drawn are as scenario files have them (see [`crate::random::Distribution`]). Keys that a system does not
//! know are errors. Numbers that are not finite are `null` in both directions.

use std::hash::Hash;
use std::ops::ControlFlow;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};

use crate::kernel::{Model, Simulation};
use crate::measure::TraceHash;
use crate::models::{SYSTEMS, read_cache};
use crate::sources::Recording;
use crate::time::Nanos;
use leadline_stats::error::LeadlineError;

/// Events between two looks at the watcher: some 10 ms.
const SLICE_EVENTS: u64 = 50_000;

/// Is told the share of a run that is done, 0 to 1, and says whether it goes on.
pub type Watch<'a> = dyn FnMut(f64) -> ControlFlow<()> + 'a;

/// Runs a system: its document and what was recorded in, its outcome as JSON out.
pub type Runner = fn(&str, &[Recorded], &mut Watch<'_>) -> Result<String, Failure>;

/// What a document names by its index, because it is too much to write down.
#[derive(Clone, Debug)]
pub enum Recorded {
    /// Requests that are replayed.
    Requests(Recording),
    /// Uses of a cache.
    Uses(Arc<read_cache::Uses>),
}

/// Why there is no outcome.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    /// The document makes no run, or the run broke a law.
    Wrong(LeadlineError),
    /// The watcher ended it.
    Stopped,
}

impl From<LeadlineError> for Failure {
    fn from(error: LeadlineError) -> Self {
        Self::Wrong(error)
    }
}

/// A document with the warm-up and the measured time of the run, ns.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timed<S> {
    /// Before measuring.
    pub warm_up: Nanos,
    /// While measuring.
    pub measured: Nanos,
    /// The system.
    pub spec: S,
}

/// What every outcome begins with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Head {
    /// Hash over every event in order: the same on every machine.
    pub trace: String,
    /// Events, or steps.
    pub event_count: u64,
}

impl Head {
    /// From the hash of a trace.
    #[must_use]
    pub fn new(trace: u64, event_count: u64) -> Self {
        Self {
            trace: format!("{trace:016x}"),
            event_count,
        }
    }
}

/// Runs the system of that name, one of [`SYSTEMS`].
///
/// # Errors
/// When there is no such system, the document makes no run, the run broke a law, or the watcher ended it.
pub fn simulate(
    system: &str,
    document: &str,
    recorded: &[Recorded],
    watch: &mut Watch<'_>,
) -> Result<String, Failure> {
    let Some((_, runner)) = SYSTEMS.iter().find(|(name, _)| *name == system) else {
        let names: Vec<_> = SYSTEMS.iter().map(|(name, _)| *name).collect();
        let error = LeadlineError::new("system", system, names.join(", "), "Name one of these.");
        return Err(error.into());
    };
    runner(document, recorded, watch)
}

/// Reads a document, runs it, and writes its outcome: what every [`Runner`] does.
///
/// # Errors
/// Those of `simulate`, and when the document is not one of this system.
pub fn run<D: DeserializeOwned, O: Serialize>(
    document: &str,
    simulate: impl FnOnce(D) -> Result<O, Failure>,
) -> Result<String, Failure> {
    let mut reader = serde_json::Deserializer::from_str(document);
    let document = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let place = format!("scenario: {}", error.path());
        LeadlineError::new(
            place,
            error.inner().to_string(),
            "a document of this system",
            ADVICE,
        )
    })?;
    let outcome = simulate(document)?;
    serde_json::to_string(&outcome).map_err(|error| {
        let advice = "Please report it with the scenario.";
        LeadlineError::new("outcome", error.to_string(), "numbers and names", advice).into()
    })
}

const ADVICE: &str = "Correct the scenario.";

/// A run whose events are hashed.
pub type Run<M> = Simulation<M, TraceHash>;

/// Lets a model warm up and be measured for so many ns each; `restart` lets measuring begin.
///
/// # Errors
/// When there is no model, more waits than a run keeps, a law is broken, or the watcher ends it.
pub fn measured<M: Model<Event: Hash>>(
    model: Result<M, LeadlineError>,
    (warm_up, measured): (Nanos, Nanos),
    watch: &mut Watch<'_>,
    restart: impl FnOnce(&mut M, Nanos),
) -> Result<(Run<M>, Head), Failure> {
    let mut run = Simulation::observed(model?, TraceHash::default());
    let end = warm_up.saturating_add(measured);
    let total = end.max(1) as f64;
    let mut share = |now: Nanos| watch(now as f64 / total);
    run_to(&mut run, warm_up, &mut share)?;
    restart(&mut run.model, warm_up);
    run_to(&mut run, end, &mut share)?;
    run.check()?;
    let head = Head::new(run.observer.value(), run.event_count());
    Ok((run, head))
}

/// Runs to `end`; the watcher is asked between slices.
fn run_to<M: Model<Event: Hash>>(
    run: &mut Run<M>,
    end: Nanos,
    watch: &mut impl FnMut(Nanos) -> ControlFlow<()>,
) -> Result<(), Failure> {
    loop {
        let handled = run.run(end, SLICE_EVENTS);
        if run.is_stopped() {
            return Err(overrun(run.now()).into());
        }
        if watch(run.now()).is_break() {
            return Err(Failure::Stopped);
        }
        if handled < SLICE_EVENTS {
            return Ok(());
        }
    }
}

fn overrun(now: Nanos) -> LeadlineError {
    LeadlineError::new(
        format!("after {:.3} s", crate::time::seconds(now)),
        "more requests waiting than a run keeps",
        "a system that can do what it is offered",
        "Lower the rate of an open stream, or give it outstanding requests instead.",
    )
}

/// A number of a document that is `null` where it is infinite.
///
/// # Errors
/// When it is no number.
pub fn or_infinite<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::<f64>::deserialize(deserializer)?.unwrap_or(f64::INFINITY))
}
