//! The lines of a text, one after the other, in a buffer of bounded size.

use std::io::Read;

use leadline_stats::error::LeadlineError;
use memchr::memchr;

const BLOCK_BYTES: usize = 1 << 18;

/// How a line ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With a line feed.
    LineFeed,
    /// With the text: whoever wrote it may have been cut short.
    Text,
    /// It does not end within the bytes that are kept; the rest of it is skipped.
    TooLong,
}

/// Gives each line to a function, without its line feed; returns after the last line, or when the function says false.
///
/// `place` is the file's name for messages, `line_bytes_max` how much of a line is kept. The memory is that of the
/// longest line, at most `line_bytes_max`.
///
/// # Errors
/// The stream fails, or what the function returns.
pub fn each_line(
    mut stream: impl Read,
    place: &str,
    line_bytes_max: usize,
    mut take: impl FnMut(&[u8], Ending) -> Result<bool, LeadlineError>,
) -> Result<(), LeadlineError> {
    let mut buffer = vec![0u8; BLOCK_BYTES];
    let (mut held, mut skips) = (0, false);
    loop {
        let got = stream
            .read(&mut buffer[held..])
            .map_err(|error| LeadlineError::from_io(place, "read", &error))?;
        if got == 0 {
            break;
        }
        let (end, mut start, mut searched) = (held + got, 0, held);
        while let Some(length) = memchr(b'\n', &buffer[searched..end]) {
            let line_end = searched + length;
            if skips {
                skips = false;
            } else if !take(&buffer[start..line_end], Ending::LineFeed)? {
                return Ok(());
            }
            start = line_end + 1;
            searched = start;
        }
        held = end - start;
        if skips {
            held = 0;
        } else if held > line_bytes_max {
            if !take(&buffer[start..start + line_bytes_max], Ending::TooLong)? {
                return Ok(());
            }
            (skips, held) = (true, 0);
        }
        buffer.copy_within(end - held..end, 0);
        if held == buffer.len() {
            buffer.resize(buffer.len() * 2, 0);
        }
    }
    if held > 0 && !skips {
        take(&buffer[..held], Ending::Text)?;
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::{BLOCK_BYTES, Ending, each_line};

    fn lines(text: &[u8], line_bytes_max: usize) -> Vec<(Vec<u8>, Ending)> {
        let mut lines = Vec::new();
        each_line(text, "text", line_bytes_max, |line, ending| {
            lines.push((line.to_vec(), ending));
            Ok(true)
        })
        .unwrap();
        lines
    }

    #[test]
    fn lines_are_given_whole_with_how_they_end() {
        let expected = [
            (b"a".to_vec(), Ending::LineFeed),
            (Vec::new(), Ending::LineFeed),
            (b"b\r".to_vec(), Ending::LineFeed),
            (b"c".to_vec(), Ending::Text),
        ];
        assert_eq!(lines(b"a\n\nb\r\nc", 100), expected);
        assert_eq!(lines(b"", 100), []);
    }

    #[test]
    fn a_line_longer_than_a_block_is_whole_or_cut() {
        let long = vec![b'x'; 3 * BLOCK_BYTES];
        let text = [b"a\n".as_slice(), &long, b"\nb\n"].concat();
        let whole = lines(&text, 4 * BLOCK_BYTES);
        assert_eq!(whole[1], (long.clone(), Ending::LineFeed));
        assert_eq!(whole[2].0, b"b");
        let cut = lines(&text, BLOCK_BYTES);
        assert_eq!(cut[1].1, Ending::TooLong);
        assert_eq!(cut[1].0, long[..BLOCK_BYTES]);
        assert_eq!(cut[2], (b"b".to_vec(), Ending::LineFeed));
        assert_eq!(cut.len(), 3);
    }

    #[test]
    fn reading_stops_when_asked() {
        let mut count = 0;
        each_line(b"a\nb\nc\n".as_slice(), "text", 10, |_, _| {
            count += 1;
            Ok(count < 2)
        })
        .unwrap();
        assert_eq!(count, 2);
    }
}
