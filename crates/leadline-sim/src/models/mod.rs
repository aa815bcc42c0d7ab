//! Models: components to build systems from, and systems.
//!
//! A component is passive: it keeps state and says what to schedule; the model that owns it schedules its own events.

mod account;
mod device;
mod discipline;
mod policy;
mod queueing;
mod service;
mod station;
pub mod storage_path;
mod token_bucket;

pub use account::Account;
pub use device::{Curve, Device, Speed, Times};
pub use discipline::{Discipline, Fifo, Next};
pub use policy::{Client, Io, RoundRobin, SCHEDULERS, Scheduler, Setting};
pub use queueing::{Queueing, QueueingEvent};
pub use service::{Drawn, Service};
pub use station::{Finished, Little, Started, Station, Waiting};
pub use token_bucket::{IO_UNIT_BYTES, IopsLimit, io_units};
