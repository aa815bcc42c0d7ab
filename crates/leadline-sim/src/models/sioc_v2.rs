//! Storage I/O Control, version 2: limit, reservation and shares of each disk, at any time.
//!
//! # Model
//! A filter before each virtual disk schedules by mClock's tags, in units of 32 KB: a request of 64 KB is charged
//! as two against limit, reservation and shares. Unlike version 1 it waits for no latency threshold.
//!
//! # Assumptions
//! One scheduler for all disks of a host.
//!
//! # Parameters
//! For each disk the limit and the reservation in IOPS of up to 32 KB, and shares (500, 1000, 2000 or custom).
//!
//! # Limits
//! No burst of a limit after an idle time. Whatever [`MClock`] does not do.
//!
//! # Sources
//! VMware, "vSphere resource management", "Managing storage I/O resources", vSphere 6.5 and later; C. Hogan and D.
//! Epping on SIOC v2 (cormachogan.com, 2016), 32 KB units.

use super::cost::CostRule;
use super::mclock::MClock;
use super::policy::{QosPolicy, Shares};
use super::request::Request;
use leadline_stats::error::LeadlineError;

/// What a storage policy says of one disk.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DiskPolicy {
    /// IOPS of up to 32 KB at least; 0 for none.
    pub reservation_iops: f64,
    /// IOPS of up to 32 KB at most; None for none.
    pub limit_iops: Option<f64>,
    /// Its part of the rest.
    pub shares: Shares,
}

impl From<DiskPolicy> for QosPolicy {
    fn from(disk: DiskPolicy) -> Self {
        Self {
            reservation: disk.reservation_iops,
            limit: disk.limit_iops.unwrap_or(f64::INFINITY),
            weight: f64::from(disk.shares.count()),
            burst: 0.0,
        }
    }
}

/// The scheduler for these disks, which are its clients by index.
///
/// # Errors
/// When a policy makes no sense.
pub fn sioc_v2<J: Request>(disks: &[DiskPolicy]) -> Result<MClock<J>, LeadlineError> {
    let policies: Vec<QosPolicy> = disks.iter().map(|disk| QosPolicy::from(*disk)).collect();
    MClock::new(&policies, CostRule::Units32Kb)
}
