//! What was repaired or left out while reading, counted by code so that a fault in every row is one line.

use std::collections::BTreeMap;

/// Stable codes of the repairs the PDH reader makes.
pub mod code {
    /// Text stood before the header and was skipped.
    pub const JUNK_BEFORE_HEADER: &str = "junk-before-header";
    /// Header names were not UTF-8 and were decoded from a guessed or stated code page.
    pub const CODE_PAGE: &str = "code-page";
    /// Two header cells had run together for want of a comma.
    pub const HEADER_COMMA_MISSING: &str = "header-comma-missing";
    /// Two cells of a row had run together for want of a comma.
    pub const ROW_COMMA_MISSING: &str = "row-comma-missing";
    /// The header ends in a comma, with no name behind it.
    pub const TRAILING_COMMA: &str = "trailing-comma";
    /// Rows end in a comma, with no value behind it.
    pub const ROW_TRAILING_COMMA: &str = "row-trailing-comma";
    /// A header cell is not of the form `\\HOST\Object(Instance)\Counter`.
    pub const HEADER_CELL_ODD: &str = "header-cell-odd";
    /// Cells are not quoted: another program saved the file again.
    pub const UNQUOTED: &str = "unquoted";
    /// Lines end in a carriage return alone.
    pub const CR_LINES: &str = "cr-line-ends";
    /// Times carry no seconds.
    pub const NO_SECONDS: &str = "times-without-seconds";
    /// Times carry no date.
    pub const NO_DATE: &str = "times-without-date";
    /// Times of day passed midnight (or the hour) and a day (or an hour) was added.
    pub const ROLL_OVER: &str = "time-roll-over";
    /// Dates have the day first.
    pub const DAY_FIRST: &str = "day-first-dates";
    /// Times go backwards or repeat.
    pub const OUT_OF_ORDER: &str = "times-out-of-order";
    /// Numbers have a decimal comma.
    pub const DECIMAL_COMMA: &str = "decimal-comma";
    /// -1 or -3 stood for "not available".
    pub const SENTINEL: &str = "sentinel";
    /// Cells were blank.
    pub const BLANK: &str = "blank-cells";
    /// Cells held something that is not a number.
    pub const NOT_A_NUMBER: &str = "not-a-number";
    /// The last row is incomplete and was left out.
    pub const LAST_ROW_CUT: &str = "last-row-cut";
    /// The last row is complete but has no line end.
    pub const NO_FINAL_LINE_END: &str = "no-final-line-end";
    /// The header came again inside the file.
    pub const HEADER_REPEATED: &str = "header-repeated";
    /// Rows without any value were left out.
    pub const EMPTY_ROWS: &str = "empty-rows";
    /// The header states no time zone.
    pub const NO_ZONE: &str = "no-time-zone";
}

/// One kind of repair: its code, what was done, and how often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Stable code, one of [`code`].
    pub code: &'static str,
    /// What was found and what was done about it.
    pub message: String,
    /// How many cells, rows or places it concerns.
    pub count: u64,
}

/// Repairs by code. The message of the first occurrence stays; counts add up.
#[derive(Clone, Debug, Default)]
pub struct Warnings {
    by_code: BTreeMap<&'static str, (String, u64)>,
}

impl Warnings {
    /// Counts `count` more occurrences of `code`; `message` is only built for the first.
    pub fn add(&mut self, code: &'static str, count: u64, message: impl FnOnce() -> String) {
        if count == 0 {
            return;
        }
        self.by_code.entry(code).or_insert_with(|| (message(), 0)).1 += count;
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Self) {
        for (code, (message, count)) in &other.by_code {
            self.add(code, *count, || message.clone());
        }
    }

    /// All repairs, ordered by code.
    #[must_use]
    pub fn list(&self) -> Vec<Warning> {
        self.by_code
            .iter()
            .map(|(code, (message, count))| Warning {
                code,
                message: message.clone(),
                count: *count,
            })
            .collect()
    }
}
