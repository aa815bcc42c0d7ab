//! PARDA and Storage I/O Control, version 1: hosts share an array by the windows of their queues.
//!
//! # Model
//! A host lets at most w requests at once to the array; its machines share that window by [`Sfq`]. Every period it
//! sets the window by the latency it saw: w' = (1 - γ) w + γ (ℒ/L w + β), L the smoothed mean latency of the period, ℒ the
//! threshold, β the host's shares. Where no window meets a bound all hosts see the same L and stay at
//! w = β / (1 - ℒ/L): windows, and with them throughputs, are as the shares. A machine that does not fill its part of its
//! host's window lends the host only that part of its shares.
//!
//! # Assumptions
//! The array serves what it has in order of arrival, as many at once as it has slots. Windows are whole requests, the
//! nearest to w.
//!
//! # Parameters
//! [`WindowLaw`]; hosts with their machines, shares and sources; the array's slots and service.
//!
//! # Limits
//! Latency at the array is not normalised by request size. Below the threshold windows grow to their upper bound and
//! shares do not hold: the law divides an array that is overloaded. A window of a host that does not use it grows
//! as well, up to the bound.
//!
//! # Sources
//! Gulati, Ahmad and Waldspurger, "PARDA: proportional allocation of resources for distributed storage access" (FAST 2009),
//! section 3.2, equations 1 and 2, bounds; section 3.3 for local scheduling; section 3.4 for machines that are idle: β is
//! adjusted by the mean number a machine has outstanding against its part of its host's window. Judgement: that its
//! shares count in the proportion of the two, up to all; the section's formula was not at hand. VMware, "vSphere
//! resource management", "Storage I/O control": threshold 30 ms, or the latency at 90 % of the peak throughput; period of 4 s.

pub mod system;

use super::cost::CostRule;
use super::discipline::{Discipline, Next};
use super::policy::Shares;
use super::qos_host::QosVm;
use super::request::{Request, VmRequest};
use super::service::Service;
use super::sfq::Sfq;
use super::station::Station;
use super::window_law::WindowLaw;
use crate::kernel::{Model, Schedule};
use crate::measure::{Durations, TimeWeighted};
use crate::sources::Source;
use crate::time::Nanos;
use leadline_stats::error::LeadlineError;

/// Requests that wait at a host at most. Judgement: more are a load far above what the array can do.
const WAITING_MAX: usize = 1_000_000;

/// A request on its way from a host to the array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HostRequest {
    /// Which host's.
    pub host: u32,
    /// The machine's request; the machine counts from 0 in its host.
    pub request: VmRequest,
}

impl Request for HostRequest {
    fn client(&self) -> u32 {
        self.host
    }

    fn bytes(&self) -> u32 {
        self.request.bytes
    }
}

/// A host: its machines, their shares, its window.
#[derive(Clone, Debug)]
pub struct PardaHost<A> {
    vms: Vec<QosVm<A>>,
    shares: Vec<f64>,
    scheduler: Sfq<VmRequest>,
    /// What each machine has waiting or at the array, over the period.
    pending: Vec<TimeWeighted>,
    window: f64,
    outstanding: u32,
    latency: Option<f64>,
    latency_sum: u128,
    latency_count: u64,
    windows: Vec<f64>,
    /// Times at the array, from the host's window to completion.
    pub residences: Durations,
}

impl<A: Source> PardaHost<A> {
    /// Machines with their shares.
    #[must_use]
    pub fn new(vms: Vec<(QosVm<A>, Shares)>) -> Self {
        let shares: Vec<f64> = vms.iter().map(|vm| f64::from(vm.1.count())).collect();
        Self {
            pending: vec![TimeWeighted::default(); vms.len()],
            vms: vms.into_iter().map(|vm| vm.0).collect(),
            scheduler: Sfq::new(&shares, CostRule::Request),
            shares,
            window: 0.0,
            outstanding: 0,
            latency: None,
            latency_sum: 0,
            latency_count: 0,
            windows: Vec::new(),
            residences: Durations::default(),
        }
    }

