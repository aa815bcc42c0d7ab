//! Time cells as they stand: which parts are there is only settled for the file as a whole, in [`super::clock`].

const SECOND_NS: i64 = 1_000_000_000;

/// Three numbers of a date, in the order they stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawDate {
    /// The three parts; the year is last unless `year_first`.
    pub parts: [u16; 3],
    /// The character between them.
    pub separator: u8,
    /// Whether the year is first, as in ISO 8601.
    pub year_first: bool,
}

/// The finest part of a time that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Hours, minutes, seconds and perhaps a fraction.
    Seconds,
    /// Hours and minutes.
    Minutes,
    /// Minutes and seconds with a fraction, without the hour: a spreadsheet's `mm:ss.0`.
    WithinHour,
}

/// One time cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawTime {
    /// The date, where there is one.
    pub date: Option<RawDate>,
    /// Nanoseconds since midnight (or since the full hour for [`Kind::WithinHour`]).
    pub clock_ns: i64,
    /// What the cell holds.
    pub kind: Kind,
}

/// Parses a time cell without quotes; `None` where it is no time.
///
/// Reads `MM/DD/YYYY HH:MM:SS[.fff]` (the recorders), `M/D/YYYY H:MM`, `DD.MM.YYYY H:MM`, `H:MM:SS` and `MM:SS.f`
/// (spreadsheets), `YYYY-MM-DD HH:MM:SS`, and AM or PM behind the time.
#[must_use]
pub fn parse_time(cell: &[u8]) -> Option<RawTime> {
    let text = std::str::from_utf8(cell).ok()?.trim();
    let (first, rest) = text.split_once([' ', 'T']).unwrap_or((text, ""));
    if first.contains(':') {
        let (clock_ns, kind) = parse_clock(text, false)?;
        return Some(RawTime {
            date: None,
            clock_ns,
            kind,
        });
    }
    let date = Some(parse_date(first)?);
    if rest.trim().is_empty() {
        // A spreadsheet leaves out the time at midnight.
        return Some(RawTime {
            date,
            clock_ns: 0,
            kind: Kind::Minutes,
        });
    }
    let (clock_ns, kind) = parse_clock(rest.trim(), true)?;
    Some(RawTime {
        date,
        clock_ns,
        kind,
    })
}

fn parse_date(text: &str) -> Option<RawDate> {
    let separator = text
        .bytes()
        .find(|b| !b.is_ascii_digit())
        .filter(|b| matches!(b, b'/' | b'.' | b'-'))?;
    let mut parts = [0_u16; 3];
    let mut pieces = text.split(char::from(separator));
    for part in &mut parts {
        let piece = pieces.next()?;
        if piece.len() > 4 {
            return None;
        }
        *part = number(piece)?;
    }
    if pieces.next().is_some() {
        return None;
    }
    let year_first = text.find(char::from(separator)) == Some(4);
    let year = &mut parts[if year_first { 0 } else { 2 }];
    if *year < 100 {
        *year += 2000;
    }
    Some(RawDate {
        parts,
        separator,
        year_first,
    })
}

fn parse_clock(text: &str, dated: bool) -> Option<(i64, Kind)> {
    let (text, half_day) = match text.rsplit_once(' ') {
        Some((clock, mark)) if mark.eq_ignore_ascii_case("am") => (clock.trim(), Some(0)),
        Some((clock, mark)) if mark.eq_ignore_ascii_case("pm") => (clock.trim(), Some(12)),
        Some(_) => return None,
        None => (text, None),
    };
    let (whole, fraction) = text
        .split_once(['.', ','])
        .map_or((text, None), |(w, f)| (w, Some(f)));
    let fraction_ns = match fraction {
        None => 0,
        Some(digits) => fraction_ns(digits)?,
    };
    let mut pieces = whole.split(':');
    let (a, b, c) = (
        number(pieces.next()?)?,
        number(pieces.next()?)?,
        pieces.next(),
    );
    if pieces.next().is_some() {
        return None;
    }
    let (hour, minute, second, kind) = match c {
        Some(c) => (a, b, number(c)?, Kind::Seconds),
        None if fraction.is_some() && !dated && half_day.is_none() => (0, a, b, Kind::WithinHour),
        None if fraction.is_some() => return None,
        None => (a, b, 0, Kind::Minutes),
    };
    let hour = match half_day {
        None => hour,
        Some(_) if hour == 0 || hour > 12 => return None,
        Some(half) => hour % 12 + half,
    };
    // 60 seconds is a leap second.
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let seconds = i64::from(hour) * 3600 + i64::from(minute) * 60 + i64::from(second);
    Some((seconds * SECOND_NS + fraction_ns, kind))
}

fn number(text: &str) -> Option<u16> {
    // A sign would get past `parse`.
    text.bytes()
        .all(|b| b.is_ascii_digit())
        .then(|| text.parse().ok())?
}

