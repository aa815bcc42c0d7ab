//! Two loads to measure the kernel with. The caller holds the watch: there is no clock in this crate.
//!
//! Source: Jones, "An empirical comparison of priority-queue and event-set implementations" (CACM 29, 1986) for the hold
//! model.

use crate::kernel::{Model, Schedule, Simulation};
use crate::models::{Drawn, Queueing};
use crate::random::{Exponential, Sample, Stream, Streams};
use crate::sources::Renewal;
use crate::time::{MILLISECOND, Nanos};

/// What a yardstick did, for the caller to divide by the time it took and to see that it is right.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Done {
    /// Events handled.
    pub event_count: u64,
    /// Virtual time at the end, ns.
    pub now: Nanos,
    /// M/M/1: mean waiting time, ns (4 ms in theory); hold: NaN.
    pub wait_mean: f64,
}

/// The M/M/1 system of the yardstick: 800 requests/s, service 1 ms, so that the server is 80 % busy.
#[must_use]
pub fn mm1_model(seed: u64) -> Queueing<Renewal<Exponential>, Drawn<Exponential>> {
    let streams = Streams::new(seed);
    let source = Renewal::poisson(800.0, streams.stream("source", "gaps"));
    let mean = MILLISECOND as f64;
    let service = Drawn::new(Exponential { mean }, streams.stream("server", "times"));
    Queueing::new(source, 1, service)
}

/// Handles `events` events of an M/M/1 system with all its measurements; an arrival and a departure are one each.
#[must_use]
pub fn mm1(events: u64, seed: u64) -> Done {
    let mut simulation = Simulation::new(mm1_model(seed));
    simulation.run_events(events);
    Done {
        event_count: simulation.event_count(),
        now: simulation.now(),
        wait_mean: simulation.model.station.waits().mean().unwrap_or(f64::NAN),
    }
}

/// The hold model: `pending` events; each, when it happens, schedules itself again an exponential time later.
#[derive(Clone, Debug)]
pub struct Hold {
    pending: u32,
    gap: Exponential,
    stream: Stream,
}

impl Hold {
    /// `pending` events at 1 µs from each other on average.
    #[must_use]
    pub fn new(pending: u32, seed: u64) -> Self {
        Self {
            pending,
            gap: Exponential {
                mean: 1_000.0 * f64::from(pending),
            },
            stream: Streams::new(seed).stream("hold", "gaps"),
        }
    }
}

impl Model for Hold {
    type Event = u32;

    fn start(&mut self, schedule: &mut Schedule<u32>) {
        for event in 0..self.pending {
            schedule.after(self.gap.sample(&mut self.stream), event);
        }
    }

    #[inline]
    fn handle(&mut self, _now: Nanos, event: u32, schedule: &mut Schedule<u32>) {
        schedule.after(self.gap.sample(&mut self.stream), event);
    }
}

/// Handles `events` events of the hold model.
#[must_use]
pub fn hold(pending: u32, events: u64, seed: u64) -> Done {
    let mut simulation = Simulation::new(Hold::new(pending, seed));
    simulation.run_events(events);
    Done {
        event_count: simulation.event_count(),
        now: simulation.now(),
        wait_mean: f64::NAN,
    }
}
