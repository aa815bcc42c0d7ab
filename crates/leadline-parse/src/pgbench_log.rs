//! pgbench's log of transactions (`pgbench -l`) added up by second and by script, in one pass.
//!
//! Columns: client, number of the transaction, latency in microseconds (or why it has none), script, seconds since
//! 1970 and microseconds of its end, then lag and retries where they are recorded. What the sums mean is the caller's
//! business.

use std::collections::HashMap;
use std::io::Read;

use leadline_stats::error::LeadlineError;
use memchr::memchr;

use crate::latencies::{Latencies, Moments};
use crate::lines::{Ending, each_line};

const WIDTHS: std::ops::RangeInclusive<usize> = 6..=8;
const WIDTH_MAX: usize = 8;
/// Eight numbers of at most twenty digits; anything longer is damaged.
const LINE_BYTES_MAX: usize = 1 << 12;
/// Judgement: clients are numbered from 0, few tests have more than this.
const DENSE_CLIENTS: usize = 1 << 12;

/// What a log may hold.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The earliest and the latest second that is a time, end excluded.
    pub seconds: (f64, f64),
    /// How far the seconds of a log may be apart.
    pub span_s: f64,
    /// More scripts than this are added up together only.
    pub script_count_max: usize,
}

/// What ended in one second.
#[derive(Clone, Copy, Debug, Default)]
pub struct Second {
    /// The second since 1970.
    pub second: i64,
    /// Latencies of the transactions that were completed, microseconds.
    pub done: Moments,
    /// The sum of the seventh column of those.
    pub seventh_sum: f64,
    /// Transactions that were skipped.
    pub skipped_count: u64,
    /// Transactions that failed for another reason.
    pub failed_count: u64,
}

/// The sums of a log.
#[derive(Debug, Default)]
pub struct PgbenchLog {
    /// Number of whole lines.
    pub line_count: u64,
    /// Whether the last line has no end; it is left out.
    pub is_cut: bool,
    /// The line, counted from 0, whose columns are not those of a log; reading stopped there.
    pub damaged_line: Option<u64>,
    /// The first line whose time is out of bounds, and its second.
    pub wrong_time: Option<(u64, i64)>,
    /// Seconds in which a transaction ended, ascending.
    pub seconds: Vec<Second>,
    /// The highest number of the seventh column.
    pub seventh_max: u64,
    /// How many clients there are.
    pub client_count: usize,
    /// The sum over all clients of the number of the last transaction.
    pub last_number_sum: f64,
    /// When the first completed transaction began, seconds since 1970; infinite when there is none.
    pub begin_s: f64,
    /// When the last transaction ended.
    pub end_s: f64,
    /// Latencies of all completed transactions.
    pub whole: Latencies,
    /// The same of each script, ascending; empty when there is one script or too many.
    pub scripts: Vec<(u64, Latencies)>,
}

/// Adds up a log whose lines have `width` columns.
///
/// # Errors
/// The stream fails.
pub fn read(
    stream: impl Read,
    place: &str,
    width: usize,
    bounds: Bounds,
) -> Result<PgbenchLog, LeadlineError> {
    let mut sums = Sums::new(width, bounds);
    each_line(stream, place, LINE_BYTES_MAX, |line, ending| {
        match ending {
            Ending::LineFeed => return Ok(sums.line(line)),
            Ending::Text => sums.log.is_cut = true,
            Ending::TooLong => sums.log.damaged_line = Some(sums.log.line_count),
        }
        Ok(false)
    })?;
    Ok(sums.finish())
}

struct Sums {
    width: usize,
    bounds: Bounds,
    log: PgbenchLog,
    by_second: HashMap<i64, usize>,
    last_second: usize,
    earliest: (u64, i64),
    first: i64,
    latest: i64,
    dense_clients: Vec<Option<u64>>,
    clients: HashMap<u64, u64>,
    scripts: Vec<(u64, Latencies)>,
    last_script: usize,
    has_too_many_scripts: bool,
}

/// How a transaction ended.
enum Outcome {
    Done(u64),
    Skipped,
    Failed,
}

impl Sums {
    fn new(width: usize, bounds: Bounds) -> Self {
        Self {
            width,
            bounds,
            log: PgbenchLog {
                begin_s: f64::INFINITY,
                end_s: f64::NEG_INFINITY,
                ..PgbenchLog::default()
            },
            by_second: HashMap::new(),
            last_second: 0,
            earliest: (0, 0),
            first: 0,
            latest: 0,
            dense_clients: Vec::new(),
            clients: HashMap::new(),
            scripts: Vec::new(),
            last_script: 0,
            has_too_many_scripts: false,
        }
    }

