//! Recordings of localised systems: UTF-16, UTF-8 and code pages, with Russian and German counter names.
#![allow(
    clippy::unwrap_used,
    clippy::float_cmp,
    clippy::format_push_string,
    clippy::cast_possible_wrap,
    clippy::cast_possible_truncation,
    reason = "tests: small known numbers, exact results"
)]

mod pdh_support;

use encoding_rs::{Encoding, WINDOWS_1251, WINDOWS_1252};
use leadline_parse::pdh::PdhFile;
use leadline_parse::pdh::warnings::code;
use pdh_support::*;

const RUSSIAN: &str = "\"(PDH-CSV 4.0) (RTZ 2 (зима))(-180)\",\"\\\\СЕРВЕР\\Процессор(_Total)\\% загруженности процессора\"\r\n\
    \"05/01/2024 03:00:00.500\",\"12.5\"\r\n\"05/01/2024 03:00:01.500\",\" \"\r\n";

fn utf16(text: &str, big: bool, mark: bool) -> Vec<u8> {
    let units = mark
        .then_some(0xFEFF)
        .into_iter()
        .chain(text.encode_utf16());
    units
        .flat_map(|u| {
            if big {
                u.to_be_bytes()
            } else {
                u.to_le_bytes()
            }
        })
        .collect()
}

fn check_russian(r: &Read) {
    assert_eq!(r.file.names().hosts, ["СЕРВЕР"]);
    assert_eq!(
        r.file.names().counters,
        [(
            "Процессор".to_owned(),
            "% загруженности процессора".to_owned()
        )]
    );
    assert_eq!(r.file.zone_name(), Some("RTZ 2 (зима)"));
    assert_eq!(r.times_s, [MAY_DAY as f64 + 0.5, MAY_DAY as f64 + 1.5]);
    assert_values(&r.values, &[&[12.5, f64::NAN]]);
}

#[test]
fn utf8_and_utf16() {
    check_russian(&read(RUSSIAN));
    check_russian(&read(format!("\u{feff}{RUSSIAN}")));
    for big in [false, true] {
        for mark in [false, true] {
            let r = read(utf16(RUSSIAN, big, mark));
            check_russian(&r);
            assert_eq!(r.codes(), [code::BLANK]);
        }
    }
}

#[test]
fn utf16_repairs_work_as_in_bytes() {
    let twice = format!("{RUSSIAN}{RUSSIAN}\"05/01/20");
    let r = read(utf16(&twice, false, true));
    assert_values(&r.values, &[&[12.5, f64::NAN, 12.5, f64::NAN]]);
    assert_eq!(
        r.codes(),
        [
            code::BLANK,
            code::HEADER_REPEATED,
            code::LAST_ROW_CUT,
            code::OUT_OF_ORDER
        ]
    );
    // Half a character at the end.
    let mut odd = utf16(RUSSIAN, false, true);
    odd.push(b'"');
    check_russian(&read(odd));
}

#[test]
fn code_pages_are_guessed_or_stated() {
    let bytes = WINDOWS_1251.encode(RUSSIAN).0.into_owned();
    let r = read(&bytes);
    check_russian(&r);
    assert_eq!(r.codes(), [code::BLANK, code::CODE_PAGE]);
    assert!(r.message(code::CODE_PAGE).contains("windows-1251"));
    assert!(r.file.dialect().contains("windows-1251"));
    let stated = PdhFile::from_bytes("cap.csv", bytes, None, Some("cp1251")).unwrap();
    let stated = read_file(stated, false).unwrap();
    check_russian(&stated);
    assert_eq!(stated.codes(), [code::BLANK]);
    let dos = Encoding::for_label(b"ibm866")
        .unwrap()
        .encode(RUSSIAN)
        .0
        .into_owned();
    let dos = PdhFile::from_bytes("cap.csv", dos, None, Some("ibm866")).unwrap();
    check_russian(&read_file(dos, false).unwrap());
}

#[test]
fn german_is_not_taken_for_russian() {
    let text = RUSSIAN.replace(
        "% загруженности процессора",
        "Übertragungen/s für Prioritätsstufe",
    );
    let text = text
        .replace("зима", "Winter")
        .replace("СЕРВЕР", "SRV")
        .replace("Процессор", "Gerät");
    let r = read(WINDOWS_1252.encode(&text).0);
    assert_eq!(
        r.file.names().counters[0],
        (
            "Gerät".to_owned(),
            "Übertragungen/s für Prioritätsstufe".to_owned()
        )
    );
}
