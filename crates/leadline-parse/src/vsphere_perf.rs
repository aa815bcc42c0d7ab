//! vCenter's answer to `QueryPerf` in the format `csv`, as columns: one pass over the text, no tree of elements.
//!
//! The text is that of the SOAP envelope. A text without its last end tag was cut and is an error.
//!
//! Source: vSphere Web Services API reference, `PerfEntityMetricCSV`, `PerfMetricSeriesCSV`, `PerfMetricId`.

use std::collections::HashMap;

use leadline_stats::error::LeadlineError;
use memchr::memchr;

const NS_PER_S: i64 = 1_000_000_000;
const DEPTH_MAX: usize = 32;

/// The moments of samples that entities share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moments {
    /// UTC nanoseconds, in the order of the answer.
    pub times_ns: Vec<i64>,
    /// Seconds that each sample stands for.
    pub intervals_s: Vec<i32>,
}

/// An answer as columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// Type and id of each entity.
    pub entities: Vec<(String, String)>,
    /// Which moments the samples of each entity have.
    pub entity_moments: Vec<u32>,
    /// The different moments.
    pub moments: Vec<Moments>,
    /// Which entity each series is of.
    pub series_entities: Vec<u32>,
    /// The id of each series' counter.
    pub series_counters: Vec<i32>,
    /// Which instance each series is of.
    pub series_instances: Vec<u32>,
    /// The different instances.
    pub instances: Vec<String>,
    /// The samples of all series, one series after the other; NaN is not measured.
    pub values: Vec<f32>,
}

/// Reads an answer; `place` is the server's name for messages.
///
/// # Errors
/// The text is cut, is no such answer, or a series has more or fewer samples than its entity has moments.
pub fn read(text: &[u8], place: &str) -> Result<Answer, LeadlineError> {
    let mut reader = Reader {
        text,
        at: 0,
        place,
        open: Vec::new(),
        answer: Answer::default(),
        moments: HashMap::new(),
        instances: HashMap::new(),
        last_moments: None,
        entity: None,
        series: None,
    };
    reader.read()?;
    Ok(reader.answer)
}

#[derive(Default)]
struct Series {
    counter: Option<i32>,
    instance: Option<u32>,
    has_values: bool,
}

#[derive(Default)]
struct EntityState {
    is_named: bool,
    count: Option<usize>,
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    place: &'a str,
    open: Vec<&'a [u8]>,
    answer: Answer,
    moments: HashMap<&'a [u8], u32>,
    instances: HashMap<&'a [u8], u32>,
    last_moments: Option<(&'a [u8], u32)>,
    entity: Option<EntityState>,
    series: Option<Series>,
}

struct Tag<'a> {
    name: &'a [u8],
    attributes: &'a [u8],
    closes: bool,
    is_empty: bool,
}

impl<'a> Reader<'a> {
    fn read(&mut self) -> Result<(), LeadlineError> {
        let mut has_answer = false;
        while let Some(start) = memchr(b'<', &self.text[self.at..]) {
            self.at += start + 1;
            let Some(tag) = self.tag()? else { continue };
            if tag.closes {
                self.close(tag.name)?;
                has_answer |= tag.name == b"QueryPerfResponse";
                if self.open.is_empty() {
                    break;
                }
                continue;
            }
            has_answer |= tag.is_empty && tag.name == b"QueryPerfResponse";
            self.enter(&tag)?;
            if tag.is_empty {
                self.leave(tag.name)?;
            } else if self.open.len() == DEPTH_MAX {
                return Err(self.wrong("elements within elements without end"));
            } else {
                self.open.push(tag.name);
            }
        }
        if !self.open.is_empty() {
            return Err(self.cut());
        }
        if !has_answer {
            return Err(self.wrong("no answer to QueryPerf"));
        }
        Ok(())
    }

