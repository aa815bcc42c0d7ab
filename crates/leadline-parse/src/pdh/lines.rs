//! The line index: where every row begins, how long it is, and when it was taken.
//!
//! One pass looks for line ends and reads the first cell behind each; it touches every byte once but keeps 16 bytes
//! and a time per row. Knowing the number of rows beforehand lets the values be written to their final place at once.

use memchr::memchr_iter;
use rayon::prelude::*;

use super::clock;
use super::number::bare;
use super::row::{Fit, RowCutter, trimmed_length};
use super::sniff::{LINE_MAX_BYTES, Layout};
use super::source::Source;
use super::time::{RawTime, parse_time};
use super::warnings::{Warnings, code};
use leadline_stats::error::LeadlineError;

const CHUNK_BYTES: u64 = 1 << 20;
/// Chunks between two calls of `progress`.
const SLAB_CHUNKS: u64 = 512;
/// A time cell with its quotes, and a separator, fits well inside.
const HEAD_BYTES: usize = 64;

/// One row of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Narrow offset of its first character.
    pub start: u64,
    /// Characters without the line feed.
    pub length: u32,
    /// Line number in the file, from 1.
    pub line_number: u32,
}

/// All rows with their times.
#[derive(Debug, Default)]
pub struct Index {
    /// Rows in file order; blank lines and repeated headers are not among them.
    pub rows: Vec<Row>,
    /// Per row, nanoseconds since the epoch, UTC.
    pub times_ns: Vec<i64>,
    /// Whether the first row begins with a quote.
    pub quoted: bool,
    /// What was repaired.
    pub warnings: Warnings,
}

/// What the first characters of a line say.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Head {
    Time(RawTime),
    Header,
    Blank,
    Other,
}

/// What finding the rows needs to know.
pub struct Task<'a> {
    /// The recording.
    pub source: &'a Source,
    /// Its dialect.
    pub layout: &'a Layout,
    /// Number of columns in the header, without the time.
    pub columns: usize,
    /// Minutes to add to local times.
    pub utc_offset_min: i32,
    /// Whether the header lacked separators, so that rows must be expected to.
    pub careful: bool,
}

/// Reads the file once and builds its index. `progress(done, total)` returns false to stop.
///
/// # Errors
/// When a row does not begin with a time (and is not the last), a header comes again that differs, a date does not
/// exist, or the file cannot be read.
pub fn build_index(
    task: &Task<'_>,
    progress: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<Index, LeadlineError> {
    let start = task.layout.rows_start;
    let end = task.source.len();
    let mut head_bytes = Vec::new();
    task.source.read_at(start, HEAD_BYTES, &mut head_bytes)?;
    let mut builder = Builder::new(task);
    builder.index.quoted = head_bytes.first() == Some(&b'"');
    let mut open = (start, read_head(&head_bytes, task.layout));
    let mut from = start;
    while from < end {
        let slab_end = end.min(from + SLAB_CHUNKS * CHUNK_BYTES);
        for (line_end, next_head) in scan_slab(task, from, slab_end)? {
            builder.line(open, line_end)?;
            open = (line_end + 1, next_head);
        }
        from = slab_end;
        if !progress(from - start, end - start) {
            return Err(interrupted(task.source));
        }
    }
    if open.0 < end {
        builder.line(open, end)?;
    }
    builder.finish()
}

/// Sorts lines into rows and others.
struct Builder<'a> {
    task: &'a Task<'a>,
    index: Index,
    raw_times: Vec<RawTime>,
    line_number: u32,
    /// The line before, if it is no row: whether that is an error depends on whether another follows.
    unusable: Option<Row>,
}

impl<'a> Builder<'a> {
    fn new(task: &'a Task<'a>) -> Self {
        Self {
            task,
            index: Index::default(),
            raw_times: Vec::new(),
            line_number: task.layout.header_line_number,
            unusable: None,
        }
    }

