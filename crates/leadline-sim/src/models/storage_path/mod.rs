//! The way of a request from a virtual machine to a device.
//!
//! # Model
//! Sources of a VM issue requests to its disks. A request passes the disk's IOPS limit, which delays it; waits until fewer
//! than the VM's adapter depth are further on; waits at its host, in the order of the host's scheduler, until fewer than
//! the host's queue depth are at the device; and is served by one of the device's servers.
//!
//! # Assumptions
//! A host has a queue of its own to each device. Completions cost nothing. The limit counts in units of 32 KB.
//!
//! # Parameters
//! See [`Spec`].
//!
//! # Limits
//! One path to a device; no network, no cache, no errors. Open sources go on whatever is outstanding.
//!
//! # Sources
//! `VMware`, "vSphere resource management", storage I/O control; the same, KB 1267, for queue depths of adapters and LUNs;
//! Hogan as in [`super::IopsLimit`].

mod spec;

use std::collections::{BTreeMap, VecDeque};

use super::account::Account;
use super::device::{Device, Speed};
use super::discipline::{Discipline, Next};
use super::scheduler::{Io, Scheduler, Setting};
use super::station::Station;
use super::token_bucket::IopsLimit;
use crate::error::SimError;
use crate::kernel::{Model, Schedule};
use crate::measure::{Batches, Durations, Interval, WindowSeries};
use crate::random::Streams;
use crate::sources::Source;
use crate::time::Nanos;
pub use spec::{Arrivals, DeviceSpec, DiskSpec, HostSpec, SourceSpec, Spec, VmSpec};
pub(super) use spec::{Feed, feed};
use spec::{check, wrong};

/// Parts of the way, in order.
pub const STAGES: [&str; 4] = ["limit", "adapter", "host", "device"];
const LIMIT: usize = 0;
const ADAPTER: usize = 1;
const HOST: usize = 2;
const DEVICE: usize = 3;
/// Requests inside at most. Judgement: 64 bytes each; more are a load far above what the system can do.
const INSIDE_MAX: usize = 20_000_000;
/// Windows of the batch means of a rate.
const RATE_WINDOWS: Nanos = 1_000;

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PathEvent {
    /// A source issues a request.
    Issue(u32),
    /// The limit lets a request through.
    Admit(u32),
    /// A scheduler wanted to be asked again.
    Wake(u32),
    /// A server of a device is done.
    Finish {
        /// The device.
        device: u16,
        /// Its server.
        server: u32,
    },
}

#[derive(Clone, Copy, Debug)]
struct Request {
    io: Io,
    source: u32,
    issued: Nanos,
    /// When it came to where it is.
    entered: Nanos,
}

#[derive(Clone, Debug)]
struct Disk {
    limit: Option<IopsLimit>,
    lane: usize,
}

/// A host's queue to a device.
#[derive(Clone, Debug)]
struct Lane {
    scheduler: Scheduler,
    device: usize,
    depth: u32,
    in_flight: u32,
    wake_at: Option<Nanos>,
}

/// What one kind of request of a source did.
#[derive(Clone, Debug, Default)]
pub struct Done {
    /// From issue to completion.
    pub responses: Durations,
    /// Bytes of those that completed.
    pub bytes: u64,
}

/// What is measured of a virtual machine.
#[derive(Clone, Debug)]
pub struct VmMeasures {
    /// By part of the way, see [`STAGES`].
    pub stages: [Account; 4],
    /// From issue to completion.
    pub total: Account,
    /// Reads and writes of each source, in the source's order.
    pub done: Vec<[Done; 2]>,
    /// Response times in ms, by time of completion since measuring began.
    pub latency_ms: WindowSeries,
    /// Bytes completed likewise.
    pub bytes: WindowSeries,
    /// Completions in short windows, for the interval of the rate.
    pub rate: WindowSeries,
    /// How many of them were over when measuring ended.
    pub rate_windows: usize,
    /// Response times in ns in order of completion.
    pub in_order: Batches,
}

impl VmMeasures {
    /// Completions per second with their interval by batch means, over the measured time; None when it was too short.
    #[must_use]
    pub fn rate_interval(&self) -> Option<Interval> {
        let mut batches = Batches::default();
        let counts = self.rate.rates();
        for index in 0..self.rate_windows {
            batches.record(counts.get(index).copied().unwrap_or(0.0));
        }
        batches.interval_after(0)
    }
}

#[derive(Clone, Debug)]
struct Vm {
    depth: u32,
    in_flight: u32,
    waiting: VecDeque<Io>,
    first_feed: usize,
}

