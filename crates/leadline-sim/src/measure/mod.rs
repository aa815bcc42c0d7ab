//! What a run measures, in memory that does not grow with the number of events.

mod batches;
mod durations;
mod rate;
mod recorder;
mod series;
mod steady;
mod trace_hash;
mod weighted;

pub use batches::{Batches, Interval};
pub use durations::Durations;
pub use leadline_stats::histogram::{Bucket, LogLinear};
pub use rate::Rate;
pub use recorder::Recorder;
pub use series::{LevelSeries, WindowSeries};
pub use steady::{WarmUp, mser};
pub use trace_hash::TraceHash;
pub use weighted::TimeWeighted;
