//! Which fragments a request reads and writes, given what is left of them.

use super::layout::{Fragment, Health, Layout};
use super::protection::{Protection, Touch};

/// A range of one fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Which fragment of the cluster.
    pub fragment: u32,
    /// Where it begins, bytes.
    pub start: u64,
    /// Where it ends.
    pub end: u64,
}

/// Part of a request within one chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The chunk.
    pub chunk: u32,
    /// Where it begins in the chunk's data, bytes.
    pub start: u64,
    /// Where it ends.
    pub end: u64,
}

impl Layout {
    fn column(&self, chunk: u32, column: u32) -> (u32, Fragment) {
        let index = chunk * self.protection.width() + column;
        (index, self.fragments[index as usize])
    }

    fn access(&self, chunk: u32, touch: &Touch) -> Access {
        Access {
            fragment: self.column(chunk, touch.column).0,
            start: touch.start,
            end: touch.end,
        }
    }

    fn is_live(&self, chunk: u32, column: u32) -> bool {
        self.column(chunk, column).1.health == Health::Live
    }

    /// What a read of a part reads: a copy on `node` or, with `pick`, any other; data units, or with one missing as many
    /// fragments as it takes to compute it. False when it cannot be read.
    #[must_use]
    pub fn read(
        &self,
        part: Part,
        unit: u64,
        (node, pick): (u32, u64),
        found: &mut Vec<Access>,
    ) -> bool {
        if !self.is_readable(part.chunk) {
            return false;
        }
        let mut touched = Vec::new();
        self.protection
            .read(part.start, part.end, unit, &mut touched);
        let Protection::Code { .. } = self.protection else {
            let live = || {
                self.of_chunk(part.chunk)
                    .filter(|(_, own)| own.health == Health::Live)
            };
            let local = live().find(|(_, own)| self.rooms[own.disk as usize].node == node);
            #[allow(clippy::cast_possible_truncation)] // below the number of copies
            let any = || live().nth((pick % live().count().max(1) as u64) as usize);
            let chosen = local.or_else(any);
            found.extend(chosen.map(|(fragment, _)| Access {
                fragment,
                start: part.start,
                end: part.end,
            }));
            return chosen.is_some();
        };
        self.collect(part.chunk, &touched, found);
        true
    }

    /// The touched ranges of live fragments; with some missing the range of these from as many as it takes.
    fn collect(&self, chunk: u32, touched: &[Touch], found: &mut Vec<Access>) {
        let missing = touched
            .iter()
            .filter(|own| !self.is_live(chunk, own.column));
        let gap = missing.fold(None, |all: Option<(u64, u64)>, own| {
            let (start, end) = all.unwrap_or((own.start, own.end));
            Some((start.min(own.start), end.max(own.end)))
        });
        let live = touched.iter().filter(|own| self.is_live(chunk, own.column));
        let Some((start, end)) = gap else {
            found.extend(live.map(|own| self.access(chunk, own)));
            return;
        };
        let mut helpers: Vec<Touch> = live
            .map(|own| Touch {
                start: own.start.min(start),
                end: own.end.max(end),
                ..*own
            })
            .collect();
        let needed = self.protection.needed() as usize;
        for column in 0..self.protection.width() {
            let is_in = helpers.iter().any(|own| own.column == column);
            if helpers.len() < needed && !is_in && self.is_live(chunk, column) {
                helpers.push(Touch { column, start, end });
            }
        }
        found.extend(helpers.iter().map(|own| self.access(chunk, own)));
    }

    /// What a write of a part of a chunk with a code reads before: of each stripe it does not fill the touched data units
    /// and all parity units, or with a touched unit missing as many fragments as it takes. False when it cannot be read.
    #[must_use]
    pub fn gather(&self, part: Part, unit: u64, found: &mut Vec<Access>) -> bool {
        let Protection::Code { data, .. } = self.protection else {
            return true;
        };
        if !self.is_readable(part.chunk) {
            return false;
        }
        let (ends, _) = self.protection.stripes(part.start, part.end, unit);
        for (start, end) in ends.into_iter().flatten() {
            let mut touched = Vec::new();
            self.protection.read(start, end, unit, &mut touched);
            let all = union(&touched);
            let is_whole = touched
                .iter()
                .all(|own| self.is_live(part.chunk, own.column));
            let parity =
                (data..self.protection.width()).filter(|column| self.is_live(part.chunk, *column));
            let parity: Vec<Touch> = parity.map(|column| Touch { column, ..all }).collect();
            if parity.is_empty() && is_whole {
                continue; // nothing to compute: the data alone is written
            }
            self.collect(part.chunk, &touched, found);
            if is_whole {
                found.extend(parity.iter().map(|own| self.access(part.chunk, own)));
            }
        }
        true
    }

    /// What a write of a part writes, whether it is there or not: all copies; or touched data units and all parity units.
    /// False when too few fragments are left to keep the data.
    #[must_use]
    pub fn store(&self, part: Part, unit: u64, found: &mut Vec<Access>) -> bool {
        if !self.is_readable(part.chunk) {
            return false;
        }
        let width = self.protection.width();
        let Protection::Code { data, .. } = self.protection else {
            found.extend((0..width).map(|column| Access {
                fragment: self.column(part.chunk, column).0,
                start: part.start,
                end: part.end,
            }));
            return true;
        };
        let (ends, filled) = self.protection.stripes(part.start, part.end, unit);
        for (start, end) in ends.into_iter().flatten().chain(filled) {
            let mut touched = Vec::new();
            self.protection.read(start, end, unit, &mut touched);
            let all = union(&touched);
            touched.extend((data..width).map(|column| Touch { column, ..all }));
            found.extend(touched.iter().map(|own| self.access(part.chunk, own)));
        }
        true
    }

    /// What is read to compute `start..end` of a fragment anew; false when too little is left.
    #[must_use]
    pub fn sources(
        &self,
        fragment: u32,
        (start, end): (u64, u64),
        found: &mut Vec<Access>,
    ) -> bool {
        let width = self.protection.width();
        let chunk = fragment / width;
        let needed = self.protection.needed() as usize;
        let before = found.len();
        // Another one first for each chunk, so that the work is spread.
        let columns = (0..width).map(|column| (column + chunk) % width);
        let live = columns
            .filter(|column| self.is_live(chunk, *column))
            .take(needed);
        found.extend(live.map(|column| self.access(chunk, &Touch { column, start, end })));
        found.len() - before == needed
    }
}

/// The range that holds all of them.
fn union(touched: &[Touch]) -> Touch {
    let start = touched.iter().map(|own| own.start).min().unwrap_or(0);
    let end = touched.iter().map(|own| own.end).max().unwrap_or(0);
    Touch {
        column: 0,
        start,
        end,
    }
}
