//! Finds the header line and the dialect: separator, quoting, line ends.

use memchr::{memchr2, memmem};

use super::source::Source;
use super::warnings::{Warnings, code};
use leadline_stats::error::LeadlineError;

/// How far into a file the header may begin: chatter of a remote session is a few lines, not megabytes.
const JUNK_MAX_BYTES: usize = 1 << 20;
/// Judgement: 61,500 columns make about 5 MB of header; forty times that is no recording.
pub const LINE_MAX_BYTES: usize = 256 << 20;
const MARK: &[u8] = b"(PDH-";

/// Where the header stands and how cells and lines are told apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Narrow offset of the header's first character.
    pub header_start: u64,
    /// Narrow offset behind the header's last character.
    pub header_end: u64,
    /// Narrow offset of the first line behind the header.
    pub rows_start: u64,
    /// Line number of the header in the file, from 1.
    pub header_line_number: u32,
    /// Comma, tab or semicolon.
    pub separator: u8,
    /// Whether the first header cell is quoted.
    pub quoted: bool,
    /// Last byte of a line end: line feed, or carriage return where that stands alone.
    pub line_end: u8,
}

/// Finds the header of `source`.
///
/// # Errors
/// When no `(PDH-` stands near the start, or the header line does not end within 256 MB.
pub fn sniff(source: &Source, warnings: &mut Warnings) -> Result<Layout, LeadlineError> {
    let mut head = Vec::new();
    source.read_at(0, JUNK_MAX_BYTES, &mut head)?;
    let Some(mark) = memmem::find(&head, MARK) else {
        return Err(not_pdh(source, &head));
    };
    let quoted = mark > 0 && head[mark - 1] == b'"';
    let start = mark - usize::from(quoted);
    let junk = &head[..start];
    let junk_lines = line_breaks(junk);
    if !junk.is_empty() {
        warnings.add(code::JUNK_BEFORE_HEADER, junk.len() as u64, || {
            format!("{} characters before the header were skipped", junk.len())
        });
    }
    let header_start = start as u64;
    let header = read_line(source, header_start, head)?;
    let (separator, breaks) = (find_separator(&header.text, quoted), &header.breaks);
    let line_end = if breaks.starts_with(b"\r") && !breaks.contains(&b'\n') {
        b'\r'
    } else {
        b'\n'
    };
    if line_end == b'\r' {
        warnings.add(code::CR_LINES, 1, || {
            "lines end in a carriage return alone, as saved by Excel on a Mac".into()
        });
    }
    if !quoted {
        warnings.add(code::UNQUOTED, 1, || {
            "cells are not quoted: a spreadsheet saved the recording again".into()
        });
    }
    let header_end = header_start + header.text.len() as u64;
    Ok(Layout {
        header_start,
        header_end,
        rows_start: header_end + breaks.len() as u64,
        header_line_number: u32::try_from(junk_lines + 1).unwrap_or(u32::MAX),
        separator,
        quoted,
        line_end,
    })
}

struct HeaderLine {
    text: Vec<u8>,
    /// The line-end characters behind it; empty at the end of the file.
    breaks: Vec<u8>,
}

/// Reads from `start` to the first line end. The buffer doubles, so that a header of megabytes costs few reads.
fn read_line(
    source: &Source,
    start: u64,
    mut buffer: Vec<u8>,
) -> Result<HeaderLine, LeadlineError> {
    let mut want = JUNK_MAX_BYTES;
    loop {
        source.read_at(start, want, &mut buffer)?;
        let at_end = buffer.len() < want;
        let end = memchr2(b'\n', b'\r', &buffer);
        // Sixteen more characters show whether a line feed follows the carriage return.
        if let Some(end) = end.filter(|end| at_end || end + 16 <= buffer.len()) {
            let mut breaks: Vec<u8> = buffer[end..]
                .iter()
                .copied()
                .take_while(|b| *b == b'\r')
                .take(15)
                .collect();
            if buffer.get(end + breaks.len()) == Some(&b'\n') {
                breaks.push(b'\n');
            } else {
                breaks.truncate(1);
            }
            buffer.truncate(end);
            return Ok(HeaderLine {
                text: buffer,
                breaks,
            });
        }
        if at_end {
            return Ok(HeaderLine {
                text: buffer,
                breaks: Vec::new(),
            });
        }
        if want >= LINE_MAX_BYTES {
            return Err(LeadlineError::new(
                source.place(1),
                format!("no line end within {} MB", LINE_MAX_BYTES >> 20),
                "a header line followed by rows",
                "Check that the file is a recording and was not damaged in transfer.",
            ));
        }
        want *= 2;
    }
}

fn find_separator(header: &[u8], quoted: bool) -> u8 {
    let is_separator = |b: &u8| matches!(b, b',' | b'\t' | b';');
    let behind_first = if quoted {
        memchr::memchr(b'"', &header[1..])
            .and_then(|end| header.get(end + 2))
            .filter(|b| is_separator(b))
    } else {
        header.iter().find(|b| is_separator(b))
    };
    behind_first.copied().unwrap_or_else(|| {
        let tabs = header
            .get(usize::from(quoted)..)
            .is_some_and(|h| h.starts_with(b"(PDH-TSV"));
        if tabs { b'\t' } else { b',' }
    })
}

/// Number of line ends, a carriage return and line feed counting once.
#[must_use]
pub fn line_breaks(text: &[u8]) -> u64 {
    let mut count = 0;
    let mut before = 0;
    for &b in text {
        count += u64::from(b == b'\r' || (b == b'\n' && before != b'\r'));
        before = b;
    }
    count
}

fn not_pdh(source: &Source, head: &[u8]) -> LeadlineError {
    let found = if head.is_empty() {
        "an empty file".to_owned()
    } else {
        let shown: String = String::from_utf8_lossy(&head[..head.len().min(40)])
            .escape_default()
            .take(60)
            .collect();
        format!("no (PDH-CSV or (PDH-TSV near the start; the file begins {shown}")
    };
    LeadlineError::new(
        source.place(1),
        found,
        "a header whose first cell begins (PDH-CSV 4.0)",
        "Name a recording of `esxtop -b`, resxtop or Windows Performance Monitor saved as CSV or TSV.",
    )
}
