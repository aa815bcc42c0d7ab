//! Operations over a link against closed forms: round trips, bandwidth, and what losses leave of it.

#![allow(clippy::unwrap_used)] // a test may end so

use leadline_sim::kernel::Simulation;
use leadline_sim::measure::TraceHash;
use leadline_sim::models::management_plane::{
    HANDSHAKE_TRIPS, HEADER_BYTES, ManagementPlane, OperationSpec, RTO_ABOVE, SEGMENT_BYTES, Spec,
    mathis_bits_per_second,
};
use leadline_sim::time::{MILLISECOND, Nanos, SECOND};
use proptest::prelude::*;

type Run = Simulation<ManagementPlane, TraceHash>;

fn operation(
    round_trips: u32,
    request_bytes: u64,
    response_bytes: u64,
    work: Nanos,
) -> OperationSpec {
    OperationSpec {
        name: "power-on".into(),
        round_trips,
        request_bytes,
        response_bytes,
        work,
    }
}

fn spec(operation: OperationSpec) -> Spec {
    Spec {
        seed: 1,
        round_trip: 100 * MILLISECOND,
        bits_per_second: 1.5e6,
        loss: 0.0,
        reconnects: false,
        clients: 1,
        window: SECOND,
        operations: vec![operation],
    }
}

fn run(spec: Spec, span: Nanos) -> Run {
    let mut run = Simulation::observed(ManagementPlane::new(spec).unwrap(), TraceHash::default());
    run.run_until(span);
    run.check().unwrap();
    run
}

/// Mean time of the first kind of operation, s.
fn mean(run: &Run) -> f64 {
    run.model.measures[0].times.mean().unwrap() / 1e9
}

fn near(found: f64, expected: f64, share: f64) {
    assert!(
        (found - expected).abs() <= share * expected,
        "{found}, not {expected}"
    );
}

/// Messages of one segment: round trips, work, and bytes by bandwidth.
#[test]
fn an_operation_takes_round_trips_work_and_bytes() {
    let own = operation(8, 8 * 600, 8 * 900, 3 * SECOND);
    let on_wire = (8 * 1500 + 16 * HEADER_BYTES) as f64 * 8.0 / 1.5e6;
    let done = run(spec(own.clone()), 600 * SECOND);
    near(mean(&done), 0.8 + 3.0 + on_wire, 1e-6);
    let new = Spec {
        reconnects: true,
        ..spec(own)
    };
    let shaken = mean(&run(new, 600 * SECOND)) - mean(&done);
    near(shaken, 0.1 * f64::from(HANDSHAKE_TRIPS), 1e-6);
}

/// A long message: flights of 10, 20, 40 segments until the link is never idle.
#[test]
fn a_long_message_starts_slowly() {
    let own = operation(1, 100, 70 * SEGMENT_BYTES, 0);
    let fast = Spec {
        bits_per_second: 1e10,
        ..spec(own)
    };
    let found = mean(&run(fast, 600 * SECOND));
    near(found, 0.3, 0.001); // request and first flight, second, third
    let big = operation(1, 100, 50_000_000, 0);
    let found = mean(&run(spec(big), 6_000 * SECOND));
    let segments = 50_000_000_f64 / SEGMENT_BYTES as f64;
    let wire = (50_000_000.0 + segments * HEADER_BYTES as f64) * 8.0 / 1.5e6;
    near(found, wire, 0.01);
}

/// Losses bound what a connection carries: near Mathis' formula, which knows no timeouts, and not above it by much.
#[test]
fn losses_bound_the_rate() {
    for loss in [0.001, 0.004, 0.01] {
        let lossy = Spec {
            loss,
            bits_per_second: 1e10,
            ..spec(operation(1, 100, 200_000_000, 0))
        };
        let done = run(lossy, 100_000 * SECOND);
        let rate = 200_000_000.0 * 8.0 / mean(&done);
        let bound = mathis_bits_per_second(100 * MILLISECOND, loss);
        assert!(
            (0.5..1.2).contains(&(rate / bound)),
            "{loss}: {rate} of {bound}"
        );
    }
}

