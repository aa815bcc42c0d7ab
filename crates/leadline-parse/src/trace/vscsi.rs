//! vscsiStats command traces in binary, versions 1 and 2.
//!
//! A version 1 record has 32 bytes: serial number u32, length u32, scatter-gather entries u32, command u16, version
//! u16, block u64, time in microseconds u64. Version 2 has 40: command u16, version u16, serial number u32, length u32,
//! scatter-gather entries u32, block u64, time u64, response time in microseconds u64. The version is in the upper byte
//! of its field. Hosts are little-endian; a trace that was written the other way round is read too.
//! Source: the vscsi reader of `libCacheSim` (`vscsi.h`), which reads the `CloudPhysics` traces.

use super::input::{Input, length};
use super::{Kind, NO_LATENCY, Notes, Reader, Record};
use leadline_stats::error::LeadlineError;

const BATCH: usize = 8192;
const BLOCK_BYTES: u64 = 512;

/// How records are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    version: u8,
    big_endian: bool,
}

impl Layout {
    fn size(self) -> usize {
        if self.version == 1 { 32 } else { 40 }
    }

    fn holds(self, record: &[u8]) -> bool {
        let at = if self.version == 1 { 14 } else { 2 };
        self.short(record, at) >> 8 == u16::from(self.version)
    }

    fn short(self, record: &[u8], at: usize) -> u16 {
        let bytes = [record[at], record[at + 1]];
        if self.big_endian {
            u16::from_be_bytes(bytes)
        } else {
            u16::from_le_bytes(bytes)
        }
    }

    fn word(self, record: &[u8], at: usize) -> u32 {
        let mut bytes = [0; 4];
        bytes.copy_from_slice(&record[at..at + 4]);
        if self.big_endian {
            u32::from_be_bytes(bytes)
        } else {
            u32::from_le_bytes(bytes)
        }
    }

    fn long(self, record: &[u8], at: usize) -> u64 {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&record[at..at + 8]);
        if self.big_endian {
            u64::from_be_bytes(bytes)
        } else {
            u64::from_le_bytes(bytes)
        }
    }
}

/// The layout of a file that begins so: the first records, at least one and up to eight, must all agree and hold
/// commands that exist.
pub fn layout(head: &[u8]) -> Option<Layout> {
    let known = |layout: Layout| {
        let records: Vec<&[u8]> = head.chunks_exact(layout.size()).take(8).collect();
        let command = if layout.version == 1 { 12 } else { 0 };
        !records.is_empty()
            && records
                .iter()
                .all(|r| layout.holds(r) && layout.short(r, command) <= 0xff)
    };
    [(2, false), (1, false), (2, true), (1, true)]
        .map(|(version, big_endian)| Layout {
            version,
            big_endian,
        })
        .into_iter()
        .find(|layout| known(*layout))
}

/// Read or write of a SCSI operation code; None for anything that moves no data of the disk.
pub fn kind_of(code: u64) -> Option<Kind> {
    match code {
        0x08 | 0x28 | 0xa8 | 0x88 => Some(Kind::Read),
        0x0a | 0x2a | 0xaa | 0x8a | 0x2e | 0xae | 0x8e => Some(Kind::Write),
        _ => None,
    }
}

/// A binary command trace.
pub struct Vscsi {
    input: Input,
    layout: Layout,
    disks: [String; 1],
    notes: Notes,
}

impl Vscsi {
    /// Reads a trace of one disk, which is named by its file.
    pub fn new(input: Input, layout: Layout, disk: String) -> Self {
        let mut notes = Notes::default();
        notes.add("big-endian", u64::from(layout.big_endian), || {
            "the trace is big-endian and was read so".into()
        });
        Self {
            input,
            layout,
            disks: [disk],
            notes,
        }
    }

    fn record(&self, raw: &[u8]) -> Option<Record> {
        let layout = self.layout;
        let (command, bytes, block, time) = if layout.version == 1 {
            (12, 4, 16, 24)
        } else {
            (0, 8, 16, 24)
        };
        let latency_us = if layout.version == 1 {
            None
        } else {
            Some(layout.long(raw, 32))
        };
        Some(Record {
            time_ns: layout.long(raw, time).checked_mul(1000)?,
            offset: layout.long(raw, block).checked_mul(BLOCK_BYTES)?,
            latency_ns: latency_us
                .and_then(|us| us.checked_mul(1000))
                .unwrap_or(NO_LATENCY),
            bytes: length(u64::from(layout.word(raw, bytes)))?,
            disk: 0,
            kind: kind_of(u64::from(layout.short(raw, command)))?,
        })
    }
}

impl Reader for Vscsi {
    fn fill(&mut self, out: &mut Vec<Record>) -> Result<bool, LeadlineError> {
        let size = self.layout.size();
        let held = self.input.peek(size)?;
        if held.len() < size {
            let left = held.len() as u64;
            self.notes.add("cut", u64::from(left > 0), || {
                format!("the last record was cut after {left} of {size} bytes and is left out")
            });
            return Ok(false);
        }
        let count = (held.len() / size).min(BATCH);
        let mut others = 0;
        let mut wrong = None;
        let raw = held[..count * size].to_vec();
        for (index, record) in raw.chunks_exact(size).enumerate() {
            if !self.layout.holds(record) {
                wrong = Some(index);
                break;
            }
            match self.record(record) {
                Some(record) => out.push(record),
                None => others += 1,
            }
        }
        self.notes.add("other", others, || {
            "commands that are no reads or writes of data, left out".into()
        });
        self.input.take(wrong.unwrap_or(count) * size);
        if wrong.is_some() {
            let version = self.layout.version;
            return Err(LeadlineError::new(
                self.input.byte_place(0),
                format!("a record that is not of version {version}"),
                format!("version {version} as in the records before"),
                "The trace is damaged or two were joined; cut it there and read the parts.",
            ));
        }
        Ok(true)
    }

    fn disks(&self) -> &[String] {
        &self.disks
    }

    fn notes(&mut self) -> Notes {
        std::mem::take(&mut self.notes)
    }
}
