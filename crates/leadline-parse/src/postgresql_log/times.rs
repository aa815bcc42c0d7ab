//! Times as servers, syslog and containers print them before a message.

use std::ops::RangeInclusive;

use memchr::memchr_iter;

use super::messages::{digit_count, is_word};
use crate::pdh::time::days_from_date;

/// The zone of a time that was printed without one.
pub(super) const NO_ZONE: &[u8] = b"local time";
const EPOCH_ZONE: &[u8] = b"UTC";
pub(super) const TIME_LENGTH: usize = 19;
const DAY_S: i64 = 86_400;
/// Names of months as English and the locales of Germany, France, Spain, Italy, Brazil, Portugal, Poland, Russia, the
/// Netherlands and the Nordic countries have them, without capitals; a point may follow.
const MONTHS: [&str; 12] = [
    "jan janv ene gen sty янв",
    "feb févr fev lut фев",
    "mar mär mars mrt мар märz",
    "apr avril avr abr kwi апр april",
    "may mai mag maj mei мая май",
    "jun juin giu cze июн juni",
    "jul juil lug lip июл juli",
    "aug août ago sie авг",
    "sep sept set wrz сен",
    "oct okt ott out paź окт",
    "nov lis ноя",
    "dec dez déc dic gru des дек",
];
const MONTH_BYTES_MAX: usize = 8;

/// A time on the clock that was printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp<'a> {
    /// Seconds since 1970.
    pub second: i64,
    /// Millionths of a second after it.
    pub micros: u32,
    /// As printed: an abbreviation or an offset.
    pub zone: &'a [u8],
}

/// Which days a log may be of.
#[derive(Clone, Debug)]
pub struct Days {
    /// Lines of a year outside are left out.
    pub years: RangeInclusive<u16>,
    /// Year, month and day that no line is later than; it gives times without a year their year.
    pub last: (u16, u16, u16),
}

/// The time with its zone that a text begins with, and its length: None where there is none, or no such time.
pub(super) fn stamp<'a>(text: &'a [u8], days: &Days) -> Option<(Stamp<'a>, usize)> {
    let at = time_length(text, b' ')?;
    let length = zone_length(&text[at + 1..])?;
    let zone = &text[at + 1..at + 1 + length];
    Some((clock(text, at, zone, days)?, at + 1 + length))
}

/// The same of a time as RFC 3339 has it: a T between date and time, the zone right after it.
pub(super) fn internet_stamp<'a>(text: &'a [u8], days: &Days) -> Option<(Stamp<'a>, usize)> {
    let at = time_length(text, b'T')?;
    let rest = &text[at..];
    let length = match rest.first() {
        Some(b'Z' | b'+' | b'-') => zone_length(rest)?,
        _ => 0,
    };
    let zone = if length == 0 {
        NO_ZONE
    } else {
        &rest[..length]
    };
    Some((clock(text, at, zone, days)?, at + length))
}

/// The same of `Nov 20 10:00:00`, which has neither year nor zone.
pub(super) fn syslog_stamp(text: &[u8], days: &Days) -> Option<(Stamp<'static>, usize)> {
    let (month, length) = month_named(text)?;
    let rest = text.get(length..)?;
    let day_at = rest.iter().take_while(|&&byte| byte == b' ').count();
    let day_length = digit_count(rest.get(day_at..)?);
    let time_at = length + day_at + day_length + 1;
    if day_at == 0 || !(1..=2).contains(&day_length) || text.get(time_at - 1) != Some(&b' ') {
        return None;
    }
    let day = number(&rest[day_at..day_at + day_length]);
    let time = text.get(time_at..time_at + 8)?;
    if !fits(time, b"00:00:00") {
        return None;
    }
    let (last_year, last_month, last_day) = days.last;
    let is_later = (month, day) > (last_month, last_day);
    let year = if is_later { last_year - 1 } else { last_year };
    let second = second_of((year, month, day), time, days)?;
    let (micros, fraction) = fraction(&text[time_at + 8..])?;
    let stamp = Stamp {
        second,
        micros,
        zone: NO_ZONE,
    };
    Some((stamp, time_at + 8 + fraction))
}

