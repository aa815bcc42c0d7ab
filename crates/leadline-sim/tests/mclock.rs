//! mClock request by request: its tags, its decisions against the rules written out plainly, and dmClock.

#![allow(clippy::unwrap_used)] // a test may end so

use leadline_sim::kernel::Simulation;
use leadline_sim::models::{
    CostRule, Discipline, DmClockCluster, MClock, Next, Phase, Placement, QosPolicy, QosVm,
    Request, RequestSize, SharedRate, VmRequest, fluid_allocation,
};
use leadline_sim::random::{Constant, Stream, Streams};
use leadline_sim::sources::Closed;
use leadline_sim::time::{MILLISECOND, Nanos, SECOND};

const KB: u32 = 1024;

fn at(vm: u32, issued: Nanos) -> VmRequest {
    VmRequest {
        vm,
        bytes: 4 * KB,
        issued,
    }
}

fn order(clock: &mut MClock<VmRequest>, now: Nanos, count: usize) -> Vec<u32> {
    let next = || match clock.next(now) {
        Next::Job(job) => Some(job.vm),
        _ => None,
    };
    std::iter::from_fn(next).take(count).collect()
}

/// Tags by hand: R every 10 ms, and by weight in between.
#[test]
fn tags_are_those_of_the_paper() {
    let policies = [
        QosPolicy::weighing(1.0).reserving(100.0),
        QosPolicy::weighing(3.0),
    ];
    let mut clock = MClock::new(&policies, CostRule::Request).unwrap();
    for _ in 0..20 {
        clock.push(0, at(0, 0));
        clock.push(0, at(1, 0));
    }
    // R of client 0 is 0 at time 0, then 10 ms; by weight after that, P = 1/1 against 0, 1/3, 2/3, 1.
    assert_eq!(order(&mut clock, 0, 8), [0, 1, 1, 1, 0, 1, 1, 1]);
    // What went by weight is taken off: R of the next is 10 ms still, not 20.
    assert_eq!(clock.released(0).by_reservation, 1);
    assert_eq!(clock.released(0).by_weight, 1);
    assert_eq!(order(&mut clock, 10 * MILLISECOND, 1), [0]);
    assert_eq!(clock.released(0).by_reservation, 2);
    assert_eq!(clock.len(), 31);
}

/// A client that was idle neither owes nor owns: it shares from the time it wakes.
#[test]
fn waking_clients_get_their_share_at_once_and_no_more() {
    let policies = [QosPolicy::default(), QosPolicy::default()];
    let mut clock = MClock::new(&policies, CostRule::Request).unwrap();
    for _ in 0..200 {
        clock.push(0, at(0, 0));
    }
    assert_eq!(order(&mut clock, 0, 100), [0; 100]);
    for _ in 0..10 {
        clock.push(SECOND, at(1, 0));
    }
    let found = order(&mut clock, SECOND, 10);
    assert_eq!(found.iter().filter(|vm| **vm == 1).count(), 5);
}

/// Idle credit of 4 lets four requests go before those of equal claim, once.
#[test]
fn idle_credit_lets_a_burst_go_first() {
    let policies = [QosPolicy::default(), QosPolicy::default().with_burst(4.0)];
    let mut clock = MClock::new(&policies, CostRule::Request).unwrap();
    for _ in 0..200 {
        clock.push(0, at(0, 0));
    }
    order(&mut clock, 0, 100);
    for _ in 0..20 {
        clock.push(SECOND, at(1, 0));
    }
    assert_eq!(order(&mut clock, SECOND, 8), [1, 1, 1, 1, 0, 1, 0, 1]);
}

