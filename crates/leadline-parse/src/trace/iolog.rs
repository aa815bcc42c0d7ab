//! fio's iologs, versions 2 and 3.
//!
//! The first line names the version. Version 2: `FILE ACTION [OFFSET LENGTH]`, with `wait` for microseconds since the
//! last wait. Version 3 has a time in microseconds in front of each line. Latencies are not in either.
//! Source: fio HOWTO, "Trace file format v2" and "v3"; `log_io_u` of fio's iolog.c, which writes microseconds.

use super::input::{Input, length, number};
use super::{Disks, Kind, NO_LATENCY, Notes, Reader, Record};
use leadline_stats::error::LeadlineError;

const BATCH: usize = 8192;
const FIELDS: usize = 6;

/// The version a first line names.
pub fn version(line: &[u8]) -> Option<u8> {
    match line.trim_ascii() {
        b"fio version 2 iolog" => Some(2),
        b"fio version 3 iolog" => Some(3),
        _ => None,
    }
}

/// An iolog.
pub struct Iolog {
    input: Input,
    version: u8,
    now_us: u64,
    disks: Disks,
    notes: Notes,
    ended: bool,
}

impl Iolog {
    /// Reads an iolog whose first line was taken.
    pub fn new(input: Input, version: u8) -> Self {
        Self {
            input,
            version,
            now_us: 0,
            disks: Disks::default(),
            notes: Notes::default(),
            ended: false,
        }
    }

    fn next(&mut self) -> Result<Option<Record>, LeadlineError> {
        let Some((line, whole)) = self.input.line()? else {
            self.ended = true;
            return Ok(None);
        };
        if line.trim_ascii().is_empty() {
            return Ok(None);
        }
        let mut fields = [&line[..0]; FIELDS];
        let mut count = 0;
        for word in line
            .split(u8::is_ascii_whitespace)
            .filter(|word| !word.is_empty())
        {
            if count < FIELDS {
                fields[count] = word;
            }
            count += 1;
        }
        let skip = usize::from(self.version == 3);
        let words = [
            fields[skip],
            fields[skip + 1],
            fields[skip + 2],
            fields[skip + 3],
        ];
        let stamp = if skip == 1 {
            number(fields[0])
        } else {
            Some(self.now_us)
        };
        if count >= skip {
            count -= skip;
        }
        match (stamp, Self::action(&words, count)) {
            (Some(_), Some(Action::Wait(us))) if skip == 0 => {
                self.now_us = self.now_us.saturating_add(us);
                Ok(None)
            }
            (Some(at_us), Some(Action::Data(kind, offset, bytes)))
                if whole && at_us.checked_mul(1000).is_some() =>
            {
                let disk = self.disks.index_of(words[0], || "the iolog".into())?;
                let time_ns = at_us * 1000;
                Ok(Some(Record {
                    time_ns,
                    offset,
                    latency_ns: NO_LATENCY,
                    bytes,
                    disk,
                    kind,
                }))
            }
            (Some(_), Some(Action::File)) => Ok(None),
            (Some(_), Some(Action::Other)) => {
                self.notes.add("other", 1, || {
                    "actions that are no reads or writes of data, left out".into()
                });
                Ok(None)
            }
            _ if !whole => {
                self.notes
                    .add("cut", 1, || "the last line was cut and is left out".into());
                Ok(None)
            }
            _ => Err(self.wrong()),
        }
    }

    fn action(words: &[&[u8]; 4], count: usize) -> Option<Action> {
        match (words[1], count) {
            (b"add" | b"open" | b"close" | b"unlink", 2) => Some(Action::File),
            (b"sync" | b"datasync" | b"sync_file_range" | b"trim", 2..=4) => Some(Action::Other),
            (b"wait", 3..=4) => number(words[2]).map(Action::Wait),
            (b"read" | b"write", 4) => {
                let kind = if words[1] == b"read" {
                    Kind::Read
                } else {
                    Kind::Write
                };
                let (offset, bytes) = (number(words[2])?, number(words[3])?);
                match (bytes, length(bytes)) {
                    (0, _) => Some(Action::Other),
                    (_, Some(bytes)) => Some(Action::Data(kind, offset, bytes)),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    #[cold]
    fn wrong(&self) -> LeadlineError {
        let version = self.version;
        let shape = if version == 3 {
            "TIME FILE ACTION [OFFSET LENGTH]"
        } else {
            "FILE ACTION [OFFSET LENGTH]"
        };
        LeadlineError::new(
            self.input.line_place(),
            format!("no line of a version {version} iolog"),
            shape,
            "Remove the damaged line, or record again with --write_iolog.",
        )
    }
}

enum Action {
    Data(Kind, u64, u32),
    File,
    Other,
    Wait(u64),
}

impl Reader for Iolog {
    fn fill(&mut self, out: &mut Vec<Record>) -> Result<bool, LeadlineError> {
        for _ in 0..BATCH {
            if let Some(record) = self.next()? {
                out.push(record);
            }
            if self.ended {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn disks(&self) -> &[String] {
        self.disks.names()
    }

    fn notes(&mut self) -> Notes {
        std::mem::take(&mut self.notes)
    }
}
