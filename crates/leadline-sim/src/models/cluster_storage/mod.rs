//! Chunk servers or disk groups on nodes: data of virtual machines on many disks, protected by copies or by codes.
//!
//! # Model
//! A virtual machine's data are chunks. Each is kept as n copies, or striped over k data fragments with m parity fragments,
//! every fragment on a node of its own, the emptiest first, ties by chance. A request passes the VM's IOPS limit, which
//! delays it, and is split by chunks and stripes into reads and writes of fragments: a read takes one copy, a local one
//! if there is one, or the data units it touches; a write goes to all copies; with a code it writes whole stripes at
//! once, and of a stripe it does not fill reads the touched data units and all parity units first and writes them then.
//! What is on another node is sent through both nodes' network cards, a server for each direction. Disks and cards serve
//! guests and resynchronising in turn by their shares while both wait.
//!
//! Disks and nodes fail. Their fragments are computed from others: a read of a missing data unit reads k others. What is
//! known to be lost is rebuilt at once on the emptiest nodes without a fragment of the chunk; what is absent may come
//! back within a delay and is then brought up to date with what it missed. Limits of VMs stand before all this: what
//! rebuilds is no VM and passes none.
//!
//! # Assumptions
//! The VM's node does what there is to do: it sends to all copies and computes parity, in no time. A message passes one
//! card wholly, then the network's latency, then the other. Nobody waits for another's write of the same stripe. A disk
//! positions for every request that does not follow its last one. What is under way when something fails is finished.
//! Virtual machines of a failed node stop until it is back. What cannot be read waits until it can. A write that cannot
//! reach a missing fragment goes to the others. A part of a stripe is read before anything of its request is written.
//!
//! # Parameters
//! See [`Spec`].
//!
//! # Limits
//! No caches, journals or checksums, no processors to wait for, no merging of neighbouring requests, one virtual disk per
//! VM, no balancing after a rebuild, no second look at what returns after it was given up: it comes back empty.
//!
//! # Sources
//! `VMware`, "Administering vSAN", on component states absent and degraded, the object repair timer of 60 minutes, and RAID-5/6
//! writes. Virtuozzo, "Hybrid infrastructure administrator's guide", on chunks of 256 MB and units of 1 MB.
//! Patterson, Gibson and Katz, "A case for redundant arrays of inexpensive disks" (SIGMOD 1988), for small writes. Goyal, Vin
//! and Cheng, "Start-time fair queuing" (SIGCOMM 1996), for the shares.

mod layout;
mod measures;
mod plan;
mod protection;
mod recovery;
mod servers;
mod spec;
pub mod system;
mod transport;

pub use layout::{DiskState, Fragment, Health, Layout, Room};
pub use measures::{Healing, Traffic};
pub use plan::{Access, Part};
pub use protection::{Protection, Touch};
pub use servers::{Class, Disk, Job, TwoClasses, Wire};
pub use spec::{
    ABSENT_DELAY, DiskSpec, FailureSpec, NodeSpec, RecoverySpec, SourceSpec, Spec, VmSpec,
};

use super::device::Speed;
use super::io_measures::IoMeasures;
use super::station::Station;
use super::storage_path::{Feed, feed};
use super::token_bucket::IopsLimit;
use crate::kernel::{Model, Schedule};
use crate::measure::{Durations, WindowSeries};
use crate::random::{Stream, Streams};
use crate::sources::Source;
use crate::time::Nanos;
use leadline_stats::error::{LeadlineError, wrong};
use recovery::Recovery;
use spec::check;
use transport::Leg;

/// Requests inside at most. Judgement: some 300 bytes each with what they wait for; more are a load far above what the
/// system can do.
const INSIDE_MAX: usize = 2_000_000;

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClusterEvent {
    /// A source issues a request.
    Issue(u32),
    /// The limit lets a request through.
    Admit(u32),
    /// A message has passed the network.
    Arrive(u32),
    /// A server of a disk is done.
    Disk {
        /// The disk.
        disk: u16,
        /// Its server.
        server: u32,
    },
    /// A direction of a network card is done.
    Wire(u32),
    /// Something fails.
    Fail(u16),
    /// It is waited for no longer.
    Expire(u16),
    /// It is back.
    Return(u16),
}

