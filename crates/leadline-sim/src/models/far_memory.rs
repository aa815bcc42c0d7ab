//! A program whose memory is partly elsewhere: pages come from a local SSD or, over RDMA, from another host's memory.
//!
//! # Model
//! A program touches pages one after the other. A page in local memory costs nothing beyond the program's own time; a
//! page that is elsewhere stops the program until it is read. A read brings pages beside it, which arrive one after the
//! other while the program goes on; the first touch of such a page costs a short fault, and what is still missing of its
//! way. Local memory holds so many pages; for each that comes, one goes, chosen by LRU or clock; a page that goes is
//! written. This is a replay of touches on one clock, not a queue of events.
//!
//! # Assumptions
//! One thread. The first touch of a page allocates it and reads nothing. Every page that goes is dirty. Writes do not delay
//! reads, but for `reclaim`, what the program itself spends on each page that goes. The other side always has room. Pages
//! are read ahead by address within aligned windows, which grow and shrink with how many of the last were touched.
//!
//! # Parameters
//! See [`Spec`] and [`Pattern`].
//!
//! # Limits
//! No second thread that works while the first waits, no transparent huge pages, no contention for the link with others,
//! no failure of the remote host.
//!
//! # Sources
//! Amaro et al., "Can far memory improve job throughput?" (`EuroSys` 2020), for demand reads apart from pages read ahead
//! and for reclaim aside from the fault; Linux, `mm/swap_state.c`, `swapin_nr_pages`, for the window;
//! Musser, "Introspective sorting and selection algorithms" (Software: Practice and Experience 27, 1997), for the sort;
//! Corbató, "A paging experiment with the Multics system" (1968), for the clock.

mod local;
mod pattern;
pub mod system;

use serde::{Deserialize, Serialize};

use crate::measure::TraceHash;
use crate::random::{Stream, Streams};
use crate::time::Nanos;
use leadline_stats::error::{LeadlineError, wrong};
pub use local::Replacement;
use local::{Local, Place};
pub use pattern::Pattern;
use pattern::Walk;
use std::hash::Hasher;

/// Pages at most. Judgement: 17 bytes each; 4 TB in pages of 4 KB.
pub const PAGES_MAX: u64 = 1 << 30;

/// Windows of a series at most; what comes later is in the last.
const WINDOWS_MAX: usize = 1_000_000;

/// A program, its memory, and where the rest of it is; times in ns.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Seed of all random numbers.
    pub seed: u64,
    /// Pages of the program.
    pub pages: u32,
    /// Pages local memory holds.
    pub local_pages: u32,
    /// Real pages that each page here stands for: times of a fault count so often.
    pub stands_for: u32,
    /// How pages are touched.
    pub pattern: Pattern,
    /// What the program takes with all memory local, ns; spread evenly over its touches.
    pub alone: Nanos,
    /// Who goes when a page comes.
    pub replacement: Replacement,
    /// From the fault to the page, ns.
    pub read: Nanos,
    /// Between two pages that one read brings, ns.
    pub transfer: Nanos,
    /// Fault on a page that was read ahead, ns.
    pub minor: Nanos,
    /// What the program spends on a page that goes, ns.
    pub reclaim: Nanos,
    /// Pages of the largest window that is read, the wanted one included; a power of two, 1 for none ahead.
    pub window: u32,
    /// Width of the series, ns.
    pub width: Nanos,
}

/// What happened, in pages as the program has them; of a page that stands for several all count.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Touches.
    pub touches: u64,
    /// Touches that allocated.
    pub allocated: u64,
    /// Touches that waited for a read.
    pub major: u64,
    /// Touches of a page that was read ahead.
    pub minor: u64,
    /// Pages read ahead.
    pub ahead: u64,
    /// Pages read ahead that went untouched.
    pub wasted: u64,
    /// Pages that went.
    pub evicted: u64,
    /// Pages local at the end.
    pub resident: u64,
}

