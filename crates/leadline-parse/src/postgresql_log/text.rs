//! Lines of text: what containers and syslog put before them, and the server's prefix with the level.

use memchr::memmem;

use super::languages::level_of;
use super::messages::{digit_count, is_word};
use super::pasted;
use super::times::{
    Days, Stamp, TIME_LENGTH, internet_stamp, stamp, stamp_within, stamps_within, syslog_stamp,
};

/// Between the zone and the level, characters.
pub(super) const PREFIX_MAX: usize = 300;
/// The longest name of a day, shortened, in any language.
const DAY_NAME_BYTES_MAX: usize = 12;
/// A character has at most four bytes; the longest level follows.
pub(super) const PREFIX_BYTES_MAX: usize = 4 * PREFIX_MAX + 16;
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
/// Levels that only go on with what another entry says.
const ADDED: [&[u8]; 6] = [
    b"STATEMENT",
    b"DETAIL",
    b"HINT",
    b"CONTEXT",
    b"QUERY",
    b"LOCATION",
];

/// Whose tag syslog has put before a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Sender {
    /// There is none: all lines are the server's.
    #[default]
    NoTag,
    /// A name that is not the server's usual one; lines of other programs may stand between.
    Program,
    /// The server.
    Server,
}

/// What was put before a line by who passed it on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Envelope<'a> {
    /// When.
    pub stamp: Option<Stamp<'a>>,
    /// Whether that time has no year.
    pub has_no_year: bool,
    /// The process in the tag of syslog; 0 where there is none.
    pub process: u64,
    /// The number of the part of a message, from 1; 0 where parts are not numbered.
    pub part: u32,
    /// Who wrote it.
    pub sender: Sender,
    /// Whether the next line goes on with this one.
    pub is_cut: bool,
}

/// Whether a level only adds to another entry.
pub(super) fn is_added(level: &[u8]) -> bool {
    ADDED.contains(&level)
}

/// The level of that name; levels of debugging have a number.
pub(super) fn level_named(name: &[u8]) -> Option<&'static [u8]> {
    let digits = usize::from(name.last().is_some_and(|byte| (b'1'..=b'5').contains(byte)));
    let letters = &name[..name.len() - digits];
    let level = LEVELS
        .into_iter()
        .find(|level| *level == letters)
        .or_else(|| level_of(letters))?;
    (digits == 0 || level == b"DEBUG").then_some(level)
}

/// What the server wrote about a message, as far as its prefix tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Written<'a> {
    /// When; None where the prefix has no time.
    pub stamp: Option<Stamp<'a>>,
    /// The server's process; 0 where the prefix does not name it.
    pub process: u64,
    /// The level.
    pub level: &'static [u8],
    /// The message's first line.
    pub text: &'a [u8],
}

/// What a line of the server tells; None where it has no level. One with a time may have lost a blank after its level.
pub(super) fn written<'a>(line: &'a [u8], days: &Days, has_time: bool) -> Option<Written<'a>> {
    let first = stamp(line, days);
    let (before, stamp) = first.map_or((0, None), |(stamp, length)| (length, Some(stamp)));
    let rest = &line[before..];
    let is_timed = has_time || stamp.is_some();
    let (start, level, text) = message(rest).or_else(|| pasted::message(rest, days, is_timed))?;
    let prefix = &rest[..start];
    // A session's begin has no fraction: where the prefix has a time with one, too, that is the entry's.
    let has_fraction = before > 0 && line.get(TIME_LENGTH) == Some(&b'.');
    let stamp = match stamp {
        Some(stamp) if has_fraction || !prefix.contains(&b':') => Some(stamp),
        Some(stamp) => stamps_within(prefix, days).0.or(Some(stamp)),
        None if prefix.last().is_some_and(|&byte| is_word(byte)) => None, // its zone may go on
        None => stamp_within(prefix, days),
    };
    Some(Written {
        stamp,
        process: process(prefix, before > 0),
        level,
        text,
    })
}

