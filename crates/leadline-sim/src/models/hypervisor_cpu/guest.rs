//! The guest: users, transactions, and which vCPU does which burst.

use std::collections::VecDeque;

use super::host::State;
use super::spec::{Users, VmSpec};
use super::{CpuEvent, HypervisorCpu, TASKS_MAX};
use crate::kernel::Schedule;
use crate::random::{Constant, Distribution, Exponential, Sample, Stream, Streams};
use crate::sources::{AnySource, Closed, Renewal, Source};
use crate::time::{Nanos, SECOND, whole};
use leadline_stats::error::LeadlineError;

/// A transaction, or a piece of the hypervisor's own work.
#[derive(Clone, Copy, Debug)]
pub(super) struct Task {
    vm: usize,
    issued: Nanos,
    bursts_left: u32,
    /// The burst's length, ns of a core of its own.
    work: Nanos,
}

/// What a guest has to do and who is free to do it.
#[derive(Clone, Debug)]
pub(super) struct Guest {
    source: Option<AnySource>,
    burst: Distribution,
    bursts: Stream,
    wait: Distribution,
    waits: Stream,
    burst_count: u32,
    overhead: f64,
    /// Tasks that no vCPU has.
    pub(super) queue: VecDeque<u32>,
    /// vCPUs without a task, idle for the longest first.
    pub(super) idle: VecDeque<usize>,
}

impl Guest {
    pub(super) fn new(spec: &VmSpec, streams: Streams) -> Result<Self, LeadlineError> {
        let load = &spec.load;
        let place = format!("vm {}", spec.name);
        for own in [&load.burst, &load.wait] {
            own.check(&place)?;
        }
        let stream = streams.stream(&spec.name, "arrivals");
        let source = match &load.users {
            Users::Closed { count, think } => {
                think.check(&place)?;
                AnySource::Closed(Closed::new(*count, think.clone(), stream))
            }
            Users::Poisson(rate) => {
                let mean = SECOND as f64 / rate;
                let gap = Distribution::Exponential(Exponential { mean });
                AnySource::Renewal(Renewal::new(gap, stream))
            }
        };
        Ok(Self {
            source: Some(source),
            burst: load.burst.clone(),
            bursts: streams.stream(&spec.name, "bursts"),
            wait: load.wait.clone(),
            waits: streams.stream(&spec.name, "waits"),
            burst_count: load.burst_count,
            overhead: spec.overhead,
            queue: VecDeque::new(),
            idle: VecDeque::new(),
        })
    }

    /// The hypervisor's own: does what it is given.
    pub(super) fn system() -> Self {
        let nothing = Distribution::Constant(Constant(0.0));
        let unused = Stream::from_key(0, 0);
        Self {
            source: None,
            burst: nothing.clone(),
            bursts: unused.clone(),
            wait: nothing,
            waits: unused,
            burst_count: 1,
            overhead: 0.0,
            queue: VecDeque::new(),
            idle: VecDeque::new(),
        }
    }

    pub(super) fn start(&mut self, vm: u32, schedule: &mut Schedule<CpuEvent>) {
        let Some(source) = self.source.as_mut() else {
            return;
        };
        while let Some(time) = source.first(schedule.now()) {
            schedule.at(time, CpuEvent::Issue(vm));
        }
    }
}

