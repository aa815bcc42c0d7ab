//! The objects of a jsonlog, and of the JSON in which containers and clouds pass lines on.
//!
//! A string has no line end in it, so that the text is read line by line, whether an object stands on one line or on
//! many. What stands within an object of another kind is looked at too.

use memchr::memchr2;

use super::messages::digit_count;
use super::times::{Days, Stamp, epoch_stamp, internet_stamp, stamp};

const DEPTH_MAX: usize = 32;

/// What of an object is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Time,
    Level,
    Message,
    Line,
    Detail,
    Process,
}

/// What an object tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Record {
    /// The time, as written.
    pub time: Vec<u8>,
    /// The level; empty where the message is a line of text.
    pub level: Vec<u8>,
    /// The message, or lines.
    pub message: Vec<u8>,
    /// The detail of a message.
    pub detail: Vec<u8>,
    /// The process, in digits.
    pub process: Vec<u8>,
    /// Whether the message is a line that goes on in the next object.
    pub is_cut: bool,
}

#[derive(Debug, Default)]
struct Frame {
    record: Record,
    has_message: bool,
}

/// Objects that have begun.
#[derive(Debug, Default)]
pub(super) struct Objects {
    frames: Vec<Frame>,
    key: Option<Key>,
}

impl Objects {
    /// Reads a line; each object with a message is given to a function when it ends. False where the line is no JSON.
    pub(super) fn line(&mut self, line: &[u8], mut take: impl FnMut(Record)) -> bool {
        let mut place = 0;
        if line.starts_with(b"{") {
            self.frames.clear(); // whatever has begun before has not ended
            self.key = None;
        }
        while let Some(&byte) = line.get(place) {
            place += 1;
            match byte {
                b'"' => {
                    let Some(length) = string_length(&line[place..]) else {
                        self.frames.clear();
                        return false;
                    };
                    let text = &line[place..place + length];
                    place += length + 1;
                    let colon = line[place..].trim_ascii_start().starts_with(b":");
                    if colon && self.key.is_none() {
                        self.key = key(text);
                        let blanks = line[place..].len() - line[place..].trim_ascii_start().len();
                        place += blanks + 1;
                    } else {
                        self.value(text, true);
                    }
                }
                b'{' => {
                    if self.frames.len() == DEPTH_MAX {
                        self.frames.clear();
                        return false;
                    }
                    self.key = None;
                    let time = self.frames.last().map(|frame| frame.record.time.clone());
                    let mut frame = Frame::default();
                    frame.record.time = time.unwrap_or_default();
                    self.frames.push(frame);
                }
                b'}' => {
                    self.key = None;
                    if let Some(frame) = self.frames.pop().filter(|frame| frame.has_message) {
                        take(frame.record);
                    }
                }
                b'0'..=b'9' => {
                    let length = digit_count(&line[place..]);
                    self.value(&line[place - 1..place + length], false);
                    place += length;
                }
                b',' => self.key = None,
                _ => {}
            }
        }
        true
    }

    fn value(&mut self, text: &[u8], is_escaped: bool) {
        let (Some(key), Some(frame)) = (self.key.take(), self.frames.last_mut()) else {
            return;
        };
        let text = if is_escaped {
            unescaped(text)
        } else {
            text.to_vec()
        };
        let record = &mut frame.record;
        match key {
            Key::Time => record.time = text,
            Key::Level => record.level = text,
            Key::Detail => record.detail = text,
            Key::Process => record.process = text,
            Key::Message | Key::Line => {
                frame.has_message = true;
                record.is_cut = key == Key::Line && !text.ends_with(b"\n");
                record.message = text;
            }
        }
    }
}

impl Record {
    /// When the entry was written, or passed on.
    pub(super) fn stamp(&self, days: &Days) -> Option<Stamp<'_>> {
        let time = self.time.as_slice();
        if let Some((stamp, _)) = stamp(time, days).or_else(|| internet_stamp(time, days)) {
            return Some(stamp);
        }
        let count = digit_count(time);
        if count != time.len() || !matches!(count, 10 | 13 | 16) {
            return None;
        }
        let (seconds, rest) = time.split_at(10);
        let fraction: u32 = std::str::from_utf8(rest).ok()?.parse().unwrap_or(0);
        epoch_stamp(
            seconds,
            if count == 13 {
                fraction * 1000
            } else {
                fraction
            },
            days,
        )
    }

    /// The server's process; 0 where it is not named.
    pub(super) fn process(&self) -> u64 {
        let digits = std::str::from_utf8(&self.process).unwrap_or_default();
        digits.parse().unwrap_or(0)
    }
}