/// Who wants an operation done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    /// A source of a virtual machine.
    Source(u32),
    /// A stream of the recovery.
    Stream(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Reads what the writes after it need.
    Gather,
    /// What ends it.
    Last,
}

#[derive(Clone, Copy, Debug)]
struct Op {
    owner: Owner,
    pending: u32,
    phase: Phase,
    /// Where in the VM's disk, or in the fragment, bytes.
    start: u64,
    bytes: u32,
    is_write: bool,
    issued: Nanos,
}

#[derive(Clone, Debug)]
struct Place {
    /// Where the next request goes that follows the one before.
    cursor: Option<u64>,
    stream: Stream,
    /// Which source of its VM it is.
    index: usize,
}

/// The model. Measures are public.
#[derive(Clone, Debug)]
pub struct ClusterStorage {
    feeds: Vec<Feed>,
    places: Vec<Place>,
    limits: Vec<Option<IopsLimit>>,
    disks: Vec<Station<Job, Disk, TwoClasses>>,
    wires: Vec<Station<Job, Wire, TwoClasses>>,
    ops: Vec<Op>,
    free_ops: Vec<u32>,
    legs: Vec<Leg>,
    free_legs: Vec<u32>,
    /// Operations that wait for data to be there.
    parked: Vec<u32>,
    down_until: Vec<Option<Nanos>>,
    recovery: Recovery,
    measured_from: Nanos,
    spec: Spec,
    /// Where everything is.
    pub layout: Layout,
    /// By group, and of all groups together last.
    pub groups: Vec<IoMeasures>,
    /// Response times in ns, by VM.
    pub by_vm: Vec<Durations>,
    /// What disks and network did in the measured time.
    pub traffic: Traffic,
    /// What was made good.
    pub healing: Healing,
    /// Bytes written to make fragments whole, by time since measuring began.
    pub resynced: WindowSeries,
}

impl ClusterStorage {
    /// The system, with its data laid out and no request in it.
    ///
    /// # Errors
    /// When the parameters make no system.
    pub fn new(spec: Spec) -> Result<Self, LeadlineError> {
        check(&spec)?;
        let streams = Streams::new(spec.seed);
        let (mut feeds, mut places) = (Vec::new(), Vec::new());
        let mut source_counts = vec![0; spec.group_count];
        for (number, vm) in spec.vms.iter().enumerate() {
            source_counts[vm.group] = source_counts[vm.group].max(vm.sources.len());
            for (index, source) in vm.sources.iter().enumerate() {
                feeds.push(feed(&source.on_path(), number, &vm.name, streams, None)?);
                let key = format!("{}/{}", vm.name, source.name);
                places.push(Place {
                    cursor: None,
                    stream: streams.stream(&key, "places"),
                    index,
                });
            }
        }
        let share = spec.recovery.share;
        let disks = spec.disks.iter().map(|own| {
            let stream = streams.stream(&own.name, "service");
            let disk = Disk::new(Speed::Times(own.times.clone()), stream);
            Station::new(own.parallelism, disk, TwoClasses::new(share))
        });
        let wires = spec.nodes.iter().flat_map(|own| {
            let wire = Wire {
                bytes_per_second: own.bytes_per_second,
            };
            [0, 1].map(|_| Station::new(1, wire, TwoClasses::new(share)))
        });
        let storing: usize = (0..spec.nodes.len())
            .filter(|node| spec.disks.iter().any(|disk| disk.node == *node))
            .count();
        let recovery = Recovery::new(
            storing * spec.recovery.streams as usize,
            streams.stream("recovery", "placement"),
        );
        let groups = source_counts.iter().chain(&[0]);
        Ok(Self {
            layout: Layout::new(&spec)?,
            groups: groups
                .map(|count| IoMeasures::new(*count, spec.measured, spec.window))
                .collect(),
            by_vm: vec![Durations::default(); spec.vms.len()],
            limits: spec
                .vms
                .iter()
                .map(|vm| vm.limit.map(|(iops, burst)| IopsLimit::new(iops, burst)))
                .collect(),
            disks: disks.collect(),
            wires: wires.collect(),
            down_until: vec![None; spec.nodes.len()],
            resynced: WindowSeries::new(spec.window),
            feeds,
            places,
            ops: Vec::new(),
            free_ops: Vec::new(),
            legs: Vec::new(),
            free_legs: Vec::new(),
            parked: Vec::new(),
            recovery,
            measured_from: 0,
            traffic: Traffic::default(),
            healing: Healing::default(),
            spec,
        })
    }

