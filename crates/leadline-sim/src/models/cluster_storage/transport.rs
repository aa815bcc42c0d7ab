//! The way of reads and writes of fragments: disks, network cards, the network between.

use super::plan::Access;
use super::servers::{Class, Job, Wire};
use super::{ClusterEvent, ClusterStorage, insert};
use crate::kernel::Schedule;
use crate::models::discipline::Next;
use crate::random::Sample;
use crate::time::{Nanos, SECOND, whole};

/// A read or write of one fragment, with its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leg {
    pub(super) op: u32,
    job: Job,
    disk: u32,
    /// Node that asks.
    peer: u32,
    step: u8,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Delay,
    Disk,
    /// Through the card of the sender, and of the receiver.
    Out,
    In,
}

const LOCAL: &[Step] = &[Step::Disk];
const FETCH: &[Step] = &[Step::Delay, Step::Disk, Step::Out, Step::Delay, Step::In];
const STORE: &[Step] = &[Step::Out, Step::Delay, Step::In, Step::Disk, Step::Delay];

impl ClusterStorage {
    /// Sends reads or writes of fragments on their way.
    pub(super) fn send(
        &mut self,
        now: Nanos,
        op: u32,
        (peer, class, is_write): (u32, Class, bool),
        accesses: &[Access],
        schedule: &mut Schedule<ClusterEvent>,
    ) {
        #[allow(clippy::cast_possible_truncation)] // a request's fragments
        let count = accesses.len() as u32;
        self.ops[op as usize].pending = count;
        for access in accesses {
            let disk = self.layout.fragments[access.fragment as usize].disk;
            let bytes = u32::try_from(access.end - access.start).unwrap_or(u32::MAX);
            let leg = Leg {
                op,
                job: Job {
                    leg: 0,
                    class,
                    fragment: access.fragment,
                    start: access.start,
                    bytes,
                    is_write,
                    cost: 0,
                },
                disk,
                peer,
                step: 0,
            };
            let index = insert(&mut self.legs, &mut self.free_legs, leg);
            self.legs[index as usize].job.leg = index;
            self.walk(now, index, schedule);
        }
    }

    /// Takes a leg to where it has to wait next, or ends it.
    pub(super) fn walk(&mut self, now: Nanos, index: u32, schedule: &mut Schedule<ClusterEvent>) {
        let leg = self.legs[index as usize];
        let home = self.layout.rooms[leg.disk as usize].node;
        let way = match (home == leg.peer, leg.job.is_write) {
            (true, _) => LOCAL,
            (false, false) => FETCH,
            (false, true) => STORE,
        };
        let (sender, receiver) = if leg.job.is_write {
            (leg.peer, home)
        } else {
            (home, leg.peer)
        };
        let mut step = usize::from(leg.step);
        while matches!(way.get(step), Some(Step::Delay)) && self.spec.network_latency == 0 {
            step += 1;
        }
        #[allow(clippy::cast_possible_truncation)] // five steps
        {
            self.legs[index as usize].step = step as u8 + 1;
        }
        match way.get(step) {
            Some(Step::Delay) => {
                schedule.after(self.spec.network_latency, ClusterEvent::Arrive(index));
            }
            Some(Step::Disk) => self.join_disk(now, leg, schedule),
            Some(Step::Out) => {
                self.traffic.sent_bytes[leg.job.class as usize] += u64::from(leg.job.bytes);
                self.join_wire(now, 2 * sender, leg.job, schedule);
            }
            Some(Step::In) => self.join_wire(now, 2 * receiver + 1, leg.job, schedule),
            None => self.end(now, index, schedule),
        }
    }

    fn join_disk(&mut self, now: Nanos, leg: Leg, schedule: &mut Schedule<ClusterEvent>) {
        self.traffic
            .disk(leg.job.class, leg.job.is_write, leg.job.bytes);
        let times = &self.spec.disks[leg.disk as usize].times;
        let own = if leg.job.is_write {
            &times.write
        } else {
            &times.read
        };
        let transfer = f64::from(leg.job.bytes) / times.bytes_per_second * SECOND as f64;
        let cost = whole(own.mean() + transfer);
        self.disks[leg.disk as usize].arrive(now, Job { cost, ..leg.job });
        self.serve_disk(now, leg.disk, schedule);
    }

    pub(super) fn serve_disk(
        &mut self,
        now: Nanos,
        disk: u32,
        schedule: &mut Schedule<ClusterEvent>,
    ) {
        while let Next::Job(started) = self.disks[disk as usize].start(now) {
            #[allow(clippy::cast_possible_truncation)] // checked: fewer than 60,000 disks
            let event = ClusterEvent::Disk {
                disk: disk as u16,
                server: started.server,
            };
            schedule.at(started.end, event);
        }
    }

    fn join_wire(
        &mut self,
        now: Nanos,
        wire: u32,
        job: Job,
        schedule: &mut Schedule<ClusterEvent>,
    ) {
        let bytes_per_second = self.spec.nodes[wire as usize / 2].bytes_per_second;
        let cost = Wire { bytes_per_second }.time_of(job.bytes);
        self.wires[wire as usize].arrive(now, Job { cost, ..job });
        self.serve_wire(now, wire, schedule);
    }

    pub(super) fn serve_wire(
        &mut self,
        now: Nanos,
        wire: u32,
        schedule: &mut Schedule<ClusterEvent>,
    ) {
        if let Next::Job(started) = self.wires[wire as usize].start(now) {
            schedule.at(started.end, ClusterEvent::Wire(wire));
        }
    }
}
