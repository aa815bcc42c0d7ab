//! Open sources: requests come whether or not earlier ones are done.

use super::{Pace, Source};
use crate::random::{Exponential, Sample, Stream};
use crate::time::{Nanos, SECOND};

/// Independent gaps; a Poisson process when they are exponential.
#[derive(Clone, Debug)]
pub struct Renewal<S> {
    gap: S,
    stream: Stream,
    started: bool,
}

impl<S: Sample> Renewal<S> {
    /// Gaps in ns.
    #[must_use]
    pub fn new(gap: S, stream: Stream) -> Self {
        Self {
            gap,
            stream,
            started: false,
        }
    }
}

impl Renewal<Exponential> {
    /// A Poisson process of this many requests per second, above 0.
    #[must_use]
    pub fn poisson(per_second: f64, stream: Stream) -> Self {
        let mean = SECOND as f64 / per_second;
        Self::new(Exponential { mean }, stream)
    }
}

impl<S: Sample> Source for Renewal<S> {
    fn first(&mut self, now: Nanos) -> Option<Nanos> {
        let started = std::mem::replace(&mut self.started, true);
        if started { None } else { self.after_issue(now) }
    }

    #[inline]
    fn is_known_ahead(&self) -> bool {
        true
    }

    #[inline]
    fn after_issue(&mut self, now: Nanos) -> Option<Nanos> {
        Some(now.saturating_add(self.gap.sample(&mut self.stream)))
    }

    #[inline]
    fn after_completion(&mut self, _now: Nanos) -> Option<Nanos> {
        None
    }
}

/// Requests at even distances, exactly at the rate.
#[derive(Clone, Debug)]
pub struct Paced {
    pace: Pace,
    started: bool,
}

impl Paced {
    /// This many requests per second, the first at once.
    #[must_use]
    pub fn new(per_second: f64) -> Self {
        Self {
            pace: Pace::new(per_second),
            started: false,
        }
    }
}

impl Source for Paced {
    fn first(&mut self, now: Nanos) -> Option<Nanos> {
        let started = std::mem::replace(&mut self.started, true);
        (!started).then(|| self.pace.admit(now, 1))
    }

    #[inline]
    fn is_known_ahead(&self) -> bool {
        true
    }

    fn after_issue(&mut self, now: Nanos) -> Option<Nanos> {
        Some(self.pace.admit(now, 1))
    }

    fn after_completion(&mut self, _now: Nanos) -> Option<Nanos> {
        None
    }
}