    /// Forgets all measurements but those of the healing: the end of the warm-up.
    pub fn restart_measuring(&mut self, now: Nanos) {
        self.measured_from = now;
        for group in &mut self.groups {
            *group = group.restarted(now, self.spec.measured, self.spec.window);
        }
        self.by_vm.fill(Durations::default());
        self.traffic = Traffic::default();
        self.resynced = WindowSeries::new(self.spec.window);
        self.disks
            .iter_mut()
            .for_each(|own| own.restart_measuring(now));
        self.wires
            .iter_mut()
            .for_each(|own| own.restart_measuring(now));
    }

    /// Share of the measured time that each disk was busy, over its servers.
    #[must_use]
    pub fn disk_use(&self, now: Nanos) -> Vec<f64> {
        let disks = self.disks.iter().zip(&self.spec.disks);
        let busy = disks.map(|(own, disk)| {
            own.busy()
                .mean(now)
                .map(|mean| mean / f64::from(disk.parallelism))
        });
        busy.map(|own| own.unwrap_or(f64::NAN)).collect()
    }

    /// Share of the measured time that each network card sent, and received.
    #[must_use]
    pub fn wire_use(&self, now: Nanos) -> Vec<[f64; 2]> {
        let busy = |own: &Station<_, _, _>| own.busy().mean(now).unwrap_or(f64::NAN);
        self.wires
            .chunks_exact(2)
            .map(|pair| [busy(&pair[0]), busy(&pair[1])])
            .collect()
    }

    /// Requests that wait for data that cannot be read.
    #[must_use]
    pub fn parked_count(&self) -> usize {
        self.parked.len()
    }

    fn open(&mut self, op: Op) -> u32 {
        insert(&mut self.ops, &mut self.free_ops, op)
    }

    fn close(&mut self, op: u32) {
        self.free_ops.push(op);
    }

    fn issue(&mut self, now: Nanos, index: u32, schedule: &mut Schedule<ClusterEvent>) {
        let feed = &mut self.feeds[index as usize];
        let vm = feed.vm;
        if let Some(until) = self.down_until[self.spec.vms[vm].node] {
            if until != Nanos::MAX {
                schedule.at(until, ClusterEvent::Issue(index));
            }
            return;
        }
        let paused = feed.gate.filter(|(on, period)| now % period >= *on);
        let later = paused
            .map(|(_, period)| now - now % period + period)
            .or_else(|| feed.source.postpone(now));
        if let Some(time) = later {
            schedule.at(time, ClusterEvent::Issue(index));
            return;
        }
        if let Some(time) = feed.source.after_issue(now) {
            schedule.at(time, ClusterEvent::Issue(index));
        }
        let drawn = feed.mix.draw();
        let start =
            self.places[index as usize].next(drawn.bytes, drawn.is_random, self.spec.vms[vm].bytes);
        let op = self.open(Op {
            owner: Owner::Source(index),
            pending: 0,
            phase: Phase::Last,
            start,
            bytes: drawn.bytes,
            is_write: drawn.is_write,
            issued: now,
        });
        if self.ops.len() - self.free_ops.len() >= INSIDE_MAX {
            schedule.stop();
        }
        let (group, all) = (self.spec.vms[vm].group, self.groups.len() - 1);
        self.groups[group].total.enter(now);
        self.groups[all].total.enter(now);
        let limit = self.limits[vm].as_mut();
        let admitted = limit.map_or(now, |limit| limit.admit(now, u64::from(drawn.bytes)));
        if admitted > now {
            schedule.at(admitted, ClusterEvent::Admit(op));
        } else {
            self.begin(now, op, schedule);
        }
    }

