//! Discrete events in virtual time.

mod observe;
mod queue;
mod schedule;
mod simulation;
mod timer;
mod wheel;

pub use observe::Observer;
pub use queue::{Entry, EventQueue};
pub use schedule::Schedule;
pub use simulation::{Model, Simulation};
pub use timer::Timer;
