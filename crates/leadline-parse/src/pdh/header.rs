//! The header line: decoded, cut into cells, and its first cell's dialect and time zone.

use encoding_rs::{Encoding, UTF_16BE, UTF_16LE, WINDOWS_1251, WINDOWS_1252};
use memchr::memchr;

use super::names::Names;
use super::sniff::Layout;
use super::source::{Source, Units};
use super::warnings::{Warnings, code};
use leadline_stats::error::LeadlineError;

/// What the header says.
#[derive(Debug)]
pub struct Header {
    /// Format name of the first cell: `PDH-CSV 4.0`.
    pub format: String,
    /// Time zone name as the recorder wrote it.
    pub zone_name: Option<String>,
    /// Minutes to *add* to the recorded times to get UTC (positive west of Greenwich).
    pub utc_offset_min: Option<i32>,
    /// Names of the columns behind the time.
    pub names: Names,
    /// Name of the character encoding.
    pub encoding: &'static str,
    /// How many separators were missing.
    pub commas_missing: u64,
}

/// Reads and takes apart the header. `encoding` is a label such as `windows-1251`; `None` guesses.
///
/// # Errors
/// When the label is unknown, the file cannot be read, or the header has no column.
pub fn read_header(
    source: &Source,
    layout: &Layout,
    encoding: Option<&str>,
    warnings: &mut Warnings,
) -> Result<Header, LeadlineError> {
    let place = source.place(u64::from(layout.header_line_number));
    let mut raw = Vec::new();
    let length = usize::try_from(layout.header_end - layout.header_start).unwrap_or(usize::MAX);
    source.read_raw(layout.header_start, length, &mut raw)?;
    let (text, encoding) = decode(raw, source.units(), encoding, &place, warnings)?;
    let mut first = String::new();
    let mut names = Names::default();
    let mut pending_blanks = 0_u64;
    let mut missing = 0_u64;
    let mut odd = 0_u64;
    let mut index = 0_u64;
    for_each_cell(&text, layout.separator, |cell, comma_missing| {
        missing += u64::from(comma_missing);
        if index == 0 {
            cell.trim().clone_into(&mut first);
        } else if cell.trim().is_empty() {
            pending_blanks += 1;
        } else {
            // Blank names only become columns when a named column follows.
            for _ in 0..std::mem::take(&mut pending_blanks) {
                names.push("");
                odd += 1;
            }
            odd += u64::from(!names.push(cell.trim()));
        }
        index += 1;
    });
    names.finish();
    warn(
        Faults {
            missing,
            blank: pending_blanks,
            odd,
        },
        warnings,
    );
    if names.is_empty() {
        return Err(LeadlineError::new(
            place,
            "a header without any column",
            "counter names behind the first cell",
            "Record again; the recorder was told to write nothing.",
        ));
    }
    let (format, zone_name, utc_offset_min) = first_cell(&first);
    warnings.add(code::NO_ZONE, u64::from(utc_offset_min.is_none()), || {
        "the header states no offset from UTC; times were taken as UTC".into()
    });
    Ok(Header {
        format,
        zone_name,
        utc_offset_min,
        names,
        encoding,
        commas_missing: missing,
    })
}

/// Faults of the header, counted.
#[derive(Clone, Copy)]
struct Faults {
    missing: u64,
    blank: u64,
    odd: u64,
}

fn warn(faults: Faults, warnings: &mut Warnings) {
    warnings.add(code::HEADER_COMMA_MISSING, faults.missing, || {
        "header cells had run together for want of a comma and were separated".into()
    });
    warnings.add(code::TRAILING_COMMA, faults.blank, || {
        "the header ends in a separator with no name behind it; it was ignored".into()
    });
    warnings.add(code::HEADER_CELL_ODD, faults.odd, || {
        r"header cells are not of the form \\HOST\Object(Instance)\Counter; the cell became the counter name".into()
    });
}

