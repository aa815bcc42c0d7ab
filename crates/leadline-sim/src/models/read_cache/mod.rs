//! Read caches on a trace of block uses: which share of them hits, by policy and by size.
//!
//! # Model
//! A trace is a sequence of lines (the unit the cache fetches); a policy says for each whether it is there, and what
//! makes room. Closed arithmetic on a sequence, without events: time is only where windows end.
//!
//! # Assumptions
//! A miss is there when the next use comes. The cache starts empty; uses before the first window warm it.
//!
//! # Parameters
//! Policy ([`READ_CACHE_POLICIES`]), capacity in lines; the trace, made of parts ([`Part`]) or recorded.
//!
//! # Limits
//! Lines of one size; no writes, no prefetching beyond the line, no cost of the policy itself.
//!
//! # Sources
//! Those of each policy; Mattson et al. (1970) for curves by stack distances; Fenwick (1994) for the tree behind them.

mod arc;
mod curve;
mod lists;
mod lru;
mod s3_fifo;
pub mod system;
mod trace;

pub use arc::Arc;
pub use curve::LruCurve;
pub use lru::Lru;
pub use s3_fifo::S3Fifo;
pub use system::Uses;
pub use trace::{Kind, Part, Trace, synthetic};

use leadline_stats::error::LeadlineError;

/// The policies there are.
pub const READ_CACHE_POLICIES: [&str; 3] = ["arc", "lru", "s3-fifo"];

/// A cache of blocks, which are numbered from 0.
pub trait ReadCache {
    /// Uses a block; whether it was there. It is there afterwards, unless the cache has no room at all.
    fn touch(&mut self, block: u32) -> bool;

    /// How many blocks are there.
    fn len(&self) -> usize;

    /// Whether there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A cache of any policy.
#[derive(Clone, Debug)]
pub enum AnyReadCache {
    /// Adaptive replacement.
    Arc(Arc),
    /// Least recently used.
    Lru(Lru),
    /// Three queues.
    S3Fifo(S3Fifo),
}

impl AnyReadCache {
    /// A cache of `capacity` blocks whose numbers are below `bound`.
    ///
    /// # Errors
    /// When there is no such policy.
    pub fn new(policy: &str, capacity: usize, bound: usize) -> Result<Self, LeadlineError> {
        match policy {
            "arc" => Ok(Self::Arc(Arc::new(capacity, bound))),
            "lru" => Ok(Self::Lru(Lru::new(capacity, bound))),
            "s3-fifo" => Ok(Self::S3Fifo(S3Fifo::new(capacity, bound))),
            _ => Err(LeadlineError::new(
                "caches: policy",
                policy,
                format!("one of {}", READ_CACHE_POLICIES.join(", ")),
                "Correct the scenario.",
            )),
        }
    }
}

impl ReadCache for AnyReadCache {
    #[inline]
    fn touch(&mut self, block: u32) -> bool {
        match self {
            Self::Arc(own) => own.touch(block),
            Self::Lru(own) => own.touch(block),
            Self::S3Fifo(own) => own.touch(block),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Arc(own) => own.len(),
            Self::Lru(own) => own.len(),
            Self::S3Fifo(own) => own.len(),
        }
    }
}

/// Hits of each window: uses of the trace before the first end only warm the cache; each further end closes a window.
pub fn hits(cache: &mut impl ReadCache, lines: &[u32], ends: &[usize]) -> Vec<u64> {
    let mut found = Vec::with_capacity(ends.len());
    let mut start = 0;
    for end in ends {
        let window = lines.get(start..*end).unwrap_or_default();
        found.push(
            window
                .iter()
                .map(|line| u64::from(cache.touch(*line)))
                .sum(),
        );
        start = *end;
    }
    found
}
