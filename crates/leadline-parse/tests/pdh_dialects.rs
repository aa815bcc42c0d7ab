//! Random recordings in every dialect at once, against the numbers they were made from.
#![allow(
    clippy::unwrap_used,
    clippy::struct_excessive_bools,
    clippy::float_cmp,
    clippy::format_push_string,
    clippy::cast_possible_wrap,
    clippy::cast_possible_truncation,
    reason = "tests: small known numbers, exact results"
)]

mod pdh_support;

use pdh_support::*;
use proptest::prelude::*;

#[derive(Clone, Debug)]
struct Dialect {
    separator: char,
    quoted: bool,
    decimal_comma: bool,
    trailing: bool,
    line_end: &'static str,
    final_line_end: bool,
    wide: bool,
    /// Column whose separator to its right is missing in header and rows, where cells are quoted.
    joint: Option<usize>,
}

fn dialect() -> impl Strategy<Value = Dialect> {
    let separator = prop::sample::select(vec![',', ';', '\t']);
    let line_end = prop::sample::select(vec!["\n", "\r\n", "\r", "\r\r\n"]);
    (
        separator,
        any::<[bool; 5]>(),
        line_end,
        prop::option::of(0_usize..9),
    )
        .prop_map(|(separator, flags, line_end, joint)| {
            let [quoted, decimal_comma, trailing, final_line_end, wide] = flags;
            // Unquoted decimal commas between commas are beyond repair.
            let decimal_comma = decimal_comma && (quoted || separator != ',');
            Dialect {
                separator,
                quoted,
                decimal_comma,
                trailing,
                line_end,
                final_line_end,
                wide,
                joint,
            }
        })
}

/// A cell as text, and what it should be read as.
fn cell() -> impl Strategy<Value = (String, f64)> {
    prop_oneof![
        6 => (0_u32..1_000_000, 0_usize..4).prop_map(|(n, places)| {
            let text = format!("{:.*}", places, f64::from(n) / 100.0);
            let value = text.parse().unwrap();
            (text, value)
        }),
        1 => any::<f64>().prop_filter("finite", |v| v.is_finite()).prop_map(|v| (format!("{v:e}"), v)),
        1 => Just((String::new(), f64::NAN)),
        1 => Just(("-5.00".to_owned(), -5.0)),
    ]
}

fn render(dialect: &Dialect, cells: &[String]) -> String {
    let mut line = String::new();
    for (i, cell) in cells.iter().enumerate() {
        line += &if dialect.quoted {
            format!("\"{cell}\"")
        } else {
            cell.clone()
        };
        // The time is cell 0, so column j is cell j + 1.
        let joined = dialect.quoted && i > 0 && dialect.joint == Some(i - 1) && i + 1 < cells.len();
        if i + 1 < cells.len() && !joined {
            line.push(dialect.separator);
        }
    }
    if dialect.trailing {
        line.push(dialect.separator);
    }
    line
}

fn recording(dialect: &Dialect, rows: &[Vec<(String, f64)>]) -> Vec<u8> {
    let columns = rows[0].len();
    let format = if dialect.separator == '\t' {
        UTC.replace("CSV", "TSV")
    } else {
        UTC.to_owned()
    };
    let mut header = vec![format];
    header.extend((0..columns).map(|c| format!("\\\\h\\A({c})\\x")));
    let mut lines = vec![render(dialect, &header)];
    for (i, row) in rows.iter().enumerate() {
        let mut cells = vec![format!("05/01/2024 00:00:{i:02}")];
        let decimal = |text: &String| {
            if dialect.decimal_comma {
                text.replace('.', ",")
            } else {
                text.clone()
            }
        };
        cells.extend(row.iter().map(|(text, _)| decimal(text)));
        lines.push(render(dialect, &cells));
    }
    let mut text = lines.join(dialect.line_end);
    if dialect.final_line_end {
        text += dialect.line_end;
    }
    if dialect.wide {
        return std::iter::once(0xFEFF)
            .chain(text.encode_utf16())
            .flat_map(u16::to_le_bytes)
            .collect();
    }
    text.into_bytes()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn every_dialect_reads_as_the_same_numbers(
        dialect in dialect(),
        rows in (2_usize..10).prop_flat_map(|k| prop::collection::vec(prop::collection::vec(cell(), k), 1..8)),
    ) {
        let r = read(recording(&dialect, &rows));
        // An unquoted last line that ends in a blank value and nothing else may as well be cut.
        let last = &rows[rows.len() - 1];
        let blank_end = !dialect.quoted && !dialect.final_line_end && last[last.len() - 1].0.is_empty();
        let kept = rows.len() - usize::from(blank_end);
        prop_assert_eq!(r.times_s.len(), kept);
        for (c, series) in r.values.iter().enumerate() {
            for (i, value) in series.iter().enumerate() {
                let expected = rows[i][c].1;
                prop_assert!(*value == expected || (value.is_nan() && expected.is_nan()),
                    "row {i} column {c}: {value} against {expected}");
            }
        }
    }
}
