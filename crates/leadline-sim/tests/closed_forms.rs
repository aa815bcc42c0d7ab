//! Simulated systems against what queueing theory says of them.
//!
//! Source: Kleinrock, "Queueing systems" 1 (1975), chapters 3 and 5.

#![allow(clippy::unwrap_used)] // a test may end so

use leadline_sim::kernel::Simulation;
use leadline_sim::measure::Interval;
use leadline_sim::models::{Drawn, IopsLimit, Queueing};
use leadline_sim::random::{Constant, Erlang, Exponential, Sample, Streams};
use leadline_sim::sources::{Closed, Pace, Renewal, Source};
use leadline_sim::time::{MILLISECOND, SECOND, millis};

/// Mean service time of all systems here, ms; rates per server and ms are therefore utilisations.
const SERVICE_MS: f64 = 1.0;
const SERVICE_NS: f64 = SERVICE_MS * MILLISECOND as f64;

type Run<A, S> = Simulation<Queueing<A, Drawn<S>>>;

/// Runs a system for `warm_up` + `measured` seconds and checks conservation many times on the way.
fn run<A: Source, S: Sample>(source: A, servers: u32, service: S, seconds: u64) -> Run<A, S> {
    let stream = Streams::new(11).stream("station", "times");
    let model = Queueing::new(source, servers, Drawn::new(service, stream)).with_intervals();
    let mut simulation = Simulation::new(model);
    simulation.run_until(seconds * SECOND / 20);
    let now = simulation.now();
    simulation.model.restart_measuring(now);
    for part in 1..=20 {
        simulation.run_until(seconds * SECOND / 20 * part);
        simulation.check().unwrap();
    }
    simulation
}

fn poisson(per_second: f64) -> Renewal<Exponential> {
    Renewal::poisson(per_second, Streams::new(5).stream("source", "gaps"))
}

fn close(found: f64, expected: f64, share: f64) {
    assert!(
        (found / expected - 1.0).abs() <= share,
        "{found} for {expected}"
    );
}

fn wait_ms<A: Source, S: Sample>(simulation: &Run<A, S>) -> f64 {
    simulation.model.station.waits().mean().unwrap() / MILLISECOND as f64
}

/// The share of arrivals that wait in M/M/c. Source: Kleinrock, equation 3.40 (Erlang's C formula).
fn erlang_c(servers: u32, load: f64) -> f64 {
    let mut blocking = 1.0; // Erlang's B by its recursion
    for count in 1..=servers {
        blocking = load * blocking / (f64::from(count) + load * blocking);
    }
    let free = 1.0 - load / f64::from(servers);
    blocking / (free + (1.0 - free) * blocking)
}

#[test]
fn mm1_waits_as_long_as_it_should() {
    let service = Exponential { mean: SERVICE_NS };
    let simulation = run(poisson(700.0), 1, service, 3_000);
    let station = &simulation.model.station;
    let residence = SERVICE_MS / (1.0 - 0.7);
    close(wait_ms(&simulation), residence - SERVICE_MS, 0.02);
    // Residence times of M/M/1 are exponential: quantiles are known, too.
    for share in [0.5, 0.9, 0.99] {
        let expected = -residence * libm::log(1.0 - share);
        let found = station.residences().quantile(share).unwrap() / MILLISECOND as f64;
        close(found, expected, 0.03);
    }
    let now = simulation.now();
    close(station.busy().mean(now).unwrap(), 0.7, 0.01);
    close(station.in_system().mean(now).unwrap(), 0.7 / 0.3, 0.02);
    let little = station.little(now).unwrap();
    assert!(little.imbalance().abs() < 1e-4, "{little:?}");
}

#[test]
fn md1_waits_half_as_long() {
    for utilisation in [0.3, 0.6, 0.8] {
        let simulation = run(
            poisson(1000.0 * utilisation),
            1,
            Constant(SERVICE_NS),
            1_500,
        );
        let expected = SERVICE_MS * utilisation / (2.0 * (1.0 - utilisation));
        close(wait_ms(&simulation), expected, 0.02);
    }
}

#[test]
fn mg1_waits_as_its_variance_says() {
    let service = Erlang {
        mean: SERVICE_NS,
        stages: 4,
    };
    let simulation = run(poisson(700.0), 1, service, 1_500);
    let expected = SERVICE_MS * 0.7 / (1.0 - 0.7) * (1.0 + 0.25) / 2.0; // Pollaczek and Khinchine
    close(wait_ms(&simulation), expected, 0.02);
}

#[test]
fn mmc_waits_as_erlang_says() {
    for (servers, utilisation) in [(2, 0.8), (4, 0.7), (16, 0.9)] {
        let load = f64::from(servers) * utilisation;
        let service = Exponential { mean: SERVICE_NS };
        let simulation = run(poisson(1000.0 * load), servers, service, 600);
        let waiting = erlang_c(servers, load);
        let expected = waiting * SERVICE_MS / (f64::from(servers) - load);
        close(wait_ms(&simulation), expected, 0.04);
        let waits = simulation.model.station.waits();
        let at_once = waits.histogram().buckets().next().filter(|b| b.lower == 0);
        let at_once = at_once.unwrap().count as f64 / waits.count() as f64;
        close(1.0 - at_once, waiting, 0.02);
    }
}

