//! Time cells of a whole file into nanoseconds since the epoch, UTC.
//!
//! What one cell leaves open is settled here: which part of a date is the day, where rows lie inside a minute when
//! seconds were dropped, and on which day a time without a date was taken.

use super::time::{Kind, RawDate, RawTime, days_from_date};
use super::warnings::{Warnings, code};

const SECOND_NS: i64 = 1_000_000_000;
const MINUTE_NS: i64 = 60 * SECOND_NS;
const HOUR_NS: i64 = 60 * MINUTE_NS;
const DAY_NS: i64 = 24 * HOUR_NS;
/// 2200-01-01.
const DAYS_MAX: i64 = 84_006;

/// A row whose time cannot be settled: its position among the rows, what was found, what was expected.
#[derive(Debug, PartialEq, Eq)]
pub struct ClockError {
    /// Position of the row.
    pub row_index: usize,
    /// What stands there.
    pub found: String,
    /// What should.
    pub expected: &'static str,
}

/// Times of all rows in nanoseconds since the epoch, UTC.
///
/// `utc_offset_min` is added to local times; `modified_ns` (UTC) dates times that have no date.
///
/// # Errors
/// When a date does not exist, or rows with and without a date are mixed.
pub fn resolve(
    raw: &[RawTime],
    utc_offset_min: i32,
    modified_ns: Option<i64>,
    warnings: &mut Warnings,
) -> Result<Vec<i64>, ClockError> {
    let Some(first) = raw.first() else {
        return Ok(Vec::new());
    };
    if let Some(row_index) = raw
        .iter()
        .position(|t| t.date.is_some() != first.date.is_some())
    {
        return Err(ClockError {
            row_index,
            found: "a time that differs from the rows before in having, or lacking, a date".into(),
            expected: "dates in every row or in none",
        });
    }
    let offset_ns = i64::from(utc_offset_min) * MINUTE_NS;
    let mut times_ns = if first.date.is_some() {
        dated(raw, warnings)?
    } else {
        undated(raw, warnings)
    };
    spread_minutes(raw, &mut times_ns, warnings);
    let shift_ns = if first.date.is_some() {
        offset_ns
    } else {
        let period_ns = period_ns(raw);
        let last_ns = times_ns.last().copied().unwrap_or(0) + offset_ns;
        let (base_ns, from) = match modified_ns {
            // The latest whole day (or hour) that lets the last row lie before the file was last written.
            Some(modified) => (
                modified.saturating_sub(last_ns).div_euclid(period_ns) * period_ns,
                "the file's modification time",
            ),
            None => (0, "1970-01-01, for want of a modification time"),
        };
        warnings.add(code::NO_DATE, raw.len() as u64, || {
            let what = if period_ns == DAY_NS { "date" } else { "date or hour" };
            format!("times have no {what}; it was taken from {from}, so only differences between times are certain")
        });
        offset_ns + base_ns
    };
    for time in &mut times_ns {
        *time = time.saturating_add(shift_ns);
    }
    let backwards = times_ns.windows(2).filter(|w| w[1] <= w[0]).count() as u64;
    warnings.add(code::OUT_OF_ORDER, backwards, || {
        "times repeat or go back (a clock change, or recordings joined); series are in the order of time".into()
    });
    Ok(times_ns)
}

