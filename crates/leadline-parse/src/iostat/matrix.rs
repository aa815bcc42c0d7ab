//! Values of one field: a row per device, a column per report, grown while reading.
//!
//! Numbers are kept in 32 bits as long as these tell every printed number apart, which iostat's two decimals nearly
//! always allow; the first that needs more turns its field into 64 bits. A buffer's unused tail is fresh memory of the
//! operating system that is never touched, so it costs address space only.

/// The buffer of a field, row-major with a stride of `Matrix::stride`.
#[derive(Clone, Debug)]
pub enum Cells {
    /// Every printed number is kept apart by 32 bits.
    Narrow(Vec<f32>),
    /// Some printed number needs 64.
    Wide(Vec<f64>),
}

/// Values [device, report]; NaN is "not printed".
#[derive(Clone, Debug)]
pub struct Matrix {
    cells: Cells,
    stride: usize,
    /// Per device, columns written so far.
    filled: Vec<usize>,
}

const FIRST_COLUMNS: usize = 64;
const FIRST_ROWS: usize = 4;

impl Default for Matrix {
    fn default() -> Self {
        Self {
            cells: Cells::Narrow(Vec::new()),
            stride: 0,
            filled: Vec::new(),
        }
    }
}

impl Matrix {
    /// Whether no value was ever set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.filled.iter().all(|columns| *columns == 0)
    }

    /// Sets one value. `narrow` says that 32 bits keep it apart; `columns` is how many reports to expect in all.
    /// A value of more digits stays narrow only when widening leads back to it.
    #[inline]
    pub fn set(&mut self, (row, column): (usize, usize), value: f64, narrow: bool, columns: usize) {
        if row >= self.filled.len() || column >= self.stride {
            self.grow(row, column, columns);
        }
        let start = row * self.stride;
        let (from, to) = (start + self.filled[row], start + column);
        if let Cells::Narrow(cells) = &mut self.cells {
            #[allow(clippy::cast_possible_truncation)]
            let short = value as f32;
            #[allow(clippy::float_cmp)]
            if narrow || (f64::from(short) == value && shortest(short) == value) {
                if from < to {
                    cells[from..to].fill(f32::NAN);
                }
                cells[to] = short;
                self.filled[row] = self.filled[row].max(column + 1);
                return;
            }
            self.widen();
        }
        if let Cells::Wide(cells) = &mut self.cells {
            if from < to {
                cells[from..to].fill(f64::NAN);
            }
            cells[to] = value;
        }
        self.filled[row] = self.filled[row].max(column + 1);
    }

    /// Makes every row `columns` long, filling what was never set, and `rows` rows; gives up the buffer, which has
    /// a whole number of rows of `stride` cells.
    #[must_use]
    pub fn finish(mut self, rows: usize, columns: usize) -> (Cells, usize) {
        if rows > 0 && columns > 0 && (rows > self.filled.len() || columns > self.stride) {
            self.grow(rows - 1, columns - 1, columns);
        }
        for row in 0..rows.min(self.filled.len()) {
            let start = row * self.stride;
            let range = start + self.filled[row].min(columns)..start + columns;
            match &mut self.cells {
                Cells::Narrow(cells) => cells[range].fill(f32::NAN),
                Cells::Wide(cells) => cells[range].fill(f64::NAN),
            }
        }
        (self.cells, self.stride)
    }

    #[cold]
    fn grow(&mut self, row: usize, column: usize, expected: usize) {
        let stride = if column < self.stride {
            self.stride
        } else {
            (column + 1)
                .max(self.stride * 2)
                .max(expected)
                .max(FIRST_COLUMNS)
        };
        let held = self.filled.len();
        let rows = if row < held {
            held
        } else {
            (row + 1).max(held * 2).max(FIRST_ROWS)
        };
        match &mut self.cells {
            Cells::Narrow(cells) => *cells = moved(cells, self.stride, &self.filled, rows, stride),
            Cells::Wide(cells) => *cells = moved(cells, self.stride, &self.filled, rows, stride),
        }
        self.stride = stride;
        self.filled.resize(rows, 0);
    }

    #[cold]
    fn widen(&mut self) {
        if let Cells::Narrow(cells) = &self.cells {
            let mut wide = vec![0f64; cells.len()];
            for (row, filled) in self.filled.iter().enumerate() {
                let range = row * self.stride..row * self.stride + filled;
                for (to, from) in wide[range.clone()].iter_mut().zip(&cells[range]) {
                    *to = shortest(*from);
                }
            }
            self.cells = Cells::Wide(wide);
        }
    }
}

/// The 64-bit number with the digits that were printed: 32 bits hold a neighbour of it, which the fewest digits that
/// lead back to it tell.
fn shortest(value: f32) -> f64 {
    let hundredths = (f64::from(value) * 100.0).round() / 100.0;
    #[allow(clippy::cast_possible_truncation, clippy::float_cmp)]
    if hundredths as f32 == value || value.is_nan() {
        return if value.is_nan() { f64::NAN } else { hundredths };
    }
    value
        .to_string()
        .parse()
        .unwrap_or_else(|_| f64::from(value))
}

fn moved<T: Copy + Default>(
    cells: &[T],
    stride: usize,
    filled: &[usize],
    rows: usize,
    new_stride: usize,
) -> Vec<T>
where
    Vec<T>: Zeroed,
{
    let mut grown = <Vec<T> as Zeroed>::zeroed(rows * new_stride);
    for (row, filled) in filled.iter().enumerate() {
        let (from, to) = (row * stride, row * new_stride);
        grown[to..to + filled].copy_from_slice(&cells[from..from + filled]);
    }
    grown
}

/// Vectors that the allocator hands out as untouched zero pages.
trait Zeroed {
    fn zeroed(length: usize) -> Self;
}

impl Zeroed for Vec<f32> {
    fn zeroed(length: usize) -> Self {
        vec![0.0; length]
    }
}

impl Zeroed for Vec<f64> {
    fn zeroed(length: usize) -> Self {
        vec![0.0; length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(matrix: Matrix, rows: usize, columns: usize) -> Vec<Vec<f64>> {
        let (cells, stride) = matrix.finish(rows, columns);
        let all: Vec<f64> = match cells {
            Cells::Narrow(cells) => cells.into_iter().map(f64::from).collect(),
            Cells::Wide(cells) => cells,
        };
        (0..rows)
            .map(|row| all[row * stride..row * stride + columns].to_vec())
            .collect()
    }

    #[test]
    fn what_was_never_set_is_nan() {
        let mut matrix = Matrix::default();
        matrix.set((0, 1), 1.0, true, 2);
        matrix.set((5, 100), 2.0, true, 2);
        let got = rows(matrix, 6, 102);
        assert!(got[0][0].is_nan() && got[0][2].is_nan() && got[1].iter().all(|v| v.is_nan()));
        assert_eq!((got[0][1], got[5][100]), (1.0, 2.0));
    }

    #[test]
    fn a_number_too_long_for_32_bits_widens_the_field_without_loss() {
        let mut matrix = Matrix::default();
        matrix.set((0, 0), 0.1, true, 2);
        matrix.set((0, 1), 167_772.17, false, 2);
        assert_eq!(rows(matrix, 1, 2), vec![vec![0.1, 167_772.17]]);
    }

    #[test]
    fn columns_beyond_the_last_are_cut_off() {
        let mut matrix = Matrix::default();
        for column in 0..300 {
            matrix.set((0, column), column as f64, true, 0);
        }
        assert_eq!(rows(matrix, 1, 3), vec![vec![0.0, 1.0, 2.0]]);
    }
}
