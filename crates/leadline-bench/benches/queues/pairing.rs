//! A pairing heap in an arena, with a counter for ties.

use super::Pending;

const NONE: usize = usize::MAX;

struct Node {
    key: u128,
    event: u64,
    child: usize,
    next: usize,
}

/// The heap.
pub struct PairingHeap {
    nodes: Vec<Node>,
    free: usize,
    root: usize,
    count: u64,
    pairs: Vec<usize>,
}

impl Default for PairingHeap {
    fn default() -> Self {
        Self {
            nodes: Vec::new(),
            free: NONE,
            root: NONE,
            count: 0,
            pairs: Vec::new(),
        }
    }
}

impl PairingHeap {
    fn link(&mut self, a: usize, b: usize) -> usize {
        let (low, high) = if self.nodes[a].key <= self.nodes[b].key {
            (a, b)
        } else {
            (b, a)
        };
        self.nodes[high].next = self.nodes[low].child;
        self.nodes[low].child = high;
        low
    }
}

impl Pending for PairingHeap {
    fn push(&mut self, time: u64, event: u64) {
        self.count += 1;
        let node = Node {
            key: (u128::from(time) << 64) | u128::from(self.count),
            event,
            child: NONE,
            next: NONE,
        };
        let id = if self.free == NONE {
            self.nodes.push(node);
            self.nodes.len() - 1
        } else {
            let id = self.free;
            self.free = self.nodes[id].next;
            self.nodes[id] = node;
            id
        };
        self.root = if self.root == NONE {
            id
        } else {
            self.link(self.root, id)
        };
    }

    #[allow(clippy::cast_possible_truncation)]
    fn pop(&mut self) -> Option<(u64, u64)> {
        if self.root == NONE {
            return None;
        }
        let root = self.root;
        let result = ((self.nodes[root].key >> 64) as u64, self.nodes[root].event);
        let mut child = self.nodes[root].child;
        self.nodes[root].next = self.free;
        self.free = root;
        let mut pairs = std::mem::take(&mut self.pairs);
        while child != NONE {
            let second = self.nodes[child].next;
            if second == NONE {
                pairs.push(child);
                break;
            }
            let rest = self.nodes[second].next;
            pairs.push(self.link(child, second));
            child = rest;
        }
        self.root = pairs.pop().unwrap_or(NONE);
        while let Some(pair) = pairs.pop() {
            self.root = self.link(pair, self.root);
        }
        self.pairs = pairs;
        Some(result)
    }
}
