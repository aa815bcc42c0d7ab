//! Local memory: which pages are in it, and which goes next.

use serde::Deserialize;

/// Who goes when a page comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Replacement {
    /// The page that was touched longest ago.
    Lru,
    /// The first page in a circle that was not touched since the hand last passed.
    Clock,
}

/// Where a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Nowhere: it was never touched.
    New,
    /// In local memory.
    Local,
    /// In local memory, read ahead and not touched since.
    Ahead,
    /// On the SSD or on the other host.
    Elsewhere,
}

const NONE: u32 = u32::MAX;

/// Pages in local memory, in a ring: by last touch for LRU, by arrival for the clock.
#[derive(Clone, Debug)]
pub(super) struct Local {
    places: Vec<Place>,
    ready: Vec<f64>,
    touched: Vec<bool>,
    before: Vec<u32>,
    after: Vec<u32>,
    /// The page that goes next (LRU), or under the hand (clock).
    hand: u32,
    count: u32,
    capacity: u32,
    replacement: Replacement,
}

impl Local {
    pub(super) fn new(pages: u32, capacity: u32, replacement: Replacement) -> Self {
        let count = pages as usize;
        Self {
            places: vec![Place::New; count],
            ready: vec![0.0; count],
            touched: vec![false; count],
            before: vec![NONE; count],
            after: vec![NONE; count],
            hand: NONE,
            count: 0,
            capacity,
            replacement,
        }
    }

    pub(super) fn place(&self, page: u32) -> Place {
        self.places[page as usize]
    }

    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// When a page that was read ahead is here, ns.
    pub(super) fn ready_at(&self, page: u32) -> f64 {
        self.ready[page as usize]
    }

    /// A page that was read ahead is touched for the first time.
    pub(super) fn map(&mut self, page: u32) {
        self.places[page as usize] = Place::Local;
    }

    /// A page in local memory is touched.
    pub(super) fn touched(&mut self, page: u32) {
        match self.replacement {
            Replacement::Clock => self.touched[page as usize] = true,
            Replacement::Lru if self.after[page as usize] == self.hand => {} // the latest already
            Replacement::Lru => {
                self.unlink(page);
                self.link(page);
            }
        }
    }

    /// A page comes; there is room.
    pub(super) fn insert(&mut self, page: u32, place: Place, ready_at: f64) {
        self.places[page as usize] = place;
        self.ready[page as usize] = ready_at;
        self.touched[page as usize] = place == Place::Local;
        self.count += 1;
        self.link(page);
    }

    /// Lets a page go when there is no room; which, and where it was.
    pub(super) fn make_room(&mut self) -> Option<(u32, Place)> {
        if self.count < self.capacity {
            return None;
        }
        if self.replacement == Replacement::Clock {
            while std::mem::take(&mut self.touched[self.hand as usize]) {
                self.hand = self.after[self.hand as usize];
            }
        }
        let page = self.hand;
        let place = std::mem::replace(&mut self.places[page as usize], Place::Elsewhere);
        self.unlink(page);
        self.count -= 1;
        Some((page, place))
    }

    /// Puts a page into the ring where it goes last.
    fn link(&mut self, page: u32) {
        let at = page as usize;
        if self.hand == NONE {
            (self.before[at], self.after[at], self.hand) = (page, page, page);
            return;
        }
        let (last, first) = (self.before[self.hand as usize], self.hand);
        (self.before[at], self.after[at]) = (last, first);
        self.after[last as usize] = page;
        self.before[first as usize] = page;
    }

    fn unlink(&mut self, page: u32) {
        let (before, after) = (self.before[page as usize], self.after[page as usize]);
        self.after[before as usize] = after;
        self.before[after as usize] = before;
        if self.hand == page {
            self.hand = if after == page { NONE } else { after };
        }
    }
}
