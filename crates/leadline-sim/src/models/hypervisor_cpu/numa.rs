//! Home nodes: where vCPUs run, where their memory is, and when a VM moves.

use super::host::State;
use super::{CpuEvent, HypervisorCpu};
use crate::kernel::Schedule;
use crate::time::Nanos;

/// Nodes whose load differs by less, in vCPUs that want to run, are left alone. Judgement: moving costs locality.
const IMBALANCE_MIN: f64 = 1.0;

/// vCPUs of a VM that share a home node.
#[derive(Clone, Debug)]
pub(super) struct Client {
    vm: usize,
    pub(super) home: usize,
    /// The first, and the one after the last.
    vcpus: (usize, usize),
    /// Share of its memory that is on its home node, 0 to 1.
    pub(super) near: f64,
    /// When it was moved there, ns.
    moved: Option<Nanos>,
    /// Time its vCPUs wanted to run until the last look, ns.
    wanted: Nanos,
}

impl Client {
    pub(super) fn new(vm: usize, home: usize, vcpus: (usize, usize), near: f64) -> Self {
        Self {
            vm,
            home,
            vcpus,
            near,
            moved: None,
            wanted: 0,
        }
    }

    /// Times count from now on.
    pub(super) fn restart(&mut self) {
        self.wanted = 0;
    }
}

impl HypervisorCpu {
    /// How many vCPUs of a new VM are at home on which node: all on the one with the fewest, or on every one.
    pub(super) fn homes(&self, vcpus: usize) -> Vec<(usize, usize)> {
        let nodes = self.spec.host.nodes;
        if vcpus > self.spec.host.cores_per_node && nodes > 1 {
            let share = |node: usize| vcpus * (node + 1) / nodes - vcpus * node / nodes;
            return (0..nodes).map(|node| (node, share(node))).collect();
        }
        let mut counts = vec![0; nodes];
        for own in &self.clients {
            counts[own.home] += own.vcpus.1 - own.vcpus.0;
        }
        let emptiest = (0..nodes).min_by_key(|node| counts[*node]).unwrap_or(0);
        vec![(emptiest, vcpus)]
    }

    /// Lets memory follow, and moves the VM that evens out the load of two nodes best.
    pub(super) fn balance(&mut self, now: Nanos, schedule: &mut Schedule<CpuEvent>) {
        self.let_memory_follow(now, schedule);
        let every = self.spec.host.balance_every as f64;
        let mut loads = vec![0.0; self.spec.host.nodes];
        let mut own_loads = Vec::with_capacity(self.clients.len());
        for index in 0..self.clients.len() {
            let (first, end) = self.clients[index].vcpus;
            let wanted: Nanos = (first..end).map(|vcpu| self.wanted(now, vcpu)).sum();
            let client = &mut self.clients[index];
            let load = wanted.saturating_sub(client.wanted) as f64 / every;
            client.wanted = wanted;
            loads[client.home] += load;
            own_loads.push(load);
        }
        let busiest = extreme(&loads, |one, other| one > other);
        let idlest = extreme(&loads, |one, other| one < other);
        let gap = loads[busiest] - loads[idlest];
        if gap <= IMBALANCE_MIN {
            return;
        }
        // What is moved changes the gap by twice its load; the best leaves none.
        let left = |index: usize| (gap - 2.0 * own_loads[index]).abs();
        let best = (0..self.clients.len())
            .filter(|index| self.may_move(*index, busiest) && own_loads[*index] > 0.0)
            .min_by(|one, other| left(*one).total_cmp(&left(*other)));
        if let Some(index) = best.filter(|index| left(*index) < gap - IMBALANCE_MIN) {
            self.move_client(now, index, idlest, schedule);
        }
    }

    /// How long a vCPU wanted to run since measuring began, ns.
    fn wanted(&self, now: Nanos, vcpu: usize) -> Nanos {
        let own = &self.vcpus[vcpu];
        let spent: Nanos = own.spent[..State::Wait as usize].iter().sum();
        spent
            + if own.state == State::Wait {
                0
            } else {
                now - own.since
            }
    }

    fn may_move(&self, index: usize, from: usize) -> bool {
        let own = &self.clients[index];
        let is_whole = own.vcpus == self.vms[own.vm].vcpus;
        own.home == from && is_whole && !self.vms[own.vm].is_system && own.moved.is_none()
    }

    fn move_client(
        &mut self,
        now: Nanos,
        index: usize,
        home: usize,
        schedule: &mut Schedule<CpuEvent>,
    ) {
        let Client {
            vm,
            vcpus,
            home: old,
            ..
        } = self.clients[index];
        let mut waiting = std::mem::take(&mut self.vms[vm].ready[old]);
        let client = &mut self.clients[index];
        (client.home, client.near, client.moved) = (home, 0.0, Some(now));
        self.vms[vm].ready[home].append(&mut waiting);
        for vcpu in vcpus.0..vcpus.1 {
            if self.vcpus[vcpu].state == State::Run {
                let thread = self.vcpus[vcpu].thread;
                self.vacate(now, thread, schedule);
                self.make_ready(now, vcpu, schedule);
            }
        }
        self.measures[vm].migration_count += 1;
        self.dispatch(now, home, schedule);
        self.dispatch(now, old, schedule);
    }

    fn let_memory_follow(&mut self, now: Nanos, schedule: &mut Schedule<CpuEvent>) {
        let span = self.spec.host.memory_move.max(1) as f64;
        for index in 0..self.clients.len() {
            let client = &mut self.clients[index];
            let Some(moved) = client.moved else {
                continue;
            };
            client.near = ((now - moved) as f64 / span).min(1.0);
            if client.near >= 1.0 {
                client.moved = None;
            }
            let (first, end) = client.vcpus;
            for vcpu in first..end {
                if self.vcpus[vcpu].state == State::Run {
                    self.retime(now, self.vcpus[vcpu].thread, schedule);
                }
            }
        }
    }
}

/// The first node of which no other is more extreme.
fn extreme(loads: &[f64], is_more: impl Fn(f64, f64) -> bool) -> usize {
    let mut found = 0;
    for (node, load) in loads.iter().enumerate() {
        if is_more(*load, loads[found]) {
            found = node;
        }
    }
    found
}
