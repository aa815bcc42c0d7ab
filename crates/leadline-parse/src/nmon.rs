//! nmon's recordings: facts, time stamps and sections of numbers, in one pass.
//!
//! A section is a kind of line with a heading that names its columns; a row belongs to a snapshot. What the names, times
//! and numbers mean is the caller's business.

mod cells;
mod section;

use std::collections::{HashMap, HashSet};
use std::io::Read;

use leadline_stats::error::LeadlineError;
use memchr::memchr;

use crate::lines::{Ending, each_line};
pub use section::Section;

/// The longest line has a few thousand disks; anything longer is damaged.
const LINE_BYTES_MAX: usize = 1 << 22;
const KIND_LENGTH_MAX: usize = 31;
const DAMAGES_MAX: usize = 100;
const LEFT_OUT: [&[u8]; 4] = [b"BBB", b"TOP", b"UARG", b"ERROR"];

/// The time of a snapshot, as printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Which snapshot.
    pub snapshot_index: usize,
    /// The time of day.
    pub clock: String,
    /// Which of the dates.
    pub day_index: usize,
}

/// Lines that cannot be, for one reason; they were left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The first of them, counted from 1.
    pub line: u64,
    /// How many.
    pub count: u64,
    /// What is wrong, as a sentence with `{}` where the detail stands.
    pub problem: String,
    /// What stands in the first.
    pub detail: String,
}

/// What a recording holds.
#[derive(Debug, Default)]
pub struct Recording {
    /// Whether the last line has no end; it was left out.
    pub is_cut: bool,
    /// What was left out, by reason, in order of appearance.
    pub damages: Vec<Damage>,
    /// Lines that were left out for reasons beyond the first hundred.
    pub further_damage_count: u64,
    /// Facts (AAA) in order: name and text; the first of a name counts.
    pub facts: Vec<(String, String)>,
    /// How many snapshots rows and stamps name.
    pub snapshot_count: usize,
    /// The time stamps (ZZZZ) in order.
    pub stamps: Vec<Stamp>,
    /// The dates they name; empty where there is none.
    pub days: Vec<String>,
    /// Sections by name, in order of appearance.
    pub sections: Vec<(String, Section)>,
}

/// Reads a recording.
///
/// # Errors
/// The stream fails.
pub fn read(stream: impl Read, place: &str) -> Result<Recording, LeadlineError> {
    let mut reader = Reader::default();
    let mut number = 0;
    each_line(stream, place, LINE_BYTES_MAX, |line, ending| {
        number += 1;
        let line = if number == 1 {
            line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line)
        } else {
            line
        };
        let problem = match ending {
            Ending::Text if !line.ends_with(b"\r") => {
                reader.recording.is_cut = true;
                return Ok(false);
            }
            Ending::TooLong => Err(("{}".to_owned(), decoded(&line[..100]))),
            _ => reader.line(line),
        };
        if let Err((problem, detail)) = problem {
            reader.leave_out(number, problem, detail);
        }
        Ok(true)
    })?;
    reader.recording.snapshot_count = reader.snapshots.len();
    Ok(reader.recording)
}

/// What is wrong with a line, and what stands there.
type Problem = (String, String);

#[derive(Default)]
struct Reader {
    recording: Recording,
    snapshots: HashMap<u64, usize>,
    stamped: HashSet<usize>,
    last_snapshot: (u64, usize),
    section_by_kind: HashMap<Vec<u8>, usize>,
    last_section: usize,
    /// Sections whose heading cannot be used, until they have another.
    headless: HashSet<usize>,
}

impl Reader {
    fn leave_out(&mut self, line: u64, problem: String, detail: String) {
        let recording = &mut self.recording;
        if let Some(known) = recording
            .damages
            .iter_mut()
            .find(|known| known.problem == problem)
        {
            known.count += 1;
        } else if recording.damages.len() < DAMAGES_MAX {
            recording.damages.push(Damage {
                line,
                count: 1,
                problem,
                detail,
            });
        } else {
            recording.further_damage_count += 1;
        }
    }