fn dated(raw: &[RawTime], warnings: &mut Warnings) -> Result<Vec<i64>, ClockError> {
    let dates = || raw.iter().filter_map(|t| t.date).filter(|d| !d.year_first);
    let first_over_12 = dates().any(|d| d.parts[0] > 12);
    let second_over_12 = dates().any(|d| d.parts[1] > 12);
    let dotted = dates().next().is_some_and(|d| d.separator == b'.');
    // A part over 12 decides for the whole file; otherwise dots mean day first and slashes month first.
    let day_first = first_over_12 || (dotted && !second_over_12);
    if day_first {
        warnings.add(code::DAY_FIRST, raw.len() as u64, || {
            let why = if first_over_12 {
                "the first part exceeds 12"
            } else {
                "dots separate the parts"
            };
            format!("dates were read with the day first: {why}")
        });
    }
    let days = |date: RawDate| {
        let [a, b, c] = date.parts;
        if date.year_first {
            days_from_date(a, b, c)
        } else if day_first {
            days_from_date(c, b, a)
        } else {
            days_from_date(c, a, b)
        }
    };
    raw.iter()
        .enumerate()
        .map(|(row_index, time)| {
            // Nanoseconds in 64 bits reach the year 2262; recordings of this format begin with Windows NT.
            let date = time
                .date
                .and_then(days)
                .filter(|d| (0..=DAYS_MAX).contains(d))
                .ok_or_else(|| ClockError {
                    row_index,
                    found: match time.date {
                        Some(d) => format!("the date {} {} {}", d.parts[0], d.parts[1], d.parts[2]),
                        None => "a time without date".into(),
                    },
                    expected: if day_first {
                        "day, month, year"
                    } else {
                        "month, day, year"
                    },
                })?;
            Ok(date * DAY_NS + time.clock_ns)
        })
        .collect()
}

fn period_ns(raw: &[RawTime]) -> i64 {
    if raw.iter().any(|t| t.kind == Kind::WithinHour) {
        HOUR_NS
    } else {
        DAY_NS
    }
}

/// Times since the first row's midnight (or full hour), one period added for each large step back.
fn undated(raw: &[RawTime], warnings: &mut Warnings) -> Vec<i64> {
    let period_ns = period_ns(raw);
    let (mut rolled_ns, mut before_ns, mut roll_overs) = (0, i64::MIN, 0);
    let mut times_ns = Vec::with_capacity(raw.len());
    for time in raw {
        // A step back by less than half a period is a clock that was set, not a new day.
        if before_ns.saturating_sub(time.clock_ns) > period_ns / 2 {
            rolled_ns += period_ns;
            roll_overs += 1;
        }
        before_ns = time.clock_ns;
        times_ns.push(time.clock_ns + rolled_ns);
    }
    warnings.add(code::ROLL_OVER, roll_overs, || {
        let what = if period_ns == DAY_NS {
            "midnight: a day"
        } else {
            "the full hour: an hour"
        };
        format!("times passed {what} was added each time")
    });
    times_ns
}

