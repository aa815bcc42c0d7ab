//! How many requests a request counts as.
//!
//! # Model
//! Tags advance by a request's cost, which its size decides by one of three rules.
//!
//! # Assumptions
//! Reads and writes cost the same.
//!
//! # Parameters
//! The rule; positioning time and transfer rate where it has them.
//!
//! # Limits
//! Costs are rounded to 1/256 of a request. The two rules by size give different answers and are never mixed: one is
//! that of the mClock paper, the other that of the product.
//!
//! # Sources
//! Gulati, Merchant and Varman, "mClock" (OSDI 2010), section 3.2, request size: 1 + S / (T × B). C. Hogan, "VSAN 6.2
//! part 4: IOPS limit for object" (cormachogan.com, 2016): units of 32 KB.

use super::token_bucket::io_units;

/// One request in fixed point.
pub(super) const ONE: i64 = 1 << COST_BITS;
/// Binary places of a cost.
pub(super) const COST_BITS: u32 = 8;

/// How a request's size becomes its cost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum CostRule {
    /// Every request costs 1.
    #[default]
    Request,
    /// 1 + S / (T × B): what a disk needs for S bytes beside what it needs to find them.
    Mechanical {
        /// T, the time to position, seconds.
        positioning_seconds: f64,
        /// B, the highest transfer rate, bytes per second.
        bytes_per_second: f64,
    },
    /// 1 for each 32 KB begun.
    Units32Kb,
}

impl CostRule {
    /// The cost of a request of `bytes`, in requests.
    #[must_use]
    pub fn cost(&self, bytes: u32) -> f64 {
        self.fixed(bytes) as f64 / ONE as f64
    }

    /// The cost in units of 1 / [`ONE`].
    #[inline]
    pub(super) fn fixed(&self, bytes: u32) -> i64 {
        match self {
            Self::Request => ONE,
            Self::Mechanical {
                positioning_seconds,
                bytes_per_second,
            } => {
                let transfer = f64::from(bytes) / (positioning_seconds * bytes_per_second);
                #[allow(clippy::cast_possible_truncation)] // `as` saturates
                let cost = ((1.0 + transfer) * ONE as f64 + 0.5) as i64;
                cost.clamp(ONE, 1 << 40)
            }
            Self::Units32Kb => {
                i64::try_from(io_units(u64::from(bytes))).map_or(ONE, |units| units << COST_BITS)
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp)] // these numbers are exact
mod tests {
    use super::*;

    #[test]
    fn sizes_cost_what_their_rule_says() {
        let kilobytes = |count: u32| count * 1024;
        let disk = CostRule::Mechanical {
            positioning_seconds: 0.005,
            bytes_per_second: 60.0 * 1024.0 * 1024.0,
        };
        assert_eq!(CostRule::Request.cost(kilobytes(256)), 1.0);
        assert!((disk.cost(kilobytes(256)) - 1.8333).abs() < 0.002);
        assert!((disk.cost(kilobytes(8)) - 1.026).abs() < 0.002);
        let units = [4, 32, 33, 64, 1024].map(|kb| CostRule::Units32Kb.cost(kilobytes(kb)));
        assert_eq!(units, [1.0, 1.0, 2.0, 2.0, 32.0]);
    }
}
