//! What a disk's requests are like: vscsiStats' histograms, read share, outstanding requests, sequential streams,
//! burstiness, working set and miss-ratio curve, in one pass and in memory that does not grow with the trace.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use leadline_stats::dispersion::Dispersion;
use leadline_stats::histogram::LogLinear;
use leadline_stats::limits::Limits;
use leadline_stats::shards::Shards;

use super::streams::Streams;
use super::{Kind, NO_LATENCY, Record};

/// vscsiStats' limits of request lengths in bytes.
pub static SIZE_LIMITS: [i64; 17] = [
    512, 1024, 2048, 4095, 4096, 8191, 8192, 16_383, 16_384, 32_768, 49_152, 65_535, 65_536,
    81_920, 131_072, 262_144, 524_288,
];
/// vscsiStats' limits of distances in blocks of 512 bytes.
pub static SEEK_LIMITS: [i64; 33] = [
    -500_000, -100_000, -50_000, -10_000, -5000, -1000, -500, -128, -64, -32, -16, -8, -6, -4, -2,
    -1, 0, 1, 2, 4, 6, 8, 16, 32, 64, 128, 500, 1000, 5000, 10_000, 50_000, 100_000, 500_000,
];
/// vscsiStats' limits of latencies and of times between requests, in microseconds.
pub static TIME_LIMITS: [i64; 10] = [1, 10, 100, 500, 1000, 5000, 15_000, 30_000, 50_000, 100_000];
/// vscsiStats' limits of outstanding requests, the new one included.
pub static DEPTH_LIMITS: [i64; 12] = [1, 2, 4, 6, 8, 12, 16, 20, 24, 28, 32, 64];

const SECTOR_BYTES: u64 = 512;
/// Keys of the working set and of the miss-ratio curve are pages of 4 KiB.
pub const PAGE_BITS: u32 = 12;
/// Judgement: no device takes more than 32 MiB at once; of longer requests the rest is no part of the working set.
const PAGES_MAX: u64 = 8192;
const BEFORE: usize = 16; // vscsiStats compares with the previous 16
const OUTSTANDING_MAX: usize = 1 << 16;
const WINDOWS_NS: [u64; 4] = [10_000_000, 100_000_000, 1_000_000_000, 10_000_000_000];
/// Judgement: half a second without a request is a pause.
const PAUSE_NS: u64 = 500_000_000;
const CURVE_FIRST_BYTES: u64 = 1 << 20;

/// Histograms of all requests, of reads or of writes.
#[derive(Clone, Debug)]
pub struct Way {
    /// Lengths in bytes.
    pub size: Spread,
    /// Distances from the end of the request before, in blocks of 512 bytes.
    pub seek: Limits,
    /// Outstanding requests when one is issued, itself included.
    pub depth: Spread,
    /// Latencies.
    pub latency: Spread,
    /// Times since the request before.
    pub interarrival: Spread,
    last_end: Option<u64>,
    last_ns: Option<u64>,
}

/// One quantity: over vscsiStats' limits, and fine enough for percentiles.
#[derive(Clone, Debug)]
pub struct Spread {
    /// Over vscsiStats' limits.
    pub limits: Limits,
    /// In the unit of measurement: bytes, requests or nanoseconds.
    pub fine: LogLinear,
}

impl Spread {
    fn new(limits: &'static [i64]) -> Self {
        Self {
            limits: Limits::new(limits),
            fine: LogLinear::default(),
        }
    }

    #[inline]
    fn record(&mut self, value: u64) {
        self.limits.record(signed(value));
        self.fine.record(value);
    }

    /// A time, in nanoseconds; vscsiStats' limits are microseconds.
    #[inline]
    fn record_time(&mut self, ns: u64) {
        self.limits.record(signed(ns / 1000));
        self.fine.record(ns);
    }

    fn merge(&mut self, other: &Self) {
        self.limits.merge(&other.limits);
        self.fine.merge(&other.fine);
    }
}

#[inline]
fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// From one block to another, in blocks.
#[inline]
fn blocks_between(from: u64, to: u64) -> i64 {
    signed(to / SECTOR_BYTES) - signed(from / SECTOR_BYTES)
}