    fn line(&mut self, line: &[u8]) -> Result<(), Problem> {
        let (kind, rest) =
            memchr(b',', line).map_or((line, &[][..]), |at| (&line[..at], &line[at + 1..]));
        if trimmed(line).is_empty() || LEFT_OUT.iter().any(|left_out| kind.starts_with(left_out)) {
            return Ok(());
        }
        let first_end = memchr(b',', rest).unwrap_or(rest.len());
        let (first, others) = (trimmed(&rest[..first_end]), rest.get(first_end + 1..));
        if kind == b"AAA" {
            self.fact(first, others.unwrap_or_default());
            return Ok(());
        }
        let snapshot = snapshot_key(first);
        if let (b"ZZZZ", Some(key), Some(others)) = (kind, snapshot, others) {
            return self.stamp(key, first, others);
        }
        let is_kind = kind.len() <= KIND_LENGTH_MAX
            && kind.first().is_some_and(u8::is_ascii_uppercase)
            && kind
                .iter()
                .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_');
        if rest.is_empty() || !is_kind {
            return Err(("{}".to_owned(), decoded(trimmed(line))));
        }
        let section_index = self.section(kind);
        let Some(key) = snapshot else {
            let section = &mut self.recording.sections[section_index].1;
            if section.head(&names(others.unwrap_or_default())) {
                self.headless.remove(&section_index);
                return Ok(());
            }
            self.headless.insert(section_index);
            return Err((twice_in_heading(kind), String::new()));
        };
        if self.headless.contains(&section_index) {
            return Err((twice_in_heading(kind), String::new()));
        }
        let snapshot_index = self.snapshot(key);
        let section = &mut self.recording.sections[section_index].1;
        section
            .row(snapshot_index, others)
            .map_err(|problem| match problem {
                section::RowProblem::Width(found, expected) => {
                    let problem = format!(
                        "{found} values of {}, its heading names {expected}",
                        decoded(kind)
                    );
                    (problem, String::new())
                }
                section::RowProblem::Twice => {
                    let problem = format!("{} a second time in one snapshot, {{}}", decoded(kind));
                    (problem, decoded(first))
                }
                section::RowProblem::Number(cell) => {
                    (format!("{{}} in {}", decoded(kind)), decoded(&cell))
                }
            })
    }

    fn fact(&mut self, name: &[u8], others: &[u8]) {
        let name = decoded(name);
        if self.recording.facts.iter().any(|known| known.0 == name) {
            return;
        }
        let cells: Vec<String> = others
            .split(|byte| *byte == b',')
            .map(|cell| decoded(trimmed(cell)))
            .collect();
        let text = cells.join(",");
        let text = text.trim_matches([',', ' ']).to_owned();
        self.recording.facts.push((name, text));
    }

    fn stamp(&mut self, key: u64, name: &[u8], others: &[u8]) -> Result<(), Problem> {
        let snapshot_index = self.snapshot(key);
        let mut cells = others.split(|byte| *byte == b',').map(trimmed);
        let clock = decoded(cells.next().unwrap_or_default());
        let day = decoded(cells.next().unwrap_or_default());
        let days = &mut self.recording.days;
        let day_index = days
            .iter()
            .rposition(|known| *known == day)
            .unwrap_or_else(|| {
                days.push(day);
                days.len() - 1
            });
        if !self.stamped.insert(snapshot_index) {
            return Err(("a snapshot a second time, {}".to_owned(), decoded(name)));
        }
        self.recording.stamps.push(Stamp {
            snapshot_index,
            clock,
            day_index,
        });
        Ok(())
    }

    fn snapshot(&mut self, key: u64) -> usize {
        if self.last_snapshot.0 != key {
            let next = self.snapshots.len();
            self.last_snapshot = (key, *self.snapshots.entry(key).or_insert(next));
        }
        self.last_snapshot.1
    }

    fn section(&mut self, kind: &[u8]) -> usize {
        let sections = &mut self.recording.sections;
        // Most lines follow the order of the snapshot before.
        for at in [self.last_section, self.last_section + 1] {
            if sections
                .get(at)
                .is_some_and(|known| known.0.as_bytes() == kind)
            {
                self.last_section = at;
                return at;
            }
        }
        let next = sections.len();
        let at = *self.section_by_kind.entry(kind.to_vec()).or_insert(next);
        if at == next {
            sections.push((decoded(kind), Section::default()));
        }
        self.last_section = at;
        at
    }
}

fn twice_in_heading(kind: &[u8]) -> String {
    format!("a heading {} with a column twice", decoded(kind))
}

/// A number that no two snapshots share; None when a cell names no snapshot.
fn snapshot_key(cell: &[u8]) -> Option<u64> {
    let digits = cell.strip_prefix(b"T")?;
    let is_name = (4..=16).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
    let number = digits.iter().fold(0u64, |number, digit| {
        number.wrapping_mul(10).wrapping_add(u64::from(digit & 15))
    });
    is_name.then_some(number | (digits.len() as u64) << 56)
}

