//! Read caches against plain implementations of the same policies, and against what is known of LRU.

#![allow(clippy::unwrap_used)] // a test may end so

use std::collections::VecDeque;

use leadline_sim::models::read_cache::{
    AnyReadCache, Kind, LruCurve, Part, READ_CACHE_POLICIES, ReadCache, Trace, hits, synthetic,
};
use leadline_sim::random::{Stream, Streams};
use proptest::prelude::*;

fn zipf(blocks: u64, exponent: f64) -> Part {
    Part {
        name: "zipf".into(),
        weight: 1.0,
        blocks,
        kind: Kind::Zipf(exponent),
        run: 1,
    }
}

fn scan(blocks: u64, weight: f64) -> Part {
    Part {
        name: "scan".into(),
        weight,
        blocks,
        kind: Kind::Scan,
        run: 1,
    }
}

/// Least recently used, as a vector in the order of use.
fn plain_lru(lines: &[u32], capacity: usize) -> Vec<bool> {
    let mut held: Vec<u32> = Vec::new();
    let touch = |line: &u32| {
        let place = held.iter().position(|own| own == line);
        if let Some(index) = place {
            held.remove(index);
        } else if held.len() == capacity {
            held.remove(0);
        }
        held.push(*line);
        place.is_some()
    };
    lines.iter().map(touch).collect()
}

/// ARC line by line of figure 4 of the paper; lists have the least recently used first.
#[derive(Default)]
struct PlainArc {
    c: usize,
    p: f64,
    t1: Vec<u32>,
    t2: Vec<u32>,
    b1: Vec<u32>,
    b2: Vec<u32>,
}

fn take(list: &mut Vec<u32>, line: u32) -> bool {
    let place = list.iter().position(|own| *own == line);
    place.map(|index| list.remove(index)).is_some()
}

impl PlainArc {
    fn replace(&mut self, in_b2: bool) {
        let t1 = self.t1.len() as f64;
        #[allow(clippy::float_cmp)] // a whole number is meant
        if !self.t1.is_empty() && ((in_b2 && t1 == self.p) || t1 > self.p) {
            self.b1.push(self.t1.remove(0));
        } else {
            self.b2.push(self.t2.remove(0));
        }
    }

    fn touch(&mut self, x: u32) -> bool {
        if take(&mut self.t1, x) || take(&mut self.t2, x) {
            self.t2.push(x);
            return true;
        }
        let (b1, b2) = (self.b1.len() as f64, self.b2.len() as f64);
        if self.b1.contains(&x) {
            let delta = if b1 >= b2 { 1.0 } else { b2 / b1 };
            self.p = (self.p + delta).min(self.c as f64);
            self.replace(false);
            take(&mut self.b1, x);
            self.t2.push(x);
            return false;
        }
        if self.b2.contains(&x) {
            let delta = if b2 >= b1 { 1.0 } else { b1 / b2 };
            self.p = (self.p - delta).max(0.0);
            self.replace(true);
            take(&mut self.b2, x);
            self.t2.push(x);
            return false;
        }
        let l1 = self.t1.len() + self.b1.len();
        let all = l1 + self.t2.len() + self.b2.len();
        if l1 == self.c {
            if self.t1.len() < self.c {
                self.b1.remove(0);
                self.replace(false);
            } else {
                self.t1.remove(0);
            }
        } else if all >= self.c {
            if all == 2 * self.c {
                self.b2.remove(0);
            }
            self.replace(false);
        }
        self.t1.push(x);
        false
    }
}

/// S3-FIFO line by line of algorithm 1 of the paper; queues have the head at the back of the deque.
#[derive(Default)]
struct PlainS3Fifo {
    size: usize,
    s: VecDeque<(u32, u32)>,
    m: VecDeque<(u32, u32)>,
    g: VecDeque<u32>,
}

impl PlainS3Fifo {
    fn small(&self) -> usize {
        (self.size / 10).max(1)
    }

    fn evict_m(&mut self) {
        while let Some((line, freq)) = self.m.pop_front() {
            if freq == 0 {
                return;
            }
            self.m.push_back((line, freq - 1));
        }
    }

    fn evict_s(&mut self) {
        let mut evicted = false;
        while !evicted && !self.s.is_empty() {
            let (line, freq) = self.s.pop_front().unwrap();
            if freq > 1 {
                self.m.push_back((line, 0));
                if self.m.len() > self.size - self.small() {
                    self.evict_m();
                }
            } else {
                self.g.push_back(line);
                if self.g.len() > self.size - self.small() {
                    self.g.pop_front();
                }
                evicted = true;
            }
        }
    }

