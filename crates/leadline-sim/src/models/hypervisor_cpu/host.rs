//! vCPUs and hardware threads: who runs where, how fast, and what that costs.

use super::spec::HostSpec;
use super::{CpuEvent, HypervisorCpu};
use crate::kernel::{Schedule, Timer};
use crate::time::{Nanos, whole};

/// What a vCPU does; the columns of its account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Run,
    Ready,
    CoStop,
    Wait,
}

#[derive(Clone, Debug)]
pub(super) struct Vcpu {
    pub(super) vm: usize,
    pub(super) client: usize,
    pub(super) state: State,
    /// Since when, ns.
    pub(super) since: Nanos,
    /// By state while measuring, ns.
    pub(super) spent: [Nanos; 4],
    /// How long it was kept from running, ns; counts among siblings that want to run.
    pub(super) stalled: Nanos,
    /// Where it runs.
    pub(super) thread: usize,
    pub(super) task: Option<u32>,
    /// Of its burst, ns of a core of its own.
    pub(super) remaining: f64,
}

impl Vcpu {
    pub(super) fn new(vm: usize, client: usize) -> Self {
        Self {
            vm,
            client,
            state: State::Wait,
            since: 0,
            spent: [0; 4],
            stalled: 0,
            thread: 0,
            task: None,
            remaining: 0.0,
        }
    }

    /// How long it was kept from running up to now, ns.
    pub(super) fn stalled_at(&self, now: Nanos) -> Nanos {
        let is_stalled = matches!(self.state, State::Ready | State::CoStop);
        self.stalled + if is_stalled { now - self.since } else { 0 }
    }
}

/// A hardware thread; those of a core are neighbours.
#[derive(Clone, Debug)]
pub(super) struct Thread {
    pub(super) node: usize,
    pub(super) vcpu: Option<usize>,
    pub(super) timer: Timer,
    /// Share of a core that who runs here has, 0 to 1.
    core_share: f64,
    /// Work done by ns.
    speed: f64,
    /// Up to when work is counted.
    mark: Nanos,
    /// When who runs here came.
    pub(super) taken: Nanos,
    /// Whether a look at the quantum is pending.
    pub(super) is_watched: bool,
}

pub(super) fn threads(host: &HostSpec) -> Vec<Thread> {
    let per_node = host.cores_per_node * host.threads_per_core;
    let count = host.nodes * per_node;
    let thread = |index: usize| Thread {
        node: index / per_node,
        vcpu: None,
        timer: Timer::default(),
        core_share: 0.0,
        speed: 0.0,
        mark: 0,
        taken: 0,
        is_watched: false,
    };
    (0..count).map(thread).collect()
}

impl HypervisorCpu {
    /// The node a vCPU runs on.
    pub(super) fn node_of(&self, vcpu: usize) -> usize {
        self.clients[self.vcpus[vcpu].client].home
    }

    /// Threads of a node: the first, and the one after the last.
    pub(super) fn threads_of(&self, node: usize) -> (usize, usize) {
        let per_node = self.spec.host.cores_per_node * self.spec.host.threads_per_core;
        (node * per_node, (node + 1) * per_node)
    }

    /// The other thread of the core.
    pub(super) fn sibling(&self, thread: usize) -> Option<usize> {
        (self.spec.host.threads_per_core == 2).then_some(thread ^ 1)
    }

    pub(super) fn is_busy(&self, thread: Option<usize>) -> bool {
        thread.is_some_and(|own| self.threads[own].vcpu.is_some())
    }

    /// Counts what a vCPU did up to now.
    pub(super) fn settle(&mut self, now: Nanos, vcpu: usize) {
        let own = &mut self.vcpus[vcpu];
        own.stalled = own.stalled_at(now);
        own.spent[own.state as usize] += now - own.since;
        own.since = now;
    }

    pub(super) fn set_state(&mut self, now: Nanos, vcpu: usize, state: State) {
        self.settle(now, vcpu);
        let own = &mut self.vcpus[vcpu];
        let old = std::mem::replace(&mut own.state, state);
        let index = own.vm;
        let is_stalled = |state| usize::from(matches!(state, State::Ready | State::CoStop));
        let vm = &mut self.vms[index];
        vm.stalled_count = vm.stalled_count + is_stalled(state) - is_stalled(old);
        if let Some(measures) = self.measures.get_mut(index) {
            let since = now - self.measured_from;
            measures.states[old as usize].sub(since, 1);
            measures.states[state as usize].add(since, 1);
        }
    }

