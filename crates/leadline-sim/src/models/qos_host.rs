//! Virtual machines before a scheduler and a device.
//!
//! # Model
//! Each machine's source issues requests; its own limit, if it has one, delays them; then they wait at the scheduler
//! until the device has a free slot, are served and answer the source.
//!
//! # Assumptions
//! The device takes as many requests at once as its queue is deep, and asks the scheduler whenever a slot is free.
//!
//! # Parameters
//! For each machine source, size of requests, limit; the scheduler ([`Fifo`](super::Fifo), [`Sfq`](super::Sfq),
//! [`MClock`](super::MClock), [`sioc_v2`](super::sioc_v2)); the device's queue depth and service.
//!
//! # Limits
//! One host. Several hosts before one array are [`PardaCluster`](super::PardaCluster).
//!
//! # Sources
//! Gulati, Merchant and Varman, "mClock" (OSDI 2010), section 3 and figure 2, for the place of the scheduler.

use std::collections::VecDeque;

use super::arrivals::Arrivals;
use super::cost::CostRule;
use super::discipline::{Discipline, Next};
use super::qos_known::Known;
use super::request::{Request, VmRequest};
use super::service::Service;
use super::station::{Station, Waiting};
use super::token_bucket::IopsLimit;
use super::wakes::Wakes;
use crate::kernel::{Model, Schedule};
use crate::measure::{Durations, WindowSeries};
use crate::sources::{RequestMix, Source};
use crate::time::{Nanos, millis, whole};
use leadline_stats::error::LeadlineError;

/// Sizes of a machine's requests.
#[derive(Clone, Debug)]
pub enum RequestSize {
    /// All alike, bytes.
    Fixed(u32),
    /// As they come.
    Mixed(RequestMix),
}

impl RequestSize {
    #[inline]
    pub(super) fn draw(&mut self) -> u32 {
        match self {
            Self::Fixed(bytes) => *bytes,
            Self::Mixed(mix) => mix.draw().bytes,
        }
    }
}

/// A virtual machine: what it asks for, and what it got.
#[derive(Clone, Debug)]
pub struct QosVm<A> {
    pub(super) source: A,
    pub(super) size: RequestSize,
    limit: Option<IopsLimit>,
    /// Requests that the limit delays.
    delayed: VecDeque<VmRequest>,
    /// Times from issue to completion; their count is the number completed.
    pub responses: Durations,
    /// Bytes of completed requests.
    pub bytes_completed: u64,
    /// Completions and their response times, ms, over time.
    pub series: Option<WindowSeries>,
}

impl<A: Source> QosVm<A> {
    /// A machine without limit of its own.
    #[must_use]
    pub fn new(source: A, size: RequestSize) -> Self {
        Self {
            source,
            size,
            limit: None,
            delayed: VecDeque::new(),
            responses: Durations::default(),
            bytes_completed: 0,
            series: None,
        }
    }

    /// The same with a limit that delays before the scheduler sees a request.
    #[must_use]
    pub fn limited(self, limit: IopsLimit) -> Self {
        Self {
            limit: Some(limit),
            ..self
        }
    }

    /// The same with a series of windows of this width, ns.
    #[must_use]
    pub fn with_series(self, width: Nanos) -> Self {
        Self {
            series: Some(WindowSeries::new(width)),
            ..self
        }
    }

    #[inline]
    pub(super) fn complete(&mut self, now: Nanos, issued: Nanos, bytes: u32) {
        let response = now - issued;
        self.responses.record(response);
        self.bytes_completed += u64::from(bytes);
        if let Some(series) = &mut self.series {
            series.record(now, millis(response));
        }
    }

    pub(super) fn restart_measuring(&mut self) {
        self.responses = Durations::default();
        self.bytes_completed = 0;
    }
}

/// What happens in [`QosHost`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QosEvent {
    /// A machine's source issues a request.
    Issue(u32),
    /// A machine's limit lets its oldest request through.
    Admit(u32),
    /// A slot of the device is free.
    Finish(u32),
    /// Something may go that had to wait.
    Wake,
}