/// A run of a program with part of its memory elsewhere.
#[derive(Clone, Debug)]
pub struct FarMemory {
    spec: Spec,
    walk: Walk,
    local: Local,
    stream: Stream,
    now: f64,
    touch: f64,
    /// When the link has brought what it was asked for, ns.
    link_free: f64,
    window: u32,
    hits_of_window: u32,
    last_major: u32,
    /// What happened.
    pub counts: Counts,
    /// Time the program stood still, ns.
    pub stalled: f64,
    /// Faults that waited for a read, by window of virtual time.
    pub major_series: Vec<u64>,
    /// Standstill, ns, likewise.
    pub stalled_series: Vec<f64>,
    trace: TraceHash,
}

impl FarMemory {
    /// The run at its beginning: nothing allocated.
    ///
    /// # Errors
    /// When the parameters make no run.
    pub fn new(spec: Spec) -> Result<Self, LeadlineError> {
        check(&spec)?;
        let streams = Streams::new(spec.seed);
        let walk = Walk::new(
            &spec.pattern,
            spec.pages,
            &mut streams.stream("memory", "order"),
        )?;
        let touch = spec.alone as f64 / walk.touch_count() as f64;
        Ok(Self {
            local: Local::new(spec.pages, spec.local_pages, spec.replacement),
            stream: streams.stream("memory", "touches"),
            now: 0.0,
            touch,
            link_free: 0.0,
            window: 1,
            hits_of_window: 0,
            last_major: u32::MAX,
            counts: Counts::default(),
            stalled: 0.0,
            major_series: Vec::new(),
            stalled_series: Vec::new(),
            trace: TraceHash::default(),
            walk,
            spec,
        })
    }

    /// Makes up to `count` touches; returns how many there were, fewer when the program is done.
    pub fn run(&mut self, count: u64) -> u64 {
        for done in 0..count {
            let Some(page) = self.walk.next(&mut self.stream) else {
                return done;
            };
            self.now += self.touch;
            self.counts.touches += 1;
            self.touch(page);
        }
        count
    }

    fn touch(&mut self, page: u32) {
        match self.local.place(page) {
            Place::Local => self.local.touched(page),
            Place::Ahead => {
                self.counts.minor += 1;
                self.hits_of_window += 1;
                let missing = (self.local.ready_at(page) - self.now).max(0.0);
                // Each of the pages this one stands for has its own fault; they came one behind the other.
                let faults = self.spec.minor as f64 * f64::from(self.spec.stands_for);
                self.stall(missing + faults);
                self.local.map(page);
                self.local.touched(page);
            }
            Place::New => {
                self.counts.allocated += 1;
                let gone = self.make_room();
                self.stall(self.spec.reclaim as f64 * gone);
                self.local.insert(page, Place::Local, 0.0);
            }
            Place::Elsewhere => self.fault(page),
        }
    }

    /// A touch of a page that is elsewhere.
    fn fault(&mut self, page: u32) {
        self.counts.major += 1;
        let window = self.next_window(page);
        let each = f64::from(self.spec.stands_for);
        let first = page & !(window - 1);
        let last = (first + window - 1).min(self.spec.pages - 1);
        let mut gone = self.make_room();
        self.local.insert(page, Place::Local, 0.0);
        let arrives = self.now.max(self.link_free) + self.spec.read as f64 * each;
        self.link_free = arrives;
        for other in first..=last {
            if other != page && self.local.place(other) == Place::Elsewhere {
                gone += self.make_room();
                self.link_free += self.spec.transfer as f64 * each;
                self.local.insert(other, Place::Ahead, self.link_free);
                self.counts.ahead += 1;
            }
        }
        self.trace.write_u32(page);
        self.trace.write_u64(self.now.to_bits());
        let at = self.series_index();
        self.major_series[at] += u64::from(self.spec.stands_for);
        self.stall(arrives - self.now + self.spec.reclaim as f64 * gone);
    }

