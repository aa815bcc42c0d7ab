//! Cluster storage that works against what arithmetic and queueing theory say of it.

#![allow(clippy::unwrap_used)] // a test may end so

mod cluster;

use cluster::*;
use leadline_sim::models::cluster_storage::{ClusterStorage, Protection, Spec, Traffic};
use leadline_sim::models::storage_path::Arrivals;
use leadline_sim::time::SECOND;

#[test]
fn raw_space_is_n_or_k_and_m_by_k() {
    for (scheme, factor) in SCHEMES
        .into_iter()
        .zip([2.0, 3.0, 4.0 / 3.0, 5.0 / 3.0, 1.5])
    {
        close(
            Protection::named(scheme).unwrap().capacity_factor(),
            factor,
            1e-12,
        );
        let model = ClusterStorage::new(cluster(scheme, 6, 2, vec![])).unwrap();
        close(model.layout.raw_by_data(), factor, 1e-12);
    }
}

/// Fragments of a chunk lie on nodes of their own, and nodes hold alike.
#[test]
fn placement_is_apart_and_even() {
    for scheme in SCHEMES {
        let layout = ClusterStorage::new(cluster(scheme, 6, 2, vec![]))
            .unwrap()
            .layout;
        for chunk in 0..u32::try_from(layout.chunk_count()).unwrap() {
            let on = layout
                .of_chunk(chunk)
                .map(|(_, own)| layout.rooms[own.disk as usize].node);
            let mut nodes: Vec<_> = on.collect();
            nodes.sort_unstable();
            nodes.dedup();
            assert_eq!(nodes.len(), layout.protection.width() as usize);
        }
        let used: Vec<u64> = layout.rooms.iter().map(|room| room.used).collect();
        let spread = used.iter().max().unwrap() - used.iter().min().unwrap();
        assert!(spread <= 2 * layout.fragment_bytes, "{scheme}: {used:?}");
    }
}

fn traffic_of(scheme: &str, bytes: u32, read_share: f64) -> (Traffic, f64) {
    let run = run_for(
        cluster(scheme, 6, 2, vec![closed(1, bytes, read_share)]),
        20 * SECOND,
    );
    let requests = done(&run);
    assert!(requests > 100.0);
    (run.model.traffic, requests)
}

/// n writes; or 1 + m reads and 1 + m writes, and as many messages. Source: Patterson, Gibson and Katz (1988).
#[test]
fn a_small_write_costs_what_the_scheme_says() {
    for (scheme, reads, writes) in [
        ("replicas-2", 0.0, 2.0),
        ("replicas-3", 0.0, 3.0),
        ("ec-3+1", 2.0, 2.0),
        ("ec-3+2", 3.0, 3.0),
        ("ec-4+2", 3.0, 3.0),
    ] {
        let (traffic, requests) = traffic_of(scheme, 8_192, 0.0);
        close(1.0 + traffic.reads[0] as f64 / requests, 1.0 + reads, 0.01);
        close(traffic.writes[0] as f64 / requests, writes, 0.01);
        close(
            traffic.sent_bytes[0] as f64 / requests,
            8_192.0 * (reads + writes),
            0.01,
        );
    }
}

/// Whole stripes are written without a read, and nothing but data and parity is sent; reads read what is asked for.
#[test]
fn a_whole_stripe_costs_its_capacity() {
    for (scheme, bytes) in [
        ("ec-3+1", 3 * MIB),
        ("ec-3+2", 3 * MIB),
        ("ec-4+2", 4 * MIB),
        ("replicas-3", 3 * MIB),
    ] {
        let protection = Protection::named(scheme).unwrap();
        let factor = protection.capacity_factor();
        let bytes = u32::try_from(bytes).unwrap();
        let (traffic, requests) = traffic_of(scheme, bytes, 0.0);
        assert_eq!(traffic.reads[0], 0);
        close(
            traffic.writes[0] as f64 / requests,
            f64::from(protection.width()),
            0.02,
        );
        close(
            traffic.written_bytes[0] as f64 / requests,
            f64::from(bytes) * factor,
            0.02,
        );
        close(
            traffic.sent_bytes[0] as f64 / requests,
            f64::from(bytes) * factor,
            0.02,
        );
        let (traffic, requests) = traffic_of(scheme, bytes, 1.0);
        close(
            traffic.reads[0] as f64 / requests,
            f64::from(protection.needed()),
            0.02,
        );
        close(
            traffic.read_bytes[0] as f64 / requests,
            f64::from(bytes),
            0.02,
        );
    }
}

/// A request across chunks and stripes is the sum of its parts.
#[test]
fn parts_of_stripes_are_read_before_they_are_written() {
    // 4 MiB at multiples of 4 MiB in stripes of 3 MiB: whole stripes and parts, three kinds of place in turn.
    let (traffic, requests) = traffic_of("ec-3+2", 1 << 22, 0.0);
    let written = traffic.written_bytes[0] as f64 / requests;
    assert!(
        written > f64::from(1 << 22) * 5.0 / 3.0 + MIB as f64,
        "{written}"
    );
    assert!(traffic.read_bytes[0] as f64 / requests > 2.0 * MIB as f64);
}

