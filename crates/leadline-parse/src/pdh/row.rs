//! One row into cells, mending the faults that shift them.

use memchr::{memchr, memchr_iter};

use super::lines::Task;
use super::scan::cell_starts;

/// Whether a row has the cells it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// Exactly the cells of the header.
    Exact,
    /// As many, with blank cells behind them.
    Trailing,
    /// As many, after mending.
    Mended,
    /// Another number of cells, which mending did not change.
    Cells(usize),
}

/// What mending a row did.
#[derive(Clone, Copy, Debug, Default)]
struct Mending {
    commas_put_in: u64,
    decimal_commas: bool,
    /// The last quote does not close.
    open: bool,
}

/// Cuts rows into cells. One per worker: the buffer of cell positions is kept.
#[derive(Debug)]
pub struct RowCutter {
    separator: u8,
    /// Cells of the header, the time included.
    expected: usize,
    /// Whether quotes are looked at in every row.
    careful: bool,
    starts: Vec<u32>,
    /// Cells that had run together, over all rows so far.
    pub commas_missing: u64,
    /// Rows in which a decimal comma was found.
    pub decimal_comma_rows: u64,
}

impl RowCutter {
    /// A cutter for the rows of one recording.
    #[must_use]
    pub fn new(task: &Task<'_>) -> Self {
        Self::with(task.layout.separator, task.columns + 1, task.careful)
    }

    /// A cutter for rows of `expected` cells, the time included.
    fn with(separator: u8, expected: usize, careful: bool) -> Self {
        let starts = Vec::new();
        Self {
            separator,
            expected,
            careful,
            starts,
            commas_missing: 0,
            decimal_comma_rows: 0,
        }
    }

    /// Start of every cell in the row last cut; cell `i` is `starts[i]..starts[i + 1] - 1`.
    #[must_use]
    pub fn starts(&self) -> &[u32] {
        &self.starts[..(self.expected + 1).min(self.starts.len())]
    }

    /// Whether the last of the expected cells of the row last cut has any character, be it a quote.
    #[must_use]
    pub fn last_cell_begun(&self) -> bool {
        matches!(self.starts(), [.., start, end] if end - start > 1)
    }

    /// Cuts `line`, which has no line end. Faults are mended inside `line`: decimal commas become points, and where a
    /// separator is missing between two quotes the first of them becomes one.
    pub fn cut(&mut self, line: &mut [u8]) -> Fit {
        if self.separator != b',' && memchr(b',', line).is_some() {
            self.decimal_comma_rows += 1;
            for b in line.iter_mut().filter(|b| **b == b',') {
                *b = b'.';
            }
        }
        if self.careful {
            return self.cut_checked(line);
        }
        let cells = cell_starts(line, self.separator, &mut self.starts);
        let fit = self.fit(line, cells);
        // A last cell without even quotes may be the one behind a trailing comma, its place taken by two cells that had
        // run together.
        let doubtful =
            fit == Some(Fit::Exact) && line.ends_with(&[self.separator]) && line.starts_with(b"\"");
        match fit {
            Some(fit) if !doubtful => fit,
            _ => self.cut_checked(line),
        }
    }

    /// Cuts as [`RowCutter::cut`] does, but looks at every quote first: the count of separators alone may be right by
    /// accident when a row has two faults.
    pub fn cut_checked(&mut self, line: &mut [u8]) -> Fit {
        let mending = self.mend(line);
        let cells = cell_starts(line, self.separator, &mut self.starts);
        let Some(fit) = self.fit(line, cells).filter(|_| !mending.open) else {
            return Fit::Cells(cells);
        };
        if mending.commas_put_in == 0 && !mending.decimal_commas {
            return fit;
        }
        self.commas_missing += mending.commas_put_in;
        self.decimal_comma_rows += u64::from(mending.decimal_commas);
        Fit::Mended
    }

    fn fit(&self, line: &[u8], cells: usize) -> Option<Fit> {
        if cells == self.expected {
            return Some(Fit::Exact);
        }
        let behind = self
            .starts
            .get(self.expected)
            .filter(|_| cells > self.expected)?;
        let rest = &line[(*behind as usize).min(line.len())..];
        // Quotes with nothing inside are a blank value, not a trailing separator.
        let blank = rest.iter().all(|b| *b == self.separator || *b == b' ');
        blank.then_some(Fit::Trailing)
    }

