//! Failures, and how they are made good.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::layout::{DiskState, Health};
use super::plan::Access;
use super::servers::Class;
use super::{ClusterEvent, ClusterStorage, Op, Owner, Phase};
use crate::kernel::Schedule;
use crate::random::Stream;
use crate::time::Nanos;

/// A fragment being made whole.
#[derive(Clone, Debug)]
struct Work {
    fragment: u32,
    disk: u32,
    /// What is still to be moved, in pieces; the front one is under way.
    pieces: Pieces,
}

#[derive(Clone, Debug)]
enum Pieces {
    /// All from this one on.
    From(u64),
    /// These.
    These(VecDeque<u64>),
}

/// What waits and what is under way.
#[derive(Clone, Debug)]
pub(super) struct Recovery {
    queue: VecDeque<u32>,
    /// Fragments that nothing can be done for until a disk or a node returns.
    stalled: Vec<u32>,
    streams: Vec<Option<Work>>,
    /// Pieces of absent fragments that were written in the meantime.
    stale: BTreeMap<u32, BTreeSet<u64>>,
    random: Stream,
}

impl Recovery {
    pub(super) fn new(stream_count: usize, random: Stream) -> Self {
        Self {
            queue: VecDeque::new(),
            stalled: Vec::new(),
            streams: vec![None; stream_count],
            stale: BTreeMap::new(),
            random,
        }
    }

    /// Streams with an operation.
    pub(super) fn under_way(&self) -> u64 {
        self.streams.iter().flatten().count() as u64
    }

    /// A range of an absent fragment was written elsewhere.
    pub(super) fn missed(&mut self, access: &Access, piece_bytes: u64) {
        let pieces = access.start / piece_bytes..access.end.div_ceil(piece_bytes);
        self.stale
            .entry(access.fragment)
            .or_default()
            .extend(pieces);
    }
}

impl ClusterStorage {
    /// Disks of a failure, as indices.
    fn failing(&self, failure: u16) -> Vec<u32> {
        let disks = &self.spec.failures[usize::from(failure)].disks;
        disks
            .iter()
            .filter_map(|disk| u32::try_from(*disk).ok())
            .collect()
    }

    pub(super) fn fail(&mut self, now: Nanos, failure: u16, schedule: &mut Schedule<ClusterEvent>) {
        let own = self.spec.failures[usize::from(failure)].clone();
        self.healing.failed = self.healing.failed.or(Some(now));
        let returns = own.returns_after.map(|after| now.saturating_add(after));
        if let Some(time) = returns {
            schedule.at(time, ClusterEvent::Return(failure));
        }
        if let Some(node) = own.node {
            self.down_until[node] = Some(returns.unwrap_or(Nanos::MAX));
        }
        for disk in self.failing(failure) {
            let room = &mut self.layout.rooms[disk as usize];
            if room.state == DiskState::Up {
                room.state = DiskState::Absent;
                for fragment in self.on_disk(disk) {
                    self.lose_sight(fragment);
                }
            }
        }
        if own.is_lost {
            self.give_up(now, failure, schedule);
        } else {
            schedule.after(
                self.spec.recovery.absent_delay,
                ClusterEvent::Expire(failure),
            );
        }
    }

    /// A fragment's disk is gone, perhaps to return; one that was being made whole begins anew.
    fn lose_sight(&mut self, fragment: u32) {
        let place = &mut self.layout.fragments[fragment as usize];
        match place.health {
            Health::Live => place.health = Health::Missing,
            Health::Rebuilding => {
                let mut streams = self.recovery.streams.iter().flatten();
                let is_update = streams
                    .any(|own| own.fragment == fragment && matches!(own.pieces, Pieces::These(_)));
                if is_update {
                    place.health = Health::Missing;
                    let size = u64::from(self.spec.recovery.piece_bytes);
                    let pieces = 0..self.layout.fragment_bytes.div_ceil(size);
                    self.recovery.stale.insert(fragment, pieces.collect());
                } else {
                    place.health = Health::Gone;
                    self.recovery.queue.push_back(fragment);
                }
            }
            Health::Missing | Health::Gone => {}
        }
    }

    fn on_disk(&self, disk: u32) -> Vec<u32> {
        let all = (0u32..).zip(&self.layout.fragments);
        all.filter(|(_, own)| own.disk == disk)
            .map(|(index, _)| index)
            .collect()
    }

