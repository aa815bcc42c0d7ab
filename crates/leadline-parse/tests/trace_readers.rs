//! Traces of every format: what is read, repaired and refused.

#![allow(clippy::panic, clippy::print_stderr)]

use std::io::Write;
use std::path::{Path, PathBuf};

use leadline_parse::trace::characterise;
use proptest::prelude::*;

mod trace_support;

use trace_support::*;

fn vscsi(version: u8, big: bool, command: u16, block: u64, bytes: u32, us: u64) -> Vec<u8> {
    let short = |value: u16| {
        if big {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        }
    };
    let word = |value: u32| {
        if big {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        }
    };
    let long = |value: u64| {
        if big {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        }
    };
    let version_field = short(u16::from(version) << 8 | 2);
    let mut raw = Vec::new();
    if version == 2 {
        raw.extend(short(command));
        raw.extend(version_field);
    }
    raw.extend(word(7));
    raw.extend(word(bytes));
    raw.extend(word(1));
    if version == 1 {
        raw.extend(short(command));
        raw.extend(version_field);
    }
    raw.extend(long(block));
    raw.extend(long(us));
    if version == 2 {
        raw.extend(long(500));
    }
    raw
}

fn vscsi_trace(version: u8, big: bool) -> Vec<u8> {
    let commands = [(0x28, 100), (0x2a, 108), (0x35, 0), (0x88, 5000)];
    let records = commands.iter().zip(1u64..);
    records
        .flat_map(|((command, block), at)| vscsi(version, big, *command, *block, 4096, at * 1000))
        .collect()
}

#[test]
fn both_versions_and_byte_orders_of_vscsi_are_one_trace() {
    let folder = Folder::new("vscsi");
    for version in [1, 2] {
        for big in [false, true] {
            let found = good(folder.read("db01.vscsi", &vscsi_trace(version, big)));
            assert_eq!(found.format, "vscsi");
            let (name, profile) = &found.profiles[0];
            assert_eq!((name.as_str(), counts(profile)), ("db01", (2, 1)));
            assert_eq!(profile.duration_ns(), 3_000_000);
            assert_eq!(profile.end_bytes, 5000 * 512 + 4096);
            assert_eq!(
                profile.all.seek.summary().map(|s| (s.0, s.1)),
                Some((0, 4884))
            );
            let latency = profile.all.latency.fine.quantile(0.5);
            assert_eq!(latency, (version == 2).then_some(500_000.0));
            assert!(notes(&found).contains(&("other", 1)));
            assert_eq!(notes(&found).contains(&("big-endian", 1)), big);
        }
    }
}

#[test]
fn a_cut_record_is_left_out_and_another_version_is_refused_at_its_byte() {
    let folder = Folder::new("vscsi-damage");
    let mut cut = vscsi_trace(2, false);
    cut.truncate(cut.len() - 3);
    let found = good(folder.read("a.vscsi", &cut));
    assert_eq!(counts(&found.profiles[0].1), (1, 1));
    assert!(notes(&found).contains(&("cut", 1)));

    let mut mixed: Vec<u8> = (0..20).flat_map(|_| vscsi_trace(2, false)).collect();
    mixed.extend(vscsi_trace(1, false));
    let error = bad(folder.read("b.vscsi", &mixed));
    assert_eq!(error.place, format!("b.vscsi: byte {}", 20 * 4 * 40));
    assert!(error.found.contains("version 2"), "{error}");
}

#[test]
fn records_out_of_order_are_sorted_and_counted() {
    let folder = Folder::new("order");
    let raw: Vec<u8> = [3u64, 1, 2, 5, 4]
        .iter()
        .flat_map(|at| vscsi(2, false, 0x28, *at, 512, at * 1000))
        .collect();
    let found = good(folder.read("a.vscsi", &raw));
    assert!(notes(&found).contains(&("unsorted", 2)));
    let profile = &found.profiles[0].1;
    assert_eq!(
        profile.all.interarrival.fine.quantile(1.0),
        Some(1_000_000.0)
    );
    assert_eq!(profile.all.seek.counts()[16], 4); // all at distance 0: sequential once sorted
}

