//! Recordings in the PDH format: `esxtop -b`, resxtop and Windows Performance Monitor, as CSV or TSV.
//!
//! The first line names the columns, `\\HOST\Object(Instance)\Counter`; every row is a time and a number per column.
//! A recording may have 60,000 columns and be larger than memory: the file is read in pieces, the header is kept with
//! each distinct name once, and only the cells of selected columns are turned into numbers.
//!
//! Source: Microsoft, "Performance Counters", `PdhOpenLog` (`PDH_LOG_TYPE_CSV`); `VMware`, "vSphere Resource
//! Management", chapter "Using esxtop batch mode".

pub mod clock;
pub mod header;
pub mod lines;
pub mod names;
pub mod number;
pub mod packed;
pub mod row;
pub mod scan;
pub mod sniff;
pub mod source;
pub mod table;
pub mod tally;
pub mod time;
pub mod warnings;
pub mod write;

use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};

use header::Header;
use leadline_stats::error::LeadlineError;
use lines::{Index, Task};
use names::Names;
use sniff::Layout;
use source::{Source, Units};
use table::{Selection, Table};
use warnings::{Warning, Warnings};

/// Called with characters done and in all; returns false to stop.
pub type Progress<'a> = &'a mut dyn FnMut(u64, u64) -> bool;

/// What to read from a recording.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request<'a> {
    /// Columns in the order wanted.
    pub columns: &'a [u32],
    /// First instant wanted, nanoseconds since the epoch.
    pub start_ns: Option<i64>,
    /// First instant no longer wanted.
    pub end_ns: Option<i64>,
    /// Whether -1 and -3 mean "not available" in rates, percentages and latencies, as esxtop writes them.
    pub sentinels: bool,
}

/// An open recording: header parsed, rows not yet read.
#[derive(Debug)]
pub struct PdhFile {
    source: Source,
    layout: Layout,
    header: Header,
    header_warnings: Warnings,
    read_warnings: Mutex<Warnings>,
    index: OnceLock<Index>,
}

impl PdhFile {
    /// Opens a file and parses its header. `encoding` is a label such as `windows-1251`; `None` guesses.
    ///
    /// # Errors
    /// When the file cannot be read or is no PDH recording.
    pub fn open(path: &Path, encoding: Option<&str>) -> Result<Self, LeadlineError> {
        Self::from_source(Source::open(path)?, encoding)
    }

    /// A recording in memory. `modified_ns` dates times without a date.
    ///
    /// # Errors
    /// When the bytes are no PDH recording.
    pub fn from_bytes(
        name: &str,
        bytes: Vec<u8>,
        modified_ns: Option<i64>,
        encoding: Option<&str>,
    ) -> Result<Self, LeadlineError> {
        Self::from_source(Source::from_bytes(name, bytes, modified_ns)?, encoding)
    }

    fn from_source(source: Source, encoding: Option<&str>) -> Result<Self, LeadlineError> {
        let mut header_warnings = Warnings::default();
        let layout = sniff::sniff(&source, &mut header_warnings)?;
        let header = header::read_header(&source, &layout, encoding, &mut header_warnings)?;
        let read_warnings = Mutex::default();
        Ok(Self {
            source,
            layout,
            header,
            header_warnings,
            read_warnings,
            index: OnceLock::new(),
        })
    }

    /// Names of all columns.
    #[must_use]
    pub fn names(&self) -> &Names {
        &self.header.names
    }

    /// Time zone name the recorder wrote.
    #[must_use]
    pub fn zone_name(&self) -> Option<&str> {
        self.header.zone_name.as_deref()
    }

    /// Minutes added to recorded times to get UTC; `None` where the header has none, and 0 is used.
    #[must_use]
    pub fn utc_offset_min(&self) -> Option<i32> {
        self.header.utc_offset_min
    }

    /// Format, separator, quoting, encoding and line ends in words.
    #[must_use]
    pub fn dialect(&self) -> String {
        let separator = match self.layout.separator {
            b'\t' => "tabs",
            b';' => "semicolons",
            _ => "commas",
        };
        let quotes = if self.layout.quoted {
            "quoted"
        } else {
            "not quoted"
        };
        let mark = if self.source.has_mark() && self.source.units() == Units::Bytes {
            " with mark"
        } else {
            ""
        };
        let ends = if self.layout.line_end == b'\r' {
            "CR"
        } else {
            "LF"
        };
        format!(
            "{}, {separator}, {quotes}, {}{mark}, {ends}",
            self.header.format, self.header.encoding
        )
    }

