//! Numbers drawn from a measured histogram.

use super::samplers::Sample;
use super::stream::Stream;
use leadline_stats::histogram::LogLinear;

/// A histogram to draw from: a bucket by Walker's alias method in constant time, then evenly within the bucket.
///
/// Source: Vose, "A linear algorithm for generating random numbers with a given distribution" (IEEE TSE 17, 1991).
#[derive(Clone, Debug, PartialEq)]
pub struct Empirical {
    cells: Vec<Cell>,
    mean: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Cell {
    /// Draw from `own` below this, else from `other`.
    threshold: f64,
    own: (f64, f64),
    other: (f64, f64),
}

impl Empirical {
    /// From buckets (lower bound, upper bound, weight); equal bounds mean exactly that number. None when no weight is
    /// positive, or a number is negative or not finite.
    #[must_use]
    pub fn from_buckets(buckets: &[(f64, f64, f64)]) -> Option<Self> {
        let sound = |x: f64| x.is_finite() && x >= 0.0;
        if !buckets
            .iter()
            .all(|b| sound(b.0) && sound(b.1) && sound(b.2))
        {
            return None;
        }
        let held: Vec<_> = buckets.iter().copied().filter(|b| b.2 > 0.0).collect();
        let total: f64 = held.iter().map(|b| b.2).sum();
        if total <= 0.0 {
            return None;
        }
        let weighted: f64 = held.iter().map(|b| f64::midpoint(b.0, b.1) * b.2).sum();
        Some(Self {
            cells: cells(&held, total),
            mean: weighted / total,
        })
    }

    /// From a histogram of whole numbers; buckets of one number give exactly that number. None when it is empty.
    #[must_use]
    pub fn from_histogram(histogram: &LogLinear) -> Option<Self> {
        let buckets: Vec<_> = histogram
            .buckets()
            .map(|b| {
                let upper = if b.upper - b.lower <= 1 {
                    b.lower
                } else {
                    b.upper
                };
                (b.lower as f64, upper as f64, b.count as f64)
            })
            .collect();
        Self::from_buckets(&buckets)
    }
}

/// Vose's construction: every cell holds one average weight, shared by at most two buckets.
fn cells(buckets: &[(f64, f64, f64)], total: f64) -> Vec<Cell> {
    let scale = buckets.len() as f64 / total;
    let mut shares: Vec<f64> = buckets.iter().map(|b| b.2 * scale).collect();
    let mut cells: Vec<Cell> = buckets
        .iter()
        .map(|b| Cell {
            threshold: 1.0,
            own: (b.0, b.1),
            other: (b.0, b.1),
        })
        .collect();
    let (mut small, mut large): (Vec<_>, Vec<_>) =
        (0..buckets.len()).partition(|index| shares[*index] < 1.0);
    while let (Some(poor), Some(rich)) = (small.pop(), large.pop()) {
        cells[poor].threshold = shares[poor];
        cells[poor].other = cells[rich].own;
        shares[rich] -= 1.0 - shares[poor];
        if shares[rich] < 1.0 {
            small.push(rich);
        } else {
            large.push(rich);
        }
    }
    cells
}

impl Sample for Empirical {
    #[inline]
    fn draw(&self, stream: &mut Stream) -> f64 {
        #[allow(clippy::cast_possible_truncation)] // below the number of cells
        let cell = &self.cells[stream.below(self.cells.len() as u64) as usize];
        let (low, high) = if stream.unit() < cell.threshold {
            cell.own
        } else {
            cell.other
        };
        low + (high - low) * stream.unit()
    }

    fn mean(&self) -> f64 {
        self.mean
    }
}
