//! The way of a request from a virtual machine to a device.
//!
//! # Model
//! Sources of a VM issue requests to its disks. A request passes the disk's IOPS limit, which delays it; waits until fewer
//! than the VM's adapter depth are further on; waits at its host, in the order of the host's scheduler, until fewer than
//! the host's queue depth are at the device; and is served by one of the device's servers. A source may set off another
//! one with each request that is done: so many copies outstanding, each a read here, then a write there.
//!
//! # Assumptions
//! A host has a queue of its own to each device. Completions cost nothing. The limit counts in units of 32 KB. All hosts
//! share a device's link; only data takes time on it besides the latency. With `sioc-v1` every host sets the depth of its
//! queue every 4 s by the latency that all hosts saw at the device, network included, as in [`super::WindowLaw`].
//!
//! # Parameters
//! See [`Spec`].
//!
//! # Limits
//! One path to a device; no cache, no errors. Open sources go on whatever is outstanding, recorded ones too; where on a
//! drive a recorded request goes is drawn like that of any other.
//!
//! # Sources
//! `VMware`, "vSphere resource management", storage I/O control; the same, KB 1267, for queue depths of adapters and LUNs;
//! Hogan as in [`super::IopsLimit`].

mod link;
mod measures;
mod spec;
pub mod system;
mod window;

use std::collections::{BTreeMap, VecDeque};

use super::device::{Device, Speed};
use super::discipline::{Discipline, Next};
use super::disk_drive::DeviceQueue;
use super::scheduler::{Io, Scheduler, Setting};
use super::station::Station;
use super::token_bucket::IopsLimit;
use super::wakes::Wakes;
use crate::kernel::{Model, Schedule};
use crate::random::Streams;
use crate::sources::Source;
use crate::time::Nanos;
use leadline_stats::error::{LeadlineError, wrong};
use link::Link;
pub use measures::VmMeasures;
use spec::check;
pub use spec::{Arrivals, DeviceSpec, DiskSpec, HostSpec, SourceSpec, Spec, VmSpec};
pub(super) use spec::{Feed, feed};
use window::{Window, period};

/// Parts of the way, in order.
pub const STAGES: [&str; 5] = ["limit", "adapter", "host", "network", "device"];
const LIMIT: usize = 0;
const ADAPTER: usize = 1;
const HOST: usize = 2;
const NETWORK: usize = 3;
const DEVICE: usize = 4;
/// Requests inside at most. Judgement: 64 bytes each; more are a load far above what the system can do.
const INSIDE_MAX: usize = 20_000_000;
/// The scheduler of hosts that set their windows by latency: SFQ below a depth that changes.
const WINDOWED: &str = "sioc-v1";

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
    /// A request has crossed the network to its device.
    Reach(u32),
    /// Its answer is back.
    Return(u32),
    /// Hosts set their windows.
    Adjust,
}

#[derive(Clone, Copy, Debug)]
struct Request {
    io: Io,
    source: u32,
    issued: Nanos,
    /// When it came to where it is.
    entered: Nanos,
    /// When its host let it go.
    sent: Nanos,
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
    wakes: Wakes,
    window: Option<Window>,
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
    devices: Vec<Station<Io, Device, DeviceQueue>>,
    links: Vec<Option<Link>>,
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
    pub fn new(spec: Spec) -> Result<Self, LeadlineError> {
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
                        format!("disk {}", source.disk),
                        "a disk of its own",
                    );
                }
                let drive = match &spec.devices[spec.disks[source.disk].device].speed {
                    Speed::Drive(drive) => Some(drive),
                    _ => None,
                };
                feeds.push(feed(source, index, &vm.name, streams, drive)?);
            }
        }
        chain(&mut feeds, &vms, &spec);
        let (lanes, disks) = lanes_of(&spec, &users)?;
        let devices = stations_of(&spec, &lanes, streams);
        let links = spec.devices.iter().map(|device| {
            let own = device.network;
            own.map(|(latency, rate)| Link::new(latency, rate))
        });
        let links = links.collect();
        let measures = spec.vms.iter().map(|vm| VmMeasures::new(vm, &spec));
        let measures = measures.collect();
        Ok(Self {
            feeds,
            vms,
            disks,
            lanes,
            devices,
            links,
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
        for own in &mut self.measures {
            own.restart(now, self.spec.measured, self.spec.window);
        }
        for device in &mut self.devices {
            device.restart_measuring(now);
        }
    }

    /// The devices' own measurements, in the spec's order.
    #[must_use]
    pub fn devices(&self) -> &[Station<Io, Device, DeviceQueue>] {
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
        let place = feed.next_place(drawn.bytes, drawn.is_random);
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
            place,
        };
        let request = Request {
            io,
            source: index,
            issued: now,
            entered: now,
            sent: now,
        };
        match self.requests.get_mut(slot as usize) {
            Some(place) => *place = request,
            None => self.requests.push(request),
        }
        if self.is_overrun() {
            schedule.stop();
        }
        self.measures[vm].whole.total.enter(now);
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
        if let Some(window) = &mut self.lanes[lane].window {
            window.enter(now, io.client as usize);
        }
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
                    self.requests[io.slot as usize].sent = now;
                    if let Some(link) = &mut self.links[device] {
                        let there = link.pass(0, now, if io.is_write { io.bytes } else { 0 });
                        schedule.at(there, PathEvent::Reach(io.slot));
                        self.step(now, io.slot, Some(HOST), Some(NETWORK));
                    } else {
                        self.arrive(now, HOST, device, io, schedule);
                    }
                }
                Next::Wait(until) => {
                    if lane.wakes.wants(until) {
                        #[allow(clippy::cast_possible_truncation)] // checked: few lanes
                        schedule.at(until, PathEvent::Wake(index as u32));
                    }
                    return;
                }
                Next::Empty => return,
            }
        }
    }

    fn arrive(
        &mut self,
        now: Nanos,
        from: usize,
        device: usize,
        io: Io,
        schedule: &mut Schedule<PathEvent>,
    ) {
        self.step(now, io.slot, Some(from), Some(DEVICE));
        self.devices[device].arrive(now, io);
        self.serve(now, device, schedule);
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
        if let Some(link) = &mut self.links[device] {
            let back = link.pass(1, now, if io.is_write { 0 } else { io.bytes });
            schedule.at(back, PathEvent::Return(io.slot));
            self.step(now, io.slot, Some(DEVICE), Some(NETWORK));
            self.serve(now, device, schedule);
        } else {
            self.complete(now, DEVICE, io, schedule);
        }
    }

    /// A request is done and leaves from its last part of the way.
    fn complete(&mut self, now: Nanos, from: usize, io: Io, schedule: &mut Schedule<PathEvent>) {
        self.step(now, io.slot, Some(from), None);
        let request = self.requests[io.slot as usize];
        let (next, vm) = {
            let feed = &self.feeds[request.source as usize];
            (feed.next, feed.vm)
        };
        if let Some(time) = self.feeds[next].source.after_completion(now) {
            #[allow(clippy::cast_possible_truncation)] // checked: as many as sources
            schedule.at(time, PathEvent::Issue(next as u32));
        }
        self.measures[vm].whole.record(
            request.source as usize - self.vms[vm].first_feed,
            io.is_write,
            io.bytes,
            (request.issued, now),
            self.measured_from,
        );
        self.free.push(io.slot);
        self.vms[vm].in_flight -= 1;
        let lane = self.disks[io.client as usize].lane;
        self.lanes[lane].in_flight -= 1;
        if let Some(window) = &mut self.lanes[lane].window {
            window.leave(now, io.client as usize, now - request.sent);
        }
        if from == DEVICE {
            self.serve(now, self.lanes[lane].device, schedule);
        }
        self.dispatch(now, lane, schedule);
        self.release(now, vm, schedule);
    }
}

