//! Episodes: spans in which a condition held long enough, of every row of a matrix in one pass.

use std::cmp::Ordering;
use std::ops::Range;

use crate::sample::Sample;

/// The episodes of a matrix as columns, by row and time.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Episodes {
    /// Row of the matrix.
    pub rows: Vec<i64>,
    /// First sample of the episode.
    pub firsts: Vec<i64>,
    /// Last sample, which belongs to it.
    pub lasts: Vec<i64>,
    /// How long the condition held within it, in nanoseconds.
    pub held_ns: Vec<i64>,
    /// Median of the samples that met the condition.
    pub medians: Vec<f64>,
    /// Lowest of them.
    pub lows: Vec<f64>,
    /// Highest of them.
    pub peaks: Vec<f64>,
}

/// When a series was sampled, and what counts as an episode.
#[derive(Debug, Clone, Copy)]
pub struct Clock<'a> {
    /// Start of the interval of each sample, nanoseconds.
    pub starts: &'a [i64],
    /// End of the interval of each sample.
    pub ends: &'a [i64],
    /// The least time that the condition must have held, seconds.
    pub duration_s: f64,
}

/// A span of samples in which a condition held, with pauses or without.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    pub(crate) first: usize,
    pub(crate) last: usize,
    /// From the start of its first run to the end of its last, pauses between joined runs left out.
    length_ns: i64,
    held_ns: i64,
}

/// The episodes of every row of a condition, with the middle and the extremes of their samples.
///
/// Spans in which the condition held are joined when the gap between them is not longer than the duration nor than what
/// held before and after it, and count when they held for the duration in sum.
///
/// `met` and `values` are matrices of as many columns as the clock has samples.
#[must_use]
pub fn episodes<S: Sample>(met: &[&[bool]], values: &[&[S]], clock: Clock<'_>) -> Episodes {
    let mut found = Episodes::default();
    let mut scratch: Vec<S> = Vec::with_capacity(clock.ends.len());
    for (row, (&flags, &series)) in met.iter().zip(values).enumerate() {
        for_each_span(flags, 0..flags.len(), clock, |span| {
            found.push(row, span, (flags, series), &mut scratch);
        });
    }
    found
}

/// Calls `take` with each span of joined runs, in order of time, that held long enough to be an episode.
///
/// Only the samples of `range` are looked at.
pub(crate) fn for_each_span(
    flags: &[bool],
    range: Range<usize>,
    clock: Clock<'_>,
    mut take: impl FnMut(Span),
) {
    let mut open: Option<Span> = None;
    let mut place = range.start;
    while let Some(begin) = flags[place..range.end].iter().position(|&flag| flag) {
        let first = place + begin;
        let length = flags[first..range.end].iter().position(|&flag| !flag);
        place = length.map_or(range.end, |length| first + length);
        let run = run_of(first, place - 1, clock);
        open = match open {
            Some(before) if is_joined(before, run, clock) => Some(Span {
                last: run.last,
                length_ns: before.length_ns + run.length_ns,
                held_ns: before.held_ns + run.held_ns,
                ..before
            }),
            before => {
                before.filter(|span| is_long(*span, clock)).map(&mut take);
                Some(run)
            }
        };
    }
    open.filter(|span| is_long(*span, clock)).map(take);
}

#[expect(
    clippy::cast_precision_loss,
    reason = "spans of centuries in nanoseconds are exact enough as doubles"
)]
fn is_long(span: Span, clock: Clock<'_>) -> bool {
    span.held_ns as f64 / 1e9 + 1e-6 >= clock.duration_s
}

fn run_of(first: usize, last: usize, clock: Clock<'_>) -> Span {
    let held_ns = (first..=last)
        .map(|sample| clock.ends[sample] - clock.starts[sample])
        .sum();
    Span {
        first,
        last,
        length_ns: clock.ends[last] - clock.starts[first],
        held_ns,
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "spans of centuries in nanoseconds are exact enough as doubles"
)]
fn is_joined(before: Span, run: Span, clock: Clock<'_>) -> bool {
    let pause_ns = clock.starts[run.first] - clock.ends[before.last];
    pause_ns as f64 <= clock.duration_s * 1e9
        && pause_ns <= before.length_ns
        && pause_ns <= run.length_ns
}