    /// Takes in a line; false when it is damaged.
    fn line(&mut self, line: &[u8]) -> bool {
        let index = self.log.line_count;
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let Some((cells, outcome)) = cells_of(line, self.width) else {
            self.log.damaged_line = Some(index);
            return false;
        };
        self.log.line_count += 1;
        let second = i64::try_from(cells[4]).unwrap_or(i64::MAX);
        if self.is_wrong(index, second) && self.log.wrong_time.is_none() {
            self.log.wrong_time = Some((index, second));
        }
        if self.log.wrong_time.is_some() {
            return true; // an error, but a damaged line after it is named first
        }
        self.count_client(cells[0], cells[1]);
        self.log.seventh_max = self.log.seventh_max.max(cells[6]);
        self.add(second, &cells, &outcome);
        true
    }

    /// Whether a second is out of bounds.
    #[allow(clippy::cast_precision_loss)]
    fn is_wrong(&mut self, index: u64, second: i64) -> bool {
        if index == 0 {
            (self.first, self.earliest, self.latest) = (second, (0, second), second);
        } else if second < self.earliest.1 {
            self.earliest = (index, second);
        }
        self.latest = self.latest.max(second);
        let at = second as f64;
        at < self.bounds.seconds.0
            || at >= self.bounds.seconds.1
            || at > self.first as f64 + self.bounds.span_s
    }

    fn count_client(&mut self, client: u64, number: u64) {
        match usize::try_from(client) {
            Ok(dense) if dense < DENSE_CLIENTS => {
                if dense >= self.dense_clients.len() {
                    self.dense_clients.resize(dense + 1, None);
                }
                let last = &mut self.dense_clients[dense];
                *last = Some(last.map_or(number, |last| last.max(number)));
            }
            _ => {
                let last = self.clients.entry(client).or_default();
                *last = (*last).max(number);
            }
        }
    }

    #[allow(clippy::cast_precision_loss)]
    fn add(&mut self, second: i64, cells: &[u64; WIDTH_MAX], outcome: &Outcome) {
        let end = second as f64 + cells[5] as f64 / 1e6;
        self.log.end_s = self.log.end_s.max(end);
        let script = self.script(cells[3]);
        let sums = self.second(second);
        match *outcome {
            Outcome::Done(latency) => {
                let latency_us = latency as f64;
                sums.done.add(latency_us);
                sums.seventh_sum += cells[6] as f64;
                self.log.begin_s = self.log.begin_s.min(end - latency_us / 1e6);
                self.scripts[script].1.add(latency);
            }
            Outcome::Skipped => sums.skipped_count += 1,
            Outcome::Failed => sums.failed_count += 1,
        }
    }

    fn second(&mut self, second: i64) -> &mut Second {
        let known = self.log.seconds.get(self.last_second);
        if known.is_none_or(|known| known.second != second) {
            let next = self.log.seconds.len();
            self.last_second = *self.by_second.entry(second).or_insert(next);
            if self.last_second == next {
                self.log.seconds.push(Second {
                    second,
                    ..Second::default()
                });
            }
        }
        &mut self.log.seconds[self.last_second]
    }

    /// Where the latencies of a script are added up.
    fn script(&mut self, script: u64) -> usize {
        if self.has_too_many_scripts {
            return 0;
        }
        let last = self.scripts.get(self.last_script);
        if last.is_none_or(|last| last.0 != script) {
            let known = self.scripts.iter().position(|known| known.0 == script);
            self.last_script = known.unwrap_or_else(|| {
                self.scripts.push((script, Latencies::default()));
                self.scripts.len() - 1
            });
            if self.scripts.len() > self.bounds.script_count_max {
                let whole = pooled(&self.scripts);
                self.scripts = vec![(0, whole)];
                (self.has_too_many_scripts, self.last_script) = (true, 0);
            }
        }
        self.last_script
    }

    #[allow(clippy::cast_precision_loss)]
    fn finish(mut self) -> PgbenchLog {
        let span_s = self.latest as f64 - self.earliest.1 as f64;
        if self.log.wrong_time.is_none() && span_s > self.bounds.span_s {
            self.log.wrong_time = Some(self.earliest);
        }
        let lasts = self
            .dense_clients
            .iter()
            .flatten()
            .chain(self.clients.values());
        (self.log.client_count, self.log.last_number_sum) = lasts
            .fold((0, 0.0), |(count, sum), &last| {
                (count + 1, sum + last as f64)
            });
        self.log.seconds.sort_unstable_by_key(|sums| sums.second);
        self.log.whole = pooled(&self.scripts);
        if self.scripts.len() > 1 {
            self.scripts.sort_unstable_by_key(|script| script.0);
            self.log.scripts = self.scripts;
        }
        self.log
    }
}