    fn line(&mut self, (start, head): (u64, Head), end: u64) -> Result<(), LeadlineError> {
        self.line_number = self.line_number.saturating_add(1);
        let length = u32::try_from(end - start).unwrap_or(u32::MAX);
        let row = Row {
            start,
            length,
            line_number: self.line_number,
        };
        if length as usize > LINE_MAX_BYTES {
            return Err(too_long(self.task.source, row));
        }
        if head == Head::Blank {
            return Ok(());
        }
        if let Some(before) = self.unusable.take() {
            pass_over(self.task, before, &mut self.index)?;
        }
        if let Head::Time(time) = head {
            self.index.rows.push(row);
            self.raw_times.push(time);
        } else {
            self.unusable = Some(row);
        }
        Ok(())
    }

    fn finish(self) -> Result<Index, LeadlineError> {
        let Self {
            task,
            mut index,
            mut raw_times,
            unusable,
            ..
        } = self;
        finish_last_row(task, unusable, &mut index)?;
        raw_times.truncate(index.rows.len());
        let modified_ns = task.source.modified_ns;
        let times_ns = clock::resolve(
            &raw_times,
            task.utc_offset_min,
            modified_ns,
            &mut index.warnings,
        );
        index.times_ns = times_ns.map_err(|e| {
            let line = index.rows.get(e.row_index).map_or(0, |r| r.line_number);
            let advice = "Correct that cell, or remove the row, and run the command again.";
            LeadlineError::new(
                task.source.place(u64::from(line)),
                e.found,
                e.expected,
                advice,
            )
        })?;
        Ok(index)
    }
}

/// Line ends in `from..to`, each with what the line behind it begins with.
fn scan_slab(task: &Task<'_>, from: u64, to: u64) -> Result<Vec<(u64, Head)>, LeadlineError> {
    let chunks = (to - from).div_ceil(CHUNK_BYTES);
    let parts: Vec<Vec<(u64, Head)>> = (0..chunks)
        .into_par_iter()
        .map_init(Vec::new, |buffer, chunk| {
            let start = from + chunk * CHUNK_BYTES;
            let length = usize::try_from(CHUNK_BYTES.min(to - start)).unwrap_or(usize::MAX);
            // The line behind the chunk's last line end begins in the next chunk.
            task.source.read_at(start, length + HEAD_BYTES, buffer)?;
            let inside = &buffer[..length.min(buffer.len())];
            Ok(memchr_iter(task.layout.line_end, inside)
                .map(|at| {
                    let head_end = buffer.len().min(at + 1 + HEAD_BYTES);
                    (
                        start + at as u64,
                        read_head(&buffer[at + 1..head_end], task.layout),
                    )
                })
                .collect())
        })
        .collect::<Result<_, LeadlineError>>()?;
    Ok(parts.into_iter().flatten().collect())
}

fn read_head(bytes: &[u8], layout: &Layout) -> Head {
    let first = bytes.iter().position(|b| !matches!(b, b' ' | b'\r'));
    if first.is_none_or(|at| bytes[at] == layout.line_end) {
        return Head::Blank;
    }
    let text = bytes.strip_prefix(b"\"").unwrap_or(bytes);
    if text.starts_with(b"(PDH-") {
        return Head::Header;
    }
    let end = if bytes.starts_with(b"\"") {
        memchr::memchr(b'"', text)
    } else {
        text.iter()
            .position(|b| *b == layout.separator || *b == b'\r' || *b == b'\n')
    };
    parse_time(bare(&text[..end.unwrap_or(text.len())])).map_or(Head::Other, Head::Time)
}

