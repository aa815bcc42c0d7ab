//! What each source issues.

#![allow(clippy::unwrap_used)] // a test may end so

use std::sync::Arc;

use leadline_sim::random::{Constant, Distribution, Exponential, Streams};
use leadline_sim::sources::{
    AnyMix, AnySource, Closed, OnOff, Pace, Paced, Recording, Renewal, Replay, Request, RequestMix,
    Source,
};
use leadline_sim::time::{MILLISECOND, Nanos, SECOND};

/// All times an open source issues before `end`.
fn issued(source: &mut impl Source, end: Nanos) -> Vec<Nanos> {
    let mut times = Vec::new();
    let mut next = source.first(0);
    assert_eq!(source.first(0), None, "an open source starts once");
    while let Some(time) = next.filter(|time| *time < end) {
        times.push(time);
        next = source.after_issue(time);
        assert_eq!(source.after_completion(time), None);
    }
    assert!(times.is_sorted());
    times
}

fn constant(nanos: Nanos) -> Distribution {
    Distribution::Constant(Constant(nanos as f64))
}

#[test]
fn poisson_counts_vary_as_much_as_their_mean() {
    let stream = Streams::new(1).stream("source", "gaps");
    let gap = Distribution::Exponential(Exponential {
        mean: MILLISECOND as f64,
    });
    let mut source = AnySource::Renewal(Renewal::new(gap, stream));
    let times = issued(&mut source, 400 * SECOND);
    let mut counts = vec![0.0; 4_000];
    for time in &times {
        counts[usize::try_from(time / (SECOND / 10)).unwrap()] += 1.0;
    }
    let mean = counts.iter().sum::<f64>() / 4_000.0;
    let variance = counts.iter().map(|c| (c - mean) * (c - mean)).sum::<f64>() / 4_000.0;
    assert!((mean - 100.0).abs() < 0.7, "{mean}");
    assert!((variance / mean - 1.0).abs() < 0.08, "{variance}");
}

#[test]
fn even_distances_meet_the_rate_exactly() {
    let times = issued(&mut AnySource::Paced(Paced::new(3.0)), 10 * SECOND);
    assert_eq!(times.len(), 30);
    assert_eq!(times[..4], [0, 333_333_334, 666_666_667, SECOND]);
}

#[test]
fn bursts_and_pauses_follow_each_other() {
    let stream = Streams::new(1).stream("source", "gaps");
    let source = OnOff::new(
        constant(MILLISECOND),
        constant(10 * MILLISECOND),
        constant(90 * MILLISECOND),
        stream,
    );
    assert!((source.mean_rate() - 100.0).abs() < 1e-9);
    let times = issued(&mut AnySource::OnOff(source), SECOND);
    assert_eq!(
        times.len(),
        90,
        "nine in each of ten bursts: the tenth falls on its end"
    );
    assert!(
        times
            .iter()
            .all(|time| time % (100 * MILLISECOND) < 10 * MILLISECOND)
    );
}

#[test]
fn random_bursts_meet_their_mean_rate() {
    let stream = Streams::new(1).stream("source", "gaps");
    let exponential = |mean: u64| Distribution::Exponential(Exponential { mean: mean as f64 });
    let mut source = OnOff::new(
        exponential(MILLISECOND),
        exponential(100 * MILLISECOND),
        exponential(300 * MILLISECOND),
        stream,
    );
    let expected = source.mean_rate() * 4_000.0;
    let count = issued(&mut source, 4_000 * SECOND).len() as f64;
    assert!(
        (count / expected - 1.0).abs() < 0.03,
        "{count} for {expected}"
    );
}

#[test]
fn bursts_without_room_for_a_request_end_the_source() {
    let stream = Streams::new(1).stream("source", "gaps");
    let mut source = OnOff::new(constant(10), constant(5), constant(5), stream);
    assert_eq!(source.first(0), None);
}

#[test]
fn recordings_are_replayed() {
    let times: Arc<[Nanos]> = Arc::new([0, 100, 100, 400]);
    assert_eq!(
        issued(&mut Replay::once(times.clone(), 1.0), SECOND),
        [0, 100, 100, 400]
    );
    assert_eq!(
        issued(&mut Replay::once(times.clone(), 2.0), SECOND),
        [0, 50, 50, 200]
    );
    let mut again = AnySource::Replay(Replay::repeated(times, 2.0, 1_000));
    assert_eq!(
        issued(&mut again, 800),
        [0, 50, 50, 200, 500, 550, 550, 700]
    );
    assert!(issued(&mut Replay::repeated(Arc::new([]), 1.0, 10), SECOND).is_empty());
}

