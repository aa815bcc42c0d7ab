//! Tables of a recording: which columns a header names, which device a row is about, and where its numbers go.

use std::collections::{HashMap, HashSet};

use super::line::{is_device, trimmed};
use super::matrix::Matrix;
use super::number::{Cell, is_blank, read_cell, skip_blanks, skip_word, suffix_bytes, unit_bytes};

/// Column names asked for; None for all.
pub type Wanted = Option<HashSet<String>>;

/// One column of a header.
#[derive(Debug)]
struct Column {
    /// Index of its field, None when it is not asked for.
    field: Option<usize>,
    /// Bytes per unit, for cells with a unit letter.
    unit_bytes: Option<f64>,
}

/// A header line and what it says about the rows below it.
#[derive(Debug)]
pub struct Layout {
    header: Vec<u8>,
    columns: Vec<Column>,
    name_last: bool,
    /// Digits after the point in the last number of the latest row.
    pub last_decimals: Option<u8>,
}

/// Rows and fields that reports agree on.
#[derive(Debug, Default)]
pub struct Table {
    /// Devices in order of appearance.
    pub devices: Vec<String>,
    /// Fields in order of appearance.
    pub fields: Vec<String>,
    /// Per field, its values.
    pub matrices: Vec<Matrix>,
    /// Headers met.
    pub layouts: Vec<Layout>,
    by_name: HashMap<Vec<u8>, usize>,
    names: Vec<Vec<u8>>,
    next: usize,
    report: usize,
    expected: usize,
}

/// What a row was.
#[derive(Debug, PartialEq, Eq)]
pub enum Row {
    /// A device's numbers, stored.
    Stored,
    /// A device's name whose numbers stand on the next line (`-h` of versions before 11.7).
    NameOnly,
    /// The sum of a group of devices (`-g`), not stored.
    Group,
    /// Neither: what is wrong with it.
    Bad(String),
}

impl Table {
    /// Rows from here on belong to report `report` of about `expected`.
    pub fn begin(&mut self, report: usize, expected: usize) {
        self.report = report;
        self.expected = expected;
    }

    /// The index of a header's layout, made when it is new.
    pub fn layout(&mut self, line: &[u8], wanted: &Wanted) -> usize {
        let text = trimmed(line);
        self.next = 0;
        if let Some(known) = self.layouts.iter().position(|layout| layout.header == text) {
            return known;
        }
        let words: Vec<&[u8]> = text
            .split(|b| is_blank(*b))
            .filter(|word| !word.is_empty())
            .collect();
        let name_last = words.len() > 1
            && !is_device(words[0])
            && words.last().is_some_and(|word| is_device(word));
        let names = if name_last {
            &words[..words.len() - 1]
        } else {
            words.get(1..).unwrap_or_default()
        };
        let columns = names
            .iter()
            .map(|name| self.column(&String::from_utf8_lossy(name), wanted))
            .collect();
        self.layouts.push(Layout {
            header: text.to_vec(),
            columns,
            name_last,
            last_decimals: None,
        });
        self.layouts.len() - 1
    }

    fn column(&mut self, name: &str, wanted: &Wanted) -> Column {
        let asked = wanted.as_ref().is_none_or(|names| names.contains(name));
        let field = asked.then(|| {
            self.fields
                .iter()
                .position(|field| field == name)
                .unwrap_or_else(|| {
                    self.fields.push(name.to_owned());
                    self.matrices.push(Matrix::default());
                    self.fields.len() - 1
                })
        });
        Column {
            field,
            unit_bytes: unit_bytes(name),
        }
    }

    /// Stores a row of numbers without a name (the CPUs') as those of device `name`.
    pub fn unnamed_row(&mut self, layout: usize, line: &[u8], name: &[u8]) -> Row {
        let device = self.device(name);
        match self.numbers(layout, line, 0, device) {
            Ok(end) if skip_blanks(line, end) == line.len() => Row::Stored,
            Ok(_) => self.wrong_count(layout, line, 0),
            Err(reason) => Row::Bad(reason),
        }
    }

