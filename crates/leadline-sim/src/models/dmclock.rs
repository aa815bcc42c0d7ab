//! dmClock: mClock on several storage servers that do not speak with each other.
//!
//! # Model
//! Each request goes to one server and carries what its client received from the other servers since its last
//! request to this one: δ, all, and ρ, what was served for the reservation. Each server runs [`MClock`] with these
//! counts, so that reservation, limit and weight hold for the sum over servers.
//!
//! # Assumptions
//! A client learns of every completion, and of its phase, at the completion. Servers are equal.
//!
//! # Parameters
//! Machines as in [`QosHost`](super::QosHost), policies, number of servers, their depth and service, placement.
//!
//! # Limits
//! Network delays are not modelled. What a client received elsewhere is counted in requests, not by size. Counts
//! are those of the time when a request was sent: of a client whose backlog grows they come late, and it gets more than
//! its reservation (850 of 600 in an example with three servers). In a closed loop with random placement the queue moves to the
//! servers where the client is slow, so that it has no backlog at the others.
//!
//! # Sources
//! Gulati, Merchant and Varman, "mClock" (OSDI 2010), section 3.3.

use super::cost::CostRule;
use super::discipline::Next;
use super::mclock::MClock;
use super::policy::QosPolicy;
use super::qos_host::QosVm;
use super::request::{Elsewhere, Phase, Request, VmRequest};
use super::service::Service;
use super::station::{Station, Waiting};
use super::wakes::Wakes;
use crate::kernel::{Model, Schedule};
use crate::random::Stream;
use crate::sources::Source;
use crate::time::Nanos;
use leadline_stats::error::LeadlineError;

/// A request to one of several servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DistributedRequest {
    /// The machine's request.
    pub request: VmRequest,
    /// What its machine received from other servers.
    pub elsewhere: Elsewhere,
    /// Why the server let it go.
    pub phase: Phase,
}

impl Request for DistributedRequest {
    #[inline]
    fn client(&self) -> u32 {
        self.request.vm
    }

    #[inline]
    fn bytes(&self) -> u32 {
        self.request.bytes
    }

    #[inline]
    fn elsewhere(&self) -> Elsewhere {
        self.elsewhere
    }

    #[inline]
    fn released(&mut self, phase: Phase) {
        self.phase = phase;
    }
}

/// What a client has received so far: of everybody, and of one server.
#[derive(Clone, Copy, Debug, Default)]
struct Received {
    served: u32,
    reserved: u32,
}

impl Received {
    fn count(&mut self, phase: Phase) {
        self.served = self.served.wrapping_add(1);
        self.reserved = self
            .reserved
            .wrapping_add(u32::from(phase == Phase::Reservation));
    }
}

/// A client's account of what it received elsewhere, for the requests it sends.
#[derive(Clone, Debug)]
pub struct ServiceTracker {
    all: Received,
    /// By server: received elsewhere up to the last request to it, and received from it.
    sent: Vec<Received>,
    own: Vec<Received>,
    outstanding: Vec<u32>,
}

impl ServiceTracker {
    /// A client of this many servers.
    #[must_use]
    pub fn new(server_count: usize) -> Self {
        Self {
            all: Received::default(),
            sent: vec![Received::default(); server_count],
            own: vec![Received::default(); server_count],
            outstanding: vec![0; server_count],
        }
    }

    /// What to send with a request to this server.
    #[inline]
    pub fn sending(&mut self, server: usize) -> Elsewhere {
        self.outstanding[server] += 1;
        let (all, own) = (self.all, self.own[server]);
        let others = Received {
            served: all.served.wrapping_sub(own.served),
            reserved: all.reserved.wrapping_sub(own.reserved),
        };
        let before = std::mem::replace(&mut self.sent[server], others);
        Elsewhere {
            served: others.served.wrapping_sub(before.served),
            reserved: others.reserved.wrapping_sub(before.reserved),
        }
    }

    /// A request to this server is done.
    #[inline]
    pub fn completed(&mut self, server: usize, phase: Phase) {
        self.all.count(phase);
        self.own[server].count(phase);
        self.outstanding[server] = self.outstanding[server].saturating_sub(1);
    }

    /// The server with the fewest of the client's requests, the first of equals.
    #[must_use]
    pub fn least_used(&self) -> usize {
        let servers = self.outstanding.iter().enumerate();
        servers
            .min_by_key(|(_, count)| **count)
            .map_or(0, |(server, _)| server)
    }
}

/// Which server a request goes to.
#[derive(Clone, Debug)]
pub enum Placement {
    /// Any, as data are spread by a hash.
    Random(Stream),
    /// The one with the fewest of the machine's requests, as replicas can be read from anywhere.
    LeastUsed,
}

/// What happens in [`DmClockCluster`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DmClockEvent {
    /// A machine's source issues a request.
    Issue(u32),
    /// A slot of a server is free.
    Finish {
        /// Which server.
        server: u16,
        /// Which of its slots.
        slot: u16,
    },
    /// Something may go at a server that had to wait.
    Wake(u16),
}

type Server<V> = Station<DistributedRequest, V, MClock<Waiting<DistributedRequest>>>;

