//! What the tests of traces share: a folder of files, and what is read of them.

#![allow(dead_code, clippy::panic)]

use std::path::PathBuf;

use leadline_parse::trace::{DiskProfile, Options, Outcome, Split, characterise};
use leadline_stats::error::LeadlineError;

pub const OPTIONS: Options = Options {
    sample_keys: 1024,
    split: Split::Disks,
};

pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("leadline-trace-{}-{name}", std::process::id()));
        let _ = std::fs::create_dir_all(&path);
        Self(path)
    }

    pub fn file(&self, name: &str, bytes: &[u8]) -> (PathBuf, String) {
        let path = self.0.join(name);
        assert!(std::fs::write(&path, bytes).is_ok());
        (path, name.to_owned())
    }

    pub fn read(&self, name: &str, bytes: &[u8]) -> Result<Outcome, LeadlineError> {
        read(&[self.file(name, bytes)])
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub fn read(files: &[(PathBuf, String)]) -> Result<Outcome, LeadlineError> {
    characterise(files, &OPTIONS, &mut |_| true).map(|found| match found {
        Some(outcome) => outcome,
        None => unreachable!("nobody said stop"),
    })
}

pub fn notes(outcome: &Outcome) -> Vec<(&str, u64)> {
    outcome
        .notes
        .iter()
        .map(|note| (note.code, note.count))
        .collect()
}

pub fn counts(profile: &DiskProfile) -> (u64, u64) {
    (
        profile.read.size.fine.total(),
        profile.write.size.fine.total(),
    )
}

pub fn good(found: Result<Outcome, LeadlineError>) -> Outcome {
    match found {
        Ok(outcome) => outcome,
        Err(error) => panic!("{error}"),
    }
}

pub fn bad(found: Result<Outcome, LeadlineError>) -> LeadlineError {
    match found {
        Ok(outcome) => panic!("read as {}", outcome.format),
        Err(error) => error,
    }
}
