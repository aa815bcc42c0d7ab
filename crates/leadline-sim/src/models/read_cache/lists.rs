//! Doubly linked lists over whole numbers: each number is in at most one of them.

const NONE: u32 = u32::MAX;
const NOWHERE: u8 = u8::MAX;

/// `N` lists of the numbers below a bound, with constant-time moves.
#[derive(Clone, Debug)]
pub struct Lists<const N: usize> {
    next: Vec<u32>,
    previous: Vec<u32>,
    home: Vec<u8>,
    front: [u32; N],
    back: [u32; N],
    len: [usize; N],
}

impl<const N: usize> Lists<N> {
    /// Empty lists of numbers below `bound`.
    pub fn new(bound: usize) -> Self {
        Self {
            next: vec![NONE; bound],
            previous: vec![NONE; bound],
            home: vec![NOWHERE; bound],
            front: [NONE; N],
            back: [NONE; N],
            len: [0; N],
        }
    }

    /// Which list a number is in.
    #[inline]
    pub fn home(&self, item: u32) -> Option<usize> {
        let home = self.home[item as usize];
        (home != NOWHERE).then_some(usize::from(home))
    }

    /// How many a list has.
    #[inline]
    pub fn len(&self, list: usize) -> usize {
        self.len[list]
    }

    /// Puts a number to the front of a list, out of the one it was in.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // there are at most 4 lists
    pub fn push_front(&mut self, list: usize, item: u32) {
        self.remove(item);
        let old = self.front[list];
        self.next[item as usize] = old;
        self.previous[item as usize] = NONE;
        if old == NONE {
            self.back[list] = item;
        } else {
            self.previous[old as usize] = item;
        }
        self.front[list] = item;
        self.home[item as usize] = list as u8;
        self.len[list] += 1;
    }

    /// Takes a number out of the list it is in.
    #[inline]
    pub fn remove(&mut self, item: u32) {
        let Some(list) = self.home(item) else {
            return;
        };
        let (next, previous) = (self.next[item as usize], self.previous[item as usize]);
        if previous == NONE {
            self.front[list] = next;
        } else {
            self.next[previous as usize] = next;
        }
        if next == NONE {
            self.back[list] = previous;
        } else {
            self.previous[next as usize] = previous;
        }
        self.home[item as usize] = NOWHERE;
        self.len[list] -= 1;
    }

    /// The number at the back of a list, which stays there.
    #[inline]
    pub fn back(&self, list: usize) -> Option<u32> {
        let item = self.back[list];
        (item != NONE).then_some(item)
    }

    /// Takes the number at the back of a list.
    #[inline]
    pub fn pop_back(&mut self, list: usize) -> Option<u32> {
        let item = self.back(list)?;
        self.remove(item);
        Some(item)
    }
}