#[test]
fn a_record_that_comes_far_too_late_takes_its_neighbours_time() {
    let folder = Folder::new("late");
    let mut raw: Vec<u8> = (0..300_000u64)
        .flat_map(|n| vscsi(1, false, 0x28, n, 512, 1_000_000 + n))
        .collect();
    raw.extend(vscsi(1, false, 0x28, 0, 512, 5));
    let found = good(folder.read("a.vscsi", &raw));
    assert_eq!(notes(&found), [("unsorted", 1), ("late", 1)]);
    assert_eq!(found.profiles[0].1.requests(), 300_001);
    assert_eq!(found.profiles[0].1.duration_ns(), 299_999_000);
}

#[test]
fn msr_is_read_with_and_without_header_and_compressed() {
    let folder = Folder::new("msr");
    let body = "128166372003061629,hm,0,Read,383496192,32768,1130\n\
                128166372013061629,hm,1,Write,8192,4096,2000\n\
                128166372023061629,hm,0,Write,383528960,32768,113\n";
    let header = format!("Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\r\n{body}");
    for text in [body.to_owned(), header] {
        let found = good(folder.read("hm.csv", text.as_bytes()));
        assert_eq!(found.format, "msr-csv");
        let names: Vec<&str> = found
            .profiles
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        assert_eq!(names, ["hm,0", "hm,1"]);
        let profile = &found.profiles[0].1;
        assert_eq!(
            (counts(profile), profile.duration_ns()),
            ((1, 1), 2_000_000_000)
        );
        assert_eq!(
            profile.read.latency.limits.summary().map(|s| s.0),
            Some(113)
        );
    }
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    assert!(encoder.write_all(body.as_bytes()).is_ok());
    let packed = encoder.finish().unwrap_or_default();
    assert_eq!(good(folder.read("hm.csv.gz", &packed)).profiles.len(), 2);
}

#[test]
fn a_damaged_line_is_named_and_a_cut_one_left_out() {
    let folder = Folder::new("csv-damage");
    let line = "128166372003061629,hm,0,Read,383496192,32768,1130\n";
    let error = bad(folder.read("a.csv", format!("{line}{line}1,2,3\n{line}").as_bytes()));
    assert_eq!(
        (error.place.as_str(), error.found.as_str()),
        ("a.csv:3", "3 fields")
    );
    let error = bad(folder.read(
        "a.csv",
        format!("{line}{}", line.replace("32768", "x")).as_bytes(),
    ));
    assert_eq!(error.place, "a.csv:2");
    let found = good(folder.read("a.csv", format!("{line}{}", &line[..30]).as_bytes()));
    assert_eq!(notes(&found), [("cut", 1)]);
    let many: String = (0..2000)
        .map(|n| line.replace("hm,0", &format!("hm,{n}")))
        .collect();
    assert!(
        bad(folder.read("a.csv", many.as_bytes()))
            .found
            .contains("more than 1024 disks")
    );
}

#[test]
fn vscsi_csv_follows_its_header() {
    let folder = Folder::new("vscsi-csv");
    let text = "#Vscsi Cmd Trace. (Trace Format Version 1)\n\
        #Serial Number,IO Data Length,Num SG Entries,Command Type,LBN,Time Stamp (microseconds)\n\
        2147483692,4096,1,write,24048792,2756778716647\n\
        2147483769,8192,1,read,6322464,2756783857269\n\
        2147483732,0,1,0x35,0,2756783857712\n";
    let found = good(folder.read("db01.csv", text.as_bytes()));
    assert_eq!(found.format, "vscsi-csv");
    let profile = &found.profiles[0].1;
    assert_eq!(
        (counts(profile), profile.duration_ns()),
        ((1, 1), 5_140_622_000)
    );
    assert_eq!(profile.end_bytes, 24_048_792 * 512 + 4096);
    assert_eq!(profile.all.latency.fine.total(), 0);
    assert_eq!(notes(&found), [("other", 1)]);
    let second = text
        .replace("Version 1", "Version 2")
        .replace("(microseconds)", "(us),Response Time (us)");
    let second = second
        .replace("6647\n", "6647,250\n")
        .replace("7269\n", "7269,1250\n")
        .replace("7712\n", "7712,9\n");
    let found = good(folder.read("db01.csv", second.as_bytes()));
    assert_eq!(
        found.profiles[0]
            .1
            .all
            .latency
            .limits
            .summary()
            .map(|s| (s.0, s.1)),
        Some((250, 1250))
    );
}

