//! The block traces that Alibaba and Tencent published: what is read and how coarse clocks are treated.

#![allow(clippy::panic)]

use std::path::PathBuf;

use leadline_parse::trace::{DiskProfile, Options, Outcome, Split, characterise};
use leadline_stats::error::LeadlineError;

const OPTIONS: Options = Options {
    sample_keys: 1024,
    split: Split::Disks,
};

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("leadline-trace-{}-{name}", std::process::id()));
        let _ = std::fs::create_dir_all(&path);
        Self(path)
    }

    fn file(&self, name: &str, bytes: &[u8]) -> (PathBuf, String) {
        let path = self.0.join(name);
        assert!(std::fs::write(&path, bytes).is_ok());
        (path, name.to_owned())
    }

    fn read(&self, name: &str, bytes: &[u8]) -> Result<Outcome, LeadlineError> {
        read(&[self.file(name, bytes)])
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn read(files: &[(PathBuf, String)]) -> Result<Outcome, LeadlineError> {
    characterise(files, &OPTIONS, &mut |_| true).map(|found| match found {
        Some(outcome) => outcome,
        None => unreachable!("nobody said stop"),
    })
}

fn notes(outcome: &Outcome) -> Vec<(&str, u64)> {
    outcome
        .notes
        .iter()
        .map(|note| (note.code, note.count))
        .collect()
}

fn counts(profile: &DiskProfile) -> (u64, u64) {
    (
        profile.read.size.fine.total(),
        profile.write.size.fine.total(),
    )
}

fn good(found: Result<Outcome, LeadlineError>) -> Outcome {
    match found {
        Ok(outcome) => outcome,
        Err(error) => panic!("{error}"),
    }
}

fn bad(found: Result<Outcome, LeadlineError>) -> LeadlineError {
    match found {
        Ok(outcome) => panic!("read as {}", outcome.format),
        Err(error) => error,
    }
}

#[test]
fn alibaba_is_read_with_and_without_header() {
    let folder = Folder::new("alibaba");
    let body = "0,R,126703644672,4096,1577808000000626\n\
                419,W,8192,16384,1577808000000900\n\
                0,W,126703648768,512,1577808000002626\n";
    let header = format!("device_id,opcode,offset,length,timestamp\n{body}");
    for text in [body.to_owned(), header] {
        let found = good(folder.read("io_traces.csv", text.as_bytes()));
        assert_eq!(found.format, "alibaba-csv");
        let names: Vec<&str> = found
            .profiles
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        assert_eq!(names, ["0", "419"]);
        let profile = &found.profiles[0].1;
        assert_eq!(
            (counts(profile), profile.duration_ns()),
            ((1, 1), 2_000_000)
        );
        assert_eq!(profile.end_bytes, 126_703_648_768 + 512);
        assert_eq!(profile.all.latency.fine.total(), 0);
    }
    let error = bad(folder.read("a.csv", format!("{body}0,R,1,x,5\n").as_bytes()));
    assert_eq!(error.place, "a.csv:4");
}

#[test]
fn tencent_is_read_in_sectors_and_a_second_is_spread_over_its_requests() {
    let folder = Folder::new("tencent");
    let body = "1538323199,105352008,584,1,1576\n\
                1538323200,8,8,0,1576\n\
                1538323200,0,16,1,1048\n\
                1538323200,16,8,0,1576\n\
                1538323200,24,8,0,1576\n\
                1538323201,32,8,0,1576\n";
    let header = format!("Timestamp,Offset,Size,IOType,VolumeID\n{body}");
    for text in [body.to_owned(), header] {
        let found = good(folder.read("2018-10-01-01", text.as_bytes()));
        assert_eq!(found.format, "tencent-csv");
        let names: Vec<&str> = found
            .profiles
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        assert_eq!(names, ["1576", "1048"]);
        let profile = &found.profiles[0].1;
        assert_eq!(
            (counts(profile), profile.duration_ns()),
            ((4, 1), 2_000_000_000)
        );
        assert_eq!(profile.write_bytes, 584 * 512);
        assert_eq!(profile.end_bytes, (105_352_008 + 584) * 512);
        // The four of a second come at its quarters: 1576 has the first, third and fourth.
        let gaps = profile
            .all
            .interarrival
            .limits
            .summary()
            .map(|s| (s.0, s.1));
        assert_eq!(gaps, Some((250_000, 1_000_000)));
        assert_eq!(notes(&found), [("coarse", 4)]);
    }
    // A latency log of fio has five numbers as well.
    let log = "1538323199, 105352, 1, 4096, 1576\n";
    assert_eq!(
        good(folder.read("a.log", log.as_bytes())).format,
        "fio-lat-log"
    );
}
