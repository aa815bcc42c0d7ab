//! How long a server takes for a job.

use crate::random::{Sample, Stream};
use crate::time::Nanos;

/// A server's time for one job.
pub trait Service<J> {
    /// The time for `job`, started now, ns, with `busy_count` servers busy, this one included; ns.
    fn time(&mut self, now: Nanos, job: &J, busy_count: u64) -> Nanos;
}

/// Times drawn from a distribution, whatever the job.
#[derive(Clone, Debug)]
pub struct Drawn<S> {
    time: S,
    stream: Stream,
}

impl<S: Sample> Drawn<S> {
    /// Times in ns.
    #[must_use]
    pub fn new(time: S, stream: Stream) -> Self {
        Self { time, stream }
    }
}

impl<J, S: Sample> Service<J> for Drawn<S> {
    #[inline]
    fn time(&mut self, _now: Nanos, _job: &J, _busy_count: u64) -> Nanos {
        self.time.sample(&mut self.stream)
    }
}
