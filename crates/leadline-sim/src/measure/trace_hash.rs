//! One number for the whole course of a run.

use std::hash::{Hash, Hasher};

use crate::kernel::Observer;
use crate::time::Nanos;

/// A hash over the time and content of every event in order; equal runs have equal hashes on every machine.
///
/// Source: XXH64's step for eight bytes and its final mixing (xxHash specification 0.1.1, sections on XXH64), fed with
/// numbers rather than bytes, so that the order of bytes in memory does not matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceHash {
    state: u64,
    count: u64,
}

const PRIME_1: u64 = 0x9E37_79B1_85EB_CA87;
const PRIME_2: u64 = 0xC2B2_AE3D_27D4_EB4F;
const PRIME_3: u64 = 0x1656_67B1_9E37_79F9;
const PRIME_4: u64 = 0x85EB_CA77_C2B2_AE63;
const PRIME_5: u64 = 0x27D4_EB2F_1656_67C5;

impl Default for TraceHash {
    fn default() -> Self {
        Self {
            state: PRIME_5,
            count: 0,
        }
    }
}

impl TraceHash {
    /// The hash of all events so far.
    #[must_use]
    pub fn value(&self) -> u64 {
        let hash = self.state.wrapping_add(self.count);
        let hash = (hash ^ (hash >> 33)).wrapping_mul(PRIME_2);
        let hash = (hash ^ (hash >> 29)).wrapping_mul(PRIME_3);
        hash ^ (hash >> 32)
    }

    #[inline]
    fn mix(&mut self, number: u64) {
        let lane = number
            .wrapping_mul(PRIME_2)
            .rotate_left(31)
            .wrapping_mul(PRIME_1);
        self.state = (self.state ^ lane)
            .rotate_left(27)
            .wrapping_mul(PRIME_1)
            .wrapping_add(PRIME_4);
        self.count += 1;
    }
}

/// Takes numbers of every width as 64 bits, the same on machines of 32 and 64 bits.
impl Hasher for TraceHash {
    fn finish(&self) -> u64 {
        self.value()
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.mix(u64::from(*byte));
        }
    }

    #[inline]
    fn write_u8(&mut self, number: u8) {
        self.mix(u64::from(number));
    }

    #[inline]
    fn write_u16(&mut self, number: u16) {
        self.mix(u64::from(number));
    }

    #[inline]
    fn write_u32(&mut self, number: u32) {
        self.mix(u64::from(number));
    }

    #[inline]
    fn write_u64(&mut self, number: u64) {
        self.mix(number);
    }

    #[inline]
    fn write_usize(&mut self, number: usize) {
        self.mix(number as u64);
    }

    #[inline]
    #[allow(clippy::cast_sign_loss)] // the bits are what counts
    fn write_isize(&mut self, number: isize) {
        self.mix(number as u64);
    }
}

impl<E: Hash> Observer<E> for TraceHash {
    #[inline]
    fn observe(&mut self, now: Nanos, event: &E) {
        self.mix(now);
        event.hash(self);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash_of(events: &[(Nanos, Option<u32>)]) -> u64 {
        let mut hash = TraceHash::default();
        for (now, event) in events {
            hash.observe(*now, event);
        }
        hash.value()
    }

    #[test]
    fn time_content_and_order_matter() {
        let reference = hash_of(&[(1, Some(2)), (3, None)]);
        assert_eq!(reference, hash_of(&[(1, Some(2)), (3, None)]));
        assert_ne!(reference, hash_of(&[(1, Some(3)), (3, None)]));
        assert_ne!(reference, hash_of(&[(2, Some(2)), (3, None)]));
        assert_ne!(reference, hash_of(&[(3, None), (1, Some(2))]));
        assert_ne!(reference, hash_of(&[(1, Some(2))]));
    }
}
