//! Tables of I/Os: the public sets, and columns that are described.

use std::io::Cursor;

use hoistway_trace::block::{Action, Columns, Event, Flags, Format, Input, Recording};

use crate::support::{all, read};

fn recording(text: &str) -> Recording {
    Recording::read(Input::new("test", Box::new(Cursor::new(text.to_owned()))).unwrap()).unwrap()
}

/// What was submitted: time, sector, bytes, whether it writes.
fn queued(events: &[Event]) -> Vec<(u64, u64, u32, bool)> {
    let its = events.iter().filter(|event| event.action == Action::Queue);
    its.map(|event| (event.time_ns, event.sector, event.bytes, event.flags.has(Flags::WRITE))).collect()
}

#[test]
fn each_public_set_is_recognised_by_its_lines() {
    let cases = [
        (
            "msr",
            "128166372000011719,synth,0,Write,7316073984,4096,3928\n",
            (12_816_637_200_001_171_900, 14_289_207, 4096, true),
        ),
        ("alibaba", "7,W,352406347776,4096,1577808000000262\n", (1_577_808_000_000_262_000, 688_293_648, 4096, true)),
        ("tencent", "1538323200,10962825,32,1,1284\n", (1_538_323_200_000_000_000, 10_962_825, 16_384, true)),
        ("spc", "22,31536339,512,R,0.010449\n", (10_449_000, 31_536_339, 512, false)),
        (
            "systor17",
            "Timestamp,Response,IOType,LUN,Offset,Size\n1456095145.002714000,0.002545000,,0,870032680960,512\n1456095145.000219000,0.000217000,R,0,157618587648,4096\n",
            (1_456_095_145_000_219_000, 307_848_804, 4096, false),
        ),
        ("fiu", "89973370688 253 kjournald 311909232 8 W 6 0 2e93f387\n", (89_973_370_688, 311_909_232, 4096, true)),
        ("mqsim", "938513000 4 264719034 16 0\n", (938_513_000, 264_719_034, 8192, true)),
    ];
    for (name, text, expected) in cases {
        let recording = recording(text);
        assert_eq!(*recording.format(), Format::Table(Box::new(Columns::parse(name).unwrap())));
        let (events, _) = all(recording).unwrap();
        assert_eq!(queued(&events), [expected], "{name}");
    }
    assert_eq!(Columns::presets().count(), 7);
}

#[test]
fn a_response_time_gives_the_completion() {
    let (events, _) = read(b"128166372000011719,synth,0,Write,7316073984,4096,3928\n").unwrap();
    assert_eq!(events[1].time_ns - events[0].time_ns, 392_800);
    assert_eq!(events[1].action, Action::Complete);
}

#[test]
fn ios_without_length_are_counted_and_left_out() {
    let (events, losses) = read(b"22,31536339,512,R,0.010449\n22,31536339,0,R,0.02\n").unwrap();
    assert_eq!((events.len(), losses.empty_ios), (1, 1));
}

#[test]
fn a_line_that_does_not_fit_is_refused_with_its_number() {
    let lines = "22,31536339,512,R,0.010449\n".repeat(30) + "22,x,512,R,0.02\n";
    let error = read(lines.as_bytes()).unwrap_err().to_string();
    assert_eq!(
        error,
        "test: line 31: this is not a line of such a table: \"22,x,512,R,0.02\" (expected columns as in spc)"
    );
}

#[test]
fn a_description_is_checked() {
    let wrong = |text: &str| Columns::parse(text).unwrap_err();
    assert_eq!(wrong("op=1:R/W,offset=2,size=3"), "there is no column for time (expected one)");
    assert_eq!(wrong("time=1:h"), "there is no column for op (expected one)");
    assert!(wrong("time").contains("expected NAME=COLUMN[:UNIT]"));
    assert!(wrong("time=1:h,op=2,offset=3,size=4").contains("\"h\": expected ns"));
    assert!(wrong("color=1").contains("expected time, response"));
}

