//! Distributions as small types, so that a model written for one of them is compiled for it.
//!
//! Parameters and draws share one unit, which the user of the distribution chooses: ns for times, bytes for sizes.

use super::stream::Stream;
use crate::time::{Nanos, whole};

/// Something random numbers are drawn from.
pub trait Sample {
    /// One number, in the unit of the parameters; never negative.
    fn draw(&self, stream: &mut Stream) -> f64;

    /// The mean of what is drawn, in the unit of the parameters; infinite where there is none.
    fn mean(&self) -> f64;

    /// One number rounded to the nearest whole one. The mean of an exponential distribution is off by less than 0.1 %
    /// when it is above 10.
    #[inline]
    fn sample(&self, stream: &mut Stream) -> Nanos {
        whole(self.draw(stream))
    }
}

/// Always the same.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Constant(pub f64);

impl Sample for Constant {
    #[inline]
    fn draw(&self, _stream: &mut Stream) -> f64 {
        self.0
    }

    fn mean(&self) -> f64 {
        self.0
    }
}

/// Equally likely between two bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Uniform {
    /// The smallest.
    pub low: f64,
    /// The largest, itself excluded.
    pub high: f64,
}

impl Sample for Uniform {
    #[inline]
    fn draw(&self, stream: &mut Stream) -> f64 {
        self.low + (self.high - self.low) * stream.unit()
    }

    fn mean(&self) -> f64 {
        f64::midpoint(self.low, self.high)
    }
}

/// Without memory: the gaps of a Poisson process.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exponential {
    /// The mean, which is also the standard deviation.
    pub mean: f64,
}

impl Sample for Exponential {
    #[inline]
    fn draw(&self, stream: &mut Stream) -> f64 {
        self.mean * stream.exponential()
    }

    fn mean(&self) -> f64 {
        self.mean
    }
}

/// The sum of `stages` equal exponential parts: less variable than one, coefficient of variation 1 / sqrt(stages).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Erlang {
    /// The mean of the sum.
    pub mean: f64,
    /// How many parts; 0 counts as 1.
    pub stages: u32,
}

impl Sample for Erlang {
    #[inline]
    fn draw(&self, stream: &mut Stream) -> f64 {
        let stages = self.stages.max(1);
        let sum: f64 = (0..stages).map(|_| stream.exponential()).sum();
        self.mean / f64::from(stages) * sum
    }

    fn mean(&self) -> f64 {
        self.mean
    }
}

/// Bell-shaped; what would be negative is 0, which raises the mean when the deviation is above a third of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Normal {
    /// The mean before cutting.
    pub mean: f64,
    /// The standard deviation before cutting.
    pub deviation: f64,
}

impl Sample for Normal {
    #[inline]
    fn draw(&self, stream: &mut Stream) -> f64 {
        (self.mean + self.deviation * stream.normal()).max(0.0)
    }

    /// Source: mean of a normal distribution cut (censored) at 0, `m P(m/s) + s p(m/s)`.
    fn mean(&self) -> f64 {
        if self.deviation <= 0.0 {
            return self.mean.max(0.0);
        }
        let ratio = self.mean / self.deviation;
        let below = 0.5 * libm::erfc(ratio / std::f64::consts::SQRT_2);
        let density = libm::exp(-ratio * ratio / 2.0) / libm::sqrt(2.0 * std::f64::consts::PI);
        self.mean * (1.0 - below) + self.deviation * density
    }
}

/// The exponential of a normal number: skewed, as service times of disks under load are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogNormal {
    location: f64,
    scale: f64,
}

impl LogNormal {
    /// From the median and the standard deviation of the logarithm (1 means a factor of 2.7 up or down).
    #[must_use]
    pub fn from_median(median: f64, log_deviation: f64) -> Self {
        Self {
            location: libm::log(median),
            scale: log_deviation,
        }
    }

    /// From the mean and the coefficient of variation (standard deviation / mean).
    ///
    /// Source: Johnson, Kotz and Balakrishnan, "Continuous univariate distributions" 1, chapter 14.
    #[must_use]
    pub fn from_mean(mean: f64, variation: f64) -> Self {
        let variance = libm::log1p(variation * variation);
        Self {
            location: libm::log(mean) - variance / 2.0,
            scale: libm::sqrt(variance),
        }
    }
}

impl LogNormal {
    /// Location and scale: mean and standard deviation of the logarithm.
    #[must_use]
    pub fn parameters(&self) -> (f64, f64) {
        (self.location, self.scale)
    }
}

impl Sample for LogNormal {
    #[inline]
    fn draw(&self, stream: &mut Stream) -> f64 {
        libm::exp(self.location + self.scale * stream.normal())
    }

    fn mean(&self) -> f64 {
        libm::exp(self.location + self.scale * self.scale / 2.0)
    }
}

/// Heavy-tailed: P(X > x) = (minimum / x)^shape.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pareto {
    /// The smallest number.
    pub minimum: f64,
    /// The tail's exponent; there is no mean at 1 and below, no variance at 2 and below.
    pub shape: f64,
}

impl Pareto {
    /// From the mean and the tail's exponent, which is above 1.
    #[must_use]
    pub fn from_mean(mean: f64, shape: f64) -> Self {
        Self {
            minimum: mean * (shape - 1.0) / shape,
            shape,
        }
    }
}

impl Sample for Pareto {
    #[inline]
    fn draw(&self, stream: &mut Stream) -> f64 {
        self.minimum * libm::exp(stream.exponential() / self.shape)
    }

    fn mean(&self) -> f64 {
        if self.shape <= 1.0 {
            return f64::INFINITY;
        }
        self.minimum * self.shape / (self.shape - 1.0)
    }
}
