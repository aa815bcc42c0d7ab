//! Documents in, outcomes out: what is refused, what `null` means, who may end a run.
#![allow(clippy::unwrap_used)]

use std::ops::ControlFlow;

use leadline_sim::document::{Failure, simulate};
use leadline_sim::models::SYSTEMS;
use leadline_sim::random::{Distribution, Sample};
use serde_json::{Value, json};

fn plane() -> Value {
    json!({
        "warm_up": 0,
        "measured": 10_000_000_000_u64,
        "spec": {
            "seed": 1, "window": 1_000_000_000, "round_trip": 50_000_000, "bits_per_second": 1e8, "loss": 0.0,
            "reconnects": false, "clients": 1,
            "operations": [
                {"name": "power-on", "round_trips": 2, "request_bytes": 100, "response_bytes": 100, "work": 0}
            ],
        },
    })
}

fn go_on(_: f64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn refused(system: &str, document: &Value) -> String {
    match simulate(system, &document.to_string(), &[], &mut go_on) {
        Err(Failure::Wrong(error)) => error.to_string(),
        other => format!("{other:?}"),
    }
}

#[test]
fn an_outcome_has_named_columns() {
    let text = simulate("management-plane", &plane().to_string(), &[], &mut go_on).unwrap();
    let outcome: Value = serde_json::from_str(&text).unwrap();
    let operation = &outcome["operations"][0];
    assert!(operation["count"].as_u64().unwrap() > 90);
    assert_eq!(operation["counts"].as_array().unwrap().len(), 10);
    assert!((operation["mean"].as_f64().unwrap() - 1e8).abs() < 1e6); // two round trips of 50 ms, ns
    assert_eq!(outcome["trace"].as_str().unwrap().len(), 16);
}

#[test]
fn a_document_with_other_keys_is_refused_with_their_place() {
    let mut document = plane();
    document["spec"]["operations"][0]["wrk"] = json!(1);
    let message = refused("management-plane", &document);
    assert!(
        message.starts_with("scenario: spec.operations[0].wrk: unknown field"),
        "{message}"
    );
    document = plane();
    document["spec"].as_object_mut().unwrap().remove("loss");
    assert!(refused("management-plane", &document).contains("missing field `loss`"));
    for (system, _) in SYSTEMS {
        assert!(
            refused(system, &json!({"unknown": 1})).contains("unknown field"),
            "{system}"
        );
    }
    assert!(refused("no-system", &plane()).contains("management-plane"));
}

#[test]
fn a_watcher_ends_a_run_and_is_told_shares() {
    let mut shares = Vec::new();
    let document = plane().to_string();
    let ended = simulate("management-plane", &document, &[], &mut |share| {
        shares.push(share);
        ControlFlow::Break(())
    });
    assert_eq!(ended, Err(Failure::Stopped));
    assert_eq!(shares.len(), 1);
    simulate("management-plane", &document, &[], &mut |share| {
        shares.push(share);
        ControlFlow::Continue(())
    })
    .unwrap();
    assert!(shares.is_sorted() && *shares.last().unwrap() <= 1.0);
}

fn drawn(document: Value) -> Result<Distribution, serde_json::Error> {
    serde_json::from_value(document)
}

#[test]
fn lengths_of_time_are_in_seconds() {
    for document in [
        json!({"kind": "constant", "mean": 0.002}),
        json!({"kind": "uniform", "low": 0.001, "high": 0.003}),
        json!({"kind": "exponential", "mean": 0.002}),
        json!({"kind": "erlang", "mean": 0.002, "stages": 4}),
        json!({"kind": "lognormal", "mean": 0.002, "cv": 0.5}),
        json!({"kind": "pareto", "mean": 0.002, "shape": 2.5}),
        json!({"kind": "empirical", "buckets": [[0.001, 0.002, 5.0], [0.002, 0.003, 5.0]]}),
    ] {
        let mean = drawn(document.clone()).unwrap().mean();
        assert!((mean - 2e6).abs() < 1.0, "{document}: {mean}");
    }
    assert!(drawn(json!({"kind": "normal", "mean": 0.002, "cv": 0.5})).is_ok());
    assert!(drawn(json!({"kind": "constant", "mean": -1.0})).is_err());
    assert!(drawn(json!({"kind": "empirical", "buckets": []})).is_err());
    assert!(drawn(json!({"kind": "constant", "mean": 1.0, "cv": 1.0})).is_err());
}
