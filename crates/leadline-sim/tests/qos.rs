//! Schedulers against what they promise: shares, reservations, limits.

#![allow(clippy::unwrap_used)] // a test may end so

use leadline_sim::kernel::{Observer, Simulation};
use leadline_sim::measure::TraceHash;
use leadline_sim::models::{
    CostRule, Discipline, DiskPolicy, Drawn, Fifo, IopsLimit, MClock, Next, QosHost, QosPolicy,
    QosVm, RequestSize, Service, Sfq, SharedRate, Shares, VmRequest, Waiting, fluid_allocation,
    sioc_v2,
};
use leadline_sim::random::{Constant, Exponential, Stream, Streams};
use leadline_sim::sources::{Closed, OnOff, Pace, Renewal, Source};
use leadline_sim::time::{SECOND, whole};

type Job = Waiting<VmRequest>;

const KB: u32 = 1024;

/// A machine that always has this many requests of this size outstanding.
fn busy(outstanding: u32, bytes: u32) -> QosVm<Closed<Constant>> {
    let stream = Streams::new(1).stream("vm", "think");
    let source = Closed::new(outstanding, Constant(0.0), stream);
    QosVm::new(source, RequestSize::Fixed(bytes))
}

/// Completions per second and machine over `seconds` after a fifth of them as warm-up.
fn rates<A: Source, D: Discipline<Job>, V: Service<VmRequest>>(
    host: QosHost<A, D, V>,
    seconds: u64,
) -> Vec<f64> {
    let mut simulation = Simulation::new(host);
    let warm_up = seconds * SECOND / 5;
    simulation.run_until(warm_up);
    simulation.model.restart_measuring(warm_up);
    simulation.run_until(warm_up + seconds * SECOND);
    simulation.check().unwrap();
    let rate = |vm: &QosVm<A>| vm.responses.count() as f64 / seconds as f64;
    simulation.model.vms().iter().map(rate).collect()
}

fn mclock(policies: &[QosPolicy]) -> MClock<Job> {
    MClock::new(policies, CostRule::Request).unwrap()
}

fn device(per_second: f64) -> SharedRate {
    SharedRate::new(per_second, 0, CostRule::Request)
}

fn close(found: f64, expected: f64, share: f64, what: &str) {
    assert!(
        (found / expected - 1.0).abs() <= share,
        "{found} for {expected}: {what}"
    );
}

/// A set of policies and a capacity, of 2 to 12 machines; reservations and limits are there for some of them.
fn random_set(stream: &mut Stream) -> (Vec<QosPolicy>, f64) {
    let count = 2 + stream.below(11);
    let policy = |stream: &mut Stream| {
        let mut policy = QosPolicy::weighing(1.0 + stream.below(10) as f64);
        if stream.chance(0.5) {
            policy.reservation = 10.0 + 190.0 * stream.unit();
        }
        if stream.chance(0.65) {
            policy.limit = policy.reservation + 20.0 + 400.0 * stream.unit();
        }
        policy
    };
    let policies: Vec<_> = (0..count).map(|_| policy(stream)).collect();
    (policies, 100.0 + 1_900.0 * stream.unit())
}

/// 200 random sets of reservation, limit and weight at a random capacity: what machines with a backlog get is the
/// fluid allocation within 0.5 %.
#[test]
fn mclock_gives_the_fluid_allocation() {
    let mut stream = Streams::new(2010).stream("test", "sets");
    let (mut over, mut under) = (0, 0);
    for set in 0..200 {
        let (policies, capacity) = random_set(&mut stream);
        let expected = fluid_allocation(&policies, capacity);
        // Long enough that one request more or less of the slowest machine does not matter.
        let slowest = expected.iter().filter(|rate| **rate > 0.0);
        let slowest = slowest.fold(f64::INFINITY, |least, rate| least.min(*rate));
        let seconds = 10 + whole(800.0 / slowest);
        let is_overbooked = policies.iter().map(|p| p.reservation).sum::<f64>() > capacity;
        // Reservations that cannot be met fall behind; a closed loop forgets what it has waited for longer than its own
        // queue lasts, so that here the queue must last for the whole run.
        let outstanding = if is_overbooked {
            300 * u32::try_from(seconds).unwrap()
        } else {
            64
        };
        let vms = policies.iter().map(|_| busy(outstanding, 4 * KB));
        let host = QosHost::new(vms.collect(), mclock(&policies), 8, device(capacity));
        let found = rates(host, seconds);
        over += u32::from(is_overbooked);
        under += u32::from(policies.iter().map(|p| p.limit).sum::<f64>() < capacity);
        for (index, (found, expected)) in found.iter().zip(&expected).enumerate() {
            if *expected == 0.0 {
                assert!(
                    *found < 0.1,
                    "set {set}, client {index}: {found} of nothing"
                );
                continue;
            }
            let what = format!("set {set}, client {index}, {policies:?} at {capacity}");
            close(*found, *expected, 0.005, &what);
        }
    }
    assert!(
        over > 5 && under > 5,
        "{over} overbooked, {under} with capacity left"
    );
}