    /// The tag that begins here, or nothing for a declaration or comment.
    fn tag(&mut self) -> Result<Option<Tag<'a>>, LeadlineError> {
        let Some(length) = memchr(b'>', &self.text[self.at..]) else {
            return Err(self.cut());
        };
        let text: &'a [u8] = self.text;
        let mut inside = &text[self.at..self.at + length];
        self.at += length + 1;
        let closes = inside.first() == Some(&b'/');
        match inside.first() {
            Some(b'?' | b'!') => return Ok(None),
            Some(b'/') => inside = &inside[1..],
            _ => {}
        }
        let is_empty = !closes && inside.last() == Some(&b'/');
        if is_empty {
            inside = &inside[..inside.len() - 1];
        }
        let end = inside
            .iter()
            .position(u8::is_ascii_whitespace)
            .unwrap_or(inside.len());
        let (name, attributes) = inside.split_at(end);
        let name = memchr(b':', name).map_or(name, |colon| &name[colon + 1..]);
        Ok(Some(Tag {
            name,
            attributes,
            closes,
            is_empty,
        }))
    }

    fn close(&mut self, name: &[u8]) -> Result<(), LeadlineError> {
        if self.open.pop() != Some(name) {
            return Err(self.wrong("an end tag of another element"));
        }
        self.leave(name)
    }

    /// The text up to the next tag; the text of an empty element is empty.
    fn content(&mut self, tag: &Tag<'_>) -> Result<&'a [u8], LeadlineError> {
        if tag.is_empty {
            return Ok(b"");
        }
        let text: &'a [u8] = self.text;
        let Some(length) = memchr(b'<', &text[self.at..]) else {
            return Err(self.cut());
        };
        let content = &text[self.at..self.at + length];
        self.at += length;
        Ok(content)
    }

    fn enter(&mut self, tag: &Tag<'_>) -> Result<(), LeadlineError> {
        match tag.name {
            b"Fault" => Err(self.wrong("a fault instead of samples")),
            b"returnval" => {
                if self.entity.is_some() {
                    return Err(self.wrong("an entity within an entity"));
                }
                self.entity = Some(EntityState::default());
                Ok(())
            }
            b"entity" => self.enter_entity(tag),
            b"sampleInfoCSV" => self.enter_moments(tag),
            b"value" if self.series.is_none() => {
                match &mut self.entity {
                    Some(entity) if entity.is_named => entity.count.get_or_insert(0),
                    _ => return Err(self.wrong("samples of no entity")),
                };
                self.series = Some(Series::default());
                Ok(())
            }
            b"value" => self.enter_values(tag),
            b"counterId" => {
                let content = self.content(tag)?;
                let id = number(content).and_then(|id| i32::try_from(id).ok());
                match (id, &mut self.series) {
                    (Some(id), Some(series)) => series.counter = Some(id),
                    _ => return Err(self.wrong("a counter without a number or a series")),
                }
                Ok(())
            }
            b"instance" => {
                let content = self.content(tag)?;
                let index = self.instance_index(content)?;
                match &mut self.series {
                    Some(series) => series.instance = Some(index),
                    None => return Err(self.wrong("an instance of no series")),
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn leave(&mut self, name: &[u8]) -> Result<(), LeadlineError> {
        match name {
            b"returnval" => {
                let is_named = self.entity.take().is_some_and(|entity| entity.is_named);
                if !is_named || self.series.is_some() {
                    return Err(self.wrong("samples of no entity"));
                }
                let count = self.answer.entities.len();
                if self.answer.entity_moments.len() < count {
                    let index = self.moments_index(b"")?;
                    self.answer.entity_moments.push(index);
                }
                Ok(())
            }
            // The end of the list of a series' values is that of an element of the same name as the series itself.
            b"value" if self.open.last() != Some(&b"value".as_slice()) => {
                let Some(Series {
                    counter: Some(counter),
                    instance,
                    has_values,
                }) = self.series.take()
                else {
                    return Err(self.wrong("a series without a counter"));
                };
                let is_empty = self.entity.as_ref().and_then(|entity| entity.count) == Some(0);
                if !has_values && !is_empty {
                    return Err(self.wrong("a series without samples"));
                }
                let instance = match instance {
                    Some(index) => index,
                    None => self.instance_index(b"")?,
                };
                let entity = self.answer.entities.len().saturating_sub(1);
                self.answer.series_entities.push(index_of(entity));
                self.answer.series_counters.push(counter);
                self.answer.series_instances.push(instance);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn enter_entity(&mut self, tag: &Tag<'_>) -> Result<(), LeadlineError> {
        let content = self.content(tag)?;
        let (Some(kind), Some(id)) = (attribute(tag.attributes, b"type"), unescaped(content))
        else {
            return Err(self.wrong("an entity without a type or an id"));
        };
        match &mut self.entity {
            Some(entity) if !entity.is_named => entity.is_named = true,
            _ => return Err(self.wrong("an entity where none belongs")),
        }
        self.answer.entities.push((kind, id));
        Ok(())
    }

    fn enter_moments(&mut self, tag: &Tag<'_>) -> Result<(), LeadlineError> {
        let content = self.content(tag)?;
        let index = self.moments_index(content)?;
        let count = self.answer.moments[index as usize].times_ns.len();
        match &mut self.entity {
            Some(entity) if entity.is_named && entity.count.is_none() => entity.count = Some(count),
            _ => return Err(self.wrong("moments of no entity")),
        }
        self.answer.entity_moments.push(index);
        Ok(())
    }

    fn enter_values(&mut self, tag: &Tag<'_>) -> Result<(), LeadlineError> {
        let content = self.content(tag)?;
        let expected = self
            .entity
            .as_ref()
            .and_then(|entity| entity.count)
            .unwrap_or(0);
        let before = self.answer.values.len();
        match &mut self.series {
            Some(series) if !series.has_values => series.has_values = true,
            _ => return Err(self.wrong("samples of a series twice")),
        }
        if expected == 0 && content.is_empty() {
            return Ok(());
        }
        if !append_values(content, &mut self.answer.values) {
            return Err(self.wrong("a sample that is no whole number"));
        }
        if self.answer.values.len() - before != expected {
            return Err(self.wrong("a series with more or fewer samples than moments"));
        }
        Ok(())
    }

    fn moments_index(&mut self, content: &'a [u8]) -> Result<u32, LeadlineError> {
        if let Some((text, index)) = self.last_moments {
            if text == content {
                return Ok(index);
            }
        }
        let index = if let Some(&index) = self.moments.get(content) {
            index
        } else {
            let Some(moments) = moments_of(content) else {
                return Err(self.wrong("moments that are no list of intervals and times"));
            };
            let index = index_of(self.answer.moments.len());
            self.answer.moments.push(moments);
            self.moments.insert(content, index);
            index
        };
        self.last_moments = Some((content, index));
        Ok(index)
    }

    fn instance_index(&mut self, content: &'a [u8]) -> Result<u32, LeadlineError> {
        if let Some(&index) = self.instances.get(content) {
            return Ok(index);
        }
        let Some(name) = unescaped(content) else {
            return Err(self.wrong("an instance that is no text"));
        };
        let index = index_of(self.answer.instances.len());
        self.answer.instances.push(name);
        self.instances.insert(content, index);
        Ok(index)
    }

    fn cut(&self) -> LeadlineError {
        LeadlineError::new(
            self.place,
            format!("an answer that ends after {} bytes", self.text.len()),
            "samples up to the end of the answer",
            "It is asked for again with the next cycle; look at the network when it happens often.",
        )
    }

    fn wrong(&self, found: &str) -> LeadlineError {
        LeadlineError::new(
            format!("{}: byte {} of the answer", self.place, self.at),
            found,
            "samples in the csv format of QueryPerf",
            "Look at what stands between Leadline and vCenter.",
        )
    }
}

/// Positions in an answer; a text with more than four billion of them does not fit into memory.
fn index_of(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}

/// Appends numbers separated by commas; false when one is none. Negative and empty ones are not measured.
fn append_values(text: &[u8], values: &mut Vec<f32>) -> bool {
    let mut rest = text;
    loop {
        let end = rest
            .iter()
            .position(|&byte| byte == b',')
            .unwrap_or(rest.len());
        let word = &rest[..end];
        if word.is_empty() {
            values.push(f32::NAN);
        } else {
            match number(word) {
                Some(value) if value >= 0 => values.push(value as f32),
                Some(_) => values.push(f32::NAN),
                None => return false,
            }
        }
        if end == rest.len() {
            return true;
        }
        rest = &rest[end + 1..];
    }
}

fn number(word: &[u8]) -> Option<i64> {
    let (negative, digits) = match word.split_first() {
        Some((b'-', rest)) => (true, rest),
        _ => (false, word),
    };
    if digits.is_empty() || digits.len() > 18 {
        return None;
    }
    let mut value = 0i64;
    for &digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        value = value * 10 + i64::from(digit - b'0');
    }
    Some(if negative { -value } else { value })
}

/// `20,2026-11-26T20:00:00Z,20,...`
fn moments_of(text: &[u8]) -> Option<Moments> {
    let mut moments = Moments::default();
    if text.is_empty() {
        return Some(moments);
    }
    let mut words = text.split(|&byte| byte == b',');
    while let Some(interval) = words.next() {
        moments
            .intervals_s
            .push(i32::try_from(number(interval)?).ok()?);
        moments.times_ns.push(time_ns(words.next()?)?);
    }
    Some(moments)
}

/// UTC nanoseconds of a time of XML Schema with a zone, as `2026-11-26T20:00:00.5+01:00`.
fn time_ns(text: &[u8]) -> Option<i64> {
    let of = |from: usize, to: usize| text.get(from..to).and_then(number).filter(|&n| n >= 0);
    let is = |at: usize, byte: u8| text.get(at) == Some(&byte);
    if !(is(4, b'-') && is(7, b'-') && is(10, b'T') && is(13, b':') && is(16, b':')) {
        return None;
    }
    let (year, month, day) = (of(0, 4)?, of(5, 7)?, of(8, 10)?);
    let (hour, minute, second) = (of(11, 13)?, of(14, 16)?, of(17, 19)?);
    let in_range = (1970..2200).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second < 61;
    if !in_range {
        return None;
    }
    let mut rest = text.get(19..)?;
    let mut fraction_ns = 0;
    if let Some((b'.', digits)) = rest.split_first() {
        let count = digits
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        if !(1..=9).contains(&count) {
            return None;
        }
        let scale = 10i64.pow(9 - u32::try_from(count).ok()?);
        fraction_ns = number(&digits[..count])? * scale;
        rest = &digits[count..];
    }
    let offset_s = match rest {
        b"Z" => 0,
        [sign @ (b'+' | b'-'), zone @ ..] if zone.len() == 5 && zone[2] == b':' => {
            let (hours, minutes) = (number(&zone[..2])?, number(&zone[3..])?);
            if !(0..=14).contains(&hours) || !(0..60).contains(&minutes) {
                return None;
            }
            let away = hours * 3600 + minutes * 60;
            if *sign == b'+' { away } else { -away }
        }
        _ => return None,
    };
    let of_day = hour * 3600 + minute * 60 + second;
    Some((days_since_1970(year, month, day) * 86_400 + of_day - offset_s) * NS_PER_S + fraction_ns)
}

/// Days since 1970-01-01 in the Gregorian calendar.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year / 400, year % 400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The value of an attribute without a prefix.
fn attribute(attributes: &[u8], name: &[u8]) -> Option<String> {
    let mut rest = attributes.trim_ascii_start();
    while !rest.is_empty() {
        let equals = memchr(b'=', rest)?;
        let quote = *rest.get(equals + 1)?;
        if quote != b'"' && quote != b'\'' {
            return None;
        }
        let value = &rest[equals + 2..];
        let end = memchr(quote, value)?;
        if rest[..equals].trim_ascii_end() == name {
            return unescaped(&value[..end]);
        }
        rest = value[end + 1..].trim_ascii_start();
    }
    None
}

/// A text with its five entities and numbered characters put back; None where it is no text.
fn unescaped(text: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(text).ok()?;
    if !text.contains('&') {
        return Some(text.to_owned());
    }
    let mut whole = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        whole.push_str(&rest[..at]);
        let end = rest[at..].find(';')? + at;
        let name = &rest[at + 1..end];
        whole.push(match name {
            "amp" => '&',
            "lt" => '<',
            "gt" => '>',
            "quot" => '"',
            "apos" => '\'',
            _ => {
                let code = name.strip_prefix('#')?;
                let code = match code.strip_prefix(['x', 'X']) {
                    Some(digits) => u32::from_str_radix(digits, 16).ok()?,
                    None => code.parse().ok()?,
                };
                char::from_u32(code)?
            }
        });
        rest = &rest[end + 1..];
    }
    whole.push_str(rest);
    Some(whole)
}
