//! What mClock would give if requests were infinitely small.
//!
//! # Model
//! Client i gets x = min(max(λ w, r), l), one λ for all, such that the sum is the capacity. When the reservations
//! alone exceed it, each gets its part of them, x = r C / Σr; when the limits do not reach it, each gets its limit.
//!
//! # Assumptions
//! Every client always has requests waiting; one that asks for less is one with that limit.
//!
//! # Parameters
//! Policies, capacity.
//!
//! # Limits
//! Exact up to rounding: the sum is piecewise linear in λ, and its corners are walked in order.
//!
//! # Sources
//! Gulati, Merchant and Varman, "mClock" (OSDI 2010), section 2.2 and figure 3.

use super::policy::QosPolicy;

/// Rates of the clients at a capacity, in requests of cost 1 per second.
#[must_use]
pub fn fluid_allocation(policies: &[QosPolicy], capacity: f64) -> Vec<f64> {
    let reserved: f64 = policies.iter().map(|policy| policy.reservation).sum();
    if reserved >= capacity {
        let share = |policy: &QosPolicy| policy.reservation * capacity / reserved;
        return policies.iter().map(share).collect();
    }
    let level = water_level(policies, capacity - reserved);
    let part = |policy: &QosPolicy| {
        (level * policy.weight)
            .max(policy.reservation)
            .min(policy.limit)
    };
    policies.iter().map(part).collect()
}

/// The λ at which clients get `spare` beyond their reservations; infinite when limits come before.
fn water_level(policies: &[QosPolicy], spare: f64) -> f64 {
    // Where a client begins to get more than its reservation, its weight joins; where it meets its limit, it leaves.
    let joins = policies
        .iter()
        .map(|policy| (policy.reservation / policy.weight, policy.weight));
    let leaves = policies
        .iter()
        .map(|policy| (policy.limit / policy.weight, -policy.weight));
    let mut corners: Vec<(f64, f64)> = joins.chain(leaves).collect();
    corners.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut level, mut slope, mut given) = (0.0, 0.0, 0.0);
    for (corner, weight) in corners {
        // Weights that left may leave a rest of rounding behind, which gives nothing over any finite length.
        let until = given + f64::max(slope, 0.0) * (corner - level);
        if slope > 0.0 && until >= spare {
            return level + (spare - given) / slope;
        }
        if corner == f64::INFINITY {
            break;
        }
        (level, given) = (corner, until);
        slope += weight;
    }
    f64::INFINITY
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Source: mClock, figure 3: RD, OLTP and DM with weights 1, 2, 3.
    #[test]
    fn the_papers_example_has_its_corners() {
        let policies = [
            QosPolicy::weighing(1.0).reserving(250.0),
            QosPolicy::weighing(2.0).reserving(250.0),
            QosPolicy::weighing(3.0).limited(1_000.0),
        ];
        for (capacity, expected) in [
            (400.0, [200.0, 200.0, 0.0]),
            (500.0, [250.0, 250.0, 0.0]),
            (875.0, [250.0, 250.0, 375.0]),
            (1_200.0, [250.0, 380.0, 570.0]),
            (1_500.0, [250.0, 500.0, 750.0]),
            (2_000.0, [333.333, 666.667, 1_000.0]),
            (2_300.0, [433.333, 866.667, 1_000.0]),
        ] {
            for (found, expected) in fluid_allocation(&policies, capacity).iter().zip(expected) {
                assert!(
                    (found - expected).abs() < 0.001,
                    "{capacity}: {found} {expected}"
                );
            }
        }
    }

    #[test]
    fn limits_may_leave_capacity_over() {
        let policies = [
            QosPolicy::weighing(1.0).limited(10.0),
            QosPolicy::weighing(5.0).limited(20.0),
        ];
        let found = fluid_allocation(&policies, 100.0);
        assert!((found[0] - 10.0).abs() + (found[1] - 20.0).abs() < 1e-9);
    }
}
