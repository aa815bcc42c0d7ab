//! Puts the entries of a log together and adds up what they tell.

use std::borrow::Cow;

use memchr::memmem;

use super::csv;
use super::entries::{Content, Entry, OpenEntries};
use super::json::{Objects, Record};
use super::languages::english;
use super::locks::LockWaits;
use super::messages::each_event;
use super::settings;
use super::text::{self, Envelope, Sender, Written, is_added, level_named};
use super::times::{Days, Stamp};
use super::works::Works;
use super::{Events, Kind, PostgresqlLog, Zone};

/// Levels that other programs' messages do not have.
const SURE_LEVELS: [&[u8]; 6] = [b"LOG", b"STATEMENT", b"FATAL", b"PANIC", b"DETAIL", b"HINT"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Text,
    Columns,
    Objects,
}

/// Reads a log line by line.
pub(super) struct Reader<'a> {
    days: &'a Days,
    form: Option<Form>,
    is_first: bool,
    /// Whether the next line goes on with the one before, without a line end between.
    joins: bool,
    open: OpenEntries,
    objects: Objects,
    log: PostgresqlLog,
    works: Works,
    locks: LockWaits,
    last_zone: usize,
    last: Option<(usize, f64)>,
}

/// What is known of an entry before its text.
#[derive(Clone, Copy)]
struct Head<'a> {
    source: u64,
    stamp: Stamp<'a>,
    process: u64,
    level: &'static [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(days: &'a Days) -> Self {
        Self {
            days,
            form: None,
            is_first: true,
            joins: false,
            open: OpenEntries::default(),
            objects: Objects::default(),
            log: PostgresqlLog::default(),
            works: Works::default(),
            locks: LockWaits::default(),
            last_zone: 0,
            last: None,
        }
    }

    /// Takes the next line.
    pub(super) fn line(&mut self, line: &[u8]) {
        let mark = b"\xef\xbb\xbf".as_slice();
        let line = line
            .strip_prefix(mark)
            .filter(|_| self.is_first)
            .unwrap_or(line);
        self.is_first = false;
        match self.form {
            Some(Form::Text) => self.text(line, None),
            Some(Form::Columns) => {
                self.columns(line);
            }
            Some(Form::Objects) => self.objects(line),
            None if line.starts_with(b"{") || line.starts_with(b"[{") || line == b"[" => {
                self.form = Some(Form::Objects);
                self.objects(line);
            }
            None => self.unknown(line),
        }
    }

    /// A line before the form is known: what a log begins with may be the end of an entry.
    fn unknown(&mut self, line: &[u8]) {
        if self.columns(line) {
            self.form = Some(Form::Columns);
            return;
        }
        self.text(line, None);
        self.form = (self.log.counts.entries > 0).then_some(Form::Text);
    }

    /// What was read, when there is no more.
    pub(super) fn finish(mut self) -> PostgresqlLog {
        while let Some((content, entry)) = self.open.take() {
            self.whole(content, entry);
        }
        if let Some(last) = self.last {
            self.locks.finish(last);
        }
        self.log.works = self.works.works;
        self.log.lock_waits = self.locks.waits;
        self.log
    }

    /// A line of a csvlog; whether it begins a record.
    fn columns(&mut self, line: &[u8]) -> bool {
        let Some(record) = csv::record(line, self.days) else {
            if !self.open.go_on(0, line, true) && self.form.is_some() {
                self.log.counts.others += 1;
            }
            return false;
        };
        let head = Head {
            source: 0,
            stamp: record.stamp,
            process: record.process,
            level: record.level,
        };
        self.log.counts.sure += 1;
        self.begin(head, Content::Columns, record.rest);
        true
    }

    fn objects(&mut self, line: &[u8]) {
        let mut objects = std::mem::take(&mut self.objects);
        let is_sound = objects.line(line, |record| self.object(&record));
        self.log.counts.damaged += u64::from(!is_sound);
        self.objects = objects;
    }

    fn object(&mut self, record: &Record) {
        let stamp = record.stamp(self.days);
        if record.level.is_empty() {
            let lines = record
                .message
                .strip_suffix(b"\n")
                .unwrap_or(&record.message);
            let envelope = Envelope {
                stamp,
                process: record.process(),
                is_cut: record.is_cut,
                ..Envelope::default()
            };
            for line in lines.split(|&byte| byte == b'\n') {
                self.text(line, Some(envelope));
            }
            return;
        }
        let (Some(stamp), Some(level)) = (stamp, level_named(&record.level)) else {
            self.log.counts.others += 1;
            return;
        };
        let head = Head {
            source: 0,
            stamp,
            process: record.process(),
            level,
        };
        self.log.counts.sure += 1;
        self.begin(head, Content::Plain, &record.message);
        if !record.detail.is_empty() {
            self.begin(
                Head {
                    level: b"DETAIL",
                    ..head
                },
                Content::Plain,
                &record.detail,
            );
        }
    }

    /// A line of text, which someone may have passed on.
    fn text(&mut self, line: &[u8], passed_on: Option<Envelope>) {
        let (envelope, rest) = match passed_on {
            Some(envelope) => (envelope, line),
            None => text::unwrapped(line, self.days),
        };
        let rest = match envelope.sender {
            Sender::NoTag => Cow::Borrowed(rest),
            _ => decoded(rest),
        };
        let source = match envelope.sender {
            Sender::NoTag => 0,
            _ => envelope.process,
        };
        let joins = std::mem::replace(&mut self.joins, envelope.is_cut);
        if rest.is_empty() || (joins && self.open.go_on(source, &rest, false)) {
            return;
        }
        if matches!(rest[0], b' ' | b'\t') {
            self.open.go_on(source, &rest, true);
            return;
        }
        let has_time = envelope.stamp.is_some();
        let written = text::written(&rest, self.days, has_time)
            .filter(|written| envelope.part <= 1 || is_added(written.level));
        match written {
            Some(written) => self.written(source, &written, &envelope),
            None if envelope.part > 1 => {
                self.open.go_on(source, &rest, false);
            }
            None => {
                if envelope.sender == Sender::NoTag {
                    self.open.go_on(source, &rest, true);
                }
                self.log.counts.others += 1;
            }
        }
    }

    fn written(&mut self, source: u64, written: &Written, envelope: &Envelope) {
        let Some(stamp) = written.stamp.or(envelope.stamp) else {
            self.log.counts.timeless += 1;
            return;
        };
        self.log.is_yearless |= written.stamp.is_none() && envelope.has_no_year;
        let is_sure = written.stamp.is_some()
            || envelope.sender == Sender::Server
            || SURE_LEVELS.contains(&written.level);
        self.log.counts.sure += u64::from(is_sure);
        let process = if written.process == 0 {
            envelope.process
        } else {
            written.process
        };
        let head = Head {
            source,
            stamp,
            process,
            level: written.level,
        };
        self.begin(head, Content::Plain, written.text);
    }

    fn begin(&mut self, head: Head, content: Content, text: &[u8]) {
        let entry = Entry {
            zone_index: self.zone_index(&head.stamp),
            second: head.stamp.second,
            micros: head.stamp.micros,
            process: head.process,
            level: head.level,
            text: Vec::new(),
        };
        self.log.counts.entries += 1;
        if let Some((content, whole)) = self.open.begin(head.source, content, entry, text) {
            self.whole(content, whole);
        }
    }

    fn zone_index(&mut self, stamp: &Stamp) -> usize {
        let zones = &mut self.log.zones;
        let is_it = |known: &Zone| known.name.as_bytes() == stamp.zone;
        if !zones.get(self.last_zone).is_some_and(is_it) {
            self.last_zone = zones.iter().position(is_it).unwrap_or_else(|| {
                zones.push(Zone {
                    name: String::from_utf8_lossy(stamp.zone).into_owned(),
                    first: stamp.second,
                    last: stamp.second,
                });
                zones.len() - 1
            });
        }
        let known = &mut zones[self.last_zone];
        known.first = known.first.min(stamp.second);
        known.last = known.last.max(stamp.second);
        self.last_zone
    }

    /// Adds up what a whole entry tells.
    fn whole(&mut self, content: Content, mut entry: Entry) {
        let mut detail = Vec::new();
        if content == Content::Columns {
            let columns = std::mem::take(&mut entry.text);
            let (message, more) = csv::message(&columns);
            entry.text = message.into_owned();
            detail = more.into_owned();
            self.open.reuse(columns);
        }
        self.tell(&entry);
        if !detail.is_empty() {
            entry.level = b"DETAIL";
            std::mem::swap(&mut entry.text, &mut detail);
            self.tell(&entry);
        }
        self.open.reuse(entry.text);
    }

    fn tell(&mut self, entry: &Entry) {
        if let Cow::Owned(text) = english(&entry.text) {
            let entry = Entry { text, ..*entry };
            return self.tell_english(&entry);
        }
        self.tell_english(entry);
    }

    fn tell_english(&mut self, entry: &Entry) {
        let events = &mut self.log.events;
        each_event(entry.level, &entry.text, |kind, value| {
            add(events, kind, entry.zone_index, entry.second, value);
        });
        self.works.take(entry);
        self.locks.take(entry);
        settings::take(&mut self.log.settings, entry);
        self.last = Some((entry.zone_index, entry.seconds()));
    }
}

/// A line end and a tab as rsyslog writes them.
fn decoded(text: &[u8]) -> Cow<'_, [u8]> {
    if memmem::find(text, b"#01").is_none() {
        return Cow::Borrowed(text);
    }
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = memmem::find(rest, b"#01") {
        plain.extend_from_slice(&rest[..at]);
        let (letter, length) = match rest.get(at + 3) {
            Some(b'1') => (b'\t', 4),
            Some(b'2') => (b'\n', 4),
            _ => (b'#', 1),
        };
        plain.push(letter);
        rest = &rest[at + length..];
    }
    plain.extend_from_slice(rest);
    Cow::Owned(plain)
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