impl Way {
    fn new() -> Self {
        Self {
            size: Spread::new(&SIZE_LIMITS),
            seek: Limits::new(&SEEK_LIMITS),
            depth: Spread::new(&DEPTH_LIMITS),
            latency: Spread::new(&TIME_LIMITS),
            interarrival: Spread::new(&TIME_LIMITS),
            last_end: None,
            last_ns: None,
        }
    }

    /// Distance and time since the request before.
    #[inline]
    fn follow(&mut self, record: &Record, end: u64) {
        if let Some(last) = self.last_end.replace(end) {
            self.seek.record(blocks_between(last, record.offset));
        }
        if let Some(last) = self.last_ns.replace(record.time_ns) {
            self.interarrival
                .record_time(record.time_ns.saturating_sub(last));
        }
    }
}

/// A cache size in bytes and the share of page uses that miss it.
pub type CurvePoint = (u64, f64);

/// Everything that is known of one disk.
#[derive(Debug)]
pub struct DiskProfile {
    /// All requests.
    pub all: Way,
    /// Reads.
    pub read: Way,
    /// Writes.
    pub write: Way,
    /// Distance from the closest of the 16 requests before.
    pub seek_closest: Limits,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// When the first request was issued.
    pub first_ns: u64,
    /// When the last request was issued.
    pub last_ns: u64,
    /// End of the highest byte used.
    pub end_bytes: u64,
    /// Sequential streams of reads.
    pub reads_streams: Streams,
    /// Sequential streams of writes.
    pub writes_streams: Streams,
    /// Burstiness over windows of several lengths.
    pub dispersion: [Dispersion; 4],
    /// Times without any request for half a second or more.
    pub pause_count: u64,
    /// Their sum.
    pub pause_ns: u64,
    /// Uses of pages.
    pub pages: Shards,
    recent: [u64; BEFORE],
    recent_count: usize,
    outstanding: [BinaryHeap<Reverse<u64>>; 2],
}

impl DiskProfile {
    /// An empty profile; `sample_keys` pages are held for working set and curve.
    #[must_use]
    pub fn new(sample_keys: usize) -> Self {
        Self {
            all: Way::new(),
            read: Way::new(),
            write: Way::new(),
            seek_closest: Limits::new(&SEEK_LIMITS),
            read_bytes: 0,
            write_bytes: 0,
            first_ns: 0,
            last_ns: 0,
            end_bytes: 0,
            reads_streams: Streams::default(),
            writes_streams: Streams::default(),
            dispersion: WINDOWS_NS.map(Dispersion::new),
            pause_count: 0,
            pause_ns: 0,
            pages: Shards::new(sample_keys),
            recent: [0; BEFORE],
            recent_count: 0,
            outstanding: [BinaryHeap::new(), BinaryHeap::new()],
        }
    }

    /// Takes a request; times must not decrease. Whether it goes on where an earlier one of its kind ended.
    pub fn take(&mut self, record: &Record) -> bool {
        let end = record.offset.saturating_add(u64::from(record.bytes));
        self.arrive(record.time_ns);
        self.outstand(record);
        self.all.follow(record, end);
        let (way, bytes, streams) = match record.kind {
            Kind::Read => (
                &mut self.read,
                &mut self.read_bytes,
                &mut self.reads_streams,
            ),
            Kind::Write => (
                &mut self.write,
                &mut self.write_bytes,
                &mut self.writes_streams,
            ),
        };
        *bytes += u64::from(record.bytes);
        way.follow(record, end);
        way.size.record(u64::from(record.bytes));
        if record.latency_ns != NO_LATENCY {
            way.latency.record_time(record.latency_ns);
        }
        let sequential = streams.take(record.offset, record.bytes);
        self.closest(record.offset, end);
        self.end_bytes = self.end_bytes.max(end);
        let first = record.offset >> PAGE_BITS;
        let last = (end - 1).max(record.offset) >> PAGE_BITS;
        for page in first..=last.min(first + PAGES_MAX - 1) {
            self.pages.touch(page);
        }
        sequential
    }

    #[inline]
    fn arrive(&mut self, time_ns: u64) {
        if self.all.last_ns.is_none() {
            self.first_ns = time_ns;
            self.last_ns = time_ns;
        }
        let gap = time_ns.saturating_sub(self.last_ns);
        if gap >= PAUSE_NS {
            self.pause_count += 1;
            self.pause_ns += gap;
        }
        self.last_ns = self.last_ns.max(time_ns);
        for window in &mut self.dispersion {
            window.record(time_ns);
        }
    }

