//! Values of the selected columns, one contiguous series per column.
//!
//! Rows are parsed in blocks by all workers at once. A block is parsed row by row into a row-major scratch and then
//! packed, series by series, so that the result takes a fraction of the memory of plain numbers.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::lines::{Index, Row, Task, interrupted};
use super::number::short_number;
use super::packed::{Block, Packed, Packer, Value};
use super::row::{Fit, RowCutter, trimmed_length};
use super::tally::Tally;
use super::warnings::Warnings;
use leadline_stats::error::LeadlineError;

/// Scratch of all workers together. Judgement: longer pieces pack better, but scratch counts towards peak memory.
const SCRATCH_BYTES: usize = 48 << 20;
/// Scratch of a worker, whatever their number.
const SCRATCH_BYTES_MIN: usize = 2 << 20;
const SCRATCH_BYTES_MAX: usize = 16 << 20;
/// Text read at once by a worker; a longer row is read alone.
const BATCH_BYTES: u64 = 256 << 10;
const BLOCK_ROWS_MAX: usize = 1024;
/// Text between two calls of `progress`.
const SLAB_BYTES: u64 = 512 << 20;

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
pub struct Table {
    /// Per row, nanoseconds since the epoch, UTC.
    pub times_ns: Vec<i64>,
    /// Column after column, each as long as `times_ns`; NaN is "not measured".
    pub series: Packed,
    /// What was repaired in the selected cells.
    pub warnings: Warnings,
}

/// Reads the selected columns of all rows in `index`. `progress(done, total)` returns false to stop.
///
/// # Errors
/// When a row has other cells than the header, or the file became shorter.
pub fn read_table(
    task: &Task<'_>,
    index: &Index,
    selection: &Selection<'_>,
    progress: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<Table, LeadlineError> {
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
    let width = selection.columns.len();
    let job = Job {
        task,
        selection,
        rows: &rows,
        quoted: index.quoted,
        block_rows: block_rows(width, rayon::current_num_threads()),
    };
    let mut done = Done::default();
    let total = rows.iter().map(|r| u64::from(r.length)).sum();
    let (mut next, mut done_bytes) = (0, 0);
    while next < rows.len() {
        let (slab_end, slab_bytes) = job.slab(next);
        job.run(next, slab_end, &mut done)?;
        next = slab_end;
        done_bytes += slab_bytes;
        if !progress(done_bytes, total) {
            return Err(interrupted(task.source));
        }
    }
    done.blocks.sort_unstable_by_key(|(from, _)| *from);
    let blocks = done.blocks.into_iter().map(|(_, block)| block).collect();
    Ok(Table {
        times_ns,
        series: Packed::new(blocks, width),
        warnings: done.tally.into_warnings(),
    })
}

/// Rows that are parsed and packed together.
fn block_rows(width: usize, workers: usize) -> usize {
    let scratch = (SCRATCH_BYTES / workers.max(1)).clamp(SCRATCH_BYTES_MIN, SCRATCH_BYTES_MAX);
    (scratch / (width * size_of::<f64>()).max(1)).clamp(8, BLOCK_ROWS_MAX) & !7
}

/// What workers have done: blocks by their first row, and what was met in their cells.
#[derive(Debug, Default)]
struct Done {
    blocks: Vec<(usize, Block)>,
    tally: Tally,
}

impl Done {
    fn merge(&mut self, other: Self) {
        self.blocks.extend(other.blocks);
        self.tally.merge(other.tally);
    }
}

struct Job<'a> {
    task: &'a Task<'a>,
    selection: &'a Selection<'a>,
    rows: &'a [Row],
    quoted: bool,
    block_rows: usize,
}

impl Job<'_> {
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
    fn run(&self, from: usize, to: usize, done: &mut Done) -> Result<(), LeadlineError> {
        let next = AtomicUsize::new(from);
        let outcome: Mutex<(Done, Option<(usize, LeadlineError)>)> = Mutex::default();
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
        done.merge(part);
        failed.map_or(Ok(()), |(_, error)| Err(error))
    }
}

struct Worker<'a> {
    job: &'a Job<'a>,
    cutter: RowCutter,
    text: Vec<u8>,
    scratch: Vec<f64>,
    packer: Packer,
    done: Done,
}

impl<'a> Worker<'a> {
    fn new(job: &'a Job<'a>) -> Self {
        let cutter = RowCutter::new(job.task);
        Self {
            job,
            cutter,
            text: Vec::new(),
            scratch: Vec::new(),
            packer: Packer::default(),
            done: Done::default(),
        }
    }

    fn finish(mut self) -> Done {
        self.done.tally.commas_missing = self.cutter.commas_missing;
        self.done.tally.decimal_comma_rows = self.cutter.decimal_comma_rows;
        self.done
    }

    /// Parses rows `from..to` into the scratch and packs them.
    fn block(&mut self, from: usize, to: usize) -> Result<(), LeadlineError> {
        let job = self.job;
        let width = job.selection.columns.len();
        self.scratch.resize(width * (to - from), f64::MISSING);
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
        let block = self.packer.pack(&scratch, to - from, width);
        self.done.blocks.push((from, block));
        (self.scratch, self.text) = (scratch, text);
        Ok(())
    }

    fn row(&mut self, row: &Row, line: &mut [u8], out: &mut [f64]) -> Result<(), LeadlineError> {
        let length = trimmed_length(line, self.job.task.layout.separator);
        let line = &mut line[..length];
        match self.cutter.cut(line) {
            Fit::Exact | Fit::Mended => {}
            Fit::Trailing => self.done.tally.trailing_rows += 1,
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
    fn cells<const QUOTED: bool>(&mut self, row: &Row, line: &[u8], out: &mut [f64]) {
        let selection = self.job.selection;
        let starts = self.cutter.starts();
        for (j, (value, &column)) in out.iter_mut().zip(selection.columns).enumerate() {
            let cell = column as usize + 1;
            let (start, end) = (starts[cell] as usize, starts[cell + 1] as usize - 1);
            *value = if let Some(number) = short_number::<QUOTED>(line, start, end) {
                number
            } else {
                let sentinel = selection.sentinels.get(j).copied().unwrap_or(false);
                self.done
                    .tally
                    .unusual(&line[start..end], sentinel, row.line_number)
            };
        }
    }

    fn ragged(&self, row: &Row, cells: usize) -> LeadlineError {
        LeadlineError::new(
            self.job.task.source.place(u64::from(row.line_number)),
            format!("{cells} cells"),
            format!("{} cells, as the header has", self.job.task.columns + 1),
            "Remove the damaged line, or record again, and run the command again.",
        )
    }

    fn shorter(&self, row: &Row) -> LeadlineError {
        LeadlineError::new(
            self.job.task.source.place(u64::from(row.line_number)),
            "the end of the file",
            "the row that stood there when reading began",
            "Wait until the file is complete and run the command again.",
        )
    }
}
