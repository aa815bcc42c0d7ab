//! What is met while cells become numbers, counted per worker and told once.

use super::number::{Cell, bare, parse_cell};
use super::warnings::{Warnings, code};

/// What was met in the cells and rows.
#[derive(Debug, Default)]
pub struct Tally {
    blank: u64,
    text: u64,
    /// The first cell (by line) that is no number, and its line.
    text_example: Option<(u32, String)>,
    sentinels: u64,
    /// Rows with blank cells behind the last column.
    pub trailing_rows: u64,
    /// Separators that had to be put in.
    pub commas_missing: u64,
    /// Rows with decimal commas.
    pub decimal_comma_rows: u64,
}

impl Tally {
    /// The value of a cell that is no short unsigned number.
    #[cold]
    #[inline(never)]
    pub fn unusual(&mut self, cell: &[u8], sentinel: bool, line_number: u32) -> f64 {
        match parse_cell(cell) {
            // Exact values: the recorder writes -1.00 and -3.00 for "not available".
            #[allow(clippy::float_cmp)]
            Cell::Number(number) if sentinel && (number == -1.0 || number == -3.0) => {
                self.sentinels += 1;
                f64::NAN
            }
            Cell::Number(number) => number,
            Cell::Blank => {
                self.blank += 1;
                f64::NAN
            }
            Cell::Text => {
                self.text += 1;
                if self
                    .text_example
                    .as_ref()
                    .is_none_or(|(line, _)| line_number < *line)
                {
                    let shown = bare(cell);
                    let shown = String::from_utf8_lossy(&shown[..shown.len().min(20)]);
                    self.text_example =
                        Some((line_number, shown.escape_default().take(40).collect()));
                }
                f64::NAN
            }
        }
    }

    /// Adds what another worker met.
    pub fn merge(&mut self, other: Self) {
        self.blank += other.blank;
        self.text += other.text;
        self.sentinels += other.sentinels;
        self.trailing_rows += other.trailing_rows;
        self.commas_missing += other.commas_missing;
        self.decimal_comma_rows += other.decimal_comma_rows;
        self.text_example = match (self.text_example.take(), other.text_example) {
            (Some(a), Some(b)) => Some(if b.0 < a.0 { b } else { a }),
            (a, b) => a.or(b),
        };
    }

    /// The counts in words.
    #[must_use]
    pub fn into_warnings(self) -> Warnings {
        let mut warnings = Warnings::default();
        warnings.add(code::BLANK, self.blank, || {
            "blank cells became \"not measured\"".into()
        });
        warnings.add(code::SENTINEL, self.sentinels, || {
            "-1 or -3 in rates, percentages and latencies became \"not measured\"".into()
        });
        warnings.add(code::ROW_TRAILING_COMMA, self.trailing_rows, || {
            "rows end in separators with no value behind them; they were ignored".into()
        });
        warnings.add(code::ROW_COMMA_MISSING, self.commas_missing, || {
            "cells had run together for want of a comma and were separated".into()
        });
        warnings.add(code::DECIMAL_COMMA, self.decimal_comma_rows, || {
            "rows with decimal commas were read as decimal points".into()
        });
        if let Some((line, shown)) = self.text_example {
            warnings.add(code::NOT_A_NUMBER, self.text, || {
                format!("cells that are no number became \"not measured\"; the first is {shown} in line {line}")
            });
        }
        warnings
    }
}
