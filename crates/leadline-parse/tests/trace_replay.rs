//! Lanes for fio, classes of requests, and the requests a workload gives.
#![allow(clippy::panic, clippy::similar_names, clippy::format_collect)]

use std::path::PathBuf;

use leadline_parse::trace::{
    Burst, CLASSES, DiskProfile, Lanes, Load, LoadStream, Mapping, Options, Split, characterise,
    distances, requests, synthesise, write_lanes,
};
use leadline_stats::error::LeadlineError;
use leadline_stats::histogram::LogLinear;
use proptest::prelude::*;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("leadline-replay-{}-{name}", std::process::id()));
        let _ = std::fs::create_dir_all(&path);
        Self(path)
    }

    fn trace(&self, lines: &str) -> Vec<(PathBuf, String)> {
        let path = self.0.join("t.iolog");
        let text = format!("fio version 3 iolog\n0 /d add\n0 /d open\n{lines}");
        assert!(std::fs::write(&path, text).is_ok());
        vec![(path, "t.iolog".to_owned())]
    }

    fn lanes(&self, count: usize, target_bytes: u64) -> Lanes {
        Lanes {
            paths: (0..count)
                .map(|lane| self.0.join(format!("lane-{lane}")))
                .collect(),
            disk: 0,
            target: "/target".to_owned(),
            target_bytes,
            mapping: Mapping::Wrapped,
            unit_bytes: 4096,
            speed_pct: 100,
            duration_ns: None,
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn good<T>(found: Result<Option<T>, LeadlineError>) -> T {
    match found {
        Ok(Some(found)) => found,
        Ok(None) => panic!("nobody said stop"),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn requests_are_dealt_out_with_their_times() {
    let folder = Folder::new("deal");
    let files =
        folder.trace("1000 /d read 0 4096\n3000 /d write 8192 512\n7000 /d read 40960000 8192\n");
    let lanes = folder.lanes(2, 1 << 20);
    let made = good(write_lanes(&files, &lanes, 64, &mut |_| true));
    let text = |lane: usize| std::fs::read_to_string(&lanes.paths[lane]).unwrap_or_default();
    // 40,960,000 does not fit: it is wrapped around the end. 512 bytes are widened to the unit.
    let folded = 40_960_000 % (1 << 20);
    let head = "fio version 3 iolog\n1 /target add\n1 /target open\n";
    assert_eq!(
        text(0),
        format!("{head}1 /target read 0 4096\n6001 /target read {folded} 8192\n")
    );
    assert_eq!(text(1), format!("{head}2001 /target write 8192 4096\n"));
    assert_eq!((made.moved, made.aligned, made.too_large), (1, 1, 0));
    assert_eq!(
        (made.profile.requests(), made.profile.duration_ns()),
        (3, 6_000_000)
    );
}

#[test]
fn offsets_are_wrapped_or_scaled_and_a_block_stays_one_block() {
    let folder = Folder::new("mapping");
    let (mib, page) = (1u64 << 20, 4096u64);
    let rows = [
        (5 * mib + 8192, 4096),
        (5 * mib + 8192, 65_536), // the same block with another length
        (3 * mib, 4096),
        (2 * mib - page, 8192), // wrapped to the last page, where it does not fit
        (0, 4 << 20),           // larger than the target
    ];
    let lines: String = rows
        .iter()
        .zip(0..)
        .map(|((offset, bytes), at)| format!("{at} /d read {offset} {bytes}\n"))
        .collect();
    let files = folder.trace(&lines);
    let mut lanes = folder.lanes(1, 2 * mib);
    for (mapping, expected) in [
        (
            Mapping::Wrapped,
            [mib + 8192, mib + 8192, mib, 2 * mib - 8192],
        ),
        (
            Mapping::Scaled(8 * mib), // a quarter of it, aligned down to 4 KiB
            [5 * mib / 4, 5 * mib / 4, 3 * mib / 4, mib / 2 - page],
        ),
        (
            Mapping::Scaled(mib), // the target is larger than the disk: as if nothing was asked for
            [mib + 8192, mib + 8192, mib, 2 * mib - 8192],
        ),
    ] {
        lanes.mapping = mapping;
        let made = good(write_lanes(&files, &lanes, 64, &mut |_| true));
        let text = std::fs::read_to_string(&lanes.paths[0]).unwrap_or_default();
        let offsets: Vec<u64> = text
            .lines()
            .skip(3)
            .filter_map(|line| line.split(' ').nth(3)?.parse().ok())
            .collect();
        assert_eq!(offsets, expected, "{mapping:?}");
        assert_eq!((made.moved, made.too_large), (4, 1), "{mapping:?}");
        let lengths: Vec<&str> = text
            .lines()
            .skip(3)
            .filter_map(|line| line.split(' ').nth(4))
            .collect();
        assert_eq!(lengths, ["4096", "65536", "4096", "8192"]);
    }
}

#[test]
fn speed_and_length_are_kept() {
    let folder = Folder::new("speed");
    let lines: String = (0..100)
        .map(|n| format!("{} /d read {} 4096\n", n * 10_000, n * 4096))
        .collect();
    let files = folder.trace(&lines);
    let mut lanes = folder.lanes(4, 1 << 30);
    lanes.speed_pct = 200;
    lanes.duration_ns = Some(500_000_000);
    let made = good(write_lanes(&files, &lanes, 64, &mut |_| true));
    assert_eq!(
        (made.profile.requests(), made.profile.duration_ns()),
        (50, 245_000_000)
    );
    // fio scales by itself: the iologs keep the trace's times.
    let last = std::fs::read_to_string(&lanes.paths[1]).unwrap_or_default();
    assert!(
        last.ends_with("490001 /target read 200704 4096\n"),
        "{last}"
    );
}

#[test]
fn a_lane_that_cannot_be_written_ends_the_work() {
    let folder = Folder::new("full");
    let lines: String = (0..400_000)
        .map(|n| format!("{n} /d read 0 4096\n"))
        .collect();
    let files = folder.trace(&lines);
    let mut lanes = folder.lanes(1, 1 << 20);
    lanes.paths = vec![PathBuf::from("/dev/full")];
    let Err(error) = write_lanes(&files, &lanes, 64, &mut |_| true) else {
        panic!("/dev/full took it");
    };
    assert!(error.found.contains("cannot write"), "{error}");
    lanes.paths = vec![folder.0.join("none").join("lane")];
    assert!(write_lanes(&files, &lanes, 64, &mut |_| true).is_err());
}

#[test]
fn classes_of_one_disk_are_told_apart() {
    let folder = Folder::new("classes");
    let lines: String = (0..50)
        .map(|n| {
            let scattered = (n * 7919 % 1000) * 65_536 + (1 << 30);
            format!(
                "{} /d write {} 65536\n{} /d read {scattered} 4096\n",
                n * 10,
                n * 65_536,
                n * 10 + 5
            )
        })
        .collect();
    let options = Options {
        sample_keys: 1024,
        split: Split::Classes(0),
    };
    let found = good(characterise(&folder.trace(&lines), &options, &mut |_| true));
    let counts: Vec<(&str, u64)> = found
        .profiles
        .iter()
        .map(|(name, profile)| (name.as_str(), profile.requests()))
        .collect();
    // The first of a run goes on from nowhere.
    let expected = [50, 1, 0, 49];
    let expected: Vec<(&str, u64)> = CLASSES.into_iter().zip(expected).collect();
    assert_eq!(counts, expected);
}

fn stream(random_pct: f64, rate_iops: f64, burst: Option<Burst>) -> LoadStream {
    LoadStream {
        block: vec![(4096, 75.0), (65_536, 25.0)],
        read_pct: 60.0,
        random_pct,
        oio: 64,
        jobs: 1,
        rate_iops,
        burst,
        working_set: 1 << 26,
    }
}

fn made(streams: Vec<LoadStream>, seed: u64, latency: &LogLinear) -> DiskProfile {
    let load = Load {
        streams,
        duration_s: 20.0,
        requests_max: 1_000_000,
        seed,
    };
    synthesise(&load, [latency, latency], 1024)
}

#[test]
fn a_workload_gives_what_it_says() {
    let mut latency = LogLinear::default();
    latency.record_n(1_000_000, 10);
    let profile = made(vec![stream(80.0, 2000.0, None)], 1, &latency);
    let close = |found: Option<f64>, wanted: f64, within: f64| {
        assert!(
            found.is_some_and(|found| (found - wanted).abs() <= within),
            "{found:?}, not {wanted}"
        );
    };
    close(Some(profile.requests() as f64), 40_000.0, 800.0);
    close(profile.read_share(), 0.6, 0.01);
    close(profile.sequential_share(), 0.2, 0.03);
    close(profile.dispersion[0].index(), 1.0, 0.15);
    close(
        profile.all.size.limits.summary().map(|s| s.2),
        0.75 * 4096.0 + 0.25 * 65_536.0,
        400.0,
    );
    // Little's law: 2,000 requests per second of a millisecond each are two, and the new one makes three.
    close(profile.all.depth.limits.summary().map(|s| s.2), 3.0, 0.1);
    close(
        Some(profile.working_set_bytes() as f64),
        f64::from(1 << 26),
        f64::from(1 << 22),
    );

    let again = made(vec![stream(80.0, 2000.0, None)], 1, &latency);
    assert!(
        distances(&profile, &again)
            .iter()
            .all(|(_, apart)| apart.is_none_or(|apart| apart == 0.0))
    );
    let other = made(vec![stream(80.0, 2000.0, None)], 2, &latency);
    let apart: Vec<_> = distances(&profile, &other)
        .into_iter()
        .filter(|(name, _)| *name == "size")
        .collect();
    assert!(apart[0].1.is_some_and(|apart| apart > 0.0 && apart < 0.02));
}

#[test]
fn outstanding_requests_are_bounded_and_bursts_pause() {
    let mut latency = LogLinear::default();
    latency.record_n(100_000_000, 1); // a tenth of a second: 64 at a time are 640 per second at most
    let bound = made(vec![stream(100.0, 5000.0, None)], 3, &latency);
    assert!(bound.all.depth.fine.max().is_some_and(|most| most <= 64));
    let per_s = bound.requests() as f64 / 20.0;
    assert!((per_s - 640.0).abs() < 40.0, "{per_s}");

    let burst = Burst {
        on_s: 1.0,
        off_s: 3.0,
    };
    let bursts = made(
        vec![stream(100.0, 1000.0, Some(burst))],
        4,
        &LogLinear::default(),
    );
    assert!(
        (4..=5).contains(&bursts.pause_count),
        "{}",
        bursts.pause_count
    );
    assert!((bursts.requests() as f64 - 5000.0).abs() < 300.0);
    assert_eq!(bursts.all.depth.fine.total(), 0);
}

proptest! {
    #[test]
    fn what_is_written_lies_within_the_target(
        requests in prop::collection::vec((0u64..1 << 40, 1u32..1 << 20), 1..60), target in 20u32..40
    ) {
        let folder = Folder::new("fit");
        let lines: String = requests
            .iter()
            .zip(0..)
            .map(|((offset, bytes), at)| format!("{at} /d write {offset} {bytes}\n"))
            .collect();
        let lanes = folder.lanes(3, 1 << target);
        let made = good(write_lanes(&folder.trace(&lines), &lanes, 64, &mut |_| true));
        prop_assert!(made.profile.end_bytes <= 1 << target);
        prop_assert_eq!(made.profile.requests(), requests.len() as u64);
        for path in &lanes.paths {
            let text = std::fs::read_to_string(path).unwrap_or_default();
            for line in text.lines().skip(3) {
                let words: Vec<&str> = line.split(' ').collect();
                let (offset, bytes): (u64, u64) = (words[3].parse().unwrap_or(1), words[4].parse().unwrap_or(1));
                prop_assert!(offset % 4096 == 0 && bytes % 4096 == 0 && offset + bytes <= 1 << target);
            }
        }
    }
}

#[test]
fn every_request_of_a_disk_stands_in_the_columns() {
    let folder = Folder::new("columns");
    let path = folder.0.join("two.csv");
    let row = |at: u64, disk: u32, way: &str, offset: u64| {
        format!(
            "{},h,{disk},{way},{offset},4096,{}\n",
            at + 1_000_000,
            at * 10
        )
    };
    let rows = [
        row(0, 1, "Write", 0),
        row(5, 0, "Read", 8192),
        row(7, 0, "Write", 12_288), // goes on where a read ended, which is none of its kind
        row(9, 0, "Read", 12_288),
        row(11, 1, "Write", 4096),
    ];
    assert!(std::fs::write(&path, rows.concat()).is_ok());
    let files = vec![(path, "two.csv".to_owned())];
    let found = good(requests(&files, Some("h,0"), 10, &mut |_| true));
    assert_eq!(found.times_ns, [0, 200, 400]);
    assert_eq!(found.bytes, [4096; 3]);
    assert_eq!(found.is_write, [false, true, false]);
    assert_eq!(found.is_random, [true, true, false]);
    assert_eq!(found.latency_ns, [5_000, 7_000, 9_000]);
    let other = good(requests(&files, Some("h,1"), 10, &mut |_| true));
    assert_eq!(other.is_random, [true, false]);
    for (disk, most, message) in [
        (None, 10, "several disks"),
        (Some("h,2"), 10, "no disk h,2"),
        (Some("h,0"), 4, "more than 4 requests"),
    ] {
        let error = requests(&files, disk, most, &mut |_| true).err();
        assert_eq!(error.map(|own| own.found), Some(message.to_owned()));
    }
}
