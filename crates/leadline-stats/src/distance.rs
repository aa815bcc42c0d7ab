//! Reuse distances: how many other keys were used since a key was used last.
//!
//! A Fenwick tree counts, per moment of use, whether that use is its key's latest. Moments are numbered anew when the
//! numbers run out, so memory follows the number of keys held, not the length of the trace.
//! Source: Bennett and Kruskal, LRU Stack Processing (1975); Fenwick, A New Data Structure for Cumulative Frequency
//! Tables (1994).

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Keys are scattered by the caller's hash already in `shards`; here one multiplication is enough.
#[derive(Default)]
pub struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0.rotate_left(5) ^ u64::from(*byte)).wrapping_mul(0x517c_c1b7_2722_0a95);
        }
    }

    fn write_u64(&mut self, value: u64) {
        let mixed = value.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }
}

/// A map from keys to whatever is kept of them.
pub type KeyMap<V> = HashMap<u64, V, BuildHasherDefault<KeyHasher>>;

const FIRST_MOMENTS: usize = 1 << 10;

/// The latest use of every key held.
#[derive(Debug, Default)]
pub struct ReuseTree {
    /// Per key, the moment of its latest use.
    latest: KeyMap<usize>,
    /// Fenwick tree over moments, from 1.
    tree: Vec<u32>,
    now: usize,
}

impl ReuseTree {
    /// How many keys are held.
    #[must_use]
    pub fn len(&self) -> usize {
        self.latest.len()
    }

    /// Whether no key is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.latest.is_empty()
    }

    /// Uses a key: how many other keys were used since its last use, or None when it is new.
    pub fn touch(&mut self, key: u64) -> Option<u64> {
        if self.now + 1 >= self.tree.len() {
            self.renumber();
        }
        self.now += 1;
        let before = self.latest.insert(key, self.now);
        let distance = before.map(|moment| {
            self.add(moment, u32::MAX); // minus one
            self.latest.len() as u64 - 1 - self.sum(moment)
        });
        self.add(self.now, 1);
        distance
    }

    /// Forgets a key.
    pub fn remove(&mut self, key: u64) {
        if let Some(moment) = self.latest.remove(&key) {
            self.add(moment, u32::MAX);
        }
    }

    fn add(&mut self, mut moment: usize, delta: u32) {
        while moment < self.tree.len() {
            self.tree[moment] = self.tree[moment].wrapping_add(delta);
            moment += moment & moment.wrapping_neg();
        }
    }

    /// How many keys have their latest use at or before a moment.
    fn sum(&self, mut moment: usize) -> u64 {
        let mut total = 0;
        while moment > 0 {
            total += u64::from(self.tree[moment]);
            moment &= moment - 1;
        }
        total
    }

    #[cold]
    fn renumber(&mut self) {
        let mut order: Vec<(usize, u64)> = self
            .latest
            .iter()
            .map(|(key, moment)| (*moment, *key))
            .collect();
        order.sort_unstable();
        let size = (4 * order.len()).max(FIRST_MOMENTS) + 1;
        self.tree = vec![0; size];
        for (index, (_, key)) in order.iter().enumerate() {
            self.latest.insert(*key, index + 1);
            self.add(index + 1, 1);
        }
        self.now = order.len();
    }
}
