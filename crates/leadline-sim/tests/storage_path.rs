//! The storage path against what arithmetic and queueing theory say of it.

#![allow(clippy::unwrap_used)] // a test may end so

use leadline_sim::kernel::Simulation;
use leadline_sim::measure::TraceHash;
use leadline_sim::models::storage_path::{
    Arrivals, DeviceSpec, DiskSpec, HostSpec, SourceSpec, Spec, StoragePath, VmSpec,
};
use leadline_sim::models::{
    Client, Curve, Drive, QosPolicy, SCHEDULERS, Speed, Times, fluid_allocation,
};
use leadline_sim::random::{Constant, Distribution, Exponential};
use leadline_sim::sources::{Recording, Request};
use leadline_sim::time::{MILLISECOND, Nanos, SECOND};

type Run = Simulation<StoragePath, TraceHash>;

fn constant(nanos: Nanos) -> Distribution {
    Distribution::Constant(Constant(nanos as f64))
}

fn exponential(nanos: Nanos) -> Distribution {
    Distribution::Exponential(Exponential { mean: nanos as f64 })
}

fn times(time: Distribution) -> Speed {
    Speed::Times(Times {
        read: time.clone(),
        write: time,
        sequential: None,
        bytes_per_second: f64::INFINITY,
    })
}

fn source(arrivals: Arrivals) -> SourceSpec {
    SourceSpec {
        name: "io".to_owned(),
        disk: 0,
        arrivals,
        burst: None,
        sizes: vec![(8_192, 1.0)],
        read_share: 0.7,
        random_share: 1.0,
        then: None,
    }
}

fn closed(outstanding: u32) -> SourceSpec {
    source(Arrivals::Closed {
        outstanding,
        think: 0,
    })
}

fn client(name: &str) -> Client {
    Client {
        name: name.to_owned(),
        shares: 1_000.0,
        reservation_iops: 0.0,
        limit_iops: f64::INFINITY,
        idle_credit: 0.0,
    }
}

/// One VM with a disk of its own for each source, all on one device behind one host.
fn system(sources: Vec<SourceSpec>, parallelism: u32, speed: Speed) -> Spec {
    let vms = sources.into_iter().enumerate().map(|(index, own)| VmSpec {
        name: format!("vm{index}"),
        host: 0,
        adapter_depth: 1_024,
        sources: vec![SourceSpec { disk: index, ..own }],
    });
    let vms: Vec<_> = vms.collect();
    let disk = |vm: &VmSpec| DiskSpec {
        client: client(&vm.name),
        device: 0,
        limit: None,
    };
    Spec {
        seed: 1,
        measured: 60 * SECOND,
        window: SECOND,
        disks: vms.iter().map(disk).collect(),
        vms,
        hosts: vec![HostSpec {
            name: "esx01".to_owned(),
            queue_depth: 1_024,
            scheduler: "fifo".to_owned(),
        }],
        devices: vec![DeviceSpec {
            name: "ssd".to_owned(),
            parallelism,
            speed,
            network: None,
            threshold: 30 * MILLISECOND,
        }],
    }
}

/// Warms up for 20 s and measures 60 s, and looks for what is not conserved many times on the way.
fn run(spec: Spec) -> Run {
    let model = StoragePath::new(spec).unwrap();
    let mut simulation = Simulation::observed(model, TraceHash::default());
    simulation.run_until(20 * SECOND);
    simulation.check().unwrap();
    let now = simulation.now();
    simulation.model.restart_measuring(now);
    for part in 1..=60 {
        simulation.run_until(now + part * SECOND);
        simulation.check().unwrap();
    }
    simulation
}

fn rate(run: &Run, vm: usize) -> f64 {
    run.model.measures[vm].whole.total.left_count() as f64 / 60.0
}

fn latency_ms(run: &Run, vm: usize) -> f64 {
    let mean = run.model.measures[vm].whole.total.stay_mean();
    mean.unwrap() / MILLISECOND as f64
}

fn close(found: f64, expected: f64, share: f64) {
    assert!(
        (found / expected - 1.0).abs() <= share,
        "{found} for {expected}"
    );
}

