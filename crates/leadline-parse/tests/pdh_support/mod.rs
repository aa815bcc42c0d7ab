//! What the tests of the PDH reader share.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::float_cmp,
    clippy::format_push_string,
    clippy::cast_possible_wrap,
    clippy::cast_possible_truncation,
    reason = "each test program uses a part of this; small known numbers"
)]

use leadline_parse::pdh::{PdhFile, Request};
use leadline_stats::error::LeadlineError;

pub const UTC: &str = "(PDH-CSV 4.0) (UTC)(0)";
/// 05/01/2024 00:00:00 UTC in seconds.
pub const MAY_DAY: i64 = 1_714_521_600;

/// A recording read in full.
#[derive(Debug)]
pub struct Read {
    pub file: PdhFile,
    pub times_s: Vec<f64>,
    /// One series per column.
    pub values: Vec<Vec<f64>>,
}

impl Read {
    pub fn codes(&self) -> Vec<&'static str> {
        self.file.warnings().iter().map(|w| w.code).collect()
    }

    pub fn count(&self, code: &str) -> u64 {
        self.file
            .warnings()
            .iter()
            .find(|w| w.code == code)
            .map_or(0, |w| w.count)
    }

    pub fn message(&self, code: &str) -> String {
        self.file
            .warnings()
            .iter()
            .find(|w| w.code == code)
            .unwrap()
            .message
            .clone()
    }
}

pub fn read_file(file: PdhFile, sentinels: bool) -> Result<Read, LeadlineError> {
    let columns: Vec<u32> = (0..).take(file.names().len()).collect();
    let request = Request {
        columns: &columns,
        sentinels,
        ..Request::default()
    };
    let table = file.read(&request, &mut |_, _| true)?;
    let rows = table.times_ns.len();
    let all = table.series.values::<f64>();
    assert_eq!(all.len(), columns.len() * rows);
    let values = (0..columns.len())
        .map(|c| all[c * rows..(c + 1) * rows].to_vec())
        .collect();
    let times_s = table.times_ns.iter().map(|t| *t as f64 / 1e9).collect();
    Ok(Read {
        file,
        times_s,
        values,
    })
}

pub fn try_read(bytes: impl AsRef<[u8]>) -> Result<Read, LeadlineError> {
    read_file(
        PdhFile::from_bytes("cap.csv", bytes.as_ref().to_vec(), None, None)?,
        true,
    )
}

pub fn read(bytes: impl AsRef<[u8]>) -> Read {
    try_read(bytes).unwrap()
}

/// Equal numbers, NaN equal to NaN.
pub fn assert_values(values: &[Vec<f64>], expected: &[&[f64]]) {
    let bits = |v: f64| {
        if v.is_nan() {
            f64::NAN.to_bits()
        } else {
            v.to_bits()
        }
    };
    let left: Vec<Vec<u64>> = values
        .iter()
        .map(|s| s.iter().map(|v| bits(*v)).collect())
        .collect();
    let right: Vec<Vec<u64>> = expected
        .iter()
        .map(|s| s.iter().map(|v| bits(*v)).collect())
        .collect();
    assert_eq!(left, right, "{values:?} against {expected:?}");
}

/// A quoted recording of three columns: text of the rows behind the time.
pub fn quoted(rows: &[&str]) -> String {
    let mut text = format!(
        "\"{UTC}\",\"\\\\h\\A(1)\\% Used\",\"\\\\h\\A(2)\\% Used\",\"\\\\h\\B\\Free MBytes\"\n"
    );
    for (i, row) in rows.iter().enumerate() {
        text += &format!("\"05/01/2024 00:00:{i:02}\",{row}\n");
    }
    text
}
