//! Answers of vCenter to `QueryPerf` in the format `csv`.

#![allow(
    clippy::unwrap_used,
    clippy::float_cmp,
    clippy::format_push_string,
    missing_docs
)]

use leadline_parse::vsphere_perf::{Answer, read};
use proptest::prelude::*;

const HEAD: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<soapenv:Envelope xmlns:soapenv=\"http://schemas.xmlsoap.org/soap/envelope/\"><soapenv:Body><QueryPerfResponse xmlns=\"urn:vim25\">";
const TAIL: &str = "</QueryPerfResponse></soapenv:Body></soapenv:Envelope>";

fn entity(kind: &str, id: &str, moments: &str, series: &[(i32, &str, &str)]) -> String {
    let mut text = format!(
        "<returnval xsi:type=\"PerfEntityMetricCSV\"><entity type=\"{kind}\">{id}</entity><sampleInfoCSV>{moments}</sampleInfoCSV>"
    );
    for (counter, instance, values) in series {
        text += &format!(
            "<value><id><counterId>{counter}</counterId><instance>{instance}</instance></id><value>{values}</value></value>"
        );
    }
    text + "</returnval>"
}

fn answer(entities: &[String]) -> String {
    format!("{HEAD}{}{TAIL}", entities.concat())
}

fn small() -> String {
    let moments = "20,2026-11-26T20:00:00Z,20,2026-11-26T21:00:20.5+01:00";
    answer(&[
        entity(
            "VirtualMachine",
            "vm-1",
            moments,
            &[(2, "", "1,-1"), (6, "scsi0:0", "3,16777215")],
        ),
        entity(
            "VirtualMachine",
            "vm-2",
            moments,
            &[(6, "a&amp;b&#x2f;", ",7")],
        ),
        entity("HostSystem", "host-9", "", &[]),
    ])
}

#[test]
fn samples_are_columns() {
    let answer = read(small().as_bytes(), "vc").unwrap();
    let names: Vec<_> = answer.entities.iter().map(|(_, id)| id.as_str()).collect();
    assert_eq!(names, ["vm-1", "vm-2", "host-9"]);
    assert_eq!(answer.entities[2].0, "HostSystem");
    assert_eq!(answer.entity_moments, [0, 0, 1]);
    let start = 1_795_723_200_000_000_000;
    assert_eq!(answer.moments[0].times_ns, [start, start + 20_500_000_000]);
    assert_eq!(answer.moments[0].intervals_s, [20, 20]);
    assert_eq!(answer.moments[1].times_ns, []);
    assert_eq!(answer.series_entities, [0, 0, 1]);
    assert_eq!(answer.series_counters, [2, 6, 6]);
    assert_eq!(answer.series_instances, [0, 1, 2]);
    assert_eq!(answer.instances, ["", "scsi0:0", "a&b/"]);
    let values = &answer.values;
    assert_eq!(
        (values[0], values[2], values[3], values[5]),
        (1.0, 3.0, 16_777_215.0, 7.0)
    );
    assert!(values[1].is_nan() && values[4].is_nan());
}

#[test]
fn an_answer_of_nothing_is_one() {
    for text in [
        answer(&[]),
        answer(&[]).replace(
            "<QueryPerfResponse xmlns=\"urn:vim25\"></QueryPerfResponse>",
            "<QueryPerfResponse/>",
        ),
    ] {
        assert_eq!(read(text.as_bytes(), "vc").unwrap(), Answer::default());
    }
}

#[test]
fn empty_elements_may_be_short() {
    let text = small().replace("<instance></instance>", "<instance/>");
    let text = text.replace("<sampleInfoCSV></sampleInfoCSV>", "");
    let (short, long) = (
        read(text.as_bytes(), "vc").unwrap(),
        read(small().as_bytes(), "vc").unwrap(),
    );
    assert_eq!(short.instances, long.instances);
    assert_eq!(short.entity_moments, long.entity_moments);
}

#[test]
fn a_text_that_is_cut_anywhere_is_an_error() {
    let text = small();
    for end in 0..text.len() {
        assert!(
            read(&text.as_bytes()[..end], "vc").is_err(),
            "cut after {end} bytes"
        );
    }
}

#[test]
fn other_answers_are_errors() {
    for (from, to, problem) in [
        (
            "<value>1,-1</value>",
            "<value>1</value>",
            "more or fewer samples",
        ),
        (
            "<value>1,-1</value>",
            "<value>1,2,3</value>",
            "more or fewer samples",
        ),
        (
            "<value>1,-1</value>",
            "<value>1,x</value>",
            "no whole number",
        ),
        ("<value>1,-1</value>", "", "without samples"),
        ("<counterId>2</counterId>", "", "without a counter"),
        (
            "20,2026-11-26T20:00:00Z",
            "20,2026-13-26T20:00:00Z",
            "moments",
        ),
        ("20,2026-11-26T20:00:00Z", "20", "moments"),
        (
            "<entity type=\"VirtualMachine\">vm-1</entity>",
            "",
            "no entity",
        ),
        (
            "<QueryPerfResponse xmlns=\"urn:vim25\">",
            "<Fault></Fault><QueryPerfResponse>",
            "a fault",
        ),
        ("</QueryPerfResponse>", "</QueryPerf>", "another element"),
    ] {
        let text = small().replacen(from, to, 1);
        let error = read(text.as_bytes(), "vc").unwrap_err().to_string();
        assert!(error.contains(problem), "{problem}: {error}");
    }
    assert!(
        read(b"<html></html>", "vc")
            .unwrap_err()
            .to_string()
            .contains("no answer")
    );
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = read(&bytes, "vc");
    }

    #[test]
    fn no_change_of_an_answer_makes_it_panic(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut text = small().into_bytes();
        for (place, byte) in changes {
            let at = place.index(text.len());
            text[at] = byte;
        }
        if let Ok(answer) = read(&text, "vc") {
            let counted: usize = answer
                .series_entities
                .iter()
                .map(|&entity| answer.moments[answer.entity_moments[entity as usize] as usize].times_ns.len())
                .sum();
            prop_assert_eq!(counted, answer.values.len());
        }
    }

    #[test]
    fn what_was_written_is_read(
        rows in proptest::collection::vec((0..9999i32, "[a-z0-9:]{0,8}", proptest::collection::vec(0..16_000_000u32, 3)), 0..20),
    ) {
        let moments = "20,2026-01-01T00:00:00Z,20,2026-01-01T00:00:20Z,20,2026-01-01T00:00:40Z";
        let words: Vec<String> = rows.iter().map(|r| r.2.iter().map(u32::to_string).collect::<Vec<_>>().join(",")).collect();
        let series: Vec<_> = rows.iter().zip(&words).map(|(row, word)| (row.0, row.1.as_str(), word.as_str())).collect();
        let answer = read(answer(&[entity("HostSystem", "host-1", moments, &series)]).as_bytes(), "vc").unwrap();
        let values: Vec<f32> = rows.iter().flat_map(|row| row.2.iter().map(|&value| value as f32)).collect();
        prop_assert_eq!(answer.values, values);
        prop_assert_eq!(answer.series_counters, rows.iter().map(|row| row.0).collect::<Vec<_>>());
    }
}
