//! The events in a `PostgreSQL` server's text log, added up by second, in one pass.
//!
//! A line counts when it begins with a time and a zone and has a level with two spaces after its colon. Seconds are
//! those of the clock that was printed; what a zone means is the caller's business.

mod messages;

use std::io::Read;
use std::ops::RangeInclusive;

use leadline_stats::error::LeadlineError;
use memchr::{memchr, memmem};

use crate::lines::each_line;
use crate::pdh::time::days_from_date;
use messages::{digit_count, each_event, is_word};

/// What a line says beside its message is read from its first MiB; statements may be longer.
const LINE_BYTES_MAX: usize = 1 << 20;
/// Between the zone and the level, characters.
const PREFIX_MAX: usize = 300;
/// A character has at most four bytes; the longest level follows.
const PREFIX_BYTES_MAX: usize = 4 * PREFIX_MAX + 16;
const TIME_LENGTH: usize = 19;
const LEVELS: [&[u8]; 14] = [
    b"LOG",
    b"STATEMENT",
    b"ERROR",
    b"DETAIL",
    b"HINT",
    b"CONTEXT",
    b"FATAL",
    b"WARNING",
    b"QUERY",
    b"NOTICE",
    b"INFO",
    b"LOCATION",
    b"PANIC",
    b"DEBUG",
];

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
}

/// Adds up a log; lines of a year outside are left out.
///
/// # Errors
/// The stream fails.
pub fn read(
    stream: impl Read,
    place: &str,
    years: &RangeInclusive<u16>,
) -> Result<PostgresqlLog, LeadlineError> {
    let mut log = PostgresqlLog::default();
    let mut last_zone = 0;
    each_line(stream, place, LINE_BYTES_MAX, |text, _| {
        let mut rest = Some(text);
        while let Some(line) = rest {
            let end = memchr(b'\r', line);
            rest = end.map(|end| &line[end + 1..]);
            take(
                &mut log,
                &mut last_zone,
                &line[..end.unwrap_or(line.len())],
                years,
            );
        }
        Ok(true)
    })?;
    Ok(log)
}

fn take(log: &mut PostgresqlLog, last_zone: &mut usize, line: &[u8], years: &RangeInclusive<u16>) {
    let Some(after_time) = time_length(line) else {
        return;
    };
    let Some(zone_length) = zone_length(&line[after_time..]) else {
        return;
    };
    let (zone, rest) = line[after_time..].split_at(zone_length);
    let Some((level, text)) = message(rest) else {
        return;
    };
    let Some(second) = second_of(line, years) else {
        return;
    };
    let zones = &mut log.zones;
    if zones
        .get(*last_zone)
        .is_none_or(|known| known.name.as_bytes() != zone)
    {
        let known = zones.iter().position(|known| known.name.as_bytes() == zone);
        *last_zone = known.unwrap_or_else(|| {
            zones.push(Zone {
                name: String::from_utf8_lossy(zone).into_owned(),
                first: second,
                last: second,
            });
            zones.len() - 1
        });
    }
    let zone_index = *last_zone;
    let known = &mut zones[zone_index];
    (known.first, known.last) = (known.first.min(second), known.last.max(second));
    each_event(level, text, |kind, value| {
        add(&mut log.events, kind, zone_index, second, value);
    });
}

fn add(
    events: &mut Vec<(Kind, Vec<Events>)>,
    kind: Kind,
    zone_index: usize,
    second: i64,
    value: f64,
) {
    let at = events
        .iter()
        .position(|known| known.0 == kind)
        .unwrap_or_else(|| {
            events.push((kind, Vec::new()));
            events.len() - 1
        });
    let of_kind = &mut events[at].1;
    match of_kind.last_mut() {
        Some(last) if last.zone_index == zone_index && last.second == second => {
            last.count += 1;
            last.sum += value;
        }
        _ => of_kind.push(Events {
            zone_index,
            second,
            count: 1,
            sum: value,
        }),
    }
}

/// The length of the time a line begins with, the blank after it included.
fn time_length(line: &[u8]) -> Option<usize> {
    let pattern = b"0000-00-00 00:00:00";
    let time = line.get(..TIME_LENGTH)?;
    let fits = |(&byte, &mark): (&u8, &u8)| {
        if mark == b'0' {
            byte.is_ascii_digit()
        } else {
            byte == mark
        }
    };
    if !matches!(&time[..2], b"19" | b"20") || !time.iter().zip(pattern).all(fits) {
        return None;
    }
    let mut length = TIME_LENGTH;
    if line.get(length) == Some(&b'.') {
        let digits = digit_count(&line[length + 1..]);
        if !(1..=6).contains(&digits) {
            return None;
        }
        length += 1 + digits;
    }
    (line.get(length) == Some(&b' ')).then_some(length + 1)
}