#[test]
fn a_vscsi_csv_is_read_up_to_its_sixteenth_column() {
    let folder = Folder::new("vscsi-wide");
    let needed = "Data Length,Command Type,LBN,Time Stamp";
    let (names, values) = (",spare".repeat(16), ",1".repeat(16));
    let early = format!("#{needed}{names}\n4096,read,8,1000{values}\n");
    let found = good(folder.read("early.csv", early.as_bytes()));
    assert_eq!(counts(&found.profiles[0].1), (1, 0));
    let late = format!(
        "#{},{needed}\n{},4096,read,8,1000\n",
        &names[1..],
        &values[1..]
    );
    let error = bad(folder.read("late.csv", late.as_bytes()));
    assert_eq!(error.found, "no I/O trace that is known");
}

fn event(big: bool, action: u32, ns: u64, sector: u64, bytes: u32) -> Vec<u8> {
    let word = |value: u32| {
        if big {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        }
    };
    let long = |value: u64| {
        if big {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        }
    };
    let short = |value: u16| {
        if big {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        }
    };
    let mut raw = Vec::new();
    raw.extend(word(0x6561_7407));
    raw.extend(word(1));
    raw.extend(long(ns));
    raw.extend(long(sector));
    for value in [bytes, action, 99, 8 << 20 | 16, 0] {
        raw.extend(word(value));
    }
    raw.extend(short(0));
    raw.extend(short(4));
    raw.extend(b"name");
    raw
}

const READ: u32 = 1 << 16;
const WRITE: u32 = 1 << 17;

#[test]
fn events_of_two_cpus_pair_across_files() {
    let folder = Folder::new("blktrace");
    for big in [false, true] {
        let issues = [
            event(big, READ | 7, 1000, 80, 4096),
            event(big, WRITE | 7, 2000, 160, 8192),
        ]
        .concat();
        let mut done = [
            event(big, READ | 8, 500, 8, 512),
            event(big, READ | 8, 251_000, 80, 4096),
        ]
        .concat();
        done.extend(&event(big, WRITE | 8, 9_000_000, 160, 8192)[..20]);
        let files = [
            folder.file("sdb.blktrace.0", &issues),
            folder.file("sdb.blktrace.1", &done),
        ];
        let found = good(read(&files));
        let (name, profile) = &found.profiles[0];
        assert_eq!((name.as_str(), counts(profile)), ("8,16", (1, 1)));
        assert_eq!(profile.read.latency.fine.total(), 1);
        assert_eq!(
            profile.read.latency.limits.summary().map(|s| s.0),
            Some(250)
        );
        assert_eq!(profile.write.latency.fine.total(), 0);
        for code in ["begun-before", "unfinished", "cut"] {
            assert!(
                notes(&found).contains(&(code, 1)),
                "{code}: {:?}",
                notes(&found)
            );
        }
    }
    let mut damaged = event(false, READ | 7, 1000, 80, 4096);
    damaged.extend([0u8; 60]);
    let error = bad(folder.read("x.blktrace.0", &damaged));
    assert_eq!(error.place, "x.blktrace.0: byte 52");
}