/// The month whose name a text begins with, and the length of the name with its point.
fn month_named(text: &[u8]) -> Option<(u16, usize)> {
    let head = &text[..text.len().min(MONTH_BYTES_MAX)];
    let length = head
        .iter()
        .take_while(|&&byte| byte.is_ascii_alphabetic() || byte >= 0x80)
        .count();
    let name = std::str::from_utf8(&head[..length]).ok()?.to_lowercase();
    let month = MONTHS
        .iter()
        .position(|names| names.split(' ').any(|known| known == name))?;
    let has_point = text.get(length) == Some(&b'.');
    Some((
        u16::try_from(month).ok()? + 1,
        length + usize::from(has_point),
    ))
}

/// The time that a prefix has anywhere: one with a fraction before one without, else seconds since 1970.
pub(super) fn stamp_within<'a>(prefix: &'a [u8], days: &Days) -> Option<Stamp<'a>> {
    let (fractional, whole) = stamps_within(prefix, days);
    fractional
        .or(whole)
        .or_else(|| memchr_iter(b'.', prefix).find_map(|dot| epoch(prefix, dot, days)))
}

/// The first time in a prefix that has a fraction, and the first before it that has none.
pub(super) fn stamps_within<'a>(
    prefix: &'a [u8],
    days: &Days,
) -> (Option<Stamp<'a>>, Option<Stamp<'a>>) {
    let mut whole = None;
    for dash in memchr_iter(b'-', prefix) {
        let starts = dash.checked_sub(4).filter(|&start| begins(prefix, start));
        let Some((stamp, length)) = starts.and_then(|start| stamp(&prefix[start..], days)) else {
            continue;
        };
        let start = dash - 4;
        let has_fraction = prefix[start..start + length].get(TIME_LENGTH) == Some(&b'.');
        if has_fraction {
            return (Some(stamp), whole);
        }
        whole = whole.or(Some(stamp));
    }
    (None, whole)
}

/// Seconds since 1970 with three digits after the point, as `%n` prints them.
fn epoch(prefix: &[u8], dot: usize, days: &Days) -> Option<Stamp<'static>> {
    let start = dot.checked_sub(10).filter(|&start| begins(prefix, start))?;
    let after = prefix.get(dot + 1..)?;
    if digit_count(&prefix[start..]) != 10 || digit_count(after) != 3 {
        return None;
    }
    epoch_stamp(
        &prefix[start..dot],
        u32::from(number(&after[..3])) * 1000,
        days,
    )
}

/// The time of seconds since 1970 in digits.
pub(super) fn epoch_stamp(digits: &[u8], micros: u32, days: &Days) -> Option<Stamp<'static>> {
    let second: i64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    let first = days_from_date(*days.years.start(), 1, 1)? * DAY_S;
    let last = days_from_date(*days.years.end(), 12, 31)? * DAY_S;
    (first..last).contains(&second).then_some(Stamp {
        second,
        micros,
        zone: EPOCH_ZONE,
    })
}

fn begins(text: &[u8], start: usize) -> bool {
    start == 0 || !is_word(text[start - 1])
}

fn clock<'a>(text: &'a [u8], end: usize, zone: &'a [u8], days: &Days) -> Option<Stamp<'a>> {
    let day = (
        number(&text[..4]),
        number(&text[5..7]),
        number(&text[8..10]),
    );
    Some(Stamp {
        second: second_of(day, &text[11..TIME_LENGTH], days)?,
        micros: fraction(&text[TIME_LENGTH..end])?.0,
        zone,
    })
}

/// The millionths in `.810`, and its length; no fraction is none.
fn fraction(text: &[u8]) -> Option<(u32, usize)> {
    if text.first() != Some(&b'.') {
        return Some((0, 0));
    }
    let digits = &text[1..];
    let count = digit_count(digits);
    let digit = |place: usize| match digits.get(place) {
        Some(&byte) if place < count => u32::from(byte - b'0'),
        _ => 0,
    };
    let micros = (0..6).fold(0, |micros, place| micros * 10 + digit(place));
    (count > 0).then_some((micros, 1 + count))
}

