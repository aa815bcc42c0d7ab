//! Means of series over windows of time, weighted by how much of a window each sample's interval covers.

use crate::sample::Sample;

/// The least share of a window that must be measured. Judgement: a mean says something about a window when at least half
/// of it was measured.
pub const COVERED_SHARE_MIN: f64 = 0.5;

/// Where a moment lies on the edges of the samples' intervals.
#[derive(Debug, Clone, Copy)]
struct Place {
    edge: usize,
    share: f64,
}

/// The mean of every row over each window, row after row; NaN where less than half of a window was measured.
///
/// `intervals` are start and end of the interval of each sample in nanoseconds, ascending and without overlap; `windows`
/// are start and end of each window.
#[must_use]
pub fn window_means<S: Sample>(
    values: &[&[S]],
    (starts, ends): (&[i64], &[i64]),
    (from, to): (&[i64], &[i64]),
) -> Vec<f64> {
    let Some(&origin) = starts.first() else {
        return vec![f64::NAN; values.len() * from.len()];
    };
    let seconds = |moment: i64| (moment - origin) as f64 / 1e9;
    let edges: Vec<f64> = starts
        .iter()
        .zip(ends)
        .flat_map(|(&start, &end)| [seconds(start), seconds(end)])
        .collect();
    let lengths: Vec<f64> = starts
        .iter()
        .zip(ends)
        .map(|(&start, &end)| (end - start) as f64 / 1e9)
        .collect();
    let placed = |moments: &[i64]| -> Vec<Place> {
        let places = moments.iter().map(|&moment| place(&edges, seconds(moment)));
        places.collect()
    };
    let windows: Vec<(Place, Place, f64)> = placed(from)
        .into_iter()
        .zip(placed(to))
        .zip(from.iter().zip(to))
        .map(|((start, end), (&from, &to))| (start, end, seconds(to) - seconds(from)))
        .collect();
    let mut results = Vec::with_capacity(values.len() * windows.len());
    let mut totals = Sums::of(edges.len());
    let mut covered = Sums::of(edges.len());
    for row in values {
        for (at, (&sample, &length)) in row.iter().zip(&lengths).enumerate() {
            let is_known = sample.is_finite();
            totals.add(
                at,
                if is_known {
                    sample.wide() * length
                } else {
                    0.0
                },
            );
            covered.add(at, if is_known { length } else { 0.0 });
        }
        results.extend(windows.iter().map(|&(start, end, length)| {
            let measured = covered.between(start, end);
            if measured >= COVERED_SHARE_MIN * length && measured > 0.0 {
                totals.between(start, end) / measured
            } else {
                f64::NAN
            }
        }));
    }
    results
}

fn place(edges: &[f64], moment: f64) -> Place {
    let after = edges.partition_point(|&edge| edge <= moment);
    let edge = after.saturating_sub(1).min(edges.len() - 2);
    let width = edges[edge + 1] - edges[edge];
    let share = (moment - edges[edge]) / if width > 0.0 { width } else { 1.0 };
    Place {
        edge,
        share: share.clamp(0.0, 1.0),
    }
}

/// The integral of a series that is constant within its intervals, from the first edge to each edge.
struct Sums(Vec<f64>);

impl Sums {
    fn of(edge_count: usize) -> Self {
        Self(vec![0.0; edge_count])
    }

    /// Takes the area of an interval; those before it were taken already.
    fn add(&mut self, at: usize, area: f64) {
        let before = if at == 0 { 0.0 } else { self.0[2 * at - 1] };
        self.0[2 * at] = before;
        self.0[2 * at + 1] = if at == 0 { area } else { before + area };
    }

    fn until(&self, place: Place) -> f64 {
        let before = self.0[place.edge];
        before + place.share * (self.0[place.edge + 1] - before)
    }

    fn between(&self, start: Place, end: Place) -> f64 {
        self.until(end) - self.until(start)
    }
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation)] // small numbers
mod tests {
    use super::window_means;
    use proptest::prelude::*;

    const S: i64 = 1_000_000_000;

    #[test]
    fn a_window_that_was_not_measured_for_half_of_it_has_no_mean() {
        let row: &[f64] = &[2.0, 6.0, f64::NAN];
        let bounds: (&[i64], &[i64]) = (&[0, 10 * S, 20 * S], &[10 * S, 20 * S, 30 * S]);
        let found = window_means(
            &[row],
            bounds,
            (&[5 * S, 10 * S, 11 * S], &[15 * S, 30 * S, 30 * S]),
        );
        assert_eq!(found[..2], [4.0, 6.0]);
        assert!(found[2].is_nan());
    }

    #[test]
    fn no_samples_have_no_mean() {
        let found = window_means::<f32>(&[&[]], (&[], &[]), (&[0], &[S]));
        assert!(found[0].is_nan() && found.len() == 1);
    }

    proptest! {
        #[test]
        fn a_constant_has_itself_as_mean_wherever_it_was_measured(
            steps in prop::collection::vec(1..9_i64, 1..30),
            level in -1e6..1e6_f64,
            window in (0.0..1.0_f64, 0.0..1.0_f64),
        ) {
            let ends: Vec<i64> = steps.iter().scan(0, |end, step| { *end += step * S; Some(*end) }).collect();
            let starts: Vec<i64> = ends.iter().zip(&steps).map(|(end, step)| end - step * S).collect();
            let row = vec![level; ends.len()];
            let length = ends[ends.len() - 1];
            let from = length / 1000 * (window.0 * 900.0).round() as i64;
            let to = from + length / 1000 * (1 + (window.1 * 90.0).round() as i64);
            let found = window_means(&[row.as_slice()], (&starts, &ends), (&[from], &[to]));
            prop_assert!((found[0] - level).abs() <= 1e-6 * level.abs().max(1.0));
        }
    }
}
