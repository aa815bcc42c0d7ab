//! A hypervisor's CPU scheduler, with guests whose transactions it makes wait.
//!
//! # Model
//! Users of a guest begin transactions of several bursts of CPU with waits between them. The guest gives a burst to an idle
//! vCPU, or queues it. A vCPU with a burst to do is ready; the hypervisor gives it a hardware thread of its home node: of an
//! idle core if there is one, else the second one of a core in use, where both then run at (1 + gain) / 2. Who goes first:
//! the hypervisor's own work, VMs below their reservation, then the VM with the least CPU time by shares; a VM at its limit
//! waits. A vCPU runs until it has nothing to do, until its quantum is over and one of its rank is ready, or until one that
//! ranks clearly better becomes ready. Every millisecond the vCPUs of a VM that want to run are compared: one that is ahead
//! of the slowest by more than the co-stop threshold is stopped, and started again when that is below the co-start one.
//! VMs wider than a node are spread over all of them; others are moved between nodes to even out their load, and work
//! slower until their memory has followed.
//!
//! Event-driven, in virtual time; skew is looked at on the millisecond, and only while a vCPU of a wide VM waits.
//!
//! # Assumptions
//! Waiting for a thread and being stopped is what keeps a vCPU behind; one that wakes starts level with its slowest sibling.
//! A burst stays on its vCPU, as spin locks and pinned tasks do. Switching costs nothing. CPU time is charged as the share of a
//! core that was had, so that a thread of a shared core is charged (1 + gain) / 2. The hypervisor's work for a VM's I/O
//! runs beside it on a thread of the same node, first of all, and is charged to nobody.
//!
//! # Parameters
//! See [`Spec`].
//!
//! # Limits
//! No frequency scaling, power management, affinity, cache effects but those in the thread gain; no time slices within the
//! guest, so that long bursts are not interleaved. The shares of a VM are not divided among its vCPUs.
//!
//! # Sources
//! `VMware`, "The CPU scheduler in VMware vSphere 5.1" (2013): proportional shares, relaxed co-scheduling, hyper-threads,
//! NUMA clients; the same, "Performance of vSphere 6.7 scheduling options" (2019): side-channel-aware schedulers 1 and 2.
//! Goyal, Vin and Cheng, "Start-time fair queueing" (SIGCOMM 1996), for virtual time.

mod costop;
mod dispatch;
mod guest;
mod host;
mod measures;
mod numa;
mod share;
mod spec;
pub mod system;

use crate::kernel::{Model, Schedule};
use crate::random::{Stream, Streams};
use crate::time::{MILLISECOND, Nanos};
use guest::{Guest, Task};
use host::{Thread, Vcpu};
use leadline_stats::error::LeadlineError;
pub use measures::{Level, STATES, VmMeasures};
use numa::Client;
use share::Share;
pub use spec::{CPU_SCHEDULERS, HostSpec, LoadSpec, Policy, Spec, Users, VmSpec};

/// How often skew is looked at, ns. Judgement: a third of the co-stop threshold.
const TICK: Nanos = MILLISECOND;
/// Transactions under way at most; the run ends when there are more.
const TASKS_MAX: usize = 10_000_000;

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CpuEvent {
    /// A VM's user begins a transaction.
    Issue(u32),
    /// A task's wait is over.
    Resume(u32),
    /// A vCPU has done its burst.
    Done {
        /// The thread it runs on.
        thread: u32,
        /// Whether that still holds.
        stamp: u32,
    },
    /// The quantum of who runs on a thread may be over.
    Quantum(u32),
    /// A VM's limit is spent, or refilled.
    Limit {
        /// The VM.
        vm: u32,
        /// Whether that still holds.
        stamp: u32,
    },
    /// Skew is looked at.
    Tick,
    /// Nodes are balanced.
    Balance,
}

/// A VM, or at the end of the list the hypervisor's own work on a node.
#[derive(Clone, Debug)]
struct Vm {
    is_system: bool,
    guest: Guest,
    share: Share,
    /// Its vCPUs: the first, and the one after the last.
    vcpus: (usize, usize),
    /// Ready vCPUs by node, longest first.
    ready: Vec<std::collections::VecDeque<usize>>,
    /// vCPUs that are ready or stopped.
    stalled_count: usize,
}

