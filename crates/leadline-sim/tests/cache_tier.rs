//! Disk groups against the balance of what comes in and what is destaged; protection against its own arithmetic.

#![allow(clippy::unwrap_used)] // a test may end so

use leadline_sim::models::cache_tier::{
    CacheTier, FailureSpec, GroupSpec, LoadSpec, Part, Protection, Spec, Stripe,
};
use proptest::prelude::*;

const GB: f64 = 1e9;
const MB: f64 = 1e6;
const STEP: f64 = 0.05;

fn group(name: &str) -> GroupSpec {
    GroupSpec {
        name: name.into(),
        cache_bytes: 400.0 * GB,
        cache_write: 2_000.0 * MB,
        write_share: 1.0,
        buffer_bytes_max: 600.0 * GB,
        fill: 0.0,
        device_count: 4,
        device_write: 100.0 * MB,
        fetch_seconds: 0.0,
        device_used: 1_000.0 * GB,
    }
}

/// 64 KB writes at a rate of bytes per second.
fn writes(bytes_per_second: f64) -> LoadSpec {
    LoadSpec {
        outstanding: None,
        rate: bytes_per_second / 64_000.0,
        bytes: 64_000.0,
        read_share: 0.0,
        burst: None,
    }
}

fn spec(groups: Vec<GroupSpec>, loads: Vec<LoadSpec>) -> Spec {
    Spec {
        groups,
        loads,
        protection: Protection::Copies(2),
        read_hits: 0.9,
        write_latency: 1e-4,
        hit_latency: 1e-4,
        miss_latency: 0.01,
        destage_from: 0.0,
        slow_from: 1.0,
        slow_to: 1.0,
        failures: Vec::new(),
        rebuild_rate: 500.0 * MB,
        step: STEP,
        window_steps: 20,
    }
}

fn run(spec: Spec, seconds: u64) -> CacheTier {
    let mut model = CacheTier::new(spec).unwrap();
    for _ in 0..4 {
        model.run(seconds / 4);
        model.check().unwrap();
    }
    model
}

fn close(found: f64, expected: f64, share: f64) {
    let error = (found - expected).abs();
    assert!(error <= share * expected.abs(), "{found} for {expected}");
}

/// Bytes of front-end writes per second at the end.
fn last_bytes(model: &CacheTier) -> f64 {
    model.load(0).last().unwrap().bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// `t_full` = B (1 - f0) / (rate x copies - drain), drain / copies afterwards.
    #[test]
    fn a_burst_fills_the_buffer_when_the_balance_says(
        cache in 50.0..600.0f64, fill in 0.0..0.8f64, devices in 1u32..8, copies in 1usize..4,
        write in 50.0..150.0f64, groups in 1usize..6, over in 1.2..3.0f64,
    ) {
        let parts: Vec<GroupSpec> = (0..groups)
            .map(|n| GroupSpec {
                cache_bytes: cache * GB,
                fill,
                device_count: devices,
                device_write: write * MB,
                cache_write: 5_000.0 * MB,
                ..group(&format!("g{n}"))
            })
            .collect();
        let drain = f64::from(devices) * write * MB;
        let count = groups as f64;
        let rate = over * drain * count / copies as f64;
        let full = cache * GB * (1.0 - fill) / (drain * (over - 1.0));
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // some thousand seconds
        let seconds = (1.1 * full) as u64 / 4 * 4 + 40;
        let model = run(Spec { protection: Protection::Copies(copies), ..spec(parts, vec![writes(rate)]) }, seconds);
        close(model.slowed(groups - 1).unwrap(), full, 0.02);
        close(model.load(0)[0].bytes, rate, 0.02);
        close(last_bytes(&model), drain * count / copies as f64, 0.02);
    }
}

#[test]
fn outstanding_writes_run_at_the_devices_speed_and_then_at_that_of_destaging() {
    let closed = LoadSpec {
        outstanding: Some(256.0),
        ..writes(0.0)
    };
    let model = run(spec(vec![group("g")], vec![closed]), 400);
    // 256 outstanding of 64 KB in 0.1 ms would be far more than the cache device's 2 GB/s, of which copies take half.
    close(model.load(0)[0].bytes, 1_000.0 * MB, 1e-9);
    close(model.slowed(0).unwrap(), 400.0 / (2.0 - 0.4), 0.001);
    close(last_bytes(&model), 200.0 * MB, 1e-9);
    close(model.load(0).last().unwrap().inside, 256.0, 1e-9);
}

