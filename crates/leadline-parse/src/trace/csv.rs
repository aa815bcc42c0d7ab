//! Command traces as CSV: what vscsiStats exports, and the layout of the MSR Cambridge traces.
//!
//! vscsiStats: two lines that begin with #, the second with the names of the columns; times are microseconds.
//! MSR: Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime, with or without that header; the times are Windows
//! file times, units of 100 ns.
//! Alibaba: device, R or W, offset, length, microseconds; bytes. Tencent: seconds, first sector, sectors, 0 for a read
//! and 1 for a write, volume; sectors of 512 bytes. Both have no header as published, and no latencies.
//! Source: the README of the MSR Cambridge traces (SNIA IOTTA 388); headers of exported vscsiStats traces; the README of
//! alibaba/block-traces; the README of the Tencent block storage traces at SNIA IOTTA.

use memchr::memchr;

use super::input::{Input, length, number, trimmed};
use super::vscsi::kind_of;
use super::{Disks, Kind, NO_LATENCY, Notes, Reader, Record};
use leadline_stats::error::LeadlineError;

const BATCH: usize = 8192;
const FIELDS_MAX: usize = 16;
const NS_PER_TICK: u64 = 100;

/// Which column holds what, and in which unit.
#[derive(Clone, Debug)]
pub struct Columns {
    time: usize,
    kind: usize,
    offset: usize,
    bytes: usize,
    latency: Option<usize>,
    /// First and last column of its name, side by side, or none: one disk, named by the file.
    disk: Option<(usize, usize)>,
    count: usize,
    ns_per_tick: u64,
    offset_unit: u64,
    length_unit: u64,
    /// Whether the kind is 0 for a read and 1 for a write, no operation code.
    is_zero_read: bool,
}

/// Column names of Alibaba's traces, should a file begin with them.
const ALIBABA_HEADER: &[u8] = b"device_id,opcode,offset,length,timestamp";
/// Column names of Tencent's traces.
const TENCENT_HEADER: &[u8] = b"timestamp,offset,size,iotype,volumeid";
const NS_PER_S: u64 = 1_000_000_000;
/// Judgement: seconds since 1970 are above this since 2001; no log that counts from its own beginning is.
const EPOCH_S_MIN: u64 = 1_000_000_000;

impl Columns {
    /// The columns of MSR-style traces.
    pub fn msr() -> Self {
        Self {
            time: 0,
            kind: 3,
            offset: 4,
            bytes: 5,
            latency: Some(6),
            disk: Some((1, 2)),
            count: 7,
            ns_per_tick: NS_PER_TICK,
            offset_unit: 1,
            length_unit: 1,
            is_zero_read: false,
        }
    }

    /// The columns of Alibaba's traces.
    pub fn alibaba() -> Self {
        Self {
            time: 4,
            kind: 1,
            offset: 2,
            bytes: 3,
            latency: None,
            disk: Some((0, 0)),
            count: 5,
            ns_per_tick: 1000,
            offset_unit: 1,
            length_unit: 1,
            is_zero_read: false,
        }
    }

    /// The columns of Tencent's traces.
    pub fn tencent() -> Self {
        Self {
            time: 0,
            kind: 3,
            offset: 1,
            bytes: 2,
            latency: None,
            disk: Some((4, 4)),
            count: 5,
            ns_per_tick: NS_PER_S,
            offset_unit: 512,
            length_unit: 512,
            is_zero_read: true,
        }
    }

    /// The columns a header of vscsiStats names; None when it names too few, or one beyond the fields that are read.
    pub fn vscsi(header: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(header).to_lowercase();
        let names: Vec<&str> = text
            .trim_start_matches('#')
            .split(',')
            .map(str::trim)
            .collect();
        let find = |words: &[&str]| {
            names
                .iter()
                .position(|name| words.iter().any(|word| name.contains(word)))
        };
        let latency = find(&["response", "latency"]);
        let columns = Self {
            time: find(&["time stamp", "timestamp"])?,
            kind: find(&["command type", "cmd", "command"])?,
            offset: find(&["lbn", "lba"])?,
            bytes: find(&["data length", "length"])?,
            latency,
            disk: None,
            count: names.len(),
            ns_per_tick: 1000,
            offset_unit: 512,
            length_unit: 1,
            is_zero_read: false,
        };
        let used = [columns.time, columns.kind, columns.offset, columns.bytes];
        let is_read = |column: usize| column < FIELDS_MAX;
        (used.into_iter().all(is_read) && latency.is_none_or(is_read)).then_some(columns)
    }
}

