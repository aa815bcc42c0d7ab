//! The law by which PARDA and Storage I/O Control, version 1, set the window of a host.
//!
//! # Model
//! w' = (1 - γ) w + γ (ℒ/L w + β), between two bounds.
//!
//! # Assumptions
//! Latency says how loaded the array is.
//!
//! # Parameters
//! Threshold ℒ, fixed or at a share of the peak throughput; period; γ; memory α of the latency; β per share; bounds.
//!
//! # Limits
//! γ, α and β per share have no published default in the product: those here are judgement.
//!
//! # Sources
//! Gulati, Ahmad and Waldspurger, "PARDA" (FAST 2009), section 3.2, equations 1 and 2 and bounds.

use serde::Deserialize;

use crate::time::{MILLISECOND, Nanos, SECOND};
use leadline_stats::error::LeadlineError;

/// How a host sets its window.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WindowLaw {
    /// ℒ, ns.
    pub threshold: Nanos,
    /// ns between two settings. Source: SIOC, 4 s.
    pub period: Nanos,
    /// γ from 0 to 1: how fast the window follows. Judgement: 0.8 settles in a few periods without swinging.
    pub gain: f64,
    /// α from 0 to 1: the weight of the past in the latency. Judgement: 0.2, as a period averages already.
    pub memory: f64,
    /// β of 1,000 shares. Judgement: 4 keeps the latency of an array of usual depth near the threshold.
    pub beta_per_1000_shares: f64,
    /// The bounds of a window. Source: SIOC, 4 to the depth of the adapter's queue, 32 for most.
    pub window_min: f64,
    /// See `window_min`.
    pub window_max: f64,
    /// Whether hosts know the latency of all, as SIOC does through a file on the datastore, or each its own only.
    pub is_latency_shared: bool,
    /// Whether machines that do not use their part lend less of their shares.
    pub adapts_to_idle: bool,
}

impl Default for WindowLaw {
    fn default() -> Self {
        Self {
            threshold: 30 * MILLISECOND,
            period: 4 * SECOND,
            gain: 0.8,
            memory: 0.2,
            beta_per_1000_shares: 4.0,
            window_min: 4.0,
            window_max: 32.0,
            is_latency_shared: false,
            adapts_to_idle: true,
        }
    }
}

impl WindowLaw {
    /// Storage I/O Control: the latency of the whole datastore counts.
    #[must_use]
    pub fn sioc_v1() -> Self {
        Self {
            is_latency_shared: true,
            ..Self::default()
        }
    }

    /// The next window. Latency in ns; a host that saw none counts as far below the threshold and doubles.
    #[must_use]
    pub fn next_window(&self, window: f64, latency: Option<f64>, beta: f64) -> f64 {
        let threshold = self.threshold as f64;
        // Judgement: a hundredth of the threshold is as good as none, and keeps the quotient in range.
        let quotient = latency.map_or(2.0, |latency| threshold / latency.max(threshold / 100.0));
        let aim = quotient * window + beta;
        let next = (1.0 - self.gain) * window + self.gain * aim;
        next.clamp(self.window_min, self.window_max)
    }

    /// Whether the numbers make sense.
    ///
    /// # Errors
    /// When they do not.
    pub fn check(&self) -> Result<(), LeadlineError> {
        let share = |value: f64| (0.0..=1.0).contains(&value);
        let refuse = |place: &str, found: f64, expected: &str| {
            let advice = "Leave it out for the documented value.";
            Err(LeadlineError::new(
                place,
                found.to_string(),
                expected,
                advice,
            ))
        };
        if self.threshold == 0 {
            return refuse("threshold", 0.0, "more than 0 ms");
        }
        if self.period == 0 {
            return refuse("period", 0.0, "more than 0 s");
        }
        if !share(self.gain) || self.gain == 0.0 {
            return refuse("gain", self.gain, "more than 0, up to 1");
        }
        if !share(self.memory) || self.memory >= 1.0 {
            return refuse("memory", self.memory, "from 0 to less than 1");
        }
        if self.beta_per_1000_shares.is_nan() || self.beta_per_1000_shares <= 0.0 {
            return refuse("beta", self.beta_per_1000_shares, "more than 0");
        }
        if !(self.window_min >= 1.0 && self.window_max >= self.window_min) {
            return refuse(
                "window",
                self.window_min,
                "from 1 up, not above its upper bound",
            );
        }
        Ok(())
    }
}

/// The latency, ns, at which a device reaches `share` of its peak throughput, from its throughput per second at rising
/// numbers outstanding, by Little's law; None without any throughput.
///
/// Source: VMware, "vSphere resource management": "percentage of peak throughput", 90 % by default.
#[must_use]
pub fn latency_at_peak_share(curve: &[(f64, f64)], share: f64) -> Option<f64> {
    let peak = curve.iter().map(|point| point.1).fold(0.0, f64::max);
    let reached = |point: &&(f64, f64)| point.1 > 0.0 && point.1 >= share * peak;
    let (outstanding, per_second) = curve.iter().find(reached)?;
    Some(outstanding / per_second * SECOND as f64)
}
