//! A rate that is never exceeded: when may the next one go?

use crate::time::{Nanos, SECOND};

/// Hands out times at a steady rate, exactly: fractions of a nanosecond are carried on, so that no rate drifts.
///
/// A unit may go when the units before it have been paid for at the rate, or earlier by the credit that an idle time
/// has saved, up to `burst` units at once. This is the virtual scheduling form of the leaky bucket.
///
/// Source: ITU-T I.371 annex A, generic cell rate algorithm, virtual scheduling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Units per 1,000 s.
    rate: u64,
    /// One unit lasts `whole` + `part` / `rate` ns.
    whole: u64,
    part: u64,
    /// The credit, ns.
    credit: Nanos,
    /// When all units so far are paid for: `next` + `next_part` / `rate` ns.
    next: Nanos,
    next_part: u64,
}

const RATE_SCALE: f64 = 1_000.0;
const RATE_MAX: f64 = 1e12;

impl Pace {
    /// A steady rate in units per second, to a thousandth; between 0.001 and 1e9, otherwise the nearest of these.
    #[must_use]
    pub fn new(per_second: f64) -> Self {
        Self::with_burst(per_second, 1)
    }

    /// A rate with up to `burst` units at once after an idle time; 0 counts as 1.
    #[must_use]
    pub fn with_burst(per_second: f64, burst: u64) -> Self {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // clamped
        let rate = (per_second * RATE_SCALE + 0.5).clamp(1.0, RATE_MAX) as u64;
        let period = 1_000 * SECOND;
        let credit = u128::from(burst.max(1) - 1) * u128::from(period) / u128::from(rate);
        Self {
            rate,
            whole: period / rate,
            part: period % rate,
            credit: Nanos::try_from(credit).unwrap_or(Nanos::MAX),
            next: 0,
            next_part: 0,
        }
    }

    /// Units per second.
    #[must_use]
    pub fn per_second(&self) -> f64 {
        self.rate as f64 / RATE_SCALE
    }

    /// The time at which `units` that come now may go, ns; later ones go no earlier.
    #[inline]
    pub fn admit(&mut self, now: Nanos, units: u64) -> Nanos {
        if self.next < now {
            (self.next, self.next_part) = (now, 0);
        }
        let paid = self.next + u64::from(self.next_part > 0);
        let admitted = now.max(paid.saturating_sub(self.credit));
        if units == 1 {
            self.next_part += self.part;
            self.next += self.whole;
            if self.next_part >= self.rate {
                self.next_part -= self.rate;
                self.next += 1;
            }
        } else {
            let parts = u128::from(self.part) * u128::from(units) + u128::from(self.next_part);
            let carried = parts / u128::from(self.rate);
            #[allow(clippy::cast_possible_truncation)]
            // the remainder is below the rate, the carry at most the units
            {
                self.next_part = (parts % u128::from(self.rate)) as u64;
                self.next += self.whole * units + carried as u64;
            }
        }
        admitted
    }

    /// When all admitted units are paid for and the next would go without credit, ns; rounded up.
    #[must_use]
    pub fn paid_at(&self) -> Nanos {
        self.next + u64::from(self.next_part > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_rate_drifts() {
        let mut pace = Pace::new(3.0);
        let mut last = 0;
        for _ in 0..=3_000_000 {
            last = pace.admit(0, 1);
        }
        assert_eq!(last, 1_000_000 * SECOND);
    }

    #[test]
    fn several_units_cost_as_much_as_one_by_one() {
        let (mut at_once, mut singly) = (Pace::new(700.1), Pace::new(700.1));
        for units in [1, 7, 32, 2, 0, 5] {
            at_once.admit(10, units);
            for _ in 0..units {
                singly.admit(10, 1);
            }
            assert_eq!(at_once.paid_at(), singly.paid_at());
        }
    }

    #[test]
    fn idle_time_saves_no_more_than_the_burst() {
        let mut pace = Pace::with_burst(1_000.0, 4);
        let millis = |n: u64| n * 1_000_000;
        let admitted: Vec<_> = (0..6).map(|_| pace.admit(millis(50), 1)).collect();
        let expected = [50, 50, 50, 50, 51, 52].map(millis);
        assert_eq!(admitted, expected);
        let after_idle: Vec<_> = (0..5).map(|_| pace.admit(millis(56), 1)).collect();
        assert_eq!(after_idle, [56, 56, 56, 56, 57].map(millis));
    }
}