/// From `slow_from` on, dB/dt = (1 - c)(R - D): the level nears `slow_to` with one time constant.
#[test]
fn congestion_nears_the_upper_level_exponentially() {
    let closed = LoadSpec {
        outstanding: Some(256.0),
        ..writes(0.0)
    };
    let parts = Spec {
        slow_from: 0.5,
        slow_to: 0.9,
        ..spec(vec![group("g")], vec![closed])
    };
    let model = run(parts, 600);
    let (begin, constant) = (0.5 * 400.0 / 1.6, 0.4 * 400.0 / 1.6);
    close(model.slowed(0).unwrap(), begin, 0.001);
    for second in [150u32, 250, 400] {
        let window = model.group(0)[second as usize];
        let left = libm::exp(-(f64::from(second) + 0.5 - begin) / constant);
        close(0.9 - window.fill, 0.4 * left, 0.01);
        close(1.0 - window.congestion, left, 0.01);
    }
    assert!(model.group(0).last().unwrap().fill < 0.9);
}

#[test]
fn data_stays_below_the_level_at_which_destaging_starts() {
    let parts = Spec {
        destage_from: 0.3,
        ..spec(vec![group("g")], vec![writes(100.0 * MB)])
    };
    let model = run(parts, 1_000);
    // 200 MB/s of copies come in: 120 GB after 600 s, from where on all of it is destaged.
    let windows = model.group(0);
    assert!(windows[590].destaged < 1.0);
    close(windows[590].fill, 0.3 * 590.5 / 600.0, 0.001);
    close(windows[999].fill, 0.3, 1e-6);
    close(windows[999].destaged, 200.0 * MB, 1e-6);
}

#[test]
fn a_pause_drains_what_a_burst_left_and_offered_writes_are_all_done() {
    let burst = LoadSpec {
        burst: Some((100.0, 300.0)),
        ..writes(1_200.0 * MB)
    };
    let parts = GroupSpec {
        cache_bytes: 100.0 * GB,
        ..group("g")
    };
    let model = run(spec(vec![parts], vec![burst]), 400);
    // At most 2 GB/s into the buffer: it is full after 100 / 1.6 s; what was offered comes in at 400 MB/s afterwards.
    close(model.slowed(0).unwrap(), 62.5, 0.01);
    let latency = |window: usize| model.load(0)[window].inside / model.load(0)[window].writes;
    assert!(latency(99) > 10.0, "{}", latency(99));
    let done: f64 = model.load(0).iter().map(|own| own.bytes).sum();
    let waiting = model.load(0).last().unwrap().inside * 64_000.0;
    close(done + waiting, 120.0 * GB, 0.001);
}

/// Reads that miss keep capacity devices from destaging.
#[test]
fn misses_take_from_destaging() {
    let reads = LoadSpec {
        rate: 400.0,
        read_share: 1.0,
        ..writes(0.0)
    };
    let parts = GroupSpec {
        fetch_seconds: 0.02,
        ..group("g")
    };
    let model = run(spec(vec![parts], vec![writes(1_000.0 * MB), reads]), 600);
    // 40 misses per second of 20 ms on 4 devices: a fifth of their time.
    let last = model.group(0).last().unwrap();
    close(last.read_busy, 0.2, 1e-6);
    close(last.destaged, 0.8 * 400.0 * MB, 1e-6);
    close(last_bytes(&model), 0.8 * 200.0 * MB, 1e-6);
}

/// How much one cache failure takes away, and when it is there again.
#[test]
fn a_failed_cache_takes_its_group_and_a_failed_device_its_data() {
    let fail = |part: Part, delay: f64, devices: &[u32]| {
        let groups = devices.iter().enumerate().map(|(n, count)| GroupSpec {
            device_count: *count,
            ..group(&format!("g{n}"))
        });
        let parts = Spec {
            failures: vec![FailureSpec {
                at: 100.0,
                group: 0,
                part,
                delay,
            }],
            ..spec(groups.collect(), vec![writes(10.0 * MB)])
        };
        run(parts, 16_000).rebuilds()[0]
    };
    let found = fail(Part::Cache, 3_600.0, &[3, 3, 6]);
    close(found.lost, 3_000.0 * GB, 1e-12);
    close(found.began.unwrap(), 3_700.0, 1e-5);
    close(
        found.ended.unwrap() - found.began.unwrap(),
        3_000.0 * GB / (500.0 * MB),
        1e-4,
    );
    let found = fail(Part::Device, 0.0, &[3, 3]);
    close(found.lost, 1_000.0 * GB, 1e-12);
    close(found.ended.unwrap(), 100.0 + 2_000.0, 1e-4);
}

