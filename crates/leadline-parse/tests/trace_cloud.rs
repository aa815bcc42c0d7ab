//! The block traces that Alibaba and Tencent published: what is read and how coarse clocks are treated.

#![allow(clippy::panic)]

mod trace_support;

use trace_support::*;

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