    /// Its machines.
    #[must_use]
    pub fn vms(&self) -> &[QosVm<A>] {
        &self.vms
    }

    /// The window after each period.
    #[must_use]
    pub fn windows(&self) -> &[f64] {
        &self.windows
    }

    /// The smoothed latency at the array, ns; None before the first request was done.
    #[must_use]
    pub fn latency(&self) -> Option<f64> {
        self.latency
    }

    /// The shares that count now: of a machine that does not fill its part of the window, as much as it does.
    fn shares_used(&self, now: Nanos) -> f64 {
        let total: f64 = self.shares.iter().sum();
        let used = self
            .shares
            .iter()
            .zip(&self.pending)
            .map(|(shares, pending)| {
                let part = self.window * shares / total;
                shares * (pending.mean(now).unwrap_or(0.0) / part).min(1.0)
            });
        used.sum()
    }
}

/// What happens in [`PardaCluster`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PardaEvent {
    /// A machine's source issues a request.
    Issue {
        /// Which host.
        host: u16,
        /// Which of its machines.
        vm: u16,
    },
    /// A slot of the array is free.
    Finish(u32),
    /// Windows are set.
    Adjust,
}

/// Hosts before one array.
#[derive(Clone, Debug)]
pub struct PardaCluster<A, V> {
    hosts: Vec<PardaHost<A>>,
    law: WindowLaw,
    /// Whether windows are set at all; without, they stay at their upper bound.
    is_controlled: bool,
    /// The array, with its measurements.
    pub array: Station<HostRequest, V>,
}

impl<A: Source, V: Service<HostRequest>> PardaCluster<A, V> {
    /// Hosts before an array of this many slots. Windows start at their upper bound.
    ///
    /// # Errors
    /// When the law makes no sense.
    pub fn new(
        mut hosts: Vec<PardaHost<A>>,
        law: WindowLaw,
        slots: u32,
        service: V,
    ) -> Result<Self, LeadlineError> {
        law.check()?;
        for host in &mut hosts {
            host.window = law.window_max;
        }
        Ok(Self {
            hosts,
            law,
            is_controlled: true,
            array: Station::fifo(slots, service),
        })
    }

    /// The same with windows that stay at their upper bound, for comparison.
    #[must_use]
    pub fn uncontrolled(self) -> Self {
        Self {
            is_controlled: false,
            ..self
        }
    }

    /// The hosts.
    #[must_use]
    pub fn hosts(&self) -> &[PardaHost<A>] {
        &self.hosts
    }

    /// Forgets all measurements but windows and series: the end of the warm-up.
    pub fn restart_measuring(&mut self, now: Nanos) {
        self.array.restart_measuring(now);
        for host in &mut self.hosts {
            host.residences = Durations::default();
            for vm in &mut host.vms {
                vm.restart_measuring();
            }
        }
    }

    fn issue(&mut self, now: Nanos, at: (u16, u16), schedule: &mut Schedule<PardaEvent>) {
        let event = PardaEvent::Issue {
            host: at.0,
            vm: at.1,
        };
        let host = &mut self.hosts[usize::from(at.0)];
        let vm = &mut host.vms[usize::from(at.1)];
        if let Some(time) = vm.source.postpone(now) {
            schedule.at(time, event);
            return;
        }
        if let Some(time) = vm.source.after_issue(now) {
            schedule.at(time, event);
        }
        let request = VmRequest {
            vm: u32::from(at.1),
            bytes: vm.size.draw(),
            issued: now,
        };
        host.pending[usize::from(at.1)].add(now, 1);
        host.scheduler.push(now, request);
        if host.scheduler.len() >= WAITING_MAX {
            schedule.stop();
        }
        self.dispatch(now, at.0);
    }

