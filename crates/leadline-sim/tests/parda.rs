//! Windows of hosts before one array against the law they follow.

#![allow(clippy::unwrap_used)] // a test may end so

use leadline_sim::kernel::{Observer, Simulation};
use leadline_sim::measure::TraceHash;
use leadline_sim::models::{
    CostRule, Drawn, PardaCluster, PardaHost, QosVm, RequestSize, SharedRate, Shares, WindowLaw,
    latency_at_peak_share,
};
use leadline_sim::random::{Constant, Distribution, Exponential, Streams};
use leadline_sim::sources::{AnySource, Closed, OnOff};
use leadline_sim::time::{MILLISECOND, SECOND, from_seconds};

type Host = PardaHost<AnySource>;

fn busy(outstanding: u32) -> QosVm<AnySource> {
    let stream = Streams::new(1).stream("vm", "think");
    let think = Distribution::Constant(Constant(0.0));
    let source = AnySource::Closed(Closed::new(outstanding, think, stream));
    QosVm::new(source, RequestSize::Fixed(16 * 1024))
}

/// Bounds that no window meets.
fn wide() -> WindowLaw {
    WindowLaw {
        window_min: 1.0,
        window_max: 400.0,
        beta_per_1000_shares: 10.0,
        ..WindowLaw::sioc_v1()
    }
}

fn array(per_second: f64) -> SharedRate {
    SharedRate::new(per_second, 0, CostRule::Request)
}

/// IOPS of each host's machines from 200 s to 500 s, and the cluster after that.
fn run(
    hosts: Vec<Host>,
    law: WindowLaw,
    per_second: f64,
) -> (Vec<Vec<f64>>, PardaCluster<AnySource, SharedRate>) {
    let cluster = PardaCluster::new(hosts, law, 64, array(per_second)).unwrap();
    measure(cluster)
}

fn measure(
    cluster: PardaCluster<AnySource, SharedRate>,
) -> (Vec<Vec<f64>>, PardaCluster<AnySource, SharedRate>) {
    let mut simulation = Simulation::new(cluster);
    simulation.run_until(200 * SECOND);
    simulation.model.restart_measuring(200 * SECOND);
    simulation.run_until(500 * SECOND);
    simulation.check().unwrap();
    let rate = |vm: &QosVm<AnySource>| vm.responses.count() as f64 / 300.0;
    let rates = |host: &Host| host.vms().iter().map(rate).collect();
    let found = simulation.model.hosts().iter().map(rates).collect();
    (found, simulation.model)
}

fn close(found: f64, expected: f64, share: f64, what: &str) {
    assert!(
        (found / expected - 1.0).abs() <= share,
        "{found} for {expected}: {what}"
    );
}

fn host(shares: &[Shares]) -> Host {
    PardaHost::new(shares.iter().map(|shares| (busy(600), *shares)).collect())
}

/// Where no window meets a bound: windows w = β / (1 - ℒ/L), and by Little's law Σw = X L, so that
/// L = ℒ + Σβ / X and throughput is as β.
#[test]
fn windows_settle_where_the_law_says() {
    for shares in [
        [Shares::Normal, Shares::Normal],
        [Shares::Low, Shares::High],
        [Shares::Normal, Shares::Custom(3_000)],
    ] {
        let throughput = 4_000.0;
        let hosts = shares.map(|shares| host(&[shares])).to_vec();
        let (found, cluster) = run(hosts, wide(), throughput);
        let counts = shares.map(|shares| f64::from(shares.count()));
        let total: f64 = counts.iter().sum();
        let latency = 0.030 + total / 1_000.0 * 10.0 / throughput;
        for (index, count) in counts.iter().enumerate() {
            close(found[index][0], throughput * count / total, 0.015, "IOPS");
            let host = &cluster.hosts()[index];
            let window = *host.windows().last().unwrap();
            close(
                window,
                throughput * latency * count / total,
                0.015,
                "window",
            );
            close(host.latency().unwrap(), latency * 1e9, 0.015, "latency");
        }
    }
}

