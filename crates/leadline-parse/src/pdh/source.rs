//! Where the bytes come from: a file read in pieces at given offsets, or memory.
//!
//! Offsets are *narrow*: one per byte, or one per code unit of a UTF-16 file. Data rows are ASCII in every
//! encoding these files come in, so a UTF-16 unit above 127 is narrowed to `?` and only the header, which has
//! names in it, is decoded properly.

use std::fs::File;
use std::path::Path;
use std::time::UNIX_EPOCH;

use leadline_stats::error::LeadlineError;

/// How the characters of the file are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Units {
    /// One byte per ASCII character: ASCII, UTF-8, Windows code pages.
    Bytes,
    /// UTF-16, low byte first.
    Utf16Le,
    /// UTF-16, high byte first.
    Utf16Be,
}

#[derive(Debug)]
enum Store {
    File(File),
    Memory(Vec<u8>),
}

/// Random access to the characters of a recording.
#[derive(Debug)]
pub struct Source {
    store: Store,
    /// Name used in messages.
    pub name: String,
    /// Last change of the file, nanoseconds since the epoch, where known.
    pub modified_ns: Option<i64>,
    units: Units,
    size_bytes: u64,
    mark_bytes: u64,
}

impl Source {
    /// Opens a file without reading it.
    ///
    /// # Errors
    /// When the file cannot be opened or is a folder.
    pub fn open(path: &Path) -> Result<Self, LeadlineError> {
        let name = path.to_string_lossy().into_owned();
        let fail = |e: &std::io::Error| LeadlineError::from_io(&name, "open the file", e);
        let file = File::open(path).map_err(|e| fail(&e))?;
        let meta = file.metadata().map_err(|e| fail(&e))?;
        if meta.is_dir() {
            return Err(LeadlineError::new(
                name,
                "a folder",
                "a recording",
                "Name the file inside the folder.",
            ));
        }
        let modified_ns = meta
            .modified()
            .ok()
            .and_then(|t| t.duration_since(UNIX_EPOCH).ok())
            .and_then(|d| i64::try_from(d.as_nanos()).ok());
        Self::with_store(Store::File(file), name, meta.len(), modified_ns)
    }

    /// A recording that is already in memory, such as a member of an archive.
    ///
    /// # Errors
    /// Never for bytes in memory; the signature is that of [`Source::open`].
    pub fn from_bytes(
        name: &str,
        bytes: Vec<u8>,
        modified_ns: Option<i64>,
    ) -> Result<Self, LeadlineError> {
        let size = bytes.len() as u64;
        Self::with_store(Store::Memory(bytes), name.to_owned(), size, modified_ns)
    }

    fn with_store(
        store: Store,
        name: String,
        size_bytes: u64,
        modified_ns: Option<i64>,
    ) -> Result<Self, LeadlineError> {
        let mut source = Self {
            store,
            name,
            modified_ns,
            units: Units::Bytes,
            size_bytes,
            mark_bytes: 0,
        };
        let mut head = Vec::new();
        source.read_at(0, 3, &mut head)?;
        (source.units, source.mark_bytes) = match head.as_slice() {
            [0xFF, 0xFE, ..] => (Units::Utf16Le, 2),
            [0xFE, 0xFF, ..] => (Units::Utf16Be, 2),
            [0xEF, 0xBB, 0xBF] => (Units::Bytes, 3),
            // Every header has ASCII at its start, so a NUL beside it is half a UTF-16 unit without a mark.
            [1..=127, 0, ..] => (Units::Utf16Le, 0),
            [0, 1..=127, ..] => (Units::Utf16Be, 0),
            _ => (Units::Bytes, 0),
        };
        Ok(source)
    }

    /// How the characters are stored.
    #[must_use]
    pub fn units(&self) -> Units {
        self.units
    }

    /// Whether a byte order mark stands at the start.
    #[must_use]
    pub fn has_mark(&self) -> bool {
        self.mark_bytes > 0
    }

    /// Number of characters (narrow offsets) behind the byte order mark.
    #[must_use]
    pub fn len(&self) -> u64 {
        (self.size_bytes - self.mark_bytes.min(self.size_bytes)) / self.unit_bytes()
    }

    /// Whether nothing stands behind the byte order mark.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn unit_bytes(&self) -> u64 {
        if self.units == Units::Bytes { 1 } else { 2 }
    }

    /// Reads up to `count` narrow characters at `offset` into `out` (cleared first); fewer at the end of the file.
    ///
    /// # Errors
    /// When the operating system cannot read.
    pub fn read_at(
        &self,
        offset: u64,
        count: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), LeadlineError> {
        self.read_raw(offset, count, out)?;
        if self.units != Units::Bytes {
            let high = usize::from(self.units == Units::Utf16Le);
            let narrow_len = out.len() / 2;
            for i in 0..narrow_len {
                let (h, l) = (out[2 * i + high], out[2 * i + 1 - high]);
                out[i] = if h == 0 && l < 128 { l } else { b'?' };
            }
            out.truncate(narrow_len);
        }
        Ok(())
    }

    /// Reads as [`Source::read_at`] does, but leaves UTF-16 as it stands: two bytes per character.
    ///
    /// # Errors
    /// When the operating system cannot read.
    pub fn read_raw(
        &self,
        offset: u64,
        count: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), LeadlineError> {
        let from = self.mark_bytes + offset * self.unit_bytes();
        let left = self.size_bytes.saturating_sub(from);
        let want = (count as u64 * self.unit_bytes()).min(left);
        let want = usize::try_from(want).unwrap_or(usize::MAX);
        // The buffer keeps its length between calls of one size, so that it is not zeroed each time.
        out.resize(want, 0);
        let got = match &self.store {
            Store::Memory(bytes) => {
                let start = usize::try_from(from).unwrap_or(usize::MAX).min(bytes.len());
                out.copy_from_slice(&bytes[start..start + want]);
                want
            }
            Store::File(file) => read_file(file, from, out)
                .map_err(|e| LeadlineError::from_io(&self.name, "read the file", &e))?,
        };
        out.truncate(got);
        Ok(())
    }

    /// `name:line`, as it stands at the head of an error.
    #[must_use]
    pub fn place(&self, line_number: u64) -> String {
        format!("{}:{line_number}", self.name)
    }
}

#[cfg(unix)]
fn read_piece(file: &File, offset: u64, out: &mut [u8]) -> std::io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, out, offset)
}

#[cfg(windows)]
fn read_piece(file: &File, offset: u64, out: &mut [u8]) -> std::io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, out, offset)
}

fn read_file(file: &File, offset: u64, out: &mut [u8]) -> std::io::Result<usize> {
    let mut done = 0;
    while done < out.len() {
        match read_piece(file, offset + done as u64, &mut out[done..]) {
            Ok(0) => break,
            Ok(n) => done += n,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(done)
}
