//! Values of the selected columns, one contiguous series per column.
//!
//! Rows are parsed in blocks by all workers at once. A block is parsed row by row into a small row-major scratch and
//! then turned over into its place in the result, so that writes to the result fill whole cache lines.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::lines::{Index, Row, Task, interrupted};
use super::number::short_number;
use super::row::{Fit, RowCutter, trimmed_length};
use super::tally::Tally;
use super::warnings::Warnings;
use crate::error::ParseError;

/// Scratch per worker. Judgement: larger scratch saves cache misses, but counts towards peak memory.
const SCRATCH_BYTES: usize = 2 << 20;
/// Text read at once by a worker; a longer row is read alone.
const BATCH_BYTES: u64 = 256 << 10;
const BLOCK_ROWS_MAX: usize = 1024;
/// Text between two calls of `progress`.
const SLAB_BYTES: u64 = 512 << 20;
/// Columns turned over together: one cache line of scratch.
const TILE_COLUMNS: usize = 8;

/// A number as it is kept: 8 bytes, or 4 where 24 bits are enough.
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

/// What to read.
#[derive(Clone, Copy, Debug)]
pub struct Selection<'a> {
    /// Columns, in the order wanted; each below the number of columns.
    pub columns: &'a [u32],
    /// Per selected column, whether -1 and -3 mean "not available". Empty: in none.
    pub sentinels: &'a [bool],
    /// First instant wanted, nanoseconds since the epoch.
    pub start_ns: Option<i64>,
    /// First instant no longer wanted.
    pub end_ns: Option<i64>,
}

/// Series of the selected columns.
#[derive(Debug)]
pub struct Table<T> {
    /// Per row, nanoseconds since the epoch, UTC.
    pub times_ns: Vec<i64>,
    /// Column after column, each as long as `times_ns`; NaN is "not measured".
    pub values: Vec<T>,
    /// What was repaired in the selected cells.
    pub warnings: Warnings,
}

/// Reads the selected columns of all rows in `index`. `progress(done, total)` returns false to stop.
///
/// # Errors
/// When a row has other cells than the header, the file became shorter, or the result does not fit into memory.
pub fn read_table<T: Value>(
    task: &Task<'_>,
    index: &Index,
    selection: &Selection<'_>,
    progress: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<Table<T>, ParseError> {
    let inside = |t: i64| {
        selection.start_ns.is_none_or(|s| t >= s) && selection.end_ns.is_none_or(|e| t < e)
    };
    let (rows, times_ns): (Vec<Row>, Vec<i64>) = index
        .rows
        .iter()
        .zip(&index.times_ns)
        .filter(|(_, t)| inside(**t))
        .map(|(r, t)| (*r, *t))
        .unzip();
    let mut values = allocate::<T>(task, selection.columns.len(), rows.len())?;
    let target = Target {
        start: values.spare_capacity_mut().as_mut_ptr(),
        stride: rows.len(),
    };
    let scratch_row_bytes = (selection.columns.len() * size_of::<T>()).max(1);
    let block_rows = (SCRATCH_BYTES / scratch_row_bytes).clamp(8, BLOCK_ROWS_MAX) & !7;
    let job = Job {
        task,
        selection,
        rows: &rows,
        quoted: index.quoted,
        target,
        block_rows,
    };
    let mut tally = Tally::default();
    let total = rows.iter().map(|r| u64::from(r.length)).sum();
    let (mut next, mut done) = (0, 0);
    while next < rows.len() {
        let (slab_end, slab_bytes) = job.slab(next);
        job.run(next, slab_end, &mut tally)?;
        next = slab_end;
        done += slab_bytes;
        if !progress(done, total) {
            return Err(interrupted(task.source));
        }
    }
    // SAFETY: `allocate` reserved columns * rows values, and the loop wrote each block of every row in 0..rows.len().
    unsafe { values.set_len(selection.columns.len() * rows.len()) };
    Ok(Table {
        times_ns,
        values,
        warnings: tally.into_warnings(),
    })
}

/// Room for the result. Large pages save most of the page faults and address look-ups of a result this size.
fn allocate<T: Value>(task: &Task<'_>, columns: usize, rows: usize) -> Result<Vec<T>, ParseError> {
    let mut values = Vec::new();
    let size = columns
        .checked_mul(rows)
        .filter(|n| values.try_reserve_exact(*n).is_ok());
    if size.is_none() {
        return Err(ParseError::new(
            &*task.source.name,
            format!("{columns} columns of {rows} rows"),
            "a selection that fits into memory",
            "Select fewer columns or a shorter time window.",
        ));
    }
    #[cfg(target_os = "linux")]
    advise_large_pages(values.spare_capacity_mut());
    Ok(values)
}

#[cfg(target_os = "linux")]
fn advise_large_pages<T>(room: &mut [MaybeUninit<T>]) {
    const PAGE: usize = 4096;
    let start = (room.as_mut_ptr() as usize).next_multiple_of(PAGE);
    let end = room.as_mut_ptr_range().end as usize & !(PAGE - 1);
    if end.saturating_sub(start) >= 4 << 20 {
        // SAFETY: the range is whole pages inside an allocation we own; the advice changes no contents. A kernel
        // without large pages refuses, which costs only speed.
        unsafe { libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_HUGEPAGE) };
    }
}

