//! Bytes out of a file, compressed or not, block by block: lines for text, fixed lengths for binary records.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::read::MultiGzDecoder;
use memchr::memchr;

use leadline_stats::error::LeadlineError;

/// Bytes held of a file that is read alone.
pub const BLOCK_BYTES: usize = 1 << 20;
/// Bytes held of each of many files that are read together: those of hundreds of CPUs must not add up.
pub const BLOCK_BYTES_OF_MANY: usize = 1 << 16;
const LINE_BYTES_MAX: usize = 1 << 16;

/// Counts what was read from a file, for progress.
struct Counted<R> {
    inner: R,
    done: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let got = self.inner.read(buffer)?;
        self.done.fetch_add(got as u64, Ordering::Relaxed);
        Ok(got)
    }
}

/// A stream with a window of it in memory.
pub struct Input {
    stream: Box<dyn Read + Send>,
    place: String,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Bytes of the stream before `start`.
    passed: u64,
    line: u64,
    ended: bool,
}

impl Input {
    /// Opens a file, gzip or not; `name` is used in messages, `block` bytes are held, `done` counts bytes of the file.
    ///
    /// # Errors
    /// The file cannot be opened or read.
    pub fn open(
        path: &Path,
        name: &str,
        block: usize,
        done: &Arc<AtomicU64>,
    ) -> Result<Self, LeadlineError> {
        let fail = |error: &std::io::Error| LeadlineError::from_io(name, "open", error);
        let mut magic = [0u8; 2];
        let mut file = File::open(path).map_err(|error| fail(&error))?;
        let mut held = 0;
        while held < magic.len() {
            match file
                .read(&mut magic[held..])
                .map_err(|error| fail(&error))?
            {
                0 => break,
                got => held += got,
            }
        }
        done.fetch_add(held as u64, Ordering::Relaxed);
        let rest = Counted {
            inner: file,
            done: Arc::clone(done),
        };
        let whole = std::io::Cursor::new(magic[..held].to_vec()).chain(rest);
        let stream: Box<dyn Read + Send> = if magic == [0x1f, 0x8b] {
            Box::new(MultiGzDecoder::new(whole))
        } else {
            Box::new(whole)
        };
        Ok(Self::new(stream, name, block))
    }

    /// Reads from a stream, of which `block` bytes are held.
    #[must_use]
    pub fn new(stream: Box<dyn Read + Send>, name: &str, block: usize) -> Self {
        Self {
            stream,
            place: name.to_owned(),
            buffer: vec![0; block],
            start: 0,
            end: 0,
            passed: 0,
            line: 0,
            ended: false,
        }
    }

    /// The file and line the last line came from.
    pub fn line_place(&self) -> String {
        format!("{}:{}", self.place, self.line)
    }

    /// The file and a byte of it, counted from what is next.
    pub fn byte_place(&self, back: usize) -> String {
        format!("{}: byte {}", self.place, self.passed - back as u64)
    }

    /// The file.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// What is in memory and was not taken yet; at least `wanted` bytes unless the stream ends before.
    ///
    /// # Errors
    /// The stream fails.
    pub fn peek(&mut self, wanted: usize) -> Result<&[u8], LeadlineError> {
        if self.end - self.start < wanted && !self.ended {
            self.refill(wanted)?;
        }
        Ok(&self.buffer[self.start..self.end])
    }

    /// Takes bytes that `peek` showed.
    pub fn take(&mut self, count: usize) {
        self.start += count;
        self.passed += count as u64;
    }

    /// Passes over bytes, whether in memory or not; how many there were.
    ///
    /// # Errors
    /// The stream fails.
    pub fn skip(&mut self, count: usize) -> Result<usize, LeadlineError> {
        let mut left = count;
        while left > 0 {
            let held = self.peek(1)?.len().min(left);
            if held == 0 {
                break;
            }
            self.take(held);
            left -= held;
        }
        Ok(count - left)
    }

    /// The next line without its end, and whether it had one; None at the end.
    ///
    /// # Errors
    /// The stream fails, or a line is longer than any format's.
    pub fn line(&mut self) -> Result<Option<(&[u8], bool)>, LeadlineError> {
        let mut length = memchr(b'\n', &self.buffer[self.start..self.end]);
        while length.is_none() && !self.ended {
            if self.end - self.start > LINE_BYTES_MAX {
                self.line += 1;
                return Err(LeadlineError::new(
                    self.line_place(),
                    format!("no line end within {LINE_BYTES_MAX} bytes"),
                    "a text of short lines",
                    "Check that the file is a trace, and not damaged.",
                ));
            }
            self.refill(self.end - self.start + 1)?;
            length = memchr(b'\n', &self.buffer[self.start..self.end]);
        }
        let (from, held) = (self.start, self.end - self.start);
        if length.is_none() && held == 0 {
            return Ok(None);
        }
        self.line += 1;
        let bare = length.unwrap_or(held);
        self.take(if length.is_some() { bare + 1 } else { bare });
        let text = &self.buffer[from..from + bare];
        Ok(Some((
            text.strip_suffix(b"\r").unwrap_or(text),
            length.is_some(),
        )))
    }

    fn refill(&mut self, wanted: usize) -> Result<(), LeadlineError> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.buffer.len() < wanted {
            self.buffer.resize(wanted.next_power_of_two(), 0);
        }
        while self.end < wanted && !self.ended {
            let got = match self.stream.read(&mut self.buffer[self.end..]) {
                Ok(got) => got,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(LeadlineError::from_io(&self.place, "read", &error)),
            };
            self.ended = got == 0;
            self.end += got;
        }
        Ok(())
    }
}

/// A decimal number that is the whole text.
#[inline]
pub fn number(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 20 {
        return None;
    }
    let mut value = 0u64;
    for byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    Some(value)
}

/// A number with decimals in units of 10^-`digits`; further decimals are cut off.
pub fn decimal(text: &[u8], digits: u32) -> Option<u64> {
    let dot = memchr(b'.', text).unwrap_or(text.len());
    let mut value = number(&text[..dot])?;
    let decimals = text.get(dot + 1..).unwrap_or(b"");
    for place in 0..digits as usize {
        let digit = match decimals.get(place) {
            Some(byte) if byte.is_ascii_digit() => u64::from(byte - b'0'),
            Some(_) => return None,
            None => 0,
        };
        value = value.checked_mul(10)?.checked_add(digit)?;
    }
    decimals.iter().all(u8::is_ascii_digit).then_some(value)
}

/// Text without blanks at either end.
#[inline]
pub fn trimmed(text: &[u8]) -> &[u8] {
    text.trim_ascii()
}

/// A length in bytes as a record keeps it.
pub fn length(bytes: u64) -> Option<u32> {
    u32::try_from(bytes).ok().filter(|bytes| *bytes > 0)
}
