//! No bytes make the reader panic, and a damaged recording is read, or refused with all four parts of an error.
#![allow(
    clippy::unwrap_used,
    clippy::float_cmp,
    clippy::format_push_string,
    clippy::cast_possible_wrap,
    clippy::cast_possible_truncation,
    reason = "tests: small known numbers, exact results"
)]

mod pdh_support;

use leadline_parse::pdh::parse_bytes;
use pdh_support::quoted;
use proptest::prelude::*;

fn survive(bytes: &[u8]) -> Result<(), TestCaseError> {
    match parse_bytes(bytes) {
        Ok((columns, _)) => prop_assert!(columns > 0),
        Err(e) => {
            prop_assert!(
                [&e.place, &e.found, &e.expected, &e.advice]
                    .iter()
                    .all(|part| !part.is_empty())
            );
        }
    }
    Ok(())
}

/// Characters that mean something to the reader, and some that do not.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::sample::select(vec![
            "\"",
            ",",
            "\n",
            "\r",
            "\r\n",
            ";",
            "\t",
            "\"\"",
            "\\\\h\\A(1)\\x",
            "1.00",
            "-1",
            "(PDH-",
            "\"05/01/2024 00:00:00\"",
            "13.05.2024 1:02",
            "23:59:59",
            "59:59.9",
            "\"1,5\"",
            " ",
            "\u{feff}",
            "я"
        ])
        .prop_map(|s| s.as_bytes().to_vec()),
        any::<u8>().prop_map(|b| vec![b]),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        survive(&bytes)?;
    }

    #[test]
    fn any_pieces(pieces in prop::collection::vec(piece(), 0..60), separator in prop::sample::select(vec![",", ";", "\t"]),
                  quote in prop::sample::select(vec!["", "\""]), wide in 0..3) {
        let mut bytes = format!("{quote}(PDH-CSV 4.0) (UTC)(0){quote}{separator}").into_bytes();
        bytes.extend(pieces.concat());
        match wide {
            1 => bytes = bytes.iter().flat_map(|b| [*b, 0]).collect(),
            2 => bytes = [0xFE, 0xFF].into_iter().chain(bytes.iter().flat_map(|b| [0, *b])).collect(),
            _ => {}
        }
        survive(&bytes)?;
    }

    #[test]
    fn mutated_recordings(edits in prop::collection::vec((any::<prop::sample::Index>(), piece(), 0_usize..6), 1..8)) {
        let mut bytes = quoted(&[r#""0.00","100.00","8083""#, r#""-1.00","12.5","""#, r#""1,5","2","3""#, r#""1","2","3","#]).into_bytes();
        for (at, new, removed) in edits {
            let at = at.index(bytes.len() + 1);
            let end = bytes.len().min(at + removed);
            bytes.splice(at..end, new);
        }
        survive(&bytes)?;
    }
}
