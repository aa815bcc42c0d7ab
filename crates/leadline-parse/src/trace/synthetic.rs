//! The requests a workload would give, made with a seeded generator and characterised like a trace.
//!
//! Streams run side by side, each on a range of its own, with arrivals of a Poisson process at its rate (in bursts,
//! when it has them) and at most `oio` times `jobs` outstanding: a request that would be one more waits for a
//! completion. Latencies are drawn from the trace, since a workload says nothing of them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use leadline_stats::histogram::LogLinear;

use super::profile::DiskProfile;
use super::{Kind, NO_LATENCY, Record};

const ALIGN: u64 = 4096;

/// On and off, again and again.
#[derive(Clone, Copy, Debug)]
pub struct Burst {
    /// Seconds of load.
    pub on_s: f64,
    /// Seconds without.
    pub off_s: f64,
}

/// One stream of a workload.
#[derive(Clone, Debug)]
pub struct LoadStream {
    /// Sizes and their shares, which need not add up to anything.
    pub block: Vec<(u32, f64)>,
    /// Percentage of reads.
    pub read_pct: f64,
    /// Percentage that goes to a random place; the others go on where the last of their kind ended.
    pub random_pct: f64,
    /// Outstanding requests per job.
    pub oio: u32,
    /// Jobs.
    pub jobs: u32,
    /// Requests per second while on.
    pub rate_iops: f64,
    /// When it is on, if not always.
    pub burst: Option<Burst>,
    /// Bytes the stream touches.
    pub working_set: u64,
}

/// A workload and how much of it.
#[derive(Clone, Debug)]
pub struct Load {
    /// Streams, side by side.
    pub streams: Vec<LoadStream>,
    /// How long.
    pub duration_s: f64,
    /// How many requests at most.
    pub requests_max: u64,
    /// The same seed gives the same requests.
    pub seed: u64,
}

/// `SplitMix64`: the same seed gives the same requests everywhere.
/// Source: Steele, Lea and Flood, Fast Splittable Pseudorandom Number Generators (2014).
struct Generator(u64);

impl Generator {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Above 0, at most 1.
    fn share(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// Below a bound of at least 1.
    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }
}

struct State {
    base: u64,
    /// Time spent on, which runs only while a burst is on.
    on_s: f64,
    next_ns: u64,
    heads: [u64; 2],
    outstanding: BinaryHeap<Reverse<u64>>,
}

/// Characterises the requests a workload gives; `latency` per kind is drawn from, empty ones give none.
#[must_use]
pub fn synthesise(load: &Load, latency: [&LogLinear; 2], sample_keys: usize) -> DiskProfile {
    let mut profile = DiskProfile::new(sample_keys);
    let mut generator = Generator(load.seed);
    let tables = latency.map(cumulative);
    let mut base = 0;
    let mut states: Vec<State> = Vec::new();
    for stream in &load.streams {
        let half = stream.working_set / 2 / ALIGN * ALIGN;
        let heads = [base, base + half];
        states.push(State {
            base,
            on_s: 0.0,
            next_ns: 0,
            heads,
            outstanding: BinaryHeap::new(),
        });
        base += stream.working_set.div_ceil(ALIGN) * ALIGN;
    }
    for (state, stream) in states.iter_mut().zip(&load.streams) {
        advance(state, stream, &mut generator);
    }
    let end = ns(load.duration_s);
    for _ in 0..load.requests_max {
        let Some(index) = (0..states.len()).min_by_key(|index| states[*index].next_ns) else {
            break;
        };
        let (state, stream) = (&mut states[index], &load.streams[index]);
        if state.next_ns > end {
            break;
        }
        let record = request(state, stream, &tables, &mut generator);
        profile.take(&record);
        advance(state, stream, &mut generator);
    }
    profile.finish();
    profile
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // saturates
fn ns(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

/// The next arrival, on the clock that stands still while a burst is off, put on the clock that does not.
fn advance(state: &mut State, stream: &LoadStream, generator: &mut Generator) {
    state.on_s -= generator.share().ln() / stream.rate_iops.max(1e-9);
    let at_s = match stream.burst {
        Some(burst) if burst.on_s > 0.0 => {
            (state.on_s / burst.on_s).floor() * burst.off_s + state.on_s
        }
        _ => state.on_s,
    };
    let mut at = ns(at_s).max(state.next_ns);
    while state
        .outstanding
        .peek()
        .is_some_and(|Reverse(done)| *done <= at)
    {
        state.outstanding.pop();
    }
    let most = stream.oio.max(1) as usize * stream.jobs.max(1) as usize;
    while state.outstanding.len() >= most {
        if let Some(Reverse(done)) = state.outstanding.pop() {
            at = at.max(done);
        }
    }
    state.next_ns = at;
}

fn request(
    state: &mut State,
    stream: &LoadStream,
    tables: &[Vec<(u64, u64)>; 2],
    generator: &mut Generator,
) -> Record {
    let kind = if generator.share() * 100.0 <= stream.read_pct {
        Kind::Read
    } else {
        Kind::Write
    };
    let own = usize::from(kind == Kind::Write);
    let bytes = size(&stream.block, generator);
    let room = stream.working_set.saturating_sub(u64::from(bytes)).max(1);
    let random = generator.share() * 100.0 <= stream.random_pct;
    let unit = if bytes % 4096 == 0 { ALIGN } else { 512 };
    if random || state.heads[own] + u64::from(bytes) > state.base + stream.working_set {
        state.heads[own] = if random {
            state.base + generator.below(room / unit + 1) * unit
        } else {
            state.base
        };
    }
    let offset = state.heads[own];
    state.heads[own] += u64::from(bytes);
    let latency_ns = draw(&tables[own], generator);
    if latency_ns != NO_LATENCY {
        state
            .outstanding
            .push(Reverse(state.next_ns.saturating_add(latency_ns)));
    }
    Record {
        time_ns: state.next_ns,
        offset,
        latency_ns,
        bytes,
        disk: 0,
        kind,
    }
}

fn size(block: &[(u32, f64)], generator: &mut Generator) -> u32 {
    let total: f64 = block.iter().map(|(_, share)| share).sum();
    let mut left = generator.share() * total;
    for (bytes, share) in block {
        left -= share;
        if left <= 0.0 {
            return *bytes;
        }
    }
    block.last().map_or(4096, |(bytes, _)| *bytes)
}

/// Upper ranks and middles of a histogram's buckets.
fn cumulative(histogram: &LogLinear) -> Vec<(u64, u64)> {
    let mut passed = 0;
    histogram
        .buckets()
        .map(|bucket| {
            passed += bucket.count;
            (passed, bucket.lower + (bucket.upper - bucket.lower) / 2)
        })
        .collect()
}

fn draw(table: &[(u64, u64)], generator: &mut Generator) -> u64 {
    let Some((total, _)) = table.last() else {
        return NO_LATENCY;
    };
    let rank = generator.below(*total);
    let place = table.partition_point(|(passed, _)| *passed <= rank);
    table.get(place).map_or(NO_LATENCY, |(_, value)| *value)
}
