//! An open source that repeats a recording.

use std::sync::Arc;

use super::{Request, Source};
use crate::time::{Nanos, SECOND, whole};

/// Requests as they were recorded: when each came, and what it was.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    times: Arc<[Nanos]>,
    requests: Arc<[Request]>,
}

impl Recording {
    /// Times in ns, ascending, and as many requests. None when there is none, or they do not fit each other.
    #[must_use]
    pub fn new(times: Arc<[Nanos]>, requests: Arc<[Request]>) -> Option<Self> {
        let sound = !times.is_empty() && times.len() == requests.len() && times.is_sorted();
        sound.then_some(Self { times, requests })
    }

    /// What a request was; the recording begins again behind its last.
    #[must_use]
    #[inline]
    pub fn request(&self, index: usize) -> Request {
        self.requests[index % self.requests.len()]
    }

    /// A source of these times, played `speed` times as fast (above 0), once or again and again: the first follows
    /// the last at the mean distance of all.
    #[must_use]
    pub fn source(&self, speed: f64, repeats: bool) -> Replay {
        let times = Arc::clone(&self.times);
        if !repeats {
            return Replay::once(times, speed);
        }
        let last = times.last().copied().unwrap_or(0);
        let gaps = (times.len() as u64).saturating_sub(1).max(1);
        let period = last.saturating_add(if last == 0 {
            SECOND
        } else {
            last.div_ceil(gaps)
        });
        Replay::repeated(times, speed, period)
    }
}

/// Requests at recorded times, once or again and again.
#[derive(Clone, Debug)]
pub struct Replay {
    times: Arc<[Nanos]>,
    index: usize,
    /// Recorded ns per simulated ns.
    speed: f64,
    /// Where the current repetition starts, simulated ns.
    origin: Nanos,
    /// Length of a repetition, simulated ns; 0 for one only.
    period: Nanos,
    started: bool,
}

impl Replay {
    /// Recorded times in ns, ascending, played `speed` times as fast (above 0).
    #[must_use]
    pub fn once(times: Arc<[Nanos]>, speed: f64) -> Self {
        Self {
            times,
            index: 0,
            speed,
            origin: 0,
            period: 0,
            started: false,
        }
    }

    /// The same, repeated every `period` recorded ns, which is longer than the recording.
    #[must_use]
    pub fn repeated(times: Arc<[Nanos]>, speed: f64, period: Nanos) -> Self {
        Self {
            period: whole(period as f64 / speed),
            ..Self::once(times, speed)
        }
    }

    /// Which recorded request comes next, to look up its size and address.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }
}

impl Source for Replay {
    fn first(&mut self, now: Nanos) -> Option<Nanos> {
        if std::mem::replace(&mut self.started, true) {
            return None;
        }
        self.origin = now;
        self.after_issue(now)
    }

    fn after_issue(&mut self, now: Nanos) -> Option<Nanos> {
        if self.index == self.times.len() && self.period > 0 {
            self.index = 0;
            self.origin = self.origin.saturating_add(self.period);
        }
        let time = *self.times.get(self.index)?;
        self.index += 1;
        Some(
            self.origin
                .saturating_add(whole(time as f64 / self.speed))
                .max(now),
        )
    }

    fn after_completion(&mut self, _now: Nanos) -> Option<Nanos> {
        None
    }
}
