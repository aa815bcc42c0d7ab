//! Coverage-guided fuzzing of the reader of `esxtop -b` and Performance Monitor recordings: all columns of all rows.

fn main() {
    // Inside a pool of one thread: handing what the reader splits to another one would take as long as reading it.
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .build()
        .expect("a thread");
    pool.install(|| {
        afl::fuzz!(|bytes: &[u8]| {
            let _ = leadline_parse::pdh::parse_bytes(bytes);
        });
    });
}
