//! Relaxed co-scheduling: no vCPU gets far ahead of a sibling that wants to run and may not.

use super::host::State;
use super::{CpuEvent, HypervisorCpu, TICK};
use crate::kernel::Schedule;
use crate::time::Nanos;

impl HypervisorCpu {
    /// Sees to it that skew is looked at on the next millisecond.
    pub(super) fn keep_ticking(&mut self, schedule: &mut Schedule<CpuEvent>) {
        if !std::mem::replace(&mut self.is_ticking, true) {
            let now = schedule.now();
            schedule.at(now - now % TICK + TICK, CpuEvent::Tick);
        }
    }

    /// Looks at every VM with several vCPUs of which one waits.
    pub(super) fn look_at_skew(&mut self, now: Nanos, schedule: &mut Schedule<CpuEvent>) {
        self.is_ticking = false;
        for index in 0..self.spec.vms.len() {
            let (first, end) = self.vms[index].vcpus;
            if end - first > 1 && self.vms[index].stalled_count > 0 {
                self.co_schedule(now, index, schedule);
                self.keep_ticking(schedule);
            }
        }
    }

    /// Stops the vCPUs of a VM that are too far ahead, and starts again those that are no longer.
    fn co_schedule(&mut self, now: Nanos, index: usize, schedule: &mut Schedule<CpuEvent>) {
        let (first, end) = self.vms[index].vcpus;
        let wanting = self.vcpus[first..end].iter();
        let wanting = wanting.filter(|own| own.state != State::Wait);
        let Some(slowest) = wanting.map(|own| own.stalled_at(now)).max() else {
            return;
        };
        let (stop, start) = (self.spec.host.co_stop, self.spec.host.co_start);
        let mut has_changed = false;
        for vcpu in first..end {
            let skew = slowest - self.vcpus[vcpu].stalled_at(now).min(slowest);
            match self.vcpus[vcpu].state {
                State::Run if skew > stop => {
                    let thread = self.vcpus[vcpu].thread;
                    self.vacate(now, thread, schedule);
                    self.set_state(now, vcpu, State::CoStop);
                }
                State::Ready if skew > stop => {
                    let node = self.node_of(vcpu);
                    self.vms[index].ready[node].retain(|own| *own != vcpu);
                    self.set_state(now, vcpu, State::CoStop);
                }
                State::CoStop if skew < start => self.make_ready(now, vcpu, schedule),
                _ => continue,
            }
            has_changed = true;
        }
        if has_changed {
            for node in 0..self.spec.host.nodes {
                self.dispatch(now, node, schedule);
            }
        }
    }
}