/// Virtual machines, a scheduler, a device.
#[derive(Clone, Debug)]
pub struct QosHost<A, D, V> {
    vms: Vec<QosVm<A>>,
    /// Scheduler and device, with their measurements; waiting times are those at the scheduler.
    pub station: Station<VmRequest, V, D>,
    wakes: Wakes,
    known: Option<Known>,
}

impl<A: Source, D: Discipline<Waiting<VmRequest>>, V: Service<VmRequest>> QosHost<A, D, V> {
    /// Machines before `scheduler`, whose clients they are by index, and a device `depth` requests deep.
    #[must_use]
    pub fn new(vms: Vec<QosVm<A>>, scheduler: D, depth: u32, device: V) -> Self {
        Self {
            vms,
            station: Station::new(depth, device, scheduler),
            wakes: Wakes::default(),
            known: None,
        }
    }

    /// The machines.
    #[must_use]
    pub fn vms(&self) -> &[QosVm<A>] {
        &self.vms
    }

    /// Forgets all measurements but the series: the end of the warm-up.
    pub fn restart_measuring(&mut self, now: Nanos) {
        self.station.restart_measuring(now);
        for vm in &mut self.vms {
            vm.restart_measuring();
        }
    }

    #[inline]
    fn issue(&mut self, now: Nanos, index: u32, schedule: &mut Schedule<QosEvent>) {
        let vm = &mut self.vms[index as usize];
        if self.known.is_none() {
            if let Some(time) = vm.source.postpone(now) {
                schedule.at(time, QosEvent::Issue(index));
                return;
            }
            if let Some(time) = vm.source.after_issue(now) {
                schedule.at(time, QosEvent::Issue(index));
            }
        }
        let request = VmRequest {
            vm: index,
            bytes: vm.size.draw(),
            issued: now,
        };
        let Some(limit) = &mut vm.limit else {
            self.station.arrive(now, request);
            return;
        };
        let admitted = limit.admit(now, u64::from(request.bytes));
        vm.delayed.push_back(request);
        schedule.at(admitted, QosEvent::Admit(index));
    }

    /// A request that was delayed goes on, or something may go that had to wait.
    #[inline(never)]
    fn let_through(&mut self, now: Nanos, event: QosEvent) {
        let QosEvent::Admit(index) = event else {
            self.wakes.came();
            return;
        };
        if let Some(request) = self.vms[index as usize].delayed.pop_front() {
            self.station.arrive(now, request);
        }
    }

    #[inline]
    fn finish(&mut self, now: Nanos, slot: u32, schedule: &mut Schedule<QosEvent>) {
        let Some(finished) = self.station.finish(now, slot) else {
            return;
        };
        let request = finished.job;
        let vm = &mut self.vms[request.vm as usize];
        vm.complete(now, request.issued, request.bytes);
        if let Some(time) = vm.source.after_completion(now) {
            schedule.at(time, QosEvent::Issue(request.vm));
        }
    }

    /// The first requests of all sources, if their requests can be known ahead.
    fn know(&mut self) -> Option<Known> {
        let is_known = |vm: &QosVm<A>| vm.limit.is_none() && vm.source.is_known_ahead();
        if !self.vms.iter().all(is_known) {
            return None;
        }
        let firsts = self.vms.iter_mut().map(|vm| vm.source.first(0));
        let mut known = Known {
            arrivals: Arrivals::new(firsts.map(|time| time.unwrap_or(Nanos::MAX)).collect()),
            handled: 0,
            wakes: Vec::new(),
            services: vec![0; self.station.server_count()],
            is_wake: false,
            time: Nanos::MAX,
        };
        fill(&mut known.arrivals, &mut self.vms);
        known.look(Nanos::MAX);
        Some(known)
    }

    /// Sets what comes next of what is known.
    #[inline]
    fn know_next(&mut self, now: Nanos) {
        if let Some(known) = &mut self.known {
            if known.arrivals.is_spent() {
                fill(&mut known.arrivals, &mut self.vms);
            }
            known.look(self.wakes.next().max(now));
        }
    }

