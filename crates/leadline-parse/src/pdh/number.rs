//! Cells into numbers. Nearly every cell of a capture is `0.00`, `100.00` or `12.34`: up to eight characters,
//! handled in one register; everything else takes the general path.

/// What a cell holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell {
    /// A finite number.
    Number(f64),
    /// Nothing, or spaces.
    Blank,
    /// Text, an infinity, a damaged number.
    Text,
}

const POWERS_OF_TEN: [f64; 8] = [1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6, 1e7];
const ZEROS: u64 = 0x3030_3030_3030_3030;

/// The number in `line[start..end]` when it is unsigned, has at most eight characters and, where `QUOTED`, stands
/// between quotes. `None` sends the caller to [`parse_cell`]; it never means "no number".
///
/// The result is correctly rounded: digits and power of ten are both exact, so one division rounds once.
#[allow(
    clippy::inline_always,
    reason = "called once per cell; a call costs as much as the parsing"
)]
#[inline(always)]
#[must_use]
pub fn short_number<const QUOTED: bool>(line: &[u8], start: usize, end: usize) -> Option<f64> {
    let (first, last) = if QUOTED {
        (start + 1, end.wrapping_sub(1))
    } else {
        (start, end)
    };
    let length = last.wrapping_sub(first);
    if length.wrapping_sub(1) >= 8 {
        return None;
    }
    // The eight bytes that end with the cell: its last digit is in the top byte.
    let window: [u8; 8] = line.get(last.wrapping_sub(8)..last)?.try_into().ok()?;
    if QUOTED && (line[start] ^ b'"') | (*line.get(last)? ^ b'"') != 0 {
        return None;
    }
    let shift = 8 * (8 - length);
    // Digits become 0 to 9 and bytes before the cell become the digit 0.
    let x = ((u64::from_le_bytes(window) ^ ZEROS) >> shift) << shift;
    // esxtop prints two decimals: the dot is the third byte from the top.
    if (x >> 40) & 0xFF == u64::from(b'.' ^ b'0') {
        let digits = (x & 0xFFFF_0000_0000_0000) | ((x & 0x0000_00FF_FFFF_FFFF) << 8);
        return all_digits(digits).then(|| eight_digits(digits) / 100.0);
    }
    if all_digits(x) {
        return Some(eight_digits(x));
    }
    dot_elsewhere(x, length)
}

fn dot_elsewhere(x: u64, length: usize) -> Option<f64> {
    let difference = x ^ (u64::from(b'.' ^ b'0') * 0x0101_0101_0101_0101);
    let zero_bytes =
        difference.wrapping_sub(0x0101_0101_0101_0101) & !difference & 0x8080_8080_8080_8080;
    if zero_bytes == 0 || length < 2 {
        return None;
    }
    // The lowest marked byte is a true dot; borrows only disturb the bytes above it.
    let at = (zero_bytes.trailing_zeros() / 8) as usize;
    let before = (1_u64 << (8 * at)) - 1;
    let behind = (u64::MAX << (8 * at)) << 8;
    let digits = (x & behind) | ((x & before) << 8);
    all_digits(digits).then(|| eight_digits(digits) / POWERS_OF_TEN[7 - at])
}

#[inline]
fn all_digits(x: u64) -> bool {
    (x.wrapping_add(0x7676_7676_7676_7676) | x) & 0x8080_8080_8080_8080 == 0
}

/// Eight digits, the most significant in the lowest byte, added up in three multiplications.
#[inline]
fn eight_digits(x: u64) -> f64 {
    const PAIRS: u64 = 0x0000_00FF_0000_00FF;
    let pairs = x.wrapping_mul(10).wrapping_add(x >> 8);
    let sum = (pairs & PAIRS)
        .wrapping_mul(0x000F_4240_0000_0064)
        .wrapping_add(((pairs >> 16) & PAIRS).wrapping_mul(0x0000_2710_0000_0001));
    (sum >> 32) as f64
}

/// Any cell, with or without quotes, with a decimal point or comma.
#[must_use]
pub fn parse_cell(cell: &[u8]) -> Cell {
    let text = bare(cell);
    if text.is_empty() {
        return Cell::Blank;
    }
    // Letters would let `inf`, `nan` and `infinity` through.
    let plausible = text
        .iter()
        .all(|b| matches!(b, b'0'..=b'9' | b'.' | b',' | b'-' | b'+' | b'e' | b'E'));
    let Some(text) = std::str::from_utf8(text).ok().filter(|_| plausible) else {
        return Cell::Text;
    };
    let number = if text.contains(',') {
        text.replacen(',', ".", 1).parse::<f64>()
    } else {
        text.parse::<f64>()
    };
    match number {
        Ok(value) if value.is_finite() => Cell::Number(value),
        _ => Cell::Text,
    }
}

/// A cell without its quotes and the space around them. One quote may be missing: a repaired cell lost it.
#[must_use]
pub fn bare(cell: &[u8]) -> &[u8] {
    let cell = cell.trim_ascii();
    let cell = cell.strip_prefix(b"\"").unwrap_or(cell);
    cell.strip_suffix(b"\"").unwrap_or(cell).trim_ascii()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn short(text: &str) -> Option<f64> {
        let line = format!("\"12345678\",\"{text}\",");
        let start = 11;
        let quoted = short_number::<true>(line.as_bytes(), start, start + text.len() + 2);
        let bare = short_number::<false>(line.as_bytes(), start + 1, start + 1 + text.len());
        assert_eq!(quoted.map(f64::to_bits), bare.map(f64::to_bits));
        quoted
    }

    #[test]
    fn usual_cells_take_the_short_path() {
        for text in [
            "0.00", "100.00", "7.5", "8083", "12345.67", "12345678", ".5", "5.", "1.234567", "0",
        ] {
            assert_eq!(short(text), text.parse().ok(), "{text}");
        }
    }

    #[test]
    fn what_is_no_short_number_is_left_to_the_general_path() {
        for text in [
            "",
            ".",
            "-1.00",
            "1..0",
            "1.2.3",
            "1e5",
            " 1.00",
            "123456789",
            "ab.cd",
            "\u{e9}.00",
        ] {
            assert_eq!(short(text), None, "{text}");
        }
    }

    #[test]
    fn general_cells() {
        assert_eq!(parse_cell(b"\"-3\""), Cell::Number(-3.0));
        assert_eq!(parse_cell(b"\"12,5\""), Cell::Number(12.5));
        assert_eq!(parse_cell(b"1.5e3"), Cell::Number(1500.0));
        for blank in [&b""[..], b"\"\"", b"\" \"", b" "] {
            assert_eq!(parse_cell(blank), Cell::Blank);
        }
        for text in [
            &b"\"nan\""[..],
            b"inf",
            b"1.#QNAN",
            b"1e999",
            b"\"",
            b"12:30",
            b"####",
            b"\xFF",
        ] {
            assert_ne!(
                std::mem::discriminant(&parse_cell(text)),
                std::mem::discriminant(&Cell::Number(0.0))
            );
        }
    }

    proptest! {
        #[test]
        fn short_path_agrees_with_the_standard_library(text in "[0-9]{0,8}[.]?[0-9]{0,8}") {
            if let Some(value) = short(&text) {
                prop_assert_eq!(value.to_bits(), text.parse::<f64>().unwrap().to_bits());
            }
        }

        #[test]
        fn short_path_only_accepts_numbers(text in "[ -~]{0,9}") {
            if let Some(value) = short(&text) {
                prop_assert_eq!(Ok(value), text.parse::<f64>());
            }
        }
    }
}
