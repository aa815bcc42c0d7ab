//! The run: takes the earliest event, tells the observer, lets the model handle it.

use super::observe::Observer;
use super::queue::Entry;
use super::schedule::Schedule;
use crate::time::Nanos;
use leadline_stats::error::LeadlineError;

/// A simulated system. A run is a function of the model's parameters and seed: a model reads no clock, no environment
/// and iterates over no hash map, and calls logarithms and the like through `libm`, not through `f64`'s methods.
pub trait Model {
    /// What can happen; small (8 bytes or less is fastest), whole numbers only.
    type Event: Copy;

    /// Puts in the first events; called once, at time 0.
    fn start(&mut self, schedule: &mut Schedule<Self::Event>);

    /// One event happens at `now`, ns.
    fn handle(&mut self, now: Nanos, event: Self::Event, schedule: &mut Schedule<Self::Event>);

    /// When the next event happens that the model keeps beside the schedule because it knows it anyway (the next request
    /// of an open source, the end of the one service there is), ns; the largest number when there is none.
    #[inline]
    fn known_time(&self) -> Nanos {
        Nanos::MAX
    }

    /// Whether that event goes before a scheduled one of the same time: it was known before the other was scheduled.
    #[inline]
    fn goes_before(&self, _scheduled: &Self::Event) -> bool {
        false
    }

    /// Takes that event; None when there is none.
    #[inline]
    fn take_known(&mut self) -> Option<Self::Event> {
        None
    }

    /// How many events the model knows of and keeps beside the schedule; of those known far ahead one of each source.
    fn known_count(&self) -> usize {
        0
    }

    /// Whether what the model must conserve (jobs, time, bytes) is conserved at `now`, ns.
    ///
    /// # Errors
    /// When it is not, which is a defect of the model.
    fn check(&self, _now: Nanos) -> Result<(), LeadlineError> {
        Ok(())
    }
}

/// One run of a model, with an observer of its events.
#[derive(Clone, Debug)]
pub struct Simulation<M: Model, O = ()> {
    /// The model, with its measurements.
    pub model: M,
    /// What watched the events.
    pub observer: O,
    schedule: Schedule<M::Event>,
    event_count: u64,
}

impl<M: Model> Simulation<M> {
    /// A run that nobody watches.
    pub fn new(model: M) -> Self {
        Self::observed(model, ())
    }
}

impl<M: Model, O: Observer<M::Event>> Simulation<M, O> {
    /// A run watched by `observer`; the model's first events are put in here.
    pub fn observed(mut model: M, observer: O) -> Self {
        let mut schedule = Schedule::new();
        model.start(&mut schedule);
        Self {
            model,
            observer,
            schedule,
            event_count: 0,
        }
    }

    /// The current time, ns.
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.schedule.now
    }

    /// How many events have been handled.
    #[must_use]
    pub fn event_count(&self) -> u64 {
        self.event_count
    }

    /// How many events are pending.
    #[must_use]
    pub fn pending_count(&self) -> usize {
        self.schedule.pending_count() + self.model.known_count()
    }

    /// Whether the model has asked to end.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.schedule.stopped
    }

    /// The model and the schedule, to put in events from outside between two parts of a run.
    pub fn parts(&mut self) -> (&mut M, &mut Schedule<M::Event>) {
        (&mut self.model, &mut self.schedule)
    }

    /// Whether the model conserves what it must; call at the end of every run.
    ///
    /// # Errors
    /// When it does not, which is a defect of the model.
    pub fn check(&self) -> Result<(), LeadlineError> {
        self.model.check(self.schedule.now)
    }

    /// Handles the events before `end`, ns, and sets the clock to `end`; returns how many. Ends earlier, with the clock
    /// at the last event, when the model stops.
    pub fn run_until(&mut self, end: Nanos) -> u64 {
        self.run(end, u64::MAX)
    }

    /// Handles up to `count` events; returns how many there were.
    pub fn run_events(&mut self, count: u64) -> u64 {
        self.run(Nanos::MAX, count)
    }

    /// Handles up to `count` events before `end`, ns. When it returns fewer than `count` and the model has not stopped,
    /// all events before `end` have been handled. Running in parts gives the same run as running at once, so that a
    /// caller can look for an interrupt between two parts.
    pub fn run(&mut self, end: Nanos, count: u64) -> u64 {
        let mut handled = 0;
        while handled < count && !self.schedule.stopped {
            let Some(entry) = self.next_before(end) else {
                if end != Nanos::MAX {
                    self.schedule.now = self.schedule.now.max(end);
                }
                break;
            };
            self.schedule.now = entry.time;
            self.observer.observe(entry.time, &entry.event);
            self.model
                .handle(entry.time, entry.event, &mut self.schedule);
            handled += 1;
        }
        self.event_count += handled;
        handled
    }

    /// The next event before `end`, of the schedule or of those that the model keeps.
    #[inline]
    fn next_before(&mut self, end: Nanos) -> Option<Entry<M::Event>> {
        let time = self.model.known_time();
        if time == Nanos::MAX {
            return self.schedule.queue.pop_before(end);
        }
        let is_known = match self.schedule.queue.peek() {
            Some(entry) if entry.time == time => self.model.goes_before(&entry.event),
            Some(entry) => time < entry.time,
            None => true,
        };
        if !is_known {
            return self.schedule.queue.pop_before(end);
        }
        if time >= end {
            return None;
        }
        let event = self.model.take_known()?;
        Some(Entry { time, event })
    }
}
