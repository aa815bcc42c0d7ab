//! Write caches against what their devices can do, and what is left of acknowledged writes after a power loss.

#![allow(clippy::unwrap_used)] // a test may end so

use leadline_sim::kernel::Simulation;
use leadline_sim::measure::TraceHash;
use leadline_sim::models::write_cache::{Backing, Kind, Spec, WRITE_CACHES, WriteCache};
use leadline_sim::time::{MICROSECOND, MILLISECOND, SECOND};

const BLOCK: u32 = 4096;

fn spec(kind: Kind) -> Spec {
    Spec {
        seed: 1,
        kind,
        is_sorted: false,
        blocks: 100_000,
        block_bytes: BLOCK,
        outstanding: Some(16),
        rate: 0.0,
        random_share: 1.0,
        cache_blocks: 4_000,
        ram: 5 * MICROSECOND,
        log_latency: 50.0 * MICROSECOND as f64,
        log_bytes_per_second: 400e6,
        batch_blocks: 500,
        backing: Backing {
            seek_least: 0.5 * MILLISECOND as f64,
            seek_most: 9.0 * MILLISECOND as f64,
            rotation: 8.33 * MILLISECOND as f64,
            bytes_per_second: 150e6,
        },
        window: SECOND / 10,
    }
}

type Run = Simulation<WriteCache, TraceHash>;

fn run(spec: Spec, warm_up: u64, seconds: u64) -> Run {
    let mut run = Simulation::observed(WriteCache::new(spec).unwrap(), TraceHash::default());
    run.run_until(warm_up * SECOND);
    run.model.restart_measuring(warm_up * SECOND);
    for part in 1..=4 {
        run.run_until(warm_up * SECOND + part * seconds * SECOND / 4);
        run.check().unwrap();
    }
    run
}

fn rate(run: &Run, seconds: u64) -> f64 {
    run.model.measures.responses.count() as f64 / seconds as f64
}

fn close(found: f64, expected: f64, share: f64) {
    assert!(
        (found / expected - 1.0).abs() <= share,
        "{found} for {expected}"
    );
}

/// Mean time of a random write: the square root of the distance of two random places is 8/15 on average.
fn random_ms() -> f64 {
    0.5 + 8.5 * 8.0 / 15.0 + 8.33 / 2.0 + f64::from(BLOCK) / 150e6 * 1e3
}

fn lost(run: &Run) -> u64 {
    run.model
        .measures
        .looks
        .iter()
        .map(|look| look.lost_blocks)
        .max()
        .unwrap()
}

#[test]
fn without_a_cache_writes_take_what_the_disk_takes() {
    let found = run(spec(Kind::WriteThrough), 1, 200);
    close(rate(&found, 200), 1_000.0 / random_ms(), 0.02);
    close(
        found.model.measures.responses.mean().unwrap() / 1e6,
        16.0 * random_ms(),
        0.02,
    );
    assert_eq!(lost(&found), 0);
    let sequential = Spec {
        random_share: 0.0,
        ..spec(Kind::WriteThrough)
    };
    let found = run(sequential, 0, 2);
    close(rate(&found, 2), 150e6 / f64::from(BLOCK), 0.02);
}

#[test]
fn memory_helps_until_it_is_full_and_a_power_loss_takes_what_it_holds() {
    // 16 outstanding at 5 us: full after a millisecond or two.
    let found = run(spec(Kind::RamWriteBack), 5, 200);
    let drain = 1_000.0 / random_ms();
    // Overwritten blocks are flushed once: 4 % of 100,000 blocks are in memory.
    close(rate(&found, 200), drain / 0.96, 0.03);
    let looks = &found.model.measures.looks;
    // Of a block that is overwritten while it is flushed, memory holds two versions.
    assert!(looks.iter().all(|look| look.held_blocks == 4_000));
    assert!(
        looks
            .iter()
            .all(|look| (3_980..=4_000).contains(&look.lost_blocks))
    );
}