#[test]
fn a_closed_source_keeps_its_number_outstanding_and_its_rate() {
    let stream = Streams::new(1).stream("source", "think");
    let mut source = AnySource::Closed(Closed::new(3, constant(5), stream.clone()));
    let started: Vec<_> = std::iter::from_fn(|| source.first(0)).collect();
    assert_eq!(started, [5, 5, 5]);
    assert_eq!(
        (source.after_issue(5), source.after_completion(7)),
        (None, Some(12))
    );
    let mut limited = Closed::new(3, constant(0), stream).limited(Pace::new(1_000.0));
    let started: Vec<_> = std::iter::from_fn(|| limited.first(0)).collect();
    assert_eq!(started, [0, 0, 0]);
    let mut at_once = || limited.postpone(0);
    let millis = |count: u64| Some(count * MILLISECOND);
    assert_eq!(
        [at_once(), at_once(), at_once()],
        [None, millis(1), millis(2)]
    );
    assert_eq!(limited.after_completion(10), Some(10));
    assert_eq!(limited.postpone(10), millis(3));
    let promised: Vec<_> = (1..=3)
        .map(|count| limited.postpone(count * MILLISECOND))
        .collect();
    assert_eq!(promised, [None, None, None]);
    assert_eq!(
        limited.postpone(4 * MILLISECOND),
        None,
        "the rate allows the next one at once"
    );
}

#[test]
fn requests_have_the_shares_of_their_mix() {
    let stream = || Streams::new(1).stream("vm", "mix");
    let sizes = [(4_096, 70.0), (8_192, 0.0), (65_536, 30.0)];
    let mut mix = RequestMix::new(&sizes, 0.8, 0.25, stream()).unwrap();
    let requests: Vec<_> = (0..100_000).map(|_| mix.draw()).collect();
    let share = |matches: &dyn Fn(&leadline_sim::sources::Request) -> bool| {
        requests.iter().filter(|request| matches(request)).count() as f64 / 100_000.0
    };
    assert!((share(&|r| r.bytes == 65_536) - 0.3).abs() < 0.006);
    assert!((share(&|r| r.bytes == 4_096) - 0.7).abs() < 0.006);
    assert!((share(&|r| r.is_write) - 0.2).abs() < 0.006);
    assert!((share(&|r| r.is_random) - 0.25).abs() < 0.006);
    let mut reads = RequestMix::new(&sizes, 1.0, 0.0, stream()).unwrap();
    assert!(
        (0..10_000)
            .map(|_| reads.draw())
            .all(|r| !r.is_write && !r.is_random)
    );
    for senseless in [
        &[][..],
        &[(4_096, 0.0)],
        &[(4_096, -1.0), (8_192, 2.0)],
        &[(4_096, f64::NAN)],
    ] {
        assert!(RequestMix::new(senseless, 0.5, 0.5, stream()).is_none());
    }
}

#[test]
fn a_recording_gives_times_and_requests_in_step() {
    let request = |bytes, is_write| Request {
        bytes,
        is_write,
        is_random: !is_write,
    };
    let requests = [
        request(4_096, false),
        request(65_536, true),
        request(512, false),
    ];
    let recording = Recording::new(Arc::new([0, 100, 400]), Arc::new(requests)).unwrap();
    let mut once = recording.source(1.0, false);
    assert_eq!(issued(&mut once, SECOND), [0, 100, 400]);
    let mut again = recording.source(1.0, true);
    assert_eq!(issued(&mut again, 1_200), [0, 100, 400, 600, 700, 1_000]);
    let mut mix = AnyMix::Recorded(recording, 0);
    for index in 0..7 {
        assert_eq!(mix.draw(), requests[index % 3]);
    }
    let single: Arc<[Request]> = Arc::new([requests[0]]);
    assert_eq!(Recording::new(Arc::new([]), Arc::new([])), None);
    assert_eq!(Recording::new(Arc::new([1, 2]), single.clone()), None);
    let alone = Recording::new(Arc::new([0]), single).unwrap();
    assert_eq!(issued(&mut alone.source(2.0, true), 2 * SECOND).len(), 4);
}
