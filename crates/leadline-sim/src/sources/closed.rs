//! A closed source: a fixed number of requests outstanding, each replaced when it is done.

use std::collections::VecDeque;

use super::{Pace, Source};
use crate::random::{Sample, Stream};
use crate::time::Nanos;

/// `outstanding` clients that wait for their request, think, and send the next; optionally held to a common rate, as
/// fio's `rate_iops` does: a request begins when the rate lets it.
#[derive(Clone, Debug)]
pub struct Closed<S> {
    outstanding: u32,
    think: S,
    stream: Stream,
    pace: Option<Pace>,
    /// Times to which requests have been put off, ascending.
    postponed: VecDeque<Nanos>,
    started: u32,
}

impl<S: Sample> Closed<S> {
    /// Think time in ns; the clients begin with one.
    #[must_use]
    pub fn new(outstanding: u32, think: S, stream: Stream) -> Self {
        Self {
            outstanding,
            think,
            stream,
            pace: None,
            postponed: VecDeque::new(),
            started: 0,
        }
    }

    /// The same at no more than this rate.
    #[must_use]
    pub fn limited(self, pace: Pace) -> Self {
        Self {
            pace: Some(pace),
            ..self
        }
    }
}

impl<S: Sample> Source for Closed<S> {
    fn first(&mut self, now: Nanos) -> Option<Nanos> {
        if self.started == self.outstanding {
            return None;
        }
        self.started += 1;
        self.after_completion(now)
    }

    #[inline]
    fn postpone(&mut self, now: Nanos) -> Option<Nanos> {
        let pace = self.pace.as_mut()?;
        if self.postponed.front() == Some(&now) {
            // This request, or one like it, was promised this time.
            self.postponed.pop_front();
            return None;
        }
        let admitted = pace.admit(now, 1);
        if admitted == now {
            return None;
        }
        self.postponed.push_back(admitted);
        Some(admitted)
    }

    #[inline]
    fn after_issue(&mut self, _now: Nanos) -> Option<Nanos> {
        None
    }

    #[inline]
    fn after_completion(&mut self, now: Nanos) -> Option<Nanos> {
        Some(now.saturating_add(self.think.sample(&mut self.stream)))
    }
}
