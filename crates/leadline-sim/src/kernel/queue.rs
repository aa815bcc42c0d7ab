//! The queue of pending events: earliest first, events of equal time in the order in which they were put in.
//!
//! The near future is a short sorted list; everything behind its `edge` waits in a wheel of wheels. With few events
//! pending the wheel stays empty and the list is all there is. Costs per event do not depend on the distribution of
//! times: there is no bucket width to tune and no sample to take, so nothing in a run depends on how the queue works.
//!
//! Measured against other structures in `benches/queues`: see the crate's documentation for the figures.

use super::wheel::{Wheel, insert_after};
use crate::time::Nanos;

/// How many events the list takes from the wheel at once. Judgement: of 12, 24, 32, 40, 48 and 64 the best or within noise
/// of it at 10 to 1,000,000 pending events.
const REFILL: usize = 40;
/// The list is split when it has grown beyond this. Judgement: likewise of 48, 64, 80, 96 and 128.
const SPLIT: usize = 64;

/// A pending event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<E> {
    /// When it happens, ns.
    pub time: Nanos,
    /// What happens.
    pub event: E,
}

/// Pending events; those of equal time leave in the order in which they came.
///
/// Time runs forward: an event before the last one taken is taken as of that one's time.
#[derive(Clone, Debug)]
pub struct EventQueue<E> {
    near: Vec<Entry<E>>,
    head: usize,
    /// Events up to and at this time are in the list, later ones in the wheel.
    edge: Nanos,
    now: Nanos,
    far: Wheel<E>,
}

impl<E: Copy> Default for EventQueue<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E: Copy> EventQueue<E> {
    /// An empty queue at time 0.
    #[must_use]
    pub fn new() -> Self {
        Self {
            near: Vec::with_capacity(2 * SPLIT),
            head: 0,
            edge: Nanos::MAX,
            now: 0,
            far: Wheel::new(),
        }
    }

    /// How many events are pending.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.near.len() - self.head + self.far.len()
    }

    /// Whether nothing is pending.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds an event at `time`, or at the time of the event taken last if that is later.
    #[inline]
    pub fn push(&mut self, time: Nanos, event: E) {
        let entry = Entry {
            time: time.max(self.now),
            event,
        };
        if entry.time > self.edge {
            self.far.push(entry);
            return;
        }
        if self.is_early(entry.time) {
            self.insert_early(entry);
        } else {
            insert_after(&mut self.near, self.head, entry);
        }
        if self.near.len() - self.head > SPLIT {
            self.split();
        }
    }

    /// Whether a time lies in the earlier half of the list, before which there is room.
    #[inline]
    fn is_early(&self, time: Nanos) -> bool {
        let middle = self.head + (self.near.len() - self.head) / 2;
        self.head > 0 && self.near.get(middle).is_some_and(|entry| time < entry.time)
    }

    /// Inserts into the earlier half, behind entries of the same time, by moving those before it one place forward.
    #[inline]
    fn insert_early(&mut self, entry: Entry<E>) {
        let mut hole = self.head - 1;
        self.head = hole;
        while self.near[hole + 1].time <= entry.time {
            self.near[hole] = self.near[hole + 1];
            hole += 1;
        }
        self.near[hole] = entry;
    }

    /// The time of the next event, ns.
    #[inline]
    pub fn peek_time(&mut self) -> Option<Nanos> {
        self.peek().map(|entry| entry.time)
    }

    /// The next event.
    #[inline]
    pub fn peek(&mut self) -> Option<&Entry<E>> {
        self.fill();
        self.near.get(self.head)
    }

    /// Takes the next event.
    #[inline]
    pub fn pop(&mut self) -> Option<Entry<E>> {
        self.fill();
        let entry = *self.near.get(self.head)?;
        self.advance(entry.time);
        Some(entry)
    }

    /// Takes the next event if it happens before `end`.
    #[inline]
    pub fn pop_before(&mut self, end: Nanos) -> Option<Entry<E>> {
        self.fill();
        let entry = *self.near.get(self.head)?;
        if entry.time >= end {
            return None;
        }
        self.advance(entry.time);
        Some(entry)
    }

    #[inline]
    fn advance(&mut self, time: Nanos) {
        self.now = time;
        self.head += 1;
        if self.head == self.near.len() {
            self.near.clear();
            self.head = 0;
        } else if self.head >= SPLIT {
            self.close_gap();
        }
    }

    /// Refills an empty list from the wheel.
    #[inline]
    fn fill(&mut self) {
        if self.near.is_empty() && self.far.len() > 0 {
            self.refill();
        }
    }

    #[cold]
    #[inline(never)]
    fn refill(&mut self) {
        self.edge = self.far.drain(REFILL, &mut self.near);
        if self.far.len() == 0 {
            self.edge = Nanos::MAX;
        }
    }

    /// Moves the list to the front of its memory.
    #[inline(never)]
    fn close_gap(&mut self) {
        self.near.copy_within(self.head.., 0);
        self.near.truncate(self.near.len() - self.head);
        self.head = 0;
    }

    /// Moves the later half of the list into the wheel; events of one time stay together.
    #[cold]
    #[inline(never)]
    fn split(&mut self) {
        self.close_gap();
        let middle = self.near[self.near.len() / 2].time;
        let mut cut = self.near.partition_point(|entry| entry.time < middle);
        if cut == 0 {
            cut = self.near.partition_point(|entry| entry.time <= middle);
        }
        let Some(first) = self.near.get(cut) else {
            return;
        };
        if self.far.len() == 0 || first.time < self.far.base() {
            self.far.rebase(self.now);
        }
        self.edge = first.time - 1;
        for entry in &self.near[cut..] {
            self.far.push(*entry);
        }
        self.near.truncate(cut);
    }
}
