//! Which ready vCPU gets which thread, and who must make room.

use super::host::State;
use super::share::Rank;
use super::spec::Policy;
use super::{CpuEvent, HypervisorCpu};
use crate::kernel::Schedule;
use crate::time::{MILLISECOND, Nanos};

/// A vCPU that becomes ready takes the thread of one that is ahead by more, ns of virtual time. Judgement: equals do not
/// take turns at every wake-up, and one below its share does not wait for a quantum.
const PREEMPTION_LEAD: f64 = 10.0 * MILLISECOND as f64;

impl HypervisorCpu {
    /// A vCPU that slept has something to do.
    pub(super) fn wake(&mut self, now: Nanos, vcpu: usize, schedule: &mut Schedule<CpuEvent>) {
        let index = self.vcpus[vcpu].vm;
        let (first, end) = self.vms[index].vcpus;
        let siblings = self.vcpus[first..end].iter();
        let slowest = siblings
            .filter(|own| own.state != State::Wait)
            .map(|own| own.stalled_at(now))
            .max();
        if let Some(slowest) = slowest {
            self.vcpus[vcpu].stalled = slowest;
        }
        let node = self.node_of(vcpu);
        let share = &mut self.vms[index].share;
        share.advance(now);
        share.lift(self.node_vtime[node] - self.spec.host.quantum as f64);
        self.make_ready(now, vcpu, schedule);
        self.dispatch(now, node, schedule);
        if self.vcpus[vcpu].state == State::Ready && !self.vms[index].share.is_throttled {
            self.preempt_for(now, vcpu, schedule);
        }
    }

    /// Puts a vCPU that has no thread in line for one.
    pub(super) fn make_ready(
        &mut self,
        now: Nanos,
        vcpu: usize,
        schedule: &mut Schedule<CpuEvent>,
    ) {
        self.set_state(now, vcpu, State::Ready);
        let node = self.node_of(vcpu);
        let vm = &mut self.vms[self.vcpus[vcpu].vm];
        vm.ready[node].push_back(vcpu);
        if vm.vcpus.1 - vm.vcpus.0 > 1 && !vm.is_system {
            self.keep_ticking(schedule);
        }
    }

    fn rank(&mut self, now: Nanos, vm: usize) -> Rank {
        let share = &mut self.vms[vm].share;
        share.advance(now);
        share.rank()
    }

    /// A thread of the node that a vCPU of the VM may take: of an idle core, or beside another.
    fn place(&self, vm: usize, node: usize) -> Option<usize> {
        let (first, end) = self.threads_of(node);
        let step = self.spec.host.threads_per_core;
        let mut beside = None;
        for thread in (first..end).step_by(step) {
            let one = self.threads[thread].vcpu;
            if step == 1 {
                if one.is_none() {
                    return Some(thread);
                }
                continue;
            }
            let (free, other) = match (one, self.threads[thread + 1].vcpu) {
                (None, None) => return Some(thread),
                (None, Some(other)) => (thread, other),
                (Some(other), None) => (thread + 1, other),
                (Some(_), Some(_)) => continue,
            };
            let is_fit = match self.spec.host.policy {
                Policy::Default => true,
                Policy::ScaV1 => false,
                Policy::ScaV2 => self.vcpus[other].vm == vm,
            };
            if is_fit && beside.is_none() {
                beside = Some(free);
            }
        }
        beside
    }

    /// A VM whose vCPU waits beside a thread that it may take: there must be none between two events.
    pub(super) fn left_waiting(&self) -> Option<usize> {
        let waits = |vm: &usize, node: usize| {
            !self.vms[*vm].ready[node].is_empty() && !self.vms[*vm].share.is_throttled
        };
        (0..self.vms.len()).find(|vm| {
            let mut nodes = 0..self.spec.host.nodes;
            nodes.any(|node| waits(vm, node) && self.place(*vm, node).is_some())
        })
    }

    /// The VM with ready vCPUs on the node that goes first, with its thread.
    fn first_in_line(&mut self, now: Nanos, node: usize) -> Option<(usize, usize)> {
        let mut best: Option<(Rank, usize, usize)> = None;
        for vm in 0..self.vms.len() {
            if self.vms[vm].ready[node].is_empty() || self.vms[vm].share.is_throttled {
                continue;
            }
            let rank = self.rank(now, vm);
            if best.is_some_and(|(other, _, _)| other <= rank) {
                continue;
            }
            if let Some(thread) = self.place(vm, node) {
                best = Some((rank, vm, thread));
            }
        }
        let (rank, vm, thread) = best?;
        if rank.class == 2 {
            self.node_vtime[node] = self.node_vtime[node].max(rank.vtime);
        }
        Some((vm, thread))
    }

    /// Gives threads of a node to ready vCPUs while there are any of both.
    pub(super) fn dispatch(&mut self, now: Nanos, node: usize, schedule: &mut Schedule<CpuEvent>) {
        while let Some((vm, thread)) = self.first_in_line(now, node) {
            let Some(vcpu) = self.vms[vm].ready[node].pop_front() else {
                return;
            };
            self.set_state(now, vcpu, State::Run);
            self.occupy(now, thread, vcpu, schedule);
        }
    }