/// The model. Measures, of each VM, are public.
#[derive(Clone, Debug)]
pub struct StoragePath {
    feeds: Vec<Feed>,
    vms: Vec<Vm>,
    disks: Vec<Disk>,
    lanes: Vec<Lane>,
    devices: Vec<Station<Io, Device>>,
    requests: Vec<Request>,
    free: Vec<u32>,
    measured_from: Nanos,
    spec: Spec,
    /// By VM, in the spec's order.
    pub measures: Vec<VmMeasures>,
}

impl StoragePath {
    /// The system, empty.
    ///
    /// # Errors
    /// When the parameters make no system.
    pub fn new(spec: Spec) -> Result<Self, SimError> {
        let streams = Streams::new(spec.seed);
        check(&spec)?;
        let (mut feeds, mut vms, mut users) = (Vec::new(), Vec::new(), BTreeMap::new());
        for (index, vm) in spec.vms.iter().enumerate() {
            vms.push(Vm {
                depth: vm.adapter_depth,
                in_flight: 0,
                waiting: VecDeque::new(),
                first_feed: feeds.len(),
            });
            for source in &vm.sources {
                if *users.entry(source.disk).or_insert(index) != index {
                    return wrong(
                        &vm.name,
                        &format!("disk {}", source.disk),
                        "a disk of its own",
                    );
                }
                feeds.push(feed(source, index, &vm.name, streams)?);
            }
        }
        let mut ways = BTreeMap::new();
        let mut lanes = Vec::new();
        let clients: Vec<_> = spec.disks.iter().map(|disk| disk.client.clone()).collect();
        let mut disks = Vec::new();
        for (index, disk) in spec.disks.iter().enumerate() {
            let host = users.get(&index).map_or(0, |vm| spec.vms[*vm].host);
            let lane = *ways.entry((host, disk.device)).or_insert(lanes.len());
            if lane == lanes.len() {
                let own = &spec.hosts[host];
                let setting = Setting {
                    clients: &clients,
                    depth: own.queue_depth,
                };
                lanes.push(Lane {
                    scheduler: Scheduler::named(
                        &own.scheduler,
                        &format!("host {}", own.name),
                        setting,
                    )?,
                    device: disk.device,
                    depth: own.queue_depth,
                    in_flight: 0,
                    wake_at: None,
                });
            }
            let limit = disk.limit.map(|(iops, burst)| IopsLimit::new(iops, burst));
            disks.push(Disk { limit, lane });
        }
        let devices = spec.devices.iter().enumerate().map(|(index, device)| {
            let most: u32 = lanes
                .iter()
                .filter(|l| l.device == index)
                .map(|l| l.depth)
                .sum();
            let servers = match device.speed {
                Speed::Curve(_) => most.max(1),
                Speed::Times(_) => device.parallelism,
            };
            let stream = streams.stream(&device.name, "service");
            Station::fifo(servers, Device::new(device.speed.clone(), stream))
        });
        let devices = devices.collect();
        let measures = spec.vms.iter().map(|vm| measures_of(vm, &spec)).collect();
        Ok(Self {
            feeds,
            vms,
            disks,
            lanes,
            devices,
            requests: Vec::new(),
            free: Vec::new(),
            measured_from: 0,
            spec,
            measures,
        })
    }

    /// Forgets all measurements: the end of the warm-up.
    pub fn restart_measuring(&mut self, now: Nanos) {
        self.measured_from = now;
        for (own, vm) in self.measures.iter_mut().zip(&self.spec.vms) {
            let fresh = measures_of(vm, &self.spec);
            let old = std::mem::replace(own, fresh);
            (own.stages, own.total) = (old.stages, old.total);
            own.total.restart_measuring(now);
            own.stages
                .iter_mut()
                .for_each(|stage| stage.restart_measuring(now));
        }
        for device in &mut self.devices {
            device.restart_measuring(now);
        }
    }

    /// The devices' own measurements, in the spec's order.
    #[must_use]
    pub fn devices(&self) -> &[Station<Io, Device>] {
        &self.devices
    }

    /// Whether more requests piled up inside than a run keeps; it has ended then.
    #[must_use]
    pub fn is_overrun(&self) -> bool {
        self.requests.len() - self.free.len() >= INSIDE_MAX
    }

    fn vm_of(&self, slot: u32) -> usize {
        self.feeds[self.requests[slot as usize].source as usize].vm
    }

