//! The iostat parser on recordings of the real tool, on odd ones, and on arbitrary bytes.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::float_cmp,
    clippy::format_collect
)]

use std::fs;
use std::path::PathBuf;

use leadline_parse::iostat::{Cells, Column, Recording, read};
use leadline_stats::error::LeadlineError;
use proptest::prelude::*;

const BANNER: &str = "Linux 6.1.0 (db01) \t11/20/26 \t_x86_64_\t(8 CPU)\n\n";
const REPORT: &str = "Device            r/s     rkB/s  %util\nsda              1.50     12.00   3.26\nsdb           20.00    300.00  99.90\n\n";

fn parse(text: &[u8]) -> Result<Recording, LeadlineError> {
    read(text, "rec.txt", text.len() as u64, &None)
}

fn fixture(name: &str) -> Vec<u8> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/iostat");
    fs::read(folder.join(name)).unwrap()
}

fn column(columns: &[Column], field: &str, row: usize, reports: usize) -> Vec<f64> {
    let column = columns.iter().find(|c| c.field == field).unwrap();
    let range = row * column.stride..row * column.stride + reports;
    match &column.cells {
        // As iostat prints them: the fewest digits are not these, 32 bits hold 2541818.25 and 2541818.2 names it too.
        Cells::Narrow(cells) => cells[range]
            .iter()
            .map(|v| format!("{v:.2}").parse().unwrap())
            .collect(),
        Cells::Wide(cells) => cells[range].to_vec(),
    }
}

fn disk(recording: &Recording, device: &str, field: &str) -> Vec<f64> {
    let row = recording
        .devices
        .iter()
        .position(|name| name == device)
        .unwrap();
    column(&recording.disks, field, row, recording.report_count)
}

fn codes(recording: &Recording) -> Vec<&'static str> {
    recording.notes.iter().map(|note| note.code).collect()
}

#[test]
fn extended_reports_with_times() {
    let recording = parse(&fixture("x-t-iso.txt")).unwrap();
    assert_eq!(recording.report_count, 4);
    assert_eq!(recording.devices, ["loop0", "vda"]);
    assert_eq!(recording.stamps[0], "2026-11-20T22:57:04+0000");
    assert_eq!(disk(&recording, "vda", "rkB/s")[..2], [9473.05, 3200.0]);
    assert_eq!(disk(&recording, "loop0", "dareq-sz")[0], 1_048_578.0);
    assert_eq!(column(&recording.cpu, "%idle", 0, 4)[..2], [85.86, 94.9]);
    assert!(recording.runs[0].since_boot && recording.notes.is_empty());
}

#[test]
fn a_locale_with_commas_gives_the_same_numbers() {
    let (german, english) = (
        parse(&fixture("x-t-de.txt")).unwrap(),
        parse(&fixture("x-t-c.txt")).unwrap(),
    );
    assert_eq!(
        disk(&german, "loop0", "r/s"),
        disk(&english, "loop0", "r/s")[..3]
    );
    assert_eq!(german.stamps[0], "20.11.2026 22:57:04");
}

#[test]
fn sub_reports_of_h_belong_to_one_report() {
    let text = format!(
        "{BANNER}     r/s     rkB/s Device\n   19.26    200.7k loop0\n 1069.59      8.9M vda\n\n     f/s  %util Device\n   12.54   2.3% loop0\n  345.25   6.7% vda\n\n"
    ) + "     r/s     rkB/s Device\n    1.00      0.0k loop0\n    2.00      1.0G vda\n\n     f/s  %util Device\n    0.00   0.0% loop0\n    3.00   0.5% vda\n\n";
    let recording = parse(text.as_bytes()).unwrap();
    assert_eq!(recording.report_count, 2);
    assert_eq!(
        disk(&recording, "vda", "rkB/s"),
        [8.9 * 1024.0, 1024.0 * 1024.0]
    );
    assert_eq!(disk(&recording, "vda", "%util"), [6.7, 0.5]);
}

#[test]
fn groups_are_left_out_and_said() {
    let recording = parse(&fixture("x-group.txt")).unwrap();
    assert_eq!(recording.devices, ["loop0", "vda"]);
    assert_eq!(codes(&recording), ["group-rows"]);
    let pretty =
        format!("{BANNER}     r/s  %util Device\n    1.00   2.00 sda\n    1.00   2.00  all\n\n");
    assert_eq!(parse(pretty.as_bytes()).unwrap().devices, ["sda"]);
}

