//! Models: components to build systems from, and systems.
//!
//! A component is passive: it keeps state and says what to schedule; the model that owns it schedules its own events.

mod account;
pub mod cache_tier;
mod client_queues;
pub mod cluster_storage;
mod cost;
mod device;
mod discipline;
mod disk_drive;
mod dmclock;
pub mod far_memory;
mod fluid;
pub mod gpu_time_slicing;
pub mod hypervisor_cpu;
pub mod management_plane;
mod mclock;
mod min_tree;
mod parda;
mod policy;
mod qos_host;
mod queueing;
pub mod read_cache;
mod request;
mod scheduler;
mod service;
mod sfq;
mod sioc_v2;
mod station;
pub mod storage_path;
mod token_bucket;
mod wakes;
mod window_law;
pub mod write_cache;

pub use account::Account;
pub use cost::CostRule;
pub use device::{Curve, Device, Speed, Times};
pub use discipline::{Discipline, Fifo, Next};
pub use disk_drive::{DeviceQueue, Drive, Nearest};
pub use dmclock::{DistributedRequest, DmClockCluster, DmClockEvent, Placement, ServiceTracker};
pub use fluid::fluid_allocation;
pub use mclock::{MClock, Released};
pub use min_tree::{ABSENT, MinTree};
pub use parda::{HostRequest, PardaCluster, PardaEvent, PardaHost};
pub use policy::{QosPolicy, Shares};
pub use qos_host::{QosEvent, QosHost, QosVm, RequestSize, SharedRate};
pub use queueing::{Queueing, QueueingEvent};
pub use request::{Elsewhere, Phase, Request, VmRequest};
pub use scheduler::{Client, Io, RoundRobin, SCHEDULERS, Scheduler, Setting};
pub use service::{Drawn, Service};
pub use sfq::Sfq;
pub use sioc_v2::{DiskPolicy, sioc_v2};
pub use station::{Finished, Little, Started, Station, Waiting};
pub use token_bucket::{IO_UNIT_BYTES, IopsLimit, io_units};
pub use wakes::Wakes;
pub use window_law::{WindowLaw, latency_at_peak_share};