    /// Walks the quotes of a row.
    fn mend(&self, line: &mut [u8]) -> Mending {
        let mut mending = Mending::default();
        let mut at = 0;
        let mut inside = false;
        while at < line.len() {
            if !inside && line[at] != b'"' {
                let Some(n) = memchr(self.separator, &line[at..]) else {
                    break;
                };
                at += n + 1;
                continue;
            }
            let start = at + usize::from(!inside);
            let Some(n) = memchr(b'"', &line[start..]) else {
                mending.open = true;
                break;
            };
            let close = start + n;
            if self.separator == b',' {
                let commas: Vec<usize> = memchr_iter(b',', &line[start..close]).collect();
                mending.decimal_commas |= !commas.is_empty();
                for comma in commas {
                    line[start + comma] = b'.';
                }
            }
            (at, inside) = match line.get(close + 1) {
                Some(&b) if b != self.separator => {
                    line[close] = self.separator;
                    mending.commas_put_in += 1;
                    (close + 1, b != b'"')
                }
                _ => (close + 2, false),
            };
        }
        mending
    }
}

/// Length of a line without its line end and spaces. A tab stays where tabs separate cells.
#[must_use]
pub fn trimmed_length(line: &[u8], separator: u8) -> usize {
    let is_space = |b: u8| matches!(b, b'\r' | b'\n' | b' ') || (b == b'\t' && separator != b'\t');
    line.iter()
        .rposition(|b| !is_space(*b))
        .map_or(0, |last| last + 1)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::number::bare;
    use super::*;
    use proptest::prelude::*;

    fn cells(text: &str, expected: usize, separator: u8) -> (Fit, Vec<String>) {
        let mut line = text.as_bytes().to_vec();
        let mut cutter = RowCutter::with(separator, expected, false);
        let fit = cutter.cut(&mut line);
        let list = match fit {
            Fit::Cells(_) => vec![],
            _ => cutter
                .starts()
                .windows(2)
                .map(|w| {
                    String::from_utf8(bare(&line[w[0] as usize..w[1] as usize - 1]).to_vec())
                        .unwrap()
                })
                .collect(),
        };
        (fit, list)
    }

    #[test]
    fn rows_and_their_faults() {
        let own = |l: &[&str]| l.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
        assert_eq!(
            cells(r#""t","1","2""#, 3, b','),
            (Fit::Exact, own(&["t", "1", "2"]))
        );
        assert_eq!(
            cells(r#""t","1","2","#, 3, b','),
            (Fit::Trailing, own(&["t", "1", "2"]))
        );
        assert_eq!(
            cells(r#""t","1""2","""#, 4, b','),
            (Fit::Mended, own(&["t", "1", "2", ""]))
        );
        let trailing_too = cells(r#""t","1""2","3","#, 4, b',');
        assert_eq!(trailing_too, (Fit::Mended, own(&["t", "1", "2", "3"])));
        assert_eq!(
            cells(r#""t","1","2","#, 4, b','),
            (Fit::Exact, own(&["t", "1", "2", ""]))
        );
        assert_eq!(
            cells(r#""t","1"2","3""#, 4, b','),
            (Fit::Mended, own(&["t", "1", "2", "3"]))
        );
        assert_eq!(
            cells(r#""t","1,5","2""#, 3, b','),
            (Fit::Mended, own(&["t", "1.5", "2"]))
        );
        assert_eq!(
            cells(r#""t","1,5","","#, 3, b','),
            (Fit::Mended, own(&["t", "1.5", ""]))
        );
        assert_eq!(
            cells("t;1,5;2", 3, b';'),
            (Fit::Exact, own(&["t", "1.5", "2"]))
        );
        assert_eq!(cells("t,1,2,3", 3, b','), (Fit::Cells(4), vec![]));
        assert_eq!(cells("t,1", 3, b','), (Fit::Cells(2), vec![]));
    }

    proptest! {
        #[test]
        fn any_row_is_survived(line in prop::collection::vec(prop_oneof![Just(b'"'), Just(b','), Just(b'1'), any::<u8>()], 0..200),
                               expected in 2_usize..20) {
            let mut line = line;
            let mut cutter = RowCutter::with(b',', expected, false);
            if !matches!(cutter.cut(&mut line), Fit::Cells(_)) {
                let starts = cutter.starts();
                prop_assert_eq!(starts.len(), expected + 1);
                prop_assert!(starts.windows(2).all(|w| w[0] < w[1]));
                prop_assert!(starts[expected] as usize <= line.len() + 1);
            }
        }
    }
}
