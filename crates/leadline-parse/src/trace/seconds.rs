//! Requests of a trace whose clock has whole seconds, spread over each second.
//!
//! Read as they are, all requests of a second would come at once, which no disk ever saw. The lines of a second are in
//! the order they were issued, so they are given equal distances in that order, all disks together: right on average,
//! and a note says that times within a second were not recorded.

use super::{Notes, Reader, Record};
use leadline_stats::error::LeadlineError;

const NS_PER_S: u64 = 1_000_000_000;
/// Judgement: a million requests in a second are more than a file of one storage node has; 40 MB.
const HELD_MAX: usize = 1 << 20;

/// A reader whose records are spread over their second.
pub struct Spreading {
    rows: Box<dyn Reader>,
    held: Vec<Record>,
    fresh: Vec<Record>,
    spread_count: u64,
}

impl Spreading {
    /// Spreads what `rows` gives.
    pub fn new(rows: Box<dyn Reader>) -> Self {
        Self {
            rows,
            held: Vec::new(),
            fresh: Vec::new(),
            spread_count: 0,
        }
    }

    fn release(&mut self, out: &mut Vec<Record>) {
        let count = self.held.len() as u64;
        self.spread_count += if count > 1 { count } else { 0 };
        for (record, index) in self.held.drain(..).zip(0u64..) {
            out.push(Record {
                time_ns: record.time_ns.saturating_add(index * NS_PER_S / count),
                ..record
            });
        }
    }
}

impl Reader for Spreading {
    fn fill(&mut self, out: &mut Vec<Record>) -> Result<bool, LeadlineError> {
        let mut fresh = std::mem::take(&mut self.fresh);
        let more = self.rows.fill(&mut fresh)?;
        for record in fresh.drain(..) {
            let is_same = self
                .held
                .first()
                .is_none_or(|first| first.time_ns == record.time_ns);
            if !is_same || self.held.len() >= HELD_MAX {
                self.release(out);
            }
            self.held.push(record);
        }
        self.fresh = fresh;
        if !more {
            self.release(out);
        }
        Ok(more)
    }

    fn disks(&self) -> &[String] {
        self.rows.disks()
    }

    fn notes(&mut self) -> Notes {
        let mut notes = self.rows.notes();
        notes.add("coarse", self.spread_count, || {
            "requests whose time is known to a second only; spread over it in their order".into()
        });
        notes
    }
}