#[test]
fn biosnoop_has_requests_with_their_latencies() {
    let text = "Tracing block device I/O...\n\
                TIME(s)     COMM           PID    DISK    T SECTOR     BYTES  QUE(ms) LAT(ms)\n\
                0.000000    kworker/u72:1  13379  nvme1n1 W 1142400    4096      0.01    0.55\n\
                0.000771    my own sync    22177  nvme1n1 W 41963894   3072      0.11    0.47\n";
    let mut recording = recording(text);
    assert_eq!(*recording.format(), Format::Biosnoop);
    let mut events = Vec::new();
    while let Some(event) = recording.next_event().unwrap() {
        events.push(event);
    }
    let of =
        |action| events.iter().filter(|event| event.action == action).map(|event| event.time_ns).collect::<Vec<_>>();
    let (issued, completed) = (of(Action::Issue), of(Action::Complete));
    assert_eq!(
        [completed[0] - issued[0], completed[1] - issued[1], completed[1] - completed[0]],
        [550_000, 470_000, 771_000]
    );
    assert_eq!(issued[1] - of(Action::Insert)[1], 110_000);
    assert_eq!((recording.names().get(22_177), events[0].sector), (Some("my own sync"), 1_142_400));
}

/// Of all events: action, time in nanoseconds, sector and bytes.
fn events(text: &str) -> Vec<(Action, u64, u64, u32)> {
    let mut recording = recording(text);
    assert_eq!(*recording.format(), Format::Biosnoop);
    let mut events = Vec::new();
    while let Some(event) = recording.next_event().unwrap() {
        events.push((event.action, event.time_ns, event.sector, event.bytes));
    }
    events
}

#[test]
fn biosnoop_is_known_without_its_header_and_iosnoop_by_its_own() {
    let rows = "0.000000    kworker/u72:1  13379  nvme1n1 W 1142400    4096      0.55\n\
                0.000771    my own sync    22177  nvme1n1 R 41963894   3072      0.47\n";
    let header = "TIME(s)     COMM           PID    DISK    T SECTOR     BYTES  LAT(ms)\n";
    assert_eq!(events(rows), events(&format!("{header}{rows}")));
    let iosnoop = "Tracing block I/O. Ctrl-C to end\n\
                   STARTs         ENDs           COMM         PID    TYPE DEV      BLOCK        BYTES     LATms\n\
                   0.000000       0.000550       kworker/u72:1 13379 WS  259,1    1142400      4096       0.55\n\
                   0.000301       0.001321       my own sync  22177  R    259,1    41963894     3072       0.47\n";
    let times = |all: Vec<(Action, u64, u64, u32)>| {
        let first = all[0].1;
        all.into_iter()
            .map(|(action, time_ns, sector, bytes)| (action, time_ns - first, sector, bytes))
            .collect::<Vec<_>>()
    };
    assert_eq!(times(events(iosnoop)), times(events(rows)));
}

#[test]
fn tables_may_have_semicolons_decimal_commas_a_header_and_a_byte_order_mark() {
    let plain = "1.5,R,4096,8192\n2.25,W,0,512\n";
    let with_all = "\u{feff}time;operation;offset;size\n1,5;R;4096;8192\n2,25;W;0;512\n";
    let columns = Columns::parse("time=1:s,op=2:R/W,offset=3,size=4").unwrap();
    let events = |text: &str| {
        let input = Input::new("test", Box::new(Cursor::new(text.to_owned()))).unwrap();
        let mut recording = Recording::table(input, &columns).unwrap();
        std::iter::from_fn(|| recording.next_event().unwrap())
            .map(|event| (event.time_ns, event.sector, event.bytes))
            .collect::<Vec<_>>()
    };
    assert_eq!(events(plain), events(with_all));
    assert_eq!(events(plain)[0], (1_500_000_000, 8, 8192));
}

#[test]
fn formats_that_compress_and_are_not_read_are_refused_with_what_reads_them() {
    for (head, tool) in [(&b"\xfd7zXZ\0\0\x04"[..], "xz"), (b"BZh91AY&SY", "bzip2")] {
        let error = read(head).unwrap_err().to_string();
        assert!(error.contains(&format!("is compressed by {tool}")) && error.contains("-dc test"), "{error}");
    }
}

#[test]
fn prose_between_lines_of_biosnoop_is_refused_with_its_line() {
    let text = "TIME(s)     COMM           PID    DISK    T SECTOR     BYTES   LAT(ms)\n\
                0.000004    supervise      1950   xvda1   W 13092560   4096       0.74\n\
                \n\
                This includes the PID.\n";
    let error = read(text.as_bytes()).unwrap_err().to_string();
    assert!(
        error.starts_with("test: line 4: this is not a line of biosnoop: \"This includes the PID.\" (expected "),
        "{error}"
    );
}