fn fraction_ns(digits: &str) -> Option<i64> {
    if digits.is_empty() || digits.len() > 12 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    Some(
        digits
            .bytes()
            .chain(std::iter::repeat(b'0'))
            .take(9)
            .fold(0, |ns, d| ns * 10 + i64::from(d - b'0')),
    )
}

/// Days from 1970-01-01 to a date of the Gregorian calendar; `None` where there is no such day.
///
/// Source: H. Hinnant, "chrono-Compatible Low-Level Date Algorithms", `days_from_civil`.
#[must_use]
pub fn days_from_date(year: u16, month: u16, day: u16) -> Option<i64> {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let month_days = match month {
        2 => 28 + u16::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if day == 0 || day > month_days {
        return None;
    }
    let y = i64::from(year) - i64::from(month <= 2);
    let era = y.div_euclid(400);
    let year_of_era = y.rem_euclid(400);
    let day_of_year = (153 * ((i64::from(month) + 9) % 12) + 2) / 5 + i64::from(day) - 1;
    Some(
        era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year
            - 719_468,
    )
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn clock(text: &str) -> Option<(Option<[u16; 3]>, i64, Kind)> {
        parse_time(text.as_bytes()).map(|t| (t.date.map(|d| d.parts), t.clock_ns, t.kind))
    }

    #[test]
    fn recorders_and_spreadsheets() {
        let hms = |h: i64, m: i64, s: i64| (h * 3600 + m * 60 + s) * SECOND_NS;
        assert_eq!(
            clock("04/26/2018 14:06:27"),
            Some((Some([4, 26, 2018]), hms(14, 6, 27), Kind::Seconds))
        );
        let millis = clock("09/19/2017 09:51:39.073");
        assert_eq!(
            millis,
            Some((
                Some([9, 19, 2017]),
                hms(9, 51, 39) + 73_000_000,
                Kind::Seconds
            ))
        );
        assert_eq!(
            clock("3/26/2015 22:42"),
            Some((Some([3, 26, 2015]), hms(22, 42, 0), Kind::Minutes))
        );
        assert_eq!(
            clock("3/26/15 10:42 PM"),
            Some((Some([3, 26, 2015]), hms(22, 42, 0), Kind::Minutes))
        );
        assert_eq!(
            clock("26.03.2015 22:42:01"),
            Some((Some([26, 3, 2015]), hms(22, 42, 1), Kind::Seconds))
        );
        assert_eq!(
            clock("2015-03-26T22:42:01"),
            Some((Some([2015, 3, 26]), hms(22, 42, 1), Kind::Seconds))
        );
        assert_eq!(
            clock("22:42:26"),
            Some((None, hms(22, 42, 26), Kind::Seconds))
        );
        assert_eq!(
            clock("10:22.1"),
            Some((None, hms(0, 10, 22) + 100_000_000, Kind::WithinHour))
        );
        assert_eq!(
            clock("26.03.2015"),
            Some((Some([26, 3, 2015]), 0, Kind::Minutes))
        );
    }

    #[test]
    fn what_is_no_time() {
        for text in [
            "",
            "x",
            "1",
            "1.5",
            "25:00:00",
            "10:60",
            "1/2",
            "1/2/3/4 10:00",
            "13:00 PM",
            "+1/2/2015 1:00",
            "1:2:3:4",
        ] {
            assert_eq!(clock(text), None, "{text}");
        }
    }

    #[test]
    fn calendar() {
        assert_eq!(days_from_date(1970, 1, 1), Some(0));
        assert_eq!(days_from_date(2000, 2, 29), Some(11_016));
        assert_eq!(days_from_date(2018, 4, 26), Some(17_647));
        for (y, m, d) in [
            (2001, 2, 29),
            (1900, 2, 29),
            (2000, 13, 1),
            (2000, 0, 1),
            (2000, 4, 31),
            (2000, 1, 0),
        ] {
            assert_eq!(days_from_date(y, m, d), None);
        }
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Some(time) = parse_time(&text) {
                prop_assert!(time.clock_ns >= 0 && time.clock_ns < 86_402 * SECOND_NS);
            }
        }

        #[test]
        fn following_days_are_one_apart(day in 0_i64..200_000) {
            // Walks the calendar by counting, not by formula.
            let (mut y, mut m, mut d) = (1970_u16, 1, 1);
            let jump = day / 146_097;
            y += u16::try_from(400 * jump).unwrap();
            let mut left = day % 146_097 % 1500;
            let base = days_from_date(y, 1, 1).unwrap();
            prop_assert_eq!(base, jump * 146_097);
            let span = left;
            while left > 0 {
                d += 1;
                if days_from_date(y, m, d).is_none() { (m, d) = (m + 1, 1); }
                if m > 12 { (y, m) = (y + 1, 1); }
                left -= 1;
            }
            prop_assert_eq!(days_from_date(y, m, d), Some(base + span));
        }
    }
}
