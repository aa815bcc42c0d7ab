//! All requests of one disk as columns, to look at or to replay in a simulation.

use std::path::PathBuf;

use super::accesses::chosen;
use super::run::{Progress, drive};
use super::streams::Streams;
use super::{Kind, Note, Record};
use leadline_stats::error::LeadlineError;

/// Requests in the order of time; all columns have the same length.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    /// Since the first was issued, ns.
    pub times_ns: Vec<u64>,
    /// Lengths.
    pub bytes: Vec<u32>,
    /// Whether it writes.
    pub is_write: Vec<bool>,
    /// Whether it begins elsewhere than where an earlier one of its kind ended.
    pub is_random: Vec<bool>,
    /// Until it was complete, ns; `NO_LATENCY` where the trace does not tell.
    pub latency_ns: Vec<u64>,
    /// What was repaired or left out while reading.
    pub notes: Vec<Note>,
}

impl Requests {
    /// Leaves only those of a disk, with times since the first.
    fn keep(&mut self, disks: &[u16], disk: u16) {
        fn kept<T: Copy>(column: &mut Vec<T>, disks: &[u16], disk: u16) {
            let mut own = disks.iter();
            column.retain(|_| own.next() == Some(&disk));
        }
        kept(&mut self.times_ns, disks, disk);
        kept(&mut self.bytes, disks, disk);
        kept(&mut self.is_write, disks, disk);
        kept(&mut self.is_random, disks, disk);
        kept(&mut self.latency_ns, disks, disk);
        let first = self.times_ns.first().copied().unwrap_or(0);
        for time in &mut self.times_ns {
            *time = time.saturating_sub(first);
        }
    }
}

/// The requests of a disk by its name, None when there is only one; None when `progress` said stop.
///
/// # Errors
/// The trace cannot be read, has no such disk, or has more requests than may be.
pub fn requests(
    files: &[(PathBuf, String)],
    disk: Option<&str>,
    requests_max: usize,
    progress: &mut Progress<'_>,
) -> Result<Option<Requests>, LeadlineError> {
    let name = files.first().map_or("the trace", |(_, name)| name.as_str());
    let mut found = Requests::default();
    let mut streams: Vec<[Streams; 2]> = Vec::new();
    let mut disks: Vec<u16> = Vec::new();
    let mut sink = |records: &[Record]| {
        for record in records {
            if found.times_ns.len() >= requests_max {
                return Err(LeadlineError::new(
                    name,
                    format!("more than {requests_max} requests"),
                    "fewer",
                    "Cut the trace.",
                ));
            }
            let is_write = record.kind == Kind::Write;
            let index = usize::from(record.disk);
            while streams.len() <= index {
                streams.push(<[Streams; 2]>::default());
            }
            let own = &mut streams[index][usize::from(is_write)];
            found.is_random.push(!own.take(record.offset, record.bytes));
            found.times_ns.push(record.time_ns);
            found.bytes.push(record.bytes);
            found.is_write.push(is_write);
            found.latency_ns.push(record.latency_ns);
            disks.push(record.disk);
        }
        Ok(())
    };
    let Some(ending) = drive(files, progress, &mut sink)? else {
        return Ok(None);
    };
    let disk = chosen(name, &ending.disks, disk)?;
    found.keep(&disks, disk);
    found.notes = ending.notes;
    Ok(Some(found))
}
