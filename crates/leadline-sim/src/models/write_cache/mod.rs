//! Write caches before a slow device: what they speed up, and what a power loss takes away.
//!
//! # Model
//! Writes of blocks are acknowledged when they are on the backing device (write-through), in memory (RAM write-back) or
//! in a log on a device of its own (log-structured). Memory is flushed block by block. The log is appended to with all
//! writes that wait, one after the other on the device; its oldest blocks are destaged in batches, of which each block
//! is written once, and their room is free when all of a batch is written. Every block has a version: at the end of each
//! window the contents are rebuilt from the backing device and the log alone, as after a power loss, and compared with
//! what was acknowledged.
//!
//! # Assumptions
//! The backing device does one request at a time; its seek grows with the square root of the distance, then comes a
//! random part of a revolution. What a device has finished survives, what it is doing does not. The log survives.
//!
//! # Parameters
//! [`Spec`].
//!
//! # Limits
//! Writes only, of one size; no reads, no mirroring of memory to another machine, no battery, no write cache inside the
//! devices, no cost of the log's index.
//!
//! # Sources
//! Rosenblum and Ousterhout, "The design and implementation of a log-structured file system" (SOSP '91); `StarWind`,
//! "Log-structured Write Cache" (2018), for memory that is flushed as it was filled and the log before flat storage;
//! Ruemmler and Wilkes, "An introduction to disk drive modeling" (IEEE Computer 27, 1994), for the seek.

mod spec;
pub mod system;

pub use spec::{Backing, Kind, Spec, WRITE_CACHES};

use std::collections::{BTreeSet, VecDeque};

use serde::Serialize;

use crate::kernel::{Model, Schedule};
use crate::measure::{Batches, Durations, WindowSeries};
use crate::models::Account;
use crate::random::{Exponential, Sample, Stream, Streams};
use crate::time::{Nanos, SECOND, millis};
use leadline_stats::error::{LeadlineError, wrong};

/// Writes in the system before an overload ends the run.
const WRITES_MAX: usize = 2_000_000;

/// What can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WriteEvent {
    /// A write comes.
    Issue,
    /// A write that is in memory is acknowledged.
    Acknowledge(u32),
    /// An append to the log is on its device.
    Logged,
    /// The backing device has written a block.
    Written,
    /// A window ends: what would a power loss take away now?
    Look,
}

#[derive(Clone, Copy, Debug)]
struct Write {
    block: u32,
    version: u64,
    issued: Nanos,
    /// Of a write acknowledged in memory: whether one of acknowledgement and log is past.
    is_half_done: bool,
}

/// What was found at the beginning of a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Look {
    /// Blocks whose acknowledged contents a power loss would have taken away.
    pub lost_blocks: u64,
    /// Blocks of the memory or the log in use.
    pub held_blocks: u64,
}

/// What is measured.
#[derive(Clone, Debug)]
pub struct WriteMeasures {
    /// From issue to acknowledgement, ns.
    pub responses: Durations,
    /// The same by window, ms.
    pub latency_ms: WindowSeries,
    /// The same in order, ns.
    pub in_order: Batches,
    /// What a power loss would take, by window.
    pub looks: Vec<Look>,
    /// Writes of the backing device, and those of them that followed the one before.
    pub backing: (u64, u64),
    /// By window, how many blocks the backing device wrote.
    pub written: WindowSeries,
    /// Appends to the log, and blocks in them.
    pub log: (u64, u64),
}

impl WriteMeasures {
    fn new(window: Nanos) -> Self {
        Self {
            responses: Durations::default(),
            latency_ms: WindowSeries::new(window),
            in_order: Batches::default(),
            looks: Vec::new(),
            backing: (0, 0),
            written: WindowSeries::new(window),
            log: (0, 0),
        }
    }
}

/// The system.
#[derive(Clone, Debug)]
pub struct WriteCache {
    spec: Spec,
    /// What is measured since the last restart.
    pub measures: WriteMeasures,
    total: Account,
    measured_from: Nanos,
    places: Stream,
    gaps: Stream,
    turns: Stream,
    next_block: u32,
    versions: u64,
    writes: Vec<Write>,
    free: Vec<u32>,
    /// Newest acknowledged version of each block; what is on the backing device.
    acknowledged: Vec<u64>,
    backing: Vec<u64>,
    /// Writes for which there is no room.
    blocked: VecDeque<u32>,
    /// The write, with its version, that the backing device is at.
    writing: Option<(u32, u64)>,
    /// Write-through: slots to write, of which the first is being written.
    through: VecDeque<u32>,
    head: u32,
    memory: Memory,
    log: Log,
}