    /// Times of all rows in nanoseconds since the epoch, UTC. Reads the file once; later calls are free.
    ///
    /// # Errors
    /// When a row has no time, or the file cannot be read.
    pub fn times_ns(&self, progress: Progress<'_>) -> Result<&[i64], LeadlineError> {
        Ok(&self.index(progress)?.times_ns)
    }

    /// Reads the requested columns.
    ///
    /// # Errors
    /// When a column does not exist, a row has other cells than the header, or the file cannot be read.
    pub fn read(
        &self,
        request: &Request<'_>,
        progress: Progress<'_>,
    ) -> Result<Table, LeadlineError> {
        let names = self.names();
        if let Some(column) = request.columns.iter().find(|c| **c as usize >= names.len()) {
            return Err(LeadlineError::new(
                &*self.source.name,
                format!("a request for column {column}"),
                format!("columns 0 to {}", names.len() - 1),
                "Ask for columns the header has.",
            ));
        }
        let index = self.index(progress)?;
        let sentinels = if request.sentinels {
            self.sentinel_columns(request.columns)
        } else {
            Vec::new()
        };
        let selection = Selection {
            columns: request.columns,
            sentinels: &sentinels,
            start_ns: request.start_ns,
            end_ns: request.end_ns,
        };
        let table = table::read_table(&self.task(), index, &selection, progress)?;
        table.warnings.clone_into(
            &mut self
                .read_warnings
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        );
        Ok(table)
    }

    /// What was repaired in the header, among the rows (once they were read) and in the cells of the latest read.
    #[must_use]
    pub fn warnings(&self) -> Vec<Warning> {
        let mut all = self.header_warnings.clone();
        if let Some(index) = self.index.get() {
            all.merge(&index.warnings);
        }
        all.merge(
            &self
                .read_warnings
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        );
        all.list()
    }

    fn task(&self) -> Task<'_> {
        Task {
            source: &self.source,
            layout: &self.layout,
            columns: self.names().len(),
            utc_offset_min: self.utc_offset_min().unwrap_or(0),
            careful: self.header.commas_missing > 0,
        }
    }

    fn index(&self, progress: Progress<'_>) -> Result<&Index, LeadlineError> {
        if let Some(index) = self.index.get() {
            return Ok(index);
        }
        let index = lines::build_index(&self.task(), progress)?;
        Ok(self.index.get_or_init(|| index))
    }

    /// Per column, whether -1 and -3 mean "not available" there.
    fn sentinel_columns(&self, columns: &[u32]) -> Vec<bool> {
        let names = self.names();
        let by_counter: Vec<bool> = names
            .counters
            .iter()
            .map(|(_, counter)| has_sentinels(counter))
            .collect();
        columns
            .iter()
            .map(|c| by_counter[names.column_counter[*c as usize] as usize])
            .collect()
    }
}

/// Rates, percentages and latencies cannot be negative, so a negative value there is a mark. Settings such as
/// `Alloc Max` or shares use -1 and -3 with a meaning of their own ("unlimited", "normal") and are left alone.
///
/// Source: `VMware`, "Interpreting esxtop Statistics" (AMAX, ASHRS). Judgement: the words that tell a rate.
#[must_use]
pub fn has_sentinels(counter: &str) -> bool {
    let lower = counter.to_lowercase();
    ["%", "/sec", "sec/", "latency"]
        .iter()
        .any(|word| lower.contains(word))
}

/// Parses everything `bytes` holds and returns (columns, rows); the entry point of the fuzzer.
///
/// # Errors
/// As [`PdhFile::from_bytes`] and [`PdhFile::read`].
pub fn parse_bytes(bytes: &[u8]) -> Result<(usize, usize), LeadlineError> {
    let file = PdhFile::from_bytes("bytes", bytes.to_vec(), None, None)?;
    let columns: Vec<u32> = (0..).take(file.names().len()).collect();
    let request = Request {
        columns: &columns,
        sentinels: true,
        ..Request::default()
    };
    let table = file.read(&request, &mut |_, _| true)?;
    Ok((columns.len(), table.times_ns.len()))
}
