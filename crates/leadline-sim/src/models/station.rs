//! Servers with a queue before them.
//!
//! # Model
//! Jobs arrive, wait in an order that a [`Discipline`] decides, are served by one of c equal servers for a time that a
//! [`Service`] decides, and leave.
//!
//! # Assumptions
//! The queue has no end; service is never interrupted.
//!
//! # Parameters
//! Servers, discipline, service.
//!
//! # Limits
//! Measures waiting and residence times, numbers in the system and busy servers itself. The integral of the number
//! in the system must equal the sum of the residence times, to the nanosecond, at every instant of every run: Little's
//! law without its limit. [`Station::check`] says so or names the difference; a job that left with another's time of
//! arrival is found when the system is next empty, at the latest.
//!
//! # Sources
//! Little, "A proof for the queuing formula L = λW" (Operations Research 9, 1961); Little and Whitt, "Little's law" (2008) for
//! the law over a finite interval.

use super::discipline::{Discipline, Fifo, Next};
use super::service::Service;
use crate::measure::{Durations, TimeWeighted};
use crate::time::Nanos;
use leadline_stats::error::LeadlineError;

/// A job and when it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting<J> {
    /// The job.
    pub job: J,
    /// When it arrived, ns.
    pub arrived: Nanos,
}

#[derive(Clone, Copy, Debug)]
struct Serving<J> {
    waiting: Waiting<J>,
    started: Nanos,
}

/// A service that begins: schedule its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Started {
    /// Which server, to hand to [`Station::finish`].
    pub server: u32,
    /// When it ends, ns.
    pub end: Nanos,
}

/// A job that leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished<J> {
    /// The job.
    pub job: J,
    /// When it arrived, ns.
    pub arrived: Nanos,
    /// When its service began, ns.
    pub started: Nanos,
}

/// The three quantities of Little's law over the measured time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Little {
    /// L, jobs in the system on average.
    pub in_system_mean: f64,
    /// λ, jobs leaving per second.
    pub rate_per_second: f64,
    /// W, mean residence time of those that left, seconds.
    pub residence_seconds_mean: f64,
}

impl Little {
    /// λW / L - 1: what those at both ends of the measured time, and not wholly within it, make of the law; 0 when nothing
    /// was in the system.
    #[must_use]
    pub fn imbalance(&self) -> f64 {
        if self.in_system_mean == 0.0 {
            return 0.0;
        }
        self.rate_per_second * self.residence_seconds_mean / self.in_system_mean - 1.0
    }
}

/// c servers and their queue.
#[derive(Clone, Debug)]
pub struct Station<J, V, D = Fifo<Waiting<J>>> {
    discipline: D,
    service: V,
    serving: Vec<Option<Serving<J>>>,
    idle: Vec<u32>,
    measured_from: Nanos,
    in_system: TimeWeighted,
    busy: TimeWeighted,
    waits: Durations,
    residences: Durations,
    /// Sum over the jobs inside of arrival times, or of the start of measurement for those that came before it.
    inside_since: u128,
    /// Sum of the parts of residence times that lie in the measured time, of jobs that left.
    left_sum: u128,
}

impl<J: Copy, V: Service<J>> Station<J, V> {
    /// `server_count` servers, at least one, first come, first served.
    #[must_use]
    pub fn fifo(server_count: u32, service: V) -> Self {
        Self::new(server_count, service, Fifo::default())
    }
}

impl<J: Copy, V: Service<J>, D: Discipline<Waiting<J>>> Station<J, V, D> {
    /// `server_count` servers, at least one, with this discipline.
    #[must_use]
    pub fn new(server_count: u32, service: V, discipline: D) -> Self {
        let count = server_count.max(1);
        Self {
            discipline,
            service,
            serving: (0..count).map(|_| None).collect(),
            idle: (0..count).rev().collect(),
            measured_from: 0,
            in_system: TimeWeighted::default(),
            busy: TimeWeighted::default(),
            waits: Durations::default(),
            residences: Durations::default(),
            inside_since: 0,
            left_sum: 0,
        }
    }

    /// A job arrives. Call [`Station::start`] next.
    #[inline]
    pub fn arrive(&mut self, now: Nanos, job: J) {
        self.in_system.add(now, 1);
        self.inside_since += u128::from(now);
        self.discipline.push(now, Waiting { job, arrived: now });
    }