    /// A thread became free: somebody ready gets it, or somebody from a shared core when the whole core is free.
    pub(super) fn fill_thread(
        &mut self,
        now: Nanos,
        thread: usize,
        schedule: &mut Schedule<CpuEvent>,
    ) {
        let node = self.threads[thread].node;
        self.dispatch(now, node, schedule);
        let Some(sibling) = self.sibling(thread) else {
            return;
        };
        if self.is_busy(Some(thread)) || self.is_busy(Some(sibling)) {
            return;
        }
        let (first, end) = self.threads_of(node);
        let is_shared = |own: &usize| self.is_busy(Some(*own)) && self.is_busy(Some(own + 1));
        if let Some(shared) = (first..end).step_by(2).find(is_shared) {
            let taken = self.threads[shared].taken;
            if let Some(vcpu) = self.vacate(now, shared, schedule) {
                self.occupy(now, thread, vcpu, schedule);
                self.threads[thread].taken = taken; // moving is no new quantum
            }
        }
    }

    /// Takes the thread from who runs on it; with schedulers of sides also from who runs beside it.
    pub(super) fn evict(&mut self, now: Nanos, thread: usize, schedule: &mut Schedule<CpuEvent>) {
        let is_whole = self.spec.host.policy == Policy::ScaV2;
        let sibling = self.sibling(thread).filter(|_| is_whole);
        for own in [Some(thread), sibling].into_iter().flatten() {
            if let Some(vcpu) = self.vacate(now, own, schedule) {
                self.make_ready(now, vcpu, schedule);
            }
        }
    }

    /// Takes a thread for a vCPU that ranks clearly better than who runs there.
    fn preempt_for(&mut self, now: Nanos, vcpu: usize, schedule: &mut Schedule<CpuEvent>) {
        let index = self.vcpus[vcpu].vm;
        let (node, own) = (self.node_of(vcpu), self.rank(now, index));
        let (first, end) = self.threads_of(node);
        let mut worst: Option<(Rank, usize)> = None;
        // The hypervisor's own work goes where its interrupt arrives: anywhere.
        let start = if own.class == 0 {
            self.victims.below((end - first) as u64)
        } else {
            0
        };
        for offset in 0..end - first {
            #[allow(clippy::cast_possible_truncation)] // below the number of threads
            let thread = first + (offset + start as usize) % (end - first);
            let Some(other) = self.threads[thread].vcpu else {
                continue;
            };
            let rank = self.rank(now, self.vcpus[other].vm);
            let lead = if own.class == 2 { PREEMPTION_LEAD } else { 0.0 };
            let is_behind = rank.class > own.class
                || (rank.class == own.class && own.class == 2 && rank.vtime > own.vtime + lead);
            if is_behind && worst.is_none_or(|(known, _)| known < rank) {
                worst = Some((rank, thread));
                if own.class == 0 {
                    break;
                }
            }
        }
        if let Some((_, thread)) = worst {
            self.evict(now, thread, schedule);
            self.dispatch(now, node, schedule);
        }
    }

    /// Whoever ran on a thread for a quantum makes room for one of its rank, or goes on.
    pub(super) fn quantum_over(
        &mut self,
        now: Nanos,
        thread: usize,
        schedule: &mut Schedule<CpuEvent>,
    ) {
        self.threads[thread].is_watched = false;
        let Some(vcpu) = self.threads[thread].vcpu else {
            return;
        };
        let end = self.threads[thread].taken + self.spec.host.quantum;
        let node = self.threads[thread].node;
        if end <= now {
            let own = self.rank(now, self.vcpus[vcpu].vm);
            let is_waiting = (0..self.vms.len()).any(|vm| {
                !self.vms[vm].ready[node].is_empty()
                    && !self.vms[vm].share.is_throttled
                    && self.rank(now, vm) <= own
            });
            if is_waiting {
                self.evict(now, thread, schedule);
                self.dispatch(now, node, schedule);
            } else {
                self.threads[thread].taken = now;
            }
        }
        let own = &mut self.threads[thread];
        if own.vcpu.is_some() && !std::mem::replace(&mut own.is_watched, true) {
            let next = own.taken + self.spec.host.quantum;
            #[allow(clippy::cast_possible_truncation)] // checked: few threads
            schedule.at(next, CpuEvent::Quantum(thread as u32));
        }
    }

    /// A VM's limit is spent: it makes room; or refilled: it goes on.
    pub(super) fn limit_turns(
        &mut self,
        now: Nanos,
        index: usize,
        schedule: &mut Schedule<CpuEvent>,
    ) {
        let vm = &mut self.vms[index];
        vm.share.advance(now);
        vm.share.is_throttled = !vm.share.is_throttled;
        let (first, end) = vm.vcpus;
        if vm.share.is_throttled {
            for vcpu in first..end {
                if self.vcpus[vcpu].state == State::Run {
                    let thread = self.vcpus[vcpu].thread;
                    self.vacate(now, thread, schedule);
                    self.make_ready(now, vcpu, schedule);
                }
            }
        }
        for node in 0..self.spec.host.nodes {
            self.dispatch(now, node, schedule);
        }
        // Back from its limit it is behind by its shares, and does not wait for the quantum of others.
        for vcpu in first..end {
            let is_throttled = self.vms[index].share.is_throttled;
            if !is_throttled && self.vcpus[vcpu].state == State::Ready {
                self.preempt_for(now, vcpu, schedule);
            }
        }
        self.watch_limit(index, schedule);
    }
}
