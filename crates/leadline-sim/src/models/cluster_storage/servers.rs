//! Disks and network cards: two classes of work before one server, and what it takes.

use std::collections::VecDeque;

use crate::models::device::{Device, Speed};
use crate::models::discipline::{Discipline, Next};
use crate::models::scheduler::Io;
use crate::models::service::Service;
use crate::models::station::Waiting;
use crate::random::Stream;
use crate::time::{Nanos, SECOND, whole};

/// Whose work it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Virtual machines'.
    Guest,
    /// Rebuilding and resynchronising.
    Resync,
}

/// Work of a disk or of one direction of a network card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// Which transfer.
    pub leg: u32,
    /// Whose.
    pub class: Class,
    /// Which fragment it touches.
    pub fragment: u32,
    /// Where in it, bytes.
    pub start: u64,
    /// Its size, bytes.
    pub bytes: u32,
    /// Whether it writes.
    pub is_write: bool,
    /// The time it is expected to take, ns: what it counts as between the classes.
    pub cost: Nanos,
}

/// First come, first served within a class; between the classes, while both wait, by their shares of the server's time
/// (start-time fair queueing of two flows).
#[derive(Clone, Debug)]
pub struct TwoClasses {
    waiting: [VecDeque<Waiting<Job>>; 2],
    /// Costs by share that each class has had, ns.
    tags: [f64; 2],
    shares: [f64; 2],
    now: f64,
}

impl TwoClasses {
    /// Resynchronising gets `share` of the time, above 0 and below 1, while both classes want it.
    #[must_use]
    pub fn new(share: f64) -> Self {
        Self {
            waiting: Default::default(),
            tags: [0.0; 2],
            shares: [1.0 - share, share],
            now: 0.0,
        }
    }
}

impl Discipline<Waiting<Job>> for TwoClasses {
    fn push(&mut self, _now: Nanos, job: Waiting<Job>) {
        let class = job.job.class as usize;
        if self.waiting[class].is_empty() {
            self.tags[class] = self.tags[class].max(self.now);
        }
        self.waiting[class].push_back(job);
    }

    fn next(&mut self, _now: Nanos) -> Next<Waiting<Job>> {
        let class = match (self.waiting[0].is_empty(), self.waiting[1].is_empty()) {
            (true, true) => return Next::Empty,
            (false, true) => 0,
            (true, false) => 1,
            (false, false) => usize::from(self.tags[1] < self.tags[0]),
        };
        let Some(job) = self.waiting[class].pop_front() else {
            return Next::Empty;
        };
        self.now = self.tags[class];
        self.tags[class] += job.job.cost as f64 / self.shares[class];
        Next::Job(job)
    }

    fn len(&self) -> usize {
        self.waiting[0].len() + self.waiting[1].len()
    }
}

/// A disk: its device, and where the last request left it.
#[derive(Clone, Debug)]
pub struct Disk {
    device: Device,
    last: (u32, u64),
}

impl Disk {
    /// Draws from `stream`.
    #[must_use]
    pub fn new(speed: Speed, stream: Stream) -> Self {
        Self {
            device: Device::new(speed, stream),
            last: (u32::MAX, 0),
        }
    }
}

impl Service<Job> for Disk {
    fn time(&mut self, now: Nanos, job: &Job, busy_count: u64) -> Nanos {
        let io = Io {
            slot: job.leg,
            client: job.fragment,
            bytes: job.bytes,
            is_write: job.is_write,
            is_random: self.last != (job.fragment, job.start),
            place: 0,
        };
        self.last = (job.fragment, job.start + u64::from(job.bytes));
        self.device.time(now, &io, busy_count)
    }
}

/// One direction of a network card.
#[derive(Clone, Copy, Debug)]
pub struct Wire {
    /// Bytes per second; infinite for at once.
    pub bytes_per_second: f64,
}

impl Wire {
    /// The time for so many bytes, ns; no less than 1, so that time goes on.
    #[must_use]
    pub fn time_of(self, bytes: u32) -> Nanos {
        whole(f64::from(bytes) / self.bytes_per_second * SECOND as f64).max(1)
    }
}

impl Service<Job> for Wire {
    fn time(&mut self, _now: Nanos, job: &Job, _busy_count: u64) -> Nanos {
        self.time_of(job.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(class: Class, cost: Nanos) -> Waiting<Job> {
        let job = Job {
            leg: 0,
            class,
            fragment: 0,
            start: 0,
            bytes: 1,
            is_write: false,
            cost,
        };
        Waiting { job, arrived: 0 }
    }

    /// What the classes get while both wait is in proportion to their shares, whatever their requests cost.
    #[test]
    fn shares_are_kept_while_both_wait() {
        for (share, guest, resync) in [(0.2, 100, 700), (0.5, 300, 100), (0.05, 100, 100)] {
            let mut queue = TwoClasses::new(share);
            for _ in 0..20_000 {
                queue.push(0, job(Class::Guest, guest));
                queue.push(0, job(Class::Resync, resync));
            }
            let mut had = [0.0; 2];
            for _ in 0..10_000 {
                if let Next::Job(next) = queue.next(0) {
                    had[next.job.class as usize] += next.job.cost as f64;
                }
            }
            let found = had[1] / (had[0] + had[1]);
            assert!((found - share).abs() < 0.01, "{found} for {share}");
        }
    }

    /// A class that was alone owes the other nothing when it comes.
    #[test]
    fn what_was_taken_alone_is_not_paid_for() {
        let mut queue = TwoClasses::new(0.5);
        for _ in 0..1_000 {
            queue.push(0, job(Class::Resync, 100));
        }
        for _ in 0..500 {
            assert!(matches!(queue.next(0), Next::Job(_)));
        }
        let mut guests = 0;
        for _ in 0..100 {
            queue.push(0, job(Class::Guest, 100));
        }
        for _ in 0..100 {
            if let Next::Job(next) = queue.next(0) {
                guests += u32::from(next.job.class == Class::Guest);
            }
        }
        assert!((49..=51).contains(&guests), "{guests}");
    }
}
