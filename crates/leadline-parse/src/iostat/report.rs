//! The order of lines: banner, then reports of a time, a CPU table and device tables, blank lines between.

use super::line::{Kind, kind_of, prefix_length, trimmed};
use super::number::is_blank;
use super::reader::note;
use super::table::{Row, Table, Wanted};
use super::{Column, Note, Recording, Run};
use leadline_stats::error::LeadlineError;

const ADVICE: &str =
    "Record again with `iostat -x -t`, or cut the lines that are not iostat's out of the file.";
const EXPECTED: &str = "the output of iostat";
/// Judgement: a terminal leaves a prompt, `exit` and a closing remark below the last report.
const TRAILING_LINES_MAX: usize = 3;
/// Reports after which their average length tells how many there will be.
const TYPICAL_AFTER: u64 = 64;

/// What the next line may be.
#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    /// Anything but a row.
    Between,
    /// The numbers below `avg-cpu:`.
    CpuRow(usize),
    /// Rows of a device table; the name on the line above, if it stood alone.
    DeviceRows(usize, Option<Vec<u8>>),
}

/// What the report at hand holds so far.
#[derive(Debug, Default)]
struct Open {
    has_cpu: bool,
    layouts: Vec<usize>,
    row_count: usize,
}

/// Reads a recording line by line.
pub struct Parser<'a> {
    place: &'a str,
    wanted: &'a Wanted,
    total_bytes: u64,
    byte_count: u64,
    line_number: usize,
    prefixed: Option<bool>,
    prefix: Vec<u8>,
    state: State,
    open: Option<Open>,
    blank_count: usize,
    banner_open: bool,
    cpu: Table,
    disks: Table,
    stamps: Vec<String>,
    runs: Vec<Run>,
    row_counts: Vec<usize>,
    notes: Vec<Note>,
    /// Whether the line at hand is none of iostat's.
    foreign: bool,
    trailing: Option<LeadlineError>,
    trailing_count: usize,
}

impl<'a> Parser<'a> {
    pub(super) fn new(place: &'a str, wanted: &'a Wanted, total_bytes: u64) -> Self {
        Self {
            place,
            wanted,
            total_bytes,
            byte_count: 0,
            line_number: 0,
            prefixed: None,
            prefix: Vec::new(),
            state: State::Between,
            open: None,
            blank_count: 0,
            banner_open: false,
            cpu: Table::default(),
            disks: Table::default(),
            stamps: Vec::new(),
            runs: Vec::new(),
            row_counts: Vec::new(),
            notes: Vec::new(),
            foreign: false,
            trailing: None,
            trailing_count: 0,
        }
    }

    /// The error for the line at hand.
    pub(super) fn error(&self, found: impl Into<String>) -> LeadlineError {
        LeadlineError::new(
            format!("{}:{}", self.place, self.line_number),
            found,
            EXPECTED,
            ADVICE,
        )
    }

    /// Takes one line without its line feed.
    pub(super) fn line(&mut self, line: &[u8]) -> Result<(), LeadlineError> {
        self.line_number += 1;
        self.byte_count += line.len() as u64 + 1;
        match self.content(line) {
            Err(found) if self.foreign => self.keep_trailing(&found),
            Err(found) => Err(self.trailing.take().unwrap_or_else(|| self.error(found))),
            Ok(()) => Ok(()),
        }
    }

    /// Remembers a foreign line below a whole report: fine at the end of the file, where a terminal's prompt stands.
    fn keep_trailing(&mut self, found: &str) -> Result<(), LeadlineError> {
        let error = self.error(found);
        self.foreign = false;
        let first = self.trailing.get_or_insert(error);
        self.trailing_count += 1;
        if self.trailing_count > TRAILING_LINES_MAX {
            Err(first.clone())
        } else {
            Ok(())
        }
    }

    /// Takes the unterminated rest of the file and closes the recording.
    pub(super) fn finish(mut self, rest: &[u8]) -> Result<Recording, LeadlineError> {
        let mut cut = false;
        if !trimmed(rest).is_empty() {
            self.line_number += 1;
            let before = self.last_decimals();
            let row_expected = self.state != State::Between;
            let begun = self.stamps.len();
            match self.content(rest) {
                Err(_) if row_expected => cut = true,
                Err(found) => self.keep_trailing(&found)?,
                Ok(()) => {
                    cut = self.stamps.len() > begun || (row_expected && self.looks_cut(before));
                }
            }
        }
        if self.trailing.is_some() {
            let count = self.trailing_count;
            note(&mut self.notes, "trailing-lines", || {
                format!("The last {count} lines are not iostat's and were left out.")
            });
        }
        cut |= self.state != State::Between && self.rows_missing();
        cut |= self.fewer_rows_than_always();
        if cut && self.open.is_some() {
            self.drop_last_report();
        }
        if self.stamps.is_empty() {
            let found = if self.line_number == 0 {
                "an empty file"
            } else {
                "no complete report"
            };
            return Err(self.error(found));
        }
        self.close_report();
        self.note_absent();
        Ok(self.into_recording())
    }