/// The process in a prefix: in brackets, named, or a number of its own where the prefix begins or after the time.
fn process(prefix: &[u8], is_after_time: bool) -> u64 {
    let number = |text: &[u8]| -> u64 {
        let digits = &text[..digit_count(text).min(10)];
        std::str::from_utf8(digits)
            .ok()
            .and_then(|digits| digits.parse().ok())
            .unwrap_or(0)
    };
    let start = if is_after_time {
        prefix.trim_ascii_start()
    } else {
        prefix
    };
    let bare = digit_count(start);
    if (1..=9).contains(&bare) && matches!(start.get(bare), None | Some(b' ')) {
        return number(start);
    }
    let bracket = memmem::find_iter(prefix, b"[").map(|at| number(&prefix[at + 1..]));
    let named = memmem::find_iter(prefix, b"pid=").map(|at| number(&prefix[at + 4..]));
    bracket.chain(named).find(|&number| number > 0).unwrap_or(0)
}

/// Where the level begins in what follows the time, the level, and the message.
fn message(rest: &[u8]) -> Option<(usize, &'static [u8], &[u8])> {
    let head = &rest[..rest.len().min(PREFIX_BYTES_MAX)];
    memmem::find_iter(head, b":  ").find_map(|colon| {
        let (start, level) = level_before(head, colon)?;
        (characters(&rest[..start]) <= PREFIX_MAX).then_some((start, level, &rest[colon + 3..]))
    })
}

/// Where the level before a colon begins, and which it is; French has a blank between them.
pub(super) fn level_before(head: &[u8], colon: usize) -> Option<(usize, &'static [u8])> {
    let word = &head[..colon];
    let word = [b" ".as_slice(), b"\xc2\xa0", b"\xe2\x80\xaf"]
        .iter()
        .find_map(|blank| word.strip_suffix(*blank))
        .unwrap_or(word);
    let digits = usize::from(word.last().is_some_and(|byte| (b'1'..=b'5').contains(byte)));
    let letters = word[..word.len() - digits]
        .iter()
        .rev()
        .take_while(|byte| byte.is_ascii_alphabetic() || **byte >= 0x80)
        .count();
    let start = word.len() - digits - letters;
    Some((start, level_named(&word[start..])?))
}

pub(super) fn characters(bytes: &[u8]) -> usize {
    std::str::from_utf8(bytes).map_or(bytes.len(), |text| text.chars().count())
}

/// What was put before a line, and the line; a line of the server's file has nothing before it.
pub(super) fn unwrapped<'a>(line: &'a [u8], days: &Days) -> (Envelope<'a>, &'a [u8]) {
    match line {
        [b'<', ..] => numbered(line, days),
        [b'A'..=b'Z' | b'a'..=b'z' | 0x80.., ..] => named_time(line, days),
        [b'1' | b'2', ..] if line.get(10) == Some(&b'T') => {
            internet_stamp(line, days).and_then(|(stamp, length)| {
                let rest = line[length..].strip_prefix(b" ")?;
                contained(stamp, rest)
                    .or_else(|| pasted::dyno(stamp, rest))
                    .or_else(|| tagged(stamp, rest))
                    .or(Some((of(stamp), rest)))
            })
        }
        _ => None,
    }
    .unwrap_or((Envelope::default(), line))
}

/// What follows the name of a month, or that of a day as `journalctl -o short-full` prints it.
fn named_time<'a>(line: &'a [u8], days: &Days) -> Option<(Envelope<'a>, &'a [u8])> {
    let Some((stamp, length)) = syslog_stamp(line, days) else {
        let day = line
            .iter()
            .take(DAY_NAME_BYTES_MAX)
            .position(|&byte| byte == b' ')?;
        let (stamp, length) = stamp(&line[day + 1..], days)?;
        return tagged(stamp, line.get(day + length + 2..)?);
    };
    let (mut envelope, rest) = tagged(stamp, line.get(length + 1..)?)?;
    envelope.has_no_year = true;
    Some((envelope, rest))
}

fn of(stamp: Stamp) -> Envelope {
    Envelope {
        stamp: Some(stamp),
        ..Envelope::default()
    }
}