/// 116 outstanding under 200 per second take 580 ms, under 400 half of it; all of it at the limit.
#[test]
fn a_capped_loop_takes_outstanding_by_cap() {
    for (cap, latency) in [(200.0, 580.0), (400.0, 290.0)] {
        let mut spec = system(vec![closed(116)], 8, times(constant(200_000)));
        spec.disks[0].limit = Some((cap, 1));
        let run = run(spec);
        close(rate(&run, 0), cap, 0.001);
        close(latency_ms(&run, 0), latency, 0.001);
        let now = run.now();
        let stages = &run.model.measures[0].stages;
        assert!(stages[0].inside().mean(now).unwrap() > 115.0);
        assert!(stages[1].inside().mean(now).unwrap() < 1e-9);
        let little = run.model.measures[0].whole.total.little(now).unwrap();
        assert!(little.imbalance().abs() < 0.01, "{little:?}");
    }
}

/// The narrowest part decides: raising one of two equal depths changes nothing, raising both does.
#[test]
fn depths_of_adapter_and_host_interact() {
    let rate_with = |adapter: u32, host: u32| {
        let mut spec = system(vec![closed(256)], 256, times(constant(MILLISECOND)));
        spec.vms[0].adapter_depth = adapter;
        spec.hosts[0].queue_depth = host;
        rate(&run(spec), 0)
    };
    close(rate_with(32, 32), 32_000.0, 0.001);
    close(rate_with(128, 32), 32_000.0, 0.001);
    close(rate_with(32, 128), 32_000.0, 0.001);
    close(rate_with(128, 128), 128_000.0, 0.001);
}

/// Nothing in the way: M/M/1. Source: Kleinrock, "Queueing systems" 1, section 3.2.
#[test]
fn one_server_and_poisson_arrivals_are_mm1() {
    let open = source(Arrivals::Poisson(3_500.0));
    let run = run(system(vec![open], 1, times(exponential(MILLISECOND / 5))));
    close(latency_ms(&run, 0), 0.2 / (1.0 - 0.7), 0.03);
    close(rate(&run, 0), 3_500.0, 0.01);
}

/// A curve from a sweep gives back its own points for the load they were measured at.
#[test]
fn a_curve_gives_its_points_back() {
    let points = [(2_000.0, 1e6), (8_000.0, 2e6), (10_000.0, 6.4e6)];
    let spread = Distribution::Exponential(Exponential { mean: 1.0 });
    for (outstanding, iops) in [(2, 2_000.0), (16, 8_000.0), (64, 10_000.0), (256, 10_000.0)] {
        let curve = Curve::new(&points, spread.clone(), "ssd").unwrap();
        let run = run(system(vec![closed(outstanding)], 1, Speed::Curve(curve)));
        close(rate(&run, 0), iops, 0.01);
    }
}

/// A greedy neighbour takes all of a first-come queue, and half of one in turn.
#[test]
fn turns_protect_from_a_neighbour() {
    let share_of_small = |scheduler: &str| {
        let mut spec = system(
            vec![closed(4), closed(124)],
            4,
            times(constant(MILLISECOND)),
        );
        spec.hosts[0].queue_depth = 4;
        spec.hosts[0].scheduler = scheduler.to_owned();
        let run = run(spec);
        rate(&run, 0) / (rate(&run, 0) + rate(&run, 1))
    };
    close(share_of_small("fifo"), 4.0 / 128.0, 0.01);
    close(share_of_small("round-robin"), 0.5, 0.01);
}

#[test]
fn bursts_load_only_while_they_last() {
    let bursty = SourceSpec {
        burst: Some((SECOND, 3 * SECOND)),
        ..closed(8)
    };
    let run = run(system(vec![bursty], 8, times(constant(MILLISECOND))));
    close(rate(&run, 0), 8_000.0 / 4.0, 0.01);
    let counts = run.model.measures[0].whole.latency_ms.counts();
    assert_eq!(counts.iter().filter(|count| **count > 7_000).count(), 15);
    // The pause at the end has no windows of its own.
    assert!(counts.iter().filter(|count| **count < 20).count() >= 41);
    let rated = SourceSpec {
        burst: Some((SECOND, SECOND)),
        ..source(Arrivals::Even(1_000.0))
    };
    let run = self::run(system(vec![rated], 8, times(constant(MILLISECOND))));
    close(rate(&run, 0), 500.0, 0.01);
}