#[test]
fn queue_events_alone_give_latency_from_the_queue() {
    let folder = Folder::new("q2c");
    let raw = [
        event(false, READ | 1, 0, 80, 4096),
        event(false, READ | 1, 10, 88, 4096),
        event(false, READ | 2, 11, 88, 4096),
        event(false, READ | 8, 70_000, 80, 8192),
    ];
    let found = good(folder.read("a.bin", &raw.concat()));
    let profile = &found.profiles[0].1;
    assert_eq!((counts(profile), profile.read_bytes), ((1, 0), 8192));
    assert_eq!(profile.all.latency.limits.summary().map(|s| s.0), Some(70));
    assert_eq!(notes(&found), [("latency-from-queue", 1)]);
}

#[test]
fn blkparse_text_is_read_up_to_its_summary() {
    let folder = Folder::new("blkparse");
    let text = "  8,0    3        1     0.000000000   697  Q   W 223490 + 8 [kjournald]\n\
        \x20 8,0    3        2     0.000001829   697  G   W 223490 + 8 [kjournald]\n\
        \x20 8,0    3        3     0.000002197   697  P   N [kjournald]\n\
        \x20 8,0    3        4     0.000010000   697  D   W 223490 + 8 [kjournald]\n\
        \x20 8,0    3        5     0.000020000   697  D FWS [kjournald]\n\
        \x20 8,0    3        6     0.000030000   697  D  RA 1000 + 16 [postgres]\n\
        \x20 8,0    3        7     0.000510000     0  C   W 223490 + 8 [0]\n\
        \x20 8,0    3        8     0.001030000     0  C  RA 1000 + 16 [0]\n\
        CPU3 (8,0):\n Reads Queued:           0,        0KiB\n";
    let found = good(folder.read("a.txt", text.as_bytes()));
    assert_eq!(found.format, "blkparse");
    let (name, profile) = &found.profiles[0];
    assert_eq!((name.as_str(), counts(profile)), ("8,0", (1, 1)));
    assert_eq!(
        profile.write.latency.limits.summary().map(|s| s.0),
        Some(500)
    );
    assert_eq!(
        profile.read.latency.limits.summary().map(|s| s.0),
        Some(1000)
    );
    let error = bad(folder.read(
        "a.txt",
        text.replace("223490 + 8 [0]", "223490 + x [0]").as_bytes(),
    ));
    assert_eq!(error.place, "a.txt:7");
}

#[test]
fn iologs_of_both_versions_keep_their_times() {
    let folder = Folder::new("iolog");
    let second = "fio version 2 iolog\n/dev/sda add\n/dev/sda open\n/dev/sda write 0 4096\n\
        /dev/sda wait 1500 0\n/dev/sda read 4096 4096\n/dev/sda trim 0 4096\n/dev/sda close\n";
    let third = "fio version 3 iolog\n0 /dev/sda add\n0 /dev/sda open\n10 /dev/sda write 0 4096\n\
        1510 /dev/sda read 4096 4096\n1511 /dev/sda sync 0 0\n1600 /dev/sda close\n";
    for text in [second, third] {
        let found = good(folder.read("a.iolog", text.as_bytes()));
        let (name, profile) = &found.profiles[0];
        assert_eq!((name.as_str(), counts(profile)), ("/dev/sda", (1, 1)));
        assert_eq!(profile.duration_ns(), 1_500_000);
        assert_eq!(notes(&found), [("other", 1)]);
    }
    let untimed = good(folder.read(
        "a.iolog",
        second.replace("/dev/sda wait 1500 0\n", "").as_bytes(),
    ));
    assert_eq!(untimed.profiles[0].1.all.interarrival.fine.total(), 0);
    let error = bad(folder.read(
        "a.iolog",
        third.replace("4096 4096", "here 4096").as_bytes(),
    ));
    assert_eq!(error.place, "a.iolog:5");
    let cut = good(folder.read("a.iolog", third.trim_end_matches("close\n").as_bytes()));
    assert!(notes(&cut).contains(&("cut", 1)));
}

