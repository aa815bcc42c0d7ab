//! Devices: how long a request takes on a disk, an SSD or an array.
//!
//! # Model
//! Either a time drawn from a distribution, by what the request is, plus its transfer at the device's bandwidth; or a
//! curve of latency against operations per second, as a sweep measures it: a request that finds n - 1 others takes as
//! long as requests take on average with n outstanding; or a hard disk's mechanics.
//!
//! # Assumptions
//! A curve's throughput stays at that of its last point beyond it, and its latency at that of its first before it.
//!
//! # Parameters
//! Times of reads, writes and sequential requests; bytes per second; or points of (operations per second, latency).
//!
//! # Limits
//! Requests do not disturb each other but by queueing, by the curve and by the head they move: no garbage collection, no
//! cache.
//!
//! # Sources
//! Little, "A proof for the queuing formula L = λW" (1961): outstanding requests of a point are rate times latency.

use serde::Deserialize;

use super::disk_drive::Drive;
use super::scheduler::Io;
use super::service::Service;
use crate::random::{Constant, Distribution, LogNormal, Sample, Stream};
use crate::time::{Nanos, SECOND, whole};
use leadline_stats::error::LeadlineError;

/// Times in ns by kind of request.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Times {
    /// Of reads.
    pub read: Distribution,
    /// Of writes.
    pub write: Distribution,
    /// Of requests behind the one before, reads and writes alike; None: as random ones.
    pub sequential: Option<Distribution>,
    /// Bytes per second each request is transferred at after that; infinite for at once.
    #[serde(deserialize_with = "crate::document::or_infinite")]
    pub bytes_per_second: f64,
}

/// A curve as documents have it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MeasuredCurve {
    /// Operations per second with their mean latency in ns.
    points: Vec<(f64, f64)>,
    /// Standard deviation by mean of the latency around the curve.
    spread: f64,
}

impl TryFrom<MeasuredCurve> for Curve {
    type Error = LeadlineError;

    fn try_from(curve: MeasuredCurve) -> Result<Self, LeadlineError> {
        let spread = if curve.spread > 0.0 {
            Distribution::LogNormal(LogNormal::from_mean(1.0, curve.spread))
        } else {
            Distribution::Constant(Constant(1.0))
        };
        Self::new(&curve.points, spread, "device")
    }
}

/// Latency against outstanding requests.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "MeasuredCurve")]
pub struct Curve {
    /// (outstanding requests, mean latency in ns), both ascending in the first.
    points: Vec<(f64, f64)>,
    /// Around the mean: a distribution of mean 1.
    spread: Distribution,
}

impl Curve {
    /// From points of (operations per second, mean latency in ns) in the order of load, and a distribution of mean 1.
    ///
    /// # Errors
    /// When there is no point, or load does not grow from point to point; `place` says whose curve it is.
    pub fn new(
        measured: &[(f64, f64)],
        spread: Distribution,
        place: &str,
    ) -> Result<Self, LeadlineError> {
        let points: Vec<_> = measured
            .iter()
            .map(|(iops, latency)| (iops * latency / SECOND as f64, *latency))
            .collect();
        let sound = points.iter().all(|p| p.0.is_finite() && p.0 > 0.0);
        if points.is_empty() || !sound || !points.windows(2).all(|pair| pair[0].0 < pair[1].0) {
            return Err(LeadlineError::new(
                format!("{place}: curve"),
                format!(
                    "{} points, outstanding {:?}",
                    points.len(),
                    outstanding(&points)
                ),
                "points of (operations per second, latency), their product growing from point to point",
                "List the points of a sweep from the lowest load to the highest.",
            ));
        }
        Ok(Self { points, spread })
    }

    /// Mean latency with this many outstanding, ns.
    #[must_use]
    pub fn latency(&self, outstanding: f64) -> f64 {
        let next = self.points.partition_point(|point| point.0 < outstanding);
        match (
            next.checked_sub(1).map(|i| self.points[i]),
            self.points.get(next),
        ) {
            (Some((n0, t0)), Some((n1, t1))) => t0 + (t1 - t0) * (outstanding - n0) / (n1 - n0),
            (Some((n0, t0)), None) => t0 * outstanding / n0,
            (None, Some((_, first))) => *first,
            (None, None) => 0.0,
        }
    }
}

