//! Events per second of the kernel, and of other structures for pending events beside it.

#![allow(missing_docs)] // criterion's macro makes a public function

mod queues;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use leadline_sim::kernel::{EventQueue, Simulation};
use leadline_sim::measure::TraceHash;
use leadline_sim::random::{Constant, Distribution, LogNormal, Pareto, Sample, Streams, Uniform};
use queues::{Heap4, PairingHeap, Pending, StdHeap};

const MM1_EVENTS: u64 = 1_000_000;
/// The mean distance of two events, ns.
const SPACING: f64 = 1_000.0;

/// One step of the hold model: take the earliest event and put it back an exponential time later.
fn hold<Q: Pending>(criterion: &mut Criterion, name: &str) {
    let mut group = criterion.benchmark_group("hold");
    group.throughput(Throughput::Elements(1));
    for pending in [10u64, 50, 100, 1_000, 10_000, 100_000, 1_000_000] {
        let mut stream = Streams::new(1).stream("hold", "gaps");
        let mut queue = Q::default();
        let mean = SPACING * pending as f64;
        let gap = move || leadline_sim::time::whole(mean * stream.exponential());
        let mut gap = gap;
        for event in 0..pending {
            queue.push(gap(), event);
        }
        let mut step = || {
            if let Some((time, event)) = queue.pop() {
                queue.push(time + gap(), event);
            }
        };
        for _ in 0..4 * pending {
            step();
        }
        group.bench_function(BenchmarkId::new(name, pending), |bencher| {
            bencher.iter(&mut step);
        });
    }
    group.finish();
}

/// The hold model with other delays than exponential ones, 10,000 events pending.
fn shapes(criterion: &mut Criterion) {
    const PENDING: u64 = 10_000;
    const MEAN: f64 = SPACING * PENDING as f64;
    let even = Uniform {
        low: 0.0,
        high: 2.0 * MEAN,
    };
    let delays = [
        ("constant", Distribution::Constant(Constant(MEAN))),
        ("uniform", Distribution::Uniform(even)),
        (
            "pareto 1.1",
            Distribution::Pareto(Pareto::from_mean(MEAN, 1.1)),
        ),
        (
            "lognormal cv 10",
            Distribution::LogNormal(LogNormal::from_mean(MEAN, 10.0)),
        ),
    ];
    let mut group = criterion.benchmark_group("shapes");
    group.throughput(Throughput::Elements(1));
    for tick in [1, 1_000_000] {
        for (name, delay) in &delays {
            let mut stream = Streams::new(1).stream("hold", "gaps");
            // With a tick of 1 ms, 100 events happen at the same instant.
            let mut gap = move || delay.sample(&mut stream).next_multiple_of(tick);
            let mut queue = EventQueue::new();
            for event in 0..PENDING {
                queue.push(gap(), event);
            }
            let mut step = || {
                if let Some(entry) = queue.pop() {
                    queue.push(entry.time.saturating_add(gap()), entry.event);
                }
            };
            for _ in 0..4 * PENDING {
                step();
            }
            group.bench_function(BenchmarkId::new(*name, tick), |bencher| {
                bencher.iter(&mut step);
            });
        }
    }
    group.finish();
}

fn holds(criterion: &mut Criterion) {
    hold::<EventQueue<u64>>(criterion, "kernel");
    hold::<Heap4>(criterion, "heap4");
    hold::<StdHeap>(criterion, "binary_heap");
    hold::<PairingHeap>(criterion, "pairing");
}

fn mm1(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("mm1");
    group.throughput(Throughput::Elements(MM1_EVENTS));
    group.bench_function("all measurements", |bencher| {
        bencher.iter(|| leadline_sim::yardstick::mm1(MM1_EVENTS, 1));
    });
    group.bench_function("and trace hash", |bencher| {
        bencher.iter(|| {
            let model = leadline_sim::yardstick::mm1_model(1);
            let mut simulation = Simulation::observed(model, TraceHash::default());
            simulation.run_events(MM1_EVENTS);
            simulation.observer.value()
        });
    });
    group.finish();
}

criterion_group! {
    name = kernel;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(std::time::Duration::from_millis(300))
        .measurement_time(std::time::Duration::from_millis(1500));
    targets = mm1, shapes, holds
}
criterion_main!(kernel);
