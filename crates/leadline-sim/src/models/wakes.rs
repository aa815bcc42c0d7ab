//! When a scheduler that said "not before" will be asked again.
//!
//! An event once scheduled is not taken back: one that an earlier one overtook is kept in mind and serves whoever wants
//! to wait that long.

use crate::time::Nanos;

/// Wakes that are scheduled, the next one last.
#[derive(Clone, Debug, Default)]
pub struct Wakes(Vec<Nanos>);

impl Wakes {
    /// Whether a wake must be scheduled so that somebody looks at `until`: none that is pending comes as early.
    #[inline]
    pub fn wants(&mut self, until: Nanos) -> bool {
        let is_new = self.0.last().is_none_or(|next| until < *next);
        if is_new {
            self.0.push(until);
        }
        is_new
    }

    /// When the next one comes, ns; the largest number when none is pending.
    #[inline]
    #[must_use]
    pub fn next(&self) -> Nanos {
        self.0.last().copied().unwrap_or(Nanos::MAX)
    }

    /// A wake came.
    #[inline]
    pub fn came(&mut self) {
        self.0.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_earlier_ones_are_scheduled_and_later_ones_serve_again() {
        let mut wakes = Wakes::default();
        let wanted = |wakes: &mut Wakes, times: &[Nanos]| -> Vec<bool> {
            times.iter().map(|time| wakes.wants(*time)).collect()
        };
        assert_eq!(
            wanted(&mut wakes, &[50, 60, 50, 40]),
            [true, false, false, true]
        );
        wakes.came(); // at 40
        assert_eq!(wanted(&mut wakes, &[55, 50, 45]), [false, false, true]);
        wakes.came();
        wakes.came(); // at 50
        assert_eq!(wanted(&mut wakes, &[70]), [true]);
    }
}
