//! Paging against closed forms: how many touches miss, and how long the run takes.

#![allow(clippy::unwrap_used)] // a test may end so

use leadline_sim::models::far_memory::{Counts, FarMemory, Pattern, Replacement, Spec};
use leadline_sim::time::{MICROSECOND, SECOND};
use proptest::prelude::*;

const PAGES: u32 = 20_000;

fn spec(pattern: Pattern, share: f64) -> Spec {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a share of the pages
    let local_pages = (f64::from(PAGES) * share) as u32;
    Spec {
        seed: 1,
        pages: PAGES,
        local_pages,
        stands_for: 1,
        pattern,
        alone: 10 * SECOND,
        replacement: Replacement::Lru,
        read: 5 * MICROSECOND,
        transfer: 0,
        minor: 0,
        reclaim: 0,
        window: 1,
        width: SECOND,
    }
}

fn run(spec: Spec) -> (FarMemory, Counts) {
    let mut run = FarMemory::new(spec).unwrap();
    while run.run(10_000) == 10_000 {}
    let counts = run.finish().unwrap();
    (run, counts)
}

fn near(found: f64, expected: f64, share: f64) {
    assert!(
        (found - expected).abs() <= share * expected.abs(),
        "{found} where {expected} was expected"
    );
}

/// Any page alike: the page is elsewhere with the share of memory that is; run time is work and so many reads.
#[test]
fn uniform_touches_miss_the_share_that_is_elsewhere() {
    for replacement in [Replacement::Lru, Replacement::Clock] {
        for share in [0.9, 0.5, 0.2] {
            let spec = Spec {
                replacement,
                ..spec(Pattern::Uniform { visits: 20.0 }, share)
            };
            let (done, counts) = run(spec);
            let missed = 20.0 * f64::from(PAGES) * (1.0 - share);
            near(counts.major as f64, missed, 0.01);
            near(done.now(), 10e9 + missed * 5e3, 0.002);
            assert_eq!(counts.ahead, 0);
        }
    }
}

/// Memory that grows evenly: of the touches at size u a share 1 - r/u misses; over the run 1 - r + r ln r.
#[test]
fn growing_memory_misses_the_integral() {
    for share in [0.9, 0.8, 0.5_f64] {
        let (_, counts) = run(spec(Pattern::Growing { visits: 50.0 }, share));
        let touches = 49.0 * f64::from(PAGES); // one in fifty allocates
        let missed = touches * (1.0 - share + share * libm::log(share));
        near(counts.major as f64, missed, 0.02);
    }
}

/// A loop longer than memory: LRU has always just lost the page that comes.
#[test]
fn a_loop_misses_every_time() {
    let (_, counts) = run(spec(Pattern::Sequential { passes: 5 }, 0.9));
    assert_eq!(counts.major, 5 * u64::from(PAGES));
    let (_, fits) = run(spec(Pattern::Sequential { passes: 5 }, 1.0));
    assert_eq!(fits.major, 0);
}

/// One in eight waits, seven come along; the run takes reads, transfers that are slower than the program, and faults.
#[test]
fn pages_read_ahead_are_waited_for_once() {
    let ahead = Spec {
        window: 8,
        transfer: 200 * MICROSECOND,
        minor: MICROSECOND,
        ..spec(Pattern::Sequential { passes: 5 }, 0.5)
    };
    let (done, counts) = run(ahead);
    let touches = 5.0 * f64::from(PAGES);
    near(counts.major as f64, touches / 8.0, 0.01);
    near(counts.minor as f64, touches * 7.0 / 8.0, 0.01);
    // A window takes a read, seven transfers and the last page's fault, and the work on the page before the next one:
    // 10 s by 120,000 touches.
    let window = 5e3 + 7.0 * 200e3 + 1e3 + 83_333.0;
    let filling = 10e9 / 6.0;
    near(done.now(), filling + touches / 8.0 * window, 0.01);
}

/// No locality: nothing is read ahead, as Linux stops when nothing of the last window was used.
#[test]
fn random_touches_stop_reading_ahead() {
    let ahead = Spec {
        window: 8,
        ..spec(Pattern::Uniform { visits: 20.0 }, 0.5)
    };
    let (_, counts) = run(ahead);
    assert!(counts.ahead * 10 < counts.major, "{counts:?}");
}

