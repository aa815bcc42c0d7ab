//! Cluster storage that fails, and how long it takes to be whole again.

#![allow(clippy::unwrap_used)] // a test may end so

mod cluster;

use cluster::*;
use leadline_sim::models::cluster_storage::{
    ClusterStorage, FailureSpec, Health, Protection, Spec,
};
use leadline_sim::models::storage_path::Arrivals;
use leadline_sim::time::{MINUTE, SECOND};

/// Two nodes, one with two disks; one of these is lost: its copies are read on the other node and written to the disk
/// beside it.
fn rebuild(read: f64, wire: f64, write: f64) -> f64 {
    let mut spec = cluster("replicas-2", 2, 1, vec![]);
    spec.disks.push(disk(0, 1, 1, write));
    spec.disks[0].times.bytes_per_second = write;
    spec.disks[1].times.bytes_per_second = read;
    for disk in &mut spec.disks {
        disk.times.read = constant(1_000);
        disk.times.write = constant(1_000);
    }
    for node in &mut spec.nodes {
        node.bytes_per_second = wire;
    }
    spec.vms[0].bytes = 2_400 * MIB;
    spec.failures = vec![FailureSpec {
        at: SECOND,
        disks: vec![0],
        node: None,
        is_lost: true,
        returns_after: None,
    }];
    let held = ClusterStorage::new(spec.clone()).unwrap().layout.rooms[0].used;
    let bytes = held as f64;
    let run = run_for(spec, 200 * SECOND);
    let healing = run.model.healing;
    assert_eq!(healing.bytes, held);
    assert_eq!(run.model.traffic.written_bytes, [0, healing.bytes]);
    assert_eq!(run.model.layout.unreadable_count(), 0);
    assert!(
        run.model
            .layout
            .fragments
            .iter()
            .all(|own| own.health == Health::Live)
    );
    let seconds = (healing.ended.unwrap() - healing.began.unwrap()) as f64 / SECOND as f64;
    assert!(seconds >= bytes / read.min(wire).min(write));
    seconds / bytes
}

/// Alone, it takes the data by the slowest of reading, sending and writing.
#[test]
fn a_rebuild_takes_its_data_by_the_slowest_part() {
    for (read, wire, write) in [(50e6, 1e9, 400e6), (400e6, 50e6, 400e6), (400e6, 1e9, 50e6)] {
        close(rebuild(read, wire, write), 1.0 / 50e6, 0.01);
    }
}

/// What is lost is rebuilt at once, what is absent after an hour; what is back before misses only what was written.
#[test]
fn absent_waits_and_lost_does_not() {
    let failing = |is_lost, returns_after| {
        let mut spec = cluster("replicas-3", 5, 2, vec![]);
        let mut failure = node_failure(1, MINUTE, &spec);
        (failure.is_lost, failure.returns_after) = (is_lost, returns_after);
        spec.failures = vec![failure];
        run_for(spec, 2 * 60 * MINUTE).model.healing
    };
    let absent = failing(false, None);
    assert_eq!(absent.failed, Some(MINUTE));
    assert_eq!(absent.began, Some(61 * MINUTE));
    let lost = failing(true, None);
    assert_eq!(lost.began, Some(MINUTE));
    assert_eq!(lost.fragment_count, absent.fragment_count);
    assert!(lost.fragment_count > 0);
    let back = failing(false, Some(30 * MINUTE));
    assert_eq!((back.began, back.fragment_count), (None, 0));
}

#[test]
fn what_was_written_meanwhile_is_brought_up_to_date() {
    let writer = source(Arrivals::Even(2.0), 8_192, 0.0, 1.0);
    for scheme in ["replicas-3", "ec-3+2"] {
        let mut spec = cluster(scheme, 5, 2, vec![writer.clone()]);
        let mut failure = node_failure(1, MINUTE, &spec);
        failure.returns_after = Some(MINUTE);
        spec.failures = vec![failure];
        let run = run_for(spec, 5 * MINUTE);
        let healing = run.model.healing;
        assert_eq!(healing.began, Some(2 * MINUTE));
        assert!(healing.ended.is_some());
        // 120 writes in the meantime, a piece for each that touched a fragment of the node, fewer where they met.
        let pieces = healing.bytes / MIB;
        assert!((30..=120).contains(&pieces), "{scheme}: {pieces}");
        assert!(
            run.model
                .layout
                .fragments
                .iter()
                .all(|own| own.health == Health::Live)
        );
    }
}

/// A missing unit is computed from k others; of copies another is read. Nothing is lost, whatever is read.
#[test]
fn degraded_reads_cost_k() {
    for (scheme, reads) in [
        ("replicas-3", 1.0),
        ("ec-3+2", 1.0 + 2.0 / 5.0),
        ("ec-4+2", 1.0 + 3.0 / 6.0),
    ] {
        let width = Protection::named(scheme).unwrap().width() as usize;
        let mut spec = cluster(scheme, width, 2, vec![closed(4, 8_192, 1.0)]);
        spec.vms[0].bytes = 1_200 * MIB;
        spec.failures = vec![node_failure(0, 0, &spec)];
        let run = run(spec);
        close(run.model.traffic.reads[0] as f64 / done(&run), reads, 0.05);
    }
}

fn subsets(count: usize, size: usize) -> Vec<Vec<usize>> {
    let all = (0u32..1 << count).filter(|bits| bits.count_ones() as usize == size);
    all.map(|bits| (0..count).filter(|own| bits >> own & 1 == 1).collect())
        .collect()
}