    /// The parts of a request by chunk.
    fn parts(&self, vm: usize, op: &Op) -> Vec<Part> {
        let (chunk_bytes, first) = (self.layout.chunk_bytes, self.layout.first_chunk[vm]);
        let (mut at, end) = (op.start, op.start + u64::from(op.bytes));
        let mut parts = Vec::new();
        while at < end {
            let (number, start) = (at / chunk_bytes, at % chunk_bytes);
            let stop = (start + end - at).min(chunk_bytes);
            #[allow(clippy::cast_possible_truncation)] // as many as were placed
            parts.push(Part {
                chunk: first + number as u32,
                start,
                end: stop,
            });
            at += stop - start;
        }
        parts
    }

    /// Starts a guest's operation, or the writes of one that has read what it needs.
    fn begin(&mut self, now: Nanos, index: u32, schedule: &mut Schedule<ClusterEvent>) {
        let op = self.ops[index as usize];
        let Owner::Source(source) = op.owner else {
            return;
        };
        let (vm, unit) = (self.feeds[source as usize].vm, self.spec.unit_bytes);
        #[allow(clippy::cast_possible_truncation)] // checked: fewer than 60,000 nodes
        let node = self.spec.vms[vm].node as u32;
        let mut found = Vec::new();
        let mut is_there = true;
        let parts = self.parts(vm, &op);
        let has_gathered = op.phase == Phase::Gather;
        if op.is_write && !has_gathered {
            for part in &parts {
                is_there &= self.layout.gather(*part, unit, &mut found);
            }
            if is_there && !found.is_empty() {
                self.ops[index as usize].phase = Phase::Gather;
                self.send(now, index, (node, Class::Guest, false), &found, schedule);
                return;
            }
        }
        self.ops[index as usize].phase = Phase::Last;
        for part in &parts {
            is_there &= if op.is_write {
                self.layout.store(*part, unit, &mut found)
            } else {
                let pick = self.places[source as usize].stream.bits();
                self.layout.read(*part, unit, (node, pick), &mut found)
            };
        }
        if !is_there {
            self.parked.push(index);
            return;
        }
        if op.is_write {
            found.retain(|access| self.reaches(access));
        }
        self.send(
            now,
            index,
            (node, Class::Guest, op.is_write),
            &found,
            schedule,
        );
    }

    /// Whether a write reaches a fragment; one that may come back misses it else.
    fn reaches(&mut self, access: &Access) -> bool {
        match self.layout.fragments[access.fragment as usize].health {
            Health::Live | Health::Rebuilding => true,
            Health::Missing => {
                let piece_bytes = u64::from(self.spec.recovery.piece_bytes);
                self.recovery.missed(access, piece_bytes);
                false
            }
            Health::Gone => false,
        }
    }

    /// A leg is done; with the last of them its operation goes on or ends.
    fn end(&mut self, now: Nanos, leg: u32, schedule: &mut Schedule<ClusterEvent>) {
        let index = self.legs[leg as usize].op;
        self.free_legs.push(leg);
        let op = &mut self.ops[index as usize];
        op.pending -= 1;
        if op.pending > 0 {
            return;
        }
        let op = *op;
        match (op.owner, op.phase) {
            (Owner::Stream(_), _) => self.resync_step(now, index, op, schedule),
            (Owner::Source(_), Phase::Gather) => self.begin(now, index, schedule),
            (Owner::Source(source), Phase::Last) => self.finish(now, index, (source, op), schedule),
        }
    }

    fn finish(
        &mut self,
        now: Nanos,
        index: u32,
        (source, op): (u32, Op),
        schedule: &mut Schedule<ClusterEvent>,
    ) {
        let feed = &mut self.feeds[source as usize];
        if let Some(time) = feed.source.after_completion(now) {
            schedule.at(time, ClusterEvent::Issue(source));
        }
        let (vm, own) = (feed.vm, self.places[source as usize].index);
        let all = self.groups.len() - 1;
        for (group, source) in [(self.spec.vms[vm].group, own), (all, usize::MAX)] {
            self.groups[group].record(
                source,
                op.is_write,
                op.bytes,
                (op.issued, now),
                self.measured_from,
            );
        }
        self.by_vm[vm].record(now - op.issued);
        self.close(index);
    }