/// Bytes to text. UTF-8 is recognised by being valid; a code page has to be guessed.
fn decode(
    raw: Vec<u8>,
    units: Units,
    label: Option<&str>,
    place: &str,
    warnings: &mut Warnings,
) -> Result<(String, &'static str), LeadlineError> {
    let stated = match label {
        None => None,
        Some(label) => Some(Encoding::for_label(label.as_bytes()).ok_or_else(|| {
            LeadlineError::new(
                place,
                format!("unknown encoding {label}"),
                "a label such as utf-8 or windows-1251",
                "Leave the encoding out to have it guessed.",
            )
        })?),
    };
    let encoding: &'static Encoding = match (units, stated) {
        (Units::Utf16Le, _) => UTF_16LE,
        (Units::Utf16Be, _) => UTF_16BE,
        (Units::Bytes, Some(encoding)) => encoding,
        (Units::Bytes, None) => match String::from_utf8(raw) {
            Ok(text) => return Ok((text, "UTF-8")),
            Err(error) => return Ok(decode_guessed(&error.into_bytes(), warnings)),
        },
    };
    let (text, _) = encoding.decode_without_bom_handling(&raw);
    Ok((text.into_owned(), encoding.name()))
}

fn decode_guessed(raw: &[u8], warnings: &mut Warnings) -> (String, &'static str) {
    let encoding = guess_code_page(raw);
    warnings.add(code::CODE_PAGE, 1, || {
        format!(
            "names are not UTF-8 and were read as {}; state the encoding if they look wrong",
            encoding.name()
        )
    });
    (
        encoding.decode_without_bom_handling(raw).0.into_owned(),
        encoding.name(),
    )
}

/// Russian words are runs of high bytes; western accents stand alone between ASCII letters.
fn guess_code_page(raw: &[u8]) -> &'static Encoding {
    let high = raw.iter().filter(|b| **b >= 0x80).count();
    let paired = raw
        .windows(2)
        .filter(|w| w[0] >= 0x80 && w[1] >= 0x80)
        .count();
    if 2 * paired >= high {
        WINDOWS_1251
    } else {
        WINDOWS_1252
    }
}

/// Calls `each(cell, comma_missing_before)` for every header cell, without quotes.
///
/// A separator inside quotes belongs to the name. Two faults of the recorder are mended here: `"a""\\host..."` and
/// `"a"\\host...` lack their comma; a doubled quote that no host name follows is a quote inside a name.
pub fn for_each_cell(text: &str, separator: u8, mut each: impl FnMut(&str, bool)) {
    let bytes = text.as_bytes();
    let mut at = 0;
    let mut missing = false;
    // A cell that lost its opening quote with the comma still has its closing one.
    let mut inside = false;
    let mut unescaped = String::new();
    loop {
        let quoted = inside || bytes.get(at) == Some(&b'"');
        let start = at + usize::from(quoted && !inside);
        let end = if quoted {
            closing_quote(bytes, start, separator)
        } else {
            memchr(separator, &bytes[at..]).map_or(bytes.len(), |n| at + n)
        };
        let cell = text.get(start..end).unwrap_or_default();
        if quoted && cell.contains("\"\"") {
            unescaped.clear();
            unescaped.push_str(&cell.replace("\"\"", "\""));
            each(&unescaped, missing);
        } else {
            each(cell, missing);
        }
        let behind = end + usize::from(quoted);
        match bytes.get(behind) {
            None => return,
            Some(&b) if b == separator => {
                (at, missing, inside) = (behind + 1, false, false);
            }
            Some(&b) => (at, missing, inside) = (behind, true, b != b'"'),
        }
    }
}

/// Position of the quote that closes the cell whose text begins at `start`, or the end of the line.
fn closing_quote(bytes: &[u8], start: usize, separator: u8) -> usize {
    let mut from = start;
    while let Some(n) = memchr(b'"', &bytes[from.min(bytes.len())..]) {
        let quote = from + n;
        match &bytes[quote + 1..] {
            [] | [b'"', b'\\', b'\\', ..] | [b'\\', b'\\', ..] => return quote,
            [b, ..] if *b == separator => return quote,
            [b'"', ..] => from = quote + 2,
            _ => from = quote + 1,
        }
    }
    bytes.len()
}

