//! A sample of a series, of single or double precision: what arithmetic on rows needs of it.

use std::cmp::Ordering;

/// A sample of a series; NaN is "not measured".
pub trait Sample: Copy {
    /// The order of two samples; equal where either is not a number.
    fn order(self, other: Self) -> Ordering;
    /// The mean of two samples, computed in the type of the samples.
    fn middle(self, other: Self) -> f64;
    /// The sample as a wide number.
    fn wide(self) -> f64;
    /// The number of this type that is nearest to a wide one.
    fn nearest(wide: f64) -> Self;
    /// Whether the sample was measured.
    fn is_measured(self) -> bool;
    /// Whether the sample is a finite number.
    fn is_finite(self) -> bool;
    /// Zero where not measured, the largest number of the type where infinite, and the sample itself elsewhere.
    #[must_use]
    fn numbered(self) -> Self;
    /// The sum of two samples, computed in the type of the samples.
    #[must_use]
    fn plus(self, other: Self) -> Self;
    /// Between the sample and the one above it, as `NumPy` computes it: `share` is 0 at the sample and 1 at the other.
    #[must_use]
    fn toward(self, above: Self, share: f64) -> Self;
}

macro_rules! sample {
    ($number:ty) => {
        #[expect(
            clippy::allow_attributes,
            reason = "the lints differ between the two precisions"
        )]
        impl Sample for $number {
            fn order(self, other: Self) -> Ordering {
                self.partial_cmp(&other).unwrap_or(Ordering::Equal)
            }
            #[allow(clippy::useless_conversion)]
            fn middle(self, other: Self) -> f64 {
                f64::from(self.midpoint(other))
            }
            #[allow(clippy::useless_conversion)]
            fn wide(self) -> f64 {
                f64::from(self)
            }
            #[allow(clippy::cast_possible_truncation, clippy::unnecessary_cast)]
            fn nearest(wide: f64) -> Self {
                wide as Self
            }
            fn is_measured(self) -> bool {
                !self.is_nan()
            }
            fn is_finite(self) -> bool {
                <$number>::is_finite(self)
            }
            fn numbered(self) -> Self {
                if self.is_nan() {
                    0.0
                } else {
                    self.clamp(Self::MIN, Self::MAX)
                }
            }
            fn plus(self, other: Self) -> Self {
                self + other
            }
            fn toward(self, above: Self, share: f64) -> Self {
                let distance = above - self;
                if share >= 0.5 {
                    above - distance * Self::nearest(1.0 - share)
                } else {
                    self + distance * Self::nearest(share)
                }
            }
        }
    };
}

sample!(f32);
sample!(f64);
