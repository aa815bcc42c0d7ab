//! A queue for each client, all in one memory.

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Link<T> {
    item: T,
    next: u32,
}

/// First and last of one client's queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    first: u32,
    last: u32,
}

impl Line {
    /// Nobody waits.
    pub(super) const EMPTY: Self = Self {
        first: NONE,
        last: NONE,
    };
}

/// Items of all queues; places are used again, the latest first, so that memory grows only with the most that ever
/// waited at once.
#[derive(Clone, Debug)]
pub(super) struct ClientQueues<T> {
    links: Vec<Link<T>>,
    free: u32,
    len: usize,
}

impl<T: Copy> ClientQueues<T> {
    pub(super) fn new() -> Self {
        Self {
            links: Vec::new(),
            free: NONE,
            len: 0,
        }
    }

    /// How many items wait.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Adds an item at the end; says whether it is the first one now.
    #[inline]
    pub(super) fn push(&mut self, line: &mut Line, item: T) -> bool {
        let added = Link { item, next: NONE };
        let at = self.free;
        let at = if let Some(place) = self.links.get_mut(at as usize) {
            self.free = place.next;
            *place = added;
            at
        } else {
            #[allow(clippy::cast_possible_truncation)]
            // four thousand million waiting requests do not fit into memory
            let at = self.links.len() as u32;
            self.links.push(added);
            at
        };
        self.len += 1;
        let is_first = line.first == NONE;
        if is_first {
            line.first = at;
        } else {
            self.links[line.last as usize].next = at;
        }
        line.last = at;
        is_first
    }

    /// The first item.
    #[inline]
    pub(super) fn front(&self, line: Line) -> Option<&T> {
        self.links.get(line.first as usize).map(|link| &link.item)
    }

    /// Takes the first item.
    #[inline]
    pub(super) fn pop(&mut self, line: &mut Line) -> Option<T> {
        let at = line.first;
        let taken = self.links.get_mut(at as usize)?;
        line.first = taken.next;
        taken.next = self.free;
        self.free = at;
        self.len -= 1;
        Some(taken.item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_keep_their_order_and_use_places_again() {
        let mut queues = ClientQueues::new();
        let mut lines = [Line::EMPTY; 3];
        for round in 0..10 {
            for item in 0..6 {
                let is_first = queues.push(&mut lines[item % 3], 10 * round + item);
                assert_eq!(is_first, item < 3);
            }
            assert_eq!(queues.len(), 6);
            for (index, line) in lines.iter_mut().enumerate() {
                assert_eq!(queues.front(*line), Some(&(10 * round + index)));
                assert_eq!(queues.pop(line), Some(10 * round + index));
                assert_eq!(queues.pop(line), Some(10 * round + index + 3));
                assert_eq!(queues.pop(line), None);
            }
        }
        assert_eq!((queues.len(), queues.links.len()), (0, 6));
    }
}