fn pooled(scripts: &[(u64, Latencies)]) -> Latencies {
    let mut whole = Latencies::default();
    for (_, latencies) in scripts {
        whole.pool(latencies);
    }
    whole
}

/// The numbers of a line and how its transaction ended; None when they are not `width` whole numbers of 63 bits.
fn cells_of(line: &[u8], width: usize) -> Option<([u64; WIDTH_MAX], Outcome)> {
    if !WIDTHS.contains(&width) {
        return None;
    }
    let mut cells = [0; WIDTH_MAX];
    let (mut at, mut outcome) = (0, None);
    for (column, cell) in cells.iter_mut().enumerate().take(width) {
        if column == 2 && line.get(at).is_some_and(u8::is_ascii_lowercase) {
            let length = memchr(b' ', &line[at..])?;
            outcome = Some(match &line[at..at + length] {
                b"skipped" => Outcome::Skipped,
                b"failed" | b"serialization" | b"deadlock" | b"other" => Outcome::Failed,
                _ => return None,
            });
            at += length;
        } else {
            (*cell, at) = number(line, at)?;
        }
        if column + 1 < width {
            if line.get(at) != Some(&b' ') {
                return None;
            }
            at += 1;
        }
    }
    let done = Outcome::Done(cells[2]);
    (at == line.len()).then(|| (cells, outcome.unwrap_or(done)))
}

/// The whole number at a position and the position after it.
#[inline]
fn number(line: &[u8], start: usize) -> Option<(u64, usize)> {
    let (mut number, mut at) = (0u64, start);
    while let Some(digit) = line
        .get(at)
        .map(|byte| byte.wrapping_sub(b'0'))
        .filter(|&digit| digit < 10)
    {
        // Eighteen digits always fit.
        number = if at - start < 18 {
            number * 10 + u64::from(digit)
        } else {
            number.checked_mul(10)?.checked_add(u64::from(digit))?
        };
        at += 1;
    }
    (at > start && i64::try_from(number).is_ok()).then_some((number, at))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::float_cmp)] // sums of whole numbers are exact
mod tests {
    use super::{Bounds, PgbenchLog, read};
    use proptest::prelude::*;

    const BOUNDS: Bounds = Bounds {
        seconds: (1e8, 1e10),
        span_s: 3_456_000.0,
        script_count_max: 3,
    };

    fn log(text: &str, width: usize) -> PgbenchLog {
        read(text.as_bytes(), "log", width, BOUNDS).unwrap()
    }

    #[test]
    fn sums_are_by_second_and_script() {
        let text = "0 1 1000 0 1600000000 500000\n0 2 3000 1 1600000000 100000\n1 7 failed 1 1600000002 0\n";
        let log = log(text, 6);
        let seconds: Vec<_> = log
            .seconds
            .iter()
            .map(|s| (s.second, s.done.count, s.failed_count))
            .collect();
        assert_eq!(seconds, [(1_600_000_000, 2, 0), (1_600_000_002, 0, 1)]);
        assert_eq!(log.seconds[0].done.squares, 2e6);
        assert_eq!(log.whole.buckets(), [(1000, 1), (3000, 1)]);
        assert_eq!(log.scripts.len(), 2);
        assert_eq!((log.client_count, log.last_number_sum), (2, 9.0));
        assert_eq!(log.end_s, 1_600_000_002.0);
        assert!(!log.is_cut && log.damaged_line.is_none() && log.wrong_time.is_none());
    }

    #[test]
    fn too_many_scripts_are_added_up_together() {
        let lines = (0..9).map(|script| format!("0 {script} 10 {script} 1600000000 0\n"));
        let text = lines.collect::<Vec<_>>().concat();
        let log = log(&text, 6);
        assert!(log.scripts.is_empty());
        assert_eq!(log.whole.buckets(), [(10, 9)]);
    }

    #[test]
    fn damage_and_wrong_times_are_named() {
        let good = "0 1 10 0 1600000000 0\n";
        for bad in [
            "",
            "0 1 fast 0 1600000000 0",
            "0 1 10 0 1600000000",
            "0 1 10  0 1600000000 0",
        ] {
            assert_eq!(
                log(&format!("{good}{bad}\n{good}"), 6).damaged_line,
                Some(1),
                "{bad}"
            );
        }
        for second in [5_i64, 1_700_000_000, 1_500_000_000] {
            let text = format!("{good}0 2 10 0 {second} 0\n{good}");
            assert_eq!(log(&text, 6).wrong_time, Some((1, second)));
        }
        let cut = log(&format!("{good}0 2"), 6);
        assert_eq!((cut.is_cut, cut.line_count), (true, 1));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_named(bytes in prop::collection::vec(any::<u8>(), 0..300), width in 0usize..12) {
            read(bytes.as_slice(), "log", width, BOUNDS).unwrap();
        }
    }
}