/// One disk with Poisson arrivals is M/D/1. Source: Kleinrock, "Queueing systems" 1, section 5.6.
#[test]
fn one_disk_is_m_d_1() {
    let mut spec = cluster(
        "replicas-1",
        1,
        1,
        vec![source(Arrivals::Poisson(140.0), 8_192, 1.0, 1.0)],
    );
    spec.vms[0].node = 0; // on the disk's own node: no network
    let mut simulation = begin(spec);
    simulation.run_until(2_000 * SECOND);
    simulation.check().unwrap();
    let service = 5.0 + 8_192.0 / 100e6 * 1e3;
    let load = 0.14 * service;
    close(
        latency_ms(&simulation),
        service * (1.0 + load / (2.0 * (1.0 - load))),
        0.01,
    );
}

/// A disk that always has work gives what positioning and transfer allow; what follows the last request its bandwidth.
#[test]
fn a_disk_saturates_at_its_limits() {
    let random = run(cluster("replicas-1", 1, 1, vec![closed(4, 65_536, 0.5)]));
    close(
        done(&random) / 60.0,
        1.0 / (0.005 + 65_536.0 / 100e6),
        0.001,
    );
    let mut sequential = closed(4, 1 << 20, 0.0);
    sequential.random_share = 0.0;
    let mut spec = cluster("replicas-1", 1, 1, vec![sequential]);
    spec.chunk_bytes = 240 * MIB;
    close(done(&run(spec)) / 60.0, 100e6 / (1u64 << 20) as f64, 0.005);
}

/// The network before fast disks: a reader receives its card's bandwidth, a writer of n copies sends n times it.
#[test]
fn a_card_saturates_at_its_bandwidth() {
    for (scheme, read_share, part) in [
        ("replicas-3", 1.0, 1.0),
        ("replicas-3", 0.0, 3.0),
        ("ec-3+2", 0.0, 5.0 / 3.0),
    ] {
        let mut spec = cluster(scheme, 6, 4, vec![closed(64, 3 << 20, read_share)]);
        for disk in &mut spec.disks {
            disk.times.read = constant(10_000);
            disk.times.write = constant(10_000);
            disk.times.bytes_per_second = 5e9;
        }
        spec.measured = 5 * SECOND;
        let run = run(spec);
        close(done(&run) / 60.0 * f64::from(3 << 20), 1e9 / part, 0.01);
        let [sent, received] = *run.model.wire_use(run.now()).last().unwrap();
        close(if read_share > 0.0 { received } else { sent }, 1.0, 0.01);
    }
}

#[test]
fn runs_repeat_and_seeds_matter() {
    let spec = || {
        let mut spec = cluster("ec-3+2", 6, 2, vec![closed(16, 65_536, 0.5)]);
        let mut failure = node_failure(1, 10 * SECOND, &spec);
        failure.is_lost = true;
        spec.failures = vec![failure];
        spec
    };
    let (first, second) = (run(spec()), run(spec()));
    assert_eq!(first.observer.value(), second.observer.value());
    assert_eq!(first.model.traffic, second.model.traffic);
    let other = run(Spec { seed: 2, ..spec() });
    assert_ne!(first.observer.value(), other.observer.value());
    let all = first.model.groups.last().unwrap();
    assert_eq!(
        all.total.left_count(),
        first.model.groups[0].total.left_count()
    );
}

/// Another value here means that runs of this version differ from those of the last: say so in the changelog.
#[test]
fn runs_are_those_of_every_machine() {
    let mut spec = cluster("ec-3+2", 6, 2, vec![closed(16, 65_536, 0.5)]);
    let mut failure = node_failure(1, SECOND, &spec);
    failure.is_lost = true;
    spec.failures = vec![failure];
    assert_eq!(
        run_for(spec, 10 * SECOND).observer.value(),
        7_817_971_852_673_675_400
    );
}

type Change = fn(&mut Spec);

#[test]
fn what_makes_no_system_is_refused() {
    let changes: [(Change, &str); 16] = [
        (|s| s.vms.clear(), "system"),
        (|s| s.window = 0, "system"),
        (|s| s.unit_bytes = 0, "cluster"),
        (|s| s.chunk_bytes = 0, "cluster"),
        (|s| s.recovery.share = 1.0, "recovery"),
        (|s| s.recovery.piece_bytes = 0, "recovery"),
        (|s| s.nodes[0].bytes_per_second = 0.0, "node0"),
        (|s| s.disks[0].parallelism = 0, "node0/0"),
        (|s| s.disks[0].times.read = constant(0), "node0/0"),
        (|s| s.vms[0].node = 99, "vm"),
        (|s| s.vms[0].bytes = 4_096, "vm"),
        (|s| s.vms[0].limit = Some((0.0, 1)), "vm"),
        (|s| s.vms[0].sources[0].sizes.clear(), "vm vm: io"),
        (|s| s.failures.push(node_failure(99, 0, s)), "failures"),
        (
            |s| s.protection = Protection::Replicas(7),
            "vm vm: placement",
        ),
        (
            |s| s.disks.iter_mut().for_each(|own| own.capacity = 100 * MB),
            "vm vm: placement",
        ),
    ];
    for (change, place) in changes {
        let mut spec = cluster("replicas-3", 6, 1, vec![closed(4, 8_192, 0.5)]);
        change(&mut spec);
        assert_eq!(ClusterStorage::new(spec).unwrap_err().place, place);
    }
}
