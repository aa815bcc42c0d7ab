//! A hard disk: a head that moves, a platter that turns.
//!
//! # Model
//! A request takes a seek of settle + (full stroke - settle) × √distance, distance as a share of the whole stroke; then
//! what is left until the platter has turned to its sector; then its transfer. Sector and platter have an angle each, so
//! that the turning is part of the order: with a queue, the drive takes the request that it reaches first.
//!
//! # Assumptions
//! One head, places spread evenly over the stroke. A request that begins where the one before it ended needs neither seek
//! nor turning. The rate of transfer falls evenly from the outer edge to the inner one.
//!
//! # Parameters
//! [`Drive`].
//!
//! # Limits
//! No cache, no read-ahead, no spare sectors. Of a queue the oldest `queue` requests are looked at: one far away may wait
//! until it is the oldest no more than others push before it; there is no upper bound to that.
//!
//! # Sources
//! Ruemmler and Wilkes, "An introduction to disk drive modeling" (IEEE Computer 27(3), 1994), for the square root of short
//! seeks and the settling; Jacobson and Wilkes, "Disk scheduling algorithms based on rotational position" (HPL-CSP-91-7,
//! 1991), for the shortest access time first.

use serde::Deserialize;
use std::collections::VecDeque;

use super::discipline::{Discipline, Fifo, Next};
use super::scheduler::Io;
use super::station::Waiting;
use crate::time::{Nanos, SECOND};
use leadline_stats::error::LeadlineError;

/// Places on a drive: a share of the stroke in units of 2^-32.
const PLACES: f64 = 4_294_967_296.0;
/// The angle of a place is in its low bits: neighbours lie one behind the other, far ones anyhow.
const ANGLE_BITS: u32 = 16;

/// A drive's mechanics; times in ns.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Drive {
    /// The shortest seek, with settling.
    pub settle: f64,
    /// From edge to edge.
    pub full_stroke: f64,
    /// One turn of the platter.
    pub revolution: f64,
    /// Bytes per second at the outer edge and at the inner one.
    pub bytes_per_second: (f64, f64),
    /// Bytes it holds.
    pub capacity: f64,
    /// Requests it chooses from; 1 takes them as they come.
    pub queue: u32,
}

impl Drive {
    /// Whether the numbers make a drive.
    ///
    /// # Errors
    /// When they do not; `place` says whose.
    pub fn check(&self, place: &str) -> Result<(), LeadlineError> {
        let (outer, inner) = self.bytes_per_second;
        let positive = [self.settle, self.revolution, outer, inner, self.capacity];
        let sound = positive
            .iter()
            .all(|value| value.is_finite() && *value > 0.0);
        if sound
            && self.full_stroke >= self.settle
            && self.full_stroke.is_finite()
            && self.queue > 0
        {
            return Ok(());
        }
        Err(LeadlineError::new(
            place,
            format!("{self:?}"),
            "times, rates and a capacity above 0, and a full stroke not below the shortest",
            "Correct the scenario.",
        ))
    }

    /// The seek between two places, ns.
    #[must_use]
    pub fn seek(&self, from: u32, to: u32) -> f64 {
        let distance = f64::from(from.abs_diff(to)) / PLACES;
        self.settle + (self.full_stroke - self.settle) * distance.sqrt()
    }

    /// Until the platter stands at a place, for a head that is there at this time, ns.
    fn turn(&self, at: f64, place: u32) -> f64 {
        let angle = f64::from(place & ((1 << ANGLE_BITS) - 1)) / f64::from(1u32 << ANGLE_BITS);
        (angle - at / self.revolution).rem_euclid(1.0) * self.revolution
    }

    /// Seek and turning from one place to another, ns.
    #[must_use]
    pub fn positioning(&self, now: Nanos, head: u32, place: u32) -> f64 {
        if head == place {
            return 0.0;
        }
        let seek = self.seek(head, place);
        seek + self.turn(now as f64 + seek, place)
    }

    /// The transfer there, ns.
    #[must_use]
    pub fn transfer(&self, place: u32, bytes: u32) -> f64 {
        let (outer, inner) = self.bytes_per_second;
        let rate = outer + (inner - outer) * f64::from(place) / PLACES;
        f64::from(bytes) / rate * SECOND as f64
    }

    /// Where the head is after a request.
    #[must_use]
    pub fn after(&self, place: u32, bytes: u32) -> u32 {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // `as` saturates
        let passed = (f64::from(bytes) / self.capacity * PLACES).ceil() as u32;
        place.wrapping_add(passed)
    }
}

/// The request the head reaches first, of the oldest that the drive looks at.
#[derive(Clone, Debug)]
pub struct Nearest {
    drive: Drive,
    waiting: VecDeque<Waiting<Io>>,
    head: u32,
}

/// The order in which a device takes what is sent to it.
#[derive(Clone, Debug)]
pub enum DeviceQueue {
    /// As it comes.
    Fifo(Fifo<Waiting<Io>>),
    /// As a drive reaches it.
    Nearest(Nearest),
}

impl DeviceQueue {
    /// A drive's own order when it has a queue to choose from, otherwise first come, first served.
    #[must_use]
    pub fn of(drive: Option<&Drive>) -> Self {
        match drive {
            Some(drive) if drive.queue > 1 => Self::Nearest(Nearest {
                drive: drive.clone(),
                waiting: VecDeque::new(),
                head: 0,
            }),
            _ => Self::Fifo(Fifo::default()),
        }
    }
}

impl Discipline<Waiting<Io>> for DeviceQueue {
    #[inline]
    fn push(&mut self, now: Nanos, job: Waiting<Io>) {
        match self {
            Self::Fifo(own) => own.push(now, job),
            Self::Nearest(own) => own.waiting.push_back(job),
        }
    }

    #[inline]
    fn next(&mut self, now: Nanos) -> Next<Waiting<Io>> {
        match self {
            Self::Fifo(own) => own.next(now),
            Self::Nearest(own) => own.next(now),
        }
    }

    #[inline]
    fn len(&self) -> usize {
        match self {
            Self::Fifo(own) => own.len(),
            Self::Nearest(own) => own.waiting.len(),
        }
    }
}

impl Nearest {
    fn next(&mut self, now: Nanos) -> Next<Waiting<Io>> {
        let reach = |own: &Waiting<Io>| self.drive.positioning(now, self.head, own.job.place);
        let seen = self.waiting.iter().take(self.drive.queue as usize);
        let nearest = seen
            .enumerate()
            .min_by(|one, other| reach(one.1).total_cmp(&reach(other.1)));
        let Some(index) = nearest.map(|(index, _)| index) else {
            return Next::Empty;
        };
        let Some(taken) = self.waiting.remove(index) else {
            return Next::Empty;
        };
        self.head = self.drive.after(taken.job.place, taken.job.bytes);
        Next::Job(taken)
    }
}
