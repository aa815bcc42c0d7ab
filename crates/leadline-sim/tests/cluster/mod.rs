//! A cluster to test, and how to run it.

#![allow(clippy::unwrap_used)] // a test may end so
#![allow(dead_code)] // each file of tests uses its part

use leadline_sim::kernel::Simulation;
use leadline_sim::measure::TraceHash;
use leadline_sim::models::Times;
use leadline_sim::models::cluster_storage::{
    ABSENT_DELAY, ClusterStorage, DiskSpec, FailureSpec, NodeSpec, Protection, RecoverySpec,
    SourceSpec, Spec, VmSpec,
};
use leadline_sim::models::storage_path::Arrivals;
use leadline_sim::random::{Constant, Distribution};
use leadline_sim::time::{MICROSECOND, MILLISECOND, Nanos, SECOND};

pub type Run = Simulation<ClusterStorage, TraceHash>;

pub const MB: u64 = 1_000_000;
pub const MIB: u64 = 1 << 20;
pub const SCHEMES: [&str; 5] = ["replicas-2", "replicas-3", "ec-3+1", "ec-3+2", "ec-4+2"];

pub fn constant(nanos: Nanos) -> Distribution {
    Distribution::Constant(Constant(nanos as f64))
}

/// A disk that takes `position` ns to find a place and transfers at so many bytes per second.
pub fn disk(node: usize, number: usize, position: Nanos, bytes_per_second: f64) -> DiskSpec {
    DiskSpec {
        name: format!("node{node}/{number}"),
        node,
        parallelism: 1,
        times: Times {
            read: constant(position),
            write: constant(position),
            sequential: Some(constant(1)),
            bytes_per_second,
        },
        capacity: u64::MAX,
    }
}

pub fn source(arrivals: Arrivals, bytes: u32, read_share: f64, random_share: f64) -> SourceSpec {
    SourceSpec {
        name: "io".to_owned(),
        arrivals,
        burst: None,
        sizes: vec![(bytes, 1.0)],
        read_share,
        random_share,
    }
}

pub fn closed(outstanding: u32, bytes: u32, read_share: f64) -> SourceSpec {
    let arrivals = Arrivals::Closed {
        outstanding,
        think: 0,
    };
    source(arrivals, bytes, read_share, 1.0)
}

/// So many nodes with so many disks of 5 ms and 100 MB/s; the VM with this source runs on one more node without disks.
pub fn cluster(scheme: &str, nodes: usize, disks: usize, sources: Vec<SourceSpec>) -> Spec {
    let protection = Protection::named(scheme).unwrap();
    let node = |number| NodeSpec {
        name: format!("node{number}"),
        bytes_per_second: 1e9,
    };
    let disks = (0..nodes)
        .flat_map(|node| (0..disks).map(move |number| disk(node, number, 5 * MILLISECOND, 100e6)));
    Spec {
        seed: 1,
        measured: 60 * SECOND,
        window: SECOND,
        protection,
        chunk_bytes: 12 * MIB,
        unit_bytes: MIB,
        network_latency: 50 * MICROSECOND,
        nodes: (0..=nodes).map(node).collect(),
        disks: disks.collect(),
        group_count: 1,
        vms: vec![VmSpec {
            name: "vm".to_owned(),
            group: 0,
            node: nodes,
            bytes: 240 * MIB,
            limit: None,
            sources,
        }],
        failures: Vec::new(),
        recovery: RecoverySpec {
            share: 0.2,
            streams: 4,
            piece_bytes: 1 << 20,
            absent_delay: ABSENT_DELAY,
        },
    }
}

pub fn node_failure(node: usize, at: Nanos, spec: &Spec) -> FailureSpec {
    let disks = (0..spec.disks.len()).filter(|disk| spec.disks[*disk].node == node);
    FailureSpec {
        at,
        disks: disks.collect(),
        node: Some(node),
        is_lost: false,
        returns_after: None,
    }
}

pub fn begin(spec: Spec) -> Run {
    Simulation::observed(ClusterStorage::new(spec).unwrap(), TraceHash::default())
}

/// Warms up for 5 s and measures 60 s, and looks for what is not conserved many times on the way.
pub fn run(spec: Spec) -> Run {
    let mut simulation = begin(spec);
    simulation.run_until(5 * SECOND);
    simulation.check().unwrap();
    let now = simulation.now();
    simulation.model.restart_measuring(now);
    for part in 1..=60 {
        simulation.run_until(now + part * SECOND);
        simulation.check().unwrap();
    }
    simulation
}

/// Runs for `length` ns, looking at everything a hundred times.
pub fn run_for(spec: Spec, length: Nanos) -> Run {
    let mut simulation = begin(spec);
    for part in 1..=100 {
        simulation.run_until(length / 100 * part);
        simulation.check().unwrap();
    }
    simulation
}

pub fn done(run: &Run) -> f64 {
    run.model.groups[0].total.left_count() as f64
}

pub fn latency_ms(run: &Run) -> f64 {
    run.model.groups[0].total.stay_mean().unwrap() / MILLISECOND as f64
}

#[track_caller]
pub fn close(found: f64, expected: f64, tolerance: f64) {
    assert!(
        (found / expected - 1.0).abs() < tolerance,
        "{found} for {expected}"
    );
}
