//! Scheduling decisions per second, by number of clients, beside a scan over all of them; and a host of 100 machines.

#![allow(missing_docs)] // criterion's macro makes a public function

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use leadline_sim::kernel::Simulation;
use leadline_sim::models::{
    CostRule, Discipline, MClock, Next, QosPolicy, Request, Sfq, VmRequest,
};
use leadline_sim::random::Streams;
use leadline_sim::time::{Nanos, SECOND};
use leadline_sim::yardstick::{self, Deciding};

/// The same rules with a look at every client for each decision.
struct Scan {
    policies: Vec<QosPolicy>,
    queues: Vec<std::collections::VecDeque<(VmRequest, [f64; 3])>>,
    last: Vec<[f64; 3]>,
}

impl Scan {
    fn new(policies: Vec<QosPolicy>) -> Self {
        Self {
            queues: policies
                .iter()
                .map(|_| std::collections::VecDeque::new())
                .collect(),
            last: vec![[0.0; 3]; policies.len()],
            policies,
        }
    }
}

impl Discipline<VmRequest> for Scan {
    fn push(&mut self, now: Nanos, job: VmRequest) {
        let index = job.client() as usize;
        let (policy, last, now) = (&self.policies[index], &mut self.last[index], now as f64);
        let gap = |rate: f64| SECOND as f64 / rate;
        *last = [
            (last[0] + gap(policy.reservation)).max(now),
            (last[1] + gap(policy.limit)).max(now),
            last[2] + gap(policy.weight),
        ];
        self.queues[index].push_back((job, *last));
    }

    fn next(&mut self, now: Nanos) -> Next<VmRequest> {
        let now = now as f64;
        let (mut reserved, mut weighed) = (None, None);
        let (mut least_r, mut least_p) = (now, f64::INFINITY);
        for (index, queue) in self.queues.iter().enumerate() {
            if let Some((_, [r, l, p])) = queue.front() {
                if *r <= least_r {
                    (least_r, reserved) = (*r, Some(index));
                }
                if *l <= now && *p < least_p {
                    (least_p, weighed) = (*p, Some(index));
                }
            }
        }
        let Some(index) = reserved.or(weighed) else {
            return Next::Empty;
        };
        if reserved.is_none() {
            let charged = SECOND as f64 / self.policies[index].reservation;
            self.last[index][0] -= charged;
            for (_, tags) in &mut self.queues[index] {
                tags[0] -= charged;
            }
        }
        let taken = self.queues[index].pop_front();
        taken.map_or(Next::Empty, |(job, _)| Next::Job(job))
    }

    fn len(&self) -> usize {
        self.queues
            .iter()
            .map(std::collections::VecDeque::len)
            .sum()
    }
}

fn decide<D: Discipline<VmRequest>>(
    criterion: &mut Criterion,
    name: &str,
    count: u32,
    scheduler: D,
) {
    let mut group = criterion.benchmark_group("decisions");
    group.throughput(Throughput::Elements(1));
    let mut deciding = Deciding::new(scheduler, count);
    group.bench_function(BenchmarkId::new(name, count), |bencher| {
        bencher.iter(|| deciding.step());
    });
    group.finish();
}

fn decisions(criterion: &mut Criterion) {
    for count in [4, 100, 1_000, 10_000] {
        let mut stream = Streams::new(1).stream("bench", "policies");
        let policies = yardstick::policies(count, &mut stream);
        let weights: Vec<f64> = policies.iter().map(|policy| policy.weight).collect();
        if let Ok(scheduler) = MClock::new(&policies, CostRule::Request) {
            decide(criterion, "mclock", count, scheduler);
        }
        decide(
            criterion,
            "sfq",
            count,
            Sfq::new(&weights, CostRule::Request),
        );
        decide(criterion, "scan", count, Scan::new(policies));
    }
}

/// 100 machines of 1,000 IOPS each under mClock, one virtual second.
fn host(criterion: &mut Criterion) {
    let Ok(host) = yardstick::host_model(100, 1) else {
        return;
    };
    let mut simulation = Simulation::new(host);
    simulation.run_until(5 * SECOND);
    let mut group = criterion.benchmark_group("host");
    group.throughput(Throughput::Elements(100_000));
    group.bench_function("100 machines, 1 s", |bencher| {
        bencher.iter(|| {
            let end = simulation.now() + SECOND;
            simulation.run_until(end)
        });
    });
    group.finish();
}

criterion_group! {
    name = qos;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(std::time::Duration::from_millis(300))
        .measurement_time(std::time::Duration::from_millis(1500));
    targets = decisions, host
}
criterion_main!(qos);
