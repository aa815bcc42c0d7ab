//! The histogram keeps its stated error and merges in any order.

use leadline_stats::histogram::{LogLinear, RELATIVE_ERROR};
use leadline_stats::limits::Limits;
use proptest::prelude::*;

fn of(values: &[u64]) -> LogLinear {
    let mut histogram = LogLinear::default();
    for value in values {
        histogram.record(*value);
    }
    histogram
}

fn merged(parts: &[&LogLinear]) -> LogLinear {
    let mut whole = LogLinear::default();
    for part in parts {
        whole.merge(part);
    }
    whole
}

fn values() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(
        (0u32..64).prop_flat_map(|bits| 0..=(u64::MAX >> bits)),
        0..200,
    )
}

proptest! {
    #[test]
    fn merging_is_associative_and_commutative(a in values(), b in values(), c in values()) {
        let (a, b, c) = (of(&a), of(&b), of(&c));
        let left = merged(&[&merged(&[&a, &b]), &c]);
        prop_assert_eq!(&left, &merged(&[&a, &merged(&[&b, &c])]));
        prop_assert_eq!(&left, &merged(&[&c, &b, &a]));
    }

    #[test]
    fn merged_is_pooled(a in values(), b in values()) {
        let pooled: Vec<u64> = a.iter().chain(&b).copied().collect();
        prop_assert_eq!(merged(&[&of(&a), &of(&b)]), of(&pooled));
    }

    #[test]
    fn a_quantile_is_within_the_error_of_the_sorted_sample(mut a in values(), share in 0.0f64..=1.0) {
        prop_assume!(!a.is_empty());
        let histogram = of(&a);
        a.sort_unstable();
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let rank = ((share * a.len() as f64).ceil() as usize).max(1);
        let exact = a[rank - 1] as f64;
        let found = histogram.quantile(share).unwrap_or(f64::NAN);
        prop_assert!((found - exact).abs() <= exact * RELATIVE_ERROR + 1e-9, "{} for {}", found, exact);
    }

    #[test]
    fn every_value_lies_in_its_bucket(value in any::<u64>()) {
        let bucket = of(&[value]).buckets().next();
        let held = bucket.is_some_and(|b| b.lower <= value && (value < b.upper || b.upper == u64::MAX));
        prop_assert!(held, "{:?}", bucket);
    }

    #[test]
    fn a_distance_is_a_distance(a in values(), b in values()) {
        let (a, b) = (of(&a), of(&b));
        prop_assert_eq!(a.distance(&b), b.distance(&a));
        if a.total() > 0 {
            prop_assert_eq!(a.distance(&a), Some(0.0));
        }
        prop_assert!(a.distance(&b).is_none_or(|apart| (0.0..=1.0).contains(&apart)));
    }

    #[test]
    fn limits_count_as_vscsistats_does(values in prop::collection::vec(-20i64..20, 0..100)) {
        static LIMITS: [i64; 4] = [-10, 0, 1, 10];
        let mut histogram = Limits::new(&LIMITS);
        for value in &values {
            histogram.record(*value);
        }
        let within = |low: i64, high: i64| values.iter().filter(|v| **v > low && **v <= high).count() as u64;
        let expected = [within(i64::MIN, -10), within(-10, 0), within(0, 1), within(1, 10), within(10, i64::MAX)];
        prop_assert_eq!(histogram.counts(), &expected);
        let sum: i64 = values.iter().sum();
        let mean = (!values.is_empty()).then(|| sum as f64 / values.len() as f64);
        prop_assert_eq!(histogram.summary().map(|s| s.2), mean);
    }
}

#[test]
fn the_error_is_at_most_one_percent_and_nothing_is_lost_at_the_ends() {
    const { assert!(RELATIVE_ERROR <= 0.01) };
    let histogram = of(&[0, 127, u64::MAX]);
    assert_eq!(
        (histogram.min(), histogram.max(), histogram.total()),
        (Some(0), Some(u64::MAX), 3)
    );
    assert_eq!(histogram.quantile(0.5), Some(127.0));
    assert_eq!(LogLinear::default().quantile(0.5), None);
    assert_eq!(
        (LogLinear::default().mean(), LogLinear::default().max()),
        (None, None)
    );
}

#[test]
fn the_mean_is_of_the_values() {
    let found = of(&(1..=100_000).collect::<Vec<u64>>())
        .mean()
        .unwrap_or(f64::NAN);
    assert!((found - 50_000.5).abs() < 50_000.5 * RELATIVE_ERROR);
}
