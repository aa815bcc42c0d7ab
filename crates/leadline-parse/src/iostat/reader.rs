//! Lines out of a stream, with bounded memory.

use std::io::Read;

use memchr::memchr;

use super::report::Parser;
use super::table::Wanted;
use super::{Note, Recording};
use leadline_stats::error::LeadlineError;

const BLOCK_BYTES: usize = 1 << 18;
/// iostat's longest lines have 300 characters and a device name of at most 255.
const LINE_BYTES_MAX: usize = 1 << 16;

/// Reads a recording.
///
/// `place` is the file's name for messages, `total_bytes` its size (0 when not known; only saves memory), `wanted`
/// the columns to keep.
///
/// # Errors
/// The stream fails, or a line inside the recording is neither iostat's nor left out for a reason that is noted.
pub fn read(
    mut stream: impl Read,
    place: &str,
    total_bytes: u64,
    wanted: &Wanted,
) -> Result<Recording, LeadlineError> {
    let mut parser = Parser::new(place, wanted, total_bytes);
    let mut buffer = vec![0u8; BLOCK_BYTES];
    let mut held = 0;
    loop {
        let got = stream
            .read(&mut buffer[held..])
            .map_err(|error| LeadlineError::from_io(place, "read", &error))?;
        if got == 0 {
            break;
        }
        let end = held + got;
        let mut start = 0;
        while let Some(length) = memchr(b'\n', &buffer[start..end]) {
            parser.line(&buffer[start..start + length])?;
            start += length + 1;
        }
        held = end - start;
        if held > LINE_BYTES_MAX {
            return Err(parser.error(format!("no line end within {LINE_BYTES_MAX} bytes")));
        }
        buffer.copy_within(start..end, 0);
    }
    parser.finish(&buffer[..held])
}

/// Adds to the notes, counting up what is there already.
pub(super) fn note(notes: &mut Vec<Note>, code: &'static str, message: impl FnOnce() -> String) {
    if let Some(known) = notes.iter_mut().find(|known| known.code == code) {
        known.count += 1;
    } else {
        notes.push(Note {
            code,
            message: message(),
            count: 1,
        });
    }
}
