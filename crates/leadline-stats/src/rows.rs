//! Arithmetic on the rows of a matrix: one series a row, NaN is "not measured" and is left out, sums are double.
//!
//! A matrix is a slice of its rows, all as long as each other; nothing is copied but one row at a time.

use std::ops::Range;

use crate::sample::Sample;

/// Quantiles of every row, row after row, linear between samples as `NumPy` computes them by default.
///
/// A row without any measured sample has NaN.
#[must_use]
pub fn quantiles<S: Sample>(values: &[&[S]], shares: &[f64]) -> Vec<S> {
    let mut results = Vec::with_capacity(values.len() * shares.len());
    let mut scratch: Vec<S> = Vec::new();
    for row in values {
        scratch.clear();
        scratch.extend(row.iter().copied().filter(|sample| sample.is_measured()));
        if shares.len() > 1 {
            scratch.sort_unstable_by(|one, other| one.order(*other));
        }
        results.extend(shares.iter().map(|&share| quantile(&mut scratch, share)));
    }
    results
}

/// A quantile of measured samples, whose order it may change.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a place among samples in memory"
)]
fn quantile<S: Sample>(samples: &mut [S], share: f64) -> S {
    let Some(last) = samples.len().checked_sub(1) else {
        return S::nearest(f64::NAN);
    };
    let place = share.clamp(0.0, 1.0) * last as f64;
    let before = (place as usize).min(last);
    let (_, &mut below, after) =
        samples.select_nth_unstable_by(before, |one, other| one.order(*other));
    let above = after
        .iter()
        .copied()
        .reduce(|one, other| if other.order(one).is_lt() { other } else { one });
    match above {
        Some(above) => below.toward(above, place - before as f64),
        // `NumPy` counts the last sample from the end here, which tells in the sign of a zero.
        None => below.toward(below, place + 1.0),
    }
}

/// The mean of the measured samples of every row.
#[must_use]
pub fn means<S: Sample>(values: &[&[S]]) -> Vec<f64> {
    values.iter().map(|row| mean(row.iter().copied())).collect()
}

/// The mean of every row over each span of samples, row after row.
///
/// A span that ends beyond the row ends with it.
#[must_use]
pub fn span_means<S: Sample>(values: &[&[S]], spans: &[Range<usize>]) -> Vec<f64> {
    let mut results = Vec::with_capacity(values.len() * spans.len());
    for row in values {
        results.extend(spans.iter().map(|span| {
            let end = span.end.min(row.len());
            mean(row[span.start.min(end)..end].iter().copied())
        }));
    }
    results
}

/// The mean of every row over the samples that are flagged.
#[must_use]
pub fn flagged_means<S: Sample>(values: &[&[S]], flags: &[bool]) -> Vec<f64> {
    let flagged = |row: &&[S]| {
        let pairs = row.iter().zip(flags);
        mean(pairs.filter(|(_, flag)| **flag).map(|(sample, _)| *sample))
    };
    values.iter().map(flagged).collect()
}

fn mean<S: Sample>(samples: impl Iterator<Item = S>) -> f64 {
    let (mut sum, mut count) = (0.0, 0_usize);
    for sample in samples.filter(|sample| sample.is_measured()) {
        sum += sample.wide();
        count += 1;
    }
    if count == 0 {
        f64::NAN
    } else {
        sum / count as f64
    }
}

/// The lowest and the highest measured sample of every row.
#[must_use]
pub fn extents<S: Sample>(values: &[&[S]]) -> (Vec<S>, Vec<S>) {
    let nan = S::nearest(f64::NAN);
    let extent = |row: &&[S]| {
        let mut measured = row.iter().copied().filter(|sample| sample.is_measured());
        let first = measured.next().unwrap_or(nan);
        measured.fold((first, first), |(low, high), sample| {
            (
                if sample.order(low).is_lt() {
                    sample
                } else {
                    low
                },
                if sample.order(high).is_gt() {
                    sample
                } else {
                    high
                },
            )
        })
    };
    values.iter().map(extent).unzip()
}

/// How the samples of several rows at one time become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fold {
    /// Their sum.
    Sum,
    /// Their mean.
    Mean,
    /// The lowest of them.
    Lowest,
    /// The highest of them.
    Highest,
}

/// The rows of each owner as one, `count` samples a row, owner after owner; NaN where none of its rows was measured.
///
/// `owners` gives the owner of each row; rows whose owner is not below `owner_count` are left out.
#[must_use]
pub fn folded<S: Sample>(
    values: &[&[S]],
    owners: &[usize],
    owner_count: usize,
    count: usize,
    fold: Fold,
) -> Vec<f64> {
    let mut results = vec![f64::NAN; owner_count * count];
    let mut measured = vec![0_u32; owner_count * count];
    let rows = values.iter().zip(owners);
    for (row, &owner) in rows.filter(|(_, owner)| **owner < owner_count) {
        let span = owner * count..(owner + 1) * count;
        let places = results[span.clone()].iter_mut().zip(&mut measured[span]);
        for ((result, number), sample) in places.zip(*row) {
            if sample.is_measured() {
                let sample = sample.wide();
                *result = match fold {
                    _ if *number == 0 => sample,
                    Fold::Sum | Fold::Mean => *result + sample,
                    Fold::Lowest => result.min(sample),
                    Fold::Highest => result.max(sample),
                };
                *number += 1;
            }
        }
    }
    if fold == Fold::Mean {
        for (result, number) in results.iter_mut().zip(measured) {
            *result /= f64::from(number);
        }
    }
    results
}