fn number(digits: &[u8]) -> u16 {
    digits
        .iter()
        .fold(0, |number, byte| number * 10 + u16::from(byte - b'0'))
}

/// Seconds since 1970; None when there is no such day or time.
fn second_of(day: (u16, u16, u16), time: &[u8], days: &Days) -> Option<i64> {
    let (hour, minute, second) = (number(&time[..2]), number(&time[3..5]), number(&time[6..8]));
    if !days.years.contains(&day.0) || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let days = days_from_date(day.0, day.1, day.2)?;
    Some(days * DAY_S + i64::from(hour) * 3600 + i64::from(minute) * 60 + i64::from(second))
}

fn fits(text: &[u8], pattern: &[u8]) -> bool {
    text.iter().zip(pattern).all(|(&byte, &mark)| {
        if mark == b'0' {
            byte.is_ascii_digit()
        } else {
            byte == mark
        }
    })
}

/// The length of the date and time a text begins with; a blank or the zone follows.
fn time_length(text: &[u8], between: u8) -> Option<usize> {
    let time = text.get(..TIME_LENGTH)?;
    let is_time = fits(&time[..10], b"0000-00-00") && fits(&time[11..], b"00:00:00");
    if !matches!(&time[..2], b"19" | b"20") || !is_time || time[10] != between {
        return None;
    }
    let mut length = TIME_LENGTH;
    if text.get(length) == Some(&b'.') {
        let digits = digit_count(&text[length + 1..]);
        if !(1..=if between == b'T' { 9 } else { 6 }).contains(&digits) {
            return None;
        }
        length += 1 + digits;
    }
    (between == b'T' || text.get(length) == Some(&b' ')).then_some(length)
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::{Days, NO_ZONE, internet_stamp, stamp_within, syslog_stamp, zone_length};

    fn days() -> Days {
        Days {
            years: 1970..=2199,
            last: (2026, 3, 10),
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
    fn a_time_without_a_year_is_not_in_the_future() {
        let of = |text: &str| syslog_stamp(text.as_bytes(), &days()).unwrap().0;
        assert_eq!(of("Mar 10 00:00:01 db01 ").second, 1_773_100_801);
        assert_eq!(of("Mar  9 00:00:01.5 db01 ").micros, 500_000);
        assert_eq!(of("Dec 31 23:59:59 db01 ").second, 1_767_225_599);
        assert_eq!(of("Dec 31 23:59:59 db01 ").zone, NO_ZONE);
        for text in [
            "Mar 10 0:00:01",
            "Mar 32 00:00:00 ",
            "Foo 10 00:00:00",
            "Mar",
        ] {
            assert!(syslog_stamp(text.as_bytes(), &days()).is_none(), "{text}");
        }
    }

    #[test]
    fn a_prefix_may_have_its_time_anywhere() {
        let of = |text: &'static str| stamp_within(text.as_bytes(), &days()).unwrap();
        let prefix = "[77] 2026-03-09 10:00:00 UTC app 2026-03-10 00:00:01.250 UTC ";
        assert_eq!(
            (of(prefix).second, of(prefix).micros),
            (1_773_100_801, 250_000)
        );
        assert_eq!(of("77 1773100801.250 ").second, 1_773_100_801);
        assert_eq!(of("db-1  | 2026-03-10 00:00:01 +01 ").zone, b"+01");
        assert!(stamp_within(b"10.0.0.5 1-2-3 11773100801.250 ", &days()).is_none());
    }

    #[test]
    fn an_internet_time_may_have_nine_digits() {
        let (stamp, length) =
            internet_stamp(b"2026-03-10T00:00:01.123456789Z stdout", &days()).unwrap();
        assert_eq!(
            (stamp.second, stamp.micros, length),
            (1_773_100_801, 123_456, 30)
        );
        let (stamp, _) = internet_stamp(b"2026-03-10T00:00:01+01:00 db", &days()).unwrap();
        assert_eq!(stamp.zone, b"+01:00");
    }
}