impl Episodes {
    /// Adds the episode of a span of a series, whose samples it takes from those that met the condition.
    #[expect(clippy::cast_possible_wrap, reason = "indices of samples in memory")]
    pub(crate) fn push<S: Sample>(
        &mut self,
        row: usize,
        span: Span,
        (flags, series): (&[bool], &[S]),
        scratch: &mut Vec<S>,
    ) {
        scratch.clear();
        let samples = span.first..=span.last;
        scratch.extend(
            samples
                .filter(|&sample| flags[sample])
                .map(|sample| series[sample]),
        );
        let half = scratch.len() / 2;
        let (low, high) = scratch
            .iter()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), sample| {
                (low.min(sample.wide()), high.max(sample.wide()))
            });
        let is_odd = scratch.len() % 2 == 1;
        let (below, &mut upper, _) =
            scratch.select_nth_unstable_by(half, |one, other| one.order(*other));
        let lower = below
            .iter()
            .copied()
            .reduce(|one, other| match one.order(other) {
                Ordering::Less => other,
                _ => one,
            });
        let median = match lower {
            Some(lower) if !is_odd => lower.middle(upper),
            _ => upper.wide(),
        };
        self.rows.push(row as i64);
        self.firsts.push(span.first as i64);
        self.lasts.push(span.last as i64);
        self.held_ns.push(span.held_ns);
        self.medians.push(median);
        self.lows.push(low);
        self.peaks.push(high);
    }
}

#[cfg(test)]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "counts and indices of tests are small"
)]
mod tests {
    use super::{Clock, Episodes, episodes};
    use proptest::prelude::*;

    const S: i64 = 1_000_000_000;

    fn of(flags: &[bool], values: &[f64], duration_s: f64) -> Episodes {
        let ends: Vec<i64> = (1..).take(flags.len()).map(|second| second * S).collect();
        let starts: Vec<i64> = ends.iter().map(|end| end - S).collect();
        episodes(
            &[flags],
            &[values],
            Clock {
                starts: &starts,
                ends: &ends,
                duration_s,
            },
        )
    }

    #[test]
    fn a_flicker_is_one_episode_and_a_spike_long_before_is_none() {
        let flags = [
            true, false, false, false, true, true, false, true, true, true,
        ];
        let values = [9.0, 0.0, 0.0, 0.0, 4.0, 6.0, 0.0, 5.0, 7.0, 8.0];
        let found = of(&flags, &values, 3.0);
        assert_eq!(
            (found.firsts, found.lasts, found.held_ns),
            (vec![4], vec![9], vec![5 * S])
        );
        assert_eq!(
            (found.medians, found.lows, found.peaks),
            (vec![6.0], vec![4.0], vec![8.0])
        );
    }

    #[test]
    fn nothing_met_is_no_episode() {
        assert_eq!(of(&[false; 4], &[1.0; 4], 0.0), Episodes::default());
        assert_eq!(of(&[], &[], 0.0), Episodes::default());
    }

    proptest! {
        #[test]
        fn an_episode_begins_and_ends_with_the_condition_and_holds_for_the_duration(
            cells in prop::collection::vec((any::<bool>(), -1e6..1e6_f64), 1..60),
            duration_s in 0.0..9.0_f64,
        ) {
            let (flags, values): (Vec<bool>, Vec<f64>) = cells.into_iter().unzip();
            let found = of(&flags, &values, duration_s);
            let mut after = 0;
            for place in 0..found.rows.len() {
                let (first, last) = (found.firsts[place] as usize, found.lasts[place] as usize);
                prop_assert!(first >= after && flags[first] && flags[last]);
                let held: Vec<f64> = (first..=last).filter(|&at| flags[at]).map(|at| values[at]).collect();
                prop_assert_eq!(found.held_ns[place], held.len() as i64 * S);
                prop_assert!(held.len() as f64 + 1e-6 >= duration_s);
                prop_assert!(found.lows[place] <= found.medians[place]);
                prop_assert!(found.medians[place] <= found.peaks[place]);
                after = last + 1;
            }
        }
    }
}
