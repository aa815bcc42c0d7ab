//! Models: components to build systems from, and systems.
//!
//! A component is passive: it keeps state and says what to schedule; the model that owns it schedules its own events.

mod account;
mod arrivals;
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
mod io_measures;
pub mod management_plane;
mod mclock;
mod min_tree;
pub mod parda;
mod policy;
mod qos_host;
mod qos_known;
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

use crate::document::{Runner, run};

/// The systems that scenarios name, and what runs each.
pub const SYSTEMS: &[(&str, Runner)] = &[
    ("cache-tiers", |text, _, watch| {
        run(text, |document| {
            cache_tier::system::simulate(document, watch)
        })
    }),
    ("cluster-storage", |text, _, watch| {
        run(text, |document| {
            cluster_storage::system::simulate(document, watch)
        })
    }),
    ("far-memory", |text, _, watch| {
        run(text, |document| {
            far_memory::system::simulate(document, watch)
        })
    }),
    ("gpu-time-slicing", |text, _, watch| {
        run(text, |document| {
            gpu_time_slicing::system::simulate(document, watch)
        })
    }),
    ("hypervisor-cpu", |text, _, watch| {
        run(text, |document| {
            hypervisor_cpu::system::simulate(document, watch)
        })
    }),
    ("management-plane", |text, _, watch| {
        run(text, |document| {
            management_plane::system::simulate(document, watch)
        })
    }),
    ("parda", |text, _, watch| {
        run(text, |document| parda::system::simulate(document, watch))
    }),
    ("read-cache", |text, recorded, watch| {
        run(text, |document| {
            read_cache::system::simulate(document, recorded, watch)
        })
    }),
    ("storage-path", |text, recorded, watch| {
        run(text, |document| {
            storage_path::system::simulate(document, recorded, watch)
        })
    }),
    ("write-cache", |text, _, watch| {
        run(text, |document| {
            write_cache::system::simulate(document, watch)
        })
    }),
];

pub use account::Account;
pub use cost::CostRule;
pub use device::{Curve, Device, Speed, Times};
pub use discipline::{Discipline, Fifo, Next};
pub use disk_drive::{DeviceQueue, Drive, Nearest};
pub use dmclock::{DistributedRequest, DmClockCluster, DmClockEvent, Placement, ServiceTracker};
pub use fluid::fluid_allocation;
pub use io_measures::{Done, IoMeasures};
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
