//! An open source that repeats a recording.

use std::sync::Arc;

use super::Source;
use crate::time::{Nanos, whole};

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
