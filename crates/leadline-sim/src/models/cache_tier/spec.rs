//! What a cluster of disk groups is made of, and the check of it.

use serde::Deserialize;

use super::protection::Protection;
use leadline_stats::error::{LeadlineError, wrong};

/// A disk group: one cache device before capacity devices. Bytes, and bytes per second.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupSpec {
    /// Its name.
    pub name: String,
    /// Size of the cache device.
    pub cache_bytes: f64,
    /// What the cache device writes at most per second.
    pub cache_write: f64,
    /// Share of the cache device that buffers writes, 0 to 1; the rest is the read cache.
    pub write_share: f64,
    /// What of the write buffer is used at most.
    pub buffer_bytes_max: f64,
    /// Share of the write buffer in use when the run begins, 0 to 1.
    pub fill: f64,
    /// Capacity devices.
    pub device_count: u32,
    /// What a capacity device takes of destaged data per second.
    pub device_write: f64,
    /// Seconds a capacity device is busy with one fetch for a read that missed.
    pub fetch_seconds: f64,
    /// Data on each capacity device.
    pub device_used: f64,
}

impl GroupSpec {
    /// Bytes of the write buffer.
    #[must_use]
    pub fn buffer_bytes(&self) -> f64 {
        (self.cache_bytes * self.write_share).min(self.buffer_bytes_max)
    }

    /// Bytes of the read cache.
    #[must_use]
    pub fn read_cache_bytes(&self) -> f64 {
        self.cache_bytes * (1.0 - self.write_share)
    }
}

/// Load on all groups together.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadSpec {
    /// Requests outstanding, each replaced when it is done; None: a rate.
    pub outstanding: Option<f64>,
    /// Requests offered per second, without outstanding ones.
    pub rate: f64,
    /// Mean size, bytes.
    pub bytes: f64,
    /// Share of reads, 0 to 1.
    pub read_share: f64,
    /// Load for so many seconds, then none for so many, again and again.
    pub burst: Option<(f64, f64)>,
}

/// What fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Part {
    /// The cache device, and with it the whole group.
    Cache,
    /// One capacity device.
    Device,
}

/// A failure, and when its rebuild begins.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FailureSpec {
    /// When, seconds.
    pub at: f64,
    /// Index of the group.
    pub group: usize,
    /// What fails.
    pub part: Part,
    /// Seconds until the rebuild begins.
    pub delay: f64,
}

/// All of it. Seconds, bytes, shares from 0 to 1.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Disk groups; load and rebuilds are spread evenly over those that work.
    pub groups: Vec<GroupSpec>,
    /// Loads.
    pub loads: Vec<LoadSpec>,
    /// What each write becomes.
    pub protection: Protection,
    /// Share of reads that need no capacity device.
    pub read_hits: f64,
    /// Latency of a write into the buffer.
    pub write_latency: f64,
    /// Latency of a read that hits.
    pub hit_latency: f64,
    /// Latency of a read that misses.
    pub miss_latency: f64,
    /// Fill above which data is destaged.
    pub destage_from: f64,
    /// Fill at which writes begin to be slowed.
    pub slow_from: f64,
    /// Fill at which they are as slow as destaging.
    pub slow_to: f64,
    /// Failures.
    pub failures: Vec<FailureSpec>,
    /// Bytes per second that all rebuilds together may write.
    pub rebuild_rate: f64,
    /// Length of a step.
    pub step: f64,
    /// Steps of a window of the series.
    pub window_steps: u64,
}

impl Spec {
    /// Whether it makes a run.
    ///
    /// # Errors
    /// When a number makes no sense.
    pub fn check(&self) -> Result<(), LeadlineError> {
        self.protection.check()?;
        if self.groups.is_empty() {
            return wrong("groups", 0, "at least one");
        }
        for group in &self.groups {
            let place = format!("group {}", group.name);
            for (name, value) in [
                ("buffer", group.buffer_bytes()),
                ("cache writes", group.cache_write),
                ("destaging", group.device_write),
            ] {
                if !(value > 0.0 && value.is_finite()) {
                    return wrong(&format!("{place}: {name}"), value, "more than 0");
                }
            }
            if group.device_count == 0 {
                return wrong(&format!("{place}: devices"), 0, "at least one");
            }
        }
        let levels = [self.destage_from, self.slow_from, self.slow_to];
        if !levels.iter().all(|level| (0.0..=1.0).contains(level)) || self.slow_from > self.slow_to
        {
            let found = format!("{levels:?}");
            return wrong(
                "destage_from, slow_from, slow_to",
                &found,
                "shares from 0 to 1, slow_from not above slow_to",
            );
        }
        if let Some(own) = self
            .failures
            .iter()
            .find(|own| own.group >= self.groups.len())
        {
            return wrong(
                "failures",
                format!("group {}", own.group),
                "a group there is",
            );
        }
        if !(self.step > 0.0 && self.step.is_finite()) || self.window_steps == 0 {
            return wrong("step", self.step, "more than 0");
        }
        Ok(())
    }
}
