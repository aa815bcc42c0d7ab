//! Requests of open sources, known long before they are issued: drawn for a span of time at once and put in order.
//!
//! # Model
//! Each source is asked for its requests up to the end of a span; they are sorted by a calendar of as many buckets as
//! requests are expected, and handed out in order. A span is as long as it takes for about [`SPAN_REQUESTS`] of them.
//!
//! # Assumptions
//! When a request is issued depends on the one before it of its source and on nothing else.
//!
//! # Parameters
//! The first request of each source.
//!
//! # Limits
//! Requests of one instant are issued in the order in which those before them were, as the schedule would have it: the
//! length of a span changes nothing of a run.
//!
//! # Sources
//! Brown, "Calendar queues" (CACM 31, 1988), for buckets as wide as events are apart.

use crate::time::Nanos;

/// How many requests a span aims at. Judgement: they fit the first cache beside the sources.
const SPAN_REQUESTS: usize = 256;
/// A source that issues as many requests in one instant goes on a nanosecond later, so that every span ends.
const AT_ONCE_MAX: u32 = 1 << 20;
/// Buckets are as wide as a power of two, at most this, ns.
const SHIFT_MAX: u32 = 40;
/// Steps of a calendar's bucket within which insertion is taken for linear; beyond, all is sorted otherwise.
const BUCKET_MAX: u32 = 32;

/// One request to come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Arrival {
    pub time: Nanos,
    pub source: u32,
}

/// Requests of all sources in order of time.
#[derive(Clone, Debug)]
pub(super) struct Arrivals {
    /// Of each source: the first request that is not in the span, and when the last one was issued, in events handled.
    next: Vec<(Nanos, u64)>,
    span: Vec<Arrival>,
    position: usize,
    /// The next request's time; the largest number when there is none.
    time: Nanos,
    /// Binary logarithm of a bucket's width, ns.
    shift: u32,
    unsorted: Vec<Arrival>,
    buckets: Vec<u32>,
}

impl Arrivals {
    /// The first request of each source.
    pub(super) fn new(firsts: Vec<Nanos>) -> Self {
        Self {
            next: firsts.into_iter().map(|time| (time, 0)).collect(),
            span: Vec::new(),
            position: 0,
            time: Nanos::MAX,
            shift: 0,
            unsorted: Vec::new(),
            buckets: vec![0; SPAN_REQUESTS + 1],
        }
    }

    /// When the next request is issued, ns; the largest number when none is.
    #[inline]
    pub(super) fn time(&self) -> Nanos {
        self.time
    }

    /// How many events had been handled when the next request became known.
    #[inline]
    pub(super) fn stamp(&self) -> u64 {
        let next = self.span[self.position];
        self.next[next.source as usize].1
    }

    /// Whether the last request of the span was taken: then it must be filled before the next is.
    #[inline]
    pub(super) fn is_spent(&self) -> bool {
        self.position == self.span.len()
    }

    /// Takes the next request, the `stamp`th event handled; its source.
    #[inline]
    pub(super) fn take(&mut self, stamp: u64) -> u32 {
        let taken = self.span[self.position];
        self.next[taken.source as usize].1 = stamp;
        self.position += 1;
        self.look();
        taken.source
    }

    /// Sets the time of the next request. Of those of one instant it is the one that was known first.
    #[inline]
    fn look(&mut self) {
        let Some(next) = self.span.get(self.position) else {
            self.time = Nanos::MAX;
            return;
        };
        self.time = next.time;
        let after = self.span.get(self.position + 1);
        if after.is_some_and(|after| after.time == next.time) {
            self.choose();
        }
    }

    #[cold]
    #[inline(never)]
    fn choose(&mut self) {
        let equal = self.span[self.position..]
            .iter()
            .take_while(|arrival| arrival.time == self.time)
            .count();
        let (start, next) = (self.position, &self.next);
        let first = (start..start + equal).min_by_key(|at| {
            let source = self.span[*at].source;
            (next[source as usize].1, source)
        });
        self.span.swap(start, first.unwrap_or(start));
    }

