//! Text that sysstat's `iostat` writes (versions 9 to 12, any options and locale) as columns.
//!
//! One pass, line by line, in memory that does not grow with the file except for the numbers asked for. Times are left
//! as text: what they mean depends on locale and zone, which the caller knows.

mod line;
mod matrix;
mod number;
mod reader;
mod report;
mod table;

pub use matrix::Cells;
pub use reader::read;
pub use table::Wanted;

/// A run of iostat inside a recording: from one banner to the next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// Index of its first report.
    pub first_report: usize,
    /// The banner line; empty when the recording begins without one.
    pub banner: String,
    /// Whether its first report is an average since boot: all but those made with `-y`, which leave a second blank
    /// line below the banner, and those without a banner, whose beginning is not there.
    pub since_boot: bool,
}

/// Something left out: what, how often, where first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// A short name for it.
    pub code: &'static str,
    /// A sentence for the user.
    pub message: String,
    /// How often.
    pub count: usize,
}

/// The values of one field of one table.
#[derive(Debug)]
pub struct Column {
    /// Column name as printed.
    pub field: String,
    /// Values of every device, row-major; only the first `reports` of each `stride` cells are meaningful.
    pub cells: Cells,
    /// Cells per device.
    pub stride: usize,
}

/// What a recording holds.
#[derive(Debug, Default)]
pub struct Recording {
    /// Number of reports.
    pub report_count: usize,
    /// Per report, its time as printed (`-t`, or in front of each line); empty where there is none.
    pub stamps: Vec<String>,
    /// Runs in file order; at least one when there are reports.
    pub runs: Vec<Run>,
    /// The CPU report: one row, of all CPUs together.
    pub cpu: Vec<Column>,
    /// Devices in order of appearance.
    pub devices: Vec<String>,
    /// The device report: a row per device.
    pub disks: Vec<Column>,
    /// What was left out.
    pub notes: Vec<Note>,
}