    /// Outstanding requests when this one is issued, itself included, as vscsiStats counts.
    #[inline]
    fn outstand(&mut self, record: &Record) {
        if record.latency_ns == NO_LATENCY {
            return;
        }
        for heap in &mut self.outstanding {
            while heap
                .peek()
                .is_some_and(|Reverse(done)| *done <= record.time_ns)
            {
                heap.pop();
            }
        }
        let own = usize::from(record.kind == Kind::Write);
        if self.outstanding[own].len() < OUTSTANDING_MAX {
            self.outstanding[own].push(Reverse(record.time_ns.saturating_add(record.latency_ns)));
        }
        let counts = self.outstanding.each_ref().map(|heap| heap.len() as u64);
        self.all.depth.record(counts[0] + counts[1]);
        let way = if own == 0 {
            &mut self.read
        } else {
            &mut self.write
        };
        way.depth.record(counts[own]);
    }

    #[inline]
    fn closest(&mut self, offset: u64, end: u64) {
        let known = self.recent_count.min(BEFORE);
        let mut best: Option<i64> = None;
        for last in &self.recent[..known] {
            let apart = blocks_between(*last, offset);
            best = match best {
                Some(other) if other.unsigned_abs() <= apart.unsigned_abs() => Some(other),
                _ => Some(apart),
            };
        }
        if let Some(apart) = best {
            self.seek_closest.record(apart);
        }
        self.recent[self.recent_count % BEFORE] = end;
        self.recent_count += 1;
    }

    /// Ends the trace: sums up what is kept per kind.
    pub fn finish(&mut self) {
        self.reads_streams.finish();
        self.writes_streams.finish();
        for way in [&self.read, &self.write] {
            self.all.size.merge(&way.size);
            self.all.latency.merge(&way.latency);
        }
        if self.first_ns == self.last_ns {
            // Without times there is nothing to say of the times between.
            for way in [&mut self.all, &mut self.read, &mut self.write] {
                way.interarrival = Spread::new(&TIME_LIMITS);
            }
        }
    }

    /// How many requests there were.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.read.size.fine.total() + self.write.size.fine.total()
    }

    /// Reads among the requests; None without any.
    #[must_use]
    pub fn read_share(&self) -> Option<f64> {
        let total = self.requests();
        (total > 0).then(|| self.read.size.fine.total() as f64 / total as f64)
    }

    /// Requests that went on where an earlier one of their kind ended; None without any.
    #[must_use]
    pub fn sequential_share(&self) -> Option<f64> {
        let (total, continued) = (
            self.requests(),
            self.reads_streams.continued + self.writes_streams.continued,
        );
        (total > 0).then(|| continued as f64 / total as f64)
    }

    /// From the first request to the last.
    #[must_use]
    pub fn duration_ns(&self) -> u64 {
        self.last_ns - self.first_ns
    }

    /// Bytes that were used at all, in pages of 4 KiB.
    #[must_use]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // an estimate of at most 2^52 pages
    pub fn working_set_bytes(&self) -> u64 {
        (self.pages.distinct().round() as u64) << PAGE_BITS
    }

    /// The share of pages that missed, for caches of 1 MiB and its doubles up to the working set, where the sample is
    /// fine enough to tell.
    #[must_use]
    pub fn curve(&self) -> Vec<CurvePoint> {
        let whole = self.working_set_bytes().max(CURVE_FIRST_BYTES);
        let finest = 4.0 * self.pages.resolution();
        let mut sizes = Vec::new();
        let mut bytes = CURVE_FIRST_BYTES;
        loop {
            if (bytes >> PAGE_BITS) as f64 >= finest {
                sizes.push(bytes);
            }
            if bytes >= whole || bytes > 1 << 62 {
                break;
            }
            bytes *= 2;
        }
        let keys: Vec<f64> = sizes
            .iter()
            .map(|bytes| (bytes >> PAGE_BITS) as f64)
            .collect();
        let points = self.pages.curve(&keys);
        sizes
            .into_iter()
            .zip(points)
            .map(|(bytes, point)| (bytes, point.miss_ratio))
            .collect()
    }
}
