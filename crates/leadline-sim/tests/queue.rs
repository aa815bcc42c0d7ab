//! The queue of pending events against a sorted list.

#![allow(clippy::unwrap_used)] // a test may end so

use leadline_sim::kernel::EventQueue;
use proptest::prelude::*;

/// What is done to the queue.
#[derive(Clone, Debug)]
enum Step {
    Push(u64),
    Pop,
    PopBefore(u64),
    Peek,
}

/// The obvious queue: a list sorted by time, ties in the order of arrival.
#[derive(Default)]
struct Reference {
    entries: Vec<(u64, u32)>,
    now: u64,
}

impl Reference {
    fn push(&mut self, time: u64, event: u32) {
        let time = time.max(self.now);
        let place = self.entries.partition_point(|entry| entry.0 <= time);
        self.entries.insert(place, (time, event));
    }

    fn pop_before(&mut self, end: u64) -> Option<(u64, u32)> {
        let first = *self.entries.first()?;
        (first.0 < end).then(|| {
            self.now = first.0;
            self.entries.remove(0)
        })
    }
}

/// Delays from none to centuries, with many ties.
fn delay() -> impl Strategy<Value = u64> {
    prop_oneof![
        0..4u64,
        (0..20u64).prop_map(|ticks| ticks * 64),
        0..1_000u64,
        0..1_000_000u64,
        (0..5u64).prop_map(|seconds| seconds * 1_000_000_000),
        (0..63u32).prop_map(|bits| 1 << bits),
        Just(u64::MAX),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => delay().prop_map(Step::Push),
        5 => Just(Step::Pop),
        1 => delay().prop_map(Step::PopBefore),
        1 => Just(Step::Peek),
    ]
}

fn check(steps: &[Step]) {
    let (mut queue, mut reference) = (EventQueue::new(), Reference::default());
    for (event, step) in (0u32..).zip(steps) {
        match step {
            Step::Push(delay) => {
                // Every fourth event is aimed at the past, which means now.
                let time = if event % 4 == 0 {
                    *delay
                } else {
                    reference.now.saturating_add(*delay)
                };
                queue.push(time, event);
                reference.push(time, event);
            }
            Step::Pop => {
                let taken = queue.pop().map(|entry| (entry.time, entry.event));
                let mut expected = reference.pop_before(u64::MAX);
                if expected.is_none() && !reference.entries.is_empty() {
                    expected = Some(reference.entries.remove(0));
                    reference.now = u64::MAX;
                }
                assert_eq!(taken, expected);
            }
            Step::PopBefore(delay) => {
                let end = reference.now.saturating_add(*delay);
                let taken = queue.pop_before(end).map(|entry| (entry.time, entry.event));
                assert_eq!(taken, reference.pop_before(end));
            }
            Step::Peek => {
                let first = reference.entries.first().map(|entry| entry.0);
                assert_eq!(queue.peek_time(), first);
            }
        }
        assert_eq!(queue.len(), reference.entries.len());
    }
    while let Some(entry) = queue.pop() {
        let expected = reference.entries.remove(0);
        assert_eq!((entry.time, entry.event), expected);
    }
    assert!(reference.entries.is_empty() && queue.is_empty());
}

proptest! {
    #[test]
    fn leaves_in_the_order_of_a_sorted_list(steps in prop::collection::vec(step(), 1..1500)) {
        check(&steps);
    }

    /// Only pushes first, so that the wheel fills; then mostly pops.
    #[test]
    fn leaves_in_order_when_filled_first(
        delays in prop::collection::vec(delay(), 1..2000),
        steps in prop::collection::vec(step(), 1..500),
    ) {
        let filled: Vec<_> = delays.into_iter().map(Step::Push).chain(steps).collect();
        check(&filled);
    }

    /// Events of few times, so that nearly all are ties.
    #[test]
    fn ties_leave_in_the_order_of_arrival(times in prop::collection::vec(0..3u64, 1..1000)) {
        let steps: Vec<_> = times.into_iter().map(|time| Step::Push(time * 1_000_000)).collect();
        check(&steps);
    }
}

/// Looking ahead moves the wheel's base; what is then put in before it, in masses, still comes first.
#[test]
fn events_before_a_peeked_one_come_first() {
    let mut steps: Vec<_> = (0..500).map(|k| Step::Push(1_000_000_000 + k)).collect();
    steps.push(Step::Peek);
    steps.extend((0..500u64).map(|k| Step::Push(500_000_000 - 100_000 * (k % 250))));
    steps.push(Step::Peek);
    steps.extend((0..500u64).map(|k| Step::Push(1_000 * k)));
    check(&steps);
}
