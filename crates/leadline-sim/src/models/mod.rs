//! Models: components to build systems from, and systems.
//!
//! A component is passive: it keeps state and says what to schedule; the model that owns it schedules its own events.

mod discipline;
mod queueing;
mod service;
mod station;
mod token_bucket;

pub use discipline::{Discipline, Fifo, Next};
pub use queueing::{Queueing, QueueingEvent};
pub use service::{Drawn, Service};
pub use station::{Finished, Little, Started, Station, Waiting};
pub use token_bucket::{IO_UNIT_BYTES, IopsLimit, io_units};
