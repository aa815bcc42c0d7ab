//! Turns on a GPU against closed forms: shares, work that is not left lying, slices that pass.

#![allow(clippy::unwrap_used)] // a test may end so

use leadline_sim::kernel::Simulation;
use leadline_sim::measure::TraceHash;
use leadline_sim::models::gpu_time_slicing::{GpuEvent, GpuTimeSlicing, Policy, Spec, VmSpec};
use leadline_sim::random::{Constant, Distribution, Exponential};
use leadline_sim::time::{MICROSECOND, MILLISECOND, Nanos, SECOND};
use proptest::prelude::*;

type Run = Simulation<GpuTimeSlicing, TraceHash>;

fn constant(nanos: Nanos) -> Distribution {
    Distribution::Constant(Constant(nanos as f64))
}

fn exponential(nanos: Nanos) -> Distribution {
    let mean = nanos as f64;
    Distribution::Exponential(Exponential { mean })
}

fn vm(index: usize, cpu: Distribution, gpu: Distribution) -> VmSpec {
    VmSpec {
        name: format!("vm-{index}"),
        start: 0,
        steps: None,
        cpu,
        gpu,
    }
}

fn spec(policy: Policy, vms: Vec<VmSpec>) -> Spec {
    Spec {
        seed: 1,
        policy,
        strict: true,
        averaging_factor: 33,
        slice: MILLISECOND,
        grain: 0,
        switch: 0,
        places: 8,
        window: SECOND,
        vms,
    }
}

fn busy_vms(count: usize) -> Vec<VmSpec> {
    (0..count)
        .map(|index| vm(index, constant(0), constant(7 * MILLISECOND)))
        .collect()
}

fn run(spec: Spec, span: Nanos) -> Run {
    let mut run = Simulation::observed(GpuTimeSlicing::new(spec).unwrap(), TraceHash::default());
    run.run_until(span);
    let now = run.now();
    run.model.account(now);
    run.check().unwrap();
    run
}

fn shares(run: &Run) -> Vec<f64> {
    let span = run.now() as f64;
    let own = run.model.measures.iter();
    own.map(|own| own.gpu as f64 / span).collect()
}

fn busy(run: &Run) -> f64 {
    run.model.busy.mean(run.now()).unwrap()
}

fn near(found: f64, expected: f64, most: f64) {
    assert!((found - expected).abs() <= most, "{found}, not {expected}");
}

/// n jobs that always have work get 1/n each with equal share and best effort, 1/places with fixed share.
#[test]
fn busy_jobs_get_equal_parts() {
    for strict in [true, false] {
        for (policy, count, part) in [
            (Policy::EqualShare, 3, 1.0 / 3.0),
            (Policy::BestEffort, 3, 1.0 / 3.0),
            (Policy::FixedShare, 3, 1.0 / 8.0),
            (Policy::FixedShare, 8, 1.0 / 8.0),
        ] {
            let spec = Spec {
                strict,
                ..spec(policy, busy_vms(count))
            };
            let done = run(spec, 20 * SECOND);
            for share in shares(&done) {
                near(share, part, 0.001);
            }
            near(busy(&done), part * count as f64, 0.003);
        }
    }
}

/// Best effort leaves the GPU idle only when nobody has work: with two jobs of exponential phases the machine-repairman's
/// formula, with equal shares less.
#[test]
fn best_effort_conserves_work() {
    let (cpu, gpu) = (3 * MILLISECOND, 7 * MILLISECOND);
    let jobs = |count| {
        let all = 0..count;
        all.map(|index| vm(index, exponential(cpu), exponential(gpu)))
            .collect::<Vec<_>>()
    };
    let load = gpu as f64 / cpu as f64;
    let idle = 1.0 / (1.0 + 2.0 * load + 2.0 * load * load);
    let best = run(spec(Policy::BestEffort, jobs(2)), 300 * SECOND);
    near(busy(&best), 1.0 - idle, 0.005);
    let alone = run(spec(Policy::BestEffort, jobs(1)), 300 * SECOND);
    near(busy(&alone), 0.7, 0.01);
    let equal = run(spec(Policy::EqualShare, jobs(2)), 300 * SECOND);
    assert!(busy(&equal) < busy(&best) - 0.02, "{}", busy(&equal));
}

/// An empty place lets its slice pass: a VM alone in eight places has an eighth, and a step takes eight times its work.
#[test]
fn fixed_share_lets_slices_pass() {
    let done = run(spec(Policy::FixedShare, busy_vms(1)), 20 * SECOND);
    near(busy(&done), 0.125, 0.001);
    let step = done.model.measures[0].steps.mean().unwrap();
    near(step / 56e6, 1.0, 0.01);
    let equal = run(spec(Policy::EqualShare, busy_vms(1)), 20 * SECOND);
    near(busy(&equal), 1.0, 0.001);
}

