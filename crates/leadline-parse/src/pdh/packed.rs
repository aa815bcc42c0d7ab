//! Series in as few bytes as hold them exactly.
//!
//! Recorders print numbers with few decimals, so within some dozens of rows a series is a lowest value and whole steps
//! of 0.01 above it, which need a byte or two instead of eight; and many series never change. A piece that is neither
//! is kept as it is. Nothing is rounded: a piece is only packed when unpacking gives back the same bits.

use rayon::prelude::*;

/// Steps that are tried, as their number in one: esxtop prints two decimals, settings have none.
const STEPS: [f64; 5] = [100.0, 1.0, 1e3, 1e6, 10.0];
/// Added and taken away again, this leaves the whole number nearest to any below 2^51.
const ROUNDER: f64 = 6_755_399_441_055_744.0;
const CONSTANT: u8 = 0;
const PLAIN: u8 = 8;
const NUMBER_BYTES: usize = size_of::<f64>();
/// Columns turned over together: one cache line of row-major values.
const TILE_COLUMNS: usize = 8;

/// A number as it is handed out: 8 bytes, or 4 where 24 bits are enough.
pub trait Value: Copy + Send + Sync + 'static {
    /// Not measured.
    const MISSING: Self;
    /// Rounds where needed.
    fn from_number(number: f64) -> Self;
}

impl Value for f64 {
    const MISSING: Self = Self::NAN;
    #[inline]
    fn from_number(number: f64) -> Self {
        number
    }
}

impl Value for f32 {
    const MISSING: Self = Self::NAN;
    // Rounding to 24 bits is what the caller of this type asks for.
    #[allow(clippy::cast_possible_truncation)]
    #[inline]
    fn from_number(number: f64) -> Self {
        number as Self
    }
}

/// The same rows of every series.
#[derive(Debug)]
pub struct Block {
    rows: usize,
    /// Where the piece of each series begins.
    starts: Box<[u32]>,
    bytes: Box<[u8]>,
}

/// Packs blocks; one per worker, its room is kept between blocks.
#[derive(Debug, Default)]
pub struct Packer {
    turned: Vec<f64>,
    bytes: Vec<u8>,
}

impl Packer {
    /// Packs `rows` rows of `width` values, row after row in `values`.
    pub fn pack(&mut self, values: &[f64], rows: usize, width: usize) -> Block {
        self.bytes.clear();
        self.turned.resize(TILE_COLUMNS * rows, 0.0);
        let mut starts = Vec::with_capacity(width);
        for tile in (0..width).step_by(TILE_COLUMNS) {
            let count = TILE_COLUMNS.min(width - tile);
            for (i, row) in values.chunks_exact(width).take(rows).enumerate() {
                for (k, value) in row[tile..tile + count].iter().enumerate() {
                    self.turned[k * rows + i] = *value;
                }
            }
            for k in 0..count {
                starts.push(u32::try_from(self.bytes.len()).unwrap_or(u32::MAX));
                pack_piece(&self.turned[k * rows..(k + 1) * rows], &mut self.bytes);
            }
        }
        Block {
            rows,
            starts: starts.into(),
            bytes: self.bytes.as_slice().into(),
        }
    }
}

/// Series in blocks of rows.
#[derive(Debug, Default)]
pub struct Packed {
    blocks: Vec<Block>,
    rows: usize,
    width: usize,
}

impl Packed {
    /// Blocks of `width` series in the order of their rows.
    #[must_use]
    pub fn new(blocks: Vec<Block>, width: usize) -> Self {
        let rows = blocks.iter().map(|block| block.rows).sum();
        Self {
            blocks,
            rows,
            width,
        }
    }

    /// Samples of each series.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// How many series there are.
    #[must_use]
    pub fn width(&self) -> usize {
        self.width
    }