    fn touch(&mut self, line: u32) -> bool {
        for queue in [&mut self.s, &mut self.m] {
            if let Some(held) = queue.iter_mut().find(|held| held.0 == line) {
                held.1 = (held.1 + 1).min(3);
                return true;
            }
        }
        while self.s.len() + self.m.len() >= self.size {
            if self.s.len() >= self.small() {
                self.evict_s();
            } else {
                self.evict_m();
            }
        }
        if let Some(place) = self.g.iter().position(|own| *own == line) {
            self.g.remove(place);
            self.m.push_back((line, 0));
        } else {
            self.s.push_back((line, 0));
        }
        false
    }
}

fn plain(policy: &str, lines: &[u32], capacity: usize) -> Vec<bool> {
    let mut arc = PlainArc {
        c: capacity,
        ..PlainArc::default()
    };
    let mut s3_fifo = PlainS3Fifo {
        size: capacity,
        ..PlainS3Fifo::default()
    };
    match policy {
        "lru" => plain_lru(lines, capacity),
        "arc" => lines.iter().map(|line| arc.touch(*line)).collect(),
        _ => lines.iter().map(|line| s3_fifo.touch(*line)).collect(),
    }
}

/// Uses of which most come back: ranks by a square, with runs now and then.
fn random_lines(stream: &mut Stream, blocks: u64, count: usize) -> Vec<u32> {
    let mut lines = Vec::new();
    while lines.len() < count {
        let first = stream.unit() * stream.unit() * blocks as f64;
        let run = if stream.chance(0.05) {
            1 + stream.below(blocks)
        } else {
            1
        };
        for step in 0..run {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // small numbers
            lines.push(((first as u64 + step) % blocks) as u32);
        }
    }
    lines.truncate(count);
    lines
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn policies_do_use_by_use_what_plain_ones_do(
        seed in any::<u64>(), blocks in 1u64..120, capacity in 1usize..80, policy in 0usize..3,
    ) {
        let lines = random_lines(&mut Streams::new(seed).stream("test", "lines"), blocks, 2_000);
        let policy = READ_CACHE_POLICIES[policy];
        let mut cache = AnyReadCache::new(policy, capacity, usize::try_from(blocks).unwrap()).unwrap();
        for (index, (line, hit)) in lines.iter().zip(plain(policy, &lines, capacity)).enumerate() {
            prop_assert_eq!(cache.touch(*line), hit, "{} use {}", policy, index);
            prop_assert!(cache.len() <= capacity);
        }
    }

    #[test]
    fn distances_count_what_every_lru_cache_hits(seed in any::<u64>(), blocks in 1u64..90, warm in 0usize..500) {
        let lines = random_lines(&mut Streams::new(seed).stream("test", "lines"), blocks, 1_500);
        let curve = LruCurve::new(&lines, warm);
        for capacity in [1, 2, 3, 10, 40, 90] {
            let hit = plain_lru(&lines, capacity);
            prop_assert_eq!(curve.hits(capacity), hit[warm..].iter().map(|hit| u64::from(*hit)).sum::<u64>());
        }
        prop_assert_eq!(curve.hits(0), 0);
        let wanted = curve.hit_ratio(10);
        let least = curve.capacity_for(wanted).unwrap();
        prop_assert!(least <= 10 && curve.hit_ratio(least) >= wanted);
        prop_assert!(least == 0 || curve.hit_ratio(least - 1) < wanted);
    }
}

/// Hit ratio of LRU with independent uses, exactly: the sum over ordered choices of what the cache holds.
///
/// Source: King, "Analysis of demand paging algorithms" (IFIP Congress 1971).
fn exact_lru(shares: &[f64], capacity: usize) -> f64 {
    fn walk(shares: &[f64], held: &mut Vec<usize>, left: usize, weight: f64) -> f64 {
        let used: f64 = held.iter().map(|index| shares[*index]).sum();
        if left == 0 {
            return weight * used;
        }
        let mut total = 0.0;
        for (index, share) in shares.iter().enumerate() {
            if !held.contains(&index) {
                held.push(index);
                total += walk(shares, held, left - 1, weight * share / (1.0 - used));
                held.pop();
            }
        }
        total
    }
    walk(shares, &mut Vec::new(), capacity, 1.0)
}