#[cfg(test)]
mod tests {
    use super::{Fold, extents, flagged_means, folded, means, quantiles, span_means};
    use proptest::prelude::*;

    const NAN: f64 = f64::NAN;

    /// A matrix of up to six rows; some samples are not measured.
    fn matrix() -> impl Strategy<Value = Vec<Vec<f64>>> {
        (1..30_usize).prop_flat_map(|count| {
            let sample = prop_oneof![4 => -1e6..1e6_f64, 1 => Just(NAN)];
            prop::collection::vec(prop::collection::vec(sample, count), 1..6)
        })
    }

    fn measured(row: &[f64]) -> Vec<f64> {
        let mut kept: Vec<f64> = row.iter().copied().filter(|one| !one.is_nan()).collect();
        kept.sort_by(f64::total_cmp);
        kept
    }

    fn slices(rows: &[Vec<f64>]) -> Vec<&[f64]> {
        rows.iter().map(Vec::as_slice).collect()
    }

    fn is_near(one: f64, other: f64) -> bool {
        (one.is_nan() && other.is_nan()) || (one - other).abs() <= 1e-6
    }

    #[test]
    fn a_quantile_lies_between_samples_and_leaves_gaps_out() {
        let row: &[f32] = &[4.0, f32::NAN, 1.0, 2.0];
        assert_eq!(
            quantiles(&[row], &[0.0, 0.25, 0.5, 1.0]),
            [1.0, 1.5, 2.0, 4.0]
        );
        assert!(quantiles(&[&[NAN, NAN]], &[0.5])[0].is_nan());
    }

    #[test]
    fn a_span_beyond_the_row_ends_with_it() {
        let row: &[f64] = &[1.0, NAN, 3.0, 8.0];
        let spans = [(0, 3), (2, 9), (1, 2)].map(|(first, end)| first..end);
        let found = span_means(&[row], &spans);
        assert_eq!(found[..2], [2.0, 5.5]);
        assert!(found[2].is_nan());
    }

    proptest! {
        #[test]
        fn quantiles_lie_where_the_ordered_samples_do(rows in matrix(), share in 0.0..=1.0_f64) {
            let found = quantiles(&slices(&rows), &[share, 0.0, 1.0]);
            for (row, found) in rows.iter().zip(found.chunks(3)) {
                let ordered = measured(row);
                let Some(last) = ordered.len().checked_sub(1) else {
                    prop_assert!(found.iter().all(|one| one.is_nan()));
                    continue;
                };
                let below = ordered.iter().filter(|&&one| one <= found[0]).count() as f64;
                let above = ordered.iter().filter(|&&one| one >= found[0]).count() as f64;
                prop_assert!(below >= (share * last as f64).floor() && above >= ((1.0 - share) * last as f64).floor());
                prop_assert_eq!((found[1], found[2]), (ordered[0], ordered[last]));
            }
        }

        #[test]
        fn means_and_extents_are_those_of_what_was_measured(rows in matrix()) {
            let (lows, highs) = extents(&slices(&rows));
            let everything = vec![true; rows[0].len()];
            let (whole, flagged) = (means(&slices(&rows)), flagged_means(&slices(&rows), &everything));
            for (at, row) in rows.iter().enumerate() {
                let kept = measured(row);
                let mean = kept.iter().sum::<f64>() / kept.len() as f64;
                prop_assert!(is_near(whole[at], mean) && is_near(flagged[at], mean));
                prop_assert!(is_near(lows[at], kept.first().copied().unwrap_or(NAN)));
                prop_assert!(is_near(highs[at], kept.last().copied().unwrap_or(NAN)));
            }
        }

        #[test]
        fn an_owner_has_at_each_time_what_its_rows_have(
            rows in matrix(),
            owners in prop::collection::vec(0..4_usize, 6),
        ) {
            let count = rows[0].len();
            let of = |fold| folded(&slices(&rows), &owners, 3, count, fold);
            let (sums, shares) = (of(Fold::Sum), of(Fold::Mean));
            let (lows, highs) = (of(Fold::Lowest), of(Fold::Highest));
            for (at, sum) in sums.iter().enumerate() {
                let members = rows.iter().zip(&owners).filter(|(_, owner)| **owner == at / count);
                let samples: Vec<f64> = members.map(|(row, _)| row[at % count]).collect();
                let kept = measured(&samples);
                let total = if kept.is_empty() { NAN } else { kept.iter().sum() };
                prop_assert!(is_near(*sum, total));
                prop_assert!(is_near(shares[at], total / kept.len() as f64));
                prop_assert!(is_near(lows[at], kept.first().copied().unwrap_or(NAN)));
                prop_assert!(is_near(highs[at], kept.last().copied().unwrap_or(NAN)));
            }
        }
    }
}
