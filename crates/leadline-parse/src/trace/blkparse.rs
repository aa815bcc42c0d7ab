//! The text that blkparse prints, in its default format.
//!
//! `  8,0    3       11     0.009507758   697  D   W 223490 + 56 [kjournald]`: device, CPU, sequence, seconds, process,
//! action, what (R read, W write, and letters for sync, metadata, ahead), sector, number of sectors. Below the events
//! stands a summary per CPU, which is passed over.
//! Source: blkparse(1), "Trace actions" and "RWBS description".

use super::input::{Input, decimal, length, number};
use super::pairing::{Event, Pairing, Step};
use super::{Disks, Kind, Notes, Reader, Record};
use leadline_stats::error::LeadlineError;

const BATCH: usize = 8192;
const SECTOR_BYTES: u64 = 512;
const FIELDS: usize = 10;

/// What a line is.
enum Line {
    /// A step of a request for data.
    Step(Step, u64, u64, u32, Kind),
    /// A request without data, completed or not.
    Other(bool),
    /// An event that is no step of a request, or the summary.
    Passed,
    /// Neither.
    Wrong,
}

/// Whether a line is an event.
pub fn is_event(line: &[u8]) -> bool {
    let fields = fields_of(line);
    starts_event(&fields) && !matches!(parse(&fields), Line::Wrong)
}

fn fields_of(line: &[u8]) -> [&[u8]; FIELDS] {
    let mut fields = [&line[..0]; FIELDS];
    let words = line
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty());
    for (field, word) in fields.iter_mut().zip(words) {
        *field = word;
    }
    fields
}

fn starts_event(fields: &[&[u8]; FIELDS]) -> bool {
    let mut device = fields[0].splitn(2, |byte| *byte == b',');
    let both = [device.next(), device.next()];
    both.iter()
        .all(|part| part.is_some_and(|part| number(part).is_some()))
        && number(fields[1]).is_some()
        && number(fields[2]).is_some()
        && fields[3].contains(&b'.')
        && decimal(fields[3], 9).is_some()
}

fn parse(fields: &[&[u8]; FIELDS]) -> Line {
    let step = match fields[5] {
        b"Q" => Step::Queued,
        b"M" | b"F" => Step::Merged,
        b"D" => Step::Issued,
        b"C" => Step::Completed,
        action if !action.is_empty() && action.len() <= 2 && action.is_ascii() => {
            return Line::Passed;
        }
        _ => return Line::Wrong,
    };
    let what = fields[6];
    let kind = if what.contains(&b'W') {
        Kind::Write
    } else {
        Kind::Read
    };
    if what.is_empty() || !what.iter().all(u8::is_ascii_uppercase) {
        return Line::Wrong;
    }
    if what.contains(&b'D') || !(what.contains(&b'R') || what.contains(&b'W')) || fields[8] != b"+"
    {
        return Line::Other(step == Step::Completed);
    }
    let parsed = || {
        let time = decimal(fields[3], 9)?;
        let offset = number(fields[7])?.checked_mul(SECTOR_BYTES)?;
        let bytes = number(fields[9])?.checked_mul(SECTOR_BYTES)?;
        Some((time, offset, bytes))
    };
    match parsed() {
        Some((time, offset, bytes)) => match length(bytes) {
            Some(bytes) => Line::Step(step, time, offset, bytes, kind),
            None => Line::Other(step == Step::Completed),
        },
        None => Line::Wrong,
    }
}

/// A text of blkparse.
pub struct Blkparse {
    input: Input,
    disks: Disks,
    pairing: Pairing,
    notes: Notes,
    ended: bool,
}

impl Blkparse {
    /// Reads a text.
    pub fn new(input: Input) -> Self {
        Self {
            input,
            disks: Disks::default(),
            pairing: Pairing::default(),
            notes: Notes::default(),
            ended: false,
        }
    }

    fn next(&mut self, out: &mut Vec<Record>) -> Result<(), LeadlineError> {
        let Some((line, whole)) = self.input.line()? else {
            self.ended = true;
            return Ok(());
        };
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        let fields = fields_of(line);
        if !starts_event(&fields) {
            if fields[0].starts_with(b"CPU") || fields[0].starts_with(b"Total") {
                self.ended = true; // the summary
            } else if whole {
                return Err(self.wrong());
            } else {
                self.cut();
            }
            return Ok(());
        }
        match parse(&fields) {
            Line::Step(step, time_ns, offset, bytes, kind) if whole => {
                let disk = self.disks.index_of(fields[0], || "the trace".into())?;
                self.pairing.take(
                    &Event {
                        step,
                        time_ns,
                        offset,
                        bytes,
                        disk,
                        kind,
                    },
                    out,
                );
            }
            Line::Other(completed) => self.notes.add("other", u64::from(completed), || {
                "requests that are no reads or writes of data, left out".into()
            }),
            Line::Passed => {}
            Line::Wrong if whole => return Err(self.wrong()),
            Line::Step(..) | Line::Wrong => self.cut(),
        }
        Ok(())
    }

    fn cut(&mut self) {
        self.notes
            .add("cut", 1, || "the last line was cut and is left out".into());
    }

    #[cold]
    fn wrong(&self) -> LeadlineError {
        LeadlineError::new(
            self.input.line_place(),
            "no event",
            "a line of blkparse in its default format: device, CPU, sequence, time, process, action",
            "Print the trace with blkparse without -f, or read blktrace's own files.",
        )
    }
}

impl Reader for Blkparse {
    fn fill(&mut self, out: &mut Vec<Record>) -> Result<bool, LeadlineError> {
        if self.ended {
            return Ok(false);
        }
        for _ in 0..BATCH {
            self.next(out)?;
            if self.ended {
                self.pairing.finish(out);
                self.pairing.tell(&mut self.notes);
                return Ok(false);
            }
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
