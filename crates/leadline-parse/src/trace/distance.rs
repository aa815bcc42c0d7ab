//! How far two profiles are apart, per characteristic, from 0 (alike) to 1.
//!
//! Histograms: the largest difference of the cumulative shares (Kolmogorov and Smirnov). Shares: their difference.
//! Amounts: one less the smaller over the larger. The miss-ratio curve: the mean difference over its cache sizes.

use leadline_stats::histogram::distance_of_counts;

use super::profile::{DiskProfile, PAGE_BITS, Way};
use super::streams::Streams;

/// A characteristic and its distance; None where either profile does not have it.
pub type Distance = (&'static str, Option<f64>);

/// The distances of all characteristics.
#[must_use]
pub fn distances(first: &DiskProfile, second: &DiskProfile) -> Vec<Distance> {
    let (a, b) = (&first.all, &second.all);
    let sizes = |of: fn(&DiskProfile) -> &Way| of(first).size.fine.distance(&of(second).size.fine);
    let runs = |of: fn(&DiskProfile) -> (&Way, &Streams)| {
        apart(continued(of(first)), continued(of(second)))
    };
    vec![
        ("size", a.size.fine.distance(&b.size.fine)),
        (
            "seek distance",
            distance_of_counts(a.seek.counts(), b.seek.counts()),
        ),
        (
            "interarrival",
            a.interarrival.fine.distance(&b.interarrival.fine),
        ),
        ("latency", a.latency.fine.distance(&b.latency.fine)),
        ("outstanding", a.depth.fine.distance(&b.depth.fine)),
        ("read share", apart(first.read_share(), second.read_share())),
        (
            "sequential share",
            apart(first.sequential_share(), second.sequential_share()),
        ),
        ("read size", sizes(|profile| &profile.read)),
        ("write size", sizes(|profile| &profile.write)),
        (
            "sequential reads",
            runs(|profile| (&profile.read, &profile.reads_streams)),
        ),
        (
            "sequential writes",
            runs(|profile| (&profile.write, &profile.writes_streams)),
        ),
        ("burstiness", burstiness(first, second)),
        (
            "working set",
            ratio(working_set(first), working_set(second)),
        ),
        ("miss ratio", curves(first, second)),
    ]
}

/// The share of a kind's requests that went on where one ended.
fn continued((way, streams): (&Way, &Streams)) -> Option<f64> {
    let total = way.size.fine.total();
    (total > 0).then(|| streams.continued as f64 / total as f64)
}

fn apart(first: Option<f64>, second: Option<f64>) -> Option<f64> {
    Some((first? - second?).abs())
}

fn ratio(first: Option<f64>, second: Option<f64>) -> Option<f64> {
    let (small, large) = (first?.min(second?), first?.max(second?));
    (large > 0.0).then(|| 1.0 - small / large)
}

/// Over the longest windows of which both have enough.
fn burstiness(first: &DiskProfile, second: &DiskProfile) -> Option<f64> {
    let pairs = first.dispersion.iter().zip(&second.dispersion).rev();
    // A process without any variance is a clock; one part in a hundred of Poisson's is as good as none.
    let known = |index: Option<f64>| index.map(|index| index.max(0.01));
    pairs
        .map(|(a, b)| (a.index(), b.index(), a.windows().min(b.windows())))
        .find(|(a, b, windows)| a.is_some() && b.is_some() && *windows >= WINDOWS_MIN)
        .and_then(|(a, b, _)| ratio(known(a), known(b)))
}

/// Judgement: of fewer windows the variance says little.
const WINDOWS_MIN: u64 = 20;

#[allow(clippy::cast_precision_loss)]
fn working_set(profile: &DiskProfile) -> Option<f64> {
    (profile.requests() > 0).then(|| profile.working_set_bytes() as f64)
}

fn curves(first: &DiskProfile, second: &DiskProfile) -> Option<f64> {
    let finest = 4.0 * first.pages.resolution().max(second.pages.resolution());
    let (mine, theirs) = (first.curve(), second.curve());
    let longer = if mine.len() >= theirs.len() {
        &mine
    } else {
        &theirs
    };
    let keys = longer.iter().map(|(bytes, _)| (bytes >> PAGE_BITS) as f64);
    let keys: Vec<f64> = keys.filter(|key| *key >= finest).collect();
    let (a, b) = (first.pages.curve(&keys), second.pages.curve(&keys));
    let total: f64 = a
        .iter()
        .zip(&b)
        .map(|(a, b)| (a.miss_ratio - b.miss_ratio).abs())
        .sum();
    let count = a.len().min(b.len());
    (count > 0).then(|| total / count as f64)
}
