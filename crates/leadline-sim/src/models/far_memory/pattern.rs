//! The order in which a program touches its pages.

use serde::Deserialize;

use crate::random::Stream;
use leadline_stats::error::LeadlineError;

/// How pages are touched. All but `Growing` first write every page once in order, as a program does that loads its data.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Pattern {
    /// From the first page to the last, so many times.
    Sequential {
        /// How often.
        passes: u32,
    },
    /// Any page, all alike, so many touches for each page.
    Uniform {
        /// Touches by pages.
        visits: f64,
    },
    /// Popular pages, scattered over the memory: the n-th in popularity with weight n^-skew.
    Zipf {
        /// Touches by pages.
        visits: f64,
        /// The exponent.
        skew: f64,
    },
    /// Introsort of an array: partitions from both ends inwards, the right part first, then one pass over all.
    Quicksort,
    /// Any page of those there are so far: memory grows evenly from nothing to all of it.
    Growing {
        /// Touches by pages.
        visits: f64,
    },
}

/// Touches at most. Judgement: some minutes of computing.
const TOUCHES_MAX: u64 = 20_000_000_000;

#[derive(Clone, Debug)]
enum State {
    Sequential,
    Uniform,
    Zipf { weights: Vec<f64>, order: Vec<u32> },
    Quicksort(Sort),
    Growing { allocated: u32 },
}

/// Where a sort is: what is still to be sorted, and the partition under way.
#[derive(Clone, Debug)]
struct Sort {
    parts: Vec<(u32, u32)>,
    /// The next page from the left, and one after the next from the right.
    left: u32,
    right: u32,
    is_left: bool,
    /// Page of the final pass; before it, None.
    last_pass: Option<u32>,
}

/// The touches of a pattern, one by one.
#[derive(Clone, Debug)]
pub(super) struct Walk {
    pages: u32,
    done: u64,
    count: u64,
    state: State,
}

impl Walk {
    pub(super) fn new(
        pattern: &Pattern,
        pages: u32,
        stream: &mut Stream,
    ) -> Result<Self, LeadlineError> {
        let all = u64::from(pages);
        let fill = all;
        let (state, count) = match *pattern {
            Pattern::Sequential { passes } => (
                State::Sequential,
                fill.saturating_add(all * u64::from(passes)),
            ),
            Pattern::Uniform { visits } => {
                (State::Uniform, fill.saturating_add(times(visits, all)))
            }
            Pattern::Zipf { visits, skew } => {
                let state = zipf(pages, skew, stream);
                (state, fill.saturating_add(times(visits, all)))
            }
            Pattern::Quicksort => {
                let sort = Sort::new(pages);
                (State::Quicksort(sort), fill + sort_touches(pages) + all)
            }
            Pattern::Growing { visits } => (State::Growing { allocated: 0 }, times(visits, all)),
        };
        let sound = match *pattern {
            Pattern::Zipf { skew, .. } => (0.0..=10.0).contains(&skew),
            Pattern::Growing { .. } => count >= all,
            _ => true,
        };
        if !sound || !(1..=TOUCHES_MAX).contains(&count) {
            return Err(LeadlineError::new(
                "pattern",
                format!("{pattern:?}, {count} touches"),
                "1 to 2*10^10 touches, one of each page at least, and a skew from 0 to 10",
                "Change visits or passes, or let a page stand for more.",
            ));
        }
        Ok(Self {
            pages,
            done: 0,
            count,
            state,
        })
    }

    pub(super) fn touch_count(&self) -> u64 {
        self.count
    }

    /// The next page; None at the end.
    #[allow(clippy::cast_possible_truncation)] // below the number of pages
    pub(super) fn next(&mut self, stream: &mut Stream) -> Option<u32> {
        if self.done >= self.count {
            return None;
        }
        let (done, pages) = (self.done, self.pages);
        self.done += 1;
        let page = match &mut self.state {
            State::Growing { allocated } => {
                // The n-th page is there when n of all pages' touches are over.
                let due =
                    (u128::from(done + 1) * u128::from(pages)).div_ceil(u128::from(self.count));
                if u128::from(*allocated) < due {
                    *allocated += 1;
                    return Some(*allocated - 1);
                }
                stream.below(u64::from(*allocated)) as u32
            }
            _ if done < u64::from(pages) => done as u32,
            State::Sequential => (done % u64::from(pages)) as u32,
            State::Uniform => stream.below(u64::from(pages)) as u32,
            State::Zipf { weights, order } => {
                let total = weights.last().copied().unwrap_or(0.0);
                let drawn = stream.unit() * total;
                let rank = weights.partition_point(|sum| *sum <= drawn);
                order[rank.min(order.len() - 1)]
            }
            State::Quicksort(sort) => return sort.next(pages),
        };
        Some(page)
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // `as` saturates, and what is too large is refused
fn times(visits: f64, pages: u64) -> u64 {
    (visits * pages as f64) as u64
}

/// Cumulative weights by popularity, and the page of each.
fn zipf(pages: u32, skew: f64, stream: &mut Stream) -> State {
    let mut sum = 0.0;
    let weights = (1..=pages)
        .map(|rank| {
            sum += libm::pow(f64::from(rank), -skew);
            sum
        })
        .collect();
    let mut order: Vec<u32> = (0..pages).collect();
    for last in (1..order.len()).rev() {
        #[allow(clippy::cast_possible_truncation)] // not above `last`
        let other = stream.below(last as u64 + 1) as usize;
        order.swap(last, other);
    }
    State::Zipf { weights, order }
}

/// Touches of all partitions: each halves its part, down to single pages, which are sorted at one touch.
fn sort_touches(pages: u32) -> u64 {
    let mut count = 0;
    let mut parts = vec![(0, pages)];
    while let Some((from, to)) = parts.pop() {
        count += u64::from(to - from);
        if to - from > 1 {
            let middle = from + (to - from) / 2;
            parts.push((from, middle));
            parts.push((middle, to));
        }
    }
    count
}

impl Sort {
    fn new(pages: u32) -> Self {
        Self {
            parts: Vec::new(),
            left: 0,
            right: pages,
            is_left: true,
            last_pass: None,
        }
        .starting((0, pages))
    }

    fn starting(mut self, part: (u32, u32)) -> Self {
        self.start(part);
        self
    }

    fn start(&mut self, (from, to): (u32, u32)) {
        (self.left, self.right, self.is_left) = (from, to, true);
        if to - from > 1 {
            let middle = from + (to - from) / 2;
            // `std::sort` goes on with the left part and calls itself for the right one, which is done first.
            self.parts.push((from, middle));
            self.parts.push((middle, to));
        }
    }

    fn next(&mut self, pages: u32) -> Option<u32> {
        if let Some(page) = &mut self.last_pass {
            *page += 1;
            return (*page <= pages).then(|| *page - 1);
        }
        if self.left >= self.right {
            let Some(part) = self.parts.pop() else {
                self.last_pass = Some(1);
                return Some(0);
            };
            self.start(part);
        }
        self.is_left = !self.is_left;
        if self.is_left {
            self.right -= 1;
            Some(self.right)
        } else {
            self.left += 1;
            Some(self.left - 1)
        }
    }
}