    /// Fills the span: `after(source, time)` is when a source issues the request after the one of `time`.
    #[inline(never)]
    pub(super) fn fill(&mut self, mut after: impl FnMut(u32, Nanos) -> Nanos) {
        let earliest = self.next.iter().map(|(time, _)| *time).min();
        let start = earliest.unwrap_or(Nanos::MAX);
        let end = start.saturating_add((SPAN_REQUESTS as u64) << self.shift);
        self.unsorted.clear();
        for (source, next) in (0..).zip(&mut self.next) {
            let (mut time, mut at_once) = (next.0, 0_u32);
            while time < end {
                self.unsorted.push(Arrival { time, source });
                let then = after(source, time);
                at_once = if then == time { at_once + 1 } else { 0 };
                time = if at_once < AT_ONCE_MAX {
                    then
                } else {
                    time + 1
                };
            }
            next.0 = time;
        }
        self.sort(start);
        if self.span.len() > SPAN_REQUESTS {
            self.shift = self.shift.saturating_sub(1);
        } else if self.span.len() < SPAN_REQUESTS / 2 {
            self.shift = (self.shift + 1).min(SHIFT_MAX);
        }
        self.position = 0;
        self.look();
    }

    /// Puts the requests in order of time, those of one instant in order of sources.
    fn sort(&mut self, start: Nanos) {
        let shift = self.shift;
        #[allow(clippy::cast_possible_truncation)] // within the buckets
        let bucket = |time: Nanos| ((time - start) >> shift) as usize;
        self.buckets.fill(0);
        for arrival in &self.unsorted {
            self.buckets[bucket(arrival.time) + 1] += 1;
        }
        let is_even = self.buckets.iter().all(|count| *count <= BUCKET_MAX);
        for at in 1..self.buckets.len() {
            self.buckets[at] += self.buckets[at - 1];
        }
        self.span.clear();
        self.span.resize(self.unsorted.len(), Arrival::default());
        for arrival in &self.unsorted {
            let place = &mut self.buckets[bucket(arrival.time)];
            self.span[*place as usize] = *arrival;
            *place += 1;
        }
        if !is_even {
            self.span.sort();
            return;
        }
        for at in 1..self.span.len() {
            let arrival = self.span[at];
            let mut hole = at;
            while hole > 0 && self.span[hole - 1].time > arrival.time {
                self.span[hole] = self.span[hole - 1];
                hole -= 1;
            }
            self.span[hole] = arrival;
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test may end so
mod tests {
    use super::*;
    use crate::kernel::EventQueue;
    use crate::random::Streams;

    /// Every source issues its requests at times that are known; the schedule's order is the reference.
    fn compare(gaps: impl Fn(&mut crate::random::Stream, u32) -> Nanos, sources: u32) {
        let streams = Streams::new(1);
        let stream = |source: u32| streams.stream(&format!("source{source}"), "gaps");
        let (mut mine, mut theirs): (Vec<_>, Vec<_>) = (0..sources)
            .map(|source| (stream(source), stream(source)))
            .unzip();
        let mut queue = EventQueue::new();
        for source in 0..sources {
            queue.push(gaps(&mut theirs[source as usize], source), source);
        }
        let firsts = (0..sources).map(|source| gaps(&mut mine[source as usize], source));
        let mut arrivals = Arrivals::new(firsts.collect());
        for stamp in 1..20_000 {
            if arrivals.is_spent() {
                arrivals.fill(|source, time| time + gaps(&mut mine[source as usize], source));
            }
            let expected = queue.pop().unwrap();
            assert_eq!(arrivals.time(), expected.time);
            assert_eq!(arrivals.take(stamp), expected.event, "at {}", expected.time);
            let gap = gaps(&mut theirs[expected.event as usize], expected.event);
            queue.push(expected.time + gap, expected.event);
        }
    }

    #[test]
    fn requests_come_as_the_schedule_would_have_them() {
        let exponential = |mean: f64| {
            move |stream: &mut crate::random::Stream, _: u32| {
                crate::time::whole(mean * stream.exponential())
            }
        };
        compare(exponential(1e6), 100);
        compare(exponential(20.0), 50); // many of one instant
        compare(exponential(0.7), 3); // and of one source at one instant
        compare(|_, _| 1_000, 200); // all at once
        compare(
            |stream, source| (1 + stream.below(3)) * 10u64.pow(source),
            7,
        ); // of all rates
    }
}