/// `(PDH-CSV 4.0) (Zone)(offset)` into its parts. A zone name may hold parentheses itself.
fn first_cell(cell: &str) -> (String, Option<String>, Option<i32>) {
    let Some((format, rest)) = cell.trim_start_matches('(').split_once(')') else {
        return (cell.trim_start_matches('(').to_owned(), None, None);
    };
    let inner = rest
        .trim()
        .strip_prefix('(')
        .and_then(|r| r.strip_suffix(')'));
    let (zone, offset) =
        match inner.map(|r| r.rsplit_once(")(").map_or((r, None), |(z, o)| (z, Some(o)))) {
            Some((zone, offset)) => (Some(zone.to_owned()), offset),
            None => (None, None),
        };
    // No zone lies further than a day from Greenwich; anything else is damage.
    let minutes = offset
        .and_then(|o| o.trim().parse::<i32>().ok())
        .filter(|m| m.abs() <= 24 * 60);
    (format.to_owned(), zone, minutes)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn cells(text: &str) -> Vec<(String, bool)> {
        let mut all = Vec::new();
        for_each_cell(text, b',', |cell, missing| {
            all.push((cell.to_owned(), missing));
        });
        all
    }

    #[test]
    fn cells_and_their_faults() {
        let own = |list: &[(&str, bool)]| {
            list.iter()
                .map(|(c, m)| ((*c).to_owned(), *m))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            cells(r#""a","b, c",d,"#),
            own(&[("a", false), ("b, c", false), ("d", false), ("", false)])
        );
        let doubled = cells(r#""\\h\a""\\h\b","c""#);
        assert_eq!(
            doubled,
            own(&[(r"\\h\a", false), (r"\\h\b", true), ("c", false)])
        );
        let single = cells(r#""\\h\a"\\h\b","c""#);
        assert_eq!(
            single,
            own(&[(r"\\h\a", false), (r"\\h\b", true), ("c", false)])
        );
        assert_eq!(cells(r#""vm ""x"" y""#), own(&[(r#"vm "x" y"#, false)]));
        assert_eq!(
            cells(r#""vm "x y","b""#),
            own(&[(r#"vm "x y"#, false), ("b", false)])
        );
        assert_eq!(cells(r#""open"#), own(&[("open", false)]));
    }

    #[test]
    fn zones() {
        let parts = |cell| {
            let (format, zone, offset) = first_cell(cell);
            (format, zone.unwrap_or_default(), offset)
        };
        let own = |f: &str, z: &str, o| (f.to_owned(), z.to_owned(), o);
        assert_eq!(
            parts("(PDH-CSV 4.0) (UTC)(0)"),
            own("PDH-CSV 4.0", "UTC", Some(0))
        );
        let india = parts("(PDH-TSV 4.0) (India Standard Time)(-330)");
        assert_eq!(india, own("PDH-TSV 4.0", "India Standard Time", Some(-330)));
        assert_eq!(
            parts("(PDH-CSV 4.0) (RTZ 2 (winter))(-180)"),
            own("PDH-CSV 4.0", "RTZ 2 (winter)", Some(-180))
        );
        assert_eq!(parts("(PDH-CSV 4.0)"), own("PDH-CSV 4.0", "", None));
        assert_eq!(
            parts("(PDH-CSV 4.0) (X)(99999)"),
            own("PDH-CSV 4.0", "X", None)
        );
        assert_eq!(parts("(PDH-CSV"), own("PDH-CSV", "", None));
    }

    #[test]
    fn code_pages() {
        let (russian, _, _) = WINDOWS_1251.encode("\\Процессор(_Total)\\% загруженности");
        assert_eq!(guess_code_page(&russian), WINDOWS_1251);
        let (german, _, _) = WINDOWS_1252.encode("\\Prozessor(_Total)\\Priorität für Übertragung");
        assert_eq!(guess_code_page(&german), WINDOWS_1252);
    }
}
