//! Numbers in four bytes each, without loss.
//!
//! nmon prints few digits: a number is kept as its digits and how many of them are decimals. What needs more is kept
//! apart as a 64-bit float.

const DIGIT_BITS: u32 = 29;
const DIGITS_MAX: u64 = (1 << DIGIT_BITS) - 1;
const DECIMALS_MAX: u32 = 6;
/// In place of the number of decimals: the digits are the place among the long numbers.
const IS_LONG: u32 = 7;
const POWERS: [f64; 7] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6];
const NOT_MEASURED: u32 = u32::MAX;

/// A growing list of numbers.
#[derive(Clone, Debug, Default)]
pub struct Cells {
    packed: Vec<u32>,
    long: Vec<f64>,
}

impl Cells {
    /// Makes room for so many numbers at once: growing bit by bit would leave holes in memory.
    pub fn reserve(&mut self, count: usize) {
        self.packed.reserve_exact(count);
    }

    /// How many numbers.
    pub fn len(&self) -> usize {
        self.packed.len()
    }

    /// Forgets all but the first so many numbers.
    pub fn truncate(&mut self, count: usize) {
        self.packed.truncate(count);
    }

    /// Adds a cell; false when it is no number. An empty cell, a negative number and what is not finite are NaN.
    pub fn push(&mut self, cell: &[u8]) -> bool {
        if let Some(packed) = short(cell) {
            self.packed.push(packed);
            return true;
        }
        if cell.is_empty() {
            self.packed.push(NOT_MEASURED);
            return true;
        }
        let Some(value) = std::str::from_utf8(cell)
            .ok()
            .and_then(|text| text.parse::<f64>().ok())
        else {
            return false;
        };
        let place = u32::try_from(self.long.len()).unwrap_or(u32::MAX);
        if !value.is_finite() || cell[0] == b'-' || u64::from(place) >= DIGITS_MAX {
            self.packed.push(NOT_MEASURED);
        } else {
            self.long.push(value);
            self.packed.push(IS_LONG << DIGIT_BITS | place);
        }
        true
    }

    /// The numbers in order.
    pub fn values(&self) -> impl Iterator<Item = f64> + '_ {
        self.packed.iter().map(|&packed| {
            let (decimals, digits) = (packed >> DIGIT_BITS, packed & ((1 << DIGIT_BITS) - 1));
            if packed == NOT_MEASURED {
                f64::NAN
            } else if decimals == IS_LONG {
                self.long[digits as usize]
            } else {
                f64::from(digits) / POWERS[decimals as usize]
            }
        })
    }
}

/// A number of few digits, packed; both parts are exact, so that their quotient is the float nearest to the text.
fn short(cell: &[u8]) -> Option<u32> {
    let (mut digits, mut decimals, mut has_point, mut has_digit) = (0u64, 0, false, false);
    for &byte in cell {
        let digit = byte.wrapping_sub(b'0');
        if digit < 10 {
            digits = digits * 10 + u64::from(digit);
            decimals += u32::from(has_point);
            has_digit = true;
        } else if byte == b'.' && !has_point {
            has_point = true;
        } else {
            return None;
        }
        if digits > DIGITS_MAX || decimals > DECIMALS_MAX {
            return None;
        }
    }
    let digits = u32::try_from(digits).ok()?;
    has_digit.then_some(decimals << DIGIT_BITS | digits)
}

#[cfg(test)]
mod tests {
    use super::Cells;
    use proptest::prelude::*;

    fn value(text: &str) -> Option<f64> {
        let mut cells = Cells::default();
        cells
            .push(text.as_bytes())
            .then(|| cells.values().next())
            .flatten()
    }

    #[test]
    fn what_is_not_measured_is_nan() {
        for text in ["", "-1.0", "-0.0", "nan", "inf", "-inf", "1e999"] {
            assert!(value(text).is_some_and(f64::is_nan), "{text}");
        }
        for text in ["x", ".", "1.2.3", "-", "0x1"] {
            assert_eq!(value(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_number_is_the_float_nearest_to_its_text(text in "[0-9]{1,12}(\\.[0-9]{0,9})?(e[0-9])?") {
            prop_assert_eq!(value(&text), text.parse().ok());
        }
    }
}
