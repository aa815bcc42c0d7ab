//! blktrace's binary events, one file per CPU or merged by `blkparse -d`.
//!
//! An event has 48 bytes: magic u32 (0x656174 and a version), sequence u32, time in nanoseconds u64, sector u64,
//! length in bytes u32, action u32 (what in the lower half, categories in the upper), process u32, device u32, CPU u32,
//! error u16, length of what follows u16; in the byte order of the machine that recorded.
//! Source: `include/uapi/linux/blktrace_api.h` of the Linux kernel.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::input::{Input, length};
use super::pairing::{Event, Pairing, Step};
use super::{Disks, Kind, Notes, Reader, Record};
use leadline_stats::error::LeadlineError;

const SIZE: usize = 48;
const MAGIC: u32 = 0x0065_6174;
const BATCH: usize = 8192;
const SECTOR_BYTES: u64 = 512;
const WRITE: u32 = 1 << 1;
const FLUSH: u32 = 1 << 2;
const READ: u32 = 1 << 0;
const PC: u32 = 1 << 9;
const NOTIFY: u32 = 1 << 10;
const DISCARD: u32 = 1 << 13;

/// Whether a file begins with an event: its byte order, big-endian or not.
pub fn byte_order(head: &[u8]) -> Option<bool> {
    let bytes: [u8; 4] = head.get(..4)?.try_into().ok()?;
    if u32::from_le_bytes(bytes) >> 8 == MAGIC {
        return Some(false);
    }
    (u32::from_be_bytes(bytes) >> 8 == MAGIC).then_some(true)
}

/// One file of events.
struct Source {
    input: Input,
    big_endian: bool,
    cut: u64,
}

/// An event as it stands in the file.
#[derive(Clone, Copy, Debug)]
struct Raw {
    time_ns: u64,
    sector: u64,
    bytes: u32,
    action: u32,
    device: u32,
}

impl Source {
    fn next(&mut self) -> Result<Option<Raw>, LeadlineError> {
        let big_endian = self.big_endian;
        let held = self.input.peek(SIZE)?;
        if held.len() < SIZE {
            self.cut += u64::from(!held.is_empty());
            return Ok(None);
        }
        let word = |at: usize| {
            let bytes = [held[at], held[at + 1], held[at + 2], held[at + 3]];
            if big_endian {
                u32::from_be_bytes(bytes)
            } else {
                u32::from_le_bytes(bytes)
            }
        };
        let long = |at: usize| {
            let (first, second) = (u64::from(word(at)), u64::from(word(at + 4)));
            if big_endian {
                first << 32 | second
            } else {
                second << 32 | first
            }
        };
        let magic = word(0);
        let raw = Raw {
            time_ns: long(8),
            sector: long(16),
            bytes: word(24),
            action: word(28),
            device: word(36),
        };
        let more = if big_endian {
            word(44) & 0xffff
        } else {
            word(44) >> 16
        } as usize;
        if magic >> 8 != MAGIC {
            return Err(LeadlineError::new(
                self.input.byte_place(0),
                format!("{magic:#010x} where an event begins"),
                "blktrace's magic number 0x656174",
                "The trace is damaged; cut it there (`head -c`) and read what is before.",
            ));
        }
        self.input.take(SIZE);
        self.cut += u64::from(self.input.skip(more)? < more);
        Ok(Some(raw))
    }
}

/// The events of all CPUs in the order of time.
pub struct Blktrace {
    sources: Vec<Source>,
    /// The next event of each source, the earliest first.
    next: BinaryHeap<Reverse<(u64, usize)>>,
    waiting: Vec<Option<Raw>>,
    pairing: Pairing,
    disks: Disks,
    devices: Vec<(u32, u16)>,
    notes: Notes,
    ended: bool,
}

impl Blktrace {
    /// Merges the files of one recording.
    ///
    /// # Errors
    /// A file cannot be read or does not begin with an event.
    pub fn new(inputs: Vec<(Input, bool)>) -> Result<Self, LeadlineError> {
        let mut notes = Notes::default();
        notes.add(
            "big-endian",
            u64::from(inputs.iter().any(|(_, big)| *big)),
            || "the trace is big-endian and was read so".into(),
        );
        let sources: Vec<Source> = inputs
            .into_iter()
            .map(|(input, big_endian)| Source {
                input,
                big_endian,
                cut: 0,
            })
            .collect();
        let mut made = Self {
            waiting: vec![None; sources.len()],
            sources,
            next: BinaryHeap::new(),
            pairing: Pairing::default(),
            disks: Disks::default(),
            devices: Vec::new(),
            notes,
            ended: false,
        };
        for index in 0..made.sources.len() {
            made.advance(index)?;
        }
        Ok(made)
    }

    fn advance(&mut self, index: usize) -> Result<(), LeadlineError> {
        self.waiting[index] = self.sources[index].next()?;
        if let Some(raw) = &self.waiting[index] {
            self.next.push(Reverse((raw.time_ns, index)));
        }
        Ok(())
    }

    fn event(&mut self, raw: &Raw, source: usize) -> Result<Option<Event>, LeadlineError> {
        let category = raw.action >> 16;
        let step = match raw.action & 0xffff {
            1 => Step::Queued,
            2 | 3 => Step::Merged,
            7 => Step::Issued,
            8 => Step::Completed,
            _ => return Ok(None),
        };
        if category & (NOTIFY | PC | DISCARD) != 0 {
            self.notes
                .add("other", u64::from(step == Step::Completed), || {
                    "requests that are no reads or writes of data, left out".into()
                });
            return Ok(None);
        }
        let kind = if category & WRITE != 0 {
            Kind::Write
        } else {
            Kind::Read
        };
        let (Some(bytes), Some(offset), true) = (
            length(u64::from(raw.bytes)),
            raw.sector.checked_mul(SECTOR_BYTES),
            category & (READ | WRITE) != 0,
        ) else {
            let is_flush = category & FLUSH != 0 || raw.bytes == 0;
            self.notes.add(
                "other",
                u64::from(is_flush && step == Step::Completed),
                || "requests that are no reads or writes of data, left out".into(),
            );
            return Ok(None);
        };
        let mut known = self.devices.iter();
        let disk = if let Some((_, disk)) = known.find(|(device, _)| *device == raw.device) {
            *disk
        } else {
            let name = format!("{},{}", raw.device >> 20, raw.device & 0xf_ffff);
            let place = || self.sources[source].input.byte_place(0);
            let disk = self.disks.index_of(name.as_bytes(), place)?;
            self.devices.push((raw.device, disk));
            disk
        };
        Ok(Some(Event {
            step,
            time_ns: raw.time_ns,
            offset,
            bytes,
            disk,
            kind,
        }))
    }
}

impl Reader for Blktrace {
    fn fill(&mut self, out: &mut Vec<Record>) -> Result<bool, LeadlineError> {
        if self.ended {
            return Ok(false);
        }
        for _ in 0..BATCH {
            let Some(Reverse((_, index))) = self.next.pop() else {
                self.ended = true;
                self.pairing.finish(out);
                let cut = self.sources.iter().map(|source| source.cut).sum();
                self.notes.add("cut", cut, || {
                    "the last event of a file was cut and is left out".into()
                });
                self.pairing.tell(&mut self.notes);
                return Ok(false);
            };
            if let Some(raw) = self.waiting[index].take() {
                if let Some(event) = self.event(&raw, index)? {
                    self.pairing.take(&event, out);
                }
            }
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
