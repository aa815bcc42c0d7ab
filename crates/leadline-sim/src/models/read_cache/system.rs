//! Read caches as a system: their document and what comes out.

use std::hash::Hasher;

use serde::{Deserialize, Serialize};

use super::{AnyReadCache, LruCurve, Part, Trace, hits, synthetic};
use crate::document::{Failure, Head, Recorded, Watch};
use crate::measure::TraceHash;
use crate::time::{Nanos, from_seconds};
use leadline_stats::error::{LeadlineError, wrong};

/// Uses a trace may have: 1 GiB of memory.
pub const USES_MAX: usize = 50_000_000;

/// Uses of lines as recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Uses {
    /// When, ns.
    pub times: Vec<Nanos>,
    /// Addresses in lines.
    pub lines: Vec<u64>,
}

/// A cache.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheSpec {
    /// Its policy, one of [`super::READ_CACHE_POLICIES`].
    pub policy: String,
    /// Its size.
    pub bytes: u64,
}

/// A curve of hits by size.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CurveSpec {
    /// The policy.
    pub policy: String,
    /// Sizes of its points, bytes.
    pub bytes: Vec<u64>,
}

/// What goes in. A trace of parts has `rate` uses per second, a recorded one has times.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// Seed of all random numbers.
    pub seed: u64,
    /// Parts of the trace, unless it is recorded.
    pub parts: Vec<Part>,
    /// Uses per second of a trace of parts.
    pub rate: f64,
    /// Size of a block.
    pub block_bytes: u64,
    /// Size of a line.
    pub line_bytes: u64,
    /// Seconds at which the warm-up and each window end.
    pub ends: Vec<f64>,
    /// Caches.
    pub caches: Vec<CacheSpec>,
    /// Curves.
    pub curves: Vec<CurveSpec>,
}

/// What comes out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Outcome {
    #[serde(flatten)]
    head: Head,
    /// Different lines of the trace.
    distinct: usize,
    /// Uses before each span's end.
    ends: Vec<usize>,
    /// Hits of each cache by span.
    caches: Vec<Vec<u64>>,
    /// Hits after the warm-up at each point of each curve.
    curves: Vec<Vec<u64>>,
}

impl Document {
    fn synthetic(&self) -> Result<(Trace, Vec<usize>), LeadlineError> {
        let whole = |seconds: &f64| {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // `as` saturates
            let index = (seconds * self.rate + 0.5) as usize;
            index
        };
        let ends: Vec<usize> = self.ends.iter().map(whole).collect();
        let count = ends.last().copied().unwrap_or(0);
        if count > USES_MAX {
            return Err(LeadlineError::new(
                "trace",
                format!("{:.3e} uses", count as f64),
                format!("at most {USES_MAX}"),
                "Take a lower rate or less time.",
            ));
        }
        let line_blocks = (self.line_bytes / self.block_bytes.max(1)).max(1);
        let uses = synthetic(&self.parts, line_blocks, count, self.seed);
        Ok((Trace::of(&uses), ends))
    }

    fn recorded(&self, uses: &Uses) -> (Trace, Vec<usize>) {
        let ends = self.ends.iter().map(|seconds| {
            let end = from_seconds(*seconds);
            uses.times.partition_point(|time| *time < end)
        });
        let ends: Vec<usize> = ends.collect();
        let count = ends.last().copied().unwrap_or(0);
        (Trace::of(&uses.lines[..count]), ends)
    }

    fn line_count(&self, bytes: u64) -> usize {
        usize::try_from(bytes / self.line_bytes.max(1)).unwrap_or(usize::MAX)
    }
}

/// One run.
///
/// # Errors
/// When the document makes no run, or the watcher ended it.
#[allow(clippy::needless_pass_by_value)] // a document is used up
pub fn simulate(
    document: Document,
    recorded: &[Recorded],
    watch: &mut Watch<'_>,
) -> Result<Outcome, Failure> {
    let (trace, ends) = match recorded {
        [] => document.synthetic()?,
        [Recorded::Uses(uses)] => document.recorded(uses),
        _ => return Ok(wrong("trace", "other recordings", "uses of a cache")?),
    };
    let job_count = document.caches.len() + document.curves.len();
    let mut done_count = 0;
    let mut go_on = || {
        done_count += 1;
        if watch(f64::from(done_count) / job_count as f64).is_break() {
            return Err(Failure::Stopped);
        }
        Ok(())
    };
    let mut hash = TraceHash::default();
    for line in &trace.lines {
        hash.write_u32(*line);
    }
    let mut caches: Vec<Vec<u64>> = Vec::new();
    for spec in &document.caches {
        let lines = document.line_count(spec.bytes);
        let mut cache = AnyReadCache::new(&spec.policy, lines, trace.distinct)?;
        let counts = hits(&mut cache, &trace.lines, &ends);
        for count in &counts {
            hash.write_u64(*count);
        }
        caches.push(counts);
        go_on()?;
    }
    let mut curves: Vec<Vec<u64>> = Vec::new();
    for spec in &document.curves {
        let sizes = spec.bytes.iter().map(|bytes| document.line_count(*bytes));
        curves.push(curve(
            &spec.policy,
            &sizes.collect::<Vec<_>>(),
            &trace,
            &ends,
        )?);
        go_on()?;
    }
    let use_count = ends.last().copied().unwrap_or(0) as u64 * caches.len() as u64;
    Ok(Outcome {
        head: Head::new(hash.value(), use_count),
        distinct: trace.distinct,
        ends,
        caches,
        curves,
    })
}

/// Hits after the warm-up of each size: of LRU all in one pass, of others one by one.
fn curve(
    policy: &str,
    sizes: &[usize],
    trace: &Trace,
    ends: &[usize],
) -> Result<Vec<u64>, LeadlineError> {
    let warm = ends.first().copied().unwrap_or(0);
    if policy == "lru" {
        let curve = LruCurve::new(&trace.lines, warm);
        return Ok(sizes.iter().map(|size| curve.hits(*size)).collect());
    }
    let whole = [warm, trace.lines.len()];
    let simulated = sizes.iter().map(|size| {
        let mut cache = AnyReadCache::new(policy, *size, trace.distinct)?;
        Ok(hits(&mut cache, &trace.lines, &whole)[1])
    });
    simulated.collect()
}
