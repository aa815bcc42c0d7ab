//! The events in a `PostgreSQL` server's text log, added up by second, in one pass.
//!
//! A line counts when it begins with a time and a zone and has a level with two spaces after its colon. Seconds are
//! those of the clock that was printed; what a zone means is the caller's business.

use std::io::Read;
use std::ops::RangeInclusive;

use leadline_stats::error::LeadlineError;
use memchr::{memchr, memmem};

use crate::lines::each_line;
use crate::pdh::time::days_from_date;

/// What a line says beside its message is read from its first MiB; statements may be longer.
const LINE_BYTES_MAX: usize = 1 << 20;
/// Between the zone and the level, characters.
const PREFIX_MAX: usize = 300;
/// A character has at most four bytes; the longest level follows.
const PREFIX_BYTES_MAX: usize = 4 * PREFIX_MAX + 16;
const TIME_LENGTH: usize = 19;
const SIZE_DIGITS_MAX: usize = 18;
const WAIT_DIGITS_MAX: usize = 12;
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

fn each_event(level: &[u8], text: &[u8], mut take: impl FnMut(Kind, f64)) {
    let is_bad = matches!(level, b"ERROR" | b"FATAL" | b"PANIC");
    if is_bad {
        take(Kind::Error, 1.0);
    }
    if (is_bad || matches!(level, b"WARNING" | b"LOG")) && says_out_of_space(text) {
        take(Kind::OutOfSpace, 1.0);
    }
    if level != b"LOG" {
        return;
    }
    if text.starts_with(b"checkpoint starting:") {
        let of_time = text.ends_with(b": time");
        take(
            if of_time {
                Kind::TimedCheckpoint
            } else {
                Kind::RequestedCheckpoint
            },
            1.0,
        );
    } else if text.starts_with(b"automatic vacuum ")
        || text.starts_with(b"automatic aggressive vacuum ")
        || text.starts_with(b"automatic analyze ")
    {
        take(Kind::Autovacuum, 1.0);
    } else if text.starts_with(b"connection received:") {
        take(Kind::Connection, 1.0);
    } else if let Some(size) = temporary_bytes(text) {
        take(Kind::TemporaryFile, size);
    } else if let Some(wait) = lock_wait_ms(text) {
        take(Kind::LockWait, wait);
    } else if let Some((duration, statement)) = statement_ms(text) {
        let kind = if is_commit(statement) {
            Kind::Commit
        } else {
            Kind::Statement
        };
        take(kind, duration);
    }
}

/// The milliseconds and the text in `duration: 9007.983 ms  statement: COMMIT` or `... execute S_1: COMMIT`; what was
/// only parsed, bound or planned is no work of its own.
fn statement_ms(text: &[u8]) -> Option<(f64, &[u8])> {
    let rest = text.strip_prefix(b"duration: ")?;
    let whole = digit_count(rest);
    let fraction = digit_count(rest.get(whole + 1..)?);
    let end = whole + 1 + fraction;
    if !(1..=WAIT_DIGITS_MAX).contains(&whole) || rest[whole] != b'.' || fraction == 0 {
        return None;
    }
    let after = rest[end..].strip_prefix(b" ms  ")?;
    let statement = if let Some(statement) = after.strip_prefix(b"statement: ") {
        statement
    } else {
        let named = after.strip_prefix(b"execute ")?;
        &named[memmem::find(named, b": ")? + 2..]
    };
    let number = std::str::from_utf8(&rest[..end]).ok()?.parse().ok()?;
    Some((number, statement))
}

/// Whether a statement ends a transaction and keeps what it did.
fn is_commit(statement: &[u8]) -> bool {
    let start = statement.trim_ascii_start();
    let word = start.iter().take_while(|&&byte| is_word(byte)).count();
    let (word, rest) = start.split_at(word);
    let is_plain = !rest
        .trim_ascii_start()
        .get(..8)
        .is_some_and(|next| next.eq_ignore_ascii_case(b"prepared"));
    (word.eq_ignore_ascii_case(b"commit") && is_plain) || word.eq_ignore_ascii_case(b"end")
}