/// Hit ratio of LRU with independent uses by its characteristic time: sum of 1 - exp(-p t) is the capacity.
///
/// Source: Che, Tung and Wang, "Hierarchical web caching systems" (IEEE JSAC 20, 2002), equation 6.
fn che(shares: &[f64], capacity: usize) -> f64 {
    let held = |time: f64| {
        shares
            .iter()
            .map(|p| 1.0 - libm::exp(-p * time))
            .sum::<f64>()
    };
    let (mut low, mut high) = (0.0, 1.0);
    while held(high) < capacity as f64 {
        high *= 2.0;
    }
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if held(middle) < capacity as f64 {
            low = middle;
        } else {
            high = middle;
        }
    }
    shares.iter().map(|p| p * (1.0 - libm::exp(-p * low))).sum()
}

fn shares(blocks: u32, exponent: f64) -> Vec<f64> {
    let weights: Vec<f64> = (1..=blocks)
        .map(|rank| libm::pow(f64::from(rank), -exponent))
        .collect();
    let total: f64 = weights.iter().sum();
    weights.iter().map(|weight| weight / total).collect()
}

fn hit_ratio(policy: &str, trace: &Trace, capacity: usize, warm: usize) -> f64 {
    let mut cache = AnyReadCache::new(policy, capacity, trace.distinct).unwrap();
    let found = hits(&mut cache, &trace.lines, &[warm, trace.lines.len()]);
    found[1] as f64 / (trace.lines.len() - warm) as f64
}

#[test]
fn few_blocks_hit_as_often_as_the_exact_formula_says() {
    let trace = Trace::of(&synthetic(&[zipf(6, 0.8)], 1, 400_000, 3));
    for capacity in 1..6 {
        let expected = exact_lru(&shares(6, 0.8), capacity);
        let found = hit_ratio("lru", &trace, capacity, 1_000);
        // Half a million uses: a standard deviation is below 0.001.
        assert!(
            (found - expected).abs() < 0.004,
            "{capacity}: {found} {expected}"
        );
    }
}

#[test]
fn many_blocks_hit_as_often_as_the_characteristic_time_says() {
    for exponent in [0.6, 0.9, 1.2] {
        let trace = Trace::of(&synthetic(&[zipf(10_000, exponent)], 1, 400_000, 5));
        let curve = LruCurve::new(&trace.lines, 100_000);
        for capacity in [100, 500, 2_000] {
            let expected = che(&shares(10_000, exponent), capacity);
            let found = curve.hit_ratio(capacity);
            assert!(
                (found - expected).abs() < 0.01,
                "{exponent} {capacity}: {found} {expected}"
            );
        }
    }
}

#[test]
fn a_scan_longer_than_the_cache_spoils_lru_and_not_the_others() {
    let parts = [zipf(2_000, 0.9), scan(20_000, 1.0)];
    let trace = Trace::of(&synthetic(&parts, 1, 300_000, 7));
    let lru = hit_ratio("lru", &trace, 400, 50_000);
    for policy in ["arc", "s3-fifo"] {
        let found = hit_ratio(policy, &trace, 400, 50_000);
        assert!(found > lru + 0.03, "{policy}: {found} {lru}");
    }
}

#[test]
fn traces_are_functions_of_seed_and_names() {
    let parts = [zipf(500, 1.0), scan(100, 0.5)];
    let first = synthetic(&parts, 1, 5_000, 1);
    assert_eq!(first, synthetic(&parts, 1, 5_000, 1));
    assert_ne!(first, synthetic(&parts, 1, 5_000, 2));
    assert!(first.iter().all(|line| *line < 600));
    let lines = Trace::of(&first);
    assert!(lines.distinct <= 600 && lines.distinct > 400);
    // Lines of many blocks hold runs: all but the first use of each run hit a cache of one line.
    let runs = Part {
        run: 64,
        ..scan(6_400, 1.0)
    };
    let trace = Trace::of(&synthetic(&[runs], 64, 64_000, 1));
    let found = hit_ratio("lru", &trace, 1, 0);
    assert!((found - 63.0 / 64.0).abs() < 1e-9, "{found}");
}

#[test]
fn a_policy_there_is_not_is_refused() {
    let message = AnyReadCache::new("fifo", 1, 1).unwrap_err().to_string();
    assert!(
        message.starts_with("caches: policy: fifo; one of arc, lru, s3-fifo"),
        "{message}"
    );
}