/// Kernels of 0.4 ms overrun slices of 1 ms by 0.2; taking it back makes the share of the one that overruns near equal again,
/// over a long time and for both ways to do so.
#[test]
fn overruns_are_taken_back() {
    let jobs = || {
        vec![
            vm(0, constant(0), constant(MILLISECOND)),
            vm(1, constant(0), constant(15 * MILLISECOND)),
        ]
    };
    for (factor, strict) in [(1, true), (33, true), (33, false)] {
        let spec = Spec {
            grain: 400 * MICROSECOND,
            averaging_factor: factor,
            strict,
            ..spec(Policy::EqualShare, jobs())
        };
        let share = shares(&run(spec, 60 * SECOND))[1];
        near(share, 0.5, 0.01);
    }
    let never = Spec {
        grain: 400 * MICROSECOND,
        averaging_factor: u32::MAX,
        ..spec(Policy::EqualShare, jobs())
    };
    assert!(shares(&run(never, 60 * SECOND))[1] > 0.53);
}

/// A switch takes its part of each slice: work of 7 ms needs seven of 0.9 ms and one of 0.7, with eight switches.
#[test]
fn switches_cost_their_time() {
    let spec = Spec {
        switch: 100 * MICROSECOND,
        ..spec(Policy::BestEffort, busy_vms(4))
    };
    let done = run(spec, 20 * SECOND);
    near(shares(&done).iter().sum::<f64>(), 7.0 / 7.8, 0.001);
    near(busy(&done), 1.0, 1e-9);
}

/// A job that is over leaves its share to the others; who comes late claims nothing of what has passed.
#[test]
fn who_leaves_and_who_comes_late() {
    let mut jobs = busy_vms(2);
    jobs[0].steps = Some(100);
    jobs[1].start = 500 * MILLISECOND;
    for strict in [true, false] {
        let spec = Spec {
            strict,
            ..spec(Policy::EqualShare, jobs.clone())
        };
        let done = run(spec, 2 * SECOND);
        // 500 ms alone, the other 200 ms of its 700 at half speed; then the other one alone for 1.1 s of 2.
        let finished = done.model.measures[0].finished.unwrap();
        near(finished as f64 / 1e6, 900.0, 3.0);
        assert_eq!(done.model.measures[0].alone, 700 * MILLISECOND);
        near(shares(&done)[1], 0.65, 0.005);
    }
}

/// 24 jobs that are on the CPU a third of the time take 16 times as long as one, not 24.
#[test]
fn work_of_others_hides_in_cpu_phases() {
    let jobs = (0..24).map(|index| {
        vm(
            index,
            exponential(10 * MILLISECOND),
            exponential(20 * MILLISECOND),
        )
    });
    let spec = Spec {
        places: 24,
        ..spec(Policy::BestEffort, jobs.collect())
    };
    let done = run(spec, 300 * SECOND);
    let own = done.model.measures.iter();
    let mean = own.filter_map(|own| own.steps.mean()).sum::<f64>() / 24.0;
    near(mean / 30e6, 16.0, 0.2);
}

#[test]
fn runs_repeat_and_seeds_matter() {
    let of = |seed| {
        let jobs = vec![vm(0, exponential(MILLISECOND), exponential(MILLISECOND))];
        let spec = Spec {
            seed,
            ..spec(Policy::EqualShare, jobs)
        };
        run(spec, SECOND).observer.value()
    };
    assert_eq!(of(1), of(1));
    assert_ne!(of(1), of(2));
}

#[test]
fn parameters_that_make_no_system_are_refused() {
    let full = spec(Policy::BestEffort, busy_vms(9));
    let slow = Spec {
        switch: MILLISECOND,
        ..spec(Policy::BestEffort, busy_vms(1))
    };
    let idle = spec(Policy::BestEffort, vec![vm(0, constant(1), constant(0))]);
    for (wrong, expected) in [(full, "a place for each"), (slow, "longer"), (idle, "work")] {
        let error = GpuTimeSlicing::new(wrong).unwrap_err();
        assert!(error.expected.contains(expected), "{error}");
    }
    assert_eq!(Policy::named("fixed-share"), Some(Policy::FixedShare));
    assert_eq!(Policy::named("lottery"), None);
    assert_eq!(std::mem::size_of::<GpuEvent>(), 8);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Nobody gets time that is not there, and whoever is the only one to have work gets it under best effort.
    #[test]
    fn time_is_conserved(
        count in 1usize..8, cpu in 1u64..20, gpu in 1u64..20, grain in 0u64..3, policy in 0usize..3, strict: bool, seed: u64,
    ) {
        let policy = [Policy::BestEffort, Policy::EqualShare, Policy::FixedShare][policy];
        let jobs = (0..count).map(|index| {
            vm(index, exponential(cpu * MILLISECOND), exponential(gpu * MILLISECOND))
        });
        let spec = Spec { seed, strict, grain: grain * MILLISECOND, ..spec(policy, jobs.collect()) };
        let done = run(spec, 5 * SECOND);
        let given: Nanos = done.model.measures.iter().map(|own| own.gpu).sum();
        prop_assert_eq!(u128::from(given), done.model.busy.area(done.now()));
    }
}