    /// What is still absent of a failure is lost: it is rebuilt elsewhere.
    pub(super) fn give_up(
        &mut self,
        now: Nanos,
        failure: u16,
        schedule: &mut Schedule<ClusterEvent>,
    ) {
        for disk in self.failing(failure) {
            if self.layout.rooms[disk as usize].state != DiskState::Absent {
                continue;
            }
            self.layout.rooms[disk as usize].state = DiskState::Lost;
            self.layout.rooms[disk as usize].used = 0;
            for fragment in self.on_disk(disk) {
                let place = &mut self.layout.fragments[fragment as usize];
                if place.health == Health::Missing {
                    place.health = Health::Gone;
                    self.recovery.stale.remove(&fragment);
                    self.recovery.queue.push_back(fragment);
                }
            }
        }
        self.start_streams(now, schedule);
    }

    /// What failed is back: with what it held and missed, or empty when it was given up.
    pub(super) fn come_back(
        &mut self,
        now: Nanos,
        failure: u16,
        schedule: &mut Schedule<ClusterEvent>,
    ) {
        if let Some(node) = self.spec.failures[usize::from(failure)].node {
            self.down_until[node] = None;
        }
        for disk in self.failing(failure) {
            let before = self.layout.rooms[disk as usize].state;
            self.layout.rooms[disk as usize].state = DiskState::Up;
            if before != DiskState::Absent {
                continue;
            }
            for fragment in self.on_disk(disk) {
                let place = &mut self.layout.fragments[fragment as usize];
                if self.recovery.stale.contains_key(&fragment) {
                    self.recovery.queue.push_back(fragment);
                } else if place.health == Health::Missing {
                    place.health = Health::Live;
                }
            }
        }
        self.more_is_live(now, schedule);
    }

    /// Tries again what could not be done.
    fn more_is_live(&mut self, now: Nanos, schedule: &mut Schedule<ClusterEvent>) {
        let stalled = std::mem::take(&mut self.recovery.stalled);
        self.recovery.queue.extend(stalled);
        for op in std::mem::take(&mut self.parked) {
            self.begin(now, op, schedule);
        }
        self.start_streams(now, schedule);
    }

    pub(super) fn start_streams(&mut self, now: Nanos, schedule: &mut Schedule<ClusterEvent>) {
        for stream in 0..self.recovery.streams.len() {
            if self.recovery.streams[stream].is_none() && self.take_up(now, stream) {
                self.next_piece(now, stream, schedule);
            }
        }
        let is_idle =
            self.recovery.streams.iter().all(Option::is_none) && self.recovery.queue.is_empty();
        self.healing.stalled_count = self.recovery.stalled.len() as u64;
        if is_idle && self.recovery.stalled.is_empty() && self.healing.began.is_some() {
            self.healing.ended = self.healing.ended.or(Some(now));
        }
    }

    /// Gives a stream the next fragment that something can be done for; false when there is none.
    fn take_up(&mut self, now: Nanos, stream: usize) -> bool {
        while let Some(fragment) = self.recovery.queue.pop_front() {
            let own = self.layout.fragments[fragment as usize];
            let work = match own.health {
                Health::Live | Health::Rebuilding => continue,
                Health::Missing => {
                    // It waits to be brought up to date; gone again, it does so until it is back or given up.
                    if self.layout.rooms[own.disk as usize].state != DiskState::Up {
                        continue;
                    }
                    let pieces = self.recovery.stale.remove(&fragment).unwrap_or_default();
                    Some((own.disk, Pieces::These(pieces.into_iter().collect())))
                }
                Health::Gone => {
                    let target = self.layout.target(fragment, &mut self.recovery.random);
                    target.map(|disk| (disk, Pieces::From(0)))
                }
            };
            let Some((disk, pieces)) = work else {
                self.recovery.stalled.push(fragment);
                continue;
            };
            if matches!(pieces, Pieces::From(_)) {
                self.layout.rooms[disk as usize].used += self.layout.fragment_bytes;
            }
            let place = &mut self.layout.fragments[fragment as usize];
            (place.disk, place.health) = (disk, Health::Rebuilding);
            self.recovery.streams[stream] = Some(Work {
                fragment,
                disk,
                pieces,
            });
            self.healing.began = self.healing.began.or(Some(now));
            self.healing.ended = None;
            return true;
        }
        false
    }