#[test]
fn latency_logs_of_one_run_are_merged() {
    let folder = Folder::new("latlog");
    let files = [
        folder.file(
            "r_lat.1.log",
            b"2, 1000000, 0, 4096, 0, 0\n12, 1000000, 1, 4096, 8192, 0\n",
        ),
        folder.file("r_lat.2.log", b"6, 500000, 0, 8192, 4096, 0\n"),
    ];
    let found = good(read(&files));
    let profile = &found.profiles[0].1;
    assert_eq!(
        (counts(profile), profile.duration_ns()),
        ((2, 1), 10_000_000)
    );
    assert_eq!(
        profile.all.latency.limits.summary().map(|s| (s.0, s.1)),
        Some((500, 1000))
    );
}

#[test]
fn what_is_no_trace_is_refused() {
    let folder = Folder::new("none");
    for (bytes, found) in [
        (&b"hello, world\n"[..], "no I/O trace"),
        (b"", "is empty"),
        (b"\x1f\x8b", "cannot read"),
    ] {
        let error = bad(folder.read("x", bytes));
        assert!(error.found.contains(found), "{error}");
        assert!(!error.advice.is_empty());
    }
    let (missing, name) = (folder.0.join("missing"), "missing".to_owned());
    assert!(bad(read(&[(missing, name)])).found.contains("cannot open"));
    let line = b"1,hm,0,Read,0,512,1\n";
    let two = [folder.file("a.csv", line), folder.file("b.csv", line)];
    assert!(bad(read(&two)).found.contains("a second file"));
}

#[test]
fn saying_stop_stops() {
    let folder = Folder::new("stop");
    let raw: Vec<u8> = (0..400_000u64)
        .flat_map(|n| vscsi(2, false, 0x28, n, 512, n))
        .collect();
    let files = [folder.file("a.vscsi", &raw)];
    let mut calls = 0;
    let found = characterise(&files, &OPTIONS, &mut |_| {
        calls += 1;
        false
    });
    assert!(matches!(found, Ok(None)));
    assert_eq!(calls, 1);
}

#[test]
fn a_real_blktrace_recording_is_read() {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/samples/blocktrace");
    if !samples.is_dir() {
        eprintln!("skipped: the sample recordings are not beside this checkout");
        return;
    }
    let files: Vec<(PathBuf, String)> = (0..8)
        .map(|cpu| format!("isotopp__blktrace_to_influx__keks.blktrace.{cpu}"))
        .map(|name| (samples.join(&name), name))
        .collect();
    let found = good(read(&files));
    assert_eq!(found.format, "blktrace");
    let (name, profile) = &found.profiles[0];
    assert_eq!(name, "8,52");
    // 1,158 issues of writes and 1,153 completions: five were issued twice. 24 flushes and 10 discards move no data.
    assert_eq!(counts(profile), (0, 1153));
    assert_eq!(profile.write.latency.fine.total(), 1153);
    assert!(notes(&found).contains(&("reissued", 5)));
}

proptest! {
    #[test]
    fn any_bytes_never_crash(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let folder = Folder::new("any");
        let _ = folder.read("any", &bytes);
    }

    #[test]
    fn damage_anywhere_never_crashes(
        which in 0usize..6, at in 0usize..600, with in prop::collection::vec(any::<u8>(), 1..12), cut in 0usize..600
    ) {
        let folder = Folder::new("damage");
        let mut whole = match which {
            0 => vscsi_trace(1, false).repeat(4),
            1 => vscsi_trace(2, true).repeat(4),
            2 => [event(false, READ | 7, 1, 8, 512), event(false, READ | 8, 9, 8, 512)].concat().repeat(4),
            3 => b"8,0 3 4 0.000010000 697 D W 223490 + 8 [k]\n8,0 3 7 0.000510000 0 C W 223490 + 8 [0]\n".repeat(4),
            4 => b"fio version 3 iolog\n1 /d add\n1 /d open\n2 /d read 0 4096\n3 /d write 0 4096\n".to_vec(),
            _ => b"128166372003061629,hm,0,Read,383496192,32768,1130\n".repeat(6),
        };
        let at = at % whole.len();
        let end = (at + with.len()).min(whole.len());
        whole.splice(at..end, with);
        whole.truncate(whole.len().saturating_sub(cut % 80));
        let _ = folder.read("damaged", &whole);
    }
}
