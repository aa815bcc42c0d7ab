//! Miss-ratio curves from a sample of fixed size, whatever the trace's length and working set.
//!
//! A key is sampled when its hash is below a threshold, so all uses of a key are seen or none. When more keys are
//! sampled than may be held, the threshold is lowered to the largest hash held and what was counted is scaled down.
//! Distances are scaled up by the sampling rate; what the sample is short of in uses is added to the shortest distance
//! ("adjusted").
//! Source: Waldspurger, Park, Garthwaite and Ahmad, Efficient MRC Construction with SHARDS, FAST '15, sections 3 and 4.

use std::collections::BinaryHeap;

use crate::distance::ReuseTree;

const HASH_BITS: u32 = 32;
/// Buckets per doubling of distance.
const STEPS: f64 = 16.0;

/// A sampler of reuse distances.
#[derive(Debug)]
pub struct Shards {
    size_max: usize,
    /// Hashes below it are sampled; 2^32 samples everything.
    threshold: u64,
    tree: ReuseTree,
    /// Hash and key of every key held, the largest hash first.
    held: BinaryHeap<(u32, u64)>,
    /// Weight per distance bucket.
    weights: Vec<f64>,
    cold: f64,
    /// Uses sampled, scaled like the weights.
    sampled: f64,
    uses: u64,
}

/// A point of the curve: with a cache of `size` keys, `miss_ratio` of the uses miss.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Cache size in keys.
    pub size: f64,
    /// Share of uses that miss under LRU, 0 to 1.
    pub miss_ratio: f64,
}

#[inline]
#[allow(clippy::cast_possible_truncation)] // the upper half of the bits
fn hash(key: u64) -> u32 {
    let mut mixed = key.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((mixed ^ (mixed >> 31)) >> (64 - HASH_BITS)) as u32
}

impl Shards {
    /// A sampler that holds at most `size_max` keys, at least one.
    #[must_use]
    pub fn new(size_max: usize) -> Self {
        Self {
            size_max: size_max.max(1),
            threshold: 1 << HASH_BITS,
            tree: ReuseTree::default(),
            held: BinaryHeap::new(),
            weights: Vec::new(),
            cold: 0.0,
            sampled: 0.0,
            uses: 0,
        }
    }

    /// The share of keys that are sampled now.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.threshold as f64 / (1u64 << HASH_BITS) as f64
    }

    /// The cache size, in keys, below which the curve is not resolved: distances are multiples of it.
    #[must_use]
    pub fn resolution(&self) -> f64 {
        1.0 / self.rate().max(f64::MIN_POSITIVE)
    }

    /// How many uses there were, sampled or not.
    #[must_use]
    pub fn uses(&self) -> u64 {
        self.uses
    }

    /// Uses a key.
    #[inline]
    pub fn touch(&mut self, key: u64) {
        self.uses += 1;
        let hashed = hash(key);
        if u64::from(hashed) < self.threshold {
            self.sample(key, hashed);
        }
    }

    fn sample(&mut self, key: u64, hashed: u32) {
        self.sampled += 1.0;
        if let Some(distance) = self.tree.touch(key) {
            let bucket = bucket_of(distance as f64 / self.rate());
            if bucket >= self.weights.len() {
                self.weights.resize(bucket + 1, 0.0);
            }
            self.weights[bucket] += 1.0;
            return;
        }
        self.cold += 1.0;
        self.held.push((hashed, key));
        if self.tree.len() > self.size_max {
            self.lower();
        }
    }

    fn lower(&mut self) {
        let Some((largest, _)) = self.held.peek().copied() else {
            return;
        };
        let before = self.rate();
        self.threshold = u64::from(largest);
        while let Some((hashed, key)) = self.held.peek().copied() {
            if u64::from(hashed) < self.threshold {
                break;
            }
            self.held.pop();
            self.tree.remove(key);
        }
        let scale = self.rate() / before;
        for weight in &mut self.weights {
            *weight *= scale;
        }
        self.cold *= scale;
        self.sampled *= scale;
    }

    /// How many different keys there were; exact while everything is sampled, else within about 1/sqrt(`size_max`).
    #[must_use]
    pub fn distinct(&self) -> f64 {
        if self.threshold == 0 {
            return 0.0;
        }
        self.tree.len() as f64 / self.rate()
    }

    /// The miss ratio at each cache size, in keys; one for a cache of nothing. Empty when nothing was used.
    #[must_use]
    pub fn curve(&self, sizes: &[f64]) -> Vec<Point> {
        let expected = self.uses as f64 * self.rate();
        if self.uses == 0 || expected <= 0.0 {
            return Vec::new();
        }
        let short = expected - self.sampled;
        let hits = |size: f64| {
            let mut total = if size >= 1.0 { short } else { 0.0 };
            for (bucket, weight) in self.weights.iter().enumerate() {
                let (low, high) = (edge_of(bucket), edge_of(bucket + 1));
                if high <= size {
                    total += weight;
                } else if low < size {
                    total += weight * (size - low) / (high - low);
                }
            }
            total
        };
        let point = |size: &f64| Point {
            size: *size,
            miss_ratio: (1.0 - hits(*size) / expected).clamp(0.0, 1.0),
        };
        sizes.iter().map(point).collect()
    }
}

/// Distances 0 to 15 have buckets of their own, longer ones `STEPS` per doubling. A distance d hits a cache of d + 1.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a distance is at most 2^64: 1,024 buckets
fn bucket_of(distance: f64) -> usize {
    if distance < STEPS {
        return distance as usize;
    }
    (STEPS + (distance / STEPS).log2() * STEPS) as usize
}

/// The cache size from which on a bucket's distances begin to hit.
fn edge_of(bucket: usize) -> f64 {
    let bucket = bucket as f64;
    if bucket <= STEPS {
        bucket
    } else {
        STEPS * ((bucket - STEPS) / STEPS).exp2()
    }
}