/// Interval and warm-up of one run each of an M/M/1 system that starts empty.
#[test]
fn intervals_hold_the_true_mean() {
    let intervals: Vec<Interval> = (0..60)
        .map(|seed| {
            let streams = Streams::new(seed);
            let source = Renewal::poisson(500.0, streams.stream("source", "gaps"));
            let service = Drawn::new(
                Exponential { mean: SERVICE_NS },
                streams.stream("server", "times"),
            );
            let mut simulation =
                Simulation::new(Queueing::new(source, 1, service).with_intervals());
            simulation.run_until(60 * SECOND);
            simulation
                .model
                .waits_in_order
                .unwrap()
                .steady_interval()
                .unwrap()
        })
        .collect();
    let holds = |i: &&Interval| (i.mean / SERVICE_NS - 1.0).abs() <= i.half_width / SERVICE_NS;
    let held = intervals.iter().filter(holds).count();
    assert!(held >= 51, "{held} of 60");
}

/// n clients that do not think: X = 1 / service, R = n / X; with thinking, R = n / X - think.
/// Source: Denning and Buzen, "The operational analysis of queueing network models" (1978), interactive response time.
#[test]
fn closed_loops_obey_the_interactive_law() {
    let thinking = Streams::new(5).stream("clients", "think");
    let without = run(
        Closed::new(16, Constant(0.0), thinking.clone()),
        1,
        Constant(SERVICE_NS),
        20,
    );
    close(
        without.model.responses().mean().unwrap(),
        16.0 * SERVICE_NS,
        0.001,
    );
    let think = Exponential {
        mean: 20.0 * SERVICE_NS,
    };
    let with = run(
        Closed::new(16, think, thinking),
        1,
        Exponential { mean: SERVICE_NS },
        1_000,
    );
    let measured = 1_000.0 * 0.95;
    let per_ms = with.model.responses().count() as f64 / measured / 1_000.0;
    close(
        with.model.responses().mean().unwrap() / SERVICE_NS,
        16.0 / per_ms - 20.0,
        0.02,
    );
}

/// Clients that think for random times and are held to a rate below what they would reach: the rate is met exactly, and
/// a rate above it changes nothing.
#[test]
fn a_rate_holds_a_closed_loop_with_think_time() {
    let seconds = 100;
    let completed = |rate: f64| {
        let think = Exponential {
            mean: 20.0 * SERVICE_NS,
        };
        let source = Closed::new(16, think, Streams::new(5).stream("clients", "think"));
        let service = Drawn::new(
            Constant(SERVICE_NS),
            Streams::new(5).stream("disk", "times"),
        );
        let model = Queueing::new(source.limited(Pace::new(rate)), 4, service);
        let mut simulation = Simulation::new(model);
        simulation.run_until(seconds * SECOND);
        simulation.model.responses().count() as f64 / seconds as f64
    };
    close(completed(300.0), 300.0, 0.001);
    close(completed(50_000.0), 16.0 / 21.0 * 1_000.0, 0.02);
}

/// A loop of n under a limit of X operations per second: latency n / X, 32 KB counting as one.
/// Source: Little's law.
#[test]
fn a_limit_delays_a_closed_loop_to_outstanding_by_limit() {
    for (limit, bytes, iops) in [
        (200.0, 4_096, 200.0),
        (400.0, 32_768, 400.0),
        (1_000.0, 33_000, 500.0),
        (10_000.0, 65_536, 5_000.0),
        (10_000.0, 1_048_576, 312.5),
    ] {
        let stream = Streams::new(1).stream("vm", "think");
        let service = Drawn::new(Constant(100_000.0), Streams::new(1).stream("disk", "times"));
        let model = Queueing::new(Closed::new(116, Constant(0.0), stream), 64, service)
            .limited(IopsLimit::new(limit, 1), bytes);
        let mut simulation = Simulation::new(model);
        simulation.run_until(20 * SECOND);
        let now = simulation.now();
        simulation.model.restart_measuring(now);
        simulation.run_until(120 * SECOND);
        let responses = simulation.model.responses();
        close(responses.count() as f64 / 100.0, iops, 0.001);
        close(
            millis(1) * responses.mean().unwrap(),
            116.0 / iops * 1_000.0,
            0.002,
        );
        simulation.check().unwrap();
    }
}

/// Poisson arrivals before a limit wait as before a server of constant time: M/D/1.
#[test]
fn a_limit_before_an_open_source_is_md1() {
    let service = Drawn::new(Constant(0.0), Streams::new(1).stream("disk", "times"));
    let model =
        Queueing::new(poisson(700.0), 1, service).limited(IopsLimit::new(1_000.0, 1), 4_096);
    let mut simulation = Simulation::new(model);
    simulation.run_until(1_500 * SECOND);
    let mean = simulation.model.responses().mean().unwrap() / MILLISECOND as f64;
    close(mean, 0.7 / (2.0 * 0.3), 0.03);
}