/// Blocks in memory that are not on the backing device.
#[derive(Clone, Debug, Default)]
struct Memory {
    dirty: Vec<u64>,
    arrived: VecDeque<u32>,
    sorted: BTreeSet<u32>,
    held: usize,
}

/// The log: what waits for it, what is being appended, what is there.
#[derive(Clone, Debug, Default)]
struct Log {
    waiting: VecDeque<u32>,
    appending: Vec<u32>,
    entries: VecDeque<(u32, u64)>,
    /// Newest version of each block that is in the log.
    newest: Vec<u64>,
    batch: VecDeque<u32>,
    batch_len: usize,
}

impl Log {
    fn held(&self) -> usize {
        self.entries.len() + self.appending.len() + self.waiting.len()
    }
}

impl WriteCache {
    /// A system at time 0.
    ///
    /// # Errors
    /// When the parameters make none.
    pub fn new(spec: Spec) -> Result<Self, LeadlineError> {
        spec.check()?;
        let streams = Streams::new(spec.seed);
        let none = vec![0; spec.blocks as usize];
        Ok(Self {
            measures: WriteMeasures::new(spec.window),
            total: Account::default(),
            measured_from: 0,
            places: streams.stream("writes", "blocks"),
            gaps: streams.stream("writes", "gaps"),
            turns: streams.stream("backing", "rotation"),
            next_block: 0,
            versions: 0,
            writes: Vec::new(),
            free: Vec::new(),
            acknowledged: none.clone(),
            backing: none.clone(),
            blocked: VecDeque::new(),
            writing: None,
            through: VecDeque::new(),
            head: 0,
            memory: Memory {
                dirty: none.clone(),
                ..Memory::default()
            },
            log: Log {
                newest: none,
                ..Log::default()
            },
            spec,
        })
    }

    /// Forgets what was measured.
    pub fn restart_measuring(&mut self, now: Nanos) {
        self.measures = WriteMeasures::new(self.spec.window);
        self.total.restart_measuring(now);
        self.measured_from = now;
    }

    fn issue(&mut self, now: Nanos, schedule: &mut Schedule<WriteEvent>) {
        if self.spec.outstanding.is_none() {
            let mean = SECOND as f64 / self.spec.rate;
            let gap = Exponential { mean }.sample(&mut self.gaps);
            schedule.after(gap, WriteEvent::Issue);
        }
        let block = if self.places.chance(self.spec.random_share) {
            #[allow(clippy::cast_possible_truncation)] // below the number of blocks
            let block = self.places.below(u64::from(self.spec.blocks)) as u32;
            block
        } else {
            self.next_block
        };
        self.next_block = (block + 1) % self.spec.blocks;
        self.versions += 1;
        let write = Write {
            block,
            version: self.versions,
            issued: now,
            is_half_done: false,
        };
        let slot = if let Some(slot) = self.free.pop() {
            self.writes[slot as usize] = write;
            slot
        } else {
            self.writes.push(write);
            u32::try_from(self.writes.len() - 1).unwrap_or(u32::MAX)
        };
        if self.writes.len() > WRITES_MAX {
            schedule.stop();
        }
        self.total.enter(now);
        self.blocked.push_back(slot);
        self.admit(schedule);
    }

