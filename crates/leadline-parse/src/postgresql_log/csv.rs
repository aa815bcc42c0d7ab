//! The columns of a csvlog.

use std::borrow::Cow;

use memchr::memmem;

use super::text::level_named;
use super::times::{Days, Stamp, stamp};

const PROCESS: usize = 2; // columns after the time
const LEVEL: usize = 10;

/// The head of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record<'a> {
    /// When.
    pub stamp: Stamp<'a>,
    /// The server's process.
    pub process: u64,
    /// The level.
    pub level: &'static [u8],
    /// The columns from the message on.
    pub rest: &'a [u8],
}

/// The record that begins with a line; None where none does.
pub(super) fn record<'a>(line: &'a [u8], days: &Days) -> Option<Record<'a>> {
    let (stamp, length) = stamp(line, days)?;
    let mut rest = line[length..].strip_prefix(b",")?;
    let (mut process, mut level) = (0, None);
    for place in 0..LEVEL + 2 {
        let (column, after) = column(rest)?;
        if place == PROCESS {
            process = std::str::from_utf8(column).ok()?.parse().unwrap_or(0);
        } else if place == LEVEL {
            level = Some(level_named(column)?);
        }
        rest = after?;
    }
    Some(Record {
        stamp,
        process,
        level: level?,
        rest,
    })
}

/// The message and its detail in the columns from the message on.
pub(super) fn message(columns: &[u8]) -> (Cow<'_, [u8]>, Cow<'_, [u8]>) {
    let Some((message, rest)) = column(columns) else {
        return (unquoted(columns), Cow::default()); // cut within its message
    };
    let detail = rest.and_then(column).map(|found| found.0);
    (unquoted(message), detail.map_or(Cow::default(), unquoted))
}

/// The column a text begins with, as written, and what follows its comma; None where its quotes do not end.
fn column(text: &[u8]) -> Option<(&[u8], Option<&[u8]>)> {
    let mut end = 0;
    if text.first() == Some(&b'"') {
        end = 1;
        loop {
            end += memchr::memchr(b'"', &text[end..])? + 1;
            if text.get(end) != Some(&b'"') {
                break;
            }
            end += 1;
        }
    }
    end += memchr::memchr(b',', &text[end..]).unwrap_or(text.len() - end);
    Some((&text[..end], text.get(end + 1..)))
}

fn unquoted(column: &[u8]) -> Cow<'_, [u8]> {
    let Some(inner) = column.strip_prefix(b"\"") else {
        return Cow::Borrowed(column);
    };
    let inner = inner.strip_suffix(b"\"").unwrap_or(inner);
    if memmem::find(inner, b"\"\"").is_none() {
        return Cow::Borrowed(inner);
    }
    let mut text = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(at) = memmem::find(rest, b"\"\"") {
        text.extend_from_slice(&rest[..=at]);
        rest = &rest[at + 2..];
    }
    text.extend_from_slice(rest);
    Cow::Owned(text)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::{message, record};
    use crate::postgresql_log::Days;

    #[test]
    fn a_record_has_its_message_after_the_state() {
        let days = Days {
            years: 1970..=2199,
            last: (2026, 12, 31),
        };
        let line = b"2026-11-20 10:00:00.100 CET,\"a,b\",\"shop\",5000,\"[local]\",5f0.1,1,\"SELECT\",\
            2026-11-20 09:00:00 CET,3/12,0,LOG,00000,\"path \"\"a\"\", size 1\",\"more\",,,,,,,,\"web\"";
        let record = record(line, &days).unwrap();
        assert_eq!((record.process, record.level), (5000, b"LOG".as_slice()));
        let (text, detail) = message(record.rest);
        assert_eq!(
            (&*text, &*detail),
            (b"path \"a\", size 1".as_slice(), b"more".as_slice())
        );
        assert_eq!(&*message(b"\"cut \"\"in").0, b"cut \"in");
        assert!(
            super::record(
                b"2026-11-20 10:00:00 UTC,a,b,1,c,d,1,e,f,g,0,log,0,x",
                &days
            )
            .is_none()
        );
    }
}
