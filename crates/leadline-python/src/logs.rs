//! `leadline._core.PgbenchLog` and its neighbours: the sums of logs, made in one pass over them.

use std::fs::File;
use std::io::{Read, Take};
use std::path::{Path, PathBuf};

use leadline_parse::latencies::Latencies;
use leadline_parse::pgbench_log::{self, Bounds, Second};
use leadline_parse::postgresql_log::{self, Days, Events, Kind, Work};
use leadline_stats::error::LeadlineError;
use numpy::{Element, IntoPyArray, PyArray1};
use pyo3::prelude::*;

use crate::errors::to_python;

/// Adds the classes of this file to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PgbenchLog>()?;
    module.add_class::<PostgresqlLog>()
}

/// Opens a file to the size it has now: a log that still grows has an end, too.
pub fn open(path: &Path, name: &str) -> Result<Take<File>, LeadlineError> {
    let file = File::open(path).map_err(|error| LeadlineError::from_io(name, "open", &error))?;
    let bytes = file.metadata().map_or(0, |metadata| metadata.len());
    Ok(file.take(bytes))
}

/// Count, mean, sum of squared distances from the mean, lowest, highest, and the buckets of the histogram.
type Statistics = (
    u64,
    f64,
    f64,
    f64,
    f64,
    Py<PyArray1<u64>>,
    Py<PyArray1<u64>>,
);

