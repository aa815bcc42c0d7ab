//! Writes recordings as esxtop does: quoted cells, UTC, a fixed number of decimals.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::Path;

use rayon::prelude::*;

use leadline_stats::error::LeadlineError;

const SECOND_NS: i64 = 1_000_000_000;
const DECIMALS_MAX: usize = 9;
/// Above this a scaled value may not be exact in 64 bits of mantissa, and the general formatter is used.
const SCALED_MAX: f64 = 9.0e15;

/// Creates (or empties) `path` and writes the header. `zone` is a zone name (then at UTC), `(Name)(minutes)`, or the whole
/// first cell, `(PDH-CSV 4.0) (Name)(minutes)`.
///
/// # Errors
/// When the file cannot be written.
pub fn write_header<'a>(
    path: &Path,
    zone: &str,
    cells: impl Iterator<Item = &'a str>,
) -> Result<(), LeadlineError> {
    let write = || -> std::io::Result<()> {
        let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
        if zone.starts_with("(PDH-") {
            write!(out, "\"{zone}\"")?;
        } else if zone.starts_with('(') {
            write!(out, "\"(PDH-CSV 4.0) {zone}\"")?;
        } else {
            write!(out, "\"(PDH-CSV 4.0) ({zone})(0)\"")?;
        }
        for cell in cells {
            out.write_all(b",\"")?;
            out.write_all(cell.replace('"', "\"\"").as_bytes())?;
            out.write_all(b"\"")?;
        }
        out.write_all(b"\n")?;
        out.flush()
    };
    write().map_err(|e| LeadlineError::from_io(&path.to_string_lossy(), "write the header", &e))
}

/// Appends rows to `path`. `values` holds `times_ns.len()` rows of equal width, row after row; NaN becomes an empty cell.
///
/// Times are written in UTC to the second; values are rounded to `decimals` places, halves away from zero.
///
/// # Errors
/// When the sizes disagree, `decimals` exceeds 9, or the file cannot be written.
pub fn write_rows(
    path: &Path,
    times_ns: &[i64],
    values: &[f64],
    decimals: usize,
) -> Result<(), LeadlineError> {
    let name = path.to_string_lossy();
    if decimals > DECIMALS_MAX {
        let found = format!("{decimals} decimals");
        return Err(LeadlineError::new(
            name,
            found,
            "0 to 9",
            "Ask for fewer decimals.",
        ));
    }
    if times_ns.is_empty() {
        return Ok(());
    }
    let width = values.len() / times_ns.len();
    if width * times_ns.len() != values.len() || width == 0 {
        let found = format!("{} values for {} rows", values.len(), times_ns.len());
        return Err(LeadlineError::new(
            name,
            found,
            "rows of equal width",
            "Pass one row of values per time.",
        ));
    }
    let fail = |e: &std::io::Error| LeadlineError::from_io(&name, "write rows", e);
    let mut file = OpenOptions::new()
        .append(true)
        .open(path)
        .map_err(|e| fail(&e))?;
    // A few rows per worker at a time keep memory small whatever the chunk.
    let group = 2 * rayon::current_num_threads();
    let mut texts: Vec<Vec<u8>> = vec![Vec::new(); group];
    for (times, rows) in times_ns.chunks(group).zip(values.chunks(group * width)) {
        texts
            .par_iter_mut()
            .zip(times.par_iter().zip(rows.par_chunks(width)))
            .for_each(|(text, (time, row))| {
                text.clear();
                push_row(text, *time, row, decimals);
            });
        for text in &texts[..times.len()] {
            file.write_all(text).map_err(|e| fail(&e))?;
        }
    }
    Ok(())
}

fn push_row(text: &mut Vec<u8>, time_ns: i64, row: &[f64], decimals: usize) {
    text.reserve(32 + row.len() * (6 + decimals));
    text.push(b'"');
    push_time(text, time_ns);
    text.push(b'"');
    for value in row {
        text.extend_from_slice(b",\"");
        push_number(text, *value, decimals);
        text.push(b'"');
    }
    text.push(b'\n');
}

/// `MM/DD/YYYY HH:MM:SS`.
///
/// Source: H. Hinnant, "chrono-Compatible Low-Level Date Algorithms", `civil_from_days`.
fn push_time(text: &mut Vec<u8>, time_ns: i64) {
    let seconds = time_ns.div_euclid(SECOND_NS);
    let (days, second) = (
        seconds.div_euclid(86_400) + 719_468,
        seconds.rem_euclid(86_400),
    );
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute) = (second / 3600, second / 60 % 60);
    text.extend_from_slice(
        format!(
            "{month:02}/{day:02}/{year:04} {hour:02}:{minute:02}:{:02}",
            second % 60
        )
        .as_bytes(),
    );
}

// The value was checked to be non-negative and below 9e15 before it becomes an integer.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn push_number(text: &mut Vec<u8>, value: f64, decimals: usize) {
    const SCALES: [f64; DECIMALS_MAX + 1] = [1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9];
    if !value.is_finite() {
        return;
    }
    let scaled = (value.abs() * SCALES[decimals]).round();
    if scaled >= SCALED_MAX {
        text.extend_from_slice(format!("{value:.decimals$}").as_bytes());
        return;
    }
    let mut left = scaled as u64;
    // A value that rounds to zero has no sign.
    if value < 0.0 && left > 0 {
        text.push(b'-');
    }
    let mut digits = [b'0'; 24];
    let mut at = digits.len();
    let mut written = 0;
    while left > 0 || written <= decimals {
        if written == decimals && decimals > 0 {
            at -= 1;
            digits[at] = b'.';
        }
        at -= 1;
        digits[at] = b'0' + (left % 10) as u8;
        left /= 10;
        written += 1;
    }
    text.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::time::{days_from_date, parse_time};
    use super::*;
    use proptest::prelude::*;

    fn number(value: f64, decimals: usize) -> String {
        let mut text = Vec::new();
        push_number(&mut text, value, decimals);
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn numbers() {
        assert_eq!(number(0.0, 2), "0.00");
        assert_eq!(number(100.0, 2), "100.00");
        assert_eq!(number(12.345, 1), "12.3");
        assert_eq!(number(-0.001, 2), "0.00");
        assert_eq!(number(-3.0, 2), "-3.00");
        assert_eq!(number(7.0, 0), "7");
        assert_eq!(number(f64::NAN, 2), "");
        assert_eq!(number(1e18, 2), "1000000000000000000.00");
    }

    proptest! {
        #[test]
        fn numbers_are_near(value in -1e9_f64..1e9, decimals in 0_usize..7) {
            let back: f64 = number(value, decimals).parse().unwrap();
            prop_assert!((back - value).abs() <= 0.5001 * 10_f64.powi(-i32::try_from(decimals).unwrap()) + 1e-7);
        }

        #[test]
        fn times_read_back(seconds in 0_i64..4_000_000_000) {
            let mut text = Vec::new();
            push_time(&mut text, seconds * SECOND_NS + 5);
            let time = parse_time(&text).unwrap();
            let [m, d, y] = time.date.unwrap().parts;
            prop_assert_eq!(days_from_date(y, m, d).unwrap() * 86_400 + time.clock_ns / SECOND_NS, seconds);
        }
    }
}
