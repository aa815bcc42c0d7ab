//! What a line outside a table is.

use super::number::{is_blank, skip_blanks, skip_word};

/// The kinds of lines between tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `Linux 6.1.0 (db01) 11/20/26 _x86_64_ (8 CPU)`.
    Banner,
    /// The time of a report (`-t`).
    Stamp,
    /// `avg-cpu:` and the names of its columns.
    CpuHeader,
    /// `Device` and the names of its columns, in either order.
    DeviceHeader,
    /// `LINUX RESTART`.
    Restart,
    /// What the terminal shows when iostat is stopped.
    Interrupt,
    /// None of these.
    Other,
}

/// Tells what a line is that stands outside a table.
#[must_use]
pub fn kind_of(line: &[u8]) -> Kind {
    let text = trimmed(line);
    let first = &text[..skip_word(text, 0)];
    if first == b"avg-cpu:" {
        Kind::CpuHeader
    } else if is_device(first) || text.rsplit(|b| is_blank(*b)).next().is_some_and(is_device) {
        Kind::DeviceHeader
    } else if first == b"Linux" && text.contains(&b'(') && text.contains(&b')') {
        Kind::Banner
    } else if memchr::memmem::find(text, b"LINUX RESTART").is_some() {
        Kind::Restart
    } else if text == b"^C" || text == b"^\\" {
        Kind::Interrupt
    } else if is_stamp(text) {
        Kind::Stamp
    } else {
        Kind::Other
    }
}

/// The line without blanks around it.
#[must_use]
pub fn trimmed(line: &[u8]) -> &[u8] {
    let start = skip_blanks(line, 0);
    let end = line
        .iter()
        .rposition(|b| !is_blank(*b))
        .map_or(start, |last| last + 1);
    &line[start..end]
}

/// Whether a word heads the column of names (`Filesystem` in the NFS report of versions 9 and 10).
#[must_use]
pub fn is_device(word: &[u8]) -> bool {
    matches!(
        word,
        b"Device" | b"Device:" | b"Filesystem" | b"Filesystem:"
    )
}

const STAMP_BYTES_MAX: usize = 96;

/// A time of day with or without a date, as any locale writes it: three to eight groups of digits, the time told by a
/// colon (most), by a full sixth group (`22.57.04` in Finnish) or by signs beyond ASCII (`22時57分04秒`).
fn is_stamp(text: &[u8]) -> bool {
    if text.len() > STAMP_BYTES_MAX {
        return false;
    }
    let mut groups = 0;
    let mut colon = false;
    for (at, byte) in text.iter().enumerate() {
        let before = at > 0 && text[at - 1].is_ascii_digit();
        if byte.is_ascii_digit() && !before {
            groups += 1;
        }
        colon |= *byte == b':' && before && text.get(at + 1).is_some_and(u8::is_ascii_digit);
    }
    (colon && (3..=8).contains(&groups)) || (groups == 6 && !text.contains(&b'='))
}

/// The length of a time at the start of a line, with the blank behind it, as `ts` or a logging script prepends it:
/// `2020-08-28 21:33:57.516946<tab>`; None when there is none.
#[must_use]
pub fn prefix_length(line: &[u8]) -> Option<usize> {
    const SHAPE: &[u8] = b"dddd-dd-dd?dd:dd:dd";
    let fits = line.len() > SHAPE.len()
        && SHAPE.iter().zip(line).all(|(shape, byte)| match shape {
            b'd' => byte.is_ascii_digit(),
            b'?' => matches!(byte, b' ' | b'T'),
            _ => shape == byte,
        });
    if !fits {
        return None;
    }
    let end = skip_word(line, SHAPE.len());
    let rest = &line[SHAPE.len()..end];
    let valid = rest
        .iter()
        .all(|b| b.is_ascii_digit() || matches!(b, b'.' | b',' | b'+' | b'-' | b':' | b'Z'));
    (valid && end < line.len()).then_some(end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_told_apart() {
        let cases: [(&str, Kind); 16] = [
            (
                "Linux 5.4.0 (host) \t01/01/2020 \t_x86_64_\t(8 CPU)",
                Kind::Banner,
            ),
            ("11/20/2026 10:57:04 PM", Kind::Stamp),
            ("20.11.2026 22:57:04", Kind::Stamp),
            ("2026-11-20T22:57:04+0000", Kind::Stamp),
            ("2026年11月20日 22時57分04秒", Kind::Stamp),
            ("20.11.2026 22.57.04", Kind::Stamp),
            ("Time: 22:57:04", Kind::Stamp),
            ("avg-cpu:  %user   %nice", Kind::CpuHeader),
            ("Device:  rrqm/s", Kind::DeviceHeader),
            ("     r/s     rkB/s Device", Kind::DeviceHeader),
            ("Filesystem:  rkB_nor/s", Kind::DeviceHeader),
            ("^C", Kind::Interrupt),
            ("22:57:04  LINUX RESTART (2 CPU)", Kind::Restart),
            ("[root@db01 ~]# iostat -x 5", Kind::Other),
            ("sda 1 2 3", Kind::Other),
            ("", Kind::Other),
        ];
        for (line, kind) in cases {
            assert_eq!(kind_of(line.as_bytes()), kind, "{line}");
        }
    }

    #[test]
    fn a_time_before_each_line_is_measured() {
        assert_eq!(
            prefix_length(b"2020-08-28 21:33:57.516946\tLinux"),
            Some(27)
        );
        assert_eq!(prefix_length(b"2026-11-20T22:57:04+0000 avg"), Some(25));
        assert_eq!(prefix_length(b"2026-11-20T22:57:04+0000"), None);
        assert_eq!(prefix_length(b"11/20/26 22:57:04 x"), None);
    }
}