/// Nothing goes before its limit, and the scheduler says until when to wait.
#[test]
fn a_limit_is_waited_for() {
    let policies = [QosPolicy::default().limited(1_000.0)];
    let mut clock = MClock::new(&policies, CostRule::Request).unwrap();
    assert_eq!(clock.next(5), Next::Empty);
    for _ in 0..2 {
        clock.push(5, at(0, 0));
    }
    assert!(matches!(clock.next(5), Next::Job(_)));
    let until = 5 + MILLISECOND;
    assert_eq!(clock.next(6), Next::Wait(until));
    assert_eq!(clock.next(until - 1), Next::Wait(until));
    assert!(matches!(clock.next(until), Next::Job(_)));
    assert_eq!(clock.next(until), Next::Empty);
}

#[test]
fn senseless_policies_are_refused() {
    let policies = [QosPolicy::default(), QosPolicy::weighing(-1.0)];
    let error = MClock::<VmRequest>::new(&policies, CostRule::Request).unwrap_err();
    assert!(
        error.to_string().starts_with("client 1: weight: -1; "),
        "{error}"
    );
}

/// A scheduler that looks at every client, with mClock's rules written out plainly.
struct Plain {
    policies: Vec<QosPolicy>,
    queues: Vec<Vec<[f64; 3]>>,
    last: Vec<[f64; 3]>,
    virtual_time: f64,
}

/// Seconds between two requests at a rate; without one, longer than any test.
fn apart(rate: f64) -> f64 {
    if rate > 0.0 { 1.0 / rate } else { 1_048_576.0 }
}

impl Plain {
    fn push(&mut self, now: f64, vm: usize) {
        let policy = &self.policies[vm];
        let is_reserved = policy.reservation > 0.0;
        let last = &mut self.last[vm];
        let mut p = last[2] + 1.0 / policy.weight;
        if self.queues[vm].is_empty() {
            let may_go = |queue: &&Vec<[f64; 3]>| queue[0][1] <= now;
            let waiting = self.queues.iter().filter(|queue| !queue.is_empty());
            let first = waiting
                .filter(may_go)
                .map(|queue| queue[0][2])
                .fold(f64::INFINITY, f64::min);
            let first = if first.is_finite() {
                first.max(self.virtual_time)
            } else {
                self.virtual_time
            };
            p = p.max(first - policy.burst / policy.weight);
        }
        let r = (last[0] + apart(policy.reservation)).max(now);
        let l = (last[1] + 1.0 / policy.limit).max(now);
        *last = [r, l, p];
        self.queues[vm].push([if is_reserved { r } else { f64::INFINITY }, l, p]);
    }

    fn least(&self, now: f64, gate: usize, key: usize) -> Option<usize> {
        let open = |vm: &usize| {
            self.queues[*vm]
                .first()
                .is_some_and(|tags| tags[gate] <= now)
        };
        (0..self.queues.len())
            .filter(open)
            .min_by(|a, b| self.queues[*a][0][key].total_cmp(&self.queues[*b][0][key]))
    }

    fn next(&mut self, now: f64) -> Option<(usize, Phase)> {
        if let Some(vm) = self.least(now, 0, 0) {
            self.queues[vm].remove(0);
            return Some((vm, Phase::Reservation));
        }
        let vm = self.least(now, 1, 2)?;
        let tags = self.queues[vm].remove(0);
        self.virtual_time = self.virtual_time.max(tags[2]);
        let charged = apart(self.policies[vm].reservation);
        self.last[vm][0] -= charged;
        for tags in &mut self.queues[vm] {
            tags[0] -= charged;
        }
        Some((vm, Phase::Weight))
    }
}

/// A request that remembers why it went.
#[derive(Clone, Copy)]
struct Remembering {
    vm: u32,
    phase: Phase,
}

impl Request for Remembering {
    fn client(&self) -> u32 {
        self.vm
    }

    fn bytes(&self) -> u32 {
        4 * KB
    }

    fn released(&mut self, phase: Phase) {
        self.phase = phase;
    }
}

/// Any of these.
fn one_of(values: &[f64], stream: &mut Stream) -> f64 {
    values[usize::try_from(stream.below(values.len() as u64)).unwrap()]
}

