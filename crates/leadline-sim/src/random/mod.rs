//! Random numbers that are the same on every machine.

mod distribution;
mod empirical;
mod samplers;
mod stream;
mod ziggurat;

pub use distribution::Distribution;
pub use empirical::Empirical;
pub use samplers::{Constant, Erlang, Exponential, LogNormal, Normal, Pareto, Sample, Uniform};
pub use stream::{Stream, Streams};