/// Large requests count as several at the limit, and take their transfer at the device.
#[test]
fn sizes_count_at_the_limit_and_on_the_wire() {
    let large = SourceSpec {
        sizes: vec![(65_536, 1.0)],
        ..closed(8)
    };
    let mut spec = system(vec![large], 1, times(constant(1_000)));
    spec.disks[0].limit = Some((10_000.0, 1));
    close(rate(&run(spec.clone()), 0), 5_000.0, 0.001);
    spec.disks[0].limit = None;
    let Speed::Times(times) = &mut spec.devices[0].speed else {
        unreachable!()
    };
    times.bytes_per_second = 65_536_000.0;
    close(rate(&run(spec), 0), 1_000.0, 0.002);
}

#[test]
fn every_scheduler_conserves_and_repeats() {
    for scheduler in SCHEDULERS {
        let sources = || {
            vec![
                closed(64),
                source(Arrivals::Poisson(900.0)),
                source(Arrivals::Even(300.0)),
            ]
        };
        let mut spec = system(sources(), 4, times(exponential(2 * MILLISECOND)));
        spec.hosts[0].queue_depth = 16;
        spec.hosts[0].scheduler = (*scheduler).to_owned();
        spec.disks[2].limit = Some((250.0, 1));
        let (first, second) = (run(spec.clone()), run(spec.clone()));
        assert_eq!(first.observer.value(), second.observer.value());
        let other = run(Spec { seed: 2, ..spec });
        assert_ne!(first.observer.value(), other.observer.value());
        let all: f64 = (0..3).map(|vm| rate(&first, vm)).sum();
        close(all, 2_000.0, 0.01);
    }
}

/// Shares, reservations and sizes come through the queue of a host as the fluid allocation gives them.
#[test]
fn schedulers_keep_shares_and_reservations() {
    for (name, grants, bytes) in [
        ("sfq", [(500.0, 0.0), (2_000.0, 0.0), (1_000.0, 0.0)], 8_192),
        (
            "mclock",
            [(500.0, 500.0), (2_000.0, 0.0), (1_000.0, 0.0)],
            8_192,
        ),
        (
            "sioc-v2",
            [(500.0, 500.0), (2_000.0, 0.0), (1_000.0, 0.0)],
            65_536,
        ),
    ] {
        let mut spec = system(vec![closed(64); 3], 4, times(constant(4 * MILLISECOND)));
        spec.hosts[0].queue_depth = 4;
        spec.hosts[0].scheduler = name.to_owned();
        for (disk, (shares, reservation)) in spec.disks.iter_mut().zip(grants) {
            disk.client.shares = shares;
            disk.client.reservation_iops = reservation;
        }
        for vm in &mut spec.vms {
            vm.sources[0].sizes = vec![(bytes, 1.0)];
        }
        // In units of 32 KB a request of 64 KB counts twice against its reservation.
        let cost = if name == "sioc-v2" { 2.0 } else { 1.0 };
        let policies = grants.map(|(weight, own)| QosPolicy::weighing(weight).reserving(own));
        let found = run(spec);
        for (vm, expected) in fluid_allocation(&policies, 1_000.0 * cost)
            .iter()
            .enumerate()
        {
            close(rate(&found, vm), expected / cost, 0.005);
        }
    }
}

/// Another value here means that runs of this version differ from those of the last: say so in the changelog.
#[test]
fn runs_are_those_of_every_machine() {
    let sources = vec![closed(64), source(Arrivals::Poisson(900.0))];
    let mut spec = system(sources, 4, times(exponential(2 * MILLISECOND)));
    spec.disks[0].limit = Some((1_000.0, 1));
    assert_eq!(run(spec).observer.value(), 9_208_788_125_631_407_688);
}

type Change = fn(&mut Spec);

#[test]
fn what_makes_no_system_is_refused() {
    let sound = || system(vec![closed(4)], 1, times(constant(MILLISECOND)));
    let changes: [(Change, &str); 12] = [
        (|s| s.vms.clear(), "system"),
        (|s| s.window = 0, "system"),
        (|s| s.vms[0].adapter_depth = 0, "vm0"),
        (|s| s.vms[0].host = 3, "vm0"),
        (|s| s.vms[0].sources[0].disk = 3, "vm0"),
        (|s| s.vms[0].sources[0].sizes.clear(), "vm vm0: io"),
        (|s| s.vms[0].sources[0].read_share = 1.5, "vm vm0: io"),
        (
            |s| s.vms[0].sources[0].arrivals = Arrivals::Even(0.0),
            "vm vm0: io",
        ),
        (|s| s.disks[0].limit = Some((0.0, 1)), "vm0"),
        (|s| s.hosts[0].queue_depth = 0, "esx01"),
        (
            |s| s.hosts[0].scheduler = "lottery".to_owned(),
            "host esx01: scheduler",
        ),
        (|s| s.devices[0].speed = times(constant(0)), "ssd"),
    ];
    for (change, place) in changes {
        let mut spec = sound();
        change(&mut spec);
        let error = StoragePath::new(spec).unwrap_err();
        assert_eq!(error.place, place);
    }
    let mut shared = system(vec![closed(4), closed(4)], 1, times(constant(MILLISECOND)));
    shared.vms[1].sources[0].disk = 0;
    assert_eq!(StoragePath::new(shared).unwrap_err().place, "vm1");
}