    /// Lets in what there is room for, in order.
    fn admit(&mut self, schedule: &mut Schedule<WriteEvent>) {
        while let Some(slot) = self.blocked.front().copied() {
            let Write { block, version, .. } = self.writes[slot as usize];
            match self.spec.kind {
                Kind::WriteThrough => self.through.push_back(slot),
                Kind::RamWriteBack => {
                    let memory = &mut self.memory;
                    if memory.dirty[block as usize] == 0 {
                        if memory.held >= self.spec.cache_blocks {
                            break;
                        }
                        memory.held += 1;
                        if self.spec.is_sorted {
                            memory.sorted.insert(block);
                        } else {
                            memory.arrived.push_back(block);
                        }
                    }
                    memory.dirty[block as usize] = version;
                    schedule.after(self.spec.ram, WriteEvent::Acknowledge(slot));
                }
                Kind::LogStructured | Kind::LogBehindRam => {
                    if self.log.held() >= self.spec.cache_blocks {
                        break;
                    }
                    self.log.waiting.push_back(slot);
                    if self.spec.kind == Kind::LogBehindRam {
                        schedule.after(self.spec.ram, WriteEvent::Acknowledge(slot));
                    }
                }
            }
            self.blocked.pop_front();
        }
        self.append(schedule);
        self.write(schedule);
    }

    /// Appends all that waits to the log.
    fn append(&mut self, schedule: &mut Schedule<WriteEvent>) {
        if !self.log.appending.is_empty() || self.log.waiting.is_empty() {
            return;
        }
        self.log.appending = self.log.waiting.drain(..).collect();
        let count = self.log.appending.len();
        let bytes = count as f64 * f64::from(self.spec.block_bytes);
        let transfer = bytes / self.spec.log_bytes_per_second * SECOND as f64;
        self.measures.log.0 += 1;
        self.measures.log.1 += count as u64;
        schedule.after(
            crate::time::whole(self.spec.log_latency + transfer),
            WriteEvent::Logged,
        );
    }

    fn logged(&mut self, now: Nanos, schedule: &mut Schedule<WriteEvent>) {
        for slot in std::mem::take(&mut self.log.appending) {
            let Write { block, version, .. } = self.writes[slot as usize];
            self.log.entries.push_back((block, version));
            self.log.newest[block as usize] = version;
            if self.spec.kind == Kind::LogStructured {
                self.acknowledge(now, slot, schedule);
            } else {
                self.free_when_done(slot);
            }
        }
        self.admit(schedule);
    }

    /// Gives the idle backing device its next block.
    fn write(&mut self, schedule: &mut Schedule<WriteEvent>) {
        if self.writing.is_some() {
            return;
        }
        let next = match self.spec.kind {
            Kind::WriteThrough => self.through.front().map(|slot| {
                let own = self.writes[*slot as usize];
                (own.block, own.version)
            }),
            Kind::RamWriteBack => self.flushed(),
            Kind::LogStructured | Kind::LogBehindRam => self.destaged(),
        };
        let Some((block, version)) = next else {
            return;
        };
        let blocks = f64::from(self.spec.blocks);
        let distance = f64::from(block.abs_diff(self.head)) / blocks;
        let bytes = f64::from(self.spec.block_bytes);
        let time = self.spec.backing.time(distance, bytes, &mut self.turns);
        self.measures.backing.0 += 1;
        self.measures.backing.1 += u64::from(block == self.head);
        self.head = block + 1;
        self.writing = Some((block, version));
        schedule.after(time, WriteEvent::Written);
    }

    /// Takes the next block out of memory.
    fn flushed(&mut self) -> Option<(u32, u64)> {
        let memory = &mut self.memory;
        let block = if self.spec.is_sorted {
            let ahead = memory.sorted.range(self.head..).next();
            ahead.or_else(|| memory.sorted.first()).copied()
        } else {
            memory.arrived.pop_front()
        }?;
        memory.sorted.remove(&block);
        let version = std::mem::take(&mut memory.dirty[block as usize]);
        Some((block, version))
    }

    /// The next block of the batch that is destaged; begins a batch when the last is done and there is enough.
    fn destaged(&mut self) -> Option<(u32, u64)> {
        while self.log.batch.is_empty() {
            if self.log.entries.len() < self.spec.batch_blocks {
                return None;
            }
            self.begin_batch();
            // All of it may have been written with the last batch, as newer contents of the same blocks.
            self.truncate();
        }
        let block = self.log.batch.pop_front()?;
        Some((block, self.log.newest[block as usize]))
    }

    fn begin_batch(&mut self) {
        let log = &mut self.log;
        let mut batch: Vec<u32> = Vec::new();
        let mut seen = BTreeSet::new();
        for (block, version) in log.entries.iter().take(self.spec.batch_blocks) {
            if self.backing[*block as usize] < *version && seen.insert(*block) {
                batch.push(*block);
            }
        }
        if self.spec.is_sorted {
            batch.sort_unstable();
        }
        log.batch_len = self.spec.batch_blocks;
        log.batch = batch.into();
    }

