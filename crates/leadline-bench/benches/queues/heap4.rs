//! An implicit heap with four children per node and a counter for ties.

use super::Pending;

/// The heap.
#[derive(Default)]
pub struct Heap4 {
    nodes: Vec<(u128, u64)>,
    count: u64,
}

impl Pending for Heap4 {
    fn push(&mut self, time: u64, event: u64) {
        self.count += 1;
        let node = ((u128::from(time) << 64) | u128::from(self.count), event);
        let mut hole = self.nodes.len();
        self.nodes.push(node);
        while hole > 0 {
            let parent = (hole - 1) / 4;
            if self.nodes[parent].0 <= node.0 {
                break;
            }
            self.nodes[hole] = self.nodes[parent];
            hole = parent;
        }
        self.nodes[hole] = node;
    }

    #[allow(clippy::cast_possible_truncation)]
    fn pop(&mut self) -> Option<(u64, u64)> {
        let first = *self.nodes.first()?;
        let last = self.nodes.pop()?;
        let len = self.nodes.len();
        if len > 0 {
            let mut hole = 0;
            loop {
                let from = hole * 4 + 1;
                if from >= len {
                    break;
                }
                let mut lowest = from;
                for child in from + 1..(from + 4).min(len) {
                    if self.nodes[child].0 < self.nodes[lowest].0 {
                        lowest = child;
                    }
                }
                if self.nodes[lowest].0 >= last.0 {
                    break;
                }
                self.nodes[hole] = self.nodes[lowest];
                hole = lowest;
            }
            self.nodes[hole] = last;
        }
        Some(((first.0 >> 64) as u64, first.1))
    }
}