/// A copy reads from one disk, then writes to the other: n outstanding do n by the time of both steps; with a limit on the
/// one, the other goes no faster, at the latency it had.
#[test]
fn a_capped_end_of_a_copy_slows_the_other_but_not_its_requests() {
    let copy = |cap: Option<f64>| {
        let step = |outstanding, read_share, then| SourceSpec {
            read_share,
            then: Some(then),
            ..closed(outstanding)
        };
        let sources = vec![step(8, 1.0, (1, 0)), step(0, 0.0, (0, 0))];
        let mut spec = system(sources, 64, times(constant(5 * MILLISECOND)));
        spec.disks[1].limit = cap.map(|cap| (cap, 1));
        run(spec)
    };
    let (free, capped) = (copy(None), copy(Some(100.0)));
    for vm in 0..2 {
        close(rate(&free, vm), 800.0, 0.001);
        close(rate(&capped, vm), 100.0, 0.001);
    }
    close(latency_ms(&free, 0), 5.0, 0.001);
    close(latency_ms(&capped, 0), 5.0, 0.001);
    // Little: 8 copies at 100 per second take 80 ms, 5 of them to read.
    close(latency_ms(&capped, 1), 75.0, 0.001);
}

#[test]
fn a_source_that_sets_off_none_there_is_is_refused() {
    let mut spec = system(vec![closed(1)], 1, times(constant(MILLISECOND)));
    spec.vms[0].sources[0].then = Some((0, 1));
    assert!(StoragePath::new(spec).is_err());
}

/// Idle credit goes to the scheduler: a burst that has some is done sooner, and the other does as much.
#[test]
fn idle_credit_lets_a_burst_go_first() {
    let with = |credit: f64| {
        let bursty = SourceSpec {
            burst: Some((MILLISECOND, 399 * MILLISECOND)),
            ..source(Arrivals::Even(64_000.0))
        };
        let mut spec = system(vec![bursty, closed(64)], 1, times(constant(MILLISECOND)));
        spec.hosts[0].queue_depth = 1;
        spec.hosts[0].scheduler = "mclock".to_owned();
        spec.disks[0].client.idle_credit = credit;
        let run = run(spec);
        (latency_ms(&run, 0), rate(&run, 1))
    };
    let (none, all) = (with(0.0), with(64.0));
    // 63 requests by turns take 2 ms each, one after the other 1 ms.
    close(none.0, 64.0, 0.05);
    close(all.0, 32.0, 0.05);
    close(none.1, all.1, 0.001);
}

fn drive(queue: u32) -> Speed {
    Speed::Drive(Drive {
        settle: 1e6,
        full_stroke: 16e6,
        revolution: 8.333e6,
        bytes_per_second: (200e6, 100e6),
        capacity: 4e12,
        queue,
    })
}

/// One random request after the other: settle + 8/15 of what the stroke adds, half a turn, and the transfer; as many bytes
/// per second in sequence as the zone gives.
#[test]
fn a_drive_takes_the_mean_seek_and_half_a_turn() {
    let run_of = |random_share| {
        let own = SourceSpec {
            random_share,
            sizes: vec![(65_536, 1.0)],
            ..closed(1)
        };
        run(system(vec![own], 1, drive(1)))
    };
    let transfer = 65_536.0 * libm::log(2.0) / 100e6 * 1e3;
    let expected = 1.0 + 15.0 * 8.0 / 15.0 + 8.333 / 2.0 + transfer;
    close(latency_ms(&run_of(1.0), 0), expected, 0.02);
    close(rate(&run_of(0.0), 0) * 65_536.0, 200e6, 0.02);
}