/// Where the result lies. Workers write to disjoint rows of it.
#[derive(Clone, Copy)]
struct Target<T> {
    start: *mut MaybeUninit<T>,
    stride: usize,
}

// SAFETY: workers only write, each to the rows of the block it claimed from a shared counter, so no two touch the same
// element; the owner reads after all have ended.
unsafe impl<T: Value> Sync for Target<T> {}

struct Job<'a, T> {
    task: &'a Task<'a>,
    selection: &'a Selection<'a>,
    rows: &'a [Row],
    quoted: bool,
    target: Target<T>,
    block_rows: usize,
}

impl<T: Value> Job<'_, T> {
    /// The end of the slab of whole blocks that begins at row `from`, and its size.
    fn slab(&self, from: usize) -> (usize, u64) {
        let (mut end, mut bytes) = (from, 0);
        while end < self.rows.len() && bytes < SLAB_BYTES {
            let block = &self.rows[end..self.rows.len().min(end + self.block_rows)];
            bytes += block.iter().map(|r| u64::from(r.length)).sum::<u64>();
            end += block.len();
        }
        (end, bytes)
    }

    /// Parses rows `from..to` with all workers.
    fn run(&self, from: usize, to: usize, tally: &mut Tally) -> Result<(), ParseError> {
        let next = AtomicUsize::new(from);
        let outcome: Mutex<(Tally, Option<(usize, ParseError)>)> = Mutex::default();
        let worker = || {
            let mut worker = Worker::new(self);
            let mut failed = None;
            loop {
                let start = next.fetch_add(self.block_rows, Ordering::Relaxed);
                if start >= to || failed.is_some() {
                    break;
                }
                if let Err(error) = worker.block(start, to.min(start + self.block_rows)) {
                    // Blocks are claimed in order, so the first fault of the file is always reported.
                    next.store(to, Ordering::Relaxed);
                    failed = Some((start, error));
                }
            }
            let part = worker.finish();
            let mut outcome = outcome.lock().unwrap_or_else(PoisonError::into_inner);
            outcome.0.merge(part);
            let earlier = match (&failed, &outcome.1) {
                (Some((mine, _)), Some((other, _))) => mine < other,
                (Some(_), None) => true,
                (None, _) => false,
            };
            if earlier {
                outcome.1 = failed;
            }
        };
        let blocks = (to - from).div_ceil(self.block_rows);
        if blocks <= 1 {
            worker();
        } else {
            rayon::scope(|scope| {
                for _ in 0..rayon::current_num_threads().min(blocks) {
                    scope.spawn(|_| worker());
                }
            });
        }
        let (part, failed) = outcome.into_inner().unwrap_or_else(PoisonError::into_inner);
        tally.merge(part);
        failed.map_or(Ok(()), |(_, error)| Err(error))
    }
}

struct Worker<'a, T> {
    job: &'a Job<'a, T>,
    cutter: RowCutter,
    text: Vec<u8>,
    scratch: Vec<T>,
    tally: Tally,
}

impl<'a, T: Value> Worker<'a, T> {
    fn new(job: &'a Job<'a, T>) -> Self {
        let cutter = RowCutter::new(job.task);
        Self {
            job,
            cutter,
            text: Vec::new(),
            scratch: Vec::new(),
            tally: Tally::default(),
        }
    }