/// The way of each host to each device, and the disks on them; `users` has the VM of each disk.
fn lanes_of(
    spec: &Spec,
    users: &BTreeMap<usize, usize>,
) -> Result<(Vec<Lane>, Vec<Disk>), LeadlineError> {
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
                wakes: Wakes::default(),
                window: (own.scheduler == WINDOWED).then(|| {
                    let threshold = spec.devices[disk.device].threshold;
                    Window::new(threshold, own.queue_depth, spec.disks.len())
                }),
            });
        }
        if let Some(window) = &mut lanes[lane].window {
            window.add_disk(index, disk.client.shares);
        }
        let limit = disk.limit.map(|(iops, burst)| IopsLimit::new(iops, burst));
        disks.push(Disk { limit, lane });
    }
    Ok((lanes, disks))
}

fn stations_of(
    spec: &Spec,
    lanes: &[Lane],
    streams: Streams,
) -> Vec<Station<Io, Device, DeviceQueue>> {
    let devices = spec.devices.iter().enumerate().map(|(index, device)| {
        let most: u32 = lanes
            .iter()
            .filter(|l| l.device == index)
            .map(|l| l.depth)
            .sum();
        let servers = match device.speed {
            Speed::Curve(_) => most.max(1),
            Speed::Times(_) => device.parallelism,
            Speed::Drive(_) => 1,
        };
        let drive = match &device.speed {
            Speed::Drive(drive) => Some(drive),
            _ => None,
        };
        let stream = streams.stream(&device.name, "service");
        let service = Device::new(device.speed.clone(), stream);
        Station::new(servers, service, DeviceQueue::of(drive))
    });
    devices.collect()
}

/// Which feed a completion lets go on: the one it is of, or the next step of a copy.
fn chain(feeds: &mut [Feed], vms: &[Vm], spec: &Spec) {
    let then = spec.vms.iter().flat_map(|vm| &vm.sources).map(|s| s.then);
    for (index, (feed, then)) in feeds.iter_mut().zip(then).enumerate() {
        feed.next = then.map_or(index, |(vm, source)| vms[vm].first_feed + source);
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
        if let Some(period) = period(&self.lanes) {
            schedule.after(period, PathEvent::Adjust);
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
                self.lanes[lane].wakes.came();
                self.dispatch(now, lane, schedule);
            }
            PathEvent::Finish { device, server } => {
                let device = usize::from(device);
                if let Some(finished) = self.devices[device].finish(now, server) {
                    self.finish(now, device, finished.job, schedule);
                }
            }
            PathEvent::Reach(slot) => {
                let io = self.requests[slot as usize].io;
                let device = self.lanes[self.disks[io.client as usize].lane].device;
                self.arrive(now, NETWORK, device, io, schedule);
            }
            PathEvent::Return(slot) => {
                let io = self.requests[slot as usize].io;
                self.complete(now, NETWORK, io, schedule);
            }
            PathEvent::Adjust => self.adjust(now, schedule),
        }
    }

    fn check(&self, now: Nanos) -> Result<(), LeadlineError> {
        for (own, vm) in self.measures.iter().zip(&self.spec.vms) {
            own.whole.total.check(&vm.name, now)?;
            let mut inside = 0;
            for (stage, name) in own.stages.iter().zip(STAGES) {
                stage.check(&format!("{}: {name}", vm.name), now)?;
                inside += stage.inside().level();
            }
            if inside != own.whole.total.inside().level() {
                return wrong(
                    &vm.name,
                    inside,
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
