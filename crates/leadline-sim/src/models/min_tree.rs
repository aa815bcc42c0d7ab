//! The least of many keys that change one at a time.

/// Children of a node; eight keys fill a cache line. Judgement: faster than 16 at every number of clients that was
/// measured.
const FAN: usize = 8;
const FAN_BITS: u32 = 3;

#[repr(align(64))]
#[derive(Clone, Copy, Debug)]
struct Node([i64; FAN]);

impl Node {
    #[inline]
    fn min(&self) -> i64 {
        let keys = &self.0;
        let pair = |index: usize| keys[2 * index].min(keys[2 * index + 1]);
        pair(0).min(pair(1)).min(pair(2).min(pair(3)))
    }

    /// The first position of a key that is there.
    #[inline]
    fn position(&self, key: i64) -> usize {
        let mut found = FAN - 1;
        for index in (0..FAN - 1).rev() {
            found = if self.0[index] == key { index } else { found };
        }
        found
    }
}

/// A tree of minima over a fixed number of positions: the least key at once, a change in one cache line per level
/// and only as far up as it changes a minimum. 10,000 positions make five levels. Nothing is allocated after it is made.
///
/// Source: Knuth, "The art of computer programming" 3, section 5.4.1 (trees of winners), with eight children to fit the
/// lines of a cache as in LaMarca and Ladner, "The influence of caches on the performance of heaps" (1996).
#[derive(Clone, Debug)]
pub struct MinTree {
    /// The root first; the children of node i are nodes 8 i + 1 to 8 i + 8.
    nodes: Vec<Node>,
    /// The first node of the lowest level.
    leaves: usize,
    min: i64,
}

/// The key of a position that does not count.
pub const ABSENT: i64 = i64::MAX;

impl MinTree {
    /// `count` positions, all absent.
    #[must_use]
    pub fn new(count: usize) -> Self {
        let leaf_count = count.div_ceil(FAN).max(1);
        let (mut leaves, mut width) = (0, 1);
        while width < leaf_count {
            leaves += width;
            width <<= FAN_BITS;
        }
        Self {
            nodes: vec![Node([ABSENT; FAN]); leaves + leaf_count],
            leaves,
            min: ABSENT,
        }
    }

    /// The least key; [`ABSENT`] when no position counts.
    #[inline]
    #[must_use]
    pub fn min(&self) -> i64 {
        self.min
    }

    /// The first position with the least key.
    #[inline]
    #[must_use]
    pub fn first(&self) -> usize {
        let mut index = 0;
        loop {
            let slot = self.nodes[index].position(self.min);
            if index >= self.leaves {
                return ((index - self.leaves) << FAN_BITS) + slot;
            }
            index = (index << FAN_BITS) + 1 + slot;
        }
    }

    /// Gives a position another key. A node looks at all its keys only when its least one has gone; what the least was
    /// stands in the node above.
    #[inline]
    pub fn set(&mut self, position: usize, key: i64) {
        let mut key = key;
        let mut index = self.leaves + (position >> FAN_BITS);
        let mut slot = position & (FAN - 1);
        while index > 0 {
            let (up, side) = ((index - 1) >> FAN_BITS, (index - 1) & (FAN - 1));
            let least = self.nodes[up].0[side];
            let node = &mut self.nodes[index];
            let before = std::mem::replace(&mut node.0[slot], key);
            if key > least {
                if before > least {
                    return;
                }
                key = node.min();
            }
            if key == least {
                return;
            }
            (index, slot) = (up, side);
        }
        let root = &mut self.nodes[0];
        root.0[slot] = key;
        self.min = root.min();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Streams;

    #[test]
    fn the_least_is_found_as_by_looking_at_all() {
        for count in [0, 1, 2, 7, 8, 9, 64, 65, 700] {
            let mut stream = Streams::new(1).stream("tree", "keys");
            let mut tree = MinTree::new(count);
            let mut keys = vec![ABSENT; count];
            assert_eq!(tree.min(), ABSENT);
            for _ in 0..4 * count {
                let position = usize::try_from(stream.below(count as u64)).unwrap_or(0);
                let key = match stream.below(5) {
                    0 => ABSENT,
                    _ => i64::try_from(stream.below(50)).unwrap_or(0) - 25,
                };
                keys[position] = key;
                tree.set(position, key);
                let least = keys.iter().copied().min().unwrap_or(ABSENT);
                assert_eq!(tree.min(), least);
                if least != ABSENT {
                    assert_eq!(
                        keys.iter().position(|key| *key == least),
                        Some(tree.first())
                    );
                }
            }
        }
    }
}