/// The length of the abbreviation or offset a text begins with.
fn zone_length(text: &[u8]) -> Option<usize> {
    let ends_at = |length: usize| text.get(length).is_none_or(|&byte| !is_word(byte));
    let digits = |start: usize| {
        text.get(start..start + 2)
            .is_some_and(|two| two.iter().all(u8::is_ascii_digit))
    };
    if matches!(text.first(), Some(b'+' | b'-')) {
        if !digits(1) {
            return None;
        }
        let minutes = if text.get(3) == Some(&b':') { 4 } else { 3 };
        if digits(minutes) && ends_at(minutes + 2) {
            return Some(minutes + 2);
        }
        return ends_at(3).then_some(3);
    }
    let length = text
        .iter()
        .take(6)
        .take_while(|byte| byte.is_ascii_uppercase())
        .count();
    ((1..=5).contains(&length) && ends_at(length)).then_some(length)
}

/// The level and the message of what follows the zone.
fn message(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let head = &rest[..rest.len().min(PREFIX_BYTES_MAX)];
    for colon in memmem::find_iter(head, b":  ") {
        let word = &head[..colon];
        let digits = usize::from(word.last().is_some_and(|byte| (b'1'..=b'5').contains(byte)));
        let letters = word[..colon - digits]
            .iter()
            .rev()
            .take_while(|byte| byte.is_ascii_alphabetic())
            .count();
        let start = colon - digits - letters;
        let level = &word[start..];
        let named = if digits > 0 {
            level.starts_with(b"DEBUG") && letters == 5
        } else {
            LEVELS.contains(&level)
        };
        if named {
            return (characters(&rest[..start]) <= PREFIX_MAX)
                .then_some((level, &rest[colon + 3..]));
        }
    }
    None
}

fn characters(bytes: &[u8]) -> usize {
    std::str::from_utf8(bytes).map_or(bytes.len(), |text| text.chars().count())
}

/// Seconds since 1970 of the clock a line begins with; None when there is no such day or time.
fn second_of(line: &[u8], years: &RangeInclusive<u16>) -> Option<i64> {
    let number = |from: usize, length: usize| {
        line[from..from + length]
            .iter()
            .fold(0u16, |number, byte| number * 10 + u16::from(byte - b'0'))
    };
    let (year, hour, minute, second) = (number(0, 4), number(11, 2), number(14, 2), number(17, 2));
    if !years.contains(&year) || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let days = days_from_date(year, number(5, 2), number(8, 2))?;
    Some(days * 86_400 + i64::from(hour) * 3600 + i64::from(minute) * 60 + i64::from(second))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::{Kind, PostgresqlLog, message, read, zone_length};
    use proptest::prelude::*;

    fn log(text: &str) -> PostgresqlLog {
        read(text.as_bytes(), "log", &(1970..=2199)).unwrap()
    }

    #[test]
    fn events_of_a_second_are_added_up() {
        let log = log(concat!(
            "2026-11-23 23:11:18.810 UTC [1] ERROR:  could not extend file: No space left on device\r\n",
            "\tselect 1\n",
            "2026-11-23 23:11:18.9 UTC [1] FATAL:  gone\n",
            "2026-11-23 23:11:20 UTC [1] LOG:  checkpoint starting: time\n",
            "2026-11-31 23:11:20 UTC [1] ERROR:  a day that is none\n",
        ));
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
    }

    #[test]
    fn zones_end_with_a_word() {
        for (text, length) in [
            ("UTC [1]", 3),
            ("+01 [1]", 3),
            ("+0530:", 5),
            ("-03:30 ", 6),
            ("+03:0x", 3),
            ("GMT:1", 3),
        ] {
            assert_eq!(zone_length(text.as_bytes()), Some(length), "{text}");
        }
        for text in ["Utc ", "ABCDEF ", "+1 ", "UTC1 ", "+012 ", ""] {
            assert_eq!(zone_length(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn the_first_level_is_the_level() {
        assert_eq!(
            message(b" [1] LOG:  ERROR:  x").unwrap(),
            (b"LOG".as_slice(), b"ERROR:  x".as_slice())
        );
        assert_eq!(message(b" [1] DEBUG3:  x").unwrap().0, b"DEBUG3");
        assert_eq!(message(b" [1] MYLOG:  x"), None);
        assert_eq!(message(b" [1] LOG: x"), None);
    }

    proptest! {
        #[test]
        fn any_line_is_read(
            start in prop::sample::select(vec!["", "2026-11-23 23:11:18 UTC ", "2026-11-23 23:11:18.1 +0", "20"]),
            bytes in prop::collection::vec(any::<u8>(), 0..100),
        ) {
            read([start.as_bytes(), &bytes].concat().as_slice(), "log", &(1970..=2199)).unwrap();
        }
    }
}
