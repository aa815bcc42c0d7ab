//! Events of the farther future in a wheel of wheels: eleven levels of 64 slots cover all 64 bits of time.
//!
//! An event lies at the level of the highest group of six bits in which its time differs from the wheel's base, in the
//! slot that this group names. A slot is a chain of small blocks, so that filling and emptying it runs through memory
//! in order and drained blocks are used again. A slot with many events is spread over the levels below; an event
//! moves at most ten times, in practice two or three.
//!
//! Events of equal time always share a slot, and slots keep the order in which they were filled: ties need no counter.
//!
//! Sources: Varghese and Lauck, "Hashed and hierarchical timing wheels" (SOSP 1987), section 6; Ahuja et al.,
//! "Faster algorithms for the shortest path problem" (J. ACM 37, 1990), radix heap, for spreading by differing bits.

use super::queue::Entry;
use crate::time::Nanos;

const SLOT_BITS: u32 = 6;
const SLOTS: usize = 1 << SLOT_BITS;
const LEVELS: usize = 11;
const BLOCK_ENTRIES: usize = 15;
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Slot {
    first: u32,
    last: u32,
    count: u32,
}

const EMPTY: Slot = Slot {
    first: NONE,
    last: NONE,
    count: 0,
};

#[derive(Clone, Copy, Debug)]
struct Block<E> {
    entries: [Entry<E>; BLOCK_ENTRIES],
    next: u32,
    used: u32,
}

/// The farther future, coarsely sorted.
#[derive(Clone, Debug)]
pub(super) struct Wheel<E> {
    base: Nanos,
    levels: u32,
    occupied: [u64; LEVELS],
    slots: Vec<Slot>,
    blocks: Vec<Block<E>>,
    free: u32,
    len: usize,
}

/// Level and slot of `time` seen from `base`.
#[inline]
fn place(time: Nanos, base: Nanos) -> (usize, usize) {
    let differs = (time ^ base) | 1;
    let level = differs.ilog2() / SLOT_BITS;
    let slot = (time >> (level * SLOT_BITS)) & (SLOTS as u64 - 1);
    #[allow(clippy::cast_possible_truncation)] // 0 to 63
    (level as usize, slot as usize)
}