fn outstanding(points: &[(f64, f64)]) -> Vec<f64> {
    points.iter().map(|point| point.0).collect()
}

/// What a device does with a request.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Speed {
    /// Times by kind of request.
    Times(Times),
    /// As measured, by load.
    Curve(Curve),
    /// A hard disk.
    Drive(Drive),
}

impl Speed {
    /// Whether requests can be served so.
    ///
    /// # Errors
    /// When a time is no sound distribution or always 0; `place` says whose.
    pub fn check(&self, place: &str) -> Result<(), LeadlineError> {
        let (all, bandwidth) = match self {
            Self::Times(own) => {
                let sequential = own.sequential.iter();
                let all: Vec<_> = [&own.read, &own.write]
                    .into_iter()
                    .chain(sequential)
                    .collect();
                (all, own.bytes_per_second)
            }
            Self::Curve(own) => (vec![&own.spread], f64::INFINITY),
            Self::Drive(own) => return own.check(place),
        };
        for distribution in &all {
            distribution.check(place)?;
        }
        if all.iter().any(|own| own.mean() <= 0.0) || bandwidth.is_nan() || bandwidth <= 0.0 {
            return Err(LeadlineError::new(
                place,
                "a time or a bandwidth of 0",
                "service times and a bandwidth above 0",
                "Correct the scenario.",
            ));
        }
        Ok(())
    }
}

/// The service of a device's servers; no request takes less than 1 ns, so that time goes on.
#[derive(Clone, Debug)]
pub struct Device {
    speed: Speed,
    stream: Stream,
    /// Of a drive.
    head: u32,
}

impl Device {
    /// Draws from `stream`.
    #[must_use]
    pub fn new(speed: Speed, stream: Stream) -> Self {
        Self {
            speed,
            stream,
            head: 0,
        }
    }
}

impl Service<Io> for Device {
    #[inline]
    fn time(&mut self, now: Nanos, io: &Io, busy_count: u64) -> Nanos {
        let time = match &self.speed {
            Speed::Times(times) => {
                let own = match &times.sequential {
                    Some(sequential) if !io.is_random => sequential,
                    _ if io.is_write => &times.write,
                    _ => &times.read,
                };
                let transfer = f64::from(io.bytes) / times.bytes_per_second * SECOND as f64;
                own.draw(&mut self.stream) + transfer
            }
            Speed::Curve(curve) => {
                curve.latency(busy_count as f64) * curve.spread.draw(&mut self.stream)
            }
            Speed::Drive(drive) => {
                let reached = drive.positioning(now, self.head, io.place);
                self.head = drive.after(io.place, io.bytes);
                reached + drive.transfer(io.place, io.bytes)
            }
        };
        whole(time).max(1)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::float_cmp)] // a test may end so, and these numbers are exact
mod tests {
    use super::*;
    use crate::random::Constant;

    #[test]
    fn a_curve_is_met_at_its_points_and_levels_off_beyond() {
        let one = Distribution::Constant(Constant(1.0));
        let measured = [(1_000.0, 1e6), (4_000.0, 2e6), (5_000.0, 6.4e6)];
        let curve = Curve::new(&measured, one.clone(), "ssd").unwrap();
        assert_eq!(curve.latency(0.5), 1e6);
        assert_eq!(curve.latency(1.0), 1e6);
        assert_eq!(curve.latency(8.0), 2e6);
        assert_eq!(curve.latency(20.0), 4.2e6);
        assert_eq!(curve.latency(32.0), 6.4e6);
        assert_eq!(curve.latency(64.0), 12.8e6, "5,000 per second and no more");
        for senseless in [&[][..], &[(1_000.0, 1e6), (500.0, 1e6)], &[(0.0, 1e6)]] {
            assert!(Curve::new(senseless, one.clone(), "ssd").is_err());
        }
    }
}
