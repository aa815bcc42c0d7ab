//! A hypervisor's CPU scheduler against what queueing theory and its own rules say of it.

#![allow(clippy::unwrap_used, clippy::cast_possible_truncation)] // a test may end so, and its numbers are small

use leadline_sim::kernel::Simulation;
use leadline_sim::measure::TraceHash;
use leadline_sim::models::hypervisor_cpu::{
    HostSpec, HypervisorCpu, LoadSpec, Policy, Spec, Users, VmSpec,
};
use leadline_sim::random::{Constant, Distribution, Exponential};
use leadline_sim::time::{MILLISECOND, Nanos, SECOND};
use proptest::prelude::*;

const RUN: usize = 0;
const READY: usize = 1;
const CO_STOP: usize = 2;

type Run = Simulation<HypervisorCpu, TraceHash>;

fn host(nodes: usize, cores_per_node: usize, threads_per_core: usize) -> HostSpec {
    HostSpec {
        name: "esx01".into(),
        nodes,
        cores_per_node,
        threads_per_core,
        thread_gain: 0.3,
        policy: Policy::Default,
        quantum: 200 * MILLISECOND,
        co_stop: 3 * MILLISECOND,
        co_start: 2 * MILLISECOND,
        remote_penalty: 0.2,
        balance_every: 2 * SECOND,
        memory_move: 10 * SECOND,
    }
}

fn constant(nanos: Nanos) -> Distribution {
    Distribution::Constant(Constant(nanos as f64))
}

fn exponential(nanos: Nanos) -> Distribution {
    let mean = nanos as f64;
    Distribution::Exponential(Exponential { mean })
}

fn vm(name: &str, vcpus: usize, load: LoadSpec) -> VmSpec {
    VmSpec {
        name: name.into(),
        vcpus,
        shares: 1_000.0 * vcpus as f64,
        reservation: 0.0,
        limit: f64::INFINITY,
        has_vnuma: true,
        overhead: 0.0,
        load,
    }
}

/// Every vCPU has something to do at any time.
fn busy(name: &str, vcpus: usize) -> VmSpec {
    let users = Users::Closed {
        count: 2 * vcpus as u32, // one waits when the other is done
        think: constant(0),
    };
    vm(name, vcpus, load(users, 1, constant(10 * MILLISECOND)))
}

fn load(users: Users, burst_count: u32, burst: Distribution) -> LoadSpec {
    LoadSpec {
        users,
        burst_count,
        burst,
        wait: constant(MILLISECOND),
    }
}

/// Users of a database: half a burst of waiting after each of ten, then they think.
fn database(name: &str, vcpus: usize, users: u32) -> VmSpec {
    let users = Users::Closed {
        count: users,
        think: exponential(100 * MILLISECOND),
    };
    vm(name, vcpus, load(users, 10, exponential(2 * MILLISECOND)))
}

/// Warms up for a tenth, measures the rest, and checks conservation on the way.
fn run(host: HostSpec, vms: Vec<VmSpec>, seconds: u64) -> Run {
    let spec = Spec {
        seed: 7,
        measured: seconds * SECOND,
        window: SECOND,
        host,
        vms,
    };
    let mut run = Simulation::observed(HypervisorCpu::new(spec).unwrap(), TraceHash::default());
    run.run_until(seconds * SECOND / 10);
    let now = run.now();
    run.model.restart_measuring(now);
    for part in 2..=20 {
        run.run_until(seconds * SECOND / 20 * part);
        run.check().unwrap();
    }
    run
}

/// The share of the measured time that the vCPUs of a VM were in a state, in vCPUs.
fn spent(run: &Run, vm: usize, state: usize) -> f64 {
    let total: Nanos = run
        .model
        .spent(vm, run.now())
        .iter()
        .map(|own| own[state])
        .sum();
    total as f64 / (run.now() - run.model.measured_from()) as f64
}

fn per_second(run: &Run, vm: usize) -> f64 {
    let passed = (run.now() - run.model.measured_from()) as f64 / SECOND as f64;
    run.model.measures[vm].responses.count() as f64 / passed
}

fn close(found: f64, expected: f64, share: f64) {
    assert!(
        (found / expected - 1.0).abs() <= share,
        "{found} for {expected}"
    );
}

/// The share of arrivals that wait in M/M/c. Source: Kleinrock, "Queueing systems" 1 (1975), equation 3.40.
fn erlang_c(servers: u32, load: f64) -> f64 {
    let mut blocking = 1.0; // Erlang's B by its recursion
    for count in 1..=servers {
        blocking = load * blocking / (f64::from(count) + load * blocking);
    }
    let free = 1.0 - load / f64::from(servers);
    blocking / (free + (1.0 - free) * blocking)
}

