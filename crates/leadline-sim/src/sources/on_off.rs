//! An open source with bursts and pauses.

use super::Source;
use crate::random::{Distribution, Sample, Stream};
use crate::time::Nanos;

/// Requests at random or even gaps during bursts, none in between. With exponential gaps, bursts and pauses this is
/// the interrupted Poisson process; with constant ones the burst and pause of a workload file.
#[derive(Clone, Debug)]
pub struct OnOff {
    gap: Distribution,
    burst: Distribution,
    pause: Distribution,
    stream: Stream,
    end: Nanos,
    started: bool,
}

impl OnOff {
    /// All three in ns; starts with a burst, and each burst with a gap.
    #[must_use]
    pub fn new(
        gap: Distribution,
        burst: Distribution,
        pause: Distribution,
        stream: Stream,
    ) -> Self {
        Self {
            gap,
            burst,
            pause,
            stream,
            end: 0,
            started: false,
        }
    }

    /// Requests per second in the long run, when gaps are short against bursts.
    #[must_use]
    pub fn mean_rate(&self) -> f64 {
        let share = self.burst.mean() / (self.burst.mean() + self.pause.mean());
        share * crate::time::SECOND as f64 / self.gap.mean()
    }
}

impl Source for OnOff {
    fn first(&mut self, now: Nanos) -> Option<Nanos> {
        if std::mem::replace(&mut self.started, true) {
            return None;
        }
        self.end = now.saturating_add(self.burst.sample(&mut self.stream));
        self.after_issue(now)
    }

    /// None when a thousand bursts in a row were shorter than the first gap in them: then no request ever comes.
    fn after_issue(&mut self, now: Nanos) -> Option<Nanos> {
        const BURSTS_TRIED: u32 = 1_000;
        let mut at = now;
        for _ in 0..BURSTS_TRIED {
            at = at.saturating_add(self.gap.sample(&mut self.stream));
            if at < self.end {
                return Some(at);
            }
            at = self.end.saturating_add(self.pause.sample(&mut self.stream));
            self.end = at.saturating_add(self.burst.sample(&mut self.stream));
        }
        None
    }

    fn after_completion(&mut self, _now: Nanos) -> Option<Nanos> {
        None
    }
}
