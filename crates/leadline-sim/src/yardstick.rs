//! Loads to measure the kernel with. The caller holds the watch: there is no clock in this crate.
//!
//! Source: Jones, "An empirical comparison of priority-queue and event-set implementations" (CACM 29, 1986) for the hold
//! model.

use crate::kernel::{Model, Schedule, Simulation};
use crate::models::{
    CostRule, Discipline, Drawn, MClock, Next, QosHost, QosPolicy, QosVm, Queueing, RequestSize,
    SharedRate, VmRequest, Waiting,
};
use crate::random::{Exponential, Sample, Stream, Streams};
use crate::sources::Renewal;
use crate::time::{MICROSECOND, MILLISECOND, Nanos, SECOND, whole};
use leadline_stats::error::LeadlineError;

/// What a yardstick did, for the caller to divide by the time it took and to see that it is right.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Done {
    /// Events handled.
    pub event_count: u64,
    /// Virtual time at the end, ns.
    pub now: Nanos,
    /// M/M/1 and host: mean waiting time, ns (M/M/1: 4 ms in theory); hold: NaN.
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

/// A host of the yardstick, see [`host_model`].
pub type Host = QosHost<Renewal<Exponential>, MClock<Waiting<VmRequest>>, SharedRate>;

/// Machines of 1,000 IOPS each (Poisson, 8 KB) under mClock, each with a reservation of 500 and a limit of 1,500 IOPS,
/// on a device 64 deep that is 83 % busy.
///
/// # Errors
/// Never, as its policies make sense.
pub fn host_model(machines: u32, seed: u64) -> Result<Host, LeadlineError> {
    let streams = Streams::new(seed);
    let vm = |index: u32| {
        let stream = streams.stream(&format!("vm{index}"), "gaps");
        QosVm::new(Renewal::poisson(1_000.0, stream), RequestSize::Fixed(8_192))
    };
    let policy = QosPolicy::weighing(2.0).reserving(500.0).limited(1_500.0);
    let policies = vec![policy; machines as usize];
    let scheduler = MClock::new(&policies, CostRule::Request)?;
    let rate = 1_200.0 * f64::from(machines);
    let device = SharedRate::new(rate, 200 * MICROSECOND, CostRule::Request);
    Ok(QosHost::new(
        (0..machines).map(vm).collect(),
        scheduler,
        64,
        device,
    ))
}

/// Runs the host for `length` of virtual time, ns.
///
/// # Errors
/// Never, as its policies make sense.
pub fn host(machines: u32, length: Nanos, seed: u64) -> Result<Done, LeadlineError> {
    let mut simulation = Simulation::new(host_model(machines, seed)?);
    simulation.run_until(length);
    Ok(Done {
        event_count: simulation.event_count(),
        now: simulation.now(),
        wait_mean: simulation.model.station.waits().mean().unwrap_or(f64::NAN),
    })
}

/// Decisions per virtual second and client; reservations and limits of [`policies`] lie around it.
const RATE: f64 = 100.0;
/// Clients of [`Deciding`] always have this many requests waiting.
const BACKLOG: u32 = 2;

/// A third each of the clients has a reservation, a limit, both; a few weights.
#[must_use]
pub fn policies(count: u32, stream: &mut Stream) -> Vec<QosPolicy> {
    let policy = |index: u32| {
        let weight = (1 + stream.below(4)) as f64;
        let policy = QosPolicy::weighing(weight);
        match index % 3 {
            0 => policy.reserving(RATE * (0.2 + 0.4 * stream.unit())),
            1 => policy.limited(RATE * (0.8 + stream.unit())),
            _ => policy
                .reserving(RATE * 0.3)
                .limited(RATE * (0.8 + stream.unit())),
        }
    };
    (0..count).map(policy).collect()
}

/// A scheduler whose clients always have requests waiting.
#[derive(Clone, Debug)]
pub struct Deciding<D> {
    scheduler: D,
    now: Nanos,
    part: f64,
    gap: f64,
}

impl<D: Discipline<VmRequest>> Deciding<D> {
    /// With the backlog of so many clients, after 20 decisions for each.
    #[must_use]
    pub fn new(mut scheduler: D, clients: u32) -> Self {
        for vm in 0..clients {
            for _ in 0..BACKLOG {
                scheduler.push(0, small(vm, 0));
            }
        }
        let mut made = Self {
            scheduler,
            now: 0,
            part: 0.0,
            gap: SECOND as f64 / RATE / f64::from(clients),
        };
        for _ in 0..20 * u64::from(clients) {
            made.step();
        }
        made
    }

    /// One decision and the arrival of the next request of the client that was served, as the simulations of public
    /// implementations count: add and take. Whether one was served.
    #[inline]
    pub fn step(&mut self) -> bool {
        self.part += self.gap;
        let passed = whole(self.part - 0.5);
        self.now += passed;
        self.part -= passed as f64;
        let Next::Job(job) = self.scheduler.next(self.now) else {
            return false;
        };
        self.scheduler.push(self.now, small(job.vm, self.now));
        true
    }
}

fn small(vm: u32, now: Nanos) -> VmRequest {
    VmRequest {
        vm,
        bytes: 4_096,
        issued: now,
    }
}

/// A scheduler under mClock with so many clients, ready to decide.
///
/// # Errors
/// Never, as its policies make sense.
pub fn deciding(clients: u32, seed: u64) -> Result<Deciding<MClock<VmRequest>>, LeadlineError> {
    let policies = policies(
        clients,
        &mut Streams::new(seed).stream("yardstick", "policies"),
    );
    let scheduler = MClock::new(&policies, CostRule::Request)?;
    Ok(Deciding::new(scheduler, clients))
}