    /// Starts one service if a server is free and a job may start. Call until it gives no job; schedule the end of each
    /// service started, and on `Wait` a call at that time.
    #[inline]
    pub fn start(&mut self, now: Nanos) -> Next<Started> {
        let Some(server) = self.idle.last().copied() else {
            return Next::Empty;
        };
        let waiting = match self.discipline.next(now) {
            Next::Job(waiting) => waiting,
            Next::Wait(until) => return Next::Wait(until),
            Next::Empty => return Next::Empty,
        };
        self.idle.pop();
        self.busy.add(now, 1);
        self.waits.record(now - waiting.arrived);
        let time = self.service.time(now, &waiting.job, self.busy.level());
        self.serving[server as usize] = Some(Serving {
            waiting,
            started: now,
        });
        Next::Job(Started {
            server,
            end: now.saturating_add(time),
        })
    }

    /// A service ends; None when the server was idle. Call [`Station::start`] next.
    #[inline]
    pub fn finish(&mut self, now: Nanos, server: u32) -> Option<Finished<J>> {
        let Serving { waiting, started } = self.serving.get_mut(server as usize)?.take()?;
        self.idle.push(server);
        self.busy.sub(now, 1);
        self.in_system.sub(now, 1);
        self.residences.record(now - waiting.arrived);
        let since = waiting.arrived.max(self.measured_from);
        // Wrapping: a discipline that hands out a job twice must reach the check, not end the program here.
        self.inside_since = self.inside_since.wrapping_sub(u128::from(since));
        self.left_sum += u128::from(now - since);
        Some(Finished {
            job: waiting.job,
            arrived: waiting.arrived,
            started,
        })
    }

    /// Forgets all measurements: the end of the warm-up.
    pub fn restart_measuring(&mut self, now: Nanos) {
        self.measured_from = now;
        self.in_system.restart(now);
        self.busy.restart(now);
        (self.waits, self.residences) = (Durations::default(), Durations::default());
        self.inside_since = u128::from(self.in_system.level()) * u128::from(now);
        self.left_sum = 0;
    }

    /// Times from arrival to start of service, of jobs whose service began in the measured time.
    #[must_use]
    pub fn waits(&self) -> &Durations {
        &self.waits
    }

    /// Times from arrival to leaving, of jobs that left in the measured time.
    #[must_use]
    pub fn residences(&self) -> &Durations {
        &self.residences
    }

    /// Jobs waiting or in service.
    #[must_use]
    pub fn in_system(&self) -> &TimeWeighted {
        &self.in_system
    }

    /// How many servers there are.
    #[must_use]
    pub fn server_count(&self) -> usize {
        self.serving.len()
    }

    /// Whether a server is free.
    #[inline]
    #[must_use]
    pub fn is_free(&self) -> bool {
        !self.idle.is_empty()
    }

    /// Busy servers; their mean divided by the number of servers is the utilisation.
    #[must_use]
    pub fn busy(&self) -> &TimeWeighted {
        &self.busy
    }

    /// The order of service.
    pub fn discipline_mut(&mut self) -> &mut D {
        &mut self.discipline
    }

    /// Little's law over the measured time; None before anything left.
    #[must_use]
    pub fn little(&self, now: Nanos) -> Option<Little> {
        let seconds = crate::time::seconds(now - self.measured_from);
        Some(Little {
            in_system_mean: self.in_system.mean(now)?,
            rate_per_second: self.residences.count() as f64 / seconds,
            residence_seconds_mean: self.residences.mean()? / crate::time::SECOND as f64,
        })
    }

    /// Whether time and jobs are conserved.
    ///
    /// # Errors
    /// When the integral of the number in the system is not the sum of the residence times: a job was lost, invented or
    /// mixed up with another.
    pub fn check(&self, name: &str, now: Nanos) -> Result<(), LeadlineError> {
        let area = self.in_system.area(now);
        let level = self.in_system.level();
        let still_inside = (u128::from(level) * u128::from(now)).wrapping_sub(self.inside_since);
        let residences = self.left_sum.wrapping_add(still_inside);
        // Stamps cancel in the sum above; what is left of them must fit the jobs inside, and be nothing without any.
        let earliest = u128::from(level) * u128::from(self.measured_from);
        let latest = u128::from(level) * u128::from(now);
        let stamps_fit = (earliest..=latest).contains(&self.inside_since);
        let held = self.discipline.len() + self.serving.len() - self.idle.len();
        if area == residences && held as u64 == level && stamps_fit {
            return Ok(());
        }
        Err(LeadlineError::new(
            format!("{name} at {now} ns"),
            format!(
                "{area} job-ns by counting, {residences} by residence times, {held} jobs held of {level}, arrivals inside sum to {}",
                self.inside_since
            ),
            "Little's law holds to the nanosecond, and every job is held once and leaves with the arrival it came with",
            "This is a defect of the model, not of the scenario: report it with the scenario and the seed.",
        ))
    }
}
