//! Every fault a recording may have: what is read, and what is said about it.
#![allow(
    clippy::unwrap_used,
    clippy::float_cmp,
    clippy::format_push_string,
    clippy::cast_possible_wrap,
    clippy::cast_possible_truncation,
    reason = "tests: small known numbers, exact results"
)]

mod pdh_support;

use leadline_parse::pdh::warnings::code;
use leadline_parse::pdh::{PdhFile, Request};
use pdh_support::*;

const NAN: f64 = f64::NAN;

#[test]
fn a_clean_recording_has_no_warnings() {
    // As perfmon prints them: more digits than a float64 holds.
    let long = "0.032083023520161361".parse().unwrap();
    let r = read(quoted(&[
        r#""0.00","100.00","8083""#,
        r#""12.34","1.5","0.032083023520161361""#,
    ]));
    assert_eq!(r.times_s, [MAY_DAY as f64, MAY_DAY as f64 + 1.0]);
    assert_values(&r.values, &[&[0.0, 12.34], &[100.0, 1.5], &[8083.0, long]]);
    assert!(r.codes().is_empty(), "{:?}", r.file.warnings());
    assert_eq!(r.file.dialect(), "PDH-CSV 4.0, commas, quoted, UTF-8, LF");
    assert_eq!(
        (r.file.zone_name(), r.file.utc_offset_min()),
        (Some("UTC"), Some(0))
    );
}

#[test]
fn a_header_above_one_megabyte() {
    let columns = 17_011;
    let mut text = format!("\"{UTC}\"");
    for c in 0..columns {
        text += &format!(
            ",\"\\\\esx01.lab.example.com\\Vcpu({c}:db, (old) copy:{c}:vmx-vcpu-0:db)\\% Used\""
        );
    }
    assert!(text.len() > 1 << 20);
    for row in 0..3 {
        text += &format!("\n\"05/01/2024 00:00:0{row}\"");
        for c in 0..columns {
            text += &format!(",\"{}.{:02}\"", c % 1000, (c + row) % 100);
        }
    }
    let r = read(text + "\n");
    assert_eq!(r.values.len(), columns);
    for (c, series) in r.values.iter().enumerate() {
        for (row, value) in series.iter().enumerate() {
            let expected = format!("{}.{:02}", c % 1000, (c + row) % 100);
            assert_eq!(*value, expected.parse::<f64>().unwrap());
        }
    }
    assert_eq!(
        r.file.names().instance(17_010),
        Some("17010:db, (old) copy:17010:vmx-vcpu-0:db")
    );
    assert_eq!(r.file.names().counters.len(), 1);
    assert_eq!(r.file.names().hosts, ["esx01.lab.example.com"]);
}

