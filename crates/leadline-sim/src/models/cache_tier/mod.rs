//! Disk groups: a cache device that buffers writes before capacity devices, filling and destaging.
//!
//! # Model
//! A fluid in steps of fixed length, no discrete events. Each group has a level of buffered bytes. Front-end writes times
//! the copies written raise it, at most at the speed of the cache device; destaging lowers it, at most at the speed of all
//! capacity devices, above a level at which it starts. From `slow_from` to `slow_to` the admitted rate falls in a line
//! from the cache device's to that of destaging (congestion), and a full buffer admits what is destaged. Loads have
//! requests outstanding, whose number by latency is their rate, or a rate of their own, whose excess waits. Reads that
//! miss occupy capacity devices, which destage the less. A failed cache device takes its group away, a failed capacity
//! device its data; after a delay that data is written again to the groups left, behind the guests' writes.
//!
//! # Assumptions
//! Load, copies and rebuilds are spread evenly over the groups that work. Requests are many and small against the buffer.
//! While there is something to destage, reads that miss occupy at most half of the capacity devices' time. An overload
//! delays and never loses.
//!
//! # Parameters
//! [`Spec`]: groups, loads, protection, levels, failures.
//!
//! # Limits
//! No overwriting of data while it is buffered, no locality in destaging, no interference of the cache device's own reads
//! and writes, no network. What an erasure code reads for a small write is counted, but takes no time. How real systems
//! slow writes down is not published in numbers: the line is the simplest rule with the published behaviour, that
//! admission falls with free space until it matches destaging.
//!
//! # Sources
//! The balance dB/dt = rate x copies - drain. Broadcom KB 326870, for delays that grow until writes match destaging; KB
//! 326650, for destaging that is expected below 70 % free; C. Hogan, "VSAN 6.0 part 10: 10 % cache recommendation for
//! AF-VSAN" (2015), for hybrid and all-flash groups.

mod protection;
mod spec;
pub mod system;

pub use protection::{Protection, Stripe, UnitCount};
pub use spec::{FailureSpec, GroupSpec, LoadSpec, Part, Spec};

use std::hash::Hasher;

use serde::Serialize;

use crate::measure::TraceHash;
use leadline_stats::error::LeadlineError;

/// Of the capacity devices' time, what reads that miss may take while data waits to be destaged.
const READ_TIME_MAX: f64 = 0.5;

/// Distance of a share from a level at which it counts as there: rounding.
const FULL: f64 = 1e-9;

/// Means over one window, of one group.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct GroupWindow {
    /// Level of the buffer, share.
    pub fill: f64,
    /// Bytes of writes that came into the buffer per second, copies and rebuilds included.
    pub inflow: f64,
    /// Bytes destaged per second.
    pub destaged: f64,
    /// Congestion, 0 to 1.
    pub congestion: f64,
    /// Share of the capacity devices' time that reads took.
    pub read_busy: f64,
}

/// Means over one window, of all loads; what one load did is in the same place.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LoadWindow {
    /// Reads per second.
    pub reads: f64,
    /// Writes per second.
    pub writes: f64,
    /// Bytes per second.
    pub bytes: f64,
    /// Requests in the system.
    pub inside: f64,
}

/// A rebuild: bytes to write, when it began and ended, seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rebuild {
    /// When the failure happened.
    pub failed: f64,
    /// Bytes the failure took away.
    pub lost: f64,
    /// When the first byte was written again.
    pub began: Option<f64>,
    /// When the last was.
    pub ended: Option<f64>,
    #[serde(skip)]
    left: f64,
    #[serde(skip)]
    due: f64,
}

#[derive(Clone, Debug)]
struct Group {
    is_working: bool,
    devices: f64,
    level: f64,
    read_busy: f64,
    sum: GroupWindow,
    series: Vec<GroupWindow>,
    slowed: Option<f64>,
}

#[derive(Clone, Debug, Default)]
struct Load {
    /// Requests that came and were not admitted yet.
    waiting: f64,
    sum: LoadWindow,
    series: Vec<LoadWindow>,
}

/// The run.
#[derive(Clone, Debug)]
pub struct CacheTier {
    spec: Spec,
    copies: f64,
    groups: Vec<Group>,
    loads: Vec<Load>,
    rebuilds: Vec<Rebuild>,
    steps: u64,
    trace: TraceHash,
    /// Bytes in, destaged and lost with failed groups: what conservation is checked with.
    totals: [f64; 3],
    started: f64,
}

