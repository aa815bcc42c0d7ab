//! What a write cache and the devices behind it are, and the check of it.

use serde::Deserialize;

use crate::random::Stream;
use crate::time::{Nanos, SECOND, whole};
use leadline_stats::error::{LeadlineError, wrong};

/// When a write is acknowledged, and where it is then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// On the backing device.
    WriteThrough,
    /// In memory.
    RamWriteBack,
    /// In a log on a device of its own.
    LogStructured,
    /// In memory, before it is in the log: what a log does not protect.
    LogBehindRam,
}

/// The write caches there are.
pub const WRITE_CACHES: [&str; 4] = [
    "log-behind-ram",
    "log-structured",
    "ram-write-back",
    "write-through",
];

impl Kind {
    /// The write cache of that name.
    ///
    /// # Errors
    /// When there is none.
    pub fn named(name: &str) -> Result<Self, LeadlineError> {
        match name {
            "write-through" => Ok(Self::WriteThrough),
            "ram-write-back" => Ok(Self::RamWriteBack),
            "log-structured" => Ok(Self::LogStructured),
            "log-behind-ram" => Ok(Self::LogBehindRam),
            _ => wrong(
                "cache",
                name,
                &format!("one of {}", WRITE_CACHES.join(", ")),
            ),
        }
    }
}

/// The device where data ends up: one request at a time.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Backing {
    /// From one track to the next, ns.
    pub seek_least: f64,
    /// Over all tracks, ns.
    pub seek_most: f64,
    /// One revolution, ns.
    pub rotation: f64,
    /// Bytes per second.
    pub bytes_per_second: f64,
}

impl Backing {
    /// Time of a write of `bytes` at a distance of `distance` (share of all blocks) from the last; a write that follows
    /// the last one neither seeks nor waits for the platter.
    pub(super) fn time(&self, distance: f64, bytes: f64, stream: &mut Stream) -> Nanos {
        let transfer = bytes / self.bytes_per_second * SECOND as f64;
        if distance <= 0.0 {
            return whole(transfer);
        }
        let seek = self.seek_least + (self.seek_most - self.seek_least) * distance.sqrt();
        whole(seek + self.rotation * stream.unit() + transfer)
    }
}

/// A system and how long to watch it; times in ns.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Seed of all random numbers.
    pub seed: u64,
    /// When a write is acknowledged.
    pub kind: Kind,
    /// Whether what is flushed or destaged goes in the order of addresses rather than of arrival.
    pub is_sorted: bool,
    /// Blocks that are written to.
    pub blocks: u32,
    /// Size of a block.
    pub block_bytes: u32,
    /// Writes outstanding, each replaced when it is acknowledged; None: a rate.
    pub outstanding: Option<u32>,
    /// Writes offered per second at random, without outstanding ones.
    pub rate: f64,
    /// Share of random writes, 0 to 1; the others follow the one before.
    pub random_share: f64,
    /// Blocks the memory or the log has room for.
    pub cache_blocks: usize,
    /// Time of a write into memory.
    pub ram: Nanos,
    /// Time of an append to the log before its transfer.
    pub log_latency: f64,
    /// Bytes per second of the log's device.
    pub log_bytes_per_second: f64,
    /// Blocks of the log that are destaged together.
    pub batch_blocks: usize,
    /// Where data ends up.
    pub backing: Backing,
    /// Windows of the series.
    pub window: Nanos,
}

impl Spec {
    /// Whether it makes a run.
    ///
    /// # Errors
    /// When a number makes no sense.
    pub fn check(&self) -> Result<(), LeadlineError> {
        let is_positive = |value: f64| value > 0.0 && value.is_finite();
        if self.blocks == 0 || self.block_bytes == 0 {
            return wrong("blocks", self.blocks, "at least one");
        }
        if self.cache_blocks == 0 {
            return wrong("cache size", 0, "at least one block");
        }
        if self.batch_blocks == 0 || self.batch_blocks > self.cache_blocks {
            return wrong(
                "batch",
                self.batch_blocks,
                "at least one block, at most what the log has room for",
            );
        }
        for (place, value) in [
            ("backing: bytes per second", self.backing.bytes_per_second),
            ("log: bytes per second", self.log_bytes_per_second),
        ] {
            if !is_positive(value) {
                return wrong(place, value, "more than 0");
            }
        }
        match self.outstanding {
            Some(0) => wrong("outstanding", 0, "at least one"),
            None if !is_positive(self.rate) => wrong("rate", self.rate, "more than 0"),
            _ => Ok(()),
        }
    }
}
