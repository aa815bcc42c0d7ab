//! Blocks, chunks, workers, projection, time windows, the writer: the same numbers whichever way they are read.
#![allow(
    clippy::unwrap_used,
    clippy::float_cmp,
    clippy::format_push_string,
    clippy::cast_possible_wrap,
    clippy::cast_possible_truncation,
    reason = "tests: small known numbers, exact results"
)]

mod pdh_support;

use std::path::PathBuf;

use leadline_parse::pdh::{PdhFile, Request, write};
use pdh_support::*;

/// A file that is removed at the end of its test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("leadline-pdh-{}-{name}.csv", std::process::id())))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Two decimals, so that a written value reads back as the same number; every 97th is missing.
fn value(row: usize, column: usize) -> f64 {
    let n = row * 7919 + column * 104_729;
    if n % 97 == 0 {
        f64::NAN
    } else {
        (n % 1_000_003) as f64 / 100.0
    }
}

fn write_recording(scratch: &Scratch, columns: usize, rows: usize) {
    let cells: Vec<String> = (0..columns)
        .map(|c| format!("\\\\h\\A({c})\\% Used"))
        .collect();
    write::write_header(&scratch.0, "UTC", cells.iter().map(String::as_str)).unwrap();
    for chunk in (0..rows).collect::<Vec<_>>().chunks(1000) {
        let times_ns: Vec<i64> = chunk
            .iter()
            .map(|r| (MAY_DAY + 20 * i64::try_from(*r).unwrap()) * 1_000_000_000)
            .collect();
        let values: Vec<f64> = chunk
            .iter()
            .flat_map(|r| (0..columns).map(|c| value(*r, c)))
            .collect();
        write::write_rows(&scratch.0, &times_ns, &values, 2).unwrap();
    }
}

fn same(a: f64, b: f64) -> bool {
    a == b || (a.is_nan() && b.is_nan())
}

#[test]
fn narrow_and_long_wide_and_short() {
    // 3 x 70,000 crosses chunks of the index; 9,001 x 37 has several blocks and an odd last one.
    for (columns, rows) in [(3, 70_001), (9001, 37), (257, 2500)] {
        let scratch = Scratch::new(&format!("shape-{columns}"));
        write_recording(&scratch, columns, rows);
        let r = read_file(PdhFile::open(&scratch.0, None).unwrap(), true).unwrap();
        assert_eq!((r.values.len(), r.times_s.len()), (columns, rows));
        assert!(
            r.times_s
                .iter()
                .enumerate()
                .all(|(i, t)| *t == (MAY_DAY + 20 * i as i64) as f64)
        );
        for (c, series) in r.values.iter().enumerate() {
            assert!(
                series
                    .iter()
                    .enumerate()
                    .all(|(row, v)| same(*v, value(row, c))),
                "column {c}"
            );
        }
        let missing = (0..rows)
            .flat_map(|r| (0..columns).map(move |c| value(r, c)))
            .filter(|v| v.is_nan())
            .count();
        assert_eq!(r.count("blank-cells"), missing as u64);
    }
}

#[test]
fn projection_window_and_half_width() {
    let scratch = Scratch::new("projection");
    write_recording(&scratch, 500, 300);
    let file = PdhFile::open(&scratch.0, None).unwrap();
    let columns = [499, 0, 7, 7, 250];
    let at = |row: i64| Some((MAY_DAY + 20 * row) * 1_000_000_000);
    let request = Request {
        columns: &columns,
        start_ns: at(100),
        end_ns: at(250),
        sentinels: false,
    };
    let table = file.read(&request, &mut |_, _| true).unwrap();
    let (values, half) = (table.series.values::<f64>(), table.series.values::<f32>());
    assert_eq!(
        (table.times_ns.len(), table.times_ns[0]),
        (150, at(100).unwrap())
    );
    for (j, c) in columns.iter().enumerate() {
        for i in 0..150 {
            let expected = value(100 + i, *c as usize);
            assert!(same(values[j * 150 + i], expected));
            assert!(same(
                f64::from(half[j * 150 + i]),
                f64::from(expected as f32)
            ));
        }
    }
    let none = Request {
        columns: &[],
        ..Request::default()
    };
    assert_eq!(
        file.read(&none, &mut |_, _| true).unwrap().times_ns.len(),
        300
    );
}

