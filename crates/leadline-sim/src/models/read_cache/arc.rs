//! ARC: balances blocks used once lately against blocks used more often, by what it learns of those it put out.
//!
//! # Model
//! T1 holds blocks used once lately, T2 those used again, B1 and B2 remember which were put out of each. A miss that B1
//! remembers raises the target size p of T1, one that B2 remembers lowers it.
//!
//! # Assumptions
//! All blocks are of one size; a miss is fetched at once; what B1 and B2 remember takes no room.
//!
//! # Parameters
//! Capacity in blocks.
//!
//! # Limits
//! p moves by |B2| / |B1| or its inverse as a fraction, as the paper writes it; some implementations round.
//!
//! # Sources
//! Megiddo and Modha, "ARC: a self-tuning, low overhead replacement cache" (FAST '03), figure 4.

use super::ReadCache;
use super::lists::Lists;

const T1: usize = 0;
const T2: usize = 1;
const B1: usize = 2;
const B2: usize = 3;

/// An adaptive replacement cache.
#[derive(Clone, Debug)]
pub struct Arc {
    capacity: usize,
    /// Target size of T1, blocks.
    target: f64,
    lists: Lists<4>,
}

impl Arc {
    /// A cache of `capacity` blocks whose numbers are below `bound`.
    #[must_use]
    pub fn new(capacity: usize, bound: usize) -> Self {
        Self {
            capacity,
            target: 0.0,
            lists: Lists::new(bound),
        }
    }

    /// The target size of the part used once lately, blocks.
    #[must_use]
    pub fn target(&self) -> f64 {
        self.target
    }

    /// The paper's REPLACE.
    fn replace(&mut self, is_in_b2: bool) {
        let once = self.lists.len(T1) as f64;
        // Whole sizes against a fractional target: equal means equal.
        let is_over = once > self.target || (is_in_b2 && once >= self.target);
        let from_once = (self.lists.len(T1) >= 1 && is_over) || self.lists.len(T2) == 0;
        let (from, to) = if from_once { (T1, B1) } else { (T2, B2) };
        if let Some(out) = self.lists.back(from) {
            self.lists.push_front(to, out);
        }
    }

    fn remembered(&mut self, block: u32, list: usize) {
        let (once, again) = (self.lists.len(B1) as f64, self.lists.len(B2) as f64);
        self.target = if list == B1 {
            (self.target + (again / once).max(1.0)).min(self.capacity as f64)
        } else {
            (self.target - (once / again).max(1.0)).max(0.0)
        };
        self.replace(list == B2);
        self.lists.push_front(T2, block);
    }

    fn unknown(&mut self, block: u32) {
        let lens: [usize; 4] = std::array::from_fn(|list| self.lists.len(list));
        if lens[T1] + lens[B1] == self.capacity {
            if lens[T1] < self.capacity {
                self.lists.pop_back(B1);
                self.replace(false);
            } else {
                self.lists.pop_back(T1);
            }
        } else {
            let total: usize = lens.iter().sum();
            if total >= self.capacity {
                if total == 2 * self.capacity {
                    self.lists.pop_back(B2);
                }
                self.replace(false);
            }
        }
        self.lists.push_front(T1, block);
    }
}

impl ReadCache for Arc {
    #[inline]
    fn touch(&mut self, block: u32) -> bool {
        if self.capacity == 0 {
            return false;
        }
        match self.lists.home(block) {
            Some(T1 | T2) => {
                self.lists.push_front(T2, block);
                true
            }
            Some(list) => {
                self.remembered(block, list);
                false
            }
            None => {
                self.unknown(block);
                false
            }
        }
    }

    fn len(&self) -> usize {
        self.lists.len(T1) + self.lists.len(T2)
    }
}
