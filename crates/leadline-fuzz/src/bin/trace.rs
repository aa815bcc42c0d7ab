//! Coverage-guided fuzzing of the readers of I/O traces: whatever format the beginning looks like, to its end.

use std::path::PathBuf;

use leadline_parse::trace::{Options, Split, characterise};

fn main() {
    // In memory where the system has such a folder: the readers of traces take files.
    let shared = PathBuf::from("/dev/shm");
    let folder = if shared.is_dir() {
        shared
    } else {
        std::env::temp_dir()
    };
    let options = Options {
        sample_keys: 64,
        split: Split::Disks,
    };
    afl::fuzz!(|bytes: &[u8]| {
        let path = folder.join(format!("leadline-fuzz-{}", std::process::id()));
        if std::fs::write(&path, bytes).is_ok() {
            let files = [(path.clone(), "bytes".to_owned())];
            let _ = characterise(&files, &options, &mut |_| true);
            let _ = std::fs::remove_file(&path);
        }
    });
}
