//! Protection schemes: what a request touches of a chunk's fragments.

use serde::Deserialize;

use leadline_stats::error::LeadlineError;

/// How data is kept against failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum Protection {
    /// So many copies.
    Replicas(u32),
    /// Stripes of data units with parity units, any `data` of which give all.
    Code {
        /// k, data units of a stripe.
        data: u32,
        /// m, its parity units.
        parity: u32,
    },
}

/// A range of a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touch {
    /// Which fragment of the chunk, from 0; parity after data.
    pub column: u32,
    /// Where it begins in the fragment, bytes.
    pub start: u64,
    /// Where it ends.
    pub end: u64,
}

/// A range of a chunk, bytes.
pub type Range = (u64, u64);

/// Copies or units a chunk has at most.
const WIDTH_MAX: u32 = 64;

impl TryFrom<String> for Protection {
    type Error = LeadlineError;

    fn try_from(name: String) -> Result<Self, LeadlineError> {
        Self::named(&name)
    }
}

impl Protection {
    /// `replicas-3` or `ec-3+2`.
    ///
    /// # Errors
    /// When it names none.
    pub fn named(name: &str) -> Result<Self, LeadlineError> {
        let scheme = if let Some(count) = name.strip_prefix("replicas-") {
            count.parse().ok().map(Self::Replicas)
        } else {
            let parts = name.strip_prefix("ec-").and_then(|own| own.split_once('+'));
            parts.and_then(|(data, parity)| {
                let (data, parity) = (data.parse().ok()?, parity.parse().ok()?);
                Some(Self::Code { data, parity })
            })
        };
        scheme.filter(|own| own.is_sound()).ok_or_else(|| {
            LeadlineError::new(
                "protection",
                name,
                "replicas-N, or ec-K+M of K data and M parity units, up to 64 in all",
                "Name a scheme such as replicas-3 or ec-3+2.",
            )
        })
    }

    fn is_sound(self) -> bool {
        let (data, parity) = self.shape();
        data > 0 && data <= WIDTH_MAX && parity <= WIDTH_MAX && self.width() <= WIDTH_MAX
    }

    fn shape(self) -> (u32, u32) {
        match self {
            Self::Replicas(count) => (count, 0),
            Self::Code { data, parity } => (data, parity),
        }
    }

    /// Fragments of a chunk: copies, or data and parity units.
    #[must_use]
    pub fn width(self) -> u32 {
        let (data, parity) = self.shape();
        data.saturating_add(parity)
    }

    /// Fragments that must be there for the data to be.
    #[must_use]
    pub fn needed(self) -> u32 {
        match self {
            Self::Replicas(_) => 1,
            Self::Code { data, .. } => data,
        }
    }

    /// Failures of nodes that no data is lost by.
    #[must_use]
    pub fn survives(self) -> u32 {
        self.width() - self.needed()
    }

    /// Raw bytes for a byte of data: n, or (k + m) / k.
    #[must_use]
    pub fn capacity_factor(self) -> f64 {
        f64::from(self.width()) / f64::from(self.needed())
    }

    /// Whole stripes in a chunk of about so many bytes, and the bytes of data they hold; copies have one stripe.
    #[must_use]
    pub fn chunk(self, bytes: u64, unit: u64) -> u64 {
        match self {
            Self::Replicas(_) => bytes,
            Self::Code { data, .. } => {
                let stripe = unit.saturating_mul(u64::from(data)).max(1);
                (bytes / stripe).max(1).saturating_mul(stripe)
            }
        }
    }

    /// Bytes of each fragment of a chunk of `chunk` bytes.
    #[must_use]
    pub fn fragment(self, chunk: u64) -> u64 {
        chunk / u64::from(self.needed())
    }

    /// What a read of `start..end` of a chunk reads of its data fragments; one copy, column 0, with copies.
    pub fn read(self, start: u64, end: u64, unit: u64, touched: &mut Vec<Touch>) {
        match self {
            Self::Replicas(_) => touched.push(Touch {
                column: 0,
                start,
                end,
            }),
            Self::Code { data, .. } => columns(u64::from(data), start, end, unit, touched),
        }
    }

    /// Splits a write of `start..end` of a chunk with a code into the stripes it fills and the parts of stripes at either
    /// end, which it does not: (parts of stripes, whole stripes), each a range of the chunk.
    #[must_use]
    pub fn stripes(self, start: u64, end: u64, unit: u64) -> ([Option<Range>; 2], Option<Range>) {
        let stripe = (unit * u64::from(self.needed())).max(1);
        let (first, last) = (start.div_ceil(stripe) * stripe, end / stripe * stripe);
        let some = |from: u64, to: u64| (from < to).then_some((from, to));
        if first > last {
            return ([some(start, end), None], None); // within one stripe
        }
        (
            [some(start, first.min(end)), some(last.max(start), end)],
            some(first, last),
        )
    }
}

/// The ranges of data fragments that `start..end` of a chunk lies in, one for each fragment.
fn columns(data: u64, start: u64, end: u64, unit: u64, touched: &mut Vec<Touch>) {
    let base = touched.len();
    let mut at = start;
    while at < end {
        let (number, within) = (at / unit, at % unit);
        let to = end.min((number + 1) * unit);
        #[allow(clippy::cast_possible_truncation)] // below the width
        let column = (number % data) as u32;
        let own = number / data * unit + within;
        let own_end = own + (to - at);
        match touched[base..].iter_mut().find(|one| one.column == column) {
            Some(one) => one.end = own_end,
            None => touched.push(Touch {
                column,
                start: own,
                end: own_end,
            }),
        }
        at = to;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::float_cmp)] // a test may end so, and these numbers are exact
mod tests {
    use super::*;

    #[test]
    fn schemes_are_read_and_refused() {
        let code = Protection::named("ec-3+2").unwrap();
        assert_eq!((code.width(), code.needed(), code.survives()), (5, 3, 2));
        let copies = Protection::named("replicas-3").unwrap();
        assert_eq!(
            (copies.width(), copies.needed(), copies.survives()),
            (3, 1, 2)
        );
        for senseless in [
            "replicas-0",
            "ec-0+2",
            "ec-3",
            "raid-6",
            "ec-60+9",
            "replicas-x",
            "ec-4294967295+1",
        ] {
            assert!(Protection::named(senseless).is_err(), "{senseless}");
        }
    }

    #[test]
    fn ranges_are_those_of_the_stripes() {
        let code = Protection::named("ec-3+2").unwrap();
        let mut touched = Vec::new();
        code.read(5, 45, 10, &mut touched); // units 0 to 4: the second stripe's first two as well
        let found: Vec<_> = touched.iter().map(|t| (t.column, t.start, t.end)).collect();
        assert_eq!(found, [(0, 5, 20), (1, 0, 15), (2, 0, 10)]);
        assert_eq!(code.stripes(30, 90, 10), ([None, None], Some((30, 90))));
        assert_eq!(
            code.stripes(5, 95, 10),
            ([Some((5, 30)), Some((90, 95))], Some((30, 90)))
        );
        assert_eq!(code.stripes(32, 38, 10), ([Some((32, 38)), None], None));
        assert_eq!(
            code.stripes(20, 40, 10),
            ([Some((20, 30)), Some((30, 40))], None)
        );
        assert_eq!(code.chunk(256, 10), 240);
        assert_eq!(code.fragment(240), 80);
    }
}