/// A drive that chooses does more the more it has to choose from, and no more than that with requests as they come.
#[test]
fn a_drives_queue_pays() {
    let of = |queue, outstanding| rate(&run(system(vec![closed(outstanding)], 1, drive(queue))), 0);
    let (one, four, all) = (of(1, 32), of(4, 32), of(32, 32));
    close(one, of(1, 1), 0.03);
    assert!(four > 1.3 * one, "{four} {one}");
    assert!(all > 1.3 * four, "{all} {four}");
}

/// Two latencies and one transfer more, and no more bytes than the link passes in one direction.
#[test]
fn a_network_adds_its_latency_and_bounds_the_rate() {
    let of = |outstanding, read_share| {
        let own = SourceSpec {
            read_share,
            sizes: vec![(65_536, 1.0)],
            ..closed(outstanding)
        };
        let mut spec = system(vec![own], 64, times(constant(MILLISECOND)));
        spec.devices[0].network = Some((200_000, 125e6));
        run(spec)
    };
    let transfer = 65_536.0 / 125e6 * 1e3;
    close(latency_ms(&of(1, 1.0), 0), 1.4 + transfer, 1e-3);
    close(latency_ms(&of(1, 0.0), 0), 1.4 + transfer, 1e-3);
    close(rate(&of(64, 1.0), 0), 125e6 / 65_536.0, 0.01);
    assert!(
        rate(&of(64, 0.5), 0) > 1.8 * 125e6 / 65_536.0,
        "both directions at once"
    );
}

/// Two hosts of which one has three times the shares: where the device is above its threshold and no window meets a
/// bound, throughput is as the shares; first come, first served it is not.
#[test]
fn sioc_divides_a_device_by_the_shares_of_its_hosts() {
    let of = |scheduler: &str| {
        let mut spec = system(
            vec![closed(64), closed(64)],
            1,
            times(exponential(2 * MILLISECOND)),
        );
        spec.vms[1].host = 1;
        spec.disks[0].client.shares = 1_000.0;
        spec.disks[1].client.shares = 3_000.0;
        spec.hosts = ["one", "two"]
            .map(|name| HostSpec {
                name: name.to_owned(),
                queue_depth: 64,
                scheduler: scheduler.to_owned(),
            })
            .to_vec();
        run(spec)
    };
    let (windowed, plain) = (of("sioc-v1"), of("fifo"));
    close(rate(&windowed, 1) / rate(&windowed, 0), 3.0, 0.15);
    close(rate(&plain, 1) / rate(&plain, 0), 1.0, 0.05);
    close(rate(&windowed, 0) + rate(&windowed, 1), 500.0, 0.03);
}

/// A recording of ten requests 1 ms apart every second on a device of 2 ms that takes one at a time: the n-th waits for
/// n - 1 others and came n - 1 ms after the first, so it takes 2 n - (n - 1) = n + 1 ms, 6.5 ms on average.
#[test]
fn a_recording_is_the_load() {
    let issued: Vec<Nanos> = (0..600)
        .map(|n| n / 10 * SECOND + n % 10 * MILLISECOND)
        .collect();
    let request = |n: u32| Request {
        bytes: 4_096 << (n % 2),
        is_write: n.is_multiple_of(5),
        is_random: true,
    };
    let requests: Vec<Request> = (0..600).map(request).collect();
    let recording = Recording::new(issued.into(), requests.into()).unwrap();
    let load = |speed, repeats| {
        let recording = recording.clone();
        source(Arrivals::Replay {
            recording,
            speed,
            repeats,
        })
    };
    let device = || times(constant(2 * MILLISECOND));
    let run = |speed, repeats| run(system(vec![load(speed, repeats)], 1, device()));
    let again = run(1.0, true);
    close(rate(&again, 0), 10.0, 0.02);
    close(latency_ms(&again, 0), 6.5, 0.01);
    let own = &again.model.measures[0];
    let [reads, writes] = &own.whole.done[0];
    close(
        writes.responses.count() as f64 / own.whole.total.left_count() as f64,
        0.2,
        0.02,
    );
    close(
        (reads.bytes + writes.bytes) as f64 / own.whole.total.left_count() as f64,
        6_144.0,
        0.02,
    );
    // Warmed up for 20 of its 60 s.
    close(rate(&run(1.0, false), 0), 400.0 / 60.0, 0.02);
    assert!(StoragePath::new(system(vec![load(0.0, true)], 1, device())).is_err());
}