/// Popular pages stay: fewer misses than without, more with less memory.
#[test]
fn popular_pages_stay() {
    let missed = |skew, share| {
        run(spec(Pattern::Zipf { visits: 20.0, skew }, share))
            .1
            .major
    };
    assert!(missed(0.99, 0.3) * 2 < missed(0.0, 0.3));
    assert!(missed(0.99, 0.3) > missed(0.99, 0.5));
    let even = 20.0 * f64::from(PAGES) * 0.7;
    near(missed(0.0, 0.3) as f64, even, 0.01);
}

/// Partitions from both ends: LRU has just lost what the left end comes to, so that the first tenth missing costs more
/// than half of all pages once, and each further tenth less than that.
#[test]
fn a_sort_pays_most_for_the_first_tenth() {
    let missed = |share| run(spec(Pattern::Quicksort, share)).1.major as f64 / f64::from(PAGES);
    let [tenth, fifth, third] = [0.9, 0.8, 0.7].map(missed);
    near(tenth, 1.05, 0.01); // 0.55 in the first partition, 0.05 in the right half, 0.35 in the left, 0.1 in the last pass
    assert!(tenth < fifth && fifth < third, "{tenth} {fifth} {third}");
    assert!(third < 2.0 * tenth, "{tenth} {fifth} {third}");
    assert!(missed(1.0).abs() < f64::EPSILON);
}

/// A page that stands for sixteen: the same run time, the same counts.
#[test]
fn pages_may_stand_for_several() {
    let fine = Spec {
        window: 8,
        transfer: MICROSECOND,
        minor: MICROSECOND,
        reclaim: 3 * MICROSECOND,
        ..spec(Pattern::Quicksort, 0.8)
    };
    let coarse = Spec {
        pages: PAGES / 16,
        local_pages: fine.local_pages / 16,
        stands_for: 16,
        ..fine.clone()
    };
    let ((fine, few), (coarse, many)) = (run(fine), run(coarse));
    near(coarse.now(), fine.now(), 0.01);
    near(many.major as f64, few.major as f64, 0.05);
}

#[test]
fn runs_repeat_and_seeds_matter() {
    let of = |seed| {
        let spec = Spec {
            seed,
            ..spec(Pattern::Uniform { visits: 2.0 }, 0.5)
        };
        run(spec).0.trace()
    };
    assert_eq!(of(1), of(1));
    assert_ne!(of(1), of(2));
}

#[test]
fn parameters_that_make_no_run_are_refused() {
    let uniform = Pattern::Uniform { visits: 1.0 };
    let small = Spec {
        local_pages: 8,
        window: 8,
        ..spec(uniform.clone(), 0.5)
    };
    let growing = Spec {
        pattern: Pattern::Growing { visits: 0.5 },
        ..spec(uniform.clone(), 0.5)
    };
    let odd = Spec {
        window: 3,
        ..spec(uniform.clone(), 0.5)
    };
    let one = Spec {
        pages: 1,
        ..spec(uniform, 0.5)
    };
    for (wrong, expected) in [
        (small, "more pages"),
        (growing, "touches"),
        (odd, "power of two"),
        (one, "2 to 2^30"),
    ] {
        let error = FarMemory::new(wrong).unwrap_err();
        assert!(error.expected.contains(expected), "{error}");
    }
}

proptest! {
    /// Nothing is lost, whatever the parameters: `finish` counts pages and time.
    #[test]
    fn pages_and_time_are_conserved(
        pages in 64u32..2_000, share in 0.3f64..1.0, window in 0u32..4, kind in 0usize..5, clock: bool, seed: u64,
    ) {
        let pattern = [
            Pattern::Sequential { passes: 2 },
            Pattern::Uniform { visits: 3.0 },
            Pattern::Zipf { visits: 3.0, skew: 1.1 },
            Pattern::Quicksort,
            Pattern::Growing { visits: 3.0 },
        ][kind].clone();
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let local_pages = (f64::from(pages) * share) as u32;
        let replacement = if clock { Replacement::Clock } else { Replacement::Lru };
        let spec = Spec {
            seed, pages, local_pages, replacement, window: 1 << window, transfer: 700, minor: 300, reclaim: 200,
            ..spec(pattern, 1.0)
        };
        let (done, counts) = run(spec);
        prop_assert!(done.now() >= 10e9 * (1.0 - 1e-9));
        prop_assert_eq!(done.major_series.iter().sum::<u64>(), counts.major);
        prop_assert!(counts.minor + counts.wasted <= counts.ahead);
        prop_assert!(counts.resident <= u64::from(local_pages));
    }
}