#[test]
fn guests_go_before_rebuilds() {
    let parts = Spec {
        failures: vec![FailureSpec {
            at: 0.0,
            group: 0,
            part: Part::Cache,
            delay: 0.0,
        }],
        ..spec(vec![group("a"), group("b")], vec![writes(900.0 * MB)])
    };
    let model = run(parts, 40);
    // Of 2 GB/s the copies of 900 MB/s leave 200 MB/s to the rebuild.
    close(last_bytes(&model), 900.0 * MB, 1e-9);
    close(model.group(1)[30].inflow, 2_000.0 * MB, 1e-9);
}

#[test]
fn the_same_run_has_the_same_trace() {
    let trace = |rate: f64| run(spec(vec![group("g")], vec![writes(rate)]), 100).trace();
    assert_eq!(trace(MB), trace(MB));
    assert_ne!(trace(MB), trace(2.0 * MB));
}

#[test]
fn what_makes_no_run_is_refused() {
    let wrong = |change: fn(&mut Spec)| {
        let mut parts = spec(vec![group("g")], vec![writes(MB)]);
        change(&mut parts);
        CacheTier::new(parts).unwrap_err().to_string()
    };
    for (found, expected) in [
        (wrong(|own| own.groups.clear()), "groups: 0; at least one"),
        (
            wrong(|own| own.groups[0].cache_bytes = 0.0),
            "group g: buffer: 0",
        ),
        (
            wrong(|own| own.groups[0].device_count = 0),
            "group g: devices: 0",
        ),
        (
            wrong(|own| own.slow_from = 2.0),
            "destage_from, slow_from, slow_to: [0.0, 2.0, 1.0]",
        ),
        (wrong(|own| own.step = 0.0), "step: 0"),
        (
            wrong(|own| own.protection = Protection::Copies(0)),
            "protection: Copies(0)",
        ),
        (
            wrong(|own| {
                own.failures.push(FailureSpec {
                    at: 0.0,
                    group: 3,
                    part: Part::Cache,
                    delay: 0.0,
                });
            }),
            "failures: group 3",
        ),
    ] {
        assert!(found.starts_with(expected), "{found}");
    }
}

#[test]
fn small_writes_leave_the_parities_they_should() {
    for (data, parity) in [(3, 1), (4, 2), (7, 2)] {
        let scheme = Protection::Code { data, parity };
        let mut stripe = Stripe::new(scheme);
        for (unit, value) in (0..data)
            .cycle()
            .zip([3, 141, 59, 26, 5, 35, 89, 79, 32, 38])
        {
            stripe.small_write(unit, value);
            assert_eq!(stripe.parities(), stripe.units()[data..]);
        }
        let count = scheme.small_write();
        assert_eq!((count.read, count.written), (1 + parity, 1 + parity));
        close(
            scheme.capacity_factor(),
            (data + parity) as f64 / data as f64,
            1e-12,
        );
    }
    for copies in 1..4 {
        let count = Protection::Copies(copies).small_write();
        assert_eq!((count.read, count.written), (0, copies));
        close(
            Protection::Copies(copies).capacity_factor(),
            copies as f64,
            1e-12,
        );
    }
}

/// Any two data units that are lost have one pair of values that P and Q allow: the code can lose two units.
#[test]
fn p_and_q_know_any_two_lost_units() {
    let scheme = Protection::Code { data: 4, parity: 2 };
    for (a, b) in [(0, 1), (0, 3), (1, 2), (2, 3)] {
        let mut whole = Stripe::new(scheme);
        for (unit, value) in [17, 99, 3, 250].into_iter().enumerate() {
            whole.small_write(unit, value);
        }
        let mut fits = Vec::new();
        for x in 0..=255u8 {
            for y in 0..=255u8 {
                let mut guess = Stripe::new(scheme);
                for unit in 0..4 {
                    let value = if unit == a {
                        x
                    } else if unit == b {
                        y
                    } else {
                        whole.units()[unit]
                    };
                    guess.small_write(unit, value);
                }
                if guess.parities() == whole.parities() {
                    fits.push((x, y));
                }
            }
        }
        assert_eq!(fits, [(whole.units()[a], whole.units()[b])]);
    }
}
