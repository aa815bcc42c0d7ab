//! A distribution chosen when the program runs, as a scenario names it.

use serde::Deserialize;

use std::sync::Arc;

use super::empirical::Empirical;
use super::samplers::{Constant, Erlang, Exponential, LogNormal, Normal, Pareto, Sample, Uniform};
use super::stream::Stream;
use crate::time::SECOND;
use leadline_stats::error::{LeadlineError, wrong};

/// Any of the distributions; costs one branch more than the type itself.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "Draw")]
pub enum Distribution {
    /// Always the same.
    Constant(Constant),
    /// Equally likely between bounds.
    Uniform(Uniform),
    /// Without memory.
    Exponential(Exponential),
    /// A sum of exponential parts.
    Erlang(Erlang),
    /// Bell-shaped, cut at 0.
    Normal(Normal),
    /// Skewed.
    LogNormal(LogNormal),
    /// Heavy-tailed.
    Pareto(Pareto),
    /// As measured.
    Empirical(Arc<Empirical>),
}

/// A length of time as scenarios have it, in seconds: `cv` is the standard deviation by the mean, `shape` the exponent of a
/// Pareto tail.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
enum Draw {
    Constant { mean: f64 },
    Uniform { low: f64, high: f64 },
    Exponential { mean: f64 },
    Erlang { mean: f64, stages: u32 },
    Normal { mean: f64, cv: f64 },
    LogNormal { mean: f64, cv: f64 },
    Pareto { mean: f64, shape: f64 },
    Empirical { buckets: Vec<(f64, f64, f64)> },
}

impl TryFrom<Draw> for Distribution {
    type Error = LeadlineError;

    /// The same in ns.
    fn try_from(draw: Draw) -> Result<Self, LeadlineError> {
        let ns = |seconds: f64| seconds * SECOND as f64;
        let distribution = match draw {
            Draw::Constant { mean } => Self::Constant(Constant(ns(mean))),
            Draw::Uniform { low, high } => Self::Uniform(Uniform {
                low: ns(low),
                high: ns(high),
            }),
            Draw::Exponential { mean } => Self::Exponential(Exponential { mean: ns(mean) }),
            Draw::Erlang { mean, stages } => Self::Erlang(Erlang {
                mean: ns(mean),
                stages,
            }),
            Draw::Normal { mean, cv } => Self::Normal(Normal {
                mean: ns(mean),
                deviation: cv * ns(mean),
            }),
            Draw::LogNormal { mean, cv } => Self::LogNormal(LogNormal::from_mean(ns(mean), cv)),
            Draw::Pareto { mean, shape } => Self::Pareto(Pareto::from_mean(ns(mean), shape)),
            Draw::Empirical { buckets } => {
                let buckets: Vec<_> = buckets
                    .into_iter()
                    .map(|(lower, upper, weight)| (ns(lower), ns(upper), weight))
                    .collect();
                let Some(empirical) = Empirical::from_buckets(&buckets) else {
                    return wrong("distribution", "buckets without weight", "weights above 0");
                };
                Self::Empirical(Arc::new(empirical))
            }
        };
        distribution.check("distribution")?;
        Ok(distribution)
    }
}

impl Distribution {
    /// Whether the parameters make a distribution of numbers that are finite and not negative.
    ///
    /// # Errors
    /// When they do not; `place` says whose parameters they are.
    pub fn check(&self, place: &str) -> Result<(), LeadlineError> {
        let sound = |x: f64| x.is_finite() && x >= 0.0;
        let (fine, found, expected) = match self {
            Self::Constant(d) => (sound(d.0), format!("constant {}", d.0), "0 or more"),
            Self::Uniform(d) => (
                sound(d.low) && sound(d.high) && d.low <= d.high,
                format!("uniform from {} to {}", d.low, d.high),
                "bounds of 0 or more, the lower one first",
            ),
            Self::Exponential(d) => (
                sound(d.mean),
                format!("exponential, mean {}", d.mean),
                "a mean of 0 or more",
            ),
            Self::Erlang(d) => (
                sound(d.mean) && d.stages > 0,
                format!("Erlang, mean {}, {} stages", d.mean, d.stages),
                "a mean of 0 or more and at least one stage",
            ),
            Self::Normal(d) => (
                sound(d.mean) && sound(d.deviation),
                format!("normal, mean {}, deviation {}", d.mean, d.deviation),
                "a mean and a deviation of 0 or more",
            ),
            Self::LogNormal(d) => (
                d.parameters().0.is_finite() && sound(d.parameters().1),
                format!(
                    "lognormal, location {}, scale {}",
                    d.parameters().0,
                    d.parameters().1
                ),
                "a median or mean above 0 and a deviation of 0 or more",
            ),
            Self::Pareto(d) => (
                sound(d.minimum) && d.shape.is_finite() && d.shape > 0.0,
                format!("Pareto, minimum {}, shape {}", d.minimum, d.shape),
                "a minimum of 0 or more and a shape above 0 (above 1 when the mean is given)",
            ),
            Self::Empirical(_) => return Ok(()), // checked when it was made
        };
        if fine {
            return Ok(());
        }
        let advice = "Correct the parameter; times cannot be negative.";
        Err(LeadlineError::new(place, found, expected, advice))
    }
}

impl Sample for Distribution {
    #[inline]
    fn draw(&self, stream: &mut Stream) -> f64 {
        match self {
            Self::Constant(d) => d.draw(stream),
            Self::Uniform(d) => d.draw(stream),
            Self::Exponential(d) => d.draw(stream),
            Self::Erlang(d) => d.draw(stream),
            Self::Normal(d) => d.draw(stream),
            Self::LogNormal(d) => d.draw(stream),
            Self::Pareto(d) => d.draw(stream),
            Self::Empirical(d) => d.draw(stream),
        }
    }

    fn mean(&self) -> f64 {
        match self {
            Self::Constant(d) => d.mean(),
            Self::Uniform(d) => d.mean(),
            Self::Exponential(d) => d.mean(),
            Self::Erlang(d) => d.mean(),
            Self::Normal(d) => d.mean(),
            Self::LogNormal(d) => d.mean(),
            Self::Pareto(d) => d.mean(),
            Self::Empirical(d) => d.mean(),
        }
    }
}