/// The sums of pgbench's log of transactions, microseconds.
#[pyclass(frozen, module = "leadline._core")]
pub struct PgbenchLog {
    /// Number of whole lines.
    #[pyo3(get)]
    line_count: u64,
    /// Whether the last line has no end; it is left out.
    #[pyo3(get)]
    is_cut: bool,
    /// The line, from 0, whose columns are not those of a log; reading stopped there.
    #[pyo3(get)]
    damaged_line: Option<u64>,
    /// The first line, from 0, whose time is out of bounds, and its second.
    #[pyo3(get)]
    wrong_time: Option<(u64, i64)>,
    /// Seconds in which a transaction ended, int64 [k], ascending.
    #[pyo3(get)]
    seconds: Py<PyArray1<i64>>,
    /// What ended in each of them: (name, float64 [k]).
    #[pyo3(get)]
    by_second: Vec<(&'static str, Py<PyArray1<f64>>)>,
    /// The highest number of the seventh column.
    #[pyo3(get)]
    seventh_max: u64,
    /// How many clients there are.
    #[pyo3(get)]
    client_count: usize,
    /// The sum over all clients of the number of the last transaction.
    #[pyo3(get)]
    last_number_sum: f64,
    /// When the first completed transaction began, seconds since 1970; infinite when there is none.
    #[pyo3(get)]
    begin_s: f64,
    /// When the last transaction ended.
    #[pyo3(get)]
    end_s: f64,
    /// Statistics of all completed transactions.
    #[pyo3(get)]
    whole: Statistics,
    /// The same of each script; empty when there is one script or too many.
    #[pyo3(get)]
    scripts: Vec<(u64, Statistics)>,
}

#[pymethods]
impl PgbenchLog {
    /// Read a file; name is used in messages, width is the number of columns, bounds are the earliest second, the
    /// latest (excluded), how far seconds may be apart, and how many scripts are told apart.
    ///
    /// Raises `CoreError` when the file cannot be read.
    #[staticmethod]
    #[allow(clippy::needless_pass_by_value)]
    fn open(
        py: Python<'_>,
        path: PathBuf,
        name: &str,
        width: usize,
        bounds: (f64, f64, f64, usize),
    ) -> PyResult<Self> {
        let bounds = Bounds {
            seconds: (bounds.0, bounds.1),
            span_s: bounds.2,
            script_count_max: bounds.3,
        };
        let log = py.detach(|| pgbench_log::read(open(&path, name)?, name, width, bounds));
        let log = log.map_err(|error| to_python(py, &error))?;
        let scripts = log.scripts.iter();
        Ok(Self {
            line_count: log.line_count,
            is_cut: log.is_cut,
            damaged_line: log.damaged_line,
            wrong_time: log.wrong_time,
            seconds: log
                .seconds
                .iter()
                .map(|sums| sums.second)
                .collect::<Vec<_>>()
                .into_pyarray(py)
                .unbind(),
            by_second: by_second(py, &log.seconds),
            seventh_max: log.seventh_max,
            client_count: log.client_count,
            last_number_sum: log.last_number_sum,
            begin_s: log.begin_s,
            end_s: log.end_s,
            whole: statistics(py, &log.whole),
            scripts: scripts
                .map(|(script, latencies)| (*script, statistics(py, latencies)))
                .collect(),
        })
    }
}

/// A column by its name, and how a second gives its value.
type Field = (&'static str, fn(&Second) -> f64);

#[allow(clippy::cast_precision_loss)] // counts of one second
fn by_second(py: Python<'_>, seconds: &[Second]) -> Vec<(&'static str, Py<PyArray1<f64>>)> {
    let fields: [Field; 8] = [
        ("count", |sums| sums.done.count as f64),
        ("mean", |sums| sums.done.mean),
        ("squares", |sums| sums.done.squares),
        ("low", |sums| sums.done.low),
        ("high", |sums| sums.done.high),
        ("seventh_sum", |sums| sums.seventh_sum),
        ("skipped", |sums| sums.skipped_count as f64),
        ("failed", |sums| sums.failed_count as f64),
    ];
    fields
        .into_iter()
        .map(|(name, field)| {
            let column: Vec<f64> = seconds.iter().map(field).collect();
            (name, column.into_pyarray(py).unbind())
        })
        .collect()
}

fn statistics(py: Python<'_>, latencies: &Latencies) -> Statistics {
    let moments = latencies.moments;
    let (lowest, counts): (Vec<u64>, Vec<u64>) = latencies.buckets().into_iter().unzip();
    (
        moments.count,
        moments.mean,
        moments.squares,
        moments.low,
        moments.high,
        lowest.into_pyarray(py).unbind(),
        counts.into_pyarray(py).unbind(),
    )
}

/// Events of one kind by second: zone index, second, count and sum of values, each [k].
type EventColumns = (
    &'static str,
    Py<PyArray1<u64>>,
    Py<PyArray1<i64>>,
    Py<PyArray1<u64>>,
    Py<PyArray1<f64>>,
);

/// What was at work by name: name, whether it is a worker, zone index, seconds that all took, first second, and by
/// second, each [k]: the second, how many more are there from then on, how much is there beside these.
type WorkColumns = (
    String,
    bool,
    usize,
    f64,
    i64,
    Py<PyArray1<i64>>,
    Py<PyArray1<f64>>,
    Py<PyArray1<f64>>,
);

/// A wait for a lock: zone index and seconds of its begin, the same of its end, what is locked, the holder or 0, the
/// longest queue that was logged with it (0: none), and its seconds in the zone of the begin.
type WaitColumns = (usize, f64, usize, f64, String, u64, f64, u32);

/// A parameter that was changed: zone index and seconds, its name, its value where it may be kept, whether it was reset
/// to its default.
type SettingColumns = (usize, f64, String, Option<String>, bool);

/// The events of a `PostgreSQL` server's log.
#[pyclass(frozen, module = "leadline._core")]
pub struct PostgresqlLog {
    /// Zones as printed, with the first and the last second of their lines on the clock that was printed.
    #[pyo3(get)]
    zones: Vec<(String, i64, i64)>,
    /// Events by kind, in order of appearance.
    #[pyo3(get)]
    events: Vec<EventColumns>,
    /// What was at work, by name.
    #[pyo3(get)]
    works: Vec<WorkColumns>,
    /// Waits for locks.
    #[pyo3(get)]
    lock_waits: Vec<WaitColumns>,
    /// Parameters whose value was changed, in order of appearance.
    #[pyo3(get)]
    settings: Vec<SettingColumns>,
    /// Number of entries with a time and a level.
    #[pyo3(get)]
    entry_count: u64,
    /// Number of those that no other program writes.
    #[pyo3(get)]
    sure_count: u64,
    /// Number of lines with a level and no time.
    #[pyo3(get)]
    timeless_count: u64,
    /// Number of lines and objects that are no entry and no part of one.
    #[pyo3(get)]
    other_count: u64,
    /// Number of damaged lines of JSON.
    #[pyo3(get)]
    damaged_count: u64,
    /// Whether times had no year.
    #[pyo3(get)]
    is_yearless: bool,
}

#[pymethods]
impl PostgresqlLog {
    /// Read a file; name is used in messages, entries of a year before the first or after the last are left out, and
    /// those without a year are of the last year in which they are not after the last day (year, month, day).
    ///
    /// Raises `CoreError` when the file cannot be read.
    #[staticmethod]
    #[allow(clippy::needless_pass_by_value)]
    fn open(
        py: Python<'_>,
        path: PathBuf,
        name: &str,
        years: (u16, u16),
        last_day: (u16, u16, u16),
    ) -> PyResult<Self> {
        let days = days(years, last_day);
        let log = py.detach(|| postgresql_log::read(open(&path, name)?, name, &days));
        Self::wrap(py, log)
    }

    /// Read bytes in memory, such as a text that had another encoding.
    #[staticmethod]
    fn from_bytes(
        py: Python<'_>,
        data: &[u8],
        name: &str,
        years: (u16, u16),
        last_day: (u16, u16, u16),
    ) -> PyResult<Self> {
        let days = days(years, last_day);
        let log = py.detach(|| postgresql_log::read(data, name, &days));
        Self::wrap(py, log)
    }
}

fn days(years: (u16, u16), last: (u16, u16, u16)) -> Days {
    Days {
        years: years.0..=years.1,
        last,
    }
}

impl PostgresqlLog {
    fn wrap(
        py: Python<'_>,
        log: Result<postgresql_log::PostgresqlLog, LeadlineError>,
    ) -> PyResult<Self> {
        let log = log.map_err(|error| to_python(py, &error))?;
        let zones = log.zones.into_iter();
        let waits = log.lock_waits.into_iter();
        let settings = log.settings.into_iter();
        Ok(Self {
            zones: zones
                .map(|zone| (zone.name, zone.first, zone.last))
                .collect(),
            events: log
                .events
                .iter()
                .map(|(kind, events)| event_columns(py, *kind, events))
                .collect(),
            works: log
                .works
                .into_iter()
                .map(|work| work_columns(py, work))
                .collect(),
            lock_waits: waits
                .map(|wait| {
                    let ((zone, start), (end_zone, end)) = (wait.start, wait.end);
                    let (queued, count) = wait.queue;
                    (
                        zone,
                        start,
                        end_zone,
                        end,
                        wait.target,
                        wait.holder,
                        queued,
                        count,
                    )
                })
                .collect(),
            settings: settings
                .map(|change| {
                    let (zone, second) = change.moment;
                    (zone, second, change.name, change.value, change.is_reset)
                })
                .collect(),
            entry_count: log.counts.entries,
            sure_count: log.counts.sure,
            timeless_count: log.counts.timeless,
            other_count: log.counts.others,
            damaged_count: log.counts.damaged,
            is_yearless: log.is_yearless,
        })
    }
}

fn work_columns(py: Python<'_>, work: Work) -> WorkColumns {
    let mut changes: Vec<(i64, (f64, f64))> = work.changes.into_iter().collect();
    changes.sort_unstable_by_key(|change| change.0);
    let floats = |field: fn(&(i64, (f64, f64))) -> f64| {
        let values: Vec<f64> = changes.iter().map(field).collect();
        values.into_pyarray(py).unbind()
    };
    let seconds: Vec<i64> = changes.iter().map(|change| change.0).collect();
    (
        work.name,
        work.is_worker,
        work.zone_index,
        work.total_s,
        work.begin,
        seconds.into_pyarray(py).unbind(),
        floats(|change| change.1.0),
        floats(|change| change.1.1),
    )
}

fn event_columns(py: Python<'_>, kind: Kind, events: &[Events]) -> EventColumns {
    let name = match kind {
        Kind::Error => "error",
        Kind::OutOfSpace => "out-of-space",
        Kind::TimedCheckpoint => "timed-checkpoint",
        Kind::RequestedCheckpoint => "requested-checkpoint",
        Kind::Connection => "connection",
        Kind::TemporaryFile => "temporary-file",
        Kind::LockWait => "lock-wait",
        Kind::Statement => "statement",
        Kind::Commit => "commit",
        Kind::Autovacuum => "autovacuum",
        Kind::CheckpointWrite => "checkpoint-write",
        Kind::CheckpointSync => "checkpoint-sync",
        Kind::CheckpointLongest => "checkpoint-longest",
        Kind::CheckpointTooSoon => "checkpoint-too-soon",
    };
    (
        name,
        column(py, events, |event| event.zone_index as u64),
        column(py, events, |event| event.second),
        column(py, events, |event| event.count),
        column(py, events, |event| event.sum),
    )
}

fn column<T: Element>(
    py: Python<'_>,
    events: &[Events],
    field: fn(&Events) -> T,
) -> Py<PyArray1<T>> {
    let values: Vec<T> = events.iter().map(field).collect();
    values.into_pyarray(py).unbind()
}
