//! What is inside a part of a system, how long it stays, and whether the two agree.
//!
//! Source: Little, "A proof for the queuing formula L = λW" (Operations Research 9, 1961).

use super::station::Little;
use crate::measure::TimeWeighted;
use crate::time::{Nanos, SECOND, seconds};
use leadline_stats::error::LeadlineError;

/// The number inside over time and the residence times of those that left. The integral of the one must be the sum of
/// the others, to the nanosecond, at every instant.
#[derive(Clone, Debug, Default)]
pub struct Account {
    inside: TimeWeighted,
    left_count: u64,
    stayed: u128,
    measured_from: Nanos,
    /// Sum over those inside of when they came, or of the start of measurement for those that came before it.
    inside_since: u128,
    /// Sum of the parts of residence times that lie in the measured time, of those that left.
    left_sum: u128,
}

impl Account {
    /// One enters.
    #[inline]
    pub fn enter(&mut self, now: Nanos) {
        self.inside.add(now, 1);
        self.inside_since += u128::from(now);
    }

    /// One enters and leaves at once.
    #[inline]
    pub fn pass(&mut self) {
        self.left_count += 1;
    }

    /// The one that entered at `entered` leaves.
    #[inline]
    pub fn leave(&mut self, now: Nanos, entered: Nanos) {
        self.inside.sub(now, 1);
        self.left_count += 1;
        self.stayed += u128::from(now - entered);
        let since = entered.max(self.measured_from);
        // Wrapping: one that leaves twice must reach the check, not end the program here.
        self.inside_since = self.inside_since.wrapping_sub(u128::from(since));
        self.left_sum += u128::from(now - since);
    }

    /// Forgets all measurements: the end of the warm-up.
    pub fn restart_measuring(&mut self, now: Nanos) {
        self.measured_from = now;
        self.inside.restart(now);
        (self.left_count, self.stayed) = (0, 0);
        self.inside_since = u128::from(self.inside.level()) * u128::from(now);
        self.left_sum = 0;
    }

    /// How many are inside.
    #[must_use]
    pub fn inside(&self) -> &TimeWeighted {
        &self.inside
    }

    /// How many left in the measured time.
    #[must_use]
    pub fn left_count(&self) -> u64 {
        self.left_count
    }

    /// How long those stayed on average that left in the measured time, ns; None before any did.
    #[must_use]
    pub fn stay_mean(&self) -> Option<f64> {
        (self.left_count > 0).then(|| self.stayed as f64 / self.left_count as f64)
    }

    /// Little's law over the measured time; None before anything left.
    #[must_use]
    pub fn little(&self, now: Nanos) -> Option<Little> {
        Some(Little {
            in_system_mean: self.inside.mean(now)?,
            rate_per_second: self.left_count as f64 / seconds(now - self.measured_from),
            residence_seconds_mean: self.stay_mean()? / SECOND as f64,
        })
    }

    /// Whether time is conserved.
    ///
    /// # Errors
    /// When the integral of the number inside is not the sum of the residence times: something was lost, invented or
    /// mistaken for another.
    pub fn check(&self, name: &str, now: Nanos) -> Result<(), LeadlineError> {
        let level = u128::from(self.inside.level());
        let counted = self.inside.area(now);
        let still_inside = (level * u128::from(now)).wrapping_sub(self.inside_since);
        let stayed = self.left_sum.wrapping_add(still_inside);
        let earliest = level * u128::from(self.measured_from);
        let stamps_fit = (earliest..=level * u128::from(now)).contains(&self.inside_since);
        if counted == stayed && stamps_fit {
            return Ok(());
        }
        Err(LeadlineError::new(
            format!("{name} at {now} ns"),
            format!(
                "{counted} ns by counting {level} inside, {stayed} ns by residence times, arrivals inside sum to {}",
                self.inside_since
            ),
            "Little's law holds to the nanosecond",
            "This is a defect of the model, not of the scenario: report it with the scenario and the seed.",
        ))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::float_cmp)] // a test may end so, and these numbers are exact
mod tests {
    use super::*;

    #[test]
    fn numbers_and_times_agree_across_a_restart() {
        let mut account = Account::default();
        account.enter(0);
        account.enter(10);
        account.leave(15, 0);
        account.restart_measuring(20);
        account.enter(30);
        account.leave(40, 10);
        account.check("queue", 45).unwrap();
        assert_eq!(account.inside().area(45), 20 + 15);
        assert_eq!(account.stay_mean(), Some(30.0));
        assert_eq!(account.little(60).unwrap().rate_per_second, 1e9 / 40.0);
    }

    #[test]
    fn one_that_leaves_with_anothers_stamp_or_twice_is_found() {
        let mut mistaken = Account::default();
        mistaken.enter(0);
        mistaken.enter(10);
        mistaken.leave(20, 0);
        mistaken.leave(25, 0);
        assert!(mistaken.check("queue", 30).is_err());
        let mut twice = Account::default();
        twice.enter(5);
        twice.leave(20, 5);
        twice.leave(25, 5);
        let message = twice.check("queue", 30).unwrap_err().to_string();
        assert!(
            message.starts_with("queue at 30 ns: 15 ns by counting"),
            "{message}"
        );
    }
}