/// What a group can do in this step, in bytes per second.
#[derive(Clone, Copy)]
struct Ability {
    inflow: f64,
    drain: f64,
    congestion: f64,
    is_slowed: bool,
}

impl CacheTier {
    /// A run at time 0.
    ///
    /// # Errors
    /// When the parameters make none.
    pub fn new(spec: Spec) -> Result<Self, LeadlineError> {
        spec.check()?;
        let groups: Vec<Group> = spec
            .groups
            .iter()
            .map(|own| Group {
                is_working: true,
                devices: f64::from(own.device_count),
                level: own.fill * own.buffer_bytes(),
                read_busy: 0.0,
                sum: GroupWindow::default(),
                series: Vec::new(),
                slowed: None,
            })
            .collect();
        Ok(Self {
            copies: spec.protection.small_write().written as f64,
            started: groups.iter().map(|own| own.level).sum(),
            loads: vec![Load::default(); spec.loads.len()],
            groups,
            rebuilds: Vec::new(),
            steps: 0,
            trace: TraceHash::default(),
            totals: [0.0; 3],
            spec,
        })
    }

    /// Seconds since the start.
    #[must_use]
    pub fn now(&self) -> f64 {
        self.steps as f64 * self.spec.step
    }

    /// Steps so far.
    #[must_use]
    pub fn step_count(&self) -> u64 {
        self.steps
    }

    /// One number over every step.
    #[must_use]
    pub fn trace(&self) -> u64 {
        self.trace.value()
    }

    /// Windows of a group.
    #[must_use]
    pub fn group(&self, index: usize) -> &[GroupWindow] {
        &self.groups[index].series
    }

    /// When the buffer of a group first slowed writes, seconds.
    #[must_use]
    pub fn slowed(&self, index: usize) -> Option<f64> {
        self.groups[index].slowed
    }

    /// Windows of a load.
    #[must_use]
    pub fn load(&self, index: usize) -> &[LoadWindow] {
        &self.loads[index].series
    }

    /// Rebuilds in the order of their failures.
    #[must_use]
    pub fn rebuilds(&self) -> &[Rebuild] {
        &self.rebuilds
    }

    /// Lets so many windows pass.
    pub fn run(&mut self, windows: u64) {
        for _ in 0..windows * self.spec.window_steps {
            self.step();
            if self.steps % self.spec.window_steps == 0 {
                self.close_window();
            }
        }
    }

    /// Whether what came into the buffers is there, destaged, or lost.
    ///
    /// # Errors
    /// When it is not, which is a defect of the model.
    pub fn check(&self) -> Result<(), LeadlineError> {
        let held: f64 = self.groups.iter().map(|own| own.level).sum();
        let [came, destaged, lost] = self.totals;
        let error = self.started + came - destaged - lost - held;
        if error.abs() <= 1e-6 * (self.started + came).max(1.0) {
            return Ok(());
        }
        Err(LeadlineError::new(
            format!("buffers at {:.3} s", self.now()),
            format!("{error} bytes too many came in"),
            "what comes in to be held, destaged or lost",
            "Please report it with the scenario.",
        ))
    }

    fn step(&mut self) {
        self.fail();
        let abilities: Vec<Ability> = (0..self.groups.len()).map(|n| self.ability(n)).collect();
        let wanted: Vec<f64> = (0..self.loads.len()).map(|n| self.wanted(n)).collect();
        let mut came = self.admit(&abilities, &wanted);
        self.rebuild(&abilities, &mut came);
        for (index, ability) in abilities.iter().enumerate() {
            self.destage(index, *ability, came[index]);
        }
        self.steps += 1;
    }

    /// Failures that are due.
    fn fail(&mut self) {
        let step = self.spec.step;
        for own in &self.spec.failures {
            if step_of(own.at, step) != self.steps {
                continue;
            }
            let (group, parts) = (&mut self.groups[own.group], &self.spec.groups[own.group]);
            let devices = match own.part {
                Part::Cache => group.devices,
                Part::Device => group.devices.min(1.0),
            };
            group.devices -= devices;
            if group.devices < 0.5 || own.part == Part::Cache {
                group.is_working = false;
                self.totals[2] += std::mem::take(&mut group.level);
            }
            let lost = devices * parts.device_used;
            self.rebuilds.push(Rebuild {
                failed: own.at,
                lost,
                began: None,
                ended: None,
                left: lost,
                due: own.at + own.delay,
            });
        }
    }