    /// Sends what the window of a host allows.
    fn dispatch(&mut self, now: Nanos, index: u16) {
        let host = &mut self.hosts[usize::from(index)];
        // Compared with half a request more, the window is the whole number nearest to w.
        while f64::from(host.outstanding) + 0.5 < host.window {
            let Next::Job(request) = host.scheduler.next(now) else {
                return;
            };
            host.outstanding += 1;
            let job = HostRequest {
                host: u32::from(index),
                request,
            };
            self.array.arrive(now, job);
        }
    }

    #[allow(clippy::cast_possible_truncation)] // both were given as 16 bits
    fn finish(&mut self, now: Nanos, slot: u32, schedule: &mut Schedule<PardaEvent>) {
        let Some(finished) = self.array.finish(now, slot) else {
            return;
        };
        let HostRequest { host: at, request } = finished.job;
        let host = &mut self.hosts[at as usize];
        host.outstanding -= 1;
        host.latency_sum += u128::from(now - finished.arrived);
        host.latency_count += 1;
        host.residences.record(now - finished.arrived);
        host.pending[request.vm as usize].sub(now, 1);
        let vm = &mut host.vms[request.vm as usize];
        vm.complete(now, request.issued, request.bytes);
        if let Some(time) = vm.source.after_completion(now) {
            let (host, vm) = (at as u16, request.vm as u16);
            schedule.at(time, PardaEvent::Issue { host, vm });
        }
        self.dispatch(now, at as u16);
    }

    fn adjust(&mut self, now: Nanos) {
        let sums = self.hosts.iter().map(|host| host.latency_sum).sum::<u128>();
        let counts = self
            .hosts
            .iter()
            .map(|host| host.latency_count)
            .sum::<u64>();
        let law = self.law;
        for host in &mut self.hosts {
            let (sum, count) = if law.is_latency_shared {
                (sums, counts)
            } else {
                (host.latency_sum, host.latency_count)
            };
            if count > 0 {
                let seen = sum as f64 / count as f64;
                let before = host.latency.unwrap_or(seen);
                host.latency = Some((1.0 - law.memory) * seen + law.memory * before);
            }
            let total: f64 = host.shares.iter().sum();
            let shares = if law.adapts_to_idle {
                host.shares_used(now)
            } else {
                total
            };
            if self.is_controlled {
                let beta = shares / 1_000.0 * law.beta_per_1000_shares;
                let latency = if count > 0 { host.latency } else { None };
                host.window = law.next_window(host.window, latency, beta);
            }
            host.windows.push(host.window);
            (host.latency_sum, host.latency_count) = (0, 0);
            for pending in &mut host.pending {
                pending.restart(now);
            }
        }
        for index in (0..).take(self.hosts.len()) {
            self.dispatch(now, index);
        }
    }
}

impl<A: Source, V: Service<HostRequest>> Model for PardaCluster<A, V> {
    type Event = PardaEvent;

    fn start(&mut self, schedule: &mut Schedule<PardaEvent>) {
        for (host, state) in (0..).zip(&mut self.hosts) {
            for (vm, machine) in (0..).zip(&mut state.vms) {
                while let Some(time) = machine.source.first(schedule.now()) {
                    schedule.at(time, PardaEvent::Issue { host, vm });
                }
            }
        }
        schedule.after(self.law.period, PardaEvent::Adjust);
    }

    fn handle(&mut self, now: Nanos, event: PardaEvent, schedule: &mut Schedule<PardaEvent>) {
        match event {
            PardaEvent::Issue { host, vm } => self.issue(now, (host, vm), schedule),
            PardaEvent::Finish(slot) => self.finish(now, slot, schedule),
            PardaEvent::Adjust => {
                self.adjust(now);
                schedule.after(self.law.period, PardaEvent::Adjust);
            }
        }
        while let Next::Job(started) = self.array.start(now) {
            schedule.at(started.end, PardaEvent::Finish(started.server));
        }
    }

    fn check(&self, now: Nanos) -> Result<(), LeadlineError> {
        self.array.check("array", now)
    }
}
