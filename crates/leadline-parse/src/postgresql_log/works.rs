//! What was at work from when to when, by name, added up by second.

use std::collections::HashMap;

use super::entries::Entry;
use super::messages::{autovacuum, statement_ms};
use super::names::statement_name;

/// Names that are told apart; statements of further ones are added up as others.
const NAMES_MAX: usize = 4096;
const OTHERS: &str = "other statements";

/// How many of one name were at work, as changes by second.
#[derive(Clone, Debug, Default)]
pub struct Work {
    /// Name of a statement, or of an autovacuum worker with its table.
    pub name: String,
    /// Whether it is a worker.
    pub is_worker: bool,
    /// Which zone the seconds are printed in.
    pub zone_index: usize,
    /// How long all took, in seconds.
    pub total_s: f64,
    /// When the first began.
    pub begin: i64,
    /// By second: how many more are there from its begin on, and how much is there within it beside these.
    pub changes: HashMap<i64, (f64, f64)>,
}

/// The works of a log.
#[derive(Debug, Default)]
pub struct Works {
    /// In order of appearance.
    pub works: Vec<Work>,
    places: HashMap<(String, usize), usize>,
}

impl Works {
    /// Takes what an entry tells of a statement or a vacuum that ended.
    pub(super) fn take(&mut self, entry: &Entry) {
        if entry.level != b"LOG" {
            return;
        }
        if let Some((duration_ms, statement)) = statement_ms(&entry.text) {
            let name = statement_name(statement);
            self.add(name, false, entry, duration_ms / 1e3);
        } else if let Some((table, elapsed_s)) = autovacuum(&entry.text) {
            let table = table.rsplit('.').next().unwrap_or(&table);
            self.add(
                format!("autovacuum worker on {table}"),
                true,
                entry,
                elapsed_s,
            );
        }
    }

    fn add(&mut self, name: String, is_worker: bool, entry: &Entry, length_s: f64) {
        let mut key = (name, entry.zone_index);
        if self.works.len() >= NAMES_MAX && !self.places.contains_key(&key) {
            if is_worker {
                return;
            }
            OTHERS.clone_into(&mut key.0);
        }
        let works = &mut self.works;
        let place = *self.places.entry(key).or_insert_with_key(|key| {
            works.push(Work {
                name: key.0.clone(),
                is_worker,
                zone_index: key.1,
                begin: i64::MAX,
                ..Work::default()
            });
            works.len() - 1
        });
        self.works[place].add(entry, length_s);
    }
}

impl Work {
    #[allow(clippy::cast_possible_truncation)] // seconds of at most twelve digits
    fn add(&mut self, entry: &Entry, length_s: f64) {
        let end_part = f64::from(entry.micros) / 1e6;
        let before_s = (length_s - end_part).max(0.0);
        let seconds_back = before_s.ceil() as i64;
        let begin = entry.second - seconds_back;
        self.total_s += length_s;
        self.begin = self.begin.min(begin);
        if seconds_back == 0 {
            self.changes.entry(begin).or_default().1 += length_s.min(end_part);
            return;
        }
        let first_part = before_s - (seconds_back - 1) as f64;
        self.changes.entry(begin).or_default().1 += first_part;
        if seconds_back > 1 {
            self.changes.entry(begin + 1).or_default().0 += 1.0;
        }
        let last = self.changes.entry(entry.second).or_default();
        last.1 += end_part;
        if seconds_back > 1 {
            last.0 -= 1.0;
        }
    }
}
