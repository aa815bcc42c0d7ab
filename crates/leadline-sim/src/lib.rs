//! Discrete-event simulation: the kernel.
pub mod error;
pub mod kernel;
pub mod measure;
pub mod models;
pub mod random;
pub mod sources;
pub mod time;
pub mod yardstick;