    /// Bytes the values take.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        let of = |block: &Block| block.bytes.len() + size_of_val(&*block.starts);
        self.blocks.iter().map(of).sum()
    }

    /// Unpacks the given series (each below the width) into `out`, one after the other.
    pub fn unpack<T: Value>(&self, series: &[u32], out: &mut [T]) {
        if self.rows == 0 {
            return;
        }
        out.par_chunks_mut(self.rows)
            .zip(series)
            .for_each(|(room, column)| {
                let mut room = room;
                for block in &self.blocks {
                    let (piece, rest) = room.split_at_mut(block.rows.min(room.len()));
                    unpack_piece(
                        &block.bytes[block.starts[*column as usize] as usize..],
                        piece,
                    );
                    room = rest;
                }
            });
    }

    /// Every series, one after the other. For tests and small recordings.
    #[must_use]
    pub fn values<T: Value>(&self) -> Vec<T> {
        let series: Vec<u32> = (0..).take(self.width).collect();
        let mut values = vec![T::MISSING; self.width * self.rows];
        self.unpack(&series, &mut values);
        values
    }
}

fn pack_piece(values: &[f64], out: &mut Vec<u8>) {
    let Some(first) = values.first() else { return };
    if values.iter().all(|v| v.to_bits() == first.to_bits()) {
        out.push(CONSTANT);
        out.extend(first.to_le_bytes());
        return;
    }
    for (index, per_one) in (0_u8..).zip(STEPS) {
        let Some((low, width)) = steps_of(values, per_one) else {
            continue;
        };
        out.extend([width, index]);
        out.extend(low.to_le_bytes());
        match width {
            1 => push_codes::<1>(values, per_one, low, out),
            2 => push_codes::<2>(values, per_one, low, out),
            3 => push_codes::<3>(values, per_one, low, out),
            _ => push_codes::<4>(values, per_one, low, out),
        }
        return;
    }
    out.push(PLAIN);
    out.extend(values.iter().flat_map(|v| v.to_le_bytes()));
}

#[inline]
fn step_of(value: f64, per_one: f64) -> f64 {
    (value * per_one + ROUNDER) - ROUNDER
}

/// The lowest step and the bytes a step above it takes, when every value is exactly a whole number of steps.
fn steps_of(values: &[f64], per_one: f64) -> Option<(f64, u8)> {
    let missing = f64::NAN.to_bits();
    let (mut low, mut high, mut fits) = (f64::INFINITY, f64::NEG_INFINITY, true);
    for part in values.chunks(64) {
        for value in part {
            let step = step_of(*value, per_one);
            let same = (step / per_one).to_bits() == value.to_bits();
            fits &= same | (value.to_bits() == missing);
            low = if step < low { step } else { low };
            high = if step > high { step } else { high };
        }
        if !fits {
            return None;
        }
    }
    // The highest code of a width means "not measured".
    let span = high - low;
    (1_u8..=4)
        .find(|width| span < f64::from(1_u32 << (8 * (u32::from(*width) - 1))) * 256.0 - 1.0)
        .map(|width| (low, width))
}

// Codes are whole, not negative, and below 256^WIDTH.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn push_codes<const WIDTH: usize>(values: &[f64], per_one: f64, low: f64, out: &mut Vec<u8>) {
    let from = out.len();
    out.resize(from + WIDTH * values.len(), 0);
    for (room, value) in out[from..].chunks_exact_mut(WIDTH).zip(values) {
        let code = if value.is_nan() {
            u32::MAX
        } else {
            (step_of(*value, per_one) - low) as u32
        };
        room.copy_from_slice(&code.to_le_bytes()[..WIDTH]);
    }
}

fn unpack_piece<T: Value>(piece: &[u8], out: &mut [T]) {
    match piece.first() {
        Some(&CONSTANT) => out.fill(T::from_number(number_at(piece, 1))),
        Some(&PLAIN) => {
            for (room, bytes) in out.iter_mut().zip(piece[1..].chunks_exact(NUMBER_BYTES)) {
                *room = T::from_number(number_at(bytes, 0));
            }
        }
        Some(&width) => {
            let per_one = STEPS[usize::from(piece[1])];
            let low = number_at(piece, 2);
            let codes = &piece[2 + NUMBER_BYTES..];
            match width {
                1 => pull_codes::<1, T>(codes, per_one, low, out),
                2 => pull_codes::<2, T>(codes, per_one, low, out),
                3 => pull_codes::<3, T>(codes, per_one, low, out),
                _ => pull_codes::<4, T>(codes, per_one, low, out),
            }
        }
        None => {}
    }
}