impl HypervisorCpu {
    fn new_task(&mut self, task: Task) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.tasks[slot as usize] = task;
            return slot;
        }
        self.tasks.push(task);
        #[allow(clippy::cast_possible_truncation)] // at most TASKS_MAX
        let slot = (self.tasks.len() - 1) as u32;
        slot
    }

    /// A user begins a transaction.
    pub(super) fn issue(&mut self, now: Nanos, vm: usize, schedule: &mut Schedule<CpuEvent>) {
        let guest = &mut self.vms[vm].guest;
        #[allow(clippy::cast_possible_truncation)] // checked: few VMs
        if let Some(time) = guest.source.as_mut().and_then(|own| own.after_issue(now)) {
            schedule.at(time, CpuEvent::Issue(vm as u32));
        }
        let bursts_left = guest.burst_count;
        self.measures[vm].total.enter(now);
        let task = self.new_task(Task {
            vm,
            issued: now,
            bursts_left,
            work: 0,
        });
        if self.tasks.len() - self.free.len() >= TASKS_MAX {
            schedule.stop();
        }
        self.begin_burst(now, task, None, schedule);
    }

    /// A task wants CPU: an idle vCPU takes it, or it queues. `work` is its length when it is not to be drawn, ns.
    pub(super) fn begin_burst(
        &mut self,
        now: Nanos,
        slot: u32,
        work: Option<Nanos>,
        schedule: &mut Schedule<CpuEvent>,
    ) {
        let task = &mut self.tasks[slot as usize];
        let index = task.vm;
        let guest = &mut self.vms[index].guest;
        task.work = work.unwrap_or_else(|| guest.burst.sample(&mut guest.bursts));
        if let Some(own) = self.measures.get_mut(index) {
            own.run_queue.add(now - self.measured_from, 1);
        }
        let Some(vcpu) = guest.idle.pop_front() else {
            guest.queue.push_back(slot);
            return;
        };
        self.give(vcpu, slot);
        self.wake(now, vcpu, schedule);
    }

    /// A vCPU has a task to do from now on.
    fn give(&mut self, vcpu: usize, slot: u32) {
        let own = &mut self.vcpus[vcpu];
        own.task = Some(slot);
        own.remaining = self.tasks[slot as usize].work as f64;
    }

    /// Who runs on a thread has done its burst: the task goes on or ends, and the vCPU takes another or sleeps.
    pub(super) fn burst_done(
        &mut self,
        now: Nanos,
        thread: usize,
        schedule: &mut Schedule<CpuEvent>,
    ) {
        let Some(vcpu) = self.threads[thread].vcpu else {
            return;
        };
        let Some(slot) = self.vcpus[vcpu].task.take() else {
            return;
        };
        let index = self.vcpus[vcpu].vm;
        if let Some(own) = self.measures.get_mut(index) {
            own.run_queue.sub(now - self.measured_from, 1);
        }
        if let Some(next) = self.vms[index].guest.queue.pop_front() {
            self.count_work(now, thread);
            self.give(vcpu, next);
            self.retime(now, thread, schedule);
        } else {
            self.vacate(now, thread, schedule);
            self.set_state(now, vcpu, State::Wait);
            self.vms[index].guest.idle.push_back(vcpu);
            self.fill_thread(now, thread, schedule);
        }
        self.after_burst(now, slot, vcpu, schedule);
    }

    /// What follows a burst: the hypervisor's work for it, then a wait and another burst, or the end.
    fn after_burst(
        &mut self,
        now: Nanos,
        slot: u32,
        vcpu: usize,
        schedule: &mut Schedule<CpuEvent>,
    ) {
        let task = &mut self.tasks[slot as usize];
        let (index, issued) = (task.vm, task.issued);
        task.bursts_left -= 1;
        let is_last = task.bursts_left == 0;
        let vm = &mut self.vms[index];
        let guest = &mut vm.guest;
        let extra = whole(guest.overhead * task.work as f64);
        if !is_last {
            let wait = guest.wait.sample(&mut guest.waits);
            schedule.after(wait, CpuEvent::Resume(slot));
        } else if vm.is_system {
            self.free.push(slot);
        } else {
            let source = guest.source.as_mut();
            if let Some(time) = source.and_then(|own| own.after_completion(now)) {
                #[allow(clippy::cast_possible_truncation)] // checked: few VMs
                schedule.at(time, CpuEvent::Issue(index as u32));
            }
            self.measures[index].total.leave(now, issued);
            self.measures[index].completed(now - self.measured_from, now - issued);
            self.free.push(slot);
        }
        if extra > 0 {
            let vm = self.spec.vms.len() + self.node_of(vcpu);
            let own = self.new_task(Task {
                vm,
                issued: now,
                bursts_left: 1,
                work: 0,
            });
            self.begin_burst(now, own, Some(extra), schedule);
        }
    }
}