    /// Moves a request on: out of one part of the way, into another.
    fn step(&mut self, now: Nanos, slot: u32, from: Option<usize>, to: Option<usize>) {
        let vm = self.vm_of(slot);
        let request = &mut self.requests[slot as usize];
        let stages = &mut self.measures[vm].stages;
        if let Some(from) = from {
            stages[from].leave(now, request.entered);
        }
        request.entered = now;
        if let Some(to) = to {
            stages[to].enter(now);
        }
    }

    fn issue(&mut self, now: Nanos, index: u32, schedule: &mut Schedule<PathEvent>) {
        let feed = &mut self.feeds[index as usize];
        if let Some((on, period)) = feed.gate {
            if now % period >= on {
                schedule.at(now - now % period + period, PathEvent::Issue(index));
                return;
            }
        }
        if let Some(time) = feed.source.postpone(now) {
            schedule.at(time, PathEvent::Issue(index));
            return;
        }
        if let Some(time) = feed.source.after_issue(now) {
            schedule.at(time, PathEvent::Issue(index));
        }
        let (drawn, disk, vm) = (feed.mix.draw(), feed.disk, feed.vm);
        #[allow(clippy::cast_possible_truncation)]
        // checked: few disks, and fewer slots than INSIDE_MAX
        let (slot, client) = (
            self.free.pop().unwrap_or(self.requests.len() as u32),
            disk as u32,
        );
        let io = Io {
            slot,
            client,
            bytes: drawn.bytes,
            is_write: drawn.is_write,
            is_random: drawn.is_random,
        };
        let request = Request {
            io,
            source: index,
            issued: now,
            entered: now,
        };
        match self.requests.get_mut(slot as usize) {
            Some(place) => *place = request,
            None => self.requests.push(request),
        }
        if self.is_overrun() {
            schedule.stop();
        }
        self.measures[vm].total.enter(now);
        let limit = self.disks[disk].limit.as_mut();
        let admitted = limit.map_or(now, |limit| limit.admit(now, u64::from(io.bytes)));
        if admitted > now {
            self.step(now, slot, None, Some(LIMIT));
            schedule.at(admitted, PathEvent::Admit(slot));
            return;
        }
        self.queue_at_adapter(now, None, vm, io, schedule);
    }

    /// Takes a request from where it is to the adapter's queue, or past it.
    fn queue_at_adapter(
        &mut self,
        now: Nanos,
        from: Option<usize>,
        vm: usize,
        io: Io,
        schedule: &mut Schedule<PathEvent>,
    ) {
        let own = &mut self.vms[vm];
        if own.in_flight < own.depth {
            self.measures[vm].stages[ADAPTER].pass();
            self.queue_at_host(now, from, vm, io, schedule);
        } else {
            own.waiting.push_back(io);
            self.step(now, io.slot, from, Some(ADAPTER));
        }
    }

    /// Lets requests out of the adapter's queue while its depth allows.
    fn release(&mut self, now: Nanos, vm: usize, schedule: &mut Schedule<PathEvent>) {
        while self.vms[vm].in_flight < self.vms[vm].depth {
            let Some(io) = self.vms[vm].waiting.pop_front() else {
                return;
            };
            self.queue_at_host(now, Some(ADAPTER), vm, io, schedule);
        }
    }

    fn queue_at_host(
        &mut self,
        now: Nanos,
        from: Option<usize>,
        vm: usize,
        io: Io,
        schedule: &mut Schedule<PathEvent>,
    ) {
        self.vms[vm].in_flight += 1;
        self.step(now, io.slot, from, Some(HOST));
        let lane = self.disks[io.client as usize].lane;
        self.lanes[lane].scheduler.push(now, io);
        self.dispatch(now, lane, schedule);
    }

    /// Lets requests out of a host's queue while its depth and its scheduler allow.
    fn dispatch(&mut self, now: Nanos, index: usize, schedule: &mut Schedule<PathEvent>) {
        while self.lanes[index].in_flight < self.lanes[index].depth {
            let lane = &mut self.lanes[index];
            match lane.scheduler.next(now) {
                Next::Job(io) => {
                    lane.in_flight += 1;
                    let device = lane.device;
                    self.step(now, io.slot, Some(HOST), Some(DEVICE));
                    self.devices[device].arrive(now, io);
                    self.serve(now, device, schedule);
                }
                Next::Wait(until) => {
                    if lane.wake_at.is_none_or(|at| until < at) {
                        lane.wake_at = Some(until);
                        #[allow(clippy::cast_possible_truncation)] // checked: few lanes
                        schedule.at(until, PathEvent::Wake(index as u32));
                    }
                    return;
                }
                Next::Empty => return,
            }
        }
    }

