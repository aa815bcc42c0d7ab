//! Virtual time: whole nanoseconds since the start of a run.
//!
//! 64 bits of nanoseconds reach 584 years. Whole numbers keep sums exact, so that a run is the same on every machine.

/// A point in, or a length of, virtual time; unit ns.
pub type Nanos = u64;

/// One microsecond, ns.
pub const MICROSECOND: Nanos = 1_000;
/// One millisecond, ns.
pub const MILLISECOND: Nanos = 1_000_000;
/// One second, ns.
pub const SECOND: Nanos = 1_000_000_000;
/// One minute, ns.
pub const MINUTE: Nanos = 60 * SECOND;
/// One hour, ns.
pub const HOUR: Nanos = 60 * MINUTE;

/// Rounds a length given in ns to the nearest whole one; negative lengths and NaN become 0, too large ones the largest.
#[inline]
#[must_use]
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // `as` saturates, which is what is wanted
pub fn whole(nanos: f64) -> Nanos {
    (nanos + 0.5) as Nanos
}

/// A length in seconds as ns, rounded to the nearest.
#[inline]
#[must_use]
pub fn from_seconds(seconds: f64) -> Nanos {
    whole(seconds * SECOND as f64)
}

/// A length in milliseconds as ns, rounded to the nearest.
#[inline]
#[must_use]
pub fn from_millis(millis: f64) -> Nanos {
    whole(millis * MILLISECOND as f64)
}

/// A length in ns as seconds.
#[inline]
#[must_use]
pub fn seconds(nanos: Nanos) -> f64 {
    nanos as f64 / SECOND as f64
}

/// A length in ns as milliseconds.
#[inline]
#[must_use]
pub fn millis(nanos: Nanos) -> f64 {
    nanos as f64 / MILLISECOND as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_rounded_and_kept_in_range() {
        assert_eq!(whole(0.49), 0);
        assert_eq!(whole(0.5), 1);
        assert_eq!(whole(-3.0), 0);
        assert_eq!(whole(f64::NAN), 0);
        assert_eq!(whole(f64::INFINITY), Nanos::MAX);
        assert_eq!(from_seconds(1.5), 1_500_000_000);
        assert_eq!(from_millis(0.25), 250_000);
        assert!((seconds(HOUR) - 3600.0).abs() < f64::EPSILON);
        assert!((millis(MICROSECOND) - 0.001).abs() < f64::EPSILON);
    }
}
