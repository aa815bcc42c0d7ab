//! Reading on one thread, characterising on another.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use super::order::Order;
use super::profile::DiskProfile;
use super::sniff;
use super::{Kind, Note, Notes, Record};
use leadline_stats::error::LeadlineError;

const BATCHES_WAITING: usize = 4;
const BATCH: usize = 1 << 14;
const PATIENCE: Duration = Duration::from_millis(100);

/// What profiles are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    /// A profile per disk.
    Disks,
    /// Of one disk, by its index: random reads, random writes, sequential reads, sequential writes.
    Classes(u16),
}

/// How to characterise.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Pages held per disk for working set and miss-ratio curve.
    pub sample_keys: usize,
    /// What profiles are of.
    pub split: Split,
}

/// What a trace holds.
pub struct Outcome {
    /// Name of the format.
    pub format: &'static str,
    /// Profiles by name.
    pub profiles: Vec<(String, DiskProfile)>,
    /// What was repaired or left out.
    pub notes: Vec<Note>,
}

/// What is known when a trace is at its end.
pub struct Ending {
    pub format: &'static str,
    pub disks: Vec<String>,
    pub notes: Vec<Note>,
}

/// Called now and then with the bytes read so far; false stops.
pub type Progress<'a> = dyn FnMut(u64) -> bool + 'a;

/// Hands the records of a trace, in the order of time, to `sink`; None when `progress` said stop.
///
/// # Errors
/// The trace cannot be read, or the sink fails.
pub fn drive(
    files: &[(PathBuf, String)],
    progress: &mut Progress<'_>,
    sink: &mut dyn FnMut(&[Record]) -> Result<(), LeadlineError>,
) -> Result<Option<Ending>, LeadlineError> {
    let done = Arc::new(AtomicU64::new(0));
    let (send, receive) = sync_channel::<Vec<Record>>(BATCHES_WAITING);
    let (give_back, spare) = sync_channel::<Vec<Record>>(2 * BATCHES_WAITING);
    std::thread::scope(|scope| {
        let counted = Arc::clone(&done);
        let reading = scope.spawn(move || read(files, &counted, &send, &spare));
        let mut went_on = true;
        loop {
            match receive.recv_timeout(PATIENCE) {
                Ok(mut batch) => {
                    sink(&batch)?;
                    batch.clear();
                    let _ = give_back.try_send(batch);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if !progress(done.load(Ordering::Relaxed)) {
                went_on = false;
                break;
            }
        }
        drop(receive); // a reader that waits to send ends now
        let ending = reading.join().unwrap_or_else(|_| {
            Err(LeadlineError::new(
                files.first().map_or("the trace", |(_, name)| name.as_str()),
                "a fault of the reader",
                "a trace that can be read",
                "Please report it with the first lines of the file.",
            ))
        })?;
        Ok(went_on.then_some(ending))
    })
}

fn read(
    files: &[(PathBuf, String)],
    done: &Arc<AtomicU64>,
    send: &SyncSender<Vec<Record>>,
    spare: &Receiver<Vec<Record>>,
) -> Result<Ending, LeadlineError> {
    let (mut reader, format) = sniff::open(files, done)?;
    let mut order = Order::new(format == "fio-lat-log");
    let (mut batch, mut ready) = (Vec::with_capacity(BATCH), Vec::with_capacity(BATCH));
    let mut more = true;
    while more {
        more = reader.fill(&mut batch)?;
        order.pass(&mut batch, !more, &mut ready);
        if ready.is_empty() {
            continue;
        }
        let fresh = spare.try_recv().unwrap_or_default();
        if send.send(std::mem::replace(&mut ready, fresh)).is_err() {
            break;
        }
    }
    let mut notes: Notes = reader.notes();
    order.tell(
        !matches!(format, "blktrace" | "blkparse" | "fio-lat-log"),
        &mut notes,
    );
    Ok(Ending {
        format,
        disks: reader.disks().to_vec(),
        notes: notes.into_vec(),
    })
}

/// Characterises a trace; None when `progress` said stop.
///
/// # Errors
/// The trace cannot be read.
pub fn characterise(
    files: &[(PathBuf, String)],
    options: &Options,
    progress: &mut Progress<'_>,
) -> Result<Option<Outcome>, LeadlineError> {
    let mut profiles: Vec<DiskProfile> = Vec::new();
    let mut whole = DiskProfile::new(1);
    let mut sink = |records: &[Record]| {
        for record in records {
            let index = match options.split {
                Split::Disks => usize::from(record.disk),
                Split::Classes(disk) if record.disk == disk => {
                    let sequential = streams_of(&mut whole, record);
                    usize::from(record.kind == Kind::Write) + 2 * usize::from(sequential)
                }
                Split::Classes(_) => continue,
            };
            while profiles.len() <= index {
                profiles.push(DiskProfile::new(options.sample_keys));
            }
            profiles[index].take(record);
        }
        Ok(())
    };
    let Some(ending) = drive(files, progress, &mut sink)? else {
        return Ok(None);
    };
    let names = match options.split {
        Split::Disks => ending.disks,
        Split::Classes(_) => CLASSES.map(str::to_owned).to_vec(),
    };
    for profile in &mut profiles {
        profile.finish();
    }
    let profiles = names.into_iter().zip(profiles).collect();
    Ok(Some(Outcome {
        format: ending.format,
        profiles,
        notes: ending.notes,
    }))
}

/// Names of the classes of `Split::Classes`.
pub const CLASSES: [&str; 4] = [
    "random-read",
    "random-write",
    "sequential-read",
    "sequential-write",
];

fn streams_of(whole: &mut DiskProfile, record: &Record) -> bool {
    let streams = if record.kind == Kind::Read {
        &mut whole.reads_streams
    } else {
        &mut whole.writes_streams
    };
    streams.take(record.offset, record.bytes)
}