/// A lost segment with nothing behind it waits for the timeout: with one segment each way, twice p of them.
#[test]
fn a_lost_request_waits_for_the_timeout() {
    let loss = 0.02;
    let lossy = Spec {
        loss,
        bits_per_second: 1e10,
        ..spec(operation(1, 100, 100, 0))
    };
    let done = run(lossy, 20_000 * SECOND);
    let timeout = (RTO_ABOVE + 100 * MILLISECOND) as f64 / 1e9;
    // It doubles while it is lost again: p times twice as long, and so on.
    near(
        mean(&done),
        0.1 + 2.0 * loss * timeout / (1.0 - 2.0 * loss),
        0.02,
    );
    assert_eq!(done.model.segments[1], 0);
}

/// Clients share the bandwidth: when the link is full, each direction carries no more than it can.
#[test]
fn clients_share_the_link() {
    let own = operation(1, 100, 100_000, 0);
    let many = Spec {
        clients: 50,
        ..spec(own)
    };
    let done = run(many, 2_000 * SECOND);
    let rate = done.model.measures[0].times.count() as f64 / 2_000.0;
    let segments = 100_000_u64.div_ceil(SEGMENT_BYTES);
    let bits = 8.0 * (100_000 + segments * HEADER_BYTES) as f64;
    near(rate * bits, 1.5e6, 0.01);
    near(mean(&done) * rate, 50.0, 0.03); // Little's law
}

/// Time grows with the round trip far more than with bandwidth, where messages are short.
#[test]
fn short_exchanges_feel_latency() {
    let at = |round_trip, bits_per_second| {
        let own = operation(12, 20_000, 30_000, SECOND);
        let spec = Spec {
            round_trip: round_trip * MILLISECOND,
            bits_per_second,
            ..spec(own)
        };
        mean(&run(spec, 3_000 * SECOND))
    };
    let plain = at(100, 1.5e6);
    assert!(at(400, 1.5e6) - plain > 5.0 * (at(100, 0.5e6) - plain));
}

#[test]
fn runs_repeat_and_seeds_matter() {
    let of = |seed| {
        let spec = Spec {
            seed,
            loss: 0.05,
            ..spec(operation(3, 5_000, 50_000, 0))
        };
        run(spec, 100 * SECOND).observer.value()
    };
    assert_eq!(of(1), of(1));
    assert_ne!(of(1), of(2));
}

#[test]
fn parameters_that_make_no_system_are_refused() {
    let good = spec(operation(1, 1, 1, 0));
    let lossy = Spec {
        loss: 1.0,
        ..good.clone()
    };
    let nobody = Spec { clients: 0, ..good };
    let no_trips = spec(operation(0, 1, 1, 0));
    for (wrong, expected) in [
        (lossy, "loss"),
        (nobody, "clients"),
        (no_trips, "round trips"),
    ] {
        let error = ManagementPlane::new(wrong).unwrap_err();
        assert!(error.expected.contains(expected), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The link sends every byte once, and losses again: never longer than time was, never less than the operations hold.
    #[test]
    fn bytes_are_conserved(
        trips in 1u32..20, request in 0u64..50_000, response in 0u64..200_000, clients in 1u32..6, loss in 0.0f64..0.1, seed: u64,
    ) {
        let own = operation(trips, request, response, 10 * MILLISECOND);
        let done = run(Spec { seed, clients, loss, ..spec(own) }, 60 * SECOND);
        let count = done.model.measures[0].times.count();
        let bits = |bytes: u64| bytes as f64 * 8.0 / 1.5e6 * 1e9;
        for (sent, bytes) in done.model.sent.iter().zip([request, response]) {
            let least = bits(bytes + u64::from(trips) * HEADER_BYTES) * count as f64;
            prop_assert!(*sent as f64 >= least * 0.999 - 1e3, "{} {}", sent, least);
        }
        prop_assert!(done.model.busy.level() == u64::from(clients));
    }
}
