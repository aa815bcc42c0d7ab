//! Episodes in which series are beyond a limit, and whether they are beyond a second one: both in one pass.

use crate::episodes::{Clock, Episodes, for_each_span};
use crate::sample::Sample;

/// When a sample is beyond a limit.
#[derive(Debug, Clone, Copy)]
pub struct Condition {
    /// The limit.
    pub warn: f64,
    /// The second limit; every episode is critical where there is none.
    pub crit: Option<f64>,
    /// Whether bad is below the limit, not above.
    pub below: bool,
    /// Whether a sample at the limit is beyond it too.
    pub inclusive: bool,
    /// A sample counts only when most of so many measured samples before and after it are beyond the limit too;
    /// 0 asks nothing of its neighbours.
    pub reach: usize,
}

impl Condition {
    /// Whether a sample is beyond a limit, which is rounded to the precision of the sample first.
    fn is_beyond<S: Sample + PartialOrd>(&self, sample: S, limit: S) -> bool {
        let past = if self.below {
            sample < limit
        } else {
            sample > limit
        };
        past || (self.inclusive && sample >= limit && sample <= limit)
    }
}

/// A matrix of either precision, row by row.
#[derive(Debug, Clone)]
pub enum Matrix<'a> {
    /// Of single precision.
    Single(Vec<&'a [f32]>),
    /// Of double precision.
    Double(Vec<&'a [f64]>),
}

/// Metrics whose sum must reach a least load for a sample to count; a metric that was not measured adds nothing.
#[derive(Debug, Clone)]
pub struct Load<'a> {
    /// The metrics, each of the shape of the values.
    pub metrics: Vec<Matrix<'a>>,
    /// The least load.
    pub least: f64,
}

impl Load<'_> {
    /// Takes the flags of the samples of a row that carry less than the least load.
    fn clear_idle(&self, row: usize, flags: &mut [bool]) {
        let is_single = |metric: &Matrix<'_>| matches!(metric, Matrix::Single(_));
        let all_single = self.metrics.iter().all(is_single);
        for (at, flag) in flags.iter_mut().enumerate().filter(|(_, flag)| **flag) {
            *flag = if all_single {
                let samples = self.metrics.iter().filter_map(|metric| match metric {
                    Matrix::Single(rows) => Some(rows[row][at].numbered()),
                    Matrix::Double(_) => None,
                });
                samples.fold(0.0, f32::plus) >= f32::nearest(self.least)
            } else {
                let samples = self.metrics.iter().map(|metric| match metric {
                    Matrix::Single(rows) => rows[row][at].numbered().wide(),
                    Matrix::Double(rows) => rows[row][at].numbered(),
                });
                samples.fold(0.0, f64::plus) >= self.least
            };
        }
    }
}

/// The episodes beyond the first limit as columns, and which of them are beyond the second for the duration too.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Beyond {
    /// The episodes.
    pub episodes: Episodes,
    /// Whether each is critical.
    pub critical: Vec<bool>,
}

/// The episodes of every row in which the values are beyond the condition's limit under load.
#[must_use]
pub fn episodes_beyond<S: Sample + PartialOrd>(
    values: &[&[S]],
    load: Option<&Load<'_>>,
    condition: Condition,
    clock: Clock<'_>,
) -> Beyond {
    let count = clock.ends.len();
    let warn = S::nearest(condition.warn);
    let mut found = Beyond::default();
    let mut flags = vec![false; count];
    let mut scratch: Vec<S> = Vec::with_capacity(count);
    let mut second = Second::of(condition, count);
    let mut majority = Majority::of(condition.reach, count);
    for (row, &series) in values.iter().enumerate() {
        let mut is_any = false;
        for (flag, &sample) in flags.iter_mut().zip(series) {
            *flag = condition.is_beyond(sample, warn);
            is_any |= *flag;
        }
        if !is_any {
            continue;
        }
        if let Some(load) = load {
            load.clear_idle(row, &mut flags);
        }
        majority.keep_most(&mut flags, series);
        for_each_span(&flags, 0..count, clock, |span| {
            found
                .episodes
                .push(row, span, (&flags, series), &mut scratch);
            let samples = (span.first, span.last);
            found
                .critical
                .push(second.is_reached((&flags, series), samples, clock));
        });
    }
    found
}

/// Whether an episode of a series is beyond the condition's second limit for the duration too.
///
/// Only samples count that met the first condition (`flags`) between the `first` and the `last` of the episode.
#[must_use]
pub fn is_critical<S: Sample + PartialOrd>(
    (flags, series): (&[bool], &[S]),
    (first, last): (usize, usize),
    condition: Condition,
    clock: Clock<'_>,
) -> bool {
    Second::of(condition, series.len()).is_reached((flags, series), (first, last), clock)
}

/// Looks for the second limit within an episode.
struct Second {
    condition: Condition,
    flags: Vec<bool>,
    majority: Majority,
}

