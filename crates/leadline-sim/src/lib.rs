//! Discrete-event simulation in virtual time: the kernel, what models are built from, and models.
//!
//! A run is a function of the model's parameters, the seed and the version: the same events in the same order on every
//! machine, which [`measure::TraceHash`] shows in one number. There is no wall clock, no hash map, and no function of
//! the operating system's mathematical library in this crate.
//!
//! # A model
//!
//! A model is a type with its state, an enumeration of what can happen, and one function that lets it happen:
//!
//! ```
//! use leadline_sim::kernel::{Model, Schedule, Simulation};
//! use leadline_sim::measure::{TimeWeighted, TraceHash};
//! use leadline_sim::random::{Exponential, Sample, Stream, Streams};
//! use leadline_sim::time::{MINUTE, Nanos, SECOND};
//!
//! /// A machine that fails and is repaired.
//! struct Machine {
//!     uptime: Exponential,
//!     repair: Exponential,
//!     stream: Stream,
//!     up: TimeWeighted,
//! }
//!
//! #[derive(Clone, Copy, Hash)]
//! enum Event {
//!     Fail,
//!     Repaired,
//! }
//!
//! impl Model for Machine {
//!     type Event = Event;
//!
//!     fn start(&mut self, schedule: &mut Schedule<Event>) {
//!         schedule.at(0, Event::Repaired);
//!     }
//!
//!     fn handle(&mut self, now: Nanos, event: Event, schedule: &mut Schedule<Event>) {
//!         match event {
//!             Event::Fail => {
//!                 self.up.set(now, 0);
//!                 schedule.after(self.repair.sample(&mut self.stream), Event::Repaired);
//!             }
//!             Event::Repaired => {
//!                 self.up.set(now, 1);
//!                 schedule.after(self.uptime.sample(&mut self.stream), Event::Fail);
//!             }
//!         }
//!     }
//! }
//!
//! let machine = Machine {
//!     uptime: Exponential { mean: 9.0 * SECOND as f64 },
//!     repair: Exponential { mean: 1.0 * SECOND as f64 },
//!     stream: Streams::new(42).stream("machine", "life"),
//!     up: TimeWeighted::default(),
//! };
//! let mut simulation = Simulation::observed(machine, TraceHash::default());
//! simulation.run_until(1000 * MINUTE);
//! let available = simulation.model.up.mean(simulation.now()).unwrap_or(f64::NAN);
//! assert!((available - 0.9).abs() < 0.01);
//! ```
//!
//! # Speed
//!
//! Nothing in the way of an event is boxed or called through a table: the model, its observer and its distributions are
//! compiled together. The queue of pending events was chosen by measurement; ns per event of the hold model (take the
//! earliest, put it back an exponential time later) on a shared machine with 2 cores of an AMD EPYC, medians of
//! `cargo bench -p leadline-bench`:
//!
//! | pending | this kernel | heap of 4 | binary heap | pairing heap |
//! |---:|---:|---:|---:|---:|
//! | 10 | 21 | 35 | 32 | 49 |
//! | 100 | 29 | 63 | 44 | 94 |
//! | 1,000 | 32 | 96 | 60 | 157 |
//! | 10,000 | 42 | 99 | 69 | 249 |
//! | 100,000 | 57 | 152 | 165 | 516 |
//! | 1,000,000 | 76 | 445 | 844 | 1,852 |
//!
//! Delays that are constant, uniform, heavy-tailed or of few different lengths cost 31 to 60 ns with 10,000 pending.
//! An M/M/1 system with all its measurements handles 30 to 44 million events/s, with or without a trace hash, depending on
//! what else the machine does.
//!
//! Schedulers find the next request in trees of minima. ns for one decision and the next arrival, all clients with a backlog,
//! a third each with a reservation, a limit, both; medians of `cargo bench -p leadline-bench --bench qos` on that machine
//! while others used both cores:
//!
//! | clients | mClock | SFQ | mClock's rules by looking at all |
//! |---:|---:|---:|---:|
//! | 4 | 46 | 19 | 41 |
//! | 100 | 81 | 31 | 311 |
//! | 1,000 | 109 | 39 | 2,790 |
//! | 10,000 | 128 | 37 | 21,200 |
//!
//! A host of 100 machines of 1,000 IOPS each under mClock simulates a second in 16 ms.
pub mod document;
pub mod kernel;
pub mod measure;
pub mod models;
pub mod outcome;
pub mod random;
pub mod sources;
pub mod time;
pub mod yardstick;
