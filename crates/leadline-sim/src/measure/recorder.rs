//! A flight recorder: the last events of a run.

use crate::kernel::{Entry, Observer};
use crate::time::Nanos;

/// Keeps the last events in a ring, for finding out how a scenario came to where it is.
#[derive(Clone, Debug)]
pub struct Recorder<E> {
    ring: Vec<Entry<E>>,
    capacity: usize,
    oldest: usize,
}

impl<E: Copy> Recorder<E> {
    /// Keeps the last `capacity` events.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self {
            ring: Vec::with_capacity(capacity),
            capacity,
            oldest: 0,
        }
    }

    /// The events kept, oldest first.
    pub fn events(&self) -> impl Iterator<Item = &Entry<E>> {
        let (newer, older) = self.ring.split_at(self.oldest);
        older.iter().chain(newer)
    }
}

impl<E: Copy> Observer<E> for Recorder<E> {
    #[inline]
    fn observe(&mut self, now: Nanos, event: &E) {
        let entry = Entry {
            time: now,
            event: *event,
        };
        if self.ring.len() < self.capacity {
            self.ring.push(entry);
        } else if let Some(place) = self.ring.get_mut(self.oldest) {
            *place = entry;
            self.oldest = (self.oldest + 1) % self.capacity;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_events_are_kept_in_order() {
        let mut recorder = Recorder::new(3);
        for time in 0..5u64 {
            recorder.observe(time, &(time * 10));
        }
        let kept: Vec<_> = recorder.events().map(|e| (e.time, e.event)).collect();
        assert_eq!(kept, [(2, 20), (3, 30), (4, 40)]);
        let mut nothing = Recorder::new(0);
        nothing.observe(1, &1u64);
        assert_eq!(nothing.events().count(), 0);
    }
}