#[test]
fn a_fault_in_a_late_row_is_told_by_its_line() {
    let scratch = Scratch::new("fault");
    write_recording(&scratch, 3, 20_000);
    let text = std::fs::read_to_string(&scratch.0).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines[15_000] = "\"05/04/2024 11:20:00\",\"1\",\"2\"";
    lines[12_345] = "\"05/03/2024 20:35:00\",\"1\",\"2\"";
    for _ in 0..5 {
        let error = try_read(lines.join("\r\n")).unwrap_err();
        assert_eq!(
            (error.place.as_str(), error.found.as_str()),
            ("cap.csv:12346", "3 cells")
        );
    }
}

#[test]
fn reading_can_be_stopped() {
    let file = PdhFile::from_bytes(
        "cap.csv",
        quoted(&[r#""1","2","3""#]).into_bytes(),
        None,
        None,
    )
    .unwrap();
    let request = Request {
        columns: &[0],
        ..Request::default()
    };
    let mut calls = Vec::new();
    let error = file
        .read(&request, &mut |done, total| {
            calls.push((done, total));
            false
        })
        .unwrap_err();
    assert!(error.found.contains("interrupted"));
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0].0, calls[0].1);
    // Stopping leaves nothing behind: the same file reads on demand.
    assert_eq!(
        file.read(&request, &mut |_, _| true)
            .unwrap()
            .series
            .values::<f64>(),
        [1.0]
    );
}

#[test]
fn a_file_that_became_shorter() {
    let scratch = Scratch::new("shorter");
    write_recording(&scratch, 10, 1000);
    let file = PdhFile::open(&scratch.0, None).unwrap();
    file.times_ns(&mut |_, _| true).unwrap();
    let half = std::fs::metadata(&scratch.0).unwrap().len() / 2;
    std::fs::OpenOptions::new()
        .write(true)
        .open(&scratch.0)
        .unwrap()
        .set_len(half)
        .unwrap();
    let error = file
        .read(
            &Request {
                columns: &[1],
                ..Request::default()
            },
            &mut |_, _| true,
        )
        .unwrap_err();
    assert_eq!(error.found, "the end of the file");
}

#[test]
fn the_writer_writes_what_esxtop_writes() {
    let scratch = Scratch::new("writer");
    write::write_header(
        &scratch.0,
        "(India Standard Time)(-330)",
        ["\\\\h\\A(x \"y\")\\z"].into_iter(),
    )
    .unwrap();
    write::write_rows(
        &scratch.0,
        &[MAY_DAY * 1_000_000_000, 1],
        &[1.256, f64::NAN],
        2,
    )
    .unwrap();
    write::write_rows(&scratch.0, &[], &[], 2).unwrap();
    let text = std::fs::read_to_string(&scratch.0).unwrap();
    let expected = "\"(PDH-CSV 4.0) (India Standard Time)(-330)\",\"\\\\h\\A(x \"\"y\"\")\\z\"\n\
        \"05/01/2024 00:00:00\",\"1.26\"\n\"01/01/1970 00:00:00\",\"\"\n";
    assert_eq!(text, expected);
    let error = write::write_rows(&scratch.0, &[0, 1], &[1.0, 2.0, 3.0], 2).unwrap_err();
    assert_eq!(error.found, "3 values for 2 rows");
    assert_eq!(
        write::write_rows(&scratch.0, &[0], &[1.0], 10)
            .unwrap_err()
            .found,
        "10 decimals"
    );
    let nowhere = std::path::Path::new("/nowhere/at/all.csv");
    assert!(
        write::write_rows(nowhere, &[0], &[1.0], 2)
            .unwrap_err()
            .found
            .contains("cannot write rows")
    );
    assert!(
        write::write_header(nowhere, "UTC", [].into_iter())
            .unwrap_err()
            .found
            .contains("cannot write the header")
    );
}

#[test]
fn the_zone_may_be_given_in_three_ways() {
    let scratch = Scratch::new("zones");
    for zone in ["UTC", "(UTC)(0)", UTC] {
        write::write_header(&scratch.0, zone, ["\\\\h\\A\\z"].into_iter()).unwrap();
        let text = std::fs::read_to_string(&scratch.0).unwrap();
        assert_eq!(text, format!("\"{UTC}\",\"\\\\h\\A\\z\"\n"));
    }
}