impl Second {
    fn of(condition: Condition, count: usize) -> Self {
        Self {
            condition,
            flags: vec![false; count],
            majority: Majority::of(condition.reach, count),
        }
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "spans of centuries in nanoseconds are exact enough as doubles"
    )]
    fn is_reached<S: Sample + PartialOrd>(
        &mut self,
        (flags, series): (&[bool], &[S]),
        (first, last): (usize, usize),
        clock: Clock<'_>,
    ) -> bool {
        let Some(crit) = self.condition.crit.map(S::nearest) else {
            return true;
        };
        let range = first..last + 1;
        for at in range.clone() {
            self.flags[at] = flags[at] && self.condition.is_beyond(series[at], crit);
        }
        self.majority.keep_most(&mut self.flags, series);
        let held_ns: i64 = range
            .clone()
            .filter(|&at| self.flags[at])
            .map(|at| clock.ends[at] - clock.starts[at])
            .sum();
        let mut is_long = false;
        if held_ns as f64 / 1e9 >= clock.duration_s {
            for_each_span(&self.flags, range.clone(), clock, |_| is_long = true);
        }
        self.flags[range].fill(false);
        is_long
    }
}

/// Keeps the samples most of whose measured neighbours meet a condition too.
struct Majority {
    reach: usize,
    /// How many of the samples before each one met the condition, and how many were measured.
    counts: Vec<(usize, usize)>,
}

impl Majority {
    fn of(reach: usize, count: usize) -> Self {
        let places = if reach == 0 { 0 } else { count + 1 };
        Self {
            reach,
            counts: Vec::with_capacity(places),
        }
    }

    fn keep_most<S: Sample>(&mut self, flags: &mut [bool], series: &[S]) {
        if self.reach == 0 {
            return;
        }
        self.counts.clear();
        self.counts.push((0, 0));
        let (mut met, mut measured) = (0, 0);
        for (&flag, &sample) in flags.iter().zip(series) {
            met += usize::from(flag);
            measured += usize::from(sample.is_finite());
            self.counts.push((met, measured));
        }
        for (at, flag) in flags.iter_mut().enumerate() {
            let low = self.counts[at.saturating_sub(self.reach)];
            let end = at.saturating_add(self.reach).saturating_add(1);
            let high = self.counts[end.min(series.len())];
            *flag &= 2 * (high.0 - low.0) > high.1 - low.1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Beyond, Condition, Load, Matrix, episodes_beyond};
    use crate::episodes::{Clock, episodes};
    use proptest::prelude::*;

    const S: i64 = 1_000_000_000;
    const CONDITION: Condition = Condition {
        warn: 5.0,
        crit: Some(8.0),
        below: false,
        inclusive: false,
        reach: 0,
    };

    fn times(count: usize) -> (Vec<i64>, Vec<i64>) {
        let ends: Vec<i64> = (1..).take(count).map(|second| second * S).collect();
        (ends.iter().map(|end| end - S).collect(), ends)
    }

    fn of(row: &[f64], load: Option<&Load<'_>>, condition: Condition, duration_s: f64) -> Beyond {
        let (starts, ends) = times(row.len());
        let clock = Clock {
            starts: &starts,
            ends: &ends,
            duration_s,
        };
        episodes_beyond(&[row], load, condition, clock)
    }

    #[test]
    fn an_episode_is_critical_when_it_is_beyond_the_second_limit_for_as_long() {
        let row = [
            6.0,
            9.0,
            9.0,
            0.0,
            0.0,
            0.0,
            0.0,
            6.0,
            6.0,
            9.0,
            5.0,
            f64::NAN,
        ];
        let found = of(&row, None, CONDITION, 2.0);
        assert_eq!(found.episodes.firsts, [0, 7]);
        assert_eq!(found.critical, [true, false]);
        let single = Condition {
            crit: None,
            ..CONDITION
        };
        assert_eq!(of(&row, None, single, 2.0).critical, [true, true]);
    }

    #[test]
    fn samples_without_load_do_not_count() {
        let row = [9.0; 4];
        let (reads, writes): (&[f64], &[f32]) =
            (&[1.0, 1.0, f64::NAN, 1.0], &[1.0, f32::NAN, 3.0, 1.0]);
        let metrics = vec![Matrix::Double(vec![reads]), Matrix::Single(vec![writes])];
        let load = Load {
            metrics,
            least: 2.0,
        };
        let found = of(&row, Some(&load), CONDITION, 1.0);
        assert_eq!(found.episodes.held_ns, [3 * S]);
    }

    #[test]
    fn a_lone_sample_among_measured_ones_is_no_majority() {
        let row = [0.0, 9.0, 0.0, f64::NAN, 9.0, f64::NAN];
        let mostly = Condition {
            reach: 1,
            ..CONDITION
        };
        assert_eq!(of(&row, None, mostly, 1.0).episodes.firsts, [4]);
    }

    proptest! {
        #[test]
        fn one_pass_is_as_good_as_a_matrix_of_flags(
            row in prop::collection::vec(prop_oneof![0.0..10.0_f64, Just(5.0), Just(f64::NAN)], 1..50),
            (below, inclusive) in any::<(bool, bool)>(),
            duration_s in 0.0..6.0_f64,
        ) {
            let condition = Condition { below, inclusive, ..CONDITION };
            let past = |one: f64| if below { one < 5.0 } else { one > 5.0 } || (inclusive && one.to_bits() == 5.0_f64.to_bits());
            let flags: Vec<bool> = row.iter().map(|&one| past(one)).collect();
            let (starts, ends) = times(row.len());
            let clock = Clock { starts: &starts, ends: &ends, duration_s };
            let found = of(&row, None, condition, duration_s);
            prop_assert_eq!(found.critical.len(), found.episodes.rows.len());
            prop_assert_eq!(found.episodes, episodes(&[&flags], &[&row], clock));
        }
    }
}