#[test]
fn a_guest_alone_responds_as_erlang_says() {
    for (cores, utilisation) in [(1, 0.7), (4, 0.8), (16, 0.9)] {
        let offered = f64::from(cores) * utilisation;
        let users = Users::Poisson(offered * 1_000.0);
        let guest = vm(
            "db",
            cores as usize,
            load(users, 1, exponential(MILLISECOND)),
        );
        let run = run(host(1, cores as usize, 1), vec![guest], 400);
        let waiting = erlang_c(cores, offered) / (f64::from(cores) - offered);
        let found = run.model.measures[0].responses.mean().unwrap() / MILLISECOND as f64;
        close(found, 1.0 + waiting, 0.02);
        close(spent(&run, 0, RUN), offered, 0.01);
        assert!(spent(&run, 0, READY) + spent(&run, 0, CO_STOP) == 0.0);
    }
}

#[test]
fn two_that_are_always_busy_share_a_core_and_are_ready_half_the_time() {
    let run = run(host(1, 1, 1), vec![busy("a", 1), busy("b", 1)], 100);
    for vm in [0, 1] {
        close(spent(&run, vm, READY), 0.5, 0.01);
        close(spent(&run, vm, RUN), 0.5, 0.01);
    }
}

#[test]
fn shares_divide_what_is_wanted_by_all() {
    let mut three = busy("b", 1);
    three.shares = 3_000.0;
    let narrow = run(host(1, 1, 1), vec![busy("a", 1), three], 200);
    close(spent(&narrow, 0, RUN), 0.25, 0.01);
    close(spent(&narrow, 1, RUN), 0.75, 0.01);
    let mut wide = busy("b", 4);
    wide.shares = 12_000.0;
    let wide = run(host(1, 4, 1), vec![busy("a", 4), wide], 200);
    close(spent(&wide, 0, RUN), 1.0, 0.02);
    close(spent(&wide, 1, RUN), 3.0, 0.02);
}

#[test]
fn what_one_does_not_want_the_other_gets() {
    let mut idle = busy("a", 1);
    idle.load.users = Users::Poisson(20.0); // a fifth of a core
    idle.shares = 9_000.0;
    let run = run(host(1, 1, 1), vec![idle, busy("b", 1)], 200);
    close(spent(&run, 0, RUN), 0.2, 0.05);
    close(spent(&run, 0, RUN) + spent(&run, 1, RUN), 1.0, 1e-6);
    // With the better rank it hardly waits: M/D/1 takes 11.25 ms.
    assert!(run.model.measures[0].responses.mean().unwrap() < 16.0 * MILLISECOND as f64);
}

#[test]
fn a_reservation_is_kept_against_shares() {
    let mut reserved = busy("a", 2);
    (reserved.shares, reserved.reservation) = (100.0, 1.2);
    let mut rich = busy("b", 2);
    rich.shares = 9_900.0;
    let with = run(host(1, 2, 1), vec![reserved.clone(), rich.clone()], 200);
    close(spent(&with, 0, RUN), 1.2, 0.03);
    reserved.reservation = 0.0;
    let without = run(host(1, 2, 1), vec![reserved, rich], 200);
    assert!(spent(&without, 0, RUN) < 0.1);
}

#[test]
fn a_limit_holds_on_an_idle_host() {
    for limit in [0.5, 1.5, 3.0] {
        let mut limited = busy("a", 4);
        limited.limit = limit;
        let run = run(host(1, 8, 1), vec![limited], 50);
        close(spent(&run, 0, RUN), limit, 0.005);
        close(
            spent(&run, 0, READY) + spent(&run, 0, CO_STOP),
            4.0 - limit,
            0.005,
        );
    }
}

#[test]
fn a_limit_above_its_share_costs_nothing_on_a_crowded_host() {
    let rate = |limit: f64| {
        let mut limited = busy("a", 8);
        limited.limit = limit;
        spent(&run(host(1, 8, 1), vec![limited, busy("b", 8)], 60), 0, RUN)
    };
    close(rate(f64::INFINITY), 4.0, 0.05);
    close(rate(6.0), 4.0, 0.1);
    close(rate(2.0), 2.0, 0.05);
}

#[test]
fn two_threads_of_a_core_do_its_gain_more() {
    for gain in [0.0, 0.3, 1.0] {
        let mut both = host(1, 4, 2);
        both.thread_gain = gain;
        let full = run(both.clone(), vec![busy("a", 8)], 20);
        close(per_second(&full, 0), 400.0 * (1.0 + gain), 0.001);
        let half = run(both, vec![busy("a", 4)], 20);
        close(per_second(&half, 0), 400.0, 0.001); // each on a core of its own
    }
}

#[test]
fn side_channels_are_closed_as_each_version_does() {
    let rate = |policy: Policy| {
        let mut own = host(1, 4, 2);
        own.policy = policy;
        let run = run(own, vec![busy("a", 4), busy("b", 4), busy("c", 4)], 60);
        (0..3).map(|vm| per_second(&run, vm)).sum::<f64>()
    };
    close(rate(Policy::Default), 520.0, 0.001);
    close(rate(Policy::ScaV1), 400.0, 0.001);
    let second = rate(Policy::ScaV2);
    assert!(second > 450.0 && second <= 520.5, "{second}");
    let mut own = host(1, 4, 2);
    own.policy = Policy::ScaV2;
    let single = run(own, (0..8).map(|n| busy(&format!("s{n}"), 1)).collect(), 60);
    let total: f64 = (0..8).map(|vm| per_second(&single, vm)).sum();
    close(total, 400.0, 0.001); // nobody has a second vCPU to put beside
}

