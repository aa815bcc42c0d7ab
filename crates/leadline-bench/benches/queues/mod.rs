//! Other structures for pending events, to measure the kernel's against.

mod heap4;
mod pairing;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use leadline_sim::kernel::EventQueue;

pub use heap4::Heap4;
pub use pairing::PairingHeap;

/// What all structures can do; events of equal time leave in the order in which they came.
pub trait Pending: Default {
    /// Adds an event.
    fn push(&mut self, time: u64, event: u64);
    /// Takes the earliest.
    fn pop(&mut self) -> Option<(u64, u64)>;
}

impl Pending for EventQueue<u64> {
    fn push(&mut self, time: u64, event: u64) {
        EventQueue::push(self, time, event);
    }

    fn pop(&mut self) -> Option<(u64, u64)> {
        EventQueue::pop(self).map(|entry| (entry.time, entry.event))
    }
}

/// The standard library's binary heap with a counter for ties.
#[derive(Default)]
pub struct StdHeap {
    heap: BinaryHeap<Reverse<(u64, u64, u64)>>,
    count: u64,
}

impl Pending for StdHeap {
    fn push(&mut self, time: u64, event: u64) {
        self.count += 1;
        self.heap.push(Reverse((time, self.count, event)));
    }

    fn pop(&mut self) -> Option<(u64, u64)> {
        self.heap
            .pop()
            .map(|Reverse((time, _, event))| (time, event))
    }
}