/// Service times drawn at random change what is waited for, not what is given.
#[test]
fn mclock_gives_it_with_random_service_times_too() {
    let policies = [
        QosPolicy::weighing(1.0).reserving(250.0),
        QosPolicy::weighing(2.0).reserving(250.0),
        QosPolicy::weighing(3.0).limited(1_000.0),
    ];
    for capacity in [550.0, 875.0, 1_200.0, 1_500.0, 2_000.0] {
        let mean = 32.0 * SECOND as f64 / capacity;
        let times = Drawn::new(
            Exponential { mean },
            Streams::new(3).stream("disk", "times"),
        );
        let vms = (0..3).map(|_| busy(64, 4 * KB)).collect();
        let found = rates(QosHost::new(vms, mclock(&policies), 32, times), 1_500);
        let expected = fluid_allocation(&policies, found.iter().sum());
        for (found, expected) in found.iter().zip(&expected) {
            if *expected < 1.0 {
                assert!(*found < 2.0);
            } else {
                close(*found, *expected, 0.005, &format!("at {capacity}"));
            }
        }
    }
}

/// The three machines of the paper at 1,200 IOPS. Source: mClock, figure 3.
#[test]
fn mclock_gives_what_the_paper_draws() {
    let policies = [
        QosPolicy::weighing(1.0).reserving(250.0),
        QosPolicy::weighing(2.0).reserving(250.0),
        QosPolicy::weighing(3.0).limited(1_000.0),
    ];
    let vms = (0..3).map(|_| busy(32, 4 * KB)).collect();
    let found = rates(
        QosHost::new(vms, mclock(&policies), 32, device(1_200.0)),
        200,
    );
    for (found, expected) in found.iter().zip([250.0, 380.0, 570.0]) {
        close(*found, expected, 0.005, "figure 3");
    }
}

/// Under weights alone machines fall below what they were promised; reservations hold it. Source: mClock, figure 6.
#[test]
fn only_reservations_hold_when_capacity_falls() {
    let promised = [300.0, 250.0];
    let policies: Vec<_> = (0..5)
        .map(|index| QosPolicy::default().reserving(*promised.get(index).unwrap_or(&0.0)))
        .collect();
    let vms = || (0..5).map(|_| busy(32, 4 * KB)).collect();
    let weights = vec![1.0; 5];
    let sfq = Sfq::new(&weights, CostRule::Request);
    for found in rates(QosHost::new(vms(), sfq, 32, device(800.0)), 100) {
        close(found, 160.0, 0.005, "by weight alone");
    }
    let found = rates(
        QosHost::new(vms(), mclock(&policies), 32, device(800.0)),
        100,
    );
    for (found, expected) in found.iter().zip(promised) {
        close(*found, expected, 0.005, "reserved");
    }
}

/// Weights in any unit: only their ratio counts, for both schedulers, whatever the depth.
#[test]
fn shares_are_as_weights() {
    for scale in [0.001, 1.0, 1_000_000.0] {
        let weights = [1.0, 2.0, 3.0, 4.0].map(|weight| weight * scale);
        let policies = weights.map(QosPolicy::weighing);
        for depth in [1, 4, 32] {
            let vms = || weights.iter().map(|_| busy(64, 4 * KB)).collect();
            let sfq = Sfq::new(&weights, CostRule::Request);
            let by_sfq = rates(QosHost::new(vms(), sfq, depth, device(1_000.0)), 100);
            let clock = mclock(&policies);
            let by_mclock = rates(QosHost::new(vms(), clock, depth, device(1_000.0)), 100);
            for (index, found) in by_sfq.iter().chain(&by_mclock).enumerate() {
                let expected = [100.0, 200.0, 300.0, 400.0][index % 4];
                close(
                    *found,
                    expected,
                    0.002,
                    &format!("scale {scale}, depth {depth}"),
                );
            }
        }
    }
}

/// First come, first served gives by what is outstanding, which is why there are schedulers.
#[test]
fn without_a_scheduler_the_deepest_queue_wins() {
    let vms = vec![busy(8, 4 * KB), busy(32, 4 * KB)];
    let found = rates(QosHost::new(vms, Fifo::default(), 8, device(1_000.0)), 100);
    close(found[0], 200.0, 0.01, "8 of 40 outstanding");
    close(found[1], 800.0, 0.01, "32 of 40 outstanding");
}