    /// How many pages the next read brings at most.
    ///
    /// Source: Linux, `mm/swap_state.c`, `__swapin_nr_pages`: hits since the last read plus two, rounded up to a power of
    /// two; without hits one, unless the page is beside the last one; never less than half of the last.
    fn next_window(&mut self, page: u32) -> u32 {
        let beside = page.abs_diff(self.last_major) == 1;
        let pages = match self.hits_of_window {
            0 if !beside => 1,
            hits => (hits + 2).next_power_of_two(),
        };
        self.window = pages.max(self.window / 2).clamp(1, self.spec.window.max(1));
        self.hits_of_window = 0;
        self.last_major = page;
        self.window
    }

    /// One page goes when local memory is full; returns how many real ones went.
    fn make_room(&mut self) -> f64 {
        let Some((_, place)) = self.local.make_room() else {
            return 0.0;
        };
        self.counts.evicted += 1;
        self.counts.wasted += u64::from(place == Place::Ahead);
        f64::from(self.spec.stands_for)
    }

    fn stall(&mut self, nanos: f64) {
        if nanos > 0.0 {
            let at = self.series_index();
            self.stalled_series[at] += nanos;
            self.now += nanos;
            self.stalled += nanos;
        }
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // time is not negative, and windows are counted
    fn series_index(&mut self) -> usize {
        let at = ((self.now / self.spec.width as f64) as usize).min(WINDOWS_MAX - 1);
        if at >= self.major_series.len() {
            self.major_series.resize(at + 1, 0);
            self.stalled_series.resize(at + 1, 0.0);
        }
        at
    }

    /// The virtual time, ns.
    #[must_use]
    pub fn now(&self) -> f64 {
        self.now
    }

    /// The share of all touches that were made, 0 to 1.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.counts.touches as f64 / self.walk.touch_count() as f64
    }

    /// A number over every read in order.
    #[must_use]
    pub fn trace(&self) -> u64 {
        self.trace.value()
    }

    /// What happened in real pages; whether none was lost: what came is here or went, and time is work or standstill.
    ///
    /// # Errors
    /// When pages or time were lost, which is a defect of the model.
    pub fn finish(&mut self) -> Result<Counts, LeadlineError> {
        let own = &mut self.counts;
        own.resident = u64::from(self.local.count());
        let came = own.allocated + own.major + own.ahead;
        let worked = own.touches as f64 * self.touch;
        let lost = (self.now - worked - self.stalled).abs() > 1e-6 * self.now.max(1.0);
        if came != own.evicted + own.resident || lost {
            return Err(LeadlineError::new(
                "memory",
                format!(
                    "{came} pages came, {} went, {} are here",
                    own.evicted, own.resident
                ),
                "every page and every ns accounted for (a defect of the model)",
                "Report it with the scenario.",
            ));
        }
        let each = u64::from(self.spec.stands_for);
        Ok(Counts {
            touches: own.touches * each,
            allocated: own.allocated * each,
            major: own.major * each,
            minor: own.minor * each,
            ahead: own.ahead * each,
            wasted: own.wasted * each,
            evicted: own.evicted * each,
            resident: own.resident * each,
        })
    }
}

fn check(spec: &Spec) -> Result<(), LeadlineError> {
    if spec.pages < 2 || u64::from(spec.pages) > PAGES_MAX || spec.stands_for == 0 {
        return wrong(
            "memory",
            format!("{} pages, each for {}", spec.pages, spec.stands_for),
            "2 to 2^30 pages, each for 1 or more",
        );
    }
    // Room for the window that one fault brings and for the page after it.
    if spec.local_pages <= spec.window {
        return wrong(
            "local memory",
            format!("{} pages", spec.local_pages),
            "more pages than are read at once",
        );
    }
    if !spec.window.is_power_of_two() || spec.width == 0 || spec.alone == 0 {
        return wrong(
            "memory",
            format!(
                "window of {}, series of {} ns, run of {} ns",
                spec.window, spec.width, spec.alone
            ),
            "a window that is a power of two, and times above 0",
        );
    }
    Ok(())
}