    fn ability(&self, index: usize) -> Ability {
        let (own, parts) = (&self.groups[index], &self.spec.groups[index]);
        if !own.is_working {
            return Ability {
                inflow: 0.0,
                drain: 0.0,
                congestion: 0.0,
                is_slowed: false,
            };
        }
        let (bytes, step) = (parts.buffer_bytes(), self.spec.step);
        let drain = own.devices * parts.device_write * (1.0 - own.read_busy);
        let fill = own.level / bytes;
        let (low, high) = (self.spec.slow_from, self.spec.slow_to);
        let congestion = if fill >= high - FULL {
            1.0
        } else if fill <= low {
            0.0
        } else {
            (fill - low) / (high - low)
        };
        let least = drain.min(parts.cache_write);
        let slowed = parts.cache_write + congestion * (least - parts.cache_write);
        // What fits until the end of the step.
        let fits = (bytes - own.level) / step + drain;
        let inflow = if congestion < 1.0 { slowed } else { least }
            .min(fits)
            .max(0.0);
        Ability {
            inflow,
            drain,
            congestion,
            is_slowed: inflow < parts.cache_write,
        }
    }

    /// Requests per second a load would do now if nothing slowed it, and the requests it has in the system then.
    fn wanted(&self, index: usize) -> f64 {
        let own = &self.spec.loads[index];
        if let Some((on, off)) = own.burst {
            let now = self.now() + 0.5 * self.spec.step;
            let cycle = now - (now / (on + off)).floor() * (on + off);
            if cycle >= on {
                // What waits goes on; closed loads leave nothing waiting.
                return self.loads[index].waiting / self.spec.step;
            }
        }
        match own.outstanding {
            Some(outstanding) => outstanding / self.latency(own),
            None => own.rate + self.loads[index].waiting / self.spec.step,
        }
    }

    /// Mean latency of an unhindered request, seconds.
    fn latency(&self, own: &LoadSpec) -> f64 {
        let hits = self.spec.read_hits;
        let read = hits * self.spec.hit_latency + (1.0 - hits) * self.spec.miss_latency;
        own.read_share * read + (1.0 - own.read_share) * self.spec.write_latency
    }

    /// Lets requests in as far as each group can take them; bytes per second that come into each buffer.
    fn admit(&mut self, abilities: &[Ability], wanted: &[f64]) -> Vec<f64> {
        let working = self
            .groups
            .iter()
            .filter(|own| own.is_working)
            .count()
            .max(1) as f64;
        let demand = |part: fn(&LoadSpec) -> f64| -> f64 {
            let loads = self.spec.loads.iter().zip(wanted);
            loads.map(|(own, rate)| part(own) * rate).sum::<f64>() / working
        };
        let writes = self.copies * demand(|own| (1.0 - own.read_share) * own.bytes);
        let misses = (1.0 - self.spec.read_hits) * demand(|own| own.read_share);
        let shares: Vec<(f64, f64)> = (0..self.groups.len())
            .map(|index| self.admitted(index, abilities[index], writes, misses))
            .collect();
        let now = self.now();
        for (own, (ability, share)) in self.groups.iter_mut().zip(abilities.iter().zip(&shares)) {
            own.read_busy = 0.0;
            if own.slowed.is_none() && ability.is_slowed && share.0 < 1.0 - FULL {
                own.slowed = Some(now);
            }
        }
        let mut came = vec![0.0; self.groups.len()];
        for (index, rate) in wanted.iter().enumerate() {
            self.let_in(index, *rate / working, &shares, &mut came);
        }
        came
    }

    /// Shares of the wanted writes and reads that a group takes.
    fn admitted(&self, index: usize, ability: Ability, writes: f64, misses: f64) -> (f64, f64) {
        let (own, parts) = (&self.groups[index], &self.spec.groups[index]);
        if !own.is_working {
            return (0.0, 0.0);
        }
        let share = |wanted: f64, possible: f64| {
            if wanted > possible {
                possible / wanted
            } else {
                1.0
            }
        };
        let is_destaging = own.level > self.spec.destage_from * parts.buffer_bytes();
        let time = if is_destaging { READ_TIME_MAX } else { 1.0 };
        let busy = misses * parts.fetch_seconds / own.devices;
        (share(writes, ability.inflow), share(busy, time))
    }