/// A trace as CSV.
pub struct Csv {
    input: Input,
    columns: Columns,
    disks: Disks,
    notes: Notes,
    ended: bool,
}

impl Csv {
    /// Reads a trace; `disk` names the disk of formats that do not.
    ///
    /// # Errors
    /// Never: the name is the first.
    pub fn new(input: Input, columns: Columns, disk: &str) -> Result<Self, LeadlineError> {
        let mut disks = Disks::default();
        if columns.disk.is_none() {
            disks.index_of(disk.as_bytes(), String::new)?;
        }
        Ok(Self {
            input,
            columns,
            disks,
            notes: Notes::default(),
            ended: false,
        })
    }

    /// One line: a record, a command without data, a comment, or an error.
    fn next(&mut self) -> Result<Option<Record>, LeadlineError> {
        let Some((line, whole)) = self.input.line()? else {
            self.ended = true;
            return Ok(None);
        };
        if line.is_empty() || line[0] == b'#' {
            return Ok(None);
        }
        let columns = &self.columns;
        let mut fields = [&line[..0]; FIELDS_MAX];
        let count = split(line, &mut fields);
        let record = (count == columns.count)
            .then(|| parse(columns, &fields))
            .flatten();
        if let (Some(parsed), true) = (
            record,
            whole || self.columns.latency.is_none_or(|at| at + 1 < count),
        ) {
            let Some(kind) = parsed.kind else {
                self.notes.add("other", 1, || {
                    "commands that are no reads or writes of data, left out".into()
                });
                return Ok(None);
            };
            let disk = match columns.disk {
                None => 0,
                Some((host, disk)) => {
                    let (host, disk) = (trimmed(fields[host]), trimmed(fields[disk]));
                    let from = host.as_ptr() as usize - line.as_ptr() as usize;
                    let to = disk.as_ptr() as usize - line.as_ptr() as usize + disk.len();
                    // Host and number stand side by side; the comma between them is part of the name until shown.
                    let joined = line.get(from..to).unwrap_or(host);
                    self.disks.index_of(joined, || "the trace".into())?
                }
            };
            return Ok(Some(Record {
                time_ns: parsed.time_ns,
                offset: parsed.offset,
                latency_ns: parsed.latency_ns,
                bytes: parsed.bytes,
                disk,
                kind,
            }));
        }
        if !whole {
            self.notes
                .add("cut", 1, || "the last line was cut and is left out".into());
            return Ok(None);
        }
        Err(self.wrong(count))
    }

    #[cold]
    fn wrong(&self, count: usize) -> LeadlineError {
        let expected = self.columns.count;
        let found = if count == expected {
            "a field that is no number".into()
        } else {
            format!("{count} fields")
        };
        LeadlineError::new(
            self.input.line_place(),
            found,
            format!("{expected} fields: times, block or offset and length as whole numbers"),
            "Remove the damaged line, or cut the trace there.",
        )
    }
}

struct Parsed {
    time_ns: u64,
    offset: u64,
    latency_ns: u64,
    bytes: u32,
    kind: Option<Kind>,
}

#[inline]
fn parse(columns: &Columns, fields: &[&[u8]; FIELDS_MAX]) -> Option<Parsed> {
    let at = |column: usize| number(trimmed(fields[column]));
    let kind = if columns.is_zero_read {
        Some(match trimmed(fields[columns.kind]) {
            b"0" => Kind::Read,
            b"1" => Kind::Write,
            _ => return None,
        })
    } else {
        kind_named(trimmed(fields[columns.kind]))?
    };
    let bytes = length(at(columns.bytes)?.checked_mul(columns.length_unit)?);
    let latency = match columns.latency {
        Some(column) => at(column)?.checked_mul(columns.ns_per_tick)?,
        None => NO_LATENCY,
    };
    Some(Parsed {
        time_ns: at(columns.time)?.checked_mul(columns.ns_per_tick)?,
        offset: at(columns.offset)?.checked_mul(columns.offset_unit)?,
        latency_ns: latency,
        bytes: bytes.unwrap_or(0),
        kind: if bytes.is_some() { kind } else { None },
    })
}