#[test]
fn the_first_report_of_y_is_not_since_boot() {
    assert!(!parse(&fixture("x-y-t.txt")).unwrap().runs[0].since_boot);
    assert!(!parse(REPORT.as_bytes()).unwrap().runs[0].since_boot);
}

#[test]
fn absent_devices_are_nan_and_said() {
    let recording = parse(&fixture("x-t-z.txt")).unwrap();
    assert!(disk(&recording, "loop0", "r/s")[1].is_nan());
    assert_eq!(codes(&recording), ["absent-devices"]);
}

#[test]
fn recordings_appended_to_each_other_are_runs() {
    let text = format!("{BANNER}{REPORT}{REPORT}{BANNER}\n{REPORT}");
    let recording = parse(text.as_bytes()).unwrap();
    let runs: Vec<_> = recording
        .runs
        .iter()
        .map(|run| (run.first_report, run.since_boot))
        .collect();
    assert_eq!(runs, [(0, true), (2, false)]);
}

#[test]
fn a_restart_begins_a_run() {
    let text = format!("{BANNER}{REPORT}22:57:04       LINUX RESTART\t(8 CPU)\n\n{REPORT}");
    let recording = parse(text.as_bytes()).unwrap();
    assert_eq!(recording.runs.len(), 2);
    assert_eq!(recording.runs[0].banner, recording.runs[1].banner);
}

#[test]
fn names_on_their_own_line_and_names_with_blanks() {
    let text =
        "Device:  r/s  %util\n/dev/mapper/very-long\n         1.00   2.00\nmy disk  3.00  4.00\n\n";
    let recording = parse(text.as_bytes()).unwrap();
    assert_eq!(recording.devices, ["/dev/mapper/very-long", "my disk"]);
    assert_eq!(disk(&recording, "my disk", "%util"), [4.0]);
}

#[test]
fn a_projection_keeps_what_is_asked_for() {
    let wanted = Some(["%util".to_owned()].into());
    let text = format!("{BANNER}{REPORT}");
    let recording = read(text.as_bytes(), "rec.txt", 0, &wanted).unwrap();
    assert_eq!(
        recording
            .disks
            .iter()
            .map(|c| c.field.as_str())
            .collect::<Vec<_>>(),
        ["%util"]
    );
    assert_eq!(disk(&recording, "sdb", "%util"), [99.9]);
}

#[test]
fn a_report_cut_in_writing_is_left_out() {
    let whole = format!("{BANNER}{}", REPORT.repeat(3));
    let shortest = BANNER.len() + 2 * REPORT.len();
    for end in shortest + 1..whole.len() - 1 {
        let recording = parse(&whole.as_bytes()[..end]).unwrap();
        let complete = end >= whole.trim_end().len();
        assert_eq!(
            recording.report_count,
            if complete { 3 } else { 2 },
            "{:?}",
            &whole[shortest..end]
        );
        assert!(disk(&recording, "sdb", "%util").iter().all(|v| *v == 99.9));
    }
}

#[test]
fn a_line_that_is_not_iostats_is_an_error_with_its_number() {
    let text = format!("{BANNER}{REPORT}Segmentation fault\n{REPORT}");
    let error = parse(text.as_bytes()).unwrap_err();
    assert_eq!(error.place, "rec.txt:7");
    assert!(error.found.contains("Segmentation fault"), "{error}");
}

#[test]
fn a_row_with_a_missing_number_is_an_error() {
    let text = format!("{BANNER}{}{REPORT}", REPORT.replace("300.00", ""));
    let error = parse(text.as_bytes()).unwrap_err();
    assert_eq!(
        (error.place.as_str(), error.found.as_str()),
        ("rec.txt:5", "fewer numbers than the header has columns")
    );
}

#[test]
fn terminal_lines_around_the_recording_are_left_out() {
    let text = format!("[root@db01 ~]# iostat -x 5\n{BANNER}{REPORT}^C\n[root@db01 ~]# exit\n");
    let recording = parse(text.as_bytes()).unwrap();
    assert_eq!(recording.report_count, 1);
    assert_eq!(codes(&recording), ["leading-lines", "trailing-lines"]);
}

