//! Coverage-guided fuzzing of the reader of iostat's text: every table, to the last line.

use leadline_parse::iostat::{Wanted, read};

fn main() {
    let wanted: Wanted = None;
    afl::fuzz!(|bytes: &[u8]| {
        let _ = read(bytes, "bytes", 0, &wanted);
    });
}