/// The outer None is no kind at all, the inner a command that moves no data.
#[inline]
#[allow(clippy::option_option)]
fn kind_named(text: &[u8]) -> Option<Option<Kind>> {
    match text {
        b"Read" | b"read" | b"READ" | b"R" | b"r" => return Some(Some(Kind::Read)),
        b"Write" | b"write" | b"WRITE" | b"W" | b"w" => return Some(Some(Kind::Write)),
        _ => {}
    }
    if let Some(code) = number(text) {
        return Some(kind_of(code));
    }
    if let Some(hex) = text.strip_prefix(b"0x") {
        let code = std::str::from_utf8(hex)
            .ok()
            .and_then(|hex| u64::from_str_radix(hex, 16).ok())?;
        return Some(kind_of(code));
    }
    let is_word = !text.is_empty()
        && text
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || b" _-()".contains(b));
    is_word.then_some(None)
}

#[inline]
fn split<'a>(line: &'a [u8], fields: &mut [&'a [u8]; FIELDS_MAX]) -> usize {
    let (mut rest, mut count) = (line, 0);
    loop {
        let comma = memchr(b',', rest);
        if count < FIELDS_MAX {
            fields[count] = &rest[..comma.unwrap_or(rest.len())];
        }
        count += 1;
        match comma {
            Some(at) => rest = &rest[at + 1..],
            None => return count,
        }
    }
}

/// Whether a line is one of an MSR-style trace, or its header.
pub fn is_msr(line: &[u8]) -> bool {
    let mut fields = [&line[..0]; FIELDS_MAX];
    let count = split(line, &mut fields);
    is_msr_header(line) || (count == 7 && parse(&Columns::msr(), &fields).is_some())
}

/// Whether a line is the header of an MSR-style trace.
pub fn is_msr_header(line: &[u8]) -> bool {
    line.to_ascii_lowercase()
        .starts_with(b"timestamp,hostname,disknumber,type,offset,size,responsetime")
}

/// Whether a line is one of Alibaba's traces, or its header.
pub fn is_alibaba(line: &[u8]) -> bool {
    let mut fields = [&line[..0]; FIELDS_MAX];
    let count = split(line, &mut fields);
    let is_letter = |field: &[u8]| matches!(field, b"R" | b"W");
    has_names(line, ALIBABA_HEADER)
        || (count == 5 && is_letter(fields[1]) && parse(&Columns::alibaba(), &fields).is_some())
}

/// Whether a line is one of Tencent's traces, or its header. fio's latency logs have five numbers, too, but a space
/// behind each comma and a length where the kind is.
pub fn is_tencent(line: &[u8]) -> bool {
    let mut fields = [&line[..0]; FIELDS_MAX];
    let count = split(line, &mut fields);
    let is_now = number(fields[0]).is_some_and(|seconds| seconds >= EPOCH_S_MIN);
    has_names(line, TENCENT_HEADER)
        || (count == 5 && is_now && parse(&Columns::tencent(), &fields).is_some())
}

/// Whether the file begins with the names of the columns of a cloud's trace.
pub fn is_cloud_header(head: &[u8]) -> bool {
    has_names(head, ALIBABA_HEADER) || has_names(head, TENCENT_HEADER)
}

fn has_names(line: &[u8], names: &[u8]) -> bool {
    line.get(..names.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(names))
}

impl Reader for Csv {
    fn fill(&mut self, out: &mut Vec<Record>) -> Result<bool, LeadlineError> {
        for _ in 0..BATCH {
            if let Some(record) = self.next()? {
                out.push(record);
            }
            if self.ended {
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