#[test]
fn a_missing_comma_in_header_and_rows() {
    for joint in [r#""""#, r#"""#] {
        let header = format!(r#""{UTC}","\\h\A(1)\x{joint}\\h\A(2)\x","\\h\A(3)\x""#);
        // With and without trailing commas: together with the fault they leave the number of commas as it should be.
        for tail in ["", ","] {
            let closing = if joint.len() == 2 { "\"" } else { "" };
            let row = format!(r#""05/01/2024 00:00:00","1.00"{closing}2.00","3.00"{tail}"#);
            let r = read(format!("{header}{tail}\n{row}\n{row}\n"));
            assert_values(&r.values, &[&[1.0; 2], &[2.0; 2], &[3.0; 2]]);
            assert_eq!(r.count(code::HEADER_COMMA_MISSING), 1);
            assert_eq!(r.count(code::ROW_COMMA_MISSING), 2);
        }
        let whole = read(format!(
            "{header}\n\"05/01/2024 00:00:00\",\"1.00\",\"2.00\",\"3.00\"\n"
        ));
        assert_values(&whole.values, &[&[1.0], &[2.0], &[3.0]]);
        assert_eq!(whole.codes(), [code::HEADER_COMMA_MISSING]);
    }
}

#[test]
fn trailing_commas() {
    let text =
        quoted(&[r#""1","2","3","#, r#""4","5","6",,"#]).replacen("MBytes\"\n", "MBytes\",\n", 1);
    let r = read(text);
    assert_values(&r.values, &[&[1.0, 4.0], &[2.0, 5.0], &[3.0, 6.0]]);
    assert_eq!(r.codes(), [code::ROW_TRAILING_COMMA, code::TRAILING_COMMA]);
    assert_eq!(r.count(code::ROW_TRAILING_COMMA), 2);
}

#[test]
fn saved_by_excel_on_windows() {
    let mut text = format!("{UTC},\\\\h\\A(1)\\x,\"\\\\h\\A(a, b)\\x\"\r\n");
    for (minute, rows) in [(42, 2), (43, 4), (44, 1)] {
        for row in 0..rows {
            text += &format!("5/1/2024 0:{minute},{row},7.5\r\n");
        }
    }
    text += ",,\r\n";
    let r = read(text);
    let start = MAY_DAY as f64 + 42.0 * 60.0;
    assert_eq!(
        r.times_s,
        [30.0, 45.0, 60.0, 75.0, 90.0, 105.0, 120.0].map(|t| start + t)
    );
    assert_eq!(r.values[1], [7.5; 7]);
    assert_eq!(r.file.names().instance(1), Some("a, b"));
    assert_eq!(
        r.codes(),
        [code::EMPTY_ROWS, code::NO_SECONDS, code::UNQUOTED]
    );
    assert!(r.message(code::NO_SECONDS).contains("4 a minute"));
}

#[test]
fn saved_by_excel_on_a_mac() {
    let text = format!("{UTC},\\\\h\\A(1)\\x\r23:59:55,1\r0:00:00,2\r0:00:05,3");
    let r = read(&text);
    assert_eq!(r.times_s, [86_395.0, 86_400.0, 86_405.0]);
    assert_values(&r.values, &[&[1.0, 2.0, 3.0]]);
    let codes = [
        code::CR_LINES,
        code::NO_FINAL_LINE_END,
        code::ROLL_OVER,
        code::NO_DATE,
        code::UNQUOTED,
    ];
    assert_eq!(r.codes(), codes);
    assert!(r.message(code::NO_DATE).contains("1970-01-01"));
    let modified_ns = (MAY_DAY + 3600) * 1_000_000_000;
    let dated = PdhFile::from_bytes("cap.csv", text.into_bytes(), Some(modified_ns), None).unwrap();
    let dated = read_file(dated, false).unwrap();
    assert_eq!(dated.times_s, [-5.0, 0.0, 5.0].map(|t| MAY_DAY as f64 + t));
    assert!(dated.message(code::NO_DATE).contains("modification time"));
}

#[test]
fn minutes_and_seconds_only() {
    let r = read(format!("{UTC},\\\\h\\A(1)\\x\n59:58.5,1\n00:03.5,2\n"));
    assert_eq!(r.times_s, [3598.5, 3603.5]);
    assert!(r.message(code::NO_DATE).contains("date or hour"));
    assert_eq!(r.count(code::ROLL_OVER), 1);
}

#[test]
fn junk_before_the_header() {
    let clean = quoted(&[r#""1","2","3""#]);
    for junk in [
        "Enter password for root: \nWarning: thumbprint\r\n",
        "\u{feff}",
        "login: ",
    ] {
        let r = read(format!("{junk}{clean}"));
        assert_values(&r.values, &[&[1.0], &[2.0], &[3.0]]);
        let said = if junk == "\u{feff}" {
            vec![]
        } else {
            vec![code::JUNK_BEFORE_HEADER]
        };
        assert_eq!(r.codes(), said);
    }
    // Line numbers count the junk.
    let error = try_read(format!("a\nb\n{clean}x\n{clean}")).unwrap_err();
    assert_eq!(error.place, "cap.csv:5");
}

#[test]
fn decimal_commas_and_other_separators() {
    let r = read(quoted(&[r#""1,5","2","-3,25""#, r#""1","2","3""#]));
    assert_values(&r.values, &[&[1.5, 1.0], &[2.0, 2.0], &[-3.25, 3.0]]);
    assert_eq!(
        (r.codes(), r.count(code::DECIMAL_COMMA)),
        (vec![code::DECIMAL_COMMA], 1)
    );
    let semicolons = read(format!(
        "{UTC};\\\\h\\A(1, 2)\\x;\\\\h\\B\\y\n01.05.2024 0:00:01;12,5;7\n13.05.2024 0:00:01;0,25;\n"
    ));
    assert_values(&semicolons.values, &[&[12.5, 0.25], &[7.0, NAN]]);
    assert_eq!(
        semicolons.times_s,
        [1.0, 1.0 + 12.0 * 86_400.0].map(|t| MAY_DAY as f64 + t)
    );
    let codes = [
        code::BLANK,
        code::DAY_FIRST,
        code::DECIMAL_COMMA,
        code::UNQUOTED,
    ];
    assert_eq!(semicolons.codes(), codes);
    let tabs = quoted(&[r#""1","2,5","3""#])
        .replace("\",\"", "\"\t\"")
        .replace("PDH-CSV", "PDH-TSV");
    let tabs = read(tabs);
    assert_values(&tabs.values, &[&[1.0], &[2.5], &[3.0]]);
    assert_eq!(tabs.file.dialect(), "PDH-TSV 4.0, tabs, quoted, UTF-8, LF");
    let blank_end = read(
        format!("{UTC}\t\\\\h\\A\\x\t\\\\h\\B\\y\n05/01/2024 00:00:00\t1\t\n")
            .replace("CSV", "TSV"),
    );
    assert_values(&blank_end.values, &[&[1.0], &[NAN]]);
}

#[test]
fn sentinels_only_in_rates_and_only_where_asked() {
    let text = quoted(&[r#""-1.00","5.00","-1""#, r#""-3","-2.00","-3.00""#]);
    let r = read(&text);
    assert_values(&r.values, &[&[NAN, NAN], &[5.0, -2.0], &[-1.0, -3.0]]);
    assert_eq!(
        (r.codes(), r.count(code::SENTINEL)),
        (vec![code::SENTINEL], 2)
    );
    let file = PdhFile::from_bytes("cap.csv", text.into_bytes(), None, None).unwrap();
    let perfmon = read_file(file, false).unwrap();
    assert_values(
        &perfmon.values,
        &[&[-1.0, -3.0], &[5.0, -2.0], &[-1.0, -3.0]],
    );
    assert!(perfmon.codes().is_empty());
}

#[test]
fn blank_cells_and_text() {
    let r = read(quoted(&[r#""",""," ""#, r#""1.#QNAN","4","inf""#]));
    assert_values(&r.values, &[&[NAN, NAN], &[NAN, 4.0], &[NAN, NAN]]);
    assert_eq!((r.count(code::BLANK), r.count(code::NOT_A_NUMBER)), (3, 2));
    assert!(r.message(code::NOT_A_NUMBER).contains("1.#QNAN in line 3"));
}

#[test]
fn a_last_row_cut_anywhere() {
    for row in [r#""4.25","5,5","6.00""#, r#""4.25","5.50","6.00""#] {
        let whole = quoted(&[r#""1","2","3""#, row]);
        let start = whole.trim_end().rfind('\n').unwrap() + 1;
        for cut in start..whole.len() {
            let r = read(&whole.as_bytes()[..cut]);
            if cut == start {
                assert_values(&r.values, &[&[1.0], &[2.0], &[3.0]]);
                assert!(r.codes().is_empty());
            } else if cut == whole.len() - 1 {
                assert_values(&r.values, &[&[1.0, 4.25], &[2.0, 5.5], &[3.0, 6.0]]);
                assert!(r.codes().contains(&code::NO_FINAL_LINE_END));
            } else {
                assert_values(&r.values, &[&[1.0], &[2.0], &[3.0]]);
                assert_eq!(r.codes(), [code::LAST_ROW_CUT], "cut at {cut}");
            }
        }
    }
}

#[test]
fn a_header_that_comes_again() {
    let one = quoted(&[r#""1","2","3""#]);
    let r = read(format!("{one}\n{one}"));
    assert_values(&r.values, &[&[1.0; 2], &[2.0; 2], &[3.0; 2]]);
    assert_eq!(r.codes(), [code::HEADER_REPEATED, code::OUT_OF_ORDER]);
    let error = try_read(format!("{one}{}", one.replace("Free", "Used"))).unwrap_err();
    assert_eq!(error.place, "cap.csv:3");
    assert!(error.found.contains("second header"));
    assert!(error.advice.contains("Split the file"));
}

#[test]
fn rows_with_other_cells_than_the_header() {
    for bad in [r#""1","2""#, r#""1","2","3","4""#, "1"] {
        let error = try_read(quoted(&[r#""1","2","3""#, bad, r#""1","2","3""#])).unwrap_err();
        assert_eq!(error.place, "cap.csv:3");
        assert!(error.found.ends_with("cells"), "{error}");
        assert_eq!(error.expected, "4 cells, as the header has");
        // As the last row it is cut.
        let r = read(quoted(&[r#""1","2","3""#, bad]));
        assert_eq!((r.codes(), r.times_s.len()), (vec![code::LAST_ROW_CUT], 1));
    }
}

#[test]
fn a_row_without_time() {
    let text = quoted(&[r#""1","2","3""#, r#""1","2","3""#, r#""1","2","3""#])
        .replace("05/01/2024 00:00:01", "oops");
    let error = try_read(text).unwrap_err();
    assert_eq!(
        (error.place.as_str(), error.found.as_str()),
        (
            "cap.csv:3",
            r#"a row that begins \"oops\",\"1\",\"2\",\"3\""#
        )
    );
}

#[test]
fn clock_changes_are_kept() {
    let r = read(
        quoted(&[r#""1","2","3""#, r#""4","5","6""#])
            .replace("00:00:00", "02:59:59")
            .replace("00:00:01", "02:00:00"),
    );
    assert_eq!(r.times_s, [10_799.0, 7200.0].map(|t| MAY_DAY as f64 + t));
    assert_eq!(
        (r.codes(), r.count(code::OUT_OF_ORDER)),
        (vec![code::OUT_OF_ORDER], 1)
    );
}

#[test]
fn impossible_dates() {
    for bad in ["02/30/2024", "00/10/2024", "05/01/9999", "05/01/1900"] {
        let text = quoted(&[r#""1","2","3""#, r#""4","5","6""#])
            .replace("05/01/2024 00:00:01", &format!("{bad} 00:00:01"));
        let error = try_read(text).unwrap_err();
        assert_eq!(
            (error.place.as_str(), error.expected.as_str()),
            ("cap.csv:3", "month, day, year")
        );
    }
}

#[test]
fn local_times_become_utc() {
    let india = quoted(&[r#""1","2","3""#]).replace("(UTC)(0)", "(India Standard Time)(-330)");
    let r = read(india);
    assert_eq!(r.times_s, [MAY_DAY as f64 - 330.0 * 60.0]);
    assert_eq!(
        (r.file.zone_name(), r.file.utc_offset_min()),
        (Some("India Standard Time"), Some(-330))
    );
    let none = read(quoted(&[r#""1","2","3""#]).replace(" (UTC)(0)", ""));
    assert_eq!(
        (none.times_s.as_slice(), none.codes()),
        ([MAY_DAY as f64].as_slice(), vec![code::NO_ZONE])
    );
}

#[test]
fn names_that_are_no_paths() {
    let r = read(format!(
        "\"{UTC}\",\"odd\",,\"\\\\h\\A(\"\"q\"\")\\x\"\n\"05/01/2024 00:00:00\",\"1\",\"2\",\"3\"\n"
    ));
    assert_values(&r.values, &[&[1.0], &[2.0], &[3.0]]);
    assert_eq!(
        (r.codes(), r.count(code::HEADER_CELL_ODD)),
        (vec![code::HEADER_CELL_ODD], 2)
    );
    assert_eq!(r.file.names().instance(2), Some("\"q\""));
    assert_eq!(
        r.file.names().counters[0],
        (String::new(), "odd".to_owned())
    );
}

#[test]
fn what_is_no_recording() {
    let error = |bytes: &[u8]| {
        let e = try_read(bytes).unwrap_err();
        assert!(
            [&e.place, &e.found, &e.expected, &e.advice]
                .iter()
                .all(|part| !part.is_empty())
        );
        assert!(e.advice.ends_with('.'));
        e.found
    };
    assert_eq!(error(b""), "an empty file");
    assert!(error(b"time,processid\n1,2\n").contains("the file begins time,processid"));
    assert!(error(format!("\"{UTC}\"\n").as_bytes()).contains("without any column"));
    assert!(
        PdhFile::open(std::path::Path::new("/nowhere/at/all.csv"), None)
            .unwrap_err()
            .found
            .contains("cannot open")
    );
    assert_eq!(
        PdhFile::open(&std::env::temp_dir(), None)
            .unwrap_err()
            .found,
        "a folder"
    );
    let bytes = quoted(&[]).into_bytes();
    let error = PdhFile::from_bytes("cap.csv", bytes.clone(), None, Some("klingon")).unwrap_err();
    assert_eq!(error.found, "unknown encoding klingon");
    let file = PdhFile::from_bytes("cap.csv", bytes, None, None).unwrap();
    let error = file
        .read(
            &Request {
                columns: &[3],
                ..Request::default()
            },
            &mut |_, _| true,
        )
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "cap.csv: a request for column 3; columns 0 to 2. Ask for columns the header has."
    );
    assert!(read_file(file, false).unwrap().times_s.is_empty());
}
