//! Which format a file has, and the reader for it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::Reader;
use super::blkparse::{Blkparse, is_event};
use super::blktrace::{self, Blktrace};
use super::csv::{self, Columns, Csv};
use super::input::{BLOCK_BYTES, BLOCK_BYTES_OF_MANY, Input};
use super::iolog::{self, Iolog};
use super::latlog::{self, LatLog};
use super::seconds::Spreading;
use super::vscsi::{self, Vscsi};
use leadline_stats::error::LeadlineError;

const HEAD_BYTES: usize = 1 << 14;
const LINES: usize = 12;

/// The formats.
enum Format {
    Vscsi(vscsi::Layout),
    VscsiCsv(Columns),
    Msr,
    Alibaba,
    Tencent,
    Blktrace(bool),
    Blkparse,
    Iolog(u8),
    LatLog,
}

impl Format {
    fn name(&self) -> &'static str {
        match self {
            Self::Vscsi(_) => "vscsi",
            Self::VscsiCsv(_) => "vscsi-csv",
            Self::Msr => "msr-csv",
            Self::Alibaba => "alibaba-csv",
            Self::Tencent => "tencent-csv",
            Self::Blktrace(_) => "blktrace",
            Self::Blkparse => "blkparse",
            Self::Iolog(_) => "fio-iolog",
            Self::LatLog => "fio-lat-log",
        }
    }
}

fn format_of(head: &[u8]) -> Option<Format> {
    if let Some(big_endian) = blktrace::byte_order(head) {
        return Some(Format::Blktrace(big_endian));
    }
    let mut lines = head
        .split(|byte| *byte == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let first = lines.clone().next().unwrap_or(b"");
    if let Some(version) = iolog::version(first) {
        return Some(Format::Iolog(version));
    }
    if first.starts_with(b"#") {
        let mut headers = lines
            .clone()
            .take(LINES)
            .take_while(|line| line.starts_with(b"#"));
        if let Some(columns) = headers.find_map(Columns::vscsi) {
            return Some(Format::VscsiCsv(columns));
        }
    }
    if csv::is_msr(first) {
        return Some(Format::Msr);
    }
    if csv::is_alibaba(first) {
        return Some(Format::Alibaba);
    }
    if csv::is_tencent(first) {
        return Some(Format::Tencent);
    }
    if latlog::is_entry(first) {
        return Some(Format::LatLog);
    }
    if lines
        .find(|line| !line.trim_ascii().is_empty())
        .is_some_and(is_event)
    {
        return Some(Format::Blkparse);
    }
    vscsi::layout(head).map(Format::Vscsi)
}

fn unknown(place: &str, is_empty: bool) -> LeadlineError {
    let found = if is_empty {
        "is empty"
    } else {
        "no I/O trace that is known"
    };
    LeadlineError::new(
        place,
        found,
        "vscsiStats (.vscsi or CSV), blktrace, blkparse text, fio iolog v2 or v3, CSV of MSR, Alibaba or Tencent",
        "docs/guides/traces.md shows how to record each.",
    )
}

/// The name of a file's format.
///
/// # Errors
/// The file cannot be read or is no trace.
pub fn format_name(path: &Path, name: &str) -> Result<&'static str, LeadlineError> {
    let mut input = Input::open(path, name, BLOCK_BYTES, &Arc::default())?;
    let head = input.peek(HEAD_BYTES)?;
    let format = format_of(&head[..head.len().min(HEAD_BYTES)]);
    format
        .map(|format| format.name())
        .ok_or_else(|| unknown(name, head.is_empty()))
}

/// Opens the files of one trace: one file, or the per-CPU files of blktrace, or the logs of one run of fio.
///
/// # Errors
/// A file cannot be read, is no trace, or is of another format than the first.
pub fn open(
    files: &[(PathBuf, String)],
    done: &Arc<AtomicU64>,
) -> Result<(Box<dyn Reader>, &'static str), LeadlineError> {
    let block = if files.len() > 1 {
        BLOCK_BYTES_OF_MANY
    } else {
        BLOCK_BYTES
    };
    let mut inputs = Vec::with_capacity(files.len());
    for (path, name) in files {
        let mut input = Input::open(path, name, block, done)?;
        let head = input.peek(HEAD_BYTES)?;
        let is_empty = head.is_empty();
        match format_of(&head[..head.len().min(HEAD_BYTES)]) {
            Some(format) => inputs.push((input, format)),
            None if is_empty && files.len() > 1 => {} // a CPU that did nothing
            None => return Err(unknown(name, is_empty)),
        }
    }
    let Some((_, first)) = inputs.first() else {
        let name = files.first().map_or("the trace", |(_, name)| name.as_str());
        return Err(unknown(name, true));
    };
    let name = first.name();
    if let Some((other, format)) = inputs.iter().find(|(_, format)| format.name() != name) {
        return Err(LeadlineError::new(
            other.place(),
            format!("a trace of format {}", format.name()),
            format!("{name}, as the files before it"),
            "Give traces of different formats one by one.",
        ));
    }
    let disk = disk_name(&files[0].1);
    if inputs.len() > 1 && !matches!(name, "blktrace" | "fio-lat-log") {
        return Err(LeadlineError::new(
            inputs[1].0.place(),
            "a second file",
            format!("one file for a trace of format {name}"),
            "Give the traces one by one.",
        ));
    }
    reader_of(inputs, &disk).map(|reader| (reader, name))
}

fn reader_of(inputs: Vec<(Input, Format)>, disk: &str) -> Result<Box<dyn Reader>, LeadlineError> {
    let mut several = Vec::new();
    let mut logs = Vec::new();
    for (mut input, format) in inputs {
        match format {
            Format::Vscsi(layout) => {
                return Ok(Box::new(Vscsi::new(input, layout, disk.to_owned())));
            }
            Format::VscsiCsv(columns) => return Ok(Box::new(Csv::new(input, columns, disk)?)),
            Format::Msr => {
                let head = input.peek(HEAD_BYTES)?;
                if csv::is_msr_header(head) {
                    input.line()?;
                }
                return Ok(Box::new(Csv::new(input, Columns::msr(), disk)?));
            }
            Format::Alibaba => {
                skip_names(&mut input)?;
                return Ok(Box::new(Csv::new(input, Columns::alibaba(), disk)?));
            }
            Format::Tencent => {
                skip_names(&mut input)?;
                let rows = Csv::new(input, Columns::tencent(), disk)?;
                return Ok(Box::new(Spreading::new(Box::new(rows))));
            }
            Format::Blkparse => return Ok(Box::new(Blkparse::new(input))),
            Format::Iolog(version) => {
                input.line()?;
                return Ok(Box::new(Iolog::new(input, version)));
            }
            Format::Blktrace(big_endian) => several.push((input, big_endian)),
            Format::LatLog => logs.push(input),
        }
    }
    if logs.is_empty() {
        Ok(Box::new(Blktrace::new(several)?))
    } else {
        Ok(Box::new(LatLog::new(logs, disk)?))
    }
}

/// Passes over the names of the columns where a cloud's trace has them.
fn skip_names(input: &mut Input) -> Result<(), LeadlineError> {
    if csv::is_cloud_header(input.peek(HEAD_BYTES)?) {
        input.line()?;
    }
    Ok(())
}

/// The file's own name without folder and known endings.
fn disk_name(name: &str) -> String {
    let base = name.rsplit(['/', '!']).next().unwrap_or(name);
    let base = base.strip_suffix(".gz").unwrap_or(base);
    base.rsplit_once('.')
        .map_or(base, |(stem, _)| if stem.is_empty() { base } else { stem })
        .to_owned()
}