#[test]
fn many_foreign_lines_at_the_end_are_an_error() {
    let text = format!("{BANNER}{REPORT}{}", "noise\n".repeat(4));
    assert_eq!(parse(text.as_bytes()).unwrap_err().place, "rec.txt:7");
}

#[test]
fn times_before_each_line_become_the_reports_times() {
    let stamped: String = format!("{BANNER}{REPORT}")
        .lines()
        .enumerate()
        .map(|(i, line)| format!("2020-08-28 21:33:57.{i:06}\t{line}\n"))
        .collect();
    let recording = parse(stamped.as_bytes()).unwrap();
    assert_eq!(recording.stamps, ["2020-08-28 21:33:57.000002"]);
    assert!(recording.runs[0].since_boot);
}

#[test]
fn nothing_is_an_error() {
    assert!(parse(b"").is_err());
    assert!(parse(b"hello\n").is_err());
    assert!(parse(BANNER.as_bytes()).is_err());
}

/// Checks that what is returned is of one piece.
fn sound(recording: &Recording) {
    assert_eq!(recording.stamps.len(), recording.report_count);
    assert!(
        recording
            .runs
            .windows(2)
            .all(|pair| pair[0].first_report <= pair[1].first_report)
    );
    for column in recording.cpu.iter().chain(&recording.disks) {
        let cells = match &column.cells {
            Cells::Narrow(cells) => cells.len(),
            Cells::Wide(cells) => cells.len(),
        };
        assert!(column.stride >= recording.report_count && cells % column.stride == 0);
    }
}

#[test]
fn numbers_whose_fewest_digits_are_not_the_printed_ones_come_back() {
    for values in [
        &[2_541_818.25][..],
        &[2_541_818.25, 167_772.17],
        &[85_495_848.0, 0.1],
    ] {
        let text: String = values
            .iter()
            .map(|v| format!("Device r/s\nsda {v:.2}\n\n"))
            .collect();
        assert_eq!(disk(&parse(text.as_bytes()).unwrap(), "sda", "r/s"), values);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
        if let Ok(recording) = parse(&bytes) { sound(&recording); }
    }

    #[test]
    fn words_of_iostat_in_any_order_never_panic(
        words in proptest::collection::vec(
            prop_oneof![
                Just("Device"), Just("Device:"), Just("avg-cpu:"), Just("%util"), Just("r/s"), Just("\n"), Just("\n\n"),
                Just(" "), Just("sda"), Just("1.00"), Just("1,5k"), Just("99999999.99"), Just("11/20/26 22:57:04"),
                Just("Linux 6 (a) b (2 CPU)"), Just("LINUX RESTART"), Just("\t"), Just("^C"), Just("-nan"), Just("\r\n"),
            ],
            0..200,
        ),
    ) {
        if let Ok(recording) = parse(words.join(" ").as_bytes()) { sound(&recording); }
        if let Ok(recording) = parse(words.concat().as_bytes()) { sound(&recording); }
    }

    #[test]
    fn mutated_recordings_never_panic(
        which in 0usize..5,
        flips in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        cut in any::<prop::sample::Index>(),
    ) {
        let names = ["x-t-iso.txt", "x-human.txt", "default.txt", "x-group.txt", "c-only.txt"];
        let mut bytes = fixture(names[which]);
        for (at, byte) in flips {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(cut.index(bytes.len()));
        if let Ok(recording) = parse(&bytes) { sound(&recording); }
    }

    #[test]
    fn numbers_come_back_as_printed(values in proptest::collection::vec(0u64..10_000_000_000, 1..40)) {
        let printed: Vec<String> = values.iter().map(|v| format!("{}.{:02}", v / 100, v % 100)).collect();
        let text: String = printed.iter().map(|v| format!("Device r/s\nsda {v}\n\n")).collect();
        let recording = parse(text.as_bytes()).unwrap();
        let expected: Vec<f64> = printed.iter().map(|v| v.parse().unwrap()).collect();
        prop_assert_eq!(disk(&recording, "sda", "r/s"), expected);
    }
}
