//! Least recently used: what was not used for longest goes first.
//!
//! # Model
//! One list in the order of last use. A use puts its block to the front; a miss with a full cache takes the back.
//!
//! # Assumptions
//! All blocks are of one size; a miss is fetched at once.
//!
//! # Parameters
//! Capacity in blocks.
//!
//! # Limits
//! A scan longer than the cache empties it.
//!
//! # Sources
//! Mattson, Gecsei, Slutz and Traiger, "Evaluation techniques for storage hierarchies" (IBM Systems Journal 9, 1970).

use super::ReadCache;
use super::lists::Lists;

/// A cache that keeps what was used last.
#[derive(Clone, Debug)]
pub struct Lru {
    capacity: usize,
    lists: Lists<1>,
}

impl Lru {
    /// A cache of `capacity` blocks whose numbers are below `bound`.
    #[must_use]
    pub fn new(capacity: usize, bound: usize) -> Self {
        Self {
            capacity,
            lists: Lists::new(bound),
        }
    }
}

impl ReadCache for Lru {
    #[inline]
    fn touch(&mut self, block: u32) -> bool {
        let hit = self.lists.home(block).is_some();
        if !hit && self.lists.len(0) >= self.capacity {
            if self.capacity == 0 {
                return false;
            }
            self.lists.pop_back(0);
        }
        self.lists.push_front(0, block);
        hit
    }

    fn len(&self) -> usize {
        self.lists.len(0)
    }
}