/// Gives rows that only state a minute a second inside it.
///
/// The interval is a minute divided by the largest number of rows any minute holds. A full minute is filled evenly from
/// its start; the first one is filled up to its end, because the recording began inside it.
fn spread_minutes(raw: &[RawTime], times_ns: &mut [i64], warnings: &mut Warnings) {
    let mut groups = Vec::new();
    let mut start = 0;
    for i in 1..=raw.len() {
        if i == raw.len() || times_ns[i] != times_ns[start] || raw[i].kind != raw[start].kind {
            if raw[start].kind == Kind::Minutes {
                groups.push(start..i);
            }
            start = i;
        }
    }
    let rows_max = groups.iter().map(ExactSizeIterator::len).max().unwrap_or(0);
    let Some(rows_max) = i64::try_from(rows_max).ok().filter(|n| *n > 0) else {
        return;
    };
    let several = groups.len() > 1;
    let last_group = groups.len() - 1;
    for (g, group) in groups.into_iter().enumerate() {
        let rows = i64::try_from(group.len()).unwrap_or(rows_max);
        let partial = several && (g == 0 || g == last_group);
        let slots = if partial { rows_max } else { rows };
        let first_slot = if several && g == 0 { slots - rows } else { 0 };
        for (slot, i) in (first_slot..).zip(group) {
            times_ns[i] += MINUTE_NS * slot / slots;
        }
    }
    warnings.add(code::NO_SECONDS, raw.len() as u64, || {
        format!("times have no seconds; rows were spread evenly inside each minute ({rows_max} a minute)")
    });
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::time::parse_time;
    use super::*;

    fn run(
        cells: &[&str],
        modified_ns: Option<i64>,
    ) -> (Result<Vec<i64>, ClockError>, Vec<&'static str>) {
        let raw: Vec<_> = cells
            .iter()
            .map(|c| parse_time(c.as_bytes()).unwrap())
            .collect();
        let mut warnings = Warnings::default();
        let times = resolve(&raw, 0, modified_ns, &mut warnings);
        (times, warnings.list().iter().map(|w| w.code).collect())
    }

    fn seconds(cells: &[&str], modified_s: Option<i64>) -> (Vec<i64>, Vec<&'static str>) {
        let (times, codes) = run(cells, modified_s.map(|s| s * SECOND_NS));
        (
            times.unwrap().into_iter().map(|t| t / SECOND_NS).collect(),
            codes,
        )
    }

    #[test]
    fn rows_without_seconds_are_spread() {
        let cells = [
            "1/1/1970 0:00",
            "1/1/1970 0:01",
            "1/1/1970 0:01",
            "1/1/1970 0:01",
            "1/1/1970 0:02",
            "1/1/1970 0:02",
        ];
        assert_eq!(
            seconds(&cells, None),
            (vec![40, 60, 80, 100, 120, 140], vec![code::NO_SECONDS])
        );
        let one_minute = seconds(&["1/1/1970 0:01"; 4], None);
        assert_eq!(one_minute, (vec![60, 75, 90, 105], vec![code::NO_SECONDS]));
    }

    #[test]
    fn midnight_and_the_modification_day() {
        let (times, codes) = seconds(&["23:59:50", "0:00:10", "0:00:30"], Some(10 * 86_400 + 100));
        assert_eq!(
            times,
            [10 * 86_400 - 10, 10 * 86_400 + 10, 10 * 86_400 + 30]
        );
        assert_eq!(codes, [code::ROLL_OVER, code::NO_DATE]);
        assert_eq!(seconds(&["10:00:00"], None).0, [36_000]);
        // The last row must not lie after the modification: the day before is taken.
        assert_eq!(seconds(&["10:00:00"], Some(86_400)).0, [36_000]);
    }

    #[test]
    fn the_hour_rolls_over_too() {
        let (times, codes) = seconds(&["59:50.0", "00:10.0"], None);
        assert_eq!(times, [3590, 3610]);
        assert_eq!(codes, [code::ROLL_OVER, code::NO_DATE]);
    }

    #[test]
    fn day_or_month_first() {
        assert_eq!(
            seconds(&["01/02/1970 00:00:01"], None),
            (vec![86_401], vec![])
        );
        let slashes = seconds(&["02/01/1970 0:00:00", "13/01/1970 0:00:00"], None);
        assert_eq!(slashes, (vec![86_400, 12 * 86_400], vec![code::DAY_FIRST]));
        assert_eq!(
            seconds(&["02.01.1970 0:00:00"], None),
            (vec![86_400], vec![code::DAY_FIRST])
        );
        assert_eq!(
            seconds(&["01.13.1970 0:00:00"], None),
            (vec![12 * 86_400], vec![])
        );
        assert_eq!(
            run(&["13/01/1970 0:00:00", "01/13/1970 0:00:00"], None)
                .0
                .unwrap_err()
                .row_index,
            1
        );
    }

    #[test]
    fn a_clock_set_back_is_kept() {
        let (times, codes) = seconds(&["1/1/1970 2:59:59", "1/1/1970 2:00:00"], None);
        assert_eq!(times, [10_799, 7200]);
        assert_eq!(codes, [code::OUT_OF_ORDER]);
    }

    #[test]
    fn dates_in_some_rows_only() {
        assert_eq!(
            run(&["1/1/1970 0:00:00", "0:00:01"], None)
                .0
                .unwrap_err()
                .row_index,
            1
        );
    }
}
