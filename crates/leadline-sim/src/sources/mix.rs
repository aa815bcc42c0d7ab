//! What kind of request comes next: its size, read or write, random or sequential.

use super::Recording;
use crate::random::Stream;

/// One request; small enough to travel in an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Request {
    /// Its size, bytes.
    pub bytes: u32,
    /// Whether it writes.
    pub is_write: bool,
    /// Whether it goes to a place of its own rather than behind the request before it.
    pub is_random: bool,
}

/// The shares of a workload file's stream: `block`, `read_pct`, `random_pct`.
#[derive(Clone, Debug)]
pub struct RequestMix {
    /// Sizes in bytes, with the share of requests up to and including each.
    sizes: Vec<(f64, u32)>,
    read_share: f64,
    random_share: f64,
    stream: Stream,
}

impl RequestMix {
    /// Sizes in bytes with their weights; shares from 0 to 1. None when no weight is positive, or one is negative or
    /// not finite.
    #[must_use]
    pub fn new(
        sizes: &[(u32, f64)],
        read_share: f64,
        random_share: f64,
        stream: Stream,
    ) -> Option<Self> {
        let total: f64 = sizes.iter().map(|size| size.1).sum();
        let sound = |weight: f64| weight.is_finite() && weight >= 0.0;
        if !sizes.iter().all(|size| sound(size.1)) || total <= 0.0 {
            return None;
        }
        let mut passed = 0.0;
        let held = sizes.iter().filter(|size| size.1 > 0.0);
        let sizes = held.map(|(bytes, weight)| {
            passed += weight / total;
            (passed, *bytes)
        });
        Some(Self {
            sizes: sizes.collect(),
            read_share,
            random_share,
            stream,
        })
    }

    /// The next request.
    #[inline]
    pub fn draw(&mut self) -> Request {
        Request {
            bytes: self.draw_bytes(),
            is_write: !self.stream.chance(self.read_share),
            is_random: self.stream.chance(self.random_share),
        }
    }

    #[inline]
    fn draw_bytes(&mut self) -> u32 {
        let share = self.stream.unit();
        let mut bytes = 0;
        for (passed, size) in &self.sizes {
            bytes = *size; // the last one, when rounding keeps the shares from reaching 1
            if share < *passed {
                break;
            }
        }
        bytes
    }
}

/// What comes next: drawn from shares, or as recorded, again and again.
#[derive(Clone, Debug)]
pub enum AnyMix {
    /// By shares.
    Drawn(RequestMix),
    /// A recording, and the index of the next request.
    Recorded(Recording, usize),
}

impl AnyMix {
    /// The next request.
    #[inline]
    pub fn draw(&mut self) -> Request {
        match self {
            AnyMix::Drawn(mix) => mix.draw(),
            AnyMix::Recorded(recording, next) => {
                let request = recording.request(*next);
                *next += 1;
                request
            }
        }
    }
}
