//! Reuse distances against a plain list, sampled curves against the exact one, dispersion against known processes.

use leadline_stats::dispersion::Dispersion;
use leadline_stats::distance::ReuseTree;
use leadline_stats::shards::Shards;
use proptest::prelude::*;

/// The LRU stack as a list: the distance is the position.
fn by_hand(stack: &mut Vec<u64>, key: u64) -> Option<u64> {
    let place = stack.iter().position(|held| *held == key);
    if let Some(place) = place {
        stack.remove(place);
    }
    stack.insert(0, key);
    place.map(|place| place as u64)
}

proptest! {
    #[test]
    fn distances_are_those_of_the_stack(keys in prop::collection::vec(0u64..60, 0..5000), forget in 0u64..60) {
        let (mut tree, mut stack) = (ReuseTree::default(), Vec::new());
        for (index, key) in keys.iter().enumerate() {
            if index == keys.len() / 2 {
                tree.remove(forget);
                stack.retain(|held| *held != forget);
            }
            prop_assert_eq!(tree.touch(*key), by_hand(&mut stack, *key));
        }
        prop_assert_eq!(tree.len(), stack.len());
    }

    #[test]
    fn a_sampler_never_holds_more_than_it_may(keys in prop::collection::vec(any::<u64>(), 0..2000), most in 1usize..50) {
        let mut sampler = Shards::new(most);
        for key in &keys {
            sampler.touch(*key);
        }
        prop_assert!(sampler.rate() <= 1.0);
        for point in sampler.curve(&[0.0, 1.0, 1e3, 1e12]) {
            prop_assert!((0.0..=1.0).contains(&point.miss_ratio));
        }
    }
}

/// Keys with popularity falling as the inverse of the rank, from a generator with a fixed seed.
fn skewed(count: usize, keys: f64) -> impl Iterator<Item = u64> {
    let mut state = 7u64;
    (0..count).map(move |_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let share = (state >> 11) as f64 / (1u64 << 53) as f64;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let rank = keys.powf(share) as u64;
        rank.wrapping_mul(0x9e37_79b9) // spread over the address space
    })
}

#[test]
fn a_sampled_curve_is_close_to_the_exact_one() {
    let sizes: Vec<f64> = (4..18).map(|power| f64::from(1 << power)).collect();
    let (mut exact, mut sampled) = (Shards::new(usize::MAX), Shards::new(4096));
    for key in skewed(1_000_000, 200_000.0) {
        exact.touch(key);
        sampled.touch(key);
    }
    assert!((exact.rate() - 1.0).abs() < f64::EPSILON);
    assert!(sampled.rate() < 0.1, "{}", sampled.rate());
    let resolved: Vec<f64> = sizes
        .into_iter()
        .filter(|size| *size >= 4.0 * sampled.resolution())
        .collect();
    assert!(resolved.len() > 8);
    let apart: Vec<f64> = exact
        .curve(&resolved)
        .iter()
        .zip(sampled.curve(&resolved))
        .map(|(a, b)| (a.miss_ratio - b.miss_ratio).abs())
        .collect();
    let mean = apart.iter().sum::<f64>() / apart.len() as f64;
    assert!(mean < 0.02, "mean absolute error {mean}: {apart:?}");
    let distinct = sampled.distinct() / exact.distinct();
    assert!((distinct - 1.0).abs() < 0.05, "{distinct}");
}

#[test]
fn a_loop_misses_until_it_fits() {
    let mut sampler = Shards::new(1 << 12);
    for _ in 0..100 {
        for key in 0..64 {
            sampler.touch(key);
        }
    }
    let curve = sampler.curve(&[32.0, 80.0]);
    assert!((curve[0].miss_ratio - 1.0).abs() < 1e-9);
    assert!((curve[1].miss_ratio - 0.01).abs() < 1e-9);
    assert!((sampler.distinct() - 64.0).abs() < f64::EPSILON);
    assert_eq!(sampler.uses(), 6400);
}

#[test]
fn a_clock_has_no_dispersion_and_bursts_have_much() {
    let (mut clock, mut bursts) = (Dispersion::new(1_000), Dispersion::new(1_000));
    for event in 0..100_000u64 {
        clock.record(event * 100);
        bursts.record(event / 100 * 100 * 100 + event % 100);
    }
    assert_eq!(clock.index(), Some(0.0));
    assert!(
        bursts
            .index()
            .is_some_and(|found| (found - 90.0).abs() < 1.0),
        "{:?}",
        bursts.index()
    );
    assert!(
        bursts
            .idle_share()
            .is_some_and(|found| (found - 0.9).abs() < 0.01)
    );
    assert!(
        bursts
            .peak_to_mean()
            .is_some_and(|found| (found - 10.0).abs() < 0.1)
    );
    assert_eq!(Dispersion::new(5).index(), None);
}

#[test]
fn a_poisson_process_has_a_dispersion_of_one() {
    let (mut process, mut time, mut state) = (Dispersion::new(1_000_000), 0f64, 3u64);
    for _ in 0..500_000 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let share = ((state >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
        time -= share.ln() * 50_000.0;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        process.record(time as u64);
    }
    assert!(
        process
            .index()
            .is_some_and(|found| (found - 1.0).abs() < 0.05),
        "{:?}",
        process.index()
    );
}