#[test]
fn a_vcpu_far_ahead_of_its_sibling_is_stopped() {
    // Three busy vCPUs of one VM and one of another on three cores: somebody always waits.
    let contended = run(host(1, 3, 1), vec![busy("a", 3), busy("b", 1)], 60);
    assert!(spent(&contended, 0, CO_STOP) > 0.1);
    assert!(spent(&contended, 1, CO_STOP) == 0.0);
    let mut never = host(1, 3, 1);
    (never.co_stop, never.co_start) = (1_000 * SECOND, 1_000 * SECOND);
    let free = run(never, vec![busy("a", 3), busy("b", 1)], 60);
    assert!(spent(&free, 0, CO_STOP) == 0.0);
    // No sibling is ever further behind than the threshold, a tick and the time in which it waits for its turn.
    let stalled: Vec<Nanos> = (contended.model.spent(0, contended.now()).iter())
        .map(|own| own[READY] + own[CO_STOP])
        .collect();
    let skew = stalled.iter().max().unwrap() - stalled.iter().min().unwrap();
    assert!(skew < 400 * MILLISECOND, "{stalled:?}");
}

#[test]
fn remote_memory_makes_work_longer_and_vnuma_keeps_it_near() {
    let mut wide = busy("a", 8);
    let near = run(host(2, 4, 1), vec![wide.clone()], 20);
    close(per_second(&near, 0), 800.0, 0.001);
    wide.has_vnuma = false;
    let half = run(host(2, 4, 1), vec![wide], 20);
    close(per_second(&half, 0), 800.0 / (1.0 + 0.2 * 0.5), 0.001);
}

#[test]
fn a_vm_moves_to_the_idle_node_and_its_memory_follows() {
    let mut quiet = busy("quiet", 4);
    quiet.load.users = Users::Poisson(1.0);
    // Placed in turn: a and b share a node of four cores while the other node idles.
    let vms = || vec![busy("a", 4), quiet.clone(), busy("b", 4)];
    let settled = run(host(2, 4, 1), vms(), 150);
    close(spent(&settled, 0, RUN) + spent(&settled, 2, RUN), 8.0, 0.02);
    for vm in [0, 2] {
        close(per_second(&settled, vm), 400.0, 0.02);
    }
    let mut slow = host(2, 4, 1);
    slow.memory_move = 10_000 * SECOND;
    let remote = run(slow, vms(), 150);
    let rates = [per_second(&remote, 0), per_second(&remote, 2)];
    close(rates[0].max(rates[1]), 400.0, 0.02);
    close(rates[0].min(rates[1]), 400.0 / 1.2, 0.02);
}

#[test]
fn the_hypervisors_own_work_takes_cores_and_makes_guests_wait() {
    let mut guest = database("db", 4, 30);
    guest.overhead = 0.1;
    let run = run(host(1, 4, 1), vec![guest.clone()], 60);
    let cores = run
        .model
        .cores_busy
        .weighted
        .mean(run.now() - run.model.measured_from());
    close(cores.unwrap(), spent(&run, 0, RUN) * 1.1, 0.01);
    assert!(spent(&run, 0, READY) > 0.0);
}

#[test]
fn runs_are_functions_of_their_seed() {
    let vms = || vec![database("a", 6, 40), database("b", 6, 40)];
    let trace = || run(host(2, 4, 2), vms(), 10).observer.value();
    assert_eq!(trace(), trace());
    let other = vec![database("a", 6, 40), database("c", 6, 40)];
    assert_ne!(trace(), run(host(2, 4, 2), other, 10).observer.value());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever the host: time is conserved for every vCPU, nobody waits beside a thread for it, and no work is lost.
    #[test]
    fn time_and_work_are_conserved(
        nodes in 1usize..3, cores in 1usize..5, threads in 1usize..3, policy in 0usize..3,
        sizes in prop::collection::vec((1usize..9, 1u32..20, 0u32..3), 1..5),
    ) {
        let mut own = host(nodes, cores, threads);
        own.policy = [Policy::Default, Policy::ScaV1, Policy::ScaV2][policy];
        let vms = sizes.iter().enumerate().map(|(index, (vcpus, users, kind))| {
            let mut made = database(&format!("vm{index}"), *vcpus, *users);
            match kind {
                0 => made.limit = 0.7 * *vcpus as f64,
                1 => made.reservation = 0.1,
                _ => made.overhead = 0.1,
            }
            made
        });
        let run = run(own, vms.collect(), 4);
        let busy: f64 = (0..sizes.len()).map(|vm| spent(&run, vm, RUN)).sum();
        prop_assert!(busy <= (nodes * cores * threads) as f64 + 1e-9);
    }
}
