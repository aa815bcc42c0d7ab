//! A distribution chosen when the program runs, as a scenario names it.

use std::sync::Arc;

use super::empirical::Empirical;
use super::samplers::{Constant, Erlang, Exponential, LogNormal, Normal, Pareto, Sample, Uniform};
use super::stream::Stream;

/// Any of the distributions; costs one branch more than the type itself.
#[derive(Clone, Debug, PartialEq)]
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