/// The names of a heading, without the empty ones at its end.
fn names(others: &[u8]) -> Vec<String> {
    let mut names: Vec<String> = others
        .split(|byte| *byte == b',')
        .map(|cell| decoded(trimmed(cell)))
        .collect();
    while names.last().is_some_and(String::is_empty) {
        names.pop();
    }
    names
}

fn trimmed(cell: &[u8]) -> &[u8] {
    cell.trim_ascii()
}

/// Text that is UTF-8, else of Windows' Cyrillic code page, which never fails.
fn decoded(bytes: &[u8]) -> String {
    std::str::from_utf8(bytes).map_or_else(
        |_| {
            encoding_rs::WINDOWS_1251
                .decode_without_bom_handling(bytes)
                .0
                .into_owned()
        },
        str::to_owned,
    )
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::{Recording, read};
    use proptest::prelude::*;

    fn recording(text: &str) -> Recording {
        read(text.as_bytes(), "x.nmon").unwrap()
    }

    #[test]
    fn rows_are_placed_by_snapshot_and_column() {
        let mut recording = recording(concat!(
            "AAA,host,db01\nDISKBUSY,Disk %Busy,sda,\nZZZZ,T0001,10:00:00,21-NOV-2026\nDISKBUSY,T0001,5.5,,\n",
            "DISKBUSY,Disk %Busy,sda,sdb\nZZZZ,T0002,10:00:05,21-NOV-2026\nDISKBUSY,T0002,-1.0,12345678901.25\nBBBP,x\n",
        ));
        assert_eq!(recording.facts, [("host".to_owned(), "db01".to_owned())]);
        assert_eq!((recording.snapshot_count, recording.stamps.len()), (2, 2));
        assert_eq!(
            (recording.stamps[1].day_index, recording.days.len()),
            (0, 1)
        );
        let section = &mut recording.sections[0].1;
        assert_eq!(section.columns(), ["sda", "sdb"]);
        let values = section.take_values(&[Some(1), Some(0)], 2);
        assert!(values[0].is_nan() && values[3].is_nan());
        assert_eq!((values[1], values[2]), (5.5, 12_345_678_901.25));
    }

    #[test]
    fn damage_is_named_with_its_line() {
        for (line, problem) in [
            ("DISK", "{}"),
            ("disk,T0001,1", "{}"),
            ("D,x,a,a", "a heading D with a column twice"),
            ("D,T0001,1,2", "2 values of D, its heading names 1"),
            ("D,T0001,x", "{} in D"),
            ("E,T0001,1", "1 values of E, its heading names 0"),
            (
                "ZZZZ,T0002,1,1\nZZZZ,T0002,1,1",
                "a snapshot a second time, {}",
            ),
            (
                "D,T0001,1\nD,T0001,1",
                "D a second time in one snapshot, {}",
            ),
        ] {
            let damages = recording(&format!("D,x,a\n{line}\nD,T0003,7\n")).damages;
            assert_eq!(damages[0].problem, problem);
            assert_eq!(damages[0].line, 2 + line.matches('\n').count() as u64);
        }
    }

    #[test]
    fn a_section_without_a_heading_of_use_is_left_out() {
        let mut recording = recording(
            "D,x,a\nE,x,b,b\nD,T0001,1\nE,T0001,1,2\nD,T0002,2\nE,T0002,1,2\nE,x,b\nE,T0003,3\n",
        );
        assert_eq!(
            recording
                .damages
                .iter()
                .map(|d| (d.count, d.line))
                .collect::<Vec<_>>(),
            [(3, 2)]
        );
        let places = [Some(0), Some(1), Some(2)];
        assert_eq!(
            recording.sections[0].1.take_values(&places, 3)[..2],
            [1.0, 2.0]
        );
        assert_eq!(recording.sections[1].1.take_values(&places, 3)[2..], [3.0]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_named(text in "([A-Z]{1,2},(T000[1-3]|x)(,[-0-9.a-c]{0,3}){0,4}\n){0,9}", bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let mut recording = read([text.as_bytes(), &bytes].concat().as_slice(), "x.nmon").unwrap();
            let places: Vec<_> = (0..recording.snapshot_count).map(Some).collect();
            for (_, section) in &mut recording.sections {
                let width = section.columns().len();
                prop_assert_eq!(section.take_values(&places, places.len()).len(), width * places.len());
            }
        }
    }
}
