//! I/O traces: vscsiStats command traces, blktrace, blkparse, fio iologs and latency logs, CSV of MSR,
//! Alibaba and Tencent.
//!
//! Readers hand out records in batches and hold little of the file; `order` puts records into the order of time,
//! `profile` characterises them per disk, `replay` writes what fio replays, `synthetic` makes the stream a workload
//! would give. What is repaired is counted in notes; what cannot be is refused with the line or byte it stands at.

mod accesses;
mod blkparse;
mod blktrace;
mod csv;
mod distance;
mod input;
mod iolog;
mod latlog;
mod order;
mod pairing;
mod profile;
mod replay;
mod requests;
mod run;
mod seconds;
mod sniff;
mod streams;
mod synthetic;
mod vscsi;

pub use accesses::{Accesses, Wanted, accesses};
pub use distance::distances;
pub use profile::{DEPTH_LIMITS, DiskProfile, SEEK_LIMITS, SIZE_LIMITS, Spread, TIME_LIMITS, Way};
pub use replay::{Lanes, Mapping, Replay, write_lanes};
pub use requests::{Requests, requests};
pub use run::{CLASSES, Options, Outcome, Split, characterise};
pub use sniff::format_name;
pub use synthetic::{Burst, Load, LoadStream, synthesise};

use leadline_stats::error::LeadlineError;

/// Whether data was read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Data came from the disk.
    Read,
    /// Data went to the disk.
    Write,
}

/// Latency of a record whose trace does not tell it.
pub const NO_LATENCY: u64 = u64::MAX;

/// One read or write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// When it was issued, on the trace's own clock.
    pub time_ns: u64,
    /// First byte on the disk.
    pub offset: u64,
    /// Until it was complete, or `NO_LATENCY`.
    pub latency_ns: u64,
    /// Length in bytes.
    pub bytes: u32,
    /// Index into the reader's disks.
    pub disk: u16,
    /// Read or write.
    pub kind: Kind,
}

/// Something repaired or left out: what, how often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// A short name for it.
    pub code: &'static str,
    /// A sentence for the user.
    pub message: String,
    /// How often.
    pub count: u64,
}

/// Notes, one per code.
#[derive(Clone, Debug, Default)]
pub struct Notes(Vec<Note>);

impl Notes {
    /// Counts something up; the message is that of the first time.
    pub fn add(&mut self, code: &'static str, count: u64, message: impl FnOnce() -> String) {
        if count == 0 {
            return;
        }
        if let Some(known) = self.0.iter_mut().find(|known| known.code == code) {
            known.count += count;
        } else {
            self.0.push(Note {
                code,
                message: message(),
                count,
            });
        }
    }

    /// All of them, in the order of their first time.
    #[must_use]
    pub fn into_vec(self) -> Vec<Note> {
        self.0
    }
}

/// Most disks a trace may have; each costs memory of its own.
pub const DISKS_MAX: usize = 1024;

/// Disks by name, in order of appearance.
#[derive(Debug, Default)]
pub struct Disks {
    names: Vec<String>,
    last: usize,
}

impl Disks {
    /// The index of a disk; a new one is added.
    ///
    /// # Errors
    /// There are more disks than may be; `place` says where.
    pub fn index_of(
        &mut self,
        name: &[u8],
        place: impl FnOnce() -> String,
    ) -> Result<u16, LeadlineError> {
        if self
            .names
            .get(self.last)
            .is_none_or(|known| known.as_bytes() != name)
        {
            self.last = match self.names.iter().position(|known| known.as_bytes() == name) {
                Some(found) => found,
                None if self.names.len() < DISKS_MAX => {
                    self.names.push(String::from_utf8_lossy(name).into_owned());
                    self.names.len() - 1
                }
                None => {
                    return Err(LeadlineError::new(
                        place(),
                        format!("more than {DISKS_MAX} disks"),
                        "a trace of few disks",
                        "Check that the columns are those of the format, or split the trace by disk.",
                    ));
                }
            };
        }
        Ok(u16::try_from(self.last).unwrap_or(u16::MAX))
    }

    /// Names in order of their index.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }
}

/// Records out of a trace, batch by batch.
pub trait Reader: Send {
    /// Adds some records; false when there are no more.
    ///
    /// # Errors
    /// The stream fails, or holds what cannot be repaired.
    fn fill(&mut self, out: &mut Vec<Record>) -> Result<bool, LeadlineError>;

    /// The disks found so far.
    fn disks(&self) -> &[String];

    /// What was repaired or left out so far.
    fn notes(&mut self) -> Notes;
}
