//! What fio replays: iologs of version 3, one per lane.
//!
//! fio issues an iolog's requests one after another in one thread, and waits between them by sleeping, so a request
//! that takes longer than the gap to the next delays it. The trace is dealt out to lanes in turn, each a job of its own
//! with one request at a time: a lane's gap is as many times longer as there are lanes, and delays vanish unless the
//! target is slower than that. Offsets that do not fit are wrapped around the target's end, or all are scaled by the
//! ratio of the two sizes; either way one block of the trace is one block of the target, whatever the length.
//! Source: `iolog_delay` and `delay_since_ttime` of fio's iolog.c; a time of 0 means "no time yet" there, so ours
//! begin at 1.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use super::profile::DiskProfile;
use super::run::{Progress, drive};
use super::{Kind, Note, Record};
use leadline_stats::error::LeadlineError;

const SECTOR_BYTES: u64 = 512;
const ALIGN: u64 = 4096;
const NS_PER_MS: u64 = 1_000_000;

/// How offsets of the traced disk become offsets on the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mapping {
    /// What lies beyond the target's end begins again at its start.
    Wrapped,
    /// All are multiplied by target size over this size of the traced disk, and aligned to 4 KiB.
    Scaled(u64),
}

/// What to write and where.
#[derive(Clone, Debug)]
pub struct Lanes {
    /// Files to write, one per lane; at least one.
    pub paths: Vec<PathBuf>,
    /// Index of the disk.
    pub disk: u16,
    /// The name of the target in the iologs.
    pub target: String,
    /// Size of the target.
    pub target_bytes: u64,
    /// How offsets are put on the target.
    pub mapping: Mapping,
    /// Smallest unit the target takes.
    pub unit_bytes: u64,
    /// Percentage of the trace's speed at which fio replays; the profile's times are scaled alike.
    pub speed_pct: u32,
    /// Requests issued this long after the first and later are left out; all are taken when None.
    pub duration_ns: Option<u64>,
}

/// What was written.
pub struct Replay {
    /// The requests as written, characterised; times are cut to milliseconds when asked for.
    pub profile: DiskProfile,
    /// Requests that were moved, since the target is smaller than the disk.
    pub moved: u64,
    /// Requests left out, since one is larger than the target.
    pub too_large: u64,
    /// Requests whose offset or length was made a multiple of the unit.
    pub aligned: u64,
    /// What was repaired or left out while reading.
    pub notes: Vec<Note>,
}

/// Writes the lanes; None when `progress` said stop.
///
/// # Errors
/// The trace cannot be read, or a lane cannot be written.
pub fn write_lanes(
    files: &[(PathBuf, String)],
    lanes: &Lanes,
    sample_keys: usize,
    progress: &mut Progress<'_>,
) -> Result<Option<Replay>, LeadlineError> {
    let mut writers = Vec::with_capacity(lanes.paths.len());
    for path in &lanes.paths {
        let file = File::create(path).map_err(|error| failed(path, &error))?;
        let mut writer = BufWriter::new(file);
        let target = &lanes.target;
        write!(
            writer,
            "fio version 3 iolog\n1 {target} add\n1 {target} open\n"
        )
        .map_err(|error| failed(path, &error))?;
        writers.push(writer);
    }
    let mut made = Replay {
        profile: DiskProfile::new(sample_keys),
        moved: 0,
        too_large: 0,
        aligned: 0,
        notes: Vec::new(),
    };
    let mut dealer = Dealer {
        first_ns: None,
        next: 0,
        line: String::new(),
        pending: Vec::new(),
    };
    let mut sink = |records: &[Record]| {
        for record in records.iter().filter(|record| record.disk == lanes.disk) {
            dealer.deal(record, lanes, &mut writers, &mut made)?;
        }
        Ok(())
    };
    let Some(ending) = drive(files, progress, &mut sink)? else {
        return Ok(None);
    };
    for (writer, path) in writers.iter_mut().zip(&lanes.paths) {
        writer.flush().map_err(|error| failed(path, &error))?;
    }
    dealer.profile(&mut made);
    made.notes = ending.notes;
    made.profile.finish();
    Ok(Some(made))
}

fn failed(path: &std::path::Path, error: &std::io::Error) -> LeadlineError {
    LeadlineError::from_io(&path.display().to_string(), "write", error)
}

struct Dealer {
    first_ns: Option<u64>,
    next: usize,
    line: String,
    /// Requests of the current millisecond.
    pending: Vec<Record>,
}

impl Dealer {
    fn profile(&mut self, made: &mut Replay) {
        self.pending.sort_by_key(|record| record.offset);
        for record in self.pending.drain(..) {
            made.profile.take(&record);
        }
    }

    fn deal(
        &mut self,
        record: &Record,
        lanes: &Lanes,
        writers: &mut [BufWriter<File>],
        made: &mut Replay,
    ) -> Result<(), LeadlineError> {
        let first = *self.first_ns.get_or_insert(record.time_ns);
        let since = record.time_ns - first;
        if lanes.duration_ns.is_some_and(|longest| since >= longest) {
            return Ok(());
        }
        let Some((offset, bytes)) = fit(record, lanes, made) else {
            return Ok(());
        };
        let action = if record.kind == Kind::Read {
            "read"
        } else {
            "write"
        };
        self.line.clear();
        let _ = writeln!(
            self.line,
            "{} {} {action} {offset} {bytes}",
            since / 1000 + 1,
            lanes.target
        );
        if let Some(writer) = writers.get_mut(self.next) {
            writer
                .write_all(self.line.as_bytes())
                .map_err(|error| failed(&lanes.paths[self.next], &error))?;
        }
        self.next = (self.next + 1) % lanes.paths.len().max(1);
        // fio's log tells times to a millisecond, without order in it; what it is compared with is told no finer.
        let time_ns = since / u64::from(lanes.speed_pct.max(1)) * 100 / NS_PER_MS * NS_PER_MS;
        if self
            .pending
            .last()
            .is_some_and(|last| last.time_ns != time_ns)
        {
            self.profile(made);
        }
        self.pending.push(Record {
            time_ns,
            offset,
            bytes,
            ..*record
        });
        Ok(())
    }
}

/// Offset and length on the target.
fn fit(record: &Record, lanes: &Lanes, made: &mut Replay) -> Option<(u64, u32)> {
    let unit = lanes.unit_bytes.max(SECTOR_BYTES);
    let bytes = u64::from(record.bytes).div_ceil(unit) * unit;
    let offset = record.offset / unit * unit;
    made.aligned += u64::from(offset != record.offset || bytes != u64::from(record.bytes));
    let Some(room) = lanes.target_bytes.checked_sub(bytes) else {
        made.too_large += 1;
        return None;
    };
    let align = ALIGN.max(unit);
    let mapped = match lanes.mapping {
        Mapping::Scaled(disk_bytes) if disk_bytes > lanes.target_bytes => {
            scaled(offset, lanes.target_bytes, disk_bytes) / align * align
        }
        _ => offset % (lanes.target_bytes / align * align).max(align),
    };
    // The last blocks of the target cannot begin a request that is longer than they are.
    let fitted = if mapped > room {
        room / unit * unit
    } else {
        mapped
    };
    made.moved += u64::from(fitted != offset);
    Some((fitted, u32::try_from(bytes).ok()?))
}

/// An offset by the ratio of the two sizes.
fn scaled(offset: u64, target_bytes: u64, disk_bytes: u64) -> u64 {
    let wide = u128::from(offset) * u128::from(target_bytes) / u128::from(disk_bytes);
    u64::try_from(wide).unwrap_or(u64::MAX)
}