/// Virtual machines before several servers.
#[derive(Clone, Debug)]
pub struct DmClockCluster<A, V> {
    vms: Vec<QosVm<A>>,
    trackers: Vec<ServiceTracker>,
    servers: Vec<Server<V>>,
    wakes: Vec<Wakes>,
    placement: Placement,
    /// Whether servers learn what others did; without it each runs plain mClock.
    told: bool,
}

impl<A: Source, V: Service<DistributedRequest>> DmClockCluster<A, V> {
    /// Machines with their policies before servers of these devices, each `depth` requests deep.
    ///
    /// # Errors
    /// When a policy makes no sense.
    pub fn new(
        vms: Vec<QosVm<A>>,
        policies: &[QosPolicy],
        cost: CostRule,
        depth: u16,
        devices: Vec<V>,
        placement: Placement,
    ) -> Result<Self, LeadlineError> {
        let scheduler = MClock::new(policies, cost)?;
        let server = |device| Station::new(u32::from(depth), device, scheduler.clone());
        let trackers = vec![ServiceTracker::new(devices.len()); vms.len()];
        Ok(Self {
            vms,
            trackers,
            wakes: vec![Wakes::default(); devices.len()],
            servers: devices.into_iter().map(server).collect(),
            placement,
            told: true,
        })
    }

    /// The same without counts from elsewhere: mClock at each server, for comparison.
    #[must_use]
    pub fn untold(self) -> Self {
        Self {
            told: false,
            ..self
        }
    }

    /// The machines.
    #[must_use]
    pub fn vms(&self) -> &[QosVm<A>] {
        &self.vms
    }

    /// Forgets all measurements but the series: the end of the warm-up.
    pub fn restart_measuring(&mut self, now: Nanos) {
        for server in &mut self.servers {
            server.restart_measuring(now);
        }
        for vm in &mut self.vms {
            vm.restart_measuring();
        }
    }

    #[allow(clippy::cast_possible_truncation)] // below the number of servers
    fn issue(&mut self, now: Nanos, index: u32, schedule: &mut Schedule<DmClockEvent>) {
        let vm = &mut self.vms[index as usize];
        if let Some(time) = vm.source.postpone(now) {
            schedule.at(time, DmClockEvent::Issue(index));
            return;
        }
        if let Some(time) = vm.source.after_issue(now) {
            schedule.at(time, DmClockEvent::Issue(index));
        }
        let tracker = &mut self.trackers[index as usize];
        let server = match &mut self.placement {
            Placement::Random(stream) => stream.below(self.servers.len() as u64) as usize,
            Placement::LeastUsed => tracker.least_used(),
        };
        let elsewhere = tracker.sending(server);
        let job = DistributedRequest {
            request: VmRequest {
                vm: index,
                bytes: vm.size.draw(),
                issued: now,
            },
            elsewhere: if self.told {
                elsewhere
            } else {
                Elsewhere::default()
            },
            phase: Phase::Weight,
        };
        self.servers[server].arrive(now, job);
        self.start_services(now, server as u16, schedule);
    }

    fn finish(
        &mut self,
        now: Nanos,
        server: u16,
        slot: u16,
        schedule: &mut Schedule<DmClockEvent>,
    ) {
        let Some(finished) = self.servers[usize::from(server)].finish(now, u32::from(slot)) else {
            return;
        };
        let request = finished.job.request;
        self.trackers[request.vm as usize].completed(usize::from(server), finished.job.phase);
        let vm = &mut self.vms[request.vm as usize];
        vm.complete(now, request.issued, request.bytes);
        if let Some(time) = vm.source.after_completion(now) {
            schedule.at(time, DmClockEvent::Issue(request.vm));
        }
        self.start_services(now, server, schedule);
    }

    fn start_services(&mut self, now: Nanos, server: u16, schedule: &mut Schedule<DmClockEvent>) {
        let at = usize::from(server);
        loop {
            match self.servers[at].start(now) {
                Next::Job(started) => {
                    #[allow(clippy::cast_possible_truncation)] // the depth is 16 bits wide
                    let slot = started.server as u16;
                    schedule.at(started.end, DmClockEvent::Finish { server, slot });
                }
                Next::Wait(until) => {
                    if self.wakes[at].wants(until) {
                        schedule.at(until, DmClockEvent::Wake(server));
                    }
                    return;
                }
                Next::Empty => return,
            }
        }
    }
}

impl<A: Source, V: Service<DistributedRequest>> Model for DmClockCluster<A, V> {
    type Event = DmClockEvent;

    fn start(&mut self, schedule: &mut Schedule<DmClockEvent>) {
        for (index, vm) in (0..).zip(&mut self.vms) {
            while let Some(time) = vm.source.first(schedule.now()) {
                schedule.at(time, DmClockEvent::Issue(index));
            }
        }
    }

    fn handle(&mut self, now: Nanos, event: DmClockEvent, schedule: &mut Schedule<DmClockEvent>) {
        match event {
            DmClockEvent::Issue(index) => self.issue(now, index, schedule),
            DmClockEvent::Finish { server, slot } => self.finish(now, server, slot, schedule),
            DmClockEvent::Wake(server) => {
                self.wakes[usize::from(server)].came();
                self.start_services(now, server, schedule);
            }
        }
    }

    fn check(&self, now: Nanos) -> Result<(), LeadlineError> {
        let mut servers = self.servers.iter().enumerate();
        servers.try_for_each(|(index, server)| server.check(&format!("server {index}"), now))
    }
}
