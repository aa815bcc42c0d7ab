//! Parts of outcomes: what is measured of requests and of levels, as named columns.

use serde::Serialize;

use crate::measure::{Durations, Interval, LogLinear};
use crate::models::{IoMeasures, Little};
use crate::time::Nanos;

/// Buckets of a histogram, ns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Buckets {
    /// The least value of each.
    pub lower: Vec<u64>,
    /// The least value above each.
    pub upper: Vec<u64>,
    /// Values in each.
    pub count: Vec<u64>,
}

impl From<&LogLinear> for Buckets {
    fn from(histogram: &LogLinear) -> Self {
        let mut columns = Self::default();
        for bucket in histogram.buckets() {
            columns.lower.push(bucket.lower);
            columns.upper.push(bucket.upper);
            columns.count.push(bucket.count);
        }
        columns
    }
}

/// How long things took.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// How many.
    pub count: u64,
    /// Their mean, ns; none without any.
    pub mean: Option<f64>,
    /// All of them.
    pub histogram: Buckets,
}

impl From<&Durations> for Spread {
    fn from(durations: &Durations) -> Self {
        Self {
            count: durations.count(),
            mean: durations.mean(),
            histogram: durations.histogram().into(),
        }
    }
}

/// Requests that completed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Completed {
    /// From issue to completion.
    #[serde(flatten)]
    pub responses: Spread,
    /// Their bytes.
    pub bytes: u64,
}

/// Little's law as it was measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LittleFigures {
    /// L, requests in the system on average.
    pub in_system_mean: f64,
    /// λ, completions per second.
    pub rate_per_second: f64,
    /// W, mean time in the system, seconds.
    pub residence_seconds_mean: f64,
    /// λW / L - 1.
    pub imbalance: f64,
}

impl From<Little> for LittleFigures {
    fn from(little: Little) -> Self {
        Self {
            in_system_mean: little.in_system_mean,
            rate_per_second: little.rate_per_second,
            residence_seconds_mean: little.residence_seconds_mean,
            imbalance: little.imbalance(),
        }
    }
}

/// A mean with its interval, from means of batches.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct IntervalFigures {
    /// The mean.
    pub mean: f64,
    /// Half the width of the 95 % interval.
    pub half_width: f64,
    /// Of neighbouring batches.
    pub correlation: f64,
}

impl From<Interval> for IntervalFigures {
    fn from(interval: Interval) -> Self {
        Self {
            mean: interval.mean,
            half_width: interval.half_width,
            correlation: interval.correlation,
        }
    }
}

/// Requests by window of time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct IoSeries {
    /// Completions.
    pub count: Vec<u64>,
    /// Mean latency, ms; NaN without any.
    pub latency_ms: Vec<f64>,
    /// The longest, ms.
    pub latency_ms_max: Vec<f64>,
    /// Bytes.
    pub bytes: Vec<f64>,
}

impl From<&IoMeasures> for IoSeries {
    fn from(measures: &IoMeasures) -> Self {
        Self {
            count: measures.latency_ms.counts(),
            latency_ms: measures.latency_ms.means(),
            latency_ms_max: measures.latency_ms.maxima(),
            bytes: measures.bytes.sums(),
        }
    }
}

/// What is measured of everything that issues requests.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct IoFigures {
    /// Little's law; none when nothing completed.
    pub little: Option<LittleFigures>,
    /// Completions per second; none with too few.
    pub rate_interval: Option<IntervalFigures>,
    /// Latency in ns; none with too few.
    pub latency_interval: Option<IntervalFigures>,
    /// Requests after which latency was steady; none when it never was.
    pub steady_after: Option<u64>,
    /// The measured time.
    pub series: IoSeries,
    /// The warm-up.
    pub warm_up: IoSeries,
    /// Reads and writes of each source, in order.
    pub done: Vec<Completed>,
}

impl IoFigures {
    /// Of what was measured until `now`, and in the warm-up before.
    #[must_use]
    pub fn new(measures: &IoMeasures, warm_up: &IoMeasures, now: Nanos) -> Self {
        let done = measures.done.iter().flatten().map(|way| Completed {
            responses: (&way.responses).into(),
            bytes: way.bytes,
        });
        Self {
            little: measures.total.little(now).map(Into::into),
            rate_interval: measures.rate.interval().map(Into::into),
            latency_interval: measures.in_order.interval_after(0).map(Into::into),
            steady_after: measures.in_order.warm_up(),
            series: measures.into(),
            warm_up: warm_up.into(),
            done: done.collect(),
        }
    }
}
