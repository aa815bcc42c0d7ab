//! A GPU that virtual machines use in turns.
//!
//! # Model
//! A VM's job repeats a step: work on the CPU, then work on the GPU. The GPU serves one VM at a time, for a slice each.
//! Best effort goes round those that have work, and leaves the slice when the work ends. Equal share goes round all VMs
//! that are there, fixed share round all places for VMs, taken or not; a VM without work, and an empty place, let their
//! slice pass. Strict round robin keeps the order and shortens a VM's slices for what its earlier ones overran; without
//! it, who has been scheduled least goes next.
//!
//! # Assumptions
//! A VM has a CPU of its own. A slice ends when the kernel under way does, at multiples of `grain` of a phase. A switch
//! between VMs takes `switch` of the slice of the one that comes. Memory of the GPU is no matter: profiles partition it.
//!
//! # Parameters
//! See [`Spec`]; slices and the averaging factor are NVIDIA's defaults where a scenario names none.
//!
//! # Limits
//! One engine, no copies that overlap kernels, no MIG, no frame-rate limiter. NVIDIA does not publish how best effort
//! lengthens the slice of a VM that is alone; here it goes on as long as nobody else has work.
//!
//! # Sources
//! NVIDIA, "AI Enterprise user guide" 5.0 (2024), chapter 7 "Changing scheduling behavior for time-sliced vGPUs": policies,
//! strict round robin, averaging factor, table 1; the same, vGPU knowledge base, "vGPU schedulers", for best effort.

pub mod system;

use serde::Deserialize;

use crate::kernel::{Model, Schedule};
use crate::measure::{Durations, TimeWeighted, WindowSeries};
use crate::random::{Distribution, Sample, Stream, Streams};
use crate::time::{Nanos, millis};
use leadline_stats::error::{LeadlineError, wrong};

/// Who is served in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// Those that have work.
    BestEffort,
    /// Those that are there.
    EqualShare,
    /// All there is room for.
    FixedShare,
}

/// The names of policies, as scenarios have them.
pub const POLICIES: [&str; 3] = ["best-effort", "equal-share", "fixed-share"];

impl Policy {
    /// The policy of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let all = [Self::BestEffort, Self::EqualShare, Self::FixedShare];
        let found = POLICIES.iter().position(|own| *own == name)?;
        Some(all[found])
    }
}

/// A virtual machine and its job; times in ns.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VmSpec {
    /// Its name: the key of its random numbers.
    pub name: String,
    /// When it starts.
    pub start: Nanos,
    /// After how many steps it stops and leaves; None for never.
    pub steps: Option<u64>,
    /// Work on the CPU in each step.
    pub cpu: Distribution,
    /// Work on the GPU in each step.
    pub gpu: Distribution,
}

