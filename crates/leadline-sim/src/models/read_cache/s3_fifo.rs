//! S3-FIFO: three queues; blocks used once leave early through a small one.
//!
//! # Model
//! A new block enters S, a tenth of the cache; one that the ghost queue G remembers enters M, the rest. Uses are counted
//! up to 3. What leaves S goes to M if it was used more than once, its count cleared, else out, and G remembers it. What
//! is at M's end with a count goes round again with one less.
//!
//! # Assumptions
//! All blocks are of one size; a miss is fetched at once; G takes no room.
//!
//! # Parameters
//! Capacity in blocks.
//!
//! # Limits
//! S is a tenth rounded down, at least one block; G remembers as many blocks as M may have.
//!
//! # Sources
//! Yang, Zhang, Qiu, Yue and Rashmi, "FIFO queues are all you need for cache eviction" (SOSP '23), section 4, algorithm 1.

use super::ReadCache;
use super::lists::Lists;

const S: usize = 0;
const M: usize = 1;
const G: usize = 2;
const USES_MAX: u8 = 3;
const SMALL_PARTS: usize = 10;

/// A cache of three first-in-first-out queues.
#[derive(Clone, Debug)]
pub struct S3Fifo {
    capacity: usize,
    small: usize,
    lists: Lists<3>,
    uses: Vec<u8>,
}

impl S3Fifo {
    /// A cache of `capacity` blocks whose numbers are below `bound`.
    #[must_use]
    pub fn new(capacity: usize, bound: usize) -> Self {
        Self {
            capacity,
            small: (capacity / SMALL_PARTS).max(1),
            lists: Lists::new(bound),
            uses: vec![0; bound],
        }
    }

    fn main(&self) -> usize {
        self.capacity.saturating_sub(self.small)
    }

    /// Puts one block out of S, and those used again into M.
    fn evict_small(&mut self) {
        while let Some(block) = self.lists.back(S) {
            if self.uses[block as usize] > 1 {
                self.uses[block as usize] = 0;
                self.lists.push_front(M, block);
                if self.lists.len(M) > self.main() {
                    self.evict_main();
                }
            } else {
                self.remember(block);
                return;
            }
        }
    }

    fn remember(&mut self, block: u32) {
        self.lists.push_front(G, block);
        if self.lists.len(G) > self.main() {
            self.lists.pop_back(G);
        }
    }

    fn evict_main(&mut self) {
        while let Some(block) = self.lists.back(M) {
            let uses = &mut self.uses[block as usize];
            if *uses == 0 {
                self.lists.remove(block);
                return;
            }
            *uses -= 1;
            self.lists.push_front(M, block);
        }
    }
}

impl ReadCache for S3Fifo {
    #[inline]
    fn touch(&mut self, block: u32) -> bool {
        if self.capacity == 0 {
            return false;
        }
        let home = self.lists.home(block);
        if matches!(home, Some(S | M)) {
            let uses = &mut self.uses[block as usize];
            *uses = (*uses + 1).min(USES_MAX);
            return true;
        }
        while self.len() >= self.capacity {
            if self.lists.len(S) >= self.small {
                self.evict_small();
            } else {
                self.evict_main();
            }
        }
        // The eviction may just have made G forget it.
        let entry = if self.lists.home(block).is_some() {
            M
        } else {
            S
        };
        self.lists.push_front(entry, block);
        self.uses[block as usize] = 0;
        false
    }

    fn len(&self) -> usize {
        self.lists.len(S) + self.lists.len(M)
    }
}