/// `stdout F ...` as Kubernetes has it; P is a part of a line.
fn contained<'a>(stamp: Stamp<'a>, rest: &'a [u8]) -> Option<(Envelope<'a>, &'a [u8])> {
    let rest = rest
        .strip_prefix(b"stdout ")
        .or_else(|| rest.strip_prefix(b"stderr "))?;
    let is_cut = rest.starts_with(b"P");
    let rest = rest
        .strip_prefix(b"F")
        .or_else(|| rest.strip_prefix(b"P"))?;
    let envelope = Envelope {
        is_cut,
        ..of(stamp)
    };
    Some((envelope, rest.strip_prefix(b" ").unwrap_or(rest)))
}

/// `db01 postgres[5000]: [3-1] ...` after the time of syslog.
fn tagged<'a>(stamp: Stamp<'a>, rest: &'a [u8]) -> Option<(Envelope<'a>, &'a [u8])> {
    let goes_on = rest.first().is_some_and(u8::is_ascii_whitespace);
    let host = rest.iter().position(|&byte| byte == b' ')?;
    let tag = &rest[host + 1..];
    let end = memmem::find(tag, b": ").or_else(|| tag.strip_suffix(b":").map(<[u8]>::len))?;
    let (name, rest) = (&tag[..end], tag.get(end + 2..).unwrap_or_default());
    let (name, process) = match name.iter().position(|&byte| byte == b'[') {
        Some(at) => (&name[..at], bracketed(&name[at..])?),
        None => (name, 0),
    };
    let (name, process) = pasted::dyno_name(name).unwrap_or((name, process));
    let is_name = !name.is_empty() && !name.iter().any(|byte| b" :\t".contains(byte));
    if !is_name || goes_on || level_named(name).is_some() {
        return None;
    }
    Some(parted(stamp, name, process, rest))
}

/// `<134>1 2025-11-20T10:00:00Z db01 postgres 5000 - - ...`, or an older form after the number.
fn numbered<'a>(line: &'a [u8], days: &Days) -> Option<(Envelope<'a>, &'a [u8])> {
    let digits = digit_count(&line[1..]);
    let rest = line.get(1 + digits..)?.strip_prefix(b">")?;
    let Some(rest) = rest.strip_prefix(b"1 ") else {
        return (!rest.starts_with(b"<")).then(|| unwrapped(rest, days));
    };
    let (stamp, length) = internet_stamp(rest, days)?;
    let mut fields = rest.get(length + 1..)?.splitn(5, |&byte| byte == b' ');
    let (_, name, process, _) = (
        fields.next()?,
        fields.next()?,
        fields.next()?,
        fields.next()?,
    );
    let rest = structured(fields.next()?)?;
    let (name, process) = match pasted::dyno_name(process) {
        Some(dyno) => dyno,
        None => (
            name,
            std::str::from_utf8(process).ok()?.parse().unwrap_or(0),
        ),
    };
    let rest = rest.strip_prefix(b"\xef\xbb\xbf").unwrap_or(rest);
    Some(parted(stamp, name, process, rest))
}

/// What follows the structured data of RFC 5424.
fn structured(mut rest: &[u8]) -> Option<&[u8]> {
    if let Some(rest) = rest.strip_prefix(b"-") {
        return Some(rest.strip_prefix(b" ").unwrap_or(rest));
    }
    while rest.starts_with(b"[") {
        let mut is_quoted = false;
        let mut is_escaped = false;
        let end = rest.iter().position(|&byte| {
            let ends = byte == b']' && !is_quoted;
            if byte == b'"' && !is_escaped {
                is_quoted = !is_quoted;
            }
            is_escaped = byte == b'\\' && !is_escaped;
            ends
        })?;
        rest = &rest[end + 1..];
    }
    Some(rest.strip_prefix(b" ").unwrap_or(rest))
}

pub(super) fn parted<'a>(
    stamp: Stamp<'a>,
    name: &[u8],
    process: u64,
    rest: &'a [u8],
) -> (Envelope<'a>, &'a [u8]) {
    let rest = pasted::without_database(rest);
    let part = part_number(rest);
    let envelope = Envelope {
        process,
        part: part.map_or(0, |part| part.0),
        sender: if name.starts_with(b"postgres") {
            Sender::Server
        } else {
            Sender::Program
        },
        ..of(stamp)
    };
    let rest = part.map_or(rest, |part| &rest[part.1..]);
    (envelope, pasted::from_state(rest))
}

