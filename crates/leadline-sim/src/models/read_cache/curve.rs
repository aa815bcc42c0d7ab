//! The hits of LRU caches of every size in one pass.
//!
//! # Model
//! A use hits an LRU cache of c blocks when fewer than c other blocks were used since its last use. Counting uses by
//! that distance gives the hits of all sizes.
//!
//! # Assumptions
//! As in [`super::Lru`].
//!
//! # Parameters
//! The trace.
//!
//! # Limits
//! Exact, and only LRU: other policies are simulated size by size.
//!
//! # Sources
//! Mattson et al. (1970); Bennett and Kruskal, "LRU stack processing" (1975).

use leadline_stats::distance::ReuseTree;

/// Uses of a trace counted by stack distance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LruCurve {
    /// Uses by distance.
    counts: Vec<u64>,
    uses: u64,
}

impl LruCurve {
    /// Of a trace of lines; the first `warm` uses are not counted.
    #[must_use]
    #[allow(clippy::cast_possible_truncation)] // a distance is below the number of lines
    pub fn new(lines: &[u32], warm: usize) -> Self {
        let mut tree = ReuseTree::default();
        let mut found = Self::default();
        for (index, line) in lines.iter().enumerate() {
            let distance = tree.touch(u64::from(*line));
            if index < warm {
                continue;
            }
            found.uses += 1;
            if let Some(distance) = distance {
                let distance = distance as usize;
                if distance >= found.counts.len() {
                    found.counts.resize(distance + 1, 0);
                }
                found.counts[distance] += 1;
            }
        }
        found
    }

    /// Hits of a cache of `capacity` lines.
    #[must_use]
    pub fn hits(&self, capacity: usize) -> u64 {
        self.counts[..capacity.min(self.counts.len())].iter().sum()
    }

    /// Share of uses that hit, 0 to 1; NaN without uses.
    #[must_use]
    pub fn hit_ratio(&self, capacity: usize) -> f64 {
        self.hits(capacity) as f64 / self.uses as f64
    }

    /// The smallest capacity, in lines, with at least this share of hits; None when none has.
    #[must_use]
    pub fn capacity_for(&self, hit_ratio: f64) -> Option<usize> {
        let mut hits = 0;
        (0..=self.counts.len()).find(|capacity| {
            hits += capacity.checked_sub(1).map_or(0, |last| self.counts[last]);
            hits as f64 / self.uses as f64 >= hit_ratio
        })
    }
}