#[test]
fn the_log_runs_at_its_devices_speed_until_it_is_full() {
    let big = Spec {
        cache_blocks: 90_000,
        batch_blocks: 90_000,
        ..spec(Kind::LogStructured)
    };
    let found = run(big, 0, 1);
    // The first of 16 finds the log idle and is appended alone, the others wait for it and go together.
    let both = 2.0 * 50e-6 + 16.0 * f64::from(BLOCK) / 400e6;
    close(rate(&found, 1), 16.0 / both, 0.02);
    let (appends, blocks) = found.model.measures.log;
    close(blocks as f64 / appends as f64, 8.0, 0.01);
    assert_eq!(lost(&found), 0);
}

#[test]
fn sorted_destaging_shortens_seeks() {
    let steady = |is_sorted| {
        let found = run(
            Spec {
                is_sorted,
                ..spec(Kind::LogStructured)
            },
            20,
            100,
        );
        assert_eq!(lost(&found), 0);
        rate(&found, 100)
    };
    let (arrival, sorted) = (steady(false), steady(true));
    close(arrival, 1_000.0 / random_ms(), 0.05);
    // 500 of 100,000 blocks in order: seeks over a five-hundredth on average, E sqrt(d) = sqrt(pi)/2 sqrt(1/500).
    let seek = 0.5 + 8.5 * 0.886 * (1.0f64 / 500.0).sqrt();
    close(sorted, 1_000.0 / (seek + 8.33 / 2.0 + 0.03), 0.05);
}

#[test]
fn a_log_that_is_not_waited_for_loses_what_is_on_its_way() {
    let slow = Spec {
        log_latency: 5.0 * MILLISECOND as f64,
        window: 7 * MILLISECOND,
        ..spec(Kind::LogBehindRam)
    };
    let found = run(slow.clone(), 0, 4);
    assert!(lost(&found) > 0);
    let waited = run(
        Spec {
            kind: Kind::LogStructured,
            ..slow
        },
        0,
        4,
    );
    assert_eq!(lost(&waited), 0);
    assert!(rate(&found, 4) > rate(&waited, 4) * 0.99);
}

/// Few blocks and a small log: batches whose blocks were all written before, overwritten while they are destaged.
#[test]
fn nothing_acknowledged_is_lost_however_often_it_is_overwritten() {
    for seed in 1..20 {
        for is_sorted in [false, true] {
            let small = Spec {
                seed,
                is_sorted,
                blocks: 40,
                cache_blocks: 64,
                batch_blocks: 16,
                window: MILLISECOND,
                ..spec(Kind::LogStructured)
            };
            let found = run(small, 0, 4);
            assert_eq!(lost(&found), 0, "seed {seed}");
            assert!(found.model.measures.backing.0 > 100);
        }
    }
}

#[test]
fn offered_rates_are_done_and_runs_repeat() {
    let open = Spec {
        outstanding: None,
        rate: 80.0,
        ..spec(Kind::LogStructured)
    };
    let first = run(open.clone(), 0, 100);
    close(rate(&first, 100), 80.0, 0.05);
    let again = run(open.clone(), 0, 100);
    assert_eq!(first.observer.value(), again.observer.value());
    let other = run(Spec { seed: 2, ..open }, 0, 100);
    assert_ne!(first.observer.value(), other.observer.value());
}

#[test]
fn what_makes_no_run_is_refused() {
    let wrong = |change: fn(&mut Spec)| {
        let mut parts = spec(Kind::LogStructured);
        change(&mut parts);
        WriteCache::new(parts).unwrap_err().to_string()
    };
    for (found, expected) in [
        (wrong(|own| own.blocks = 0), "blocks: 0; at least one"),
        (wrong(|own| own.cache_blocks = 0), "cache size: 0"),
        (wrong(|own| own.batch_blocks = 5_000), "batch: 5000"),
        (wrong(|own| own.outstanding = Some(0)), "outstanding: 0"),
        (wrong(|own| own.outstanding = None), "rate: 0"),
        (
            wrong(|own| own.backing.bytes_per_second = 0.0),
            "backing: bytes per second: 0",
        ),
    ] {
        assert!(found.starts_with(expected), "{found}");
    }
    assert!(WRITE_CACHES.iter().all(|name| Kind::named(name).is_ok()));
    let message = Kind::named("battery").unwrap_err().to_string();
    assert!(
        message.starts_with("cache: battery; one of log-behind-ram"),
        "{message}"
    );
}