    /// One load, of which `rate` requests per second want into each group that works.
    fn let_in(&mut self, index: usize, rate: f64, shares: &[(f64, f64)], came: &mut [f64]) {
        let own = &self.spec.loads[index];
        let (reads, writes) = (own.read_share, 1.0 - own.read_share);
        let bound = |(write, read): (f64, f64)| {
            let write = if writes > 0.0 { write } else { 1.0 };
            let read = if reads > 0.0 { read } else { 1.0 };
            write.min(read)
        };
        let is_working = |group: &usize| self.groups[*group].is_working;
        let working: Vec<usize> = (0..shares.len()).filter(is_working).collect();
        // Outstanding requests gather where it is slowest.
        let least = working
            .iter()
            .fold(1.0, |least: f64, group| least.min(bound(shares[*group])));
        let mut done = 0.0;
        for group in &working {
            let share = if own.outstanding.is_some() {
                least
            } else {
                bound(shares[*group])
            };
            let admitted = share * rate;
            let fetches = admitted * reads * (1.0 - self.spec.read_hits);
            let parts = &self.spec.groups[*group];
            self.groups[*group].read_busy +=
                fetches * parts.fetch_seconds / self.groups[*group].devices;
            came[*group] += admitted * writes * own.bytes * self.copies;
            done += admitted;
        }
        let wanted = rate * working.len().max(1) as f64;
        let unhindered = done * self.latency(own);
        let load = &mut self.loads[index];
        let inside = match own.outstanding {
            Some(outstanding) if wanted > 0.0 => outstanding,
            Some(_) => 0.0,
            None => {
                load.waiting = (wanted - done) * self.spec.step;
                unhindered + load.waiting
            }
        };
        load.sum.reads += done * reads;
        load.sum.writes += done * writes;
        load.sum.bytes += done * own.bytes;
        load.sum.inside += inside;
    }

    /// Writes lost data again, behind what guests write.
    fn rebuild(&mut self, abilities: &[Ability], came: &mut [f64]) {
        let (now, step) = (self.now(), self.spec.step);
        let working = self.groups.iter().filter(|own| own.is_working).count();
        let steps = self.steps;
        let is_due = |own: &&mut Rebuild| own.ended.is_none() && step_of(own.due, step) <= steps;
        let Some(own) = self.rebuilds.iter_mut().find(is_due) else {
            return;
        };
        let rate = self.spec.rebuild_rate.min(own.left / step) / working.max(1) as f64;
        let mut written = 0.0;
        for (group, (ability, came)) in self.groups.iter().zip(abilities.iter().zip(came)) {
            if group.is_working {
                let part = rate.min((ability.inflow - *came).max(0.0));
                *came += part;
                written += part * step;
            }
        }
        if written > 0.0 {
            // A step stands for the time nearest to it.
            let is_at_once = step_of(own.due, step) == steps;
            own.began
                .get_or_insert(if is_at_once { own.due } else { now });
        }
        own.left -= written;
        if own.left <= FULL * own.lost {
            own.ended = Some(now + step);
        }
    }

    fn destage(&mut self, index: usize, ability: Ability, came: f64) {
        let step = self.spec.step;
        let bytes = self.spec.groups[index].buffer_bytes();
        let own = &mut self.groups[index];
        own.level += came * step;
        let above = (own.level - self.spec.destage_from * bytes).max(0.0);
        let destaged = above.min(ability.drain * step);
        own.level -= destaged;
        self.totals[0] += came * step;
        self.totals[1] += destaged;
        own.sum.fill += own.level / bytes;
        own.sum.inflow += came;
        own.sum.destaged += destaged / step;
        own.sum.congestion += ability.congestion;
        own.sum.read_busy += own.read_busy;
    }

    fn close_window(&mut self) {
        let count = self.spec.window_steps as f64;
        for own in &mut self.groups {
            let sum = std::mem::take(&mut own.sum);
            let mean = GroupWindow {
                fill: sum.fill / count,
                inflow: sum.inflow / count,
                destaged: sum.destaged / count,
                congestion: sum.congestion / count,
                read_busy: sum.read_busy / count,
            };
            self.trace.write_u64(mean.fill.to_bits());
            self.trace.write_u64(mean.destaged.to_bits());
            own.series.push(mean);
        }
        for own in &mut self.loads {
            let sum = std::mem::take(&mut own.sum);
            let mean = LoadWindow {
                reads: sum.reads / count,
                writes: sum.writes / count,
                bytes: sum.bytes / count,
                inside: sum.inside / count,
            };
            self.trace.write_u64(mean.bytes.to_bits());
            self.trace.write_u64(mean.inside.to_bits());
            own.series.push(mean);
        }
    }
}

/// The step that stands for a time.
fn step_of(seconds: f64, step: f64) -> u64 {
    crate::time::whole(seconds / step)
}
