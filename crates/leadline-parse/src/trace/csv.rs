//! Command traces as CSV: what vscsiStats exports, and the layout of the MSR Cambridge traces.
//!
//! vscsiStats: two lines that begin with #, the second with the names of the columns; times are microseconds.
//! MSR: Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime, with or without that header; the times are Windows
//! file times, units of 100 ns.
//! Source: the README of the MSR Cambridge traces (SNIA IOTTA 388); headers of exported vscsiStats traces.

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
    /// Host and number, or none: one disk, named by the file.
    disk: Option<(usize, usize)>,
    count: usize,
    ns_per_tick: u64,
    offset_unit: u64,
}

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
    let kind = kind_named(trimmed(fields[columns.kind]))?;
    let bytes = length(at(columns.bytes)?);
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