/// A line that is no row, with another line behind it: a repeated header or an empty row, or else an error.
fn pass_over(task: &Task<'_>, row: Row, index: &mut Index) -> Result<(), LeadlineError> {
    let (source, layout) = (task.source, task.layout);
    let mut line = Vec::new();
    source.read_at(row.start, row.length as usize, &mut line)?;
    let text = line.trim_ascii_end();
    if is_empty_row(text, layout) {
        index.warnings.add(code::EMPTY_ROWS, 1, || {
            "rows without any value were left out".into()
        });
        return Ok(());
    }
    let place = source.place(u64::from(row.line_number));
    if text.starts_with(b"(PDH-") || text.starts_with(b"\"(PDH-") {
        let mut header = Vec::new();
        let length = usize::try_from(layout.header_end - layout.header_start).unwrap_or(usize::MAX);
        source.read_at(layout.header_start, length, &mut header)?;
        if header.trim_ascii_end() == text {
            index.warnings.add(code::HEADER_REPEATED, 1, || {
                "the header came again inside the file (recordings joined) and was skipped".into()
            });
            return Ok(());
        }
        return Err(LeadlineError::new(
            place,
            "a second header that differs from the first",
            "rows of one recording",
            "Split the file before this line and name both parts.",
        ));
    }
    let shown: String = String::from_utf8_lossy(&text[..text.len().min(30)])
        .escape_default()
        .take(40)
        .collect();
    Err(LeadlineError::new(
        place,
        format!("a row that begins {shown}"),
        "a date and time in the first cell",
        "Remove the line if it does not belong to the recording.",
    ))
}

fn is_empty_row(text: &[u8], layout: &Layout) -> bool {
    let blank = text
        .iter()
        .all(|b| matches!(b, b' ' | b'\t' | b'"' | b'\r') || *b == layout.separator);
    // A quote that does not close is the beginning of a row.
    blank && memchr_iter(b'"', text).count() % 2 == 0
}

/// Leaves out a last row that is incomplete: the recorder was stopped, or is still writing.
fn finish_last_row(
    task: &Task<'_>,
    unusable: Option<Row>,
    index: &mut Index,
) -> Result<(), LeadlineError> {
    let cut = |warnings: &mut Warnings, row: Row| {
        warnings.add(code::LAST_ROW_CUT, 1, || {
            format!("line {}, the last, is incomplete and was left out; it was cut, or is still being written", row.line_number)
        });
    };
    if let Some(row) = unusable {
        // Without a line behind it, a line that is no row counts as cut.
        let mut line = Vec::new();
        task.source
            .read_at(row.start, row.length as usize, &mut line)?;
        if is_empty_row(&line, task.layout) {
            return pass_over(task, row, index);
        }
        cut(&mut index.warnings, row);
        return Ok(());
    }
    let Some(&row) = index.rows.last() else {
        return Ok(());
    };
    let mut cutter = RowCutter::new(task);
    let mut line = Vec::new();
    task.source
        .read_at(row.start, row.length as usize, &mut line)?;
    let ended = row.start + u64::from(row.length) < task.source.len();
    let length = trimmed_length(&line, task.layout.separator);
    let fits = !matches!(cutter.cut_checked(&mut line[..length]), Fit::Cells(_));
    // All separators may be there and the last value still to come.
    if !fits || !(ended || cutter.last_cell_begun()) {
        cut(&mut index.warnings, row);
        index.rows.pop();
    } else if !ended {
        index.warnings.add(code::NO_FINAL_LINE_END, 1, || {
            let doubt = if index.quoted {
                ""
            } else {
                "; without quotes its last number may be cut"
            };
            format!("the last row has all its cells but no line end; it was kept{doubt}")
        });
    }
    Ok(())
}

/// The error for a read that `progress` stopped.
#[must_use]
pub fn interrupted(source: &Source) -> LeadlineError {
    LeadlineError::new(
        &*source.name,
        "reading was interrupted",
        "to read to the end",
        "Run the command again.",
    )
}

fn too_long(source: &Source, row: Row) -> LeadlineError {
    LeadlineError::new(
        source.place(u64::from(row.line_number)),
        format!("a line longer than {} MB", LINE_MAX_BYTES >> 20),
        "one row per line",
        "Check that the file was not damaged in transfer.",
    )
}