/// At any time the difference of two backlogged clients is within the bound of SFQ(D).
#[test]
fn sfq_keeps_its_bound_at_every_instant() {
    const DEPTH: f64 = 1.0;
    let weights = [1.0, 2.0, 5.0];
    let sizes = [KB, 64 * KB, 200 * KB];
    let rule = CostRule::Units32Kb;
    let mut sfq = Sfq::new(&weights, rule);
    let request = |vm: u32| VmRequest {
        vm,
        bytes: sizes[vm as usize],
        issued: 0,
    };
    for _ in 0..10_000 {
        for vm in 0..3 {
            sfq.push(0, request(vm));
        }
    }
    let mut received = [0.0; 3];
    for _ in 0..4_000 {
        let Next::Job(job) = sfq.next(0) else {
            unreachable!("requests wait")
        };
        received[job.vm as usize] += rule.cost(job.bytes) / weights[job.vm as usize];
        for one in 0..3 {
            for other in 0..3 {
                let step = |vm: usize| rule.cost(sizes[vm]) / weights[vm];
                let bound = (DEPTH + 1.0) * (step(one) + step(other));
                assert!((received[one] - received[other]).abs() <= bound);
            }
        }
    }
}

/// Limits, reservations and shares of SIOC v2 count units of 32 KB.
#[test]
fn units_of_32_kb_count_against_everything() {
    let disk = |reservation_iops, limit_iops, shares| DiskPolicy {
        reservation_iops,
        limit_iops,
        shares,
    };
    // Limits on a device with room: 10,000 units are 5,000 requests of 64 KB.
    for (bytes, iops) in [
        (4 * KB, 10_000.0),
        (32 * KB, 10_000.0),
        (33 * KB, 5_000.0),
        (64 * KB, 5_000.0),
        (1024 * KB, 312.5),
    ] {
        let disks = [disk(0.0, Some(10_000.0), Shares::Normal)];
        let roomy = Drawn::new(Constant(1e5), Streams::new(1).stream("disk", "times"));
        let host = QosHost::new(vec![busy(64, bytes)], sioc_v2(&disks).unwrap(), 64, roomy);
        close(rates(host, 20)[0], iops, 0.001, "limit");
    }
    let units = || SharedRate::new(4_000.0, 0, CostRule::Units32Kb);
    // Shares 500, 1000 and 2000 of 3,500 units: sizes do not help.
    let levels = [Shares::Low, Shares::Normal, Shares::High];
    let disks = levels.map(|shares| disk(0.0, None, shares));
    let vms = vec![busy(32, 4 * KB), busy(32, 128 * KB), busy(32, 64 * KB)];
    let host = QosHost::new(vms, sioc_v2(&disks).unwrap(), 1, units());
    let found = rates(host, 100);
    let per_share = 4_000.0 / 3_500.0;
    for (found, (shares, units)) in found
        .iter()
        .zip([(500.0, 1.0), (1_000.0, 4.0), (2_000.0, 2.0)])
    {
        close(*found, shares * per_share / units, 0.005, "shares");
    }
    // A reservation of 2,000 units is 1,000 requests of 64 KB, against any shares.
    let disks = [
        disk(2_000.0, None, Shares::Low),
        disk(0.0, None, Shares::Custom(100_000)),
    ];
    let vms = vec![busy(32, 64 * KB), busy(32, 4 * KB)];
    let host = QosHost::new(vms, sioc_v2(&disks).unwrap(), 1, units());
    close(rates(host, 100)[0], 1_000.0, 0.005, "reservation");
}

/// Source: vmgu.ru on SIOC v2: shares 300, 200, 100, 100, 100; the first gets three times what the last gets.
#[test]
fn five_machines_divide_by_shares() {
    let disks = [300, 200, 100, 100, 100].map(|count| DiskPolicy {
        shares: Shares::Custom(count),
        ..DiskPolicy::default()
    });
    let vms = disks.iter().map(|_| busy(32, 4 * KB)).collect();
    let host = QosHost::new(vms, sioc_v2(&disks).unwrap(), 32, device(4_000.0));
    let found = rates(host, 100);
    close(found[0] / found[4], 3.0, 0.005, "300 : 100");
    close(found[1] / found[4], 2.0, 0.005, "200 : 100");
}

/// A limit of the machine itself and one of the scheduler hold alike, and a neighbour has the rest.
#[test]
fn limits_before_and_in_the_scheduler_agree() {
    let vms = || vec![busy(64, 64 * KB), busy(64, 4 * KB)];
    let units = || SharedRate::new(3_000.0, 0, CostRule::Request);
    let policies = [QosPolicy::default().limited(1_000.0), QosPolicy::default()];
    let inside = MClock::new(&policies, CostRule::Units32Kb).unwrap();
    let in_scheduler = rates(QosHost::new(vms(), inside, 16, units()), 50);
    let mut capped = vms();
    capped[0] = capped[0].clone().limited(IopsLimit::new(1_000.0, 1));
    let before = rates(QosHost::new(capped, Fifo::default(), 16, units()), 50);
    for found in [in_scheduler, before] {
        close(found[0], 500.0, 0.001, "1,000 units of 32 KB");
        close(found[1], 2_500.0, 0.001, "the rest");
    }
}

