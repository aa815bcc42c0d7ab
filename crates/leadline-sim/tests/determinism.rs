//! A run is a function of model, seed and version.

#![allow(clippy::unwrap_used)] // a test may end so

use leadline_sim::kernel::{Model, Observer, Schedule, Simulation};
use leadline_sim::measure::{Recorder, TraceHash};
use leadline_sim::models::QueueingEvent;
use leadline_sim::random::{
    Distribution, Empirical, Erlang, LogNormal, Normal, Pareto, Sample, Streams, Uniform,
};
use leadline_sim::time::{Nanos, SECOND};
use leadline_sim::yardstick::{Hold, mm1_model};
use std::sync::Arc;

fn hash<M: Model>(model: M, events: u64) -> u64
where
    TraceHash: Observer<M::Event>,
{
    let mut simulation = Simulation::observed(model, TraceHash::default());
    simulation.run_events(events);
    simulation.observer.value()
}

/// Another value here means that runs of this version differ from those of the last: say so in the changelog.
#[test]
fn runs_are_those_of_every_machine() {
    assert_eq!(hash(mm1_model(1), 200_000), 3_800_582_792_725_204_205);
    assert_eq!(
        hash(Hold::new(1_000, 1), 200_000),
        5_196_606_479_227_564_931
    );
    assert_eq!(
        hash(Hold::new(100_000, 1), 400_000),
        18_258_990_300_654_978_633
    );
}

#[test]
fn seeds_matter() {
    assert_eq!(hash(mm1_model(7), 10_000), hash(mm1_model(7), 10_000));
    assert_ne!(hash(mm1_model(7), 10_000), hash(mm1_model(8), 10_000));
}

#[test]
fn parts_make_the_same_run() {
    let mut parts = Simulation::observed(mm1_model(1), TraceHash::default());
    let mut whole = Simulation::observed(mm1_model(1), TraceHash::default());
    whole.run_until(10 * SECOND);
    while parts.run(10 * SECOND, 777) == 777 {}
    assert_eq!(parts.observer.value(), whole.observer.value());
    assert_eq!(
        (parts.now(), parts.event_count()),
        (whole.now(), whole.event_count())
    );
    for tenth in 101..=200 {
        parts.run_until(tenth * SECOND / 10);
    }
    whole.run_until(20 * SECOND);
    assert_eq!(parts.observer.value(), whole.observer.value());
    assert_eq!(parts.now(), 20 * SECOND);
}

#[test]
fn watching_changes_nothing() {
    let observers = (
        Some(TraceHash::default()),
        Recorder::<QueueingEvent>::new(8),
    );
    let mut watched = Simulation::observed(mm1_model(1), observers);
    let mut alone = Simulation::new(mm1_model(1));
    watched.run_events(5_000);
    alone.run_events(5_000);
    assert_eq!(watched.now(), alone.now());
    assert_eq!(watched.model.responses(), alone.model.responses());
    assert_eq!(
        watched.observer.1.events().last().unwrap().time,
        alone.now()
    );
}

/// Independent sources in one system, in an order of the caller's choice.
struct Crowd {
    members: Vec<(&'static str, leadline_sim::random::Stream, u64)>,
}

impl Crowd {
    fn new(names: &[&'static str]) -> Self {
        let streams = Streams::new(3);
        let member = |name: &&'static str| (*name, streams.stream(name, "gaps"), 0);
        Self {
            members: names.iter().map(member).collect(),
        }
    }
}

impl Model for Crowd {
    type Event = usize;

    fn start(&mut self, schedule: &mut Schedule<usize>) {
        for index in 0..self.members.len() {
            schedule.at(0, index);
        }
    }

    fn handle(&mut self, now: Nanos, index: usize, schedule: &mut Schedule<usize>) {
        let (_, stream, sum) = &mut self.members[index];
        *sum = sum.wrapping_mul(31).wrapping_add(now);
        schedule.after(stream.below(1_000_000), index);
        if now > SECOND {
            schedule.stop();
        }
    }
}

#[test]
fn the_order_of_components_does_not_matter() {
    let results = [["web", "db", "log"], ["log", "web", "db"]].map(|names| {
        let mut simulation = Simulation::new(Crowd::new(&names));
        simulation.run_events(u64::MAX);
        assert!(simulation.is_stopped());
        let mut sums: Vec<_> = simulation
            .model
            .members
            .iter()
            .map(|m| (m.0, m.2))
            .collect();
        sums.sort_unstable();
        sums
    });
    assert_eq!(results[0], results[1]);
}

/// Draws of every distribution, to the last bit.
#[test]
fn draws_are_those_of_every_machine() {
    let buckets = [(1.0, 2.0, 3.0), (5.0, 5.0, 1.0), (8.0, 16.0, 2.0)];
    let distributions = [
        Distribution::Uniform(Uniform {
            low: 1.0,
            high: 9.0,
        }),
        Distribution::Erlang(Erlang {
            mean: 5.0,
            stages: 3,
        }),
        Distribution::Normal(Normal {
            mean: 5.0,
            deviation: 2.0,
        }),
        Distribution::LogNormal(LogNormal::from_mean(5.0, 1.5)),
        Distribution::Pareto(Pareto::from_mean(5.0, 2.5)),
        Distribution::Empirical(Arc::new(Empirical::from_buckets(&buckets).unwrap())),
    ];
    let mut hash = TraceHash::default();
    for distribution in &distributions {
        let mut stream = Streams::new(1).stream("test", "draws");
        for _ in 0..20_000 {
            hash.observe(0, &distribution.draw(&mut stream).to_bits());
        }
    }
    assert_eq!(hash.value(), 6_766_974_525_399_120_418);
}