/// A GPU and its virtual machines; times in ns.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Seed of all random numbers.
    pub seed: u64,
    /// Who is served in turn.
    pub policy: Policy,
    /// Whether order is kept (equal and fixed share).
    pub strict: bool,
    /// Over how many slices an overrun is made up for.
    pub averaging_factor: u32,
    /// The slice.
    pub slice: Nanos,
    /// Kernels of a phase: a slice ends at multiples of it; 0 for at once.
    pub grain: Nanos,
    /// What a switch between VMs takes.
    pub switch: Nanos,
    /// Places for VMs: the most that the profile admits.
    pub places: u32,
    /// Width of the series.
    pub window: Nanos,
    /// Virtual machines.
    pub vms: Vec<VmSpec>,
}

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GpuEvent {
    /// A VM starts.
    Start(u32),
    /// A VM has work for the GPU.
    Ready(u32),
    /// A slice or the work in it ends; of a slice that has been left, nothing.
    Turn(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Absent,
    Cpu,
    /// Work left, and done, of the phase, ns.
    Gpu(Nanos, Nanos),
}

/// What is measured of a virtual machine.
#[derive(Clone, Debug)]
pub struct VmMeasures {
    /// Lengths of steps.
    pub steps: Durations,
    /// Lengths of steps in ms, by time of completion since measuring began.
    pub step_ms: WindowSeries,
    /// Time on the GPU since measuring began, ns.
    pub gpu: Nanos,
    /// When it left, ns.
    pub finished: Option<Nanos>,
    /// What its steps would have taken alone, since it started, ns.
    pub alone: Nanos,
}

#[derive(Clone, Debug)]
struct Vm {
    phase: Phase,
    step_began: Nanos,
    step_count: u64,
    /// Time of its slices, used or not, ns.
    scheduled: Nanos,
    overrun: Nanos,
    cpu: Stream,
    gpu: Stream,
}

/// The slice under way.
#[derive(Clone, Copy, Debug)]
struct Slice {
    place: usize,
    began: Nanos,
    end: Nanos,
    /// When its work began or goes on, ns; None without work.
    working_since: Option<Nanos>,
}

/// A GPU shared by virtual machines.
#[derive(Clone, Debug)]
pub struct GpuTimeSlicing {
    spec: Spec,
    vms: Vec<Vm>,
    empty_scheduled: Vec<Nanos>,
    slice: Option<Slice>,
    turn: u32,
    last_place: usize,
    last_worked: Option<usize>,
    measured_since: Nanos,
    worked: Nanos,
    /// By VM.
    pub measures: Vec<VmMeasures>,
    /// Whether the GPU works, over time.
    pub busy: TimeWeighted,
}

impl GpuTimeSlicing {
    /// The GPU at the beginning, with nobody there.
    ///
    /// # Errors
    /// When the parameters make no system.
    pub fn new(spec: Spec) -> Result<Self, LeadlineError> {
        check(&spec)?;
        let streams = Streams::new(spec.seed);
        let vms = spec.vms.iter().map(|own| Vm {
            phase: Phase::Absent,
            step_began: 0,
            step_count: 0,
            scheduled: 0,
            overrun: 0,
            cpu: streams.stream(&own.name, "cpu"),
            gpu: streams.stream(&own.name, "gpu"),
        });
        let measures = spec.vms.iter().map(|_| VmMeasures {
            steps: Durations::default(),
            step_ms: WindowSeries::new(spec.window),
            gpu: 0,
            finished: None,
            alone: 0,
        });
        Ok(Self {
            vms: vms.collect(),
            empty_scheduled: vec![0; spec.places as usize],
            slice: None,
            turn: 0,
            last_place: spec.places as usize - 1,
            last_worked: None,
            measured_since: 0,
            worked: 0,
            measures: measures.collect(),
            busy: TimeWeighted::default(),
            spec,
        })
    }

    /// Forgets what was measured; jobs go on.
    pub fn restart_measuring(&mut self, now: Nanos) {
        self.account(now);
        self.measured_since = now;
        self.busy.restart(now);
        for own in &mut self.measures {
            own.steps = Durations::default();
            own.step_ms = WindowSeries::new(self.spec.window);
            own.gpu = 0;
        }
    }

    /// Credits the slice's VM with its work up to now, ns: call before reading measures.
    pub fn account(&mut self, now: Nanos) {
        let Some(slice) = &mut self.slice else { return };
        let Some(since) = slice.working_since else {
            return;
        };
        if now <= since {
            return; // still switching
        }
        slice.working_since = Some(now);
        let vm = &mut self.vms[slice.place];
        if let Phase::Gpu(left, done) = vm.phase {
            let did = (now - since).min(left);
            vm.phase = Phase::Gpu(left - did, done + did);
            self.measures[slice.place].gpu += did;
            self.worked += did;
        }
    }

    fn is_there(&self, place: usize) -> bool {
        self.vms
            .get(place)
            .is_some_and(|vm| vm.phase != Phase::Absent)
    }

    fn has_work(&self, place: usize) -> bool {
        self.vms
            .get(place)
            .is_some_and(|vm| matches!(vm.phase, Phase::Gpu(..)))
    }

    /// Whose slice is next.
    fn next_place(&self) -> Option<usize> {
        let places = self.spec.places as usize;
        let mut round = (1..=places).map(|step| (self.last_place + step) % places);
        let by_time = |place: &usize| {
            self.vms
                .get(*place)
                .map_or(self.empty_scheduled[*place], |vm| vm.scheduled)
        };
        match (self.spec.policy, self.spec.strict) {
            (Policy::BestEffort, _) => round.find(|place| self.has_work(*place)),
            // All idle: nothing changes until somebody has work, and slices that pass need not be counted.
            (Policy::EqualShare, true) => round.find(|place| self.is_there(*place)),
            (Policy::EqualShare, false) => round
                .filter(|place| self.is_there(*place))
                .min_by_key(by_time),
            (Policy::FixedShare, true) => round.next(),
            (Policy::FixedShare, false) => round.min_by_key(by_time),
        }
    }

    /// How long the slice of a place is: strict round robin takes back what earlier ones overran.
    ///
    /// Source: NVIDIA as above, 7.1, "Averaging factor": the running total by the factor, which is then subtracted from it.
    fn length(&mut self, place: usize) -> Nanos {
        let Some(vm) = self.vms.get_mut(place) else {
            return self.spec.slice;
        };
        if !self.spec.strict || self.spec.policy == Policy::BestEffort {
            return self.spec.slice;
        }
        let back = vm.overrun.div_ceil(Nanos::from(self.spec.averaging_factor));
        let back = back.min(self.spec.slice - self.spec.switch - 1);
        vm.overrun -= back;
        self.spec.slice - back
    }

    /// Begins the next slice, if somebody is to have one.
    fn begin(&mut self, now: Nanos, schedule: &mut Schedule<GpuEvent>) {
        self.turn = self.turn.wrapping_add(1);
        self.slice = None;
        let anybody = (0..self.vms.len()).any(|place| self.is_there(place));
        let Some(place) = self.next_place().filter(|_| anybody) else {
            self.busy.set(now, 0);
            return;
        };
        self.last_place = place;
        let end = now + self.length(place);
        self.slice = Some(Slice {
            place,
            began: now,
            end,
            working_since: None,
        });
        if self.has_work(place) {
            self.work(now, schedule);
        } else {
            self.busy.set(now, 0);
            schedule.at(end, GpuEvent::Turn(self.turn));
        }
    }

    /// The VM of the slice has work and begins with it.
    fn work(&mut self, now: Nanos, schedule: &mut Schedule<GpuEvent>) {
        let Some(slice) = &mut self.slice else { return };
        let is_other = self.last_worked.is_some_and(|last| last != slice.place);
        let since = now + if is_other { self.spec.switch } else { 0 };
        self.last_worked = Some(slice.place);
        slice.working_since = Some(since);
        let Phase::Gpu(left, done) = self.vms[slice.place].phase else {
            return;
        };
        let mut run = slice.end.saturating_sub(since);
        if self.spec.grain > 0 {
            run = (done + run).next_multiple_of(self.spec.grain) - done;
        }
        self.busy.set(now, 1);
        self.turn = self.turn.wrapping_add(1);
        schedule.at(since + run.min(left), GpuEvent::Turn(self.turn));
    }

    /// The slice is over.
    fn end(&mut self, now: Nanos) {
        let Some(slice) = self.slice.take() else {
            return;
        };
        let passed = now - slice.began;
        if let Some(vm) = self.vms.get_mut(slice.place) {
            vm.scheduled += passed;
            vm.overrun += now.saturating_sub(slice.end);
        } else {
            self.empty_scheduled[slice.place] += passed;
        }
    }

    fn turned(&mut self, now: Nanos, schedule: &mut Schedule<GpuEvent>) {
        self.account(now);
        let Some(slice) = self.slice else { return };
        if let Some(Vm {
            phase: Phase::Gpu(0, _),
            ..
        }) = self.vms.get(slice.place)
        {
            self.finish_step(now, slice.place, schedule);
            // The rest of the slice passes, but not with best effort.
            let stays = self.spec.policy != Policy::BestEffort && self.is_there(slice.place);
            if stays && now < slice.end {
                self.slice = Some(Slice {
                    working_since: None,
                    ..slice
                });
                self.busy.set(now, 0);
                schedule.at(slice.end, GpuEvent::Turn(self.turn));
                return;
            }
        }
        self.end(now);
        self.begin(now, schedule);
    }

    fn finish_step(&mut self, now: Nanos, index: usize, schedule: &mut Schedule<GpuEvent>) {
        let (own, vm) = (&mut self.measures[index], &mut self.vms[index]);
        let took = now - vm.step_began;
        own.steps.record(took);
        own.step_ms.record(now - self.measured_since, millis(took));
        vm.step_count += 1;
        if self.spec.vms[index]
            .steps
            .is_some_and(|steps| vm.step_count >= steps)
        {
            vm.phase = Phase::Absent;
            own.finished = Some(now);
        } else {
            self.begin_step(now, index, schedule);
        }
    }

    fn begin_step(&mut self, now: Nanos, index: usize, schedule: &mut Schedule<GpuEvent>) {
        let vm = &mut self.vms[index];
        vm.step_began = now;
        vm.phase = Phase::Cpu;
        let cpu = self.spec.vms[index].cpu.sample(&mut vm.cpu);
        self.measures[index].alone += cpu;
        #[allow(clippy::cast_possible_truncation)] // fewer than the places
        schedule.after(cpu, GpuEvent::Ready(index as u32));
    }

    fn ready(&mut self, now: Nanos, index: usize, schedule: &mut Schedule<GpuEvent>) {
        let vm = &mut self.vms[index];
        let gpu = self.spec.vms[index].gpu.sample(&mut vm.gpu).max(1);
        vm.phase = Phase::Gpu(gpu, 0);
        self.measures[index].alone += gpu;
        match self.slice {
            None => self.begin(now, schedule),
            Some(slice) if slice.place == index && now < slice.end => self.work(now, schedule),
            Some(_) => {}
        }
    }
}

impl Model for GpuTimeSlicing {
    type Event = GpuEvent;

    fn start(&mut self, schedule: &mut Schedule<GpuEvent>) {
        for (index, vm) in (0u32..).zip(&self.spec.vms) {
            schedule.at(vm.start, GpuEvent::Start(index));
        }
    }

    fn handle(&mut self, now: Nanos, event: GpuEvent, schedule: &mut Schedule<GpuEvent>) {
        match event {
            GpuEvent::Start(index) => {
                let index = index as usize;
                // Who comes later has no claim on time that has passed.
                let there = (0..self.vms.len()).filter(|place| self.is_there(*place));
                let least = there.map(|place| self.vms[place].scheduled).min();
                self.vms[index].scheduled = least.unwrap_or(0).max(self.empty_scheduled[index]);
                self.begin_step(now, index, schedule);
                if self.slice.is_none() {
                    self.begin(now, schedule);
                }
            }
            GpuEvent::Ready(index) => self.ready(now, index as usize, schedule),
            GpuEvent::Turn(turn) if turn == self.turn => self.turned(now, schedule),
            GpuEvent::Turn(_) => {}
        }
    }

    fn check(&self, now: Nanos) -> Result<(), LeadlineError> {
        let given: Nanos = self.measures.iter().map(|own| own.gpu).sum();
        let room = now - self.measured_since;
        let busy = self.busy.area(now);
        if given <= room && u128::from(given) <= busy && given <= self.worked {
            return Ok(());
        }
        Err(LeadlineError::new(
            "GPU",
            format!("{given} ns given to VMs in {busy} busy ns of {room}"),
            "no more time than there was (a defect of the model)",
            "Report it with the scenario.",
        ))
    }
}

fn check(spec: &Spec) -> Result<(), LeadlineError> {
    if spec.vms.is_empty() || spec.vms.len() > spec.places as usize || spec.places > 10_000 {
        return wrong(
            "GPU",
            format!("{} VMs in {} places", spec.vms.len(), spec.places),
            "at least one VM, and a place for each",
        );
    }
    if spec.slice <= spec.switch.saturating_add(1) || spec.averaging_factor == 0 || spec.window == 0
    {
        return wrong(
            "GPU",
            format!("slice {} ns, switch {} ns", spec.slice, spec.switch),
            "a slice longer than a switch, an averaging factor and a window above 0",
        );
    }
    for vm in &spec.vms {
        vm.cpu.check(&format!("vm {}: cpu", vm.name))?;
        vm.gpu.check(&format!("vm {}: gpu", vm.name))?;
        let mean = vm.gpu.mean();
        if !(mean >= 1.0 && mean.is_finite()) || vm.steps == Some(0) {
            return wrong(
                &format!("vm {}", vm.name),
                format!("GPU work of {mean} ns, {:?} steps", vm.steps),
                "steps with work for the GPU",
            );
        }
    }
    Ok(())
}
