//! One source, an optional limit, one station: the systems of queueing theory.
//!
//! # Model
//! A source's requests pass a limit that delays them, if there is one, and are served at a station.
//!
//! # Assumptions
//! All requests are of one size.
//!
//! # Parameters
//! Source, limit, bytes per request, station.
//!
//! # Limits
//! With Poisson arrivals and exponential service this is M/M/c, with constant service M/D/1; the tests compare their
//! waiting times with the closed forms.
//!
//! # Sources
//! Kleinrock, "Queueing systems" 1 (1975), sections 3.2 and 3.5 (M/M/1, M/M/c) and 5.6 (M/G/1).

use super::discipline::Next;
use super::service::Service;
use super::station::Station;
use super::token_bucket::IopsLimit;
use crate::kernel::{Model, Schedule};
use crate::measure::{Batches, Durations};
use crate::sources::Source;
use crate::time::Nanos;
use leadline_stats::error::LeadlineError;

/// What happens in [`Queueing`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QueueingEvent {
    /// The source issues a request.
    Issue,
    /// The limit lets a request through that was issued at this time, ns.
    Admit(Nanos),
    /// A server is done.
    Finish(u32),
}

/// A source, a limit and a station.
#[derive(Clone, Debug)]
pub struct Queueing<A, V> {
    source: A,
    limit: Option<IopsLimit>,
    bytes: u64,
    /// The station, with its measurements; its jobs are times of issue.
    pub station: Station<Nanos, V>,
    responses: Durations,
    /// The source's next request, ns; the largest number when there is none or it is in the schedule.
    next_issue: Nanos,
    /// The end of the service, if there is one server, ns; the largest number when it is idle.
    next_finish: Nanos,
    /// Events handled when the request became known, and when the service of each server began: what came first of equal times.
    issue_stamp: u64,
    finish_stamps: Vec<u64>,
    stamp: u64,
    /// Waiting times at the station in order of completion, ns, for intervals and the end of the warm-up; None saves
    /// their cost.
    pub waits_in_order: Option<Batches>,
}

impl<A: Source, V: Service<Nanos>> Queueing<A, V> {
    /// A source before `server_count` servers, without limit.
    #[must_use]
    pub fn new(source: A, server_count: u32, service: V) -> Self {
        Self {
            source,
            limit: None,
            bytes: 0,
            station: Station::fifo(server_count, service),
            responses: Durations::default(),
            next_issue: Nanos::MAX,
            next_finish: Nanos::MAX,
            issue_stamp: 0,
            finish_stamps: vec![0; server_count.max(1) as usize],
            stamp: 0,
            waits_in_order: None,
        }
    }

    /// The same, requests of `bytes` passing a limit first.
    #[must_use]
    pub fn limited(self, limit: IopsLimit, bytes: u64) -> Self {
        Self {
            limit: Some(limit),
            bytes,
            ..self
        }
    }

    /// The same, keeping waiting times in order.
    #[must_use]
    pub fn with_intervals(self) -> Self {
        Self {
            waits_in_order: Some(Batches::default()),
            ..self
        }
    }

    /// Times from issue to completion, the limit's delay included.
    #[must_use]
    pub fn responses(&self) -> &Durations {
        if self.limit.is_some() {
            &self.responses
        } else {
            self.station.residences()
        }
    }

    /// Forgets all measurements: the end of the warm-up.
    pub fn restart_measuring(&mut self, now: Nanos) {
        self.station.restart_measuring(now);
        self.responses = Durations::default();
    }

    #[inline]
    fn start_services(&mut self, now: Nanos, schedule: &mut Schedule<QueueingEvent>) {
        while let Next::Job(started) = self.station.start(now) {
            self.finish_stamps[started.server as usize] = self.stamp;
            if self.finish_stamps.len() == 1 && self.limit.is_none() && self.source.is_known_ahead()
            {
                self.next_finish = started.end;
            } else {
                schedule.at(started.end, QueueingEvent::Finish(started.server));
            }
        }
    }

    /// The source's next request: kept here when it is known ahead, so that no event need be scheduled.
    #[inline]
    fn next_issue(&mut self, time: Nanos, schedule: &mut Schedule<QueueingEvent>) {
        if self.source.is_known_ahead() && self.limit.is_none() {
            self.next_issue = time;
            self.issue_stamp = self.stamp;
        } else {
            schedule.at(time, QueueingEvent::Issue);
        }
    }
}

impl<A: Source, V: Service<Nanos>> Model for Queueing<A, V> {
    type Event = QueueingEvent;

    fn start(&mut self, schedule: &mut Schedule<QueueingEvent>) {
        while let Some(time) = self.source.first(schedule.now()) {
            self.next_issue(time, schedule);
        }
    }

    #[inline]
    fn known_time(&self) -> Nanos {
        self.next_issue.min(self.next_finish)
    }

    #[inline]
    fn goes_before(&self, scheduled: &QueueingEvent) -> bool {
        match scheduled {
            QueueingEvent::Finish(server) => {
                self.issue_stamp <= self.finish_stamps[*server as usize]
            }
            QueueingEvent::Issue | QueueingEvent::Admit(_) => false,
        }
    }

    #[inline]
    fn take_known(&mut self) -> Option<QueueingEvent> {
        let is_issue = self.next_issue < self.next_finish
            || (self.next_issue == self.next_finish && self.issue_stamp <= self.finish_stamps[0]);
        if is_issue {
            self.next_issue = Nanos::MAX;
            return Some(QueueingEvent::Issue);
        }
        self.next_finish = Nanos::MAX;
        Some(QueueingEvent::Finish(0))
    }

    fn known_count(&self) -> usize {
        let times = [self.next_issue, self.next_finish];
        times.iter().filter(|time| **time != Nanos::MAX).count()
    }

    fn check(&self, now: Nanos) -> Result<(), LeadlineError> {
        self.station.check("station", now)
    }

    #[inline]
    fn handle(&mut self, now: Nanos, event: QueueingEvent, schedule: &mut Schedule<QueueingEvent>) {
        self.stamp += 1;
        match event {
            QueueingEvent::Issue => {
                if let Some(time) = self.source.postpone(now) {
                    schedule.at(time, QueueingEvent::Issue);
                    return;
                }
                if let Some(time) = self.source.after_issue(now) {
                    self.next_issue(time, schedule);
                }
                if let Some(limit) = &mut self.limit {
                    let admitted = limit.admit(now, self.bytes);
                    schedule.at(admitted, QueueingEvent::Admit(now));
                    return;
                }
                self.station.arrive(now, now);
            }
            QueueingEvent::Admit(issued) => self.station.arrive(now, issued),
            QueueingEvent::Finish(server) => {
                let Some(finished) = self.station.finish(now, server) else {
                    return;
                };
                if self.limit.is_some() {
                    self.responses.record(now - finished.job);
                }
                if let Some(waits) = &mut self.waits_in_order {
                    waits.record((finished.started - finished.arrived) as f64);
                }
                if let Some(time) = self.source.after_completion(now) {
                    schedule.at(time, QueueingEvent::Issue);
                }
            }
        }
        self.start_services(now, schedule);
    }
}