#[inline]
fn pull_codes<const WIDTH: usize, T: Value>(codes: &[u8], per_one: f64, low: f64, out: &mut [T]) {
    let missing = u32::MAX >> (32 - 8 * WIDTH);
    for (room, bytes) in out.iter_mut().zip(codes.chunks_exact(WIDTH)) {
        let mut wide = [0; 4];
        wide[..WIDTH].copy_from_slice(bytes);
        let code = u32::from_le_bytes(wide);
        *room = if code == missing {
            T::MISSING
        } else {
            T::from_number((low + f64::from(code)) / per_one)
        };
    }
}

fn number_at(bytes: &[u8], at: usize) -> f64 {
    let mut number = [0; NUMBER_BYTES];
    number.copy_from_slice(&bytes[at..at + NUMBER_BYTES]);
    f64::from_le_bytes(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn round_trip(columns: &[Vec<f64>], block_rows: usize) -> Packed {
        let width = columns.len();
        let rows = columns[0].len();
        let mut packer = Packer::default();
        let mut blocks = Vec::new();
        for from in (0..rows).step_by(block_rows) {
            let to = rows.min(from + block_rows);
            let values: Vec<f64> = (from..to)
                .flat_map(|row| columns.iter().map(move |column| column[row]))
                .collect();
            blocks.push(packer.pack(&values, to - from, width));
        }
        let whole = Packed::new(blocks, width);
        let bits = |values: &[f64]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        for (index, column) in (0..).zip(columns) {
            let mut series = vec![0.0; rows];
            whole.unpack(&[index], &mut series);
            assert_eq!(bits(&series), bits(column));
        }
        whole
    }

    #[test]
    fn two_decimals_take_a_byte_or_two() {
        let column = |scale: i32| -> Vec<f64> {
            let steps = (0..1000).map(|i| i * 7 % 250 * scale);
            steps.map(|step| f64::from(step) / 100.0).collect()
        };
        let (few, more) = (column(1), column(100));
        let same = vec![12.34; 1000];
        assert!(round_trip(&[few], 100).size_bytes() < 1200);
        assert!(round_trip(&[more], 100).size_bytes() < 2200);
        assert!(round_trip(&[same], 100).size_bytes() < 200);
    }

    #[test]
    fn odd_values_come_back_as_they_were() {
        let odd = [
            0.0,
            -0.0,
            f64::NAN,
            -1.0,
            0.01,
            655.35,
            167_772.15,
            42_949_672.95,
            42_949_672.96,
            1e15,
            9_007_199_254_740_993.0,
            1e300,
            -1e300,
            0.1 + 0.2,
            1.0 / 3.0,
            5e-324,
            f64::INFINITY,
        ];
        for (i, first) in odd.iter().enumerate() {
            for second in &odd[i..] {
                round_trip(&[vec![*first, *second, *first], vec![*second; 3]], 2);
            }
        }
    }

    proptest! {
        #[test]
        fn any_series_comes_back(
            cells in prop::collection::vec(
                prop_oneof![
                    (-100_000_i32..1_000_000).prop_map(|n| f64::from(n) / 100.0),
                    (0_i32..300).prop_map(|n| f64::from(n) / 100.0),
                    any::<f64>().prop_map(|v| if v.is_nan() { f64::NAN } else { v }),
                    Just(f64::NAN),
                    (0_i64..1 << 50).prop_map(|n| n as f64 / 1e6),
                ],
                1..300,
            ),
            width in 1_usize..12,
            block_rows in 1_usize..70,
        ) {
            let rows = cells.len().div_ceil(width);
            let columns: Vec<Vec<f64>> = (0..width)
                .map(|c| (0..rows).map(|r| cells[(r * width + c) % cells.len()]).collect())
                .collect();
            round_trip(&columns, block_rows);
        }
    }
}