/// The model. Measures are public.
#[derive(Clone, Debug)]
pub struct HypervisorCpu {
    spec: Spec,
    vms: Vec<Vm>,
    vcpus: Vec<Vcpu>,
    clients: Vec<Client>,
    threads: Vec<Thread>,
    /// Virtual time of what was last given a thread, by node.
    node_vtime: Vec<f64>,
    tasks: Vec<Task>,
    free: Vec<u32>,
    victims: Stream,
    is_ticking: bool,
    measured_from: Nanos,
    /// By VM, in the spec's order.
    pub measures: Vec<VmMeasures>,
    /// Cores with someone on them.
    pub cores_busy: Level,
    /// Threads with someone on them.
    pub threads_busy: Level,
}

impl HypervisorCpu {
    /// The host with idle guests.
    ///
    /// # Errors
    /// When the parameters make no host.
    pub fn new(spec: Spec) -> Result<Self, LeadlineError> {
        spec::check(&spec)?;
        let streams = Streams::new(spec.seed);
        let host = &spec.host;
        let mut model = Self {
            vms: Vec::new(),
            vcpus: Vec::new(),
            clients: Vec::new(),
            threads: host::threads(host),
            node_vtime: vec![0.0; host.nodes],
            tasks: Vec::new(),
            free: Vec::new(),
            victims: streams.stream(&host.name, "interrupts"),
            is_ticking: false,
            measured_from: 0,
            measures: Vec::new(),
            cores_busy: Level::new(spec.window),
            threads_busy: Level::new(spec.window),
            spec,
        };
        let spec = model.spec.clone();
        for vm in &spec.vms {
            let guest = Guest::new(vm, streams)?;
            let share = Share::new(vm.shares, vm.reservation, vm.limit, false);
            let homes = model.homes(vm.vcpus);
            model.add_vm(guest, share, &homes, vm.has_vnuma);
            let measures = VmMeasures::new(spec.measured, spec.window);
            model.measures.push(measures);
        }
        for node in 0..spec.host.nodes {
            let share = Share::new(1.0, 0.0, f64::INFINITY, true);
            let homes = [(node, spec.host.cores_per_node)];
            model.add_vm(Guest::system(), share, &homes, true);
        }
        for (index, measures) in model.measures.iter_mut().enumerate() {
            let (first, end) = model.vms[index].vcpus;
            measures.states[host::State::Wait as usize].add(0, (end - first) as u64);
        }
        Ok(model)
    }

    /// Adds a VM with so many vCPUs on each of some nodes.
    fn add_vm(&mut self, guest: Guest, share: Share, homes: &[(usize, usize)], has_vnuma: bool) {
        let (index, first) = (self.vms.len(), self.vcpus.len());
        let is_system = index >= self.spec.vms.len();
        for (node, count) in homes {
            let start = self.vcpus.len();
            for _ in 0..*count {
                self.vcpus.push(Vcpu::new(index, self.clients.len()));
            }
            let near = if has_vnuma {
                1.0
            } else {
                1.0 / homes.len() as f64
            };
            self.clients
                .push(Client::new(index, *node, (start, self.vcpus.len()), near));
        }
        let vcpus = (first, self.vcpus.len());
        let mut vm = Vm {
            is_system,
            guest,
            share,
            vcpus,
            ready: vec![std::collections::VecDeque::new(); self.spec.host.nodes],
            stalled_count: 0,
        };
        // Neighbours in the order of waking are on different nodes.
        let widest = homes.iter().map(|(_, count)| *count).max().unwrap_or(0);
        for offset in 0..widest {
            let mut start = first;
            for (_, count) in homes {
                if offset < *count {
                    vm.guest.idle.push_back(start + offset);
                }
                start += count;
            }
        }
        self.vms.push(vm);
    }

    /// Forgets all measurements: the end of the warm-up.
    pub fn restart_measuring(&mut self, now: Nanos) {
        for index in 0..self.vcpus.len() {
            self.settle(now, index);
            self.vcpus[index].spent = [0; 4];
        }
        for client in &mut self.clients {
            client.restart();
        }
        self.measured_from = now;
        let (measured, window) = (self.spec.measured, self.spec.window);
        for own in &mut self.measures {
            *own = own.restarted(now, measured, window);
        }
        self.cores_busy = self.cores_busy.restarted(window);
        self.threads_busy = self.threads_busy.restarted(window);
    }

