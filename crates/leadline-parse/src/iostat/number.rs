//! One cell of a report: a decimal number with a point or a comma, and the unit letter `--human` appends.

/// Decimal digits a 32-bit float keeps apart at every scale iostat prints (0 to 7 decimals).
const NARROW_MANTISSA: u64 = 10_000_000;
/// Digits a 64-bit mantissa holds whatever they are.
const DIGITS_MAX: usize = 18;

const POWERS: [f64; 19] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18,
];

/// A number as it was printed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    /// Its value without the unit letter; NaN where iostat printed `nan` or `inf`.
    pub value: f64,
    /// Digits after the point or comma.
    pub decimals: u8,
    /// The letter behind it, 0 if there is none; `%` counts as none.
    pub suffix: u8,
    /// Whether a 32-bit float tells it from its neighbours at the printed precision.
    pub narrow: bool,
}

/// Whether a byte separates cells.
#[must_use]
pub const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r')
}

/// The position of the first non-blank byte at or after `at`.
#[must_use]
pub fn skip_blanks(line: &[u8], mut at: usize) -> usize {
    while at < line.len() && is_blank(line[at]) {
        at += 1;
    }
    at
}

/// The position of the first blank at or after `at`.
#[must_use]
pub fn skip_word(line: &[u8], mut at: usize) -> usize {
    while at < line.len() && !is_blank(line[at]) {
        at += 1;
    }
    at
}

/// Reads the cell that begins at `at` and ends at a blank or the end of the line; None when it is no number.
#[must_use]
#[inline]
pub fn read_cell(line: &[u8], at: usize) -> Option<(Cell, usize)> {
    let negative = line.get(at) == Some(&b'-');
    let first = at + usize::from(negative);
    let (mut mantissa, mut digits, mut decimals, mut pos) = (0u64, 0usize, 0u8, first);
    let mut point = false;
    while let Some(&byte) = line.get(pos) {
        let digit = byte.wrapping_sub(b'0');
        if digit < 10 {
            mantissa = mantissa.wrapping_mul(10).wrapping_add(u64::from(digit));
            digits += 1;
            decimals += u8::from(point);
        } else if (byte == b'.' || byte == b',') && !point {
            point = true;
        } else {
            break;
        }
        if digits > DIGITS_MAX {
            return None;
        }
        pos += 1;
    }
    if digits == 0 {
        return not_a_number(line, first);
    }
    let mut suffix = 0;
    if let Some(&byte) = line.get(pos).filter(|byte| !is_blank(**byte)) {
        if byte != b'%' && !byte.is_ascii_alphabetic() {
            return None;
        }
        suffix = if byte == b'%' { 0 } else { byte };
        pos += 1;
        if pos < line.len() && !is_blank(line[pos]) {
            return None;
        }
    }
    let size = mantissa as f64 / POWERS[usize::from(decimals)];
    let value = if negative { -size } else { size };
    Some((
        Cell {
            value,
            decimals,
            suffix,
            narrow: mantissa < NARROW_MANTISSA,
        },
        pos,
    ))
}

#[cold]
fn not_a_number(line: &[u8], at: usize) -> Option<(Cell, usize)> {
    let end = skip_word(line, at);
    let word = line.get(at..end)?;
    let known = word.eq_ignore_ascii_case(b"nan") || word.eq_ignore_ascii_case(b"inf");
    known.then_some((
        Cell {
            value: f64::NAN,
            decimals: 2,
            suffix: 0,
            narrow: true,
        },
        end,
    ))
}

/// Bytes per unit of a column whose cells may carry a unit letter; None for columns that are not sizes.
#[must_use]
pub fn unit_bytes(field: &str) -> Option<f64> {
    if field.contains("kB") || (field.ends_with("q-sz") && field != "avgrq-sz") {
        Some(1024.0)
    } else if field.contains("MB") {
        Some(1024.0 * 1024.0)
    } else if field.starts_with("Blk_") || field.ends_with("sec/s") {
        Some(512.0)
    } else {
        None
    }
}

/// Bytes a unit letter of `--human` stands for.
#[must_use]
pub fn suffix_bytes(suffix: u8) -> Option<f64> {
    let power = match suffix {
        b's' => return Some(512.0),
        b'B' => 0,
        b'k' => 1,
        b'M' => 2,
        b'G' => 3,
        b'T' => 4,
        b'P' => 5,
        _ => return None,
    };
    Some(1024f64.powi(power))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Option<f64> {
        read_cell(text.as_bytes(), 0).map(|(cell, _)| cell.value)
    }

    #[test]
    fn points_and_commas_are_the_same() {
        assert_eq!(value("1408.66"), Some(1408.66));
        assert_eq!(value("1408,66"), Some(1408.66));
        assert_eq!(value("-0.50"), Some(-0.5));
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in ["", "-", "x", "1.2.3", "12kB", "1;2", "1234567890123456789"] {
            assert_eq!(value(text), None, "{text}");
        }
    }

    #[test]
    fn nan_is_not_measured() {
        assert!(value("-nan").is_some_and(f64::is_nan));
    }

    #[test]
    fn a_percent_sign_is_no_unit_letter() {
        let read = read_cell(b"85.9% ", 0).map(|(cell, end)| (cell.suffix, cell.decimals, end));
        assert_eq!(read, Some((0, 1, 5)));
    }

    #[test]
    fn narrow_numbers_come_back_at_their_printed_precision() {
        for (text, narrow) in [("99999.99", true), ("167772.17", false), ("9999999", true)] {
            let cell = read_cell(text.as_bytes(), 0).map(|(cell, _)| cell);
            assert_eq!(cell.map(|c| c.narrow), Some(narrow), "{text}");
        }
    }
}