    /// Stores a row of a device table; `pending` is the name from the line above, if that held nothing else.
    pub fn row(&mut self, layout: usize, line: &[u8], pending: Option<&[u8]>) -> Row {
        if let Some(name) = pending {
            return self.unnamed_row(layout, line, name);
        }
        if self.layouts[layout].name_last {
            return self.row_name_last(layout, line);
        }
        if line.first().is_none_or(|byte| is_blank(*byte)) {
            return if self.name_end(layout, line).is_some() {
                Row::Group
            } else {
                self.wrong_count(layout, line, 1)
            };
        }
        let mut end = skip_word(line, 0);
        let first = skip_blanks(line, end);
        if first == line.len() {
            return Row::NameOnly;
        }
        if read_cell(line, first).is_none() {
            // A name with blanks in it: the numbers are the last words of the line.
            match self.name_end(layout, line) {
                Some(longer) => end = longer,
                None => return self.wrong_count(layout, line, 1),
            }
        }
        let device = self.device(&line[..end]);
        match self.numbers(layout, line, end, device) {
            Ok(last) if skip_blanks(line, last) == line.len() => Row::Stored,
            Ok(_) => self.wrong_count(layout, line, 1),
            Err(reason) => Row::Bad(reason),
        }
    }

    fn row_name_last(&mut self, layout: usize, line: &[u8]) -> Row {
        let mut at = 0;
        for _ in 0..self.layouts[layout].columns.len() {
            at = skip_word(line, skip_blanks(line, at));
        }
        let name = trimmed(&line[at..]);
        if name.is_empty() {
            return self.wrong_count(layout, line, 1);
        }
        if skip_blanks(line, at) > at + 1 {
            return Row::Group;
        }
        let name = name.to_vec();
        let device = self.device(&name);
        match self.numbers(layout, line, 0, device) {
            Ok(_) => Row::Stored,
            Err(reason) => Row::Bad(reason),
        }
    }

    /// Where the name ends when the last words of the line are all numbers, as many as there are columns.
    fn name_end(&self, layout: usize, line: &[u8]) -> Option<usize> {
        let mut end = line.len();
        for _ in &self.layouts[layout].columns {
            let last = line[..end].iter().rposition(|b| !is_blank(*b))?;
            let start = line[..last].iter().rposition(|b| is_blank(*b))? + 1;
            read_cell(line, start)?;
            end = start;
        }
        let name = line[..end].iter().rposition(|b| !is_blank(*b))?;
        Some(name + 1)
    }

    #[inline]
    fn numbers(
        &mut self,
        layout: usize,
        line: &[u8],
        mut at: usize,
        device: usize,
    ) -> Result<usize, String> {
        let Self {
            layouts,
            matrices,
            report,
            expected,
            ..
        } = self;
        let layout = &mut layouts[layout];
        let mut decimals = None;
        for column in &layout.columns {
            at = skip_blanks(line, at);
            let Some((cell, end)) = read_cell(line, at) else {
                return Err(what_stands(line, at));
            };
            if let Some(field) = column.field {
                let (value, narrow) =
                    scaled(cell, column.unit_bytes).ok_or_else(|| what_stands(line, at))?;
                matrices[field].set((device, *report), value, narrow, *expected);
            }
            decimals = Some(cell.decimals);
            at = end;
        }
        layout.last_decimals = decimals;
        Ok(at)
    }

    #[inline]
    fn device(&mut self, name: &[u8]) -> usize {
        if self.names.get(self.next).is_some_and(|known| known == name) {
            self.next += 1;
            return self.next - 1;
        }
        let index = if let Some(index) = self.by_name.get(name) {
            *index
        } else {
            self.by_name.insert(name.to_vec(), self.names.len());
            self.names.push(name.to_vec());
            self.devices
                .push(String::from_utf8_lossy(name).into_owned());
            self.names.len() - 1
        };
        self.next = index + 1;
        index
    }

    #[cold]
    fn wrong_count(&self, layout: usize, line: &[u8], names: usize) -> Row {
        let words = line
            .split(|b| is_blank(*b))
            .filter(|word| !word.is_empty())
            .count();
        let expected = self.layouts[layout].columns.len() + names;
        Row::Bad(format!("{words} columns where the header has {expected}"))
    }
}

#[inline]
fn scaled(cell: Cell, unit: Option<f64>) -> Option<(f64, bool)> {
    if cell.suffix == 0 {
        return Some((cell.value, cell.narrow));
    }
    Some((cell.value * suffix_bytes(cell.suffix)? / unit?, true))
}

#[cold]
fn what_stands(line: &[u8], at: usize) -> String {
    let word = &line[at..skip_word(line, at)];
    if word.is_empty() {
        return "fewer numbers than the header has columns".to_owned();
    }
    let shown: String = String::from_utf8_lossy(word).chars().take(40).collect();
    format!("{shown:?} where a number belongs")
}
