//! The lines of a cache that a trace uses, one after the other.

use std::path::PathBuf;

use super::run::{Progress, drive};
use super::{Kind, Note, Record};
use leadline_stats::error::LeadlineError;

/// What to take of a trace.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Name of the disk; None when there is only one.
    pub disk: Option<String>,
    /// Only reads.
    pub reads_only: bool,
    /// Size of a line.
    pub line_bytes: u64,
    /// Uses that are too many.
    pub uses_max: usize,
}

/// Uses of lines in the order of time.
#[derive(Clone, Debug, Default)]
pub struct Accesses {
    /// Since the first, ns.
    pub times_ns: Vec<u64>,
    /// Offset by line size.
    pub lines: Vec<u64>,
    /// What was repaired or left out while reading.
    pub notes: Vec<Note>,
}

/// The uses of one disk's lines; None when `progress` said stop.
///
/// # Errors
/// The trace cannot be read, has no such disk, or more uses than may be.
pub fn accesses(
    files: &[(PathBuf, String)],
    wanted: &Wanted,
    progress: &mut Progress<'_>,
) -> Result<Option<Accesses>, LeadlineError> {
    let name = files.first().map_or("the trace", |(_, name)| name.as_str());
    let line_bytes = wanted.line_bytes.max(1);
    let mut found: Vec<(u64, u64, u16)> = Vec::new();
    let mut sink = |records: &[Record]| {
        for record in records {
            if wanted.reads_only && record.kind != Kind::Read {
                continue;
            }
            let end = record
                .offset
                .saturating_add(u64::from(record.bytes.max(1)) - 1);
            for line in record.offset / line_bytes..=end / line_bytes {
                if found.len() >= wanted.uses_max {
                    return Err(LeadlineError::new(
                        name,
                        format!("more than {} uses of lines", wanted.uses_max),
                        "fewer",
                        "Take a larger line, or cut the trace.",
                    ));
                }
                found.push((record.time_ns, line, record.disk));
            }
        }
        Ok(())
    };
    let Some(ending) = drive(files, progress, &mut sink)? else {
        return Ok(None);
    };
    let disk = chosen(name, &ending.disks, wanted.disk.as_deref())?;
    found.retain(|own| own.2 == disk);
    let first = found.first().map_or(0, |own| own.0);
    Ok(Some(Accesses {
        times_ns: found.iter().map(|own| own.0 - first).collect(),
        lines: found.iter().map(|own| own.1).collect(),
        notes: ending.notes,
    }))
}

/// The index of the disk of that name; without a name, of the only one.
pub(super) fn chosen(
    name: &str,
    disks: &[String],
    wanted: Option<&str>,
) -> Result<u16, LeadlineError> {
    let place = match wanted {
        Some(disk) => disks.iter().position(|own| own == disk),
        None => (disks.len() <= 1).then_some(0),
    };
    let place = place.and_then(|place| u16::try_from(place).ok());
    place.ok_or_else(|| {
        LeadlineError::new(
            name,
            wanted.map_or_else(
                || "several disks".to_owned(),
                |disk| format!("no disk {disk}"),
            ),
            format!("one of {}", disks.join(", ")),
            "Name the disk in the scenario.",
        )
    })
}