/// Machines of a host share its window by their shares, so that all machines of all hosts get theirs.
#[test]
fn machines_on_different_hosts_get_their_shares() {
    let hosts = vec![
        host(&[Shares::High, Shares::Normal]),
        host(&[Shares::Normal]),
    ];
    let (found, _) = run(hosts, wide(), 4_000.0);
    close(found[0][0], 2_000.0, 0.02, "2000 of 4000 shares");
    close(found[0][1], 1_000.0, 0.02, "1000 of 4000 shares");
    close(found[1][0], 1_000.0, 0.02, "1000 of 4000 shares");
}

/// The throughput is the array's at any threshold that keeps it busy, the latency near the threshold.
#[test]
fn the_threshold_sets_the_latency() {
    let hosts = || (0..4).map(|_| host(&[Shares::Low])).collect::<Vec<_>>();
    for threshold in [20, 30, 45] {
        let law = WindowLaw {
            threshold: threshold * MILLISECOND,
            beta_per_1000_shares: 2.0,
            ..wide()
        };
        let (found, cluster) = run(hosts(), law, 3_350.0);
        let total: f64 = found.iter().flatten().sum();
        close(total, 3_350.0, 0.01, "throughput");
        let latency = cluster.array.residences().mean().unwrap() / 1e6;
        close(latency, threshold as f64 + 4.0 / 3.35, 0.03, "latency");
        let seen = |host: &Host| host.residences.mean().unwrap() / 1e6;
        let of_hosts = cluster.hosts().iter().map(seen).sum::<f64>() / 4.0;
        close(of_hosts, latency, 0.01, "latency by host");
    }
    let open = PardaCluster::new(hosts(), WindowLaw::default(), 64, array(3_350.0)).unwrap();
    let (_, cluster) = measure(open.uncontrolled());
    let latency = cluster.array.residences().mean().unwrap() / 1e6;
    close(
        latency,
        4.0 * 32.0 / 3.35,
        0.01,
        "windows of 32, uncontrolled",
    );
}

/// Below the threshold windows open to their upper bound, and shares do not matter: version 1 acts only on congestion.
#[test]
fn without_congestion_shares_do_not_matter() {
    let hosts = vec![
        PardaHost::new(vec![(busy(8), Shares::Low)]),
        PardaHost::new(vec![(busy(8), Shares::High)]),
    ];
    let law = WindowLaw {
        adapts_to_idle: false,
        ..WindowLaw::sioc_v1()
    };
    let (found, cluster) = run(hosts, law, 4_000.0);
    close(found[0][0], found[1][0], 0.01, "8 outstanding each");
    for host in cluster.hosts() {
        assert!((host.windows().last().unwrap() - 32.0).abs() < 1e-9);
    }
}

/// A machine that falls idle leaves its share to all machines, not to those of its host alone.
#[test]
fn idle_machines_lend_their_shares_to_all() {
    let hosts = |second: QosVm<AnySource>| {
        vec![
            PardaHost::new(vec![(busy(600), Shares::Normal), (second, Shares::Normal)]),
            host(&[Shares::Normal]),
        ]
    };
    let idle = || {
        let never = Distribution::Constant(Constant(1e15));
        let stream = Streams::new(1).stream("idle", "gaps");
        let source = AnySource::OnOff(OnOff::new(never.clone(), never.clone(), never, stream));
        QosVm::new(source, RequestSize::Fixed(16 * 1024))
    };
    let (found, _) = run(hosts(idle()), wide(), 4_000.0);
    close(
        found[0][0],
        2_000.0,
        0.02,
        "half, as the one on the other host",
    );
    close(
        found[1][0],
        2_000.0,
        0.02,
        "half, as the one on the first host",
    );
    let law = WindowLaw {
        adapts_to_idle: false,
        ..wide()
    };
    let (found, _) = run(hosts(idle()), law, 4_000.0);
    close(
        found[0][0],
        2.0 * found[1][0],
        0.02,
        "unless shares stay as they are",
    );
}