    fn written(&mut self, now: Nanos, schedule: &mut Schedule<WriteEvent>) {
        let Some((block, version)) = self.writing.take() else {
            return;
        };
        let since = now - self.measured_from;
        self.measures.written.record(since, 1.0);
        self.backing[block as usize] = version;
        match self.spec.kind {
            Kind::WriteThrough => {
                if let Some(slot) = self.through.pop_front() {
                    self.acknowledge(now, slot, schedule);
                }
            }
            Kind::RamWriteBack => self.memory.held -= 1,
            Kind::LogStructured | Kind::LogBehindRam => self.truncate(),
        }
        self.admit(schedule);
    }

    /// Frees the room of a batch of which everything is written.
    fn truncate(&mut self) {
        let log = &mut self.log;
        if !log.batch.is_empty() {
            return;
        }
        for (block, version) in log.entries.drain(..std::mem::take(&mut log.batch_len)) {
            if log.newest[block as usize] == version {
                log.newest[block as usize] = 0;
            }
        }
    }

    fn acknowledge(&mut self, now: Nanos, slot: u32, schedule: &mut Schedule<WriteEvent>) {
        let Write {
            block,
            version,
            issued,
            ..
        } = self.writes[slot as usize];
        let known = &mut self.acknowledged[block as usize];
        *known = (*known).max(version);
        let response = now - issued;
        let since = now - self.measured_from;
        self.total.leave(now, issued);
        self.measures.responses.record(response);
        self.measures.latency_ms.record(since, millis(response));
        self.measures.in_order.record(response as f64);
        self.free_when_done(slot);
        if self.spec.outstanding.is_some() {
            schedule.at(now, WriteEvent::Issue);
        }
    }

    /// A write behind memory is done with when it is both acknowledged and logged; others when acknowledged.
    fn free_when_done(&mut self, slot: u32) {
        let own = &mut self.writes[slot as usize];
        if self.spec.kind == Kind::LogBehindRam && !own.is_half_done {
            own.is_half_done = true;
            return;
        }
        self.free.push(slot);
    }

    /// Contents after a power loss now, against what was acknowledged.
    fn look(&self) -> Look {
        let mut found = self.backing.clone();
        for (block, version) in &self.log.entries {
            let own = &mut found[*block as usize];
            *own = (*own).max(*version);
        }
        let pairs = found.iter().zip(&self.acknowledged);
        let lost = pairs.filter(|(found, wanted)| found < wanted).count();
        let held = match self.spec.kind {
            Kind::WriteThrough => 0,
            Kind::RamWriteBack => self.memory.held,
            Kind::LogStructured | Kind::LogBehindRam => self.log.held(),
        };
        Look {
            lost_blocks: lost as u64,
            held_blocks: held as u64,
        }
    }
}

impl Model for WriteCache {
    type Event = WriteEvent;

    fn start(&mut self, schedule: &mut Schedule<WriteEvent>) {
        for _ in 0..self.spec.outstanding.unwrap_or(1) {
            schedule.at(0, WriteEvent::Issue);
        }
        schedule.at(0, WriteEvent::Look);
    }

    fn handle(&mut self, now: Nanos, event: WriteEvent, schedule: &mut Schedule<WriteEvent>) {
        match event {
            WriteEvent::Issue => self.issue(now, schedule),
            WriteEvent::Acknowledge(slot) => self.acknowledge(now, slot, schedule),
            WriteEvent::Logged => self.logged(now, schedule),
            WriteEvent::Written => self.written(now, schedule),
            WriteEvent::Look => {
                let look = self.look();
                self.measures.looks.push(look);
                schedule.after(self.spec.window, WriteEvent::Look);
            }
        }
    }

    fn check(&self, now: Nanos) -> Result<(), LeadlineError> {
        self.total.check("writes", now)?;
        let is_over = self.look().held_blocks > self.spec.cache_blocks as u64;
        if is_over {
            let found = self.look().held_blocks;
            return wrong(
                "cache",
                found,
                "at most what there is room for (a defect of the model)",
            );
        }
        Ok(())
    }
}