    /// Whether disks hold what the layout says.
    fn check_layout(&self) -> Result<(), LeadlineError> {
        let mut held = vec![0; self.layout.rooms.len()];
        for own in &self.layout.fragments {
            if matches!(own.health, Health::Live | Health::Rebuilding) {
                held[own.disk as usize] += self.layout.fragment_bytes;
            }
        }
        for ((room, held), disk) in self.layout.rooms.iter().zip(held).zip(&self.spec.disks) {
            let is_sound = if room.state == DiskState::Up {
                room.used >= held
            } else {
                held == 0
            };
            if !is_sound {
                return wrong(
                    &disk.name,
                    format!("{held} bytes of fragments, {} counted", room.used),
                    "every fragment on one disk that works (a defect of the model)",
                );
            }
        }
        Ok(())
    }
}

fn insert<T>(held: &mut Vec<T>, free: &mut Vec<u32>, item: T) -> u32 {
    if let Some(index) = free.pop() {
        held[index as usize] = item;
        return index;
    }
    held.push(item);
    #[allow(clippy::cast_possible_truncation)] // memory ends before
    {
        held.len() as u32 - 1
    }
}

impl Place {
    /// Where a request of `bytes` goes in a disk of `total`: a multiple of its size, or behind the one before.
    fn next(&mut self, bytes: u32, is_random: bool, total: u64) -> u64 {
        let size = u64::from(bytes.max(1));
        let slots = (total / size).max(1);
        let start = match self.cursor {
            Some(cursor) if !is_random && cursor + size <= total => cursor,
            Some(_) if !is_random => 0,
            _ => self.stream.below(slots) * size,
        };
        if !is_random {
            self.cursor = Some(start + size);
        }
        start
    }
}

impl Model for ClusterStorage {
    type Event = ClusterEvent;

    fn start(&mut self, schedule: &mut Schedule<ClusterEvent>) {
        for (index, feed) in (0u32..).zip(&mut self.feeds) {
            while let Some(time) = feed.source.first(schedule.now() + feed.phase) {
                schedule.at(time, ClusterEvent::Issue(index));
            }
        }
        for (index, failure) in (0u16..).zip(&self.spec.failures) {
            schedule.at(failure.at, ClusterEvent::Fail(index));
        }
    }

    fn handle(&mut self, now: Nanos, event: ClusterEvent, schedule: &mut Schedule<ClusterEvent>) {
        match event {
            ClusterEvent::Issue(index) => self.issue(now, index, schedule),
            ClusterEvent::Admit(op) => self.begin(now, op, schedule),
            ClusterEvent::Arrive(leg) => self.walk(now, leg, schedule),
            ClusterEvent::Disk { disk, server } => {
                let disk = u32::from(disk);
                if let Some(finished) = self.disks[disk as usize].finish(now, server) {
                    self.serve_disk(now, disk, schedule);
                    self.walk(now, finished.job.leg, schedule);
                }
            }
            ClusterEvent::Wire(wire) => {
                if let Some(finished) = self.wires[wire as usize].finish(now, 0) {
                    self.serve_wire(now, wire, schedule);
                    self.walk(now, finished.job.leg, schedule);
                }
            }
            ClusterEvent::Fail(failure) => self.fail(now, failure, schedule),
            ClusterEvent::Expire(failure) => self.give_up(now, failure, schedule),
            ClusterEvent::Return(failure) => self.come_back(now, failure, schedule),
        }
    }

    fn check(&self, now: Nanos) -> Result<(), LeadlineError> {
        for (index, group) in self.groups.iter().enumerate() {
            group.total.check(&format!("group {index}"), now)?;
        }
        for (station, disk) in self.disks.iter().zip(&self.spec.disks) {
            station.check(&disk.name, now)?;
        }
        for (index, station) in self.wires.iter().enumerate() {
            station.check(&format!("network card {}", index / 2), now)?;
        }
        let open = self.ops.len() - self.free_ops.len();
        let streams = self.recovery.under_way();
        let guests: u64 = self
            .groups
            .last()
            .map_or(0, |all| all.total.inside().level());
        if open as u64 != guests + streams {
            return wrong(
                "cluster",
                format!("{open} operations for {guests} requests and {streams} streams"),
                "an operation for each (a defect of the model)",
            );
        }
        self.check_layout()
    }
}