    /// How long each vCPU of a VM was in each of [`STATES`] while measuring, ns.
    #[must_use]
    pub fn spent(&self, vm: usize, now: Nanos) -> Vec<[Nanos; 4]> {
        let (first, end) = self.vms[vm].vcpus;
        let own = self.vcpus[first..end].iter();
        own.map(|vcpu| {
            let mut spent = vcpu.spent;
            spent[vcpu.state as usize] += now - vcpu.since;
            spent
        })
        .collect()
    }

    /// Since when is measured, ns.
    #[must_use]
    pub fn measured_from(&self) -> Nanos {
        self.measured_from
    }

    /// Whether more transactions piled up than a run keeps; it has ended then.
    #[must_use]
    pub fn is_overrun(&self) -> bool {
        self.tasks.len() - self.free.len() >= TASKS_MAX
    }

    fn check_vm(&self, index: usize, now: Nanos) -> Result<(), LeadlineError> {
        let name = &self.spec.vms[index].name;
        let own = &self.measures[index];
        own.total.check(name, now)?;
        let passed = now - self.measured_from;
        for spent in self.spent(index, now) {
            if spent.iter().sum::<Nanos>() != passed {
                return defect(name, &format!("{spent:?} ns of {passed}"));
            }
        }
        let vm = &self.vms[index];
        if !vm.guest.queue.is_empty() && !vm.guest.idle.is_empty() {
            return defect(name, "a queue beside an idle vCPU");
        }
        let (first, end) = vm.vcpus;
        let busy = end - first - vm.guest.idle.len() + vm.guest.queue.len();
        if busy as u64 != own.run_queue.weighted.level() {
            return defect(name, &format!("a run queue of {busy}"));
        }
        Ok(())
    }
}

/// A broken law.
fn defect(place: &str, found: &str) -> Result<(), LeadlineError> {
    Err(LeadlineError::new(
        place,
        found,
        "every vCPU in one state at a time, and no work left lying",
        "This is a defect of the model, not of the scenario: report it with the scenario and the seed.",
    ))
}

impl Model for HypervisorCpu {
    type Event = CpuEvent;

    fn start(&mut self, schedule: &mut Schedule<CpuEvent>) {
        for (index, vm) in (0u32..).zip(&mut self.vms) {
            vm.guest.start(index, schedule);
        }
        if self.spec.host.nodes > 1 {
            schedule.after(self.spec.host.balance_every, CpuEvent::Balance);
        }
    }

    fn handle(&mut self, now: Nanos, event: CpuEvent, schedule: &mut Schedule<CpuEvent>) {
        match event {
            CpuEvent::Issue(vm) => self.issue(now, vm as usize, schedule),
            CpuEvent::Resume(task) => self.begin_burst(now, task, None, schedule),
            CpuEvent::Done { thread, stamp } => {
                let thread = thread as usize;
                if self.threads[thread].timer.is_current(stamp) {
                    self.burst_done(now, thread, schedule);
                }
            }
            CpuEvent::Quantum(thread) => self.quantum_over(now, thread as usize, schedule),
            CpuEvent::Limit { vm, stamp } => {
                let vm = vm as usize;
                if self.vms[vm].share.timer.is_current(stamp) {
                    self.limit_turns(now, vm, schedule);
                }
            }
            CpuEvent::Tick => self.look_at_skew(now, schedule),
            CpuEvent::Balance => {
                self.balance(now, schedule);
                schedule.after(self.spec.host.balance_every, CpuEvent::Balance);
            }
        }
    }

    fn check(&self, now: Nanos) -> Result<(), LeadlineError> {
        for index in 0..self.measures.len() {
            self.check_vm(index, now)?;
        }
        let busy = self.threads.iter().filter(|own| own.vcpu.is_some()).count();
        let running = self.vcpus.iter();
        let running = running.filter(|own| own.state == host::State::Run).count();
        if busy != running || busy as u64 != self.threads_busy.weighted.level() {
            let found = format!("{busy} threads in use, {running} vCPUs that run");
            return defect(&self.spec.host.name, &found);
        }
        if let Some(vm) = self.left_waiting() {
            return defect(
                &self.spec.host.name,
                &format!("VM {vm} waits beside an idle thread"),
            );
        }
        Ok(())
    }
}
