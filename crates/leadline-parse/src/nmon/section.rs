//! The rows of one kind of line.

use std::collections::HashMap;

use super::cells::Cells;
use super::trimmed;

/// A piece of rows is closed at so many numbers, so that growing never copies much.
const PIECE_LENGTH: usize = 1 << 16;
const BITS: usize = 64;

/// Why a row cannot be.
#[derive(Debug)]
pub(super) enum RowProblem {
    /// It has so many values where its heading names so many.
    Width(usize, usize),
    /// The snapshot has such a row already.
    Twice,
    /// A cell is no number.
    Number(Vec<u8>),
}

/// Rows under one heading.
#[derive(Clone, Debug, Default)]
struct Piece {
    /// For each cell of a row, its column.
    columns: Vec<usize>,
    snapshots: Vec<usize>,
    cells: Cells,
}

/// The rows of one kind of line; a repeated heading may add columns.
#[derive(Clone, Debug, Default)]
pub struct Section {
    names: Vec<String>,
    column_by_name: HashMap<String, usize>,
    pieces: Vec<Piece>,
    /// A bit for each snapshot that has a row.
    has_row: Vec<u64>,
}

impl Section {
    /// Takes in a heading; false when it names a column twice.
    pub fn head(&mut self, names: &[String]) -> bool {
        let mut columns = Vec::with_capacity(names.len());
        let mut is_there = vec![false; self.names.len() + names.len()];
        for name in names {
            let next = self.names.len();
            let column = *self.column_by_name.entry(name.clone()).or_insert(next);
            if column == next {
                self.names.push(name.clone());
            }
            if std::mem::replace(&mut is_there[column], true) {
                return false;
            }
            columns.push(column);
        }
        self.pieces.push(Piece {
            columns,
            ..Piece::default()
        });
        true
    }

    /// Takes in the cells of a snapshot; None where the line ends after its name.
    pub(super) fn row(
        &mut self,
        snapshot_index: usize,
        cells: Option<&[u8]>,
    ) -> Result<(), RowProblem> {
        if self
            .pieces
            .last()
            .is_some_and(|piece| piece.cells.len() >= PIECE_LENGTH)
        {
            let columns = self.pieces[self.pieces.len() - 1].columns.clone();
            self.pieces.push(Piece {
                columns,
                ..Piece::default()
            });
        }
        let width = self.pieces.last().map_or(0, |piece| piece.columns.len());
        let row = cells.map(|cells| cells.split(|byte| *byte == b',').map(trimmed));
        let mut count = row.iter().cloned().flatten().count();
        if count > width {
            let rest: Vec<_> = row.iter().cloned().flatten().skip(width).collect();
            count -= rest.iter().rev().take_while(|cell| cell.is_empty()).count();
        }
        if count != width || width == 0 {
            return Err(RowProblem::Width(count, width));
        }
        let (word, bit) = (snapshot_index / BITS, 1 << (snapshot_index % BITS));
        if word >= self.has_row.len() {
            self.has_row.resize(word + 1, 0);
        }
        if self.has_row[word] & bit != 0 {
            return Err(RowProblem::Twice);
        }
        if let Some(piece) = self.pieces.last_mut() {
            let length = piece.cells.len();
            if length == 0 {
                piece.cells.reserve(PIECE_LENGTH + width);
            }
            for cell in row.into_iter().flatten().take(width) {
                if !piece.cells.push(cell) {
                    piece.cells.truncate(length);
                    return Err(RowProblem::Number(cell.to_vec()));
                }
            }
            piece.snapshots.push(snapshot_index);
        }
        self.has_row[word] |= bit;
        Ok(())
    }

    /// The names of all columns.
    #[must_use]
    pub fn columns(&self) -> &[String] {
        &self.names
    }

    /// Whether a snapshot has a row.
    #[must_use]
    pub fn has_row(&self, snapshot_index: usize) -> bool {
        let word = self.has_row.get(snapshot_index / BITS);
        word.is_some_and(|word| word & (1 << (snapshot_index % BITS)) != 0)
    }

    /// Gives up the rows as values [columns, length], row-major, NaN where there is none.
    ///
    /// `places` says for each snapshot where it stands among the `length`; None leaves it out.
    pub fn take_values(&mut self, places: &[Option<usize>], length: usize) -> Vec<f64> {
        let mut values = vec![f64::NAN; self.names.len() * length];
        for piece in std::mem::take(&mut self.pieces) {
            let mut cells = piece.cells.values();
            for snapshot in piece.snapshots {
                let place = places.get(snapshot).copied().flatten();
                for (column, value) in piece.columns.iter().zip(cells.by_ref()) {
                    if let Some(place) = place.filter(|place| *place < length) {
                        values[column * length + place] = value;
                    }
                }
            }
        }
        values
    }
}