/// A machine that wakes gets its share back within some periods.
#[test]
fn windows_follow_a_machine_that_wakes() {
    let second = {
        let gap = Distribution::Constant(Constant(1e5));
        let pulse = Distribution::Constant(Constant(1e12));
        let stream = Streams::new(1).stream("wakes", "gaps");
        let source = OnOff::new(gap, pulse.clone(), pulse, stream);
        QosVm::new(AnySource::OnOff(source), RequestSize::Fixed(16 * 1024))
    };
    let hosts = vec![
        PardaHost::new(vec![(second, Shares::Normal)]),
        host(&[Shares::Normal]),
    ];
    let cluster = PardaCluster::new(hosts, wide(), 64, array(4_000.0)).unwrap();
    let mut simulation = Simulation::new(cluster);
    simulation.run_until(from_seconds(100.0));
    let windows: Vec<f64> = simulation
        .model
        .hosts()
        .iter()
        .map(|host| *host.windows().last().unwrap())
        .collect();
    close(windows[0], windows[1], 0.02, "both have a backlog");
    let settings = simulation.model.hosts()[0].windows();
    assert_eq!(settings.len(), 24, "one each 4 s");
}

#[test]
fn a_threshold_at_a_share_of_the_peak() {
    // Throughput n / (1 ms) up to 16 outstanding, 16,000 above: 90 % are reached with 15, after 15 / 15,000 s.
    let curve: Vec<(f64, f64)> = (1..=64)
        .map(|count| (f64::from(count), 1_000.0 * f64::from(count.min(16))))
        .collect();
    let latency = latency_at_peak_share(&curve, 0.9).unwrap();
    close(latency, 1e6, 1e-12, "not congested yet");
    assert_eq!(latency_at_peak_share(&[], 0.9), None);
    assert_eq!(latency_at_peak_share(&[(1.0, 0.0)], 0.9), None);
}

#[test]
fn senseless_laws_are_refused() {
    let fine = WindowLaw::default();
    fine.check().unwrap();
    for (law, place) in [
        (
            WindowLaw {
                threshold: 0,
                ..fine
            },
            "threshold: ",
        ),
        (WindowLaw { period: 0, ..fine }, "period: "),
        (WindowLaw { gain: 0.0, ..fine }, "gain: "),
        (
            WindowLaw {
                memory: 1.0,
                ..fine
            },
            "memory: ",
        ),
        (
            WindowLaw {
                beta_per_1000_shares: f64::NAN,
                ..fine
            },
            "beta: ",
        ),
        (
            WindowLaw {
                window_max: 3.0,
                ..fine
            },
            "window: ",
        ),
    ] {
        let message = law.check().unwrap_err().to_string();
        assert!(message.starts_with(place), "{message}");
    }
}

/// Another value here means that runs of this version differ from those of the last: say so in the changelog.
#[test]
fn runs_are_those_of_every_machine() {
    let hosts = vec![host(&[Shares::High, Shares::Low]), host(&[Shares::Normal])];
    let times = Drawn::new(
        Exponential { mean: 8e6 },
        Streams::new(5).stream("array", "times"),
    );
    let cluster = PardaCluster::new(hosts, WindowLaw::sioc_v1(), 16, times).unwrap();
    let mut simulation = Simulation::observed(cluster, TraceHash::default());
    simulation.run_events(200_000);
    simulation.check().unwrap();
    let mut hash = simulation.observer;
    for host in simulation.model.hosts() {
        hash.observe(0, &host.windows().last().unwrap().to_bits());
    }
    assert_eq!(hash.value(), 12_533_125_023_940_703_794);
}