/// Every set of as many nodes as the scheme survives; with one more, exactly the chunks with too few fragments are lost.
#[test]
fn all_failures_a_scheme_survives_are_survived() {
    for scheme in SCHEMES {
        let survives = Protection::named(scheme).unwrap().survives() as usize;
        let mut worst = 0;
        for size in 1..=survives + 1 {
            for nodes in subsets(6, size) {
                let mut spec = cluster(scheme, 6, 1, vec![]);
                let failures = nodes.iter().map(|node| node_failure(*node, 1, &spec));
                spec.failures = failures.collect();
                let mut run = begin(spec);
                run.run_until(2);
                let layout = &run.model.layout;
                let count = u32::try_from(layout.chunk_count()).unwrap();
                let too_few = (0..count).filter(|chunk| {
                    let on = layout.of_chunk(*chunk).filter(|(_, own)| {
                        !nodes.contains(&(layout.rooms[own.disk as usize].node as usize))
                    });
                    on.count() < layout.protection.needed() as usize
                });
                let too_few = too_few.count();
                assert_eq!(layout.unreadable_count(), too_few, "{scheme} {nodes:?}");
                assert!(size > survives || too_few == 0, "{scheme} {nodes:?}");
                worst = worst.max(too_few);
            }
        }
        assert!(worst > 0, "{scheme}: one failure more loses something");
    }
}

/// Requests wait while too much is gone, and go on when it is back.
#[test]
fn what_cannot_be_read_waits() {
    let mut spec = cluster("replicas-2", 2, 1, vec![closed(4, 8_192, 0.5)]);
    let both = [0, 1].map(|node| FailureSpec {
        returns_after: Some(10 * SECOND),
        ..node_failure(node, 10 * SECOND, &spec)
    });
    spec.failures = both.to_vec();
    let mut run = begin(spec);
    run.run_until(15 * SECOND);
    assert_eq!(
        (
            run.model.parked_count(),
            run.model.layout.unreadable_count()
        ),
        (4, 20)
    );
    let before = done(&run);
    run.run_until(30 * SECOND);
    run.check().unwrap();
    assert_eq!(run.model.parked_count(), 0);
    assert!(done(&run) > before + 500.0);
}

/// A loaded cluster with a lost node: how long the rebuild takes, and what guests get meanwhile, by what `change` does.
fn loaded(change: impl Fn(&mut Spec)) -> (f64, f64) {
    let mut spec = cluster("replicas-2", 4, 2, vec![closed(64, 65_536, 0.7)]);
    spec.vms[0].bytes = 2_400 * MIB;
    let mut failure = node_failure(1, 0, &spec);
    failure.is_lost = true;
    spec.failures = vec![failure];
    change(&mut spec);
    let run = run_for(spec, 400 * SECOND);
    let healing = run.model.healing;
    let seconds = (healing.ended.unwrap() - healing.began.unwrap()) as f64 / SECOND as f64;
    (seconds, done(&run) / 400.0)
}

/// The share decides who waits while both want the disks.
#[test]
fn resynchronising_takes_its_share() {
    let [small, large] = [0.05, 0.8].map(|share| loaded(|spec| spec.recovery.share = share));
    assert!(small.0 > 3.0 * large.0, "{small:?} {large:?}");
}

/// A limit slows its VM and no rebuild: the rebuild is as fast as with no load at all.
#[test]
fn limits_do_not_touch_resynchronising() {
    let free = loaded(|_| {});
    let limited = loaded(|spec| spec.vms[0].limit = Some((10.0, 1)));
    let idle = loaded(|spec| spec.vms[0].sources.clear());
    close(limited.1, 5.0, 0.01); // 64 KB count as two
    close(limited.0, idle.0, 0.05);
    assert!(free.0 > 1.5 * limited.0, "{free:?} {limited:?}");
}

/// A second failure while the first is made good, of where it is being made good, ends well all the same.
#[test]
fn failures_on_top_of_failures_end_whole() {
    for scheme in ["replicas-3", "ec-3+2"] {
        let mut spec = cluster(scheme, 8, 2, vec![closed(2, 65_536, 0.5)]);
        spec.vms[0].bytes = 1_200 * MIB;
        spec.recovery.absent_delay = 5 * SECOND;
        let mut lost = node_failure(1, SECOND, &spec);
        lost.is_lost = true;
        let absent = node_failure(2, 2 * SECOND, &spec);
        let short = FailureSpec {
            returns_after: Some(2 * SECOND),
            ..node_failure(3, 9 * SECOND, &spec)
        };
        spec.failures = vec![lost, absent, short];
        let run = run_for(spec, 300 * SECOND);
        assert!(run.model.healing.ended.is_some());
        assert_eq!(run.model.healing.stalled_count, 0);
        assert!(
            run.model
                .layout
                .fragments
                .iter()
                .all(|own| own.health == Health::Live)
        );
    }
}

/// With no node left for a fragment it stays missing, and is said to.
#[test]
fn without_a_spare_node_nothing_is_rebuilt() {
    let mut spec = cluster("ec-3+2", 5, 1, vec![]);
    let mut failure = node_failure(1, SECOND, &spec);
    failure.is_lost = true;
    spec.failures = vec![failure];
    let healing = run_for(spec, MINUTE).model.healing;
    assert_eq!(
        (healing.began, healing.ended, healing.stalled_count),
        (None, None, 20)
    );
}