    fn serve(&mut self, now: Nanos, device: usize, schedule: &mut Schedule<PathEvent>) {
        while let Next::Job(started) = self.devices[device].start(now) {
            #[allow(clippy::cast_possible_truncation)] // checked: fewer than 65,536 devices
            let event = PathEvent::Finish {
                device: device as u16,
                server: started.server,
            };
            schedule.at(started.end, event);
        }
    }

    fn finish(&mut self, now: Nanos, device: usize, io: Io, schedule: &mut Schedule<PathEvent>) {
        self.step(now, io.slot, Some(DEVICE), None);
        let request = self.requests[io.slot as usize];
        let feed = &mut self.feeds[request.source as usize];
        if let Some(time) = feed.source.after_completion(now) {
            schedule.at(time, PathEvent::Issue(request.source));
        }
        let vm = feed.vm;
        let own = &mut self.measures[vm];
        own.total.leave(now, request.issued);
        let done = &mut own.done[request.source as usize - self.vms[vm].first_feed];
        let response = now - request.issued;
        done[usize::from(io.is_write)].responses.record(response);
        done[usize::from(io.is_write)].bytes += u64::from(io.bytes);
        let since = now - self.measured_from;
        own.latency_ms.record(since, crate::time::millis(response));
        own.bytes.record(since, f64::from(io.bytes));
        own.rate.record(since, 1.0);
        own.in_order.record(response as f64);
        self.free.push(io.slot);
        self.vms[vm].in_flight -= 1;
        let lane = self.disks[io.client as usize].lane;
        self.lanes[lane].in_flight -= 1;
        self.serve(now, device, schedule);
        self.dispatch(now, lane, schedule);
        self.release(now, vm, schedule);
    }
}

fn measures_of(vm: &VmSpec, spec: &Spec) -> VmMeasures {
    let width = spec.measured.div_ceil(RATE_WINDOWS).max(1);
    #[allow(clippy::cast_possible_truncation)] // at most RATE_WINDOWS
    let rate_windows = (spec.measured / width) as usize;
    VmMeasures {
        stages: Default::default(),
        total: Account::default(),
        done: vec![Default::default(); vm.sources.len()],
        latency_ms: WindowSeries::new(spec.window),
        bytes: WindowSeries::new(spec.window),
        rate: WindowSeries::new(width),
        rate_windows,
        in_order: Batches::default(),
    }
}

impl Model for StoragePath {
    type Event = PathEvent;

    fn start(&mut self, schedule: &mut Schedule<PathEvent>) {
        for (index, feed) in (0u32..).zip(&mut self.feeds) {
            while let Some(time) = feed.source.first(schedule.now() + feed.phase) {
                schedule.at(time, PathEvent::Issue(index));
            }
        }
    }

    fn handle(&mut self, now: Nanos, event: PathEvent, schedule: &mut Schedule<PathEvent>) {
        match event {
            PathEvent::Issue(index) => self.issue(now, index, schedule),
            PathEvent::Admit(slot) => {
                let io = self.requests[slot as usize].io;
                self.queue_at_adapter(now, Some(LIMIT), self.vm_of(slot), io, schedule);
            }
            PathEvent::Wake(lane) => {
                let lane = lane as usize;
                if self.lanes[lane].wake_at.is_some_and(|at| at <= now) {
                    self.lanes[lane].wake_at = None;
                }
                self.dispatch(now, lane, schedule);
            }
            PathEvent::Finish { device, server } => {
                let device = usize::from(device);
                if let Some(finished) = self.devices[device].finish(now, server) {
                    self.finish(now, device, finished.job, schedule);
                }
            }
        }
    }

    fn check(&self, now: Nanos) -> Result<(), SimError> {
        for (own, vm) in self.measures.iter().zip(&self.spec.vms) {
            own.total.check(&vm.name, now)?;
            let mut inside = 0;
            for (stage, name) in own.stages.iter().zip(STAGES) {
                stage.check(&format!("{}: {name}", vm.name), now)?;
                inside += stage.inside().level();
            }
            if inside != own.total.inside().level() {
                return wrong(
                    &vm.name,
                    &inside,
                    "every request in one part of the way (a defect of the model)",
                );
            }
        }
        for (station, device) in self.devices.iter().zip(&self.spec.devices) {
            station.check(&device.name, now)?;
        }
        Ok(())
    }
}
