//! Queue, issue and completion events of the block layer made into records.
//!
//! The latency is from issue to completion (D2C) where the trace has issue events, from queueing to completion (Q2C)
//! where it has not. A request that never completes in the trace is a record without latency; a completion whose
//! beginning lies before the trace is left out and counted.

use std::collections::HashMap;

use super::{Kind, NO_LATENCY, Notes, Record};

const PENDING_MAX: usize = 1 << 16;

/// What happened to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Handed to the block layer (Q).
    Queued,
    /// Became part of another request (M, F).
    Merged,
    /// Sent to the device (D).
    Issued,
    /// The device is done (C).
    Completed,
}

/// One event of a request for data.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    pub step: Step,
    pub time_ns: u64,
    pub offset: u64,
    pub bytes: u32,
    pub disk: u16,
    pub kind: Kind,
}

type Key = (u16, u64, Kind);

/// Requests under way.
#[derive(Default)]
pub struct Pairing {
    queued: HashMap<Key, (u64, u32)>,
    issued: HashMap<Key, (u64, u32)>,
    seen_issue: bool,
    begun_before: u64,
    reissued: u64,
    unfinished: u64,
}

impl Pairing {
    /// Takes an event; adds a record when it completes a request.
    pub fn take(&mut self, event: &Event, out: &mut Vec<Record>) {
        let key = (event.disk, event.offset, event.kind);
        match event.step {
            Step::Queued => {
                if self.queued.len() >= PENDING_MAX {
                    self.shed(out);
                }
                self.queued.insert(key, (event.time_ns, event.bytes));
            }
            Step::Merged => {
                self.queued.remove(&key);
            }
            Step::Issued => {
                self.seen_issue = true;
                self.queued.remove(&key);
                if self.issued.len() >= PENDING_MAX {
                    self.shed(out);
                }
                let before = self.issued.insert(key, (event.time_ns, event.bytes));
                self.reissued += u64::from(before.is_some());
            }
            Step::Completed => {
                let begun = self
                    .issued
                    .remove(&key)
                    .or_else(|| self.queued.remove(&key));
                match begun {
                    Some((time_ns, bytes)) => {
                        let latency_ns = event.time_ns.saturating_sub(time_ns);
                        // A request may complete in parts; the first part tells its latency.
                        out.push(record(key, time_ns, bytes.max(event.bytes), latency_ns));
                    }
                    None => self.begun_before += 1,
                }
            }
        }
    }

    /// Gives up the older half of what is pending, so that memory is bounded.
    #[cold]
    fn shed(&mut self, out: &mut Vec<Record>) {
        let seen_issue = self.seen_issue;
        for (pending, counts) in [(&mut self.queued, !seen_issue), (&mut self.issued, true)] {
            let mut times: Vec<u64> = pending.values().map(|(time, _)| *time).collect();
            if times.len() < PENDING_MAX {
                continue;
            }
            let middle = times.len() / 2;
            let (_, middle, _) = times.select_nth_unstable(middle);
            let limit = *middle;
            pending.retain(|key, (time, bytes)| {
                let kept = *time > limit;
                if !kept && counts {
                    self.unfinished += 1;
                    out.push(record(*key, *time, *bytes, NO_LATENCY));
                }
                kept
            });
        }
    }

    /// Ends the trace: what is pending becomes records without latency.
    pub fn finish(&mut self, out: &mut Vec<Record>) {
        let queued = std::mem::take(&mut self.queued);
        let issued = std::mem::take(&mut self.issued);
        let left = if self.seen_issue { issued } else { queued };
        self.unfinished += left.len() as u64;
        let from = out.len();
        out.extend(
            left.into_iter()
                .map(|(key, (time, bytes))| record(key, time, bytes, NO_LATENCY)),
        );
        out[from..].sort_unstable_by_key(|r| (r.time_ns, r.disk, r.offset));
    }

    /// What was left out, and what the latency is.
    pub fn tell(&self, notes: &mut Notes) {
        notes.add("begun-before", self.begun_before, || {
            "completions of requests that began before the trace, left out".into()
        });
        notes.add("reissued", self.reissued, || {
            "requests issued again before they completed; the last issue counts".into()
        });
        notes.add("unfinished", self.unfinished, || {
            "requests that do not complete in the trace, counted without latency".into()
        });
        notes.add("latency-from-queue", u64::from(!self.seen_issue), || {
            "no issue events: latency is from queueing to completion (Q2C)".into()
        });
    }
}

fn record((disk, offset, kind): Key, time_ns: u64, bytes: u32, latency_ns: u64) -> Record {
    Record {
        time_ns,
        offset,
        latency_ns,
        bytes,
        disk,
        kind,
    }
}
