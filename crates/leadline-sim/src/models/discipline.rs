//! Which waiting job is served next.

use std::collections::VecDeque;

use crate::time::Nanos;

/// What a discipline has for a free server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next<J> {
    /// Serve this.
    Job(J),
    /// Nothing may start before this time, ns: ask again then, or when a job arrives.
    Wait(Nanos),
    /// Nothing waits.
    Empty,
}

/// The order in which waiting jobs are served. Schedulers such as mClock are disciplines.
pub trait Discipline<J> {
    /// A job arrives.
    fn push(&mut self, now: Nanos, job: J);

    /// A server is free: which job does it get?
    fn next(&mut self, now: Nanos) -> Next<J>;

    /// How many jobs wait.
    fn len(&self) -> usize;

    /// Whether none waits.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// First come, first served.
#[derive(Clone, Debug)]
pub struct Fifo<J> {
    jobs: VecDeque<J>,
}

impl<J> Default for Fifo<J> {
    fn default() -> Self {
        Self {
            jobs: VecDeque::new(),
        }
    }
}

impl<J> Discipline<J> for Fifo<J> {
    #[inline]
    fn push(&mut self, _now: Nanos, job: J) {
        self.jobs.push_back(job);
    }

    #[inline]
    fn next(&mut self, _now: Nanos) -> Next<J> {
        self.jobs.pop_front().map_or(Next::Empty, Next::Job)
    }

    #[inline]
    fn len(&self) -> usize {
        self.jobs.len()
    }
}
