//! Discrete-event simulation: the kernel.
pub mod kernel;
pub mod random;
pub mod time;