impl<E: Copy> Wheel<E> {
    pub(super) fn new() -> Self {
        Self {
            base: 0,
            levels: 0,
            occupied: [0; LEVELS],
            slots: vec![EMPTY; LEVELS * SLOTS],
            blocks: Vec::new(),
            free: NONE,
            len: 0,
        }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// No event before this can be added, ns.
    #[inline]
    pub(super) fn base(&self) -> Nanos {
        self.base
    }

    /// Moves the base to `time`, which no event is before; costs as much as adding all events again.
    pub(super) fn rebase(&mut self, time: Nanos) {
        let mut chains = Vec::new();
        while self.levels != 0 {
            let level = self.levels.trailing_zeros() as usize;
            let slot = self.occupied[level].trailing_zeros() as usize;
            chains.push(self.release(level, slot));
        }
        self.base = time;
        for first in chains {
            self.spread(first);
        }
    }

    /// Adds an event; its time is not before the base.
    #[inline]
    pub(super) fn push(&mut self, entry: Entry<E>) {
        debug_assert!(entry.time >= self.base);
        self.len += 1;
        self.put(entry);
    }

    #[inline]
    fn put(&mut self, entry: Entry<E>) {
        let (level, slot) = place(entry.time, self.base);
        let index = level * SLOTS + slot;
        let last = self.slots[index].last;
        self.slots[index].count += 1;
        if last != NONE {
            let block = &mut self.blocks[last as usize];
            let used = block.used as usize;
            if used < BLOCK_ENTRIES {
                block.entries[used] = entry;
                block.used += 1;
                return;
            }
        }
        self.extend(index, entry);
        self.occupied[level] |= 1 << slot;
        self.levels |= 1 << level;
    }

    /// Chains one more block, holding `entry`, to a slot.
    fn extend(&mut self, index: usize, entry: Entry<E>) {
        let id = if self.free == NONE {
            self.blocks.push(Block {
                entries: [entry; BLOCK_ENTRIES],
                next: NONE,
                used: 1,
            });
            #[allow(clippy::cast_possible_truncation)]
            // 2^32 blocks would take more than a terabyte
            {
                (self.blocks.len() - 1) as u32
            }
        } else {
            let id = self.free;
            let block = &mut self.blocks[id as usize];
            self.free = block.next;
            block.entries[0] = entry;
            block.next = NONE;
            block.used = 1;
            id
        };
        let slot = &mut self.slots[index];
        if slot.last == NONE {
            slot.first = id;
        } else {
            self.blocks[slot.last as usize].next = id;
        }
        slot.last = id;
    }

    /// Appends the earliest events, at least one and about `wanted`, to `bottom` in order of time, ties in order of
    /// arrival, and returns the last instant before which (and at which) nothing is left in the wheel.
    pub(super) fn drain(&mut self, wanted: usize, bottom: &mut Vec<Entry<E>>) -> Nanos {
        let mut edge = self.base;
        while self.levels != 0 {
            let level = self.levels.trailing_zeros() as usize;
            let slot = self.occupied[level].trailing_zeros() as usize;
            let index = level * SLOTS + slot;
            let count = self.slots[index].count as usize;
            let room = wanted.saturating_sub(bottom.len());
            if !bottom.is_empty() && count > room {
                break;
            }
            let (start, end) = self.span(level, slot);
            if bottom.is_empty() {
                self.base = start;
            }
            let first = self.release(level, slot);
            if level == 0 || count <= wanted {
                self.take(first, bottom);
                edge = end;
            } else {
                self.spread(first);
            }
        }
        edge
    }

    /// First and last instant of a slot, ns.
    #[inline]
    fn span(&self, level: usize, slot: usize) -> (Nanos, Nanos) {
        let shift = level * SLOT_BITS as usize;
        let below = (1u64 << shift) - 1;
        let above = !(((SLOTS as u64 - 1) << shift) | below);
        let start = (self.base & above) | ((slot as u64) << shift);
        (start, start | below)
    }

    /// Marks a slot empty and returns its first block.
    fn release(&mut self, level: usize, slot: usize) -> u32 {
        let first = self.slots[level * SLOTS + slot].first;
        self.slots[level * SLOTS + slot] = EMPTY;
        self.occupied[level] &= !(1 << slot);
        if self.occupied[level] == 0 {
            self.levels &= !(1 << level);
        }
        first
    }

    /// Inserts a chain's events into `bottom` in order of time, ties in the order of the chain.
    fn take(&mut self, first: u32, bottom: &mut Vec<Entry<E>>) {
        let start = bottom.len();
        let mut id = first;
        while id != NONE {
            let block = &mut self.blocks[id as usize];
            for entry in &block.entries[..block.used as usize] {
                insert_after(bottom, start, *entry);
            }
            self.len -= block.used as usize;
            let next = block.next;
            block.next = self.free;
            self.free = id;
            id = next;
        }
    }

    /// Distributes a chain's events over the levels below.
    fn spread(&mut self, first: u32) {
        let mut id = first;
        while id != NONE {
            let block = self.blocks[id as usize];
            self.blocks[id as usize].next = self.free;
            self.free = id;
            for entry in &block.entries[..block.used as usize] {
                self.put(*entry);
            }
            id = block.next;
        }
    }
}

/// Inserts into a list that is sorted from `start` on, behind entries of the same time.
#[inline]
pub(super) fn insert_after<E: Copy>(list: &mut Vec<Entry<E>>, start: usize, entry: Entry<E>) {
    let mut hole = list.len();
    list.push(entry);
    while hole > start && list[hole - 1].time > entry.time {
        list[hole] = list[hole - 1];
        hole -= 1;
    }
    list[hole] = entry;
}
