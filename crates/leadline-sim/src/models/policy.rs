//! What an administrator grants a client: reservation, limit, weight.

use leadline_stats::error::LeadlineError;

/// The share levels of vSphere's disks. Source: VMware, "vSphere resource management", "Storage I/O control resource
/// shares and limits": 2000 / 1000 / 500.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shares {
    /// 500.
    Low,
    /// 1000.
    #[default]
    Normal,
    /// 2000.
    High,
    /// Any other number above 0.
    Custom(u32),
}

impl Shares {
    /// The number.
    #[must_use]
    pub fn count(self) -> u32 {
        match self {
            Self::Low => 500,
            Self::Normal => 1_000,
            Self::High => 2_000,
            Self::Custom(count) => count,
        }
    }
}

/// One client's part. Rates are in requests of cost 1 per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QosPolicy {
    /// At least this rate; 0 for none.
    pub reservation: f64,
    /// At most this rate; infinite for none.
    pub limit: f64,
    /// Its part of the rest, against the weights of others.
    pub weight: f64,
    /// Idle credit, σ: requests that go before those of equal claim after an idle time.
    pub burst: f64,
}

impl Default for QosPolicy {
    fn default() -> Self {
        Self {
            reservation: 0.0,
            limit: f64::INFINITY,
            weight: 1.0,
            burst: 0.0,
        }
    }
}

impl QosPolicy {
    /// A weight, and nothing else.
    #[must_use]
    pub fn weighing(weight: f64) -> Self {
        Self {
            weight,
            ..Self::default()
        }
    }

    /// The same with at least this rate.
    #[must_use]
    pub fn reserving(self, reservation: f64) -> Self {
        Self {
            reservation,
            ..self
        }
    }

    /// The same with at most this rate.
    #[must_use]
    pub fn limited(self, limit: f64) -> Self {
        Self { limit, ..self }
    }

    /// The same with idle credit.
    #[must_use]
    pub fn with_burst(self, burst: f64) -> Self {
        Self { burst, ..self }
    }

    /// Whether the numbers make sense together.
    ///
    /// # Errors
    /// When they do not; `place` says whose they are.
    pub fn check(&self, place: &str) -> Result<(), LeadlineError> {
        let refuse = |what: &str, found: f64, expected: &str, advice: &str| {
            Err(LeadlineError::new(
                format!("{place}: {what}"),
                found.to_string(),
                expected,
                advice,
            ))
        };
        if !(self.weight.is_finite() && self.weight > 0.0) {
            let advice = "Give every client shares; the least useful is 1.";
            return refuse("weight", self.weight, "a number above 0", advice);
        }
        if !(self.reservation.is_finite() && self.reservation >= 0.0) {
            let advice = "Leave it out for none.";
            return refuse("reservation", self.reservation, "0 or more IOPS", advice);
        }
        if self.limit.is_nan() || self.limit <= 0.0 || self.limit < self.reservation {
            let expected = "more than 0 IOPS, and not less than the reservation";
            return refuse("limit", self.limit, expected, "Leave it out for none.");
        }
        if !(self.burst.is_finite() && self.burst >= 0.0) {
            let advice = "Leave it out for none.";
            return refuse("burst", self.burst, "0 or more requests", advice);
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test may end so
mod tests {
    use super::*;

    #[test]
    fn senseless_grants_are_refused() {
        let fine = QosPolicy::weighing(2.0).reserving(100.0).limited(100.0);
        fine.check("vm1").unwrap();
        for (bad, what) in [
            (QosPolicy::weighing(0.0), "weight"),
            (QosPolicy::weighing(f64::INFINITY), "weight"),
            (fine.reserving(-1.0), "reservation"),
            (fine.reserving(101.0), "limit"),
            (fine.reserving(0.0).limited(0.0), "limit"),
            (fine.limited(f64::NAN), "limit"),
            (fine.with_burst(f64::NAN), "burst"),
        ] {
            let message = bad.check("vm1").unwrap_err().to_string();
            assert!(message.starts_with(&format!("vm1: {what}: ")), "{message}");
        }
        assert_eq!(
            [Shares::Low, Shares::Normal, Shares::High, Shares::Custom(7)].map(Shares::count),
            [500, 1000, 2000, 7]
        );
    }
}