/// Trees and deferred tags decide as the plain rules do, request by request, with idle times, credits, limits and
/// reservations. Steps are whole in both, so that rounding decides nothing.
#[test]
fn decisions_are_those_of_the_plain_rules() {
    let mut stream = Streams::new(4).stream("test", "arrivals");
    let rates = [1.0, 2.0, 4.0, 8.0, 16.0, 64.0]; // exact in seconds and in ns
    for case in 0..60 {
        let count = 2 + usize::try_from(stream.below(30)).unwrap();
        let policies: Vec<QosPolicy> = (0..count)
            .map(|_| {
                let mut policy = QosPolicy::weighing(one_of(&[1.0, 2.0, 4.0, 8.0], &mut stream));
                policy.burst = one_of(&[0.0, 0.0, 3.0], &mut stream);
                let rate = one_of(&rates, &mut stream);
                if stream.chance(0.6) {
                    policy.reservation = rate;
                }
                if stream.chance(0.6) {
                    policy.limit = rate * one_of(&[1.0, 2.0, 8.0], &mut stream);
                }
                policy
            })
            .collect();
        let mut clock = MClock::new(&policies, CostRule::Request).unwrap();
        let mut plain = Plain {
            queues: vec![Vec::new(); count],
            // Before the first request nothing is owed.
            last: policies
                .iter()
                .map(|p| [-apart(p.reservation), -1.0 / p.limit, -1.0 / p.weight])
                .collect(),
            policies,
            virtual_time: 0.0,
        };
        let mut now = 0;
        for _ in 0..3_000 {
            now += stream.below(4) * 62_500_000 / 16; // binary fractions of a second are exact in both
            let seconds = now as f64 / SECOND as f64;
            if stream.chance(0.5) {
                let vm = stream.below(count as u64);
                clock.push(
                    now,
                    Remembering {
                        vm: u32::try_from(vm).unwrap(),
                        phase: Phase::Weight,
                    },
                );
                plain.push(seconds, usize::try_from(vm).unwrap());
            } else {
                let found = match clock.next(now) {
                    Next::Job(job) => Some((job.vm as usize, job.phase)),
                    _ => None,
                };
                assert_eq!(found, plain.next(seconds), "case {case} at {now}");
            }
        }
    }
}

/// Three servers, none of which knows the others: reservations and limits hold for the sum because requests carry
/// what their machine received elsewhere; without that a machine gets both from each.
#[test]
fn dmclock_holds_for_the_sum_over_servers() {
    let policies = [
        QosPolicy::weighing(1.0).reserving(600.0),
        QosPolicy::weighing(6.0).limited(300.0),
        QosPolicy::weighing(6.0),
    ];
    let run = |told: bool| {
        let vm = |_| {
            let think = Streams::new(1).stream("vm", "think");
            let source = Closed::new(96, Constant(0.0), think);
            QosVm::new(source, RequestSize::Fixed(4 * KB))
        };
        let vms = (0..3).map(vm).collect();
        let devices = vec![SharedRate::new(500.0, 0, CostRule::Request); 3];
        let placement = Placement::LeastUsed;
        let cluster =
            DmClockCluster::new(vms, &policies, CostRule::Request, 8, devices, placement).unwrap();
        let cluster = if told { cluster } else { cluster.untold() };
        let mut simulation = Simulation::new(cluster);
        simulation.run_until(20 * SECOND);
        simulation.model.restart_measuring(20 * SECOND);
        simulation.run_until(120 * SECOND);
        simulation.check().unwrap();
        let vms = simulation.model.vms().iter();
        vms.map(|vm| vm.responses.count() as f64 / 100.0)
            .collect::<Vec<_>>()
    };
    let (told, untold) = (run(true), run(false));
    let expected = fluid_allocation(&policies, 1_500.0);
    for (found, expected) in told.iter().zip(&expected) {
        assert!((found / expected - 1.0).abs() < 0.005, "{told:?}");
    }
    assert!(untold[0] > 1_400.0, "{untold:?}");
}