fn says_out_of_space(text: &[u8]) -> bool {
    memmem::find(text, b"No space left on device").is_some()
        || memmem::find(text, b"Disk quota exceeded").is_some()
}

/// The size in `temporary file: path "x", size 7176192`.
fn temporary_bytes(text: &[u8]) -> Option<f64> {
    let rest = text.strip_prefix(b"temporary file: path ")?;
    memmem::rfind_iter(rest, b", size ").find_map(|at| {
        let number = &rest[at + 7..];
        let digits = &number[..digit_count(number).min(SIZE_DIGITS_MAX)];
        std::str::from_utf8(digits).ok()?.parse().ok()
    })
}

/// The milliseconds in `process 11 acquired ShareLock on transaction 7 after 3000.300 ms`.
fn lock_wait_ms(text: &[u8]) -> Option<f64> {
    let rest = text.strip_prefix(b"process ")?;
    let process_length = digit_count(rest);
    let rest = rest[process_length..]
        .strip_prefix(b" ")
        .filter(|_| process_length > 0)?;
    let rest = rest
        .strip_prefix(b"still waiting for ")
        .or_else(|| rest.strip_prefix(b"acquired "))?;
    let mode_length = rest.iter().take_while(|&&byte| is_word(byte)).count();
    let rest = rest[mode_length..]
        .strip_prefix(b" on ")
        .filter(|_| mode_length > 0)?;
    memmem::rfind_iter(rest, b" after ").find_map(|at| {
        let number = &rest[at + 7..];
        let whole = digit_count(number);
        let fraction = digit_count(number.get(whole + 1..)?);
        let end = whole + 1 + fraction;
        let is_number =
            (1..=WAIT_DIGITS_MAX).contains(&whole) && number[whole] == b'.' && fraction > 0;
        let number = is_number
            .then_some(&number[..end])
            .filter(|_| number[end..].starts_with(b" ms"))?;
        std::str::from_utf8(number).ok()?.parse().ok()
    })
}

fn digit_count(text: &[u8]) -> usize {
    text.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

/// Letters of other alphabets count as words.
const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
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
    use super::{
        Kind, PostgresqlLog, is_commit, lock_wait_ms, message, read, statement_ms, temporary_bytes,
        zone_length,
    };
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
    fn a_statement_has_a_duration_and_a_text() {
        let of = |text: &'static str| statement_ms(text.as_bytes());
        let expected = Some((9007.983, b"COMMIT".as_slice()));
        assert_eq!(of("duration: 9007.983 ms  statement: COMMIT"), expected);
        assert_eq!(of("duration: 9007.983 ms  execute S_1: COMMIT"), expected);
        for text in [
            "duration: 1.5 ms",
            "duration: 1.5 ms  plan: x",
            "duration: 1.5 ms  parse S_1: COMMIT",
            "duration: 1 ms  statement: COMMIT",
            "duration: 1.5 s  statement: COMMIT",
            "duration: 1234567890123.5 ms  statement: COMMIT",
            "duration: 1",
        ] {
            assert_eq!(of(text), None, "{text}");
        }
        for (text, commits) in [
            ("commit", true),
            (" COMMIT;", true),
            ("END", true),
            ("commit prepared 'x'", false),
            ("committed", false),
            ("select 1", false),
            ("", false),
        ] {
            assert_eq!(is_commit(text.as_bytes()), commits, "{text}");
        }
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

    #[test]
    fn values_are_the_last_ones_of_a_message() {
        let text = b"temporary file: path \"a, size 3\", size 7176192";
        assert_eq!(temporary_bytes(text), Some(7_176_192.0));
        let text = b"process 11 acquired ShareLock on x after 1.5 ms y after 3000.300 ms";
        assert_eq!(lock_wait_ms(text), Some(3000.3));
        assert_eq!(
            lock_wait_ms(b"process 11 acquired ShareLock on x after 3000 ms"),
            None
        );
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
