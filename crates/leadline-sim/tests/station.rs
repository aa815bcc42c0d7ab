//! The station's own account of itself: what breaks a law is found.

#![allow(clippy::unwrap_used)] // a test may end so

use std::collections::VecDeque;

use leadline_sim::models::{Discipline, Drawn, Next, Service, Station, Waiting};
use leadline_sim::random::{Constant, Streams};
use leadline_sim::time::Nanos;

/// Ways for a discipline to go wrong.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    None,
    Loses,
    Doubles,
    Mistakes,
}

/// First come, first served, with a fault at every fifth job.
struct Faulty {
    fault: Fault,
    count: u64,
    jobs: VecDeque<Waiting<u32>>,
}

impl Discipline<Waiting<u32>> for Faulty {
    fn push(&mut self, _now: Nanos, job: Waiting<u32>) {
        self.count += 1;
        let faulty = self.count % 5 == 0;
        match self.fault {
            Fault::Loses if faulty => return,
            Fault::Doubles if faulty => self.jobs.push_back(job),
            Fault::Mistakes if faulty => {
                let arrived = job.arrived.saturating_sub(1);
                self.jobs.push_back(Waiting { arrived, ..job });
                return;
            }
            _ => {}
        }
        self.jobs.push_back(job);
    }

    fn next(&mut self, _now: Nanos) -> Next<Waiting<u32>> {
        self.jobs.pop_front().map_or(Next::Empty, Next::Job)
    }

    fn len(&self) -> usize {
        self.jobs.len()
    }
}

/// Ten jobs, one each 10 ns, on one server that takes 25 ns; the account after each step.
fn account(fault: Fault) -> Vec<bool> {
    let discipline = Faulty {
        fault,
        count: 0,
        jobs: VecDeque::new(),
    };
    let service = Drawn::new(Constant(25.0), Streams::new(1).stream("server", "times"));
    let mut station = Station::new(1, service, discipline);
    let mut end = None;
    let mut sound = Vec::new();
    for now in (0..400).step_by(5) {
        if end == Some(now) {
            station.finish(now, 0);
            end = None;
        }
        if now % 10 == 0 && now < 100 {
            station.arrive(now, 7);
        }
        if now == 60 {
            station.restart_measuring(now);
        }
        if let Next::Job(started) = station.start(now) {
            end = Some(started.end);
        }
        sound.push(station.check("server", now).is_ok());
    }
    sound
}

#[test]
fn a_sound_discipline_passes_at_every_instant() {
    assert!(account(Fault::None).iter().all(|sound| *sound));
}

#[test]
fn lost_doubled_and_mistaken_jobs_are_found() {
    for fault in [Fault::Loses, Fault::Doubles, Fault::Mistakes] {
        assert!(account(fault).iter().any(|sound| !sound));
    }
}

/// A job that takes as many ns as its number, times the number of busy servers.
struct Sized;

impl Service<u64> for Sized {
    fn time(&mut self, _now: Nanos, job: &u64, busy_count: u64) -> Nanos {
        job * busy_count
    }
}

#[test]
fn servers_are_used_while_jobs_wait_and_measure_themselves() {
    let mut station = Station::fifo(2, Sized);
    for job in [10, 20, 30] {
        station.arrive(0, job);
    }
    let ends: Vec<_> = std::iter::from_fn(|| match station.start(0) {
        Next::Job(started) => Some((started.server, started.end)),
        _ => None,
    })
    .collect();
    assert_eq!(ends, [(0, 10), (1, 40)]);
    assert_eq!(station.finish(10, 0).unwrap().job, 10);
    assert_eq!(station.finish(10, 0), None);
    assert!(matches!(station.start(10), Next::Job(started) if started.end == 70));
    assert!(station.finish(40, 1).is_some());
    assert!(station.finish(70, 0).is_some());
    assert_eq!(station.finish(70, 9), None);
    assert_eq!(station.busy().area(70), 10 + 40 + 60);
    assert_eq!(station.in_system().area(70), 10 + 40 + 70);
    assert_eq!(station.in_system().max(), 3);
    assert_eq!(station.waits().sum(), 10);
    let little = station.little(70).unwrap();
    assert!(little.imbalance().abs() < 1e-12, "{little:?}");
    station.check("servers", 70).unwrap();
}

#[test]
fn a_law_that_breaks_says_so() {
    let service = Drawn::new(Constant(25.0), Streams::new(1).stream("server", "times"));
    let discipline = Faulty {
        fault: Fault::Loses,
        count: 4,
        jobs: VecDeque::new(),
    };
    let mut station = Station::new(1, service, discipline);
    station.arrive(10, 1);
    let message = station.check("disk 3", 20).unwrap_err().to_string();
    assert!(
        message.starts_with(
            "disk 3 at 20 ns: 10 job-ns by counting, 10 by residence times, 0 jobs held of 1"
        ),
        "{message}"
    );
}