    /// A vCPU gets a thread.
    pub(super) fn occupy(
        &mut self,
        now: Nanos,
        thread: usize,
        vcpu: usize,
        schedule: &mut Schedule<CpuEvent>,
    ) {
        let sibling = self.sibling(thread);
        let since = now - self.measured_from;
        self.threads_busy.add(since, 1);
        if !self.is_busy(sibling) {
            self.cores_busy.add(since, 1);
        }
        self.vcpus[vcpu].thread = thread;
        let own = &mut self.threads[thread];
        (own.vcpu, own.taken, own.mark) = (Some(vcpu), now, now);
        (own.core_share, own.speed) = (0.0, 0.0);
        self.retime(now, thread, schedule);
        if let Some(other) = sibling.filter(|own| self.threads[*own].vcpu.is_some()) {
            self.retime(now, other, schedule);
        }
        let own = &mut self.threads[thread];
        if !std::mem::replace(&mut own.is_watched, true) {
            #[allow(clippy::cast_possible_truncation)] // checked: few threads
            schedule.after(self.spec.host.quantum, CpuEvent::Quantum(thread as u32));
        }
    }

    /// Who runs on a thread leaves it.
    pub(super) fn vacate(
        &mut self,
        now: Nanos,
        thread: usize,
        schedule: &mut Schedule<CpuEvent>,
    ) -> Option<usize> {
        self.count_work(now, thread);
        let own = &mut self.threads[thread];
        let vcpu = own.vcpu.take()?;
        own.timer.cancel();
        let freed = std::mem::replace(&mut own.core_share, 0.0);
        own.speed = 0.0;
        self.charge(now, self.vcpus[vcpu].vm, -freed, schedule);
        let since = now - self.measured_from;
        self.threads_busy.sub(since, 1);
        let sibling = self.sibling(thread);
        if let Some(other) = sibling.filter(|own| self.threads[*own].vcpu.is_some()) {
            self.retime(now, other, schedule);
        } else {
            self.cores_busy.sub(since, 1);
        }
        Some(vcpu)
    }

    /// Counts the work done on a thread up to now.
    pub(super) fn count_work(&mut self, now: Nanos, thread: usize) {
        let own = &mut self.threads[thread];
        let done = (now - own.mark) as f64 * own.speed;
        own.mark = now;
        if let Some(vcpu) = own.vcpu {
            let remaining = &mut self.vcpus[vcpu].remaining;
            *remaining = (*remaining - done).max(0.0);
        }
    }

    /// Sets the speed of a thread by who is on its core, and when its burst ends.
    pub(super) fn retime(&mut self, now: Nanos, thread: usize, schedule: &mut Schedule<CpuEvent>) {
        let Some(vcpu) = self.threads[thread].vcpu else {
            return;
        };
        self.count_work(now, thread);
        let core_share = if self.is_busy(self.sibling(thread)) {
            f64::midpoint(1.0, self.spec.host.thread_gain)
        } else {
            1.0
        };
        let near = self.clients[self.vcpus[vcpu].client].near;
        let speed = core_share / (1.0 + self.spec.host.remote_penalty * (1.0 - near));
        let remaining = self.vcpus[vcpu].remaining;
        let own = &mut self.threads[thread];
        let change = core_share - own.core_share;
        (own.core_share, own.speed) = (core_share, speed);
        let stamp = own.timer.set();
        #[allow(clippy::cast_possible_truncation)] // checked: few threads
        let done = CpuEvent::Done {
            thread: thread as u32,
            stamp,
        };
        schedule.after(whole(remaining / speed), done);
        self.charge(now, self.vcpus[vcpu].vm, change, schedule);
    }

    /// A VM uses `change` cores more from now on.
    fn charge(&mut self, now: Nanos, vm: usize, change: f64, schedule: &mut Schedule<CpuEvent>) {
        if change == 0.0 {
            return;
        }
        let share = &mut self.vms[vm].share;
        share.advance(now);
        share.set_rate((share.rate() + change).max(0.0));
        if share.has_limit() {
            self.watch_limit(vm, schedule);
        }
    }

    /// Arranges for the next turn of a VM's limit.
    pub(super) fn watch_limit(&mut self, vm: usize, schedule: &mut Schedule<CpuEvent>) {
        let share = &mut self.vms[vm].share;
        let stamp = share.timer.set();
        if let Some(span) = share.limit_turns_in() {
            #[allow(clippy::cast_possible_truncation)] // checked: few VMs
            let event = CpuEvent::Limit {
                vm: vm as u32,
                stamp,
            };
            schedule.after(whole(span).saturating_add(1), event);
        }
    }
}
