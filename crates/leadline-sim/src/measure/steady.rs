//! Where the warm-up ends.
//!
//! Sources: White, "An effective truncation heuristic for bias reduction in simulation output" (Simulation 69, 1997);
//! White, Cobb and Spratt, "A comparison of five steady-state truncation heuristics for simulation" (WSC 2000), MSER-5.

/// The part of a run to leave out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WarmUp {
    /// How many batches to leave out.
    pub batch_count: usize,
    /// The squared standard error of the mean of the rest, which this choice makes least.
    pub statistic: f64,
}

/// The number of leading batches without which the mean of the rest has the least standard error (MSER; MSER-5 when
/// each number is the mean of five values, as in [`super::Batches`]).
///
/// None with fewer than 10 batches, or when the least lies in the second half: then the run never became steady, or
/// was too short to tell.
#[must_use]
pub fn mser(means: &[f64]) -> Option<WarmUp> {
    const BATCHES_MIN: usize = 10; // Judgement: half of fewer is no sample
    let count = means.len();
    if count < BATCHES_MIN {
        return None;
    }
    let (mut mean, mut squares) = (0.0, 0.0);
    let mut best: Option<WarmUp> = None;
    // From the end, so that mean and squared deviations of each tail follow from those of the next shorter one.
    for (tail, value) in (1..=count).zip(means.iter().rev()) {
        let off = value - mean;
        mean += off / tail as f64;
        squares += off * (value - mean);
        // Tails of a few batches can agree by chance; they are no evidence.
        if tail >= BATCHES_MIN / 2 {
            let statistic = squares / (tail as f64 * tail as f64);
            if best.is_none_or(|b| statistic <= b.statistic) {
                best = Some(WarmUp {
                    batch_count: count - tail,
                    statistic,
                });
            }
        }
    }
    best.filter(|warm_up| warm_up.batch_count <= count / 2)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::float_cmp)] // a test may end so, and these numbers are exact
mod tests {
    use super::*;
    use crate::random::Streams;

    #[test]
    fn a_transient_is_left_out() {
        let mut stream = Streams::new(3).stream("test", "noise");
        let decaying = |i: u32| 10.0 * libm::exp(-f64::from(i) / 20.0);
        let means: Vec<f64> = (0..1000)
            .map(|i| 5.0 + decaying(i) + 0.3 * stream.normal())
            .collect();
        let warm_up = mser(&means).unwrap();
        assert!((40..160).contains(&warm_up.batch_count), "{warm_up:?}");
    }

    #[test]
    fn a_run_without_one_keeps_nearly_all() {
        let mut stream = Streams::new(4).stream("test", "noise");
        let means: Vec<f64> = (0..1000).map(|_| 5.0 + stream.normal()).collect();
        assert!(mser(&means).unwrap().batch_count < 100);
        assert_eq!(mser(&[2.0; 50]).unwrap().batch_count, 0);
    }

    #[test]
    fn a_drift_and_a_short_run_are_not_steady() {
        let drift: Vec<f64> = (0..1000).map(f64::from).collect();
        assert_eq!(mser(&drift), None);
        assert_eq!(mser(&[1.0; 9]), None);
    }
}