/// Idle credit shortens the bursty machine's latency and leaves the other's throughput. Source: mClock, table 5, its
/// order.
#[test]
fn idle_credit_shortens_bursts() {
    let run = |burst: f64| {
        let streams = Streams::new(9);
        let gap = leadline_sim::random::Distribution::Constant(Constant(1e5));
        let length = leadline_sim::random::Distribution::Constant(Constant(1e7));
        let pause = leadline_sim::random::Distribution::Exponential(Exponential { mean: 1e9 });
        let bursty = OnOff::new(gap, length, pause, streams.stream("vm0", "bursts"));
        let steady = Closed::new(
            32,
            leadline_sim::random::Distribution::Constant(Constant(0.0)),
            streams.stream("vm1", "think"),
        );
        let size = || RequestSize::Fixed(4 * KB);
        let vms = vec![
            QosVm::new(leadline_sim::sources::AnySource::OnOff(bursty), size()),
            QosVm::new(leadline_sim::sources::AnySource::Closed(steady), size()),
        ];
        let policies = [QosPolicy::default().with_burst(burst), QosPolicy::default()];
        let mut simulation =
            Simulation::new(QosHost::new(vms, mclock(&policies), 8, device(1_000.0)));
        simulation.run_until(300 * SECOND);
        let vms = simulation.model.vms();
        (
            vms[0].responses.mean().unwrap(),
            vms[1].responses.count() as f64,
        )
    };
    let runs = [0.0, 8.0, 64.0].map(run);
    assert!(
        runs[1].0 < 0.95 * runs[0].0 && runs[2].0 < 0.9 * runs[1].0,
        "{runs:?}"
    );
    close(runs[2].1, runs[0].1, 0.01, "throughput of the other");
}

fn hash_of<D: Discipline<Job>>(scheduler: D) -> u64 {
    let streams = Streams::new(12);
    let names = ["a", "b", "c", "d"];
    let vms = names.map(|name| {
        let source = Renewal::poisson(300.0, streams.stream(name, "gaps"));
        QosVm::new(source, RequestSize::Fixed(16 * KB)).limited(IopsLimit::new(320.0, 4))
    });
    let times = Drawn::new(Exponential { mean: 6e6 }, streams.stream("disk", "times"));
    let host = QosHost::new(vms.to_vec(), scheduler, 8, times);
    let mut simulation = Simulation::observed(host, TraceHash::default());
    simulation.run_events(200_000);
    simulation.check().unwrap();
    let mut hash = simulation.observer;
    for vm in simulation.model.vms() {
        hash.observe(
            simulation.model.station.in_system().max(),
            &vm.responses.sum(),
        );
    }
    hash.value()
}

/// Another value here means that runs of this version differ from those of the last: say so in the changelog.
#[test]
fn runs_are_those_of_every_machine() {
    let policies: Vec<_> = [(100.0, 1.0), (0.0, 2.0), (50.0, 3.0), (0.0, 4.0)]
        .map(|(reservation, weight)| {
            QosPolicy::weighing(weight)
                .reserving(reservation)
                .limited(310.0)
                .with_burst(weight)
        })
        .to_vec();
    let weights: Vec<f64> = policies.iter().map(|policy| policy.weight).collect();
    let hashes = [
        hash_of(Fifo::default()),
        hash_of(Sfq::new(&weights, CostRule::Units32Kb)),
        hash_of(mclock(&policies)),
    ];
    assert_eq!(
        hashes,
        [
            347_709_446_258_898_798,
            8_688_129_031_187_438_220,
            13_218_649_688_149_208_215
        ]
    );
}

/// A rate-limited machine inside a scheduler keeps its own pace and wakes often; the sum stays conserved.
#[test]
fn machines_that_come_and_go_get_what_they_ask_for() {
    let stream = Streams::new(1).stream("vm", "think");
    let light = Closed::new(4, Constant(0.0), stream).limited(Pace::new(100.0));
    let vms = vec![
        QosVm::new(light, RequestSize::Fixed(4 * KB)),
        busy(32, 4 * KB),
    ];
    let policies = [QosPolicy::weighing(1.0), QosPolicy::weighing(4.0)];
    let found = rates(
        QosHost::new(vms, mclock(&policies), 8, device(1_000.0)),
        100,
    );
    close(found[0], 100.0, 0.001, "below its share");
    close(found[1], 900.0, 0.001, "the rest");
}