    fn content(&mut self, line: &[u8]) -> Result<(), String> {
        let mut line = line.strip_suffix(b"\r").unwrap_or(line);
        if self.line_number == 1 {
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        if self.prefixed.is_none() && !trimmed(line).is_empty() {
            self.prefixed = Some(prefix_length(line).is_some());
        }
        if self.prefixed == Some(true) && !trimmed(line).is_empty() {
            let length = prefix_length(line).or_else(|| {
                let padded = [line, b"\t"].concat();
                prefix_length(&padded).map(|_| line.len())
            });
            let length = length.ok_or("a line without the time that stands before the others")?;
            self.prefix = trimmed(&line[..length]).to_vec();
            line = &line[length..];
        }
        if line.iter().all(|byte| is_blank(*byte)) {
            return self.blank();
        }
        match std::mem::replace(&mut self.state, State::Between) {
            State::Between => self.between(line),
            State::CpuRow(layout) => self.cpu_row(layout, line),
            State::DeviceRows(layout, pending) => self.device_row(layout, pending.as_deref(), line),
        }
    }

    fn blank(&mut self) -> Result<(), String> {
        self.blank_count += 1;
        match std::mem::replace(&mut self.state, State::Between) {
            State::DeviceRows(_, Some(_)) => {
                Err("a blank line where a device's numbers belong".to_owned())
            }
            _ => Ok(()), // also below avg-cpu: its row was torn and taken out, so its values are not measured
        }
    }

    fn between(&mut self, line: &[u8]) -> Result<(), String> {
        let kind = kind_of(line);
        if self.trailing.is_some() && !matches!(kind, Kind::Other | Kind::Interrupt) {
            return Err("a report below lines that are not iostat's".to_owned());
        }
        match kind {
            Kind::Banner | Kind::Restart => self.begin_run(kind, line),
            Kind::Stamp => self.begin_report(&String::from_utf8_lossy(trimmed(line))),
            Kind::CpuHeader => {
                if self
                    .open
                    .as_ref()
                    .is_none_or(|open| open.has_cpu || !open.layouts.is_empty())
                {
                    self.begin_report("");
                }
                if let Some(open) = &mut self.open {
                    open.has_cpu = true;
                }
                self.state = State::CpuRow(self.cpu.layout(line, self.wanted));
            }
            Kind::DeviceHeader => {
                let layout = self.disks.layout(line, self.wanted);
                if self
                    .open
                    .as_ref()
                    .is_none_or(|open| open.layouts.contains(&layout))
                {
                    self.begin_report("");
                }
                if let Some(open) = &mut self.open {
                    open.layouts.push(layout);
                }
                self.state = State::DeviceRows(layout, None);
            }
            Kind::Interrupt => {}
            Kind::Other if self.runs.is_empty() && self.stamps.is_empty() => {
                let first = self.line_number;
                note(&mut self.notes, "leading-lines", || {
                    format!(
                        "Lines before the first report are not iostat's and were left out, from line {first}."
                    )
                });
            }
            Kind::Other => {
                self.foreign = true;
                return Err(format!("{:?}", shown(line)));
            }
        }
        self.blank_count = 0;
        Ok(())
    }

    fn begin_run(&mut self, kind: Kind, line: &[u8]) {
        self.close_report();
        let banner = match kind {
            Kind::Banner => String::from_utf8_lossy(trimmed(line)).into_owned(),
            _ => self
                .runs
                .last()
                .map(|run| run.banner.clone())
                .unwrap_or_default(),
        };
        self.runs.push(Run {
            first_report: self.stamps.len(),
            banner,
            since_boot: true,
        });
        self.banner_open = true;
    }

    fn begin_report(&mut self, stamp: &str) {
        self.close_report();
        if self.banner_open {
            self.banner_open = false;
            if let Some(run) = self.runs.last_mut() {
                run.since_boot = self.blank_count < 2;
            }
        } else if self.runs.is_empty() {
            self.runs.push(Run::default());
        }
        let stamp = if stamp.is_empty() || self.prefixed == Some(true) {
            String::from_utf8_lossy(&self.prefix).into_owned()
        } else {
            stamp.to_owned()
        };
        self.stamps.push(stamp);
        self.open = Some(Open::default());
        let (report, expected) = (self.stamps.len() - 1, self.expectation());
        self.cpu.begin(report, expected);
        self.disks.begin(report, expected);
    }

    fn close_report(&mut self) {
        if let Some(open) = self.open.take() {
            self.row_counts.push(open.row_count);
        }
    }

    /// Reports to make room for, by the bytes they have taken so far; a guess that costs address space only.
    fn expectation(&self) -> usize {
        let (seen, bytes) = (self.stamps.len() as u64, self.byte_count.max(1));
        if seen < TYPICAL_AFTER {
            return 0;
        }
        let all = seen.saturating_mul(self.total_bytes) / bytes;
        usize::try_from(all + all / 32 + 16).unwrap_or(0)
    }

    fn cpu_row(&mut self, layout: usize, line: &[u8]) -> Result<(), String> {
        match self.cpu.unnamed_row(layout, line, b"all") {
            Row::Bad(reason) => Err(reason),
            _ => Ok(()),
        }
    }

    #[inline]
    fn device_row(
        &mut self,
        layout: usize,
        pending: Option<&[u8]>,
        line: &[u8],
    ) -> Result<(), String> {
        self.state = State::DeviceRows(layout, None);
        match self.disks.row(layout, line, pending) {
            Row::Stored => {
                if let Some(open) = &mut self.open {
                    open.row_count += 1;
                }
                Ok(())
            }
            Row::NameOnly if kind_of(line) == Kind::Interrupt => Ok(()),
            Row::NameOnly if kind_of(line) == Kind::Stamp => {
                self.state = State::Between;
                self.between(line)
            }
            Row::NameOnly => {
                self.state = State::DeviceRows(layout, Some(trimmed(line).to_vec()));
                Ok(())
            }
            Row::Group => {
                note(&mut self.notes, "group-rows", || {
                    "Sums of device groups (-g) were left out: they repeat their devices, and some versions \
                     print them wrong."
                        .to_owned()
                });
                Ok(())
            }
            Row::Bad(reason) => {
                if matches!(kind_of(line), Kind::Other) || pending.is_some() {
                    return Err(reason);
                }
                self.state = State::Between;
                self.between(line)
            }
        }
    }

    fn last_decimals(&self) -> Option<u8> {
        match &self.state {
            State::CpuRow(layout) => self.cpu.layouts[*layout].last_decimals,
            State::DeviceRows(layout, _) => self.disks.layouts[*layout].last_decimals,
            State::Between => None,
        }
    }

    /// Whether the last number of the unterminated last row may lack digits: it has no decimals, or other than before.
    fn looks_cut(&self, before: Option<u8>) -> bool {
        let decimals = match &self.state {
            State::DeviceRows(layout, _) => self.disks.layouts[*layout].last_decimals,
            _ => self
                .cpu
                .layouts
                .last()
                .and_then(|layout| layout.last_decimals),
        };
        decimals.unwrap_or(0) == 0 || before.is_some_and(|digits| Some(digits) != decimals)
    }

    fn rows_missing(&self) -> bool {
        match &self.state {
            State::CpuRow(_) | State::DeviceRows(_, Some(_)) => true,
            State::DeviceRows(_, None) => {
                self.open.as_ref().is_some_and(|open| open.row_count == 0)
                    && self.row_counts.iter().any(|count| *count > 0)
            }
            State::Between => false,
        }
    }

    /// Whether all reports but the last have the same number of rows, and the last has fewer.
    fn fewer_rows_than_always(&self) -> bool {
        let Some((open, first)) = self.open.as_ref().zip(self.row_counts.first()) else {
            return false;
        };
        self.row_counts.len() > 1
            && self.row_counts.iter().all(|count| count == first)
            && open.row_count < *first
    }

    fn drop_last_report(&mut self) {
        self.open = None;
        self.stamps.pop();
        let line = self.line_number;
        note(&mut self.notes, "cut-report", || {
            format!("The last report, at line {line}, was cut while writing and was left out.")
        });
        if self
            .runs
            .last()
            .is_some_and(|run| run.first_report == self.stamps.len())
        {
            self.runs.pop();
        }
    }

    fn note_absent(&mut self) {
        let most = self.row_counts.iter().copied().max().unwrap_or(0);
        let short = self
            .row_counts
            .iter()
            .filter(|count| **count < most)
            .count();
        if short > 0 {
            self.notes.push(Note {
                code: "absent-devices",
                message: "Reports leave devices out (option -z, or a device came or went); their values there are \
                          not measured."
                    .to_owned(),
                count: short,
            });
        }
    }

    fn into_recording(self) -> Recording {
        let report_count = self.stamps.len();
        let devices = self.disks.devices.len();
        Recording {
            report_count,
            stamps: self.stamps,
            runs: self.runs,
            cpu: columns(self.cpu, 1, report_count),
            devices: self.disks.devices.clone(),
            disks: columns(self.disks, devices, report_count),
            notes: self.notes,
        }
    }
}

fn columns(table: Table, rows: usize, report_count: usize) -> Vec<Column> {
    let fields = table
        .fields
        .into_iter()
        .zip(table.matrices)
        .filter(|(_, matrix)| !matrix.is_empty());
    let finished = fields.map(|(field, matrix)| {
        let (cells, stride) = matrix.finish(rows, report_count);
        Column {
            field,
            cells,
            stride,
        }
    });
    finished.collect()
}

fn shown(line: &[u8]) -> String {
    String::from_utf8_lossy(trimmed(line))
        .chars()
        .take(60)
        .collect()
}
