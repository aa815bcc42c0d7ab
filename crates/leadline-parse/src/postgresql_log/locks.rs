//! Waits for locks: who waited for what, from when to when, behind whom.
//!
//! A wait is logged when it has lasted `deadlock_timeout`, and once more when the lock was acquired.

use std::collections::HashMap;

use super::entries::Entry;
use super::messages::{LockMessage, holder, lock_message, queue_length};

/// How many messages of other processes may stand between a wait and its detail.
const OPEN_MAX: usize = 64;

/// A time on the clock that was printed: the zone's index and seconds since 1970.
pub type Moment = (usize, f64);

/// One wait for a lock.
#[derive(Clone, Debug, PartialEq)]
pub struct LockWait {
    /// When it began.
    pub start: Moment,
    /// When it ended; the last entry's time while it lasts.
    pub end: Moment,
    /// What is locked, as logged.
    pub target: String,
    /// The process that holds the lock; 0 where it is not named.
    pub holder: u64,
    /// The longest queue for the lock that was logged with it, and when; 0 where none was.
    pub queue: (f64, u32),
}

/// The waits of a log.
#[derive(Debug, Default)]
pub struct LockWaits {
    /// In order of appearance.
    pub waits: Vec<LockWait>,
    waiting: HashMap<u64, usize>,
    /// The process that logged a wait last, and the wait, to which a detail belongs.
    open: Vec<(u64, usize)>,
}

impl LockWaits {
    /// Takes what an entry tells of a wait.
    pub(super) fn take(&mut self, entry: &Entry) {
        let open = self.open.iter().position(|open| open.0 == entry.process);
        let open = open.map(|place| self.open.swap_remove(place).1);
        let moment = (entry.zone_index, entry.seconds());
        match entry.level {
            b"LOG" => {
                if let Some(message) = lock_message(&entry.text) {
                    self.add(&message, moment, entry.process);
                }
            }
            b"DETAIL" => {
                if let (Some(place), Some(process)) = (open, holder(&entry.text)) {
                    let wait = &mut self.waits[place];
                    wait.holder = if wait.holder == 0 {
                        process
                    } else {
                        wait.holder
                    };
                    let count = queue_length(&entry.text);
                    if moment.0 == wait.start.0 && count > wait.queue.1 {
                        wait.queue = (moment.1, count);
                    }
                }
            }
            b"ERROR" | b"FATAL" => {
                if let Some(place) = self.waiting.remove(&entry.process) {
                    self.end(place, moment);
                }
            }
            _ => {}
        }
    }

    fn add(&mut self, message: &LockMessage, moment: Moment, logged_by: u64) {
        let place = *self.waiting.entry(message.process).or_insert_with(|| {
            let start = (moment.0, moment.1 - message.wait_ms / 1e3);
            self.waits.push(LockWait {
                start,
                end: start,
                target: String::from_utf8_lossy(message.target).into_owned(),
                holder: 0,
                queue: (start.1, 0),
            });
            self.waits.len() - 1
        });
        if self.open.len() == OPEN_MAX {
            self.open.remove(0);
        }
        self.open.push((logged_by, place));
        if message.is_acquired {
            self.waiting.remove(&message.process);
            self.end(place, moment);
        }
    }

    fn end(&mut self, place: usize, moment: Moment) {
        let wait = &mut self.waits[place];
        let is_later = moment.0 != wait.start.0 || moment.1 >= wait.start.1;
        wait.end = if is_later { moment } else { wait.start };
    }

    /// Ends the waits that last until the log does.
    pub(super) fn finish(&mut self, moment: Moment) {
        let places: Vec<usize> = self.waiting.drain().map(|waiting| waiting.1).collect();
        for place in places {
            self.end(place, moment);
        }
    }
}