    #[inline]
    fn start_services(&mut self, now: Nanos, schedule: &mut Schedule<QosEvent>) {
        loop {
            match self.station.start(now) {
                Next::Job(started) => {
                    if let Some(known) = &mut self.known {
                        known.services[started.server as usize] = known.handled;
                    }
                    schedule.at(started.end, QosEvent::Finish(started.server));
                }
                Next::Wait(until) => {
                    if self.wakes.wants(until) {
                        match &mut self.known {
                            Some(known) => known.wakes.push(known.handled),
                            None => schedule.at(until, QosEvent::Wake),
                        }
                    }
                    return;
                }
                Next::Empty => return,
            }
        }
    }
}

impl<A: Source, D: Discipline<Waiting<VmRequest>>, V: Service<VmRequest>> Model
    for QosHost<A, D, V>
{
    type Event = QosEvent;

    fn start(&mut self, schedule: &mut Schedule<QosEvent>) {
        self.known = self.know();
        if self.known.is_some() {
            return;
        }
        for (index, vm) in (0..).zip(&mut self.vms) {
            while let Some(time) = vm.source.first(schedule.now()) {
                schedule.at(time, QosEvent::Issue(index));
            }
        }
    }

    #[inline]
    fn known_time(&self) -> Nanos {
        self.known.as_ref().map_or(Nanos::MAX, |known| known.time)
    }

    #[inline]
    fn goes_before(&self, scheduled: &QosEvent) -> bool {
        let (Some(known), QosEvent::Finish(slot)) = (&self.known, scheduled) else {
            return false;
        };
        let (stamp, is_wake) = known.stamp();
        let service = known.services[*slot as usize];
        stamp < service || (stamp == service && !is_wake)
    }

    #[inline]
    fn take_known(&mut self) -> Option<QosEvent> {
        let known = self.known.as_mut()?;
        if known.is_wake {
            known.wakes.pop();
            return Some(QosEvent::Wake);
        }
        Some(QosEvent::Issue(known.arrivals.take(known.handled + 1)))
    }

    fn known_count(&self) -> usize {
        self.known
            .as_ref()
            .map_or(0, |known| known.wakes.len() + self.vms.len())
    }

    #[inline]
    fn handle(&mut self, now: Nanos, event: QosEvent, schedule: &mut Schedule<QosEvent>) {
        if let Some(known) = &mut self.known {
            known.handled += 1;
        }
        if let QosEvent::Finish(slot) = event {
            let nothing_may_go =
                self.known.is_some() && self.station.is_free() && self.wakes.next() > now;
            self.finish(now, slot, schedule);
            if nothing_may_go {
                // The scheduler was asked with a slot free, and nothing has come or may go since.
                self.know_next(now);
                return;
            }
        } else if let QosEvent::Issue(index) = event {
            self.issue(now, index, schedule);
        } else {
            self.let_through(now, event);
        }
        self.start_services(now, schedule);
        self.know_next(now);
    }

    fn check(&self, now: Nanos) -> Result<(), LeadlineError> {
        self.station.check("host", now)
    }
}

/// Draws the next requests of all machines, however long until there is one.
#[cold]
fn fill<A: Source>(arrivals: &mut Arrivals, vms: &mut [QosVm<A>]) {
    arrivals.fill(|index, time| {
        let source = &mut vms[index as usize].source;
        source.after_issue(time).unwrap_or(Nanos::MAX)
    });
}

/// A device that serves at a fixed rate, shared by what is in its queue: n requests in it at once take n times as
/// long each. With a full queue its throughput is the rate, with a single request never more than 1 by its latency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SharedRate {
    /// ns for one request of cost 1 alone.
    gap: f64,
    latency: f64,
    cost: CostRule,
}

impl SharedRate {
    /// Requests of cost 1 per second, above 0, and the least time for a request, ns.
    #[must_use]
    pub fn new(per_second: f64, latency: Nanos, cost: CostRule) -> Self {
        Self {
            gap: crate::time::SECOND as f64 / per_second,
            latency: latency as f64,
            cost,
        }
    }
}

impl<J: Request> Service<J> for SharedRate {
    #[inline]
    fn time(&mut self, _now: Nanos, job: &J, busy_count: u64) -> Nanos {
        let time = self.gap * busy_count as f64 * self.cost.cost(job.bytes());
        whole(time.max(self.latency))
    }
}