    fn finish(mut self) -> Tally {
        self.tally.commas_missing = self.cutter.commas_missing;
        self.tally.decimal_comma_rows = self.cutter.decimal_comma_rows;
        self.tally
    }

    /// Parses rows `from..to` into the scratch and turns them over into the result.
    fn block(&mut self, from: usize, to: usize) -> Result<(), ParseError> {
        let job = self.job;
        let width = job.selection.columns.len();
        self.scratch.resize(width * (to - from), T::MISSING);
        let mut scratch = std::mem::take(&mut self.scratch);
        let mut text = std::mem::take(&mut self.text);
        let mut first = from;
        while first < to {
            let begin = job.rows[first].start;
            let end_of = |row: &Row| row.start + u64::from(row.length);
            let mut last = first;
            while last + 1 < to && end_of(&job.rows[last + 1]).wrapping_sub(begin) <= BATCH_BYTES {
                last += 1;
            }
            let length = usize::try_from(end_of(&job.rows[last]) - begin).unwrap_or(usize::MAX);
            job.task.source.read_at(begin, length, &mut text)?;
            for (i, row) in job.rows.iter().enumerate().take(last + 1).skip(first) {
                let at = usize::try_from(row.start - begin).unwrap_or(usize::MAX);
                let Some(line) = text.get_mut(at..at + row.length as usize) else {
                    return Err(self.shorter(row));
                };
                let out = &mut scratch[(i - from) * width..(i - from + 1) * width];
                self.row(row, line, out)?;
            }
            first = last + 1;
        }
        self.turn_over(&scratch, from, to - from);
        (self.scratch, self.text) = (scratch, text);
        Ok(())
    }

    fn row(&mut self, row: &Row, line: &mut [u8], out: &mut [T]) -> Result<(), ParseError> {
        let length = trimmed_length(line, self.job.task.layout.separator);
        let line = &mut line[..length];
        match self.cutter.cut(line) {
            Fit::Exact | Fit::Mended => {}
            Fit::Trailing => self.tally.trailing_rows += 1,
            Fit::Cells(cells) => return Err(self.ragged(row, cells)),
        }
        if self.job.quoted {
            self.cells::<true>(row, line, out);
        } else {
            self.cells::<false>(row, line, out);
        }
        Ok(())
    }

    #[inline]
    fn cells<const QUOTED: bool>(&mut self, row: &Row, line: &[u8], out: &mut [T]) {
        let selection = self.job.selection;
        let starts = self.cutter.starts();
        for (j, (value, &column)) in out.iter_mut().zip(selection.columns).enumerate() {
            let cell = column as usize + 1;
            let (start, end) = (starts[cell] as usize, starts[cell + 1] as usize - 1);
            *value = if let Some(number) = short_number::<QUOTED>(line, start, end) {
                T::from_number(number)
            } else {
                let sentinel = selection.sentinels.get(j).copied().unwrap_or(false);
                self.tally
                    .unusual(&line[start..end], sentinel, row.line_number)
            };
        }
    }

    /// Copies the scratch (row after row) to rows `from..from + count` of every series.
    fn turn_over(&self, scratch: &[T], from: usize, count: usize) {
        let width = self.job.selection.columns.len();
        let Target { start, stride } = self.job.target;
        debug_assert!(from + count <= stride && scratch.len() == width * count);
        for tile in (0..width).step_by(TILE_COLUMNS) {
            for column in tile..width.min(tile + TILE_COLUMNS) {
                // SAFETY: the result holds width * stride values and from + count <= stride; rows from..from + count
                // belong to this worker alone (see `Target`). `scratch` holds count rows of width values.
                unsafe {
                    let series = start.add(column * stride + from);
                    for i in 0..count {
                        series
                            .add(i)
                            .write(MaybeUninit::new(*scratch.get_unchecked(i * width + column)));
                    }
                }
            }
        }
    }

    fn ragged(&self, row: &Row, cells: usize) -> ParseError {
        ParseError::new(
            self.job.task.source.place(u64::from(row.line_number)),
            format!("{cells} cells"),
            format!("{} cells, as the header has", self.job.task.columns + 1),
            "Remove the damaged line, or record again, and run the command again.",
        )
    }

    fn shorter(&self, row: &Row) -> ParseError {
        ParseError::new(
            self.job.task.source.place(u64::from(row.line_number)),
            "the end of the file",
            "the row that stood there when reading began",
            "Wait until the file is complete and run the command again.",
        )
    }
}
