//! The events in a `PostgreSQL` server's log, added up by second, in one pass.
//!
//! Its forms are text with any prefix, as it is or as syslog and containers pass it on, csvlog, and JSON; which it is
//! shows in its lines. Seconds are those of the clock that was printed; what a zone means is the caller's business.

mod csv;
mod entries;
mod json;
mod languages;
mod locks;
mod messages;
mod names;
mod pasted;
mod reader;
mod settings;
mod text;
mod times;
mod works;

use std::io::Read;

use leadline_stats::error::LeadlineError;
use memchr::memchr;

use crate::lines::each_line;
pub use locks::{LockWait, Moment};
use reader::Reader;
pub use settings::SettingChange;
pub use times::Days;
pub use works::Work;

/// What a line says beside its message is read from its first MiB; statements may be longer.
const LINE_BYTES_MAX: usize = 1 << 20;

/// What a line may tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A message of level ERROR, FATAL or PANIC.
    Error,
    /// A full disk or a quota.
    OutOfSpace,
    /// A checkpoint that began because it was time.
    TimedCheckpoint,
    /// A checkpoint that began for another reason.
    RequestedCheckpoint,
    /// A connection that was received.
    Connection,
    /// A temporary file; its value is the size in bytes.
    TemporaryFile,
    /// A wait for a lock; its value is the time in milliseconds.
    LockWait,
    /// A statement that ended, other than a commit; its value is the time in milliseconds.
    Statement,
    /// A commit that ended; its value is the time in milliseconds.
    Commit,
    /// A run of autovacuum on a table that ended.
    Autovacuum,
    /// A checkpoint that ended; its value is the time it took to write, in milliseconds.
    CheckpointWrite,
    /// The same; its value is the time it took to sync.
    CheckpointSync,
    /// The same; its value is the time it took to sync the slowest file.
    CheckpointLongest,
    /// A checkpoint that came too soon after the one before; its value is the time between them, in milliseconds.
    CheckpointTooSoon,
}

/// Events of one kind in one second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Events {
    /// Which zone the second is printed in.
    pub zone_index: usize,
    /// Seconds since 1970 of the clock that was printed.
    pub second: i64,
    /// How many.
    pub count: u64,
    /// The sum of their values.
    pub sum: f64,
}

/// The lines of one zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone {
    /// As printed: an abbreviation or an offset.
    pub name: String,
    /// The first second of a line.
    pub first: i64,
    /// The last.
    pub last: i64,
}

/// What a log holds.
#[derive(Debug, Default)]
pub struct PostgresqlLog {
    /// Zones in order of appearance.
    pub zones: Vec<Zone>,
    /// Events in order of appearance; a second may be there more than once.
    pub events: Vec<(Kind, Vec<Events>)>,
    /// What was at work, by name.
    pub works: Vec<Work>,
    /// Waits for locks.
    pub lock_waits: Vec<LockWait>,
    /// Parameters whose value was changed.
    pub settings: Vec<SettingChange>,
    /// How many entries, and other lines and objects, it has.
    pub counts: Counts,
    /// Whether times had no year.
    pub is_yearless: bool,
}

/// How many of what a log has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Entries with a time and a level.
    pub entries: u64,
    /// Those of them that no other program writes.
    pub sure: u64,
    /// Lines with a level of the server's log and no time.
    pub timeless: u64,
    /// Lines and objects that are no entry and do not go on with one.
    pub others: u64,
    /// Lines of JSON that are damaged.
    pub damaged: u64,
}

/// Adds up a log; entries of other days than these are left out.
///
/// # Errors
/// The stream fails.
pub fn read(stream: impl Read, place: &str, days: &Days) -> Result<PostgresqlLog, LeadlineError> {
    let mut reader = Reader::new(days);
    each_line(stream, place, LINE_BYTES_MAX, |text, _| {
        let mut rest = Some(text);
        while let Some(line) = rest {
            let end = memchr(b'\r', line);
            rest = end
                .map(|end| &line[end + 1..])
                .filter(|rest| !rest.is_empty());
            reader.line(&line[..end.unwrap_or(line.len())]);
        }
        Ok(true)
    })?;
    Ok(reader.finish())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::{Days, Kind, PostgresqlLog, read};
    use proptest::prelude::*;

    const STARTS: [&str; 9] = [
        "",
        "2026-11-23 23:11:18 UTC ",
        "2026-11-23 23:11:18.1 +0",
        "20",
        "2026-11-23T23:11:18Z stdout F ",
        "Nov 23 23:11:18 db01 postgres[1]: [2-2] ",
        "<1>1 2026-11-23T23:11:18Z a b 1 - [",
        "2026-11-23 23:11:18 UTC,a,b,1,c,d,1,e,f,g,0,LOG,0,\"",
        "{\"timestamp\":\"2026-11-23 23:11:18 UTC\",\"error_severity\":\"LOG\",\"message\":\"",
    ];

    fn log(text: &[u8]) -> PostgresqlLog {
        let days = Days {
            years: 1970..=2199,
            last: (2026, 12, 31),
        };
        read(text, "log", &days).unwrap()
    }

    #[test]
    fn events_of_a_second_are_added_up() {
        let log = log(concat!(
            "2026-11-23 23:11:18.810 UTC [1] ERROR:  could not extend file: No space left on device\r\n",
            "\tselect 1\n",
            "2026-11-23 23:11:18.9 UTC [1] FATAL:  gone\n",
            "2026-11-23 23:11:20 UTC [1] LOG:  checkpoint starting: time\n",
            "2026-11-31 23:11:20 UTC [1] ERROR:  a day that is none\n",
        )
        .as_bytes());
        assert_eq!(log.zones.len(), 1);
        assert_eq!(log.zones[0].last - log.zones[0].first, 2);
        let counts: Vec<_> = log
            .events
            .iter()
            .map(|(kind, events)| (*kind, events[0].count, events.len()))
            .collect();
        let expected = [
            (Kind::Error, 2, 1),
            (Kind::OutOfSpace, 1, 1),
            (Kind::TimedCheckpoint, 1, 1),
        ];
        assert_eq!(counts, expected);
        assert_eq!(log.zones[0].first, 1_795_475_478);
        assert_eq!((log.counts.entries, log.counts.timeless), (3, 1));
    }

    proptest! {
        #[test]
        fn any_line_is_read(
            starts in prop::collection::vec(prop::sample::select(STARTS.to_vec()), 1..4),
            bytes in prop::collection::vec(any::<u8>(), 0..100),
        ) {
            let lines: Vec<_> = starts.iter().map(|start| [start.as_bytes(), &bytes].concat()).collect();
            log(&lines.join(&b"\n"[..]));
        }
    }
}
