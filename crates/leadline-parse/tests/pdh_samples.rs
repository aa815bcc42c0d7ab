//! Recordings of the real tools, where the samples are at hand.
#![allow(
    clippy::unwrap_used,
    clippy::float_cmp,
    clippy::format_push_string,
    clippy::cast_possible_wrap,
    clippy::cast_possible_truncation,
    clippy::print_stderr,
    reason = "tests: small known numbers, exact results"
)]

mod pdh_support;

use std::path::{Path, PathBuf};

use leadline_parse::pdh::PdhFile;
use pdh_support::*;

/// The sample, or `None` (said on stderr) where the samples are not beside the checkout.
fn sample(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared/samples")
        .join(name);
    if !path.exists() {
        eprintln!("skipped: {} is not there", path.display());
        return None;
    }
    Some(path)
}

fn open(name: &str) -> Option<Read> {
    sample(name).map(|path| read_file(PdhFile::open(&path, None).unwrap(), true).unwrap())
}

#[test]
fn esxtop_itself() {
    let Some(r) = open("esxtop/rach-sharp__esxtopd__small-esxtop-data.csv") else {
        return;
    };
    assert_eq!((r.values.len(), r.times_s.len()), (7630, 3));
    assert_eq!(r.codes(), ["row-trailing-comma", "trailing-comma"]);
    assert_eq!(r.file.names().hosts, ["localhost.home"]);
    assert_eq!(
        r.times_s,
        [1_524_751_587.0, 1_524_751_592.0, 1_524_751_597.0]
    );
    assert_values(
        &r.values[..4],
        &[&[0.78; 3], &[0.78; 3], &[0.78; 3], &[0.06; 3]],
    );
    assert_eq!(r.values[7629], [16.31, 3.79, 4.51]);
    assert!(r.values.iter().flatten().all(|v| v.is_finite()));
}

#[test]
fn esxtop_saved_by_excel() {
    let Some(r) = open("esxtop/gsliu__VisualEsxtopOnline__1000_origincsvfile.csv") else {
        return;
    };
    assert_eq!((r.values.len(), r.times_s.len()), (11, 514));
    assert_eq!(r.codes(), ["times-without-seconds", "unquoted"]);
    assert!(
        r.times_s
            .windows(2)
            .all(|w| w[1] > w[0] && w[1] - w[0] < 10.0)
    );
    let Some(mac) = open("esxtop/gsliu__VisualEsxtopOnline__1001_origincsv.csv") else {
        return;
    };
    assert_eq!((mac.values.len(), mac.times_s.len()), (6, 100));
    assert!(
        mac.codes().starts_with(&["cr-line-ends"]) && mac.codes().contains(&"times-without-date")
    );
    assert!(
        mac.times_s
            .windows(2)
            .all(|w| w[1] > w[0] && w[1] - w[0] < 7.0)
    );
}

#[test]
fn performance_monitor() {
    let Some(r) = open("perfmon/Narmadha6790__sample__DataCollector01.csv") else {
        return;
    };
    assert_eq!((r.values.len(), r.times_s.len()), (12, 21));
    assert_eq!(
        (r.file.utc_offset_min(), r.count("blank-cells")),
        (Some(-330), 8)
    );
    assert!((r.times_s[0] - 1_505_794_899.073).abs() < 1e-3);
    for name in ["01", "02", "03"] {
        let Some(r) = open(&format!(
            "perfmon/jg185342__memeData__DataCollector{name}.csv"
        )) else {
            return;
        };
        assert_eq!((r.values.len(), r.file.utc_offset_min()), (8, Some(240)));
        assert!(r.times_s.len() > 10);
    }
    let Some(other) = sample("perfmon/jg185342__memeData__process1.csv") else {
        return;
    };
    assert!(
        PdhFile::open(&other, None)
            .unwrap_err()
            .found
            .contains("the file begins time,processid")
    );
}
