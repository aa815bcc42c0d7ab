//! fio's latency logs, one line per request, with offsets (`write_lat_log`, `log_offset=1`).
//!
//! `TIME, LATENCY, DIRECTION, LENGTH, OFFSET[, PRIORITY]`: the time of completion in milliseconds, the latency in
//! nanoseconds, 0 for a read and 1 for a write. The time of issue is known to a millisecond. A file per job; the files
//! of one run are merged.
//! Source: fio HOWTO, "Log file formats".

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::input::{Input, length, number, trimmed};
use super::{Disks, Kind, Notes, Reader, Record};
use leadline_stats::error::LeadlineError;

const BATCH: usize = 8192;
const NS_PER_MS: u64 = 1_000_000;

/// Whether a line is one of such a log.
pub fn is_entry(line: &[u8]) -> bool {
    parse(line).is_some()
}

/// The record, or the inner None for a direction that moves no data.
#[allow(clippy::option_option)]
fn parse(line: &[u8]) -> Option<Option<Record>> {
    let mut fields = [0u64; 6];
    let mut count = 0;
    for text in line.split(|byte| *byte == b',') {
        *fields.get_mut(count)? = number(trimmed(text))?;
        count += 1;
    }
    let [ms, latency_ns, direction, bytes, offset, _] = fields;
    if count < 5 || direction > 2 || bytes == 0 {
        return None;
    }
    let kind = match direction {
        0 => Kind::Read,
        1 => Kind::Write,
        _ => return Some(None),
    };
    let done_ns = ms.checked_mul(NS_PER_MS)?;
    let time_ns = done_ns.saturating_sub(latency_ns) / NS_PER_MS * NS_PER_MS;
    let bytes = length(bytes)?;
    Some(Some(Record {
        time_ns,
        offset,
        latency_ns,
        bytes,
        disk: 0,
        kind,
    }))
}

/// The logs of one run.
pub struct LatLog {
    inputs: Vec<Input>,
    next: BinaryHeap<Reverse<(u64, usize)>>,
    waiting: Vec<Option<Record>>,
    disks: Disks,
    notes: Notes,
}

impl LatLog {
    /// Merges the logs of one run; `disk` names what they were recorded on.
    ///
    /// # Errors
    /// A log cannot be read.
    pub fn new(inputs: Vec<Input>, disk: &str) -> Result<Self, LeadlineError> {
        let mut disks = Disks::default();
        disks.index_of(disk.as_bytes(), String::new)?;
        let waiting = vec![None; inputs.len()];
        let mut made = Self {
            inputs,
            next: BinaryHeap::new(),
            waiting,
            disks,
            notes: Notes::default(),
        };
        for index in 0..made.inputs.len() {
            made.advance(index)?;
        }
        Ok(made)
    }

    fn advance(&mut self, index: usize) -> Result<(), LeadlineError> {
        loop {
            let input = &mut self.inputs[index];
            let Some((line, whole)) = input.line()? else {
                return Ok(());
            };
            match parse(line) {
                Some(Some(record)) if whole => {
                    self.next.push(Reverse((record.time_ns, index)));
                    self.waiting[index] = Some(record);
                    return Ok(());
                }
                Some(None) => self.notes.add("other", 1, || "trims, left out".into()),
                _ if !whole => self
                    .notes
                    .add("cut", 1, || "the last line was cut and is left out".into()),
                _ => {
                    return Err(LeadlineError::new(
                        input.line_place(),
                        "no entry of a latency log",
                        "time, latency, direction, block size and offset",
                        "Record with --write_lat_log=NAME --log_offset=1 and without --log_avg_msec.",
                    ));
                }
            }
        }
    }
}

impl Reader for LatLog {
    fn fill(&mut self, out: &mut Vec<Record>) -> Result<bool, LeadlineError> {
        for _ in 0..BATCH {
            let Some(Reverse((_, index))) = self.next.pop() else {
                return Ok(false);
            };
            out.extend(self.waiting[index].take());
            self.advance(index)?;
        }
        Ok(true)
    }

    fn disks(&self) -> &[String] {
        self.disks.names()
    }

    fn notes(&mut self) -> Notes {
        std::mem::take(&mut self.notes)
    }
}
