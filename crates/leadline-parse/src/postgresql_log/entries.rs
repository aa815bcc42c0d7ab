//! The entries of a log, put together from their lines.

/// What goes on with an entry is kept to this size; statements may be longer.
const TEXT_BYTES_MAX: usize = 1 << 16;
/// Processes whose entries are put together at a time: in syslog, their lines are mixed.
const OPEN_MAX: usize = 64;

/// One entry: a time, who wrote it, a level and a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Entry {
    /// Which zone the second is printed in.
    pub zone_index: usize,
    /// Seconds since 1970 of the clock that was printed.
    pub second: i64,
    /// Millionths of a second after it.
    pub micros: u32,
    /// The server's process; 0 where it is not named.
    pub process: u64,
    /// As printed, without a number.
    pub level: &'static [u8],
    /// The message and the lines that go on with it.
    pub text: Vec<u8>,
}

impl Entry {
    /// Seconds since 1970 with their fraction.
    pub(super) fn seconds(&self) -> f64 {
        self.second as f64 + f64::from(self.micros) / 1e6
    }
}

/// How the text of an entry is to be read when it is whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Content {
    /// As it is.
    #[default]
    Plain,
    /// The columns of a csvlog from the message on.
    Columns,
}

#[derive(Debug, Default)]
struct Open {
    source: u64,
    content: Content,
    entry: Entry,
}

/// Entries whose lines may go on.
#[derive(Debug, Default)]
pub(super) struct OpenEntries {
    open: Vec<Open>,
    spare: Vec<Vec<u8>>,
}

impl OpenEntries {
    /// Begins an entry of a source; what is whole by that is taken out and given back.
    pub(super) fn begin(
        &mut self,
        source: u64,
        content: Content,
        mut entry: Entry,
        text: &[u8],
    ) -> Option<(Content, Entry)> {
        let place = self.open.iter().position(|open| open.source == source);
        let place = place.or((self.open.len() == OPEN_MAX).then_some(0));
        let whole = place.map(|place| self.open.remove(place));
        entry.text = self.spare.pop().unwrap_or_default();
        entry.text.extend_from_slice(text);
        self.open.push(Open {
            source,
            content,
            entry,
        });
        whole.map(|open| (open.content, open.entry))
    }

    /// Adds a line to the entry of a source; false where there is none.
    pub(super) fn go_on(&mut self, source: u64, line: &[u8], is_new_line: bool) -> bool {
        let Some(open) = self.open.iter_mut().rfind(|open| open.source == source) else {
            return false;
        };
        let text = &mut open.entry.text;
        let room = TEXT_BYTES_MAX.saturating_sub(text.len() + usize::from(is_new_line));
        if room > 0 {
            if is_new_line {
                text.push(b'\n');
            }
            text.extend_from_slice(&line[..line.len().min(room)]);
        }
        true
    }

    /// Takes one of those that are open, the oldest first.
    pub(super) fn take(&mut self) -> Option<(Content, Entry)> {
        (!self.open.is_empty()).then(|| {
            let open = self.open.remove(0);
            (open.content, open.entry)
        })
    }

    /// Gives back the memory of an entry's text.
    pub(super) fn reuse(&mut self, mut text: Vec<u8>) {
        text.clear();
        if self.spare.len() < OPEN_MAX && text.capacity() <= 2 * TEXT_BYTES_MAX {
            self.spare.push(text);
        }
    }
}