/// Which key it is: those of jsonlog, of csvlog as operators for Kubernetes pass it on, of Docker, journald and clouds.
fn key(name: &[u8]) -> Option<Key> {
    Some(match name {
        b"timestamp" | b"log_time" | b"time" | b"ts" | b"@timestamp" | b"__REALTIME_TIMESTAMP" => {
            Key::Time
        }
        b"error_severity" => Key::Level,
        b"message" | b"textPayload" | b"MESSAGE" => Key::Message,
        b"log" => Key::Line,
        b"detail" => Key::Detail,
        b"pid" | b"process_id" | b"_PID" => Key::Process,
        _ => return None,
    })
}

/// The length of a string up to its quote; None where it does not end.
fn string_length(text: &[u8]) -> Option<usize> {
    let mut end = 0;
    loop {
        end += memchr2(b'"', b'\\', text.get(end..)?)?;
        if text[end] == b'"' {
            return Some(end);
        }
        end += 2;
    }
}

fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        plain.extend_from_slice(&rest[..at]);
        let mark = rest.get(at + 1).copied().unwrap_or(b'\\');
        rest = rest.get(at + 2..).unwrap_or_default();
        match mark {
            b'n' => plain.push(b'\n'),
            b't' => plain.push(b'\t'),
            b'r' => plain.push(b'\r'),
            b'b' => plain.push(8),
            b'f' => plain.push(12),
            b'u' => {
                let digits = rest
                    .get(..4)
                    .and_then(|four| std::str::from_utf8(four).ok());
                let code = digits.and_then(|four| u32::from_str_radix(four, 16).ok());
                if let Some(code) = code {
                    let letter = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
                    plain.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
                    rest = &rest[4..];
                }
            }
            other => plain.push(other),
        }
    }
    plain.extend_from_slice(rest);
    plain
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::{Objects, Record};
    use crate::postgresql_log::Days;

    fn records(text: &str) -> Vec<Record> {
        let (mut objects, mut records) = (Objects::default(), Vec::new());
        for line in text.lines() {
            objects.line(line.as_bytes(), |record| records.push(record));
        }
        records
    }

    #[test]
    fn objects_may_be_on_one_line_or_on_many_and_within_others() {
        let one = r#"{"timestamp":"2026-11-20 10:00:00.1 UTC","pid":7,"error_severity":"LOG","message":"a \"b\"\n\tc\u00e9"}"#;
        let many = "[{\n  \"insertId\": \"x\",\n  \"timestamp\": \"2026-11-20T10:00:00.1Z\",\n  \"textPayload\": \"a\"\n},\n{\"events\": [{\"timestamp\": 1773100801250, \"message\": \"b\"}]}]";
        let within = r#"{"level":"info","ts":"2026-11-20T10:00:00Z","record":{"process_id":"7","message":"x"}}"#;
        let all = records(&[one, many, within].join("\n"));
        let messages: Vec<_> = all.iter().map(|record| record.message.as_slice()).collect();
        let expected = ["a \"b\"\n\tc\u{e9}".as_bytes(), b"a", b"b", b"x"];
        assert_eq!(messages, expected);
        let days = Days {
            years: 1970..=2199,
            last: (2026, 12, 31),
        };
        assert_eq!(all[2].stamp(&days).unwrap().micros, 250_000);
        assert!(all.iter().all(|record| record.stamp(&days).is_some()));
        assert_eq!((all[0].process(), all[3].process()), (7, 7));
    }

    #[test]
    fn a_damaged_object_costs_only_itself() {
        let text = "{\"message\": \"cut\n{\"log\": \"x\\n\"}\n{\"log\": \"part\"}";
        let all = records(text);
        assert_eq!(all.len(), 2);
        assert!(!all[0].is_cut && all[1].is_cut);
    }
}
