//! Records put into the order of time within a window, in bounded memory.

use super::{Notes, Record};

const WINDOW: usize = 1 << 16;

/// Holds up to two windows of records back, and lets the earlier go in order.
#[derive(Default)]
pub struct Order {
    held: Vec<Record>,
    floor_ns: u64,
    unsorted: u64,
    late: u64,
    /// Times are too coarse to tell an order: requests of one time are taken in the order of their offsets.
    coarse: bool,
}

impl Order {
    /// For times that are `coarse`, requests of one time are taken in the order of their offsets.
    pub fn new(coarse: bool) -> Self {
        Self {
            coarse,
            ..Self::default()
        }
    }

    /// Takes a batch, which is emptied; adds what is in order to `out`. At the end everything is.
    pub fn pass(&mut self, batch: &mut Vec<Record>, end: bool, out: &mut Vec<Record>) {
        self.unsorted += disorder(self.held.last().copied(), batch);
        self.held.append(batch);
        if self.held.len() < 2 * WINDOW && !end {
            return;
        }
        let coarse = self.coarse;
        let key = |record: &Record| (record.time_ns, if coarse { record.offset } else { 0 });
        if !self.held.is_sorted_by_key(key) {
            self.held.sort_by_key(key);
        }
        let kept = if end { 0 } else { WINDOW };
        let gone = self.held.len() - kept;
        for mut record in self.held.drain(..gone) {
            if record.time_ns < self.floor_ns {
                record.time_ns = self.floor_ns;
                self.late += 1;
            }
            self.floor_ns = record.time_ns;
            out.push(record);
        }
    }

    /// What was repaired; `expected` says whether the format promises order.
    pub fn tell(&self, expected: bool, notes: &mut Notes) {
        notes.add("unsorted", if expected { self.unsorted } else { 0 }, || {
            "records earlier than the one before them; sorted by time".into()
        });
        notes.add("late", self.late, || {
            format!("records that came more than {WINDOW} too late; their time is taken as that of their neighbours")
        });
    }
}

fn disorder(last: Option<Record>, batch: &[Record]) -> u64 {
    let mut before = last.map_or(0, |record| record.time_ns);
    let mut count = 0;
    for record in batch {
        count += u64::from(record.time_ns < before);
        before = record.time_ns;
    }
    count
}
