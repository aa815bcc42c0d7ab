//! Storage I/O Control, version 1, of one host at one device: how many requests it lets out.

use super::{Lane, PathEvent, StoragePath};
use crate::kernel::Schedule;
use crate::measure::TimeWeighted;
use crate::models::window_law::WindowLaw;
use crate::time::Nanos;

/// A window and what it is set by.
#[derive(Clone, Debug)]
pub(super) struct Window {
    law: WindowLaw,
    /// By disk; 0 for those of other hosts and devices.
    shares: Vec<f64>,
    /// What each disk has waiting or out, over the period.
    pending: Vec<TimeWeighted>,
    size: f64,
    latency: Option<f64>,
    latency_sum: u128,
    latency_count: u64,
}

impl Window {
    /// At its upper bound, the depth of the queue.
    pub(super) fn new(threshold: Nanos, depth: u32, disk_count: usize) -> Self {
        let own = WindowLaw::sioc_v1();
        let law = WindowLaw {
            threshold,
            window_min: own.window_min.min(f64::from(depth)),
            window_max: f64::from(depth),
            ..own
        };
        Self {
            law,
            shares: vec![0.0; disk_count],
            pending: vec![TimeWeighted::default(); disk_count],
            size: law.window_max,
            latency: None,
            latency_sum: 0,
            latency_count: 0,
        }
    }

    pub(super) fn period(&self) -> Nanos {
        self.law.period
    }

    pub(super) fn add_disk(&mut self, disk: usize, shares: f64) {
        self.shares[disk] = shares;
    }

    pub(super) fn enter(&mut self, now: Nanos, disk: usize) {
        self.pending[disk].add(now, 1);
    }

    pub(super) fn leave(&mut self, now: Nanos, disk: usize, latency: Nanos) {
        self.pending[disk].sub(now, 1);
        self.latency_sum += u128::from(latency);
        self.latency_count += 1;
    }

    /// Latencies of the period, ns: their sum and number.
    pub(super) fn seen(&self) -> (u128, u64) {
        (self.latency_sum, self.latency_count)
    }

    /// Sets the window by the latency of all hosts at the device; the requests it now allows.
    pub(super) fn adjust(&mut self, now: Nanos, (sum, count): (u128, u64)) -> u32 {
        if count > 0 {
            let seen = sum as f64 / count as f64;
            let before = self.latency.unwrap_or(seen);
            self.latency = Some((1.0 - self.law.memory) * seen + self.law.memory * before);
        }
        let total: f64 = self.shares.iter().sum();
        let used: f64 = self
            .shares
            .iter()
            .zip(&self.pending)
            .map(|(shares, pending)| {
                let part = self.size * shares / total;
                let held = pending.mean(now).unwrap_or(0.0);
                if *shares > 0.0 {
                    shares * (held / part).min(1.0)
                } else {
                    0.0
                }
            })
            .sum();
        let beta = used / 1_000.0 * self.law.beta_per_1000_shares;
        let latency = if count > 0 { self.latency } else { None };
        self.size = self.law.next_window(self.size, latency, beta);
        (self.latency_sum, self.latency_count) = (0, 0);
        for pending in &mut self.pending {
            pending.restart(now);
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        // between 1 and the depth
        let nearest = self.size.round() as u32;
        nearest.max(1)
    }
}

/// The first window there is sets the period of all.
pub(super) fn period(lanes: &[Lane]) -> Option<Nanos> {
    let mut windows = lanes.iter().filter_map(|lane| lane.window.as_ref());
    windows.next().map(Window::period)
}

impl StoragePath {
    /// Every host sets its window by the latency of all hosts at the device.
    pub(super) fn adjust(&mut self, now: Nanos, schedule: &mut Schedule<PathEvent>) {
        let mut seen = vec![(0u128, 0u64); self.devices.len()];
        for lane in &self.lanes {
            if let Some(window) = &lane.window {
                let (sum, count) = window.seen();
                seen[lane.device].0 += sum;
                seen[lane.device].1 += count;
            }
        }
        for lane in &mut self.lanes {
            if let Some(window) = &mut lane.window {
                lane.depth = window.adjust(now, seen[lane.device]);
            }
        }
        for lane in 0..self.lanes.len() {
            self.dispatch(now, lane, schedule);
        }
        if let Some(period) = period(&self.lanes) {
            schedule.after(period, PathEvent::Adjust);
        }
    }
}