    /// Whether a stream's fragment is still being made whole where it was meant to be.
    fn is_valid(&self, work: &Work) -> bool {
        let own = self.layout.fragments[work.fragment as usize];
        own.health == Health::Rebuilding && own.disk == work.disk
    }

    fn next_piece(&mut self, now: Nanos, stream: usize, schedule: &mut Schedule<ClusterEvent>) {
        let Some(work) = self.recovery.streams[stream].clone() else {
            return;
        };
        if !self.is_valid(&work) {
            self.recovery.streams[stream] = None; // it failed in turn, and waits in the queue or as absent
            self.start_streams(now, schedule);
            return;
        }
        let size = u64::from(self.spec.recovery.piece_bytes);
        let piece = match &work.pieces {
            Pieces::From(piece) => {
                Some(*piece).filter(|own| own * size < self.layout.fragment_bytes)
            }
            Pieces::These(pieces) => pieces.front().copied(),
        };
        let Some(piece) = piece else {
            self.whole(now, stream, &work, schedule);
            return;
        };
        let (start, end) = (
            piece * size,
            ((piece + 1) * size).min(self.layout.fragment_bytes),
        );
        let mut reads = Vec::new();
        if !self.layout.sources(work.fragment, (start, end), &mut reads) {
            self.stall(stream, work);
            self.start_streams(now, schedule);
            return;
        }
        #[allow(clippy::cast_possible_truncation)] // a piece's bytes, and few streams
        let op = self.open(Op {
            owner: Owner::Stream(stream as u32),
            pending: 0,
            phase: Phase::Gather,
            start,
            bytes: (end - start) as u32,
            is_write: true,
            issued: now,
        });
        let node = self.layout.rooms[work.disk as usize].node;
        self.send(now, op, (node, Class::Resync, false), &reads, schedule);
    }

    fn stall(&mut self, stream: usize, work: Work) {
        self.recovery.streams[stream] = None;
        let place = &mut self.layout.fragments[work.fragment as usize];
        match work.pieces {
            Pieces::From(_) => {
                place.health = Health::Gone;
                let used = &mut self.layout.rooms[work.disk as usize].used;
                *used = used.saturating_sub(self.layout.fragment_bytes);
            }
            Pieces::These(pieces) => {
                place.health = Health::Missing;
                self.recovery
                    .stale
                    .insert(work.fragment, pieces.into_iter().collect());
            }
        }
        self.recovery.stalled.push(work.fragment);
    }

    /// All of a fragment is there.
    fn whole(
        &mut self,
        now: Nanos,
        stream: usize,
        work: &Work,
        schedule: &mut Schedule<ClusterEvent>,
    ) {
        self.recovery.streams[stream] = None;
        self.layout.fragments[work.fragment as usize].health = Health::Live;
        self.healing.fragment_count += 1;
        if self.parked.is_empty() && self.recovery.stalled.is_empty() {
            self.start_streams(now, schedule);
        } else {
            self.more_is_live(now, schedule);
        }
    }

    /// What a stream has read is there to be written, or what it wrote is.
    pub(super) fn resync_step(
        &mut self,
        now: Nanos,
        index: u32,
        op: Op,
        schedule: &mut Schedule<ClusterEvent>,
    ) {
        let Owner::Stream(stream) = op.owner else {
            return;
        };
        let stream = stream as usize;
        let Some(work) = &mut self.recovery.streams[stream] else {
            self.close(index);
            return;
        };
        if op.phase == Phase::Gather {
            let (node, fragment) = (self.layout.rooms[work.disk as usize].node, work.fragment);
            let access = Access {
                fragment,
                start: op.start,
                end: op.start + u64::from(op.bytes),
            };
            self.ops[index as usize].phase = Phase::Last;
            self.send(now, index, (node, Class::Resync, true), &[access], schedule);
            return;
        }
        match &mut work.pieces {
            Pieces::From(next) => *next += 1,
            Pieces::These(pieces) => drop(pieces.pop_front()),
        }
        self.healing.bytes += u64::from(op.bytes);
        self.resynced
            .record(now.saturating_sub(self.measured_from), f64::from(op.bytes));
        self.close(index);
        self.next_piece(now, stream, schedule);
    }
}
