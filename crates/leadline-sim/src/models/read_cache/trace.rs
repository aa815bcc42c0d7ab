//! Traces of block uses: made from parts, or as recorded.

use serde::Deserialize;

use crate::random::{Empirical, Sample, Stream, Streams};

/// How a part chooses where it reads.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Kind {
    /// Block of rank i with probability proportional to 1 / i^exponent; ranks are scattered over the addresses.
    Zipf(f64),
    /// From the first block to the last, again and again.
    Scan,
}

/// One kind of use among others.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// Its name: the key of its random numbers.
    pub name: String,
    /// How often it comes, against the others.
    pub weight: f64,
    /// Blocks it reads of; each part has its own.
    pub blocks: u64,
    /// Where it reads.
    pub kind: Kind,
    /// Consecutive blocks it reads each time, as uses of their own.
    pub run: u64,
}

/// A sequence of uses with lines numbered from 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// Lines in the order of their uses.
    pub lines: Vec<u32>,
    /// How many different lines there are.
    pub distinct: usize,
}

impl Trace {
    /// Numbers lines by their address.
    #[must_use]
    #[allow(clippy::cast_possible_truncation)] // fewer lines than uses, of which memory holds fewer than 2^32
    pub fn of(addresses: &[u64]) -> Self {
        let mut known = addresses.to_vec();
        known.sort_unstable();
        known.dedup();
        let number = |address: &u64| known.partition_point(|own| own < address) as u32;
        Self {
            lines: addresses.iter().map(number).collect(),
            distinct: known.len(),
        }
    }
}

/// `count` uses of blocks as addresses of lines of `line_blocks` blocks; a function of seed, parts and their names.
#[must_use]
pub fn synthetic(parts: &[Part], line_blocks: u64, count: usize, seed: u64) -> Vec<u64> {
    let streams = Streams::new(seed);
    let mut choice = streams.stream("trace", "parts");
    let mut base = 0;
    let mut sources: Vec<Source> = Vec::new();
    for part in parts {
        sources.push(Source::new(part, base, streams));
        // Parts share no line.
        base += part.blocks.div_ceil(line_blocks) * line_blocks;
    }
    let total: f64 = parts.iter().map(|part| part.weight).sum();
    let mut found = Vec::with_capacity(count);
    while found.len() < count && !sources.is_empty() {
        let mut left = choice.unit() * total;
        let mut index = 0;
        while index + 1 < parts.len() && left >= parts[index].weight {
            left -= parts[index].weight;
            index += 1;
        }
        sources[index].read(line_blocks, count, &mut found);
    }
    found
}

/// A part at work.
struct Source {
    base: u64,
    blocks: u64,
    run: u64,
    /// Ranks to draw from; None for a scan.
    ranks: Option<Empirical>,
    /// Rank to block: a multiplication by a number without common factor.
    scatter: u64,
    at: u64,
    stream: Stream,
}

impl Source {
    fn new(part: &Part, base: u64, streams: Streams) -> Self {
        let ranks = match part.kind {
            Kind::Scan => None,
            Kind::Zipf(exponent) => {
                let weight = |rank: u64| 1.0 / libm::pow(rank as f64 + 1.0, exponent);
                let buckets: Vec<_> = (0..part.blocks)
                    .map(|rank| (rank as f64, rank as f64, weight(rank)))
                    .collect();
                Empirical::from_buckets(&buckets)
            }
        };
        Self {
            base,
            blocks: part.blocks.max(1),
            run: part.run.max(1),
            ranks,
            scatter: scatter(part.blocks.max(1)),
            at: 0,
            stream: streams.stream(&part.name, "blocks"),
        }
    }

    fn read(&mut self, line_blocks: u64, count: usize, found: &mut Vec<u64>) {
        let first = match &self.ranks {
            None => self.at,
            Some(ranks) => {
                let rank = u128::from(ranks.sample(&mut self.stream));
                #[allow(clippy::cast_possible_truncation)] // a remainder of 64 bits
                let block = (rank * u128::from(self.scatter) % u128::from(self.blocks)) as u64;
                block
            }
        };
        for step in 0..self.run {
            if found.len() < count {
                found.push((self.base + (first + step) % self.blocks) / line_blocks);
            }
        }
        self.at = (first + self.run) % self.blocks;
    }
}

/// A multiplier near the golden section of `blocks` that shares no factor with it.
fn scatter(blocks: u64) -> u64 {
    #[allow(clippy::cast_possible_truncation)] // of 64 bits the upper 64 of a product
    let start = ((u128::from(blocks) * 0x9e37_79b9_7f4a_7c15) >> 64) as u64;
    (start.max(1)..=blocks.max(2))
        .find(|candidate| gcd(*candidate, blocks) == 1)
        .unwrap_or(1)
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