/// The number of the part in `[3-1] ` and the length of it all.
pub(super) fn part_number(text: &[u8]) -> Option<(u32, usize)> {
    let rest = text.strip_prefix(b"[")?;
    let message = digit_count(rest);
    let number = rest[message..].strip_prefix(b"-").filter(|_| message > 0)?;
    let part = digit_count(number);
    number[part..].strip_prefix(b"] ")?;
    let number = std::str::from_utf8(&number[..part]).ok()?.parse().ok()?;
    Some((number, message + part + 4))
}

pub(super) fn bracketed(text: &[u8]) -> Option<u64> {
    let digits = text.strip_prefix(b"[")?.strip_suffix(b"]")?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::{Sender, message, process, unwrapped, written};
    use crate::postgresql_log::Days;

    fn days() -> Days {
        Days {
            years: 1970..=2199,
            last: (2026, 12, 31),
        }
    }

    #[test]
    fn the_first_level_is_the_level() {
        let of = |text: &'static [u8]| message(text).map(|(_, level, text)| (level, text));
        let expected = (b"LOG".as_slice(), b"ERROR:  x".as_slice());
        assert_eq!(of(b" [1] LOG:  ERROR:  x"), Some(expected));
        assert_eq!(of(b" [1] DEBUG3:  x").unwrap().0, b"DEBUG");
        assert_eq!(of(b" [1] MYLOG:  x"), None);
        assert_eq!(of(b" [1] LOG3:  x"), None);
        assert_eq!(of(b" [1] LOG: x"), None);
    }

    #[test]
    fn a_process_is_in_brackets_named_or_alone() {
        for (prefix, is_after_time) in [
            (" [5000] ", true),
            (" [5000]: [7-1] user=a", true),
            (" 5000 app@shop [7] ", true),
            ("5000 2026-11-20 10:00:00 UTC ", false),
            (" user=app pid=5000 ", true),
            ("[pod/pg-0/postgres] 2026-11-20 10:00:00 UTC [5000] ", false),
        ] {
            assert_eq!(process(prefix.as_bytes(), is_after_time), 5000, "{prefix}");
        }
        assert_eq!(process(b" app@shop ", true), 0);
    }

    #[test]
    fn envelopes_are_taken_off() {
        for line in [
            "Nov 20 10:00:00 db01 postgres[5000]: [3-1] LOG:  x",
            "<134>Nov 20 10:00:00 db01 postgres[5000]: [3-1] LOG:  x",
            "2026-11-20T10:00:00.1+01:00 db01 postgres[5000]: [3-1] LOG:  x",
            "<134>1 2026-11-20T10:00:00Z db01 postgres 5000 - - [3-1] LOG:  x",
            "<134>1 2026-11-20T10:00:00Z db01 postgres 5000 - [a b=\"]\"][c] [3-1] LOG:  x",
        ] {
            let (envelope, rest) = unwrapped(line.as_bytes(), &days());
            assert_eq!((envelope.process, envelope.part), (5000, 1), "{line}");
            assert!(
                envelope.sender == Sender::Server && envelope.stamp.is_some(),
                "{line}"
            );
            assert_eq!(rest, b"LOG:  x", "{line}");
        }
        let (envelope, rest) = unwrapped(b"2026-11-20T10:00:00.1Z stderr P abc", &days());
        assert!(envelope.is_cut && envelope.sender == Sender::NoTag);
        assert_eq!(rest, b"abc");
        let (_, rest) = unwrapped(
            b"2026-11-20T10:00:00.1Z 2026-11-20 10:00:00 UTC [1] LOG:  x",
            &days(),
        );
        assert_eq!(rest, b"2026-11-20 10:00:00 UTC [1] LOG:  x");
    }

    #[test]
    fn the_time_of_the_entry_is_not_the_sessions() {
        let line = b"2026-11-20 09:00:00 UTC 2026-11-20 10:00:00.250 UTC [7] LOG:  x";
        let entry = written(line, &days(), false).unwrap();
        assert_eq!(entry.stamp.unwrap().micros, 250_000);
        assert_eq!(entry.process, 7);
    }
}
