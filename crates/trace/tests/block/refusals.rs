//! What is no recording, or a bad one.

use proptest::prelude::*;

use crate::support::{bytes, read};

const TEXTS: [&str; 6] = [
    "ftrace-6.1.txt.gz",
    "ftrace-6.18.txt.gz",
    "linux-6.1.blkparse.txt.gz",
    "perf-script.txt.gz",
    "synthetic.blkparse.txt.gz",
    "trace-cmd-report.txt.gz",
];

fn refused(bytes: &[u8]) -> String {
    read(bytes).expect_err("this is no recording").to_string()
}

#[test]
fn every_beginning_of_a_recording_is_read_or_refused() {
    for name in ["smp.merged.bin.gz", "synthetic.blkparse.txt.gz", "ftrace-6.18.txt.gz"] {
        let whole = bytes(name);
        let whole = &whole[..whole.len().min(4000)];
        let expected = read(whole).unwrap().0;
        for length in 1..whole.len() {
            match read(&whole[..length]) {
                Ok((events, _)) => assert!(
                    events.len() <= expected.len() && expected.starts_with(&events[..events.len().saturating_sub(1)])
                ),
                Err(error) => assert_eq!(error.to_string().lines().count(), 1, "{error}"),
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Detection looks at the first lines, so a letter there may make another format of it, too.
    #[test]
    fn text_with_other_letters_is_read_or_refused(
        which in 0usize..TEXTS.len(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), prop::sample::select(b"()[]<>,+-.:#= 09aNF\n".to_vec())), 1..8),
    ) {
        let mut text = bytes(TEXTS[which]);
        text.truncate(20_000);
        for (place, letter) in changes {
            let place = place.index(text.len());
            text[place] = letter;
        }
        if let Err(error) = read(&text) {
            prop_assert_eq!(error.to_string().lines().count(), 1, "{}", error);
        }
    }
}

/// How every line of a text is altered.
#[derive(Clone, Copy, Debug)]
enum Alteration {
    /// This word of it is gone.
    WithoutWord(usize),
    /// One letter stands for another.
    Replaced(u8, u8),
}

impl Alteration {
    fn of(self, text: &[u8]) -> Vec<u8> {
        if let Alteration::Replaced(from, to) = self {
            return text.iter().map(|&letter| if letter == from { to } else { letter }).collect();
        }
        let Alteration::WithoutWord(which) = self else { return text.to_vec() };
        let line = |line: &[u8]| {
            let words = line.split(|letter| *letter == b' ').filter(|word| !word.is_empty()).enumerate();
            let left: Vec<&[u8]> = words.filter(|(at, _)| *at != which).map(|(_, word)| word).collect();
            left.join(&b' ')
        };
        text.split(|letter| *letter == b'\n').map(line).collect::<Vec<_>>().join(&b'\n')
    }
}

/// The number of the first line that names an event of the kernel's, or begins with a device.
fn first_that_looks_like_an_event(text: &[u8], is_blkparse: bool) -> Option<usize> {
    let text = String::from_utf8_lossy(text);
    let is_one = |line: &str| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let is_device = |word: &&str| {
            word.split_once(',')
                .is_some_and(|(major, minor)| major.parse::<u16>().is_ok() && minor.parse::<u32>().is_ok())
        };
        let is_name = |word: &&str| {
            ["block_bio_queue:", "block_getrq:", "block_rq_insert:", "block_rq_issue:", "block_rq_complete:"]
                .iter()
                .any(|name| word.strip_prefix("block:").unwrap_or(word) == *name)
        };
        if is_blkparse { words.len() > 4 && words.first().is_some_and(is_device) } else { words.iter().any(is_name) }
    };
    text.lines().position(is_one).map(|at| at + 1)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Text in which no line can be read is refused with the first line that looks like an event, and why it is none.
    #[test]
    fn text_that_is_altered_line_by_line_is_read_or_refused_with_a_line(
        which in 0usize..TEXTS.len(),
        alteration in prop_oneof![
            (0usize..9).prop_map(Alteration::WithoutWord),
            (prop::sample::select(b"[]()-,.+/0".to_vec()), prop::sample::select(b"[]()-,.+/x ".to_vec()))
                .prop_map(|(from, to)| Alteration::Replaced(from, to)),
        ],
    ) {
        let mut text = bytes(TEXTS[which]);
        text.truncate(20_000);
        let text = alteration.of(&text);
        let first = first_that_looks_like_an_event(&text, TEXTS[which].contains("blkparse"));
        match read(&text) {
            Ok((events, _)) => prop_assert!(!events.is_empty() || first.is_none()),
            Err(error) => {
                let error = error.to_string();
                prop_assert!(error.contains(" (expected "), "{}", error);
                prop_assert!(first.is_none() || error.starts_with("test: line "), "{}", error);
            }
        }
    }
}

#[test]
fn an_event_without_its_task_is_no_section_of_a_job_file() {
    let text = Alteration::WithoutWord(0).of(&bytes("trace-cmd-report.txt.gz"));
    assert!(refused(&text).starts_with("test: line "), "{}", refused(&text));
    assert!(refused(b"[reader]\nrw=read\n").contains("this is a fio job file"));
}

#[test]
fn a_line_without_one_of_its_fields_is_refused_with_what_it_lacks() {
    let cases = [
        (
            "fio 12 1.000000: block:block_bio_queue: 8,0 R 8 + 8 [fio]",
            "line 2: there is no CPU in brackets before the event",
        ),
        (
            "fio [000] 1.000000: block:block_bio_queue: 8,0 R 8 + 8 [fio]",
            "there is no task with its pid before the CPU",
        ),
        ("fio 12 [000] block:block_bio_queue: 8,0 R 8 + 8 [fio]", "there is no time between the CPU and the event"),
        ("fio 12 [000] 1.000000: block:block_bio_queue: R 8 + 8", "what follows the event is not what it has"),
        ("8,0 0 1 100 Q R 8 + 8 [fio]", "line 2: there is no time in seconds with decimals"),
        ("8,0 x 1 0.1 100 Q R 8 + 8 [fio]", "there is no CPU behind the device"),
        ("8,0 0 1 0.1 Q R 8 + 8 [fio]", "there is no pid behind the time"),
        ("8,0 0 1 0.1 100 Q R", "what follows the pid is no action with what it has"),
    ];
    for (line, what) in cases {
        let error = refused(format!("# a remark\n{line}\n").as_bytes());
        assert!(error.contains(what) && error.contains(" (expected "), "{line}: {error}");
    }
}

#[test]
fn the_fields_of_perf_script_name_the_thread() {
    let line = |head: &str| format!("{head} [001] 1.000000: block:block_bio_queue: 8,0 R 8 + 8 [fio]\n");
    for head in ["fio 123/124", "fio  124", "fio-124", "123/124", "  124", "a b 3 123/124"] {
        let events = read(line(head).as_bytes()).unwrap().0;
        assert_eq!((events.len(), events[0].pid, events[0].cpu), (1, 124, 1), "{head}");
    }
}

#[test]
fn plugs_alone_do_not_hide_that_no_io_can_be_read() {
    let text =
        "fio-1 [000] ..... 1.000000: block_plug: [fio]\nfio-1 [000] ..... 1.000000: block_bio_queue: R 8 + 8 [fio]\n";
    assert!(refused(text.as_bytes()).starts_with("test: line 2: what follows the event is not what it has"));
    let good = "fio-1 [000] ..... 1.000000: block_bio_queue: 8,0 R 8 + 8 [fio]\n";
    let (events, losses) = read(format!("{text}{good}").as_bytes()).unwrap();
    assert_eq!((events.len(), losses.lost_events), (2, 1));
}

#[test]
fn a_request_of_ftrace_without_its_command_is_no_event() {
    let line = |command: &str| {
        format!("fio-1 [000] ..... 1.000000: block_rq_issue: 8,0 R 4096 {command} 8 + 8 be,0,4 [fio]\n")
    };
    let all = format!("{}{}{}", line("()"), line(")"), line(")("));
    assert_eq!(read(all.as_bytes()).unwrap().0.len(), 1);
}

#[test]
fn a_record_that_is_cut_off_is_counted() {
    let whole = bytes("smp.merged.bin.gz");
    assert_eq!(read(&whole[..whole.len() - 5]).unwrap().1.truncated, 1);
}

#[test]
fn an_unknown_block_recording_is_refused_with_what_was_expected() {
    assert_eq!(
        refused(b"hello\n"),
        "test: this is no recording of block I/O (expected blktrace or vSCSI records, text of blkparse, ftrace, trace-cmd, perf or biosnoop, or a table of a public set, plain or compressed)"
    );
    assert!(refused(b"").starts_with("test: the file is empty (expected "));
}

#[test]
fn an_invalid_magic_number_is_refused_with_its_offset() {
    let mut whole = bytes("smp.merged.bin.gz");
    let first = 48 + usize::from(u16::from_le_bytes([whole[46], whole[47]]));
    whole[first] ^= 0x55;
    let error = refused(&whole);
    assert!(
        error.starts_with(&format!("test: record 2 at byte {first}: this is not a record: its magic number is ")),
        "{error}"
    );
}

#[test]
fn two_recordings_in_one_file_are_refused() {
    let whole = bytes("smp.merged.bin.gz");
    let twice = [&whole[..], &whole[..]].concat();
    assert!(refused(&twice).contains("the sequence number goes from"), "{}", refused(&twice));
}

#[test]
fn time_that_goes_back_on_one_cpu_is_refused_with_the_record() {
    let mut whole = bytes("smp.merged.bin.gz");
    // The last record, to the begin of the recording.
    let last = whole.len() - 48;
    assert_eq!(whole[last + 46..], [0, 0], "the last record has no payload");
    whole[last + 8..last + 16].copy_from_slice(&1000u64.to_le_bytes());
    let error = refused(&whole);
    assert!(error.contains("the time goes back by ") && error.starts_with("test: record "), "{error}");
}

#[test]
fn an_invalid_line_between_events_is_refused_with_its_number() {
    let text = "  8,0    1        1     0.000000000   100  Q   R 0 + 24 [a]\nhello\u{1b}[0m\n  8,0    1        2     0.100000000   100  Q   R 0 + 24 [a]\n";
    assert_eq!(
        refused(text.as_bytes()),
        "test: line 2: this is not an event: \"hello?[0m\" (expected DEVICE CPU SEQUENCE TIME PID ACTION RWBS ..., as blkparse prints without -f)"
    );
}

#[test]
fn unknown_actions_are_counted() {
    let mut whole = bytes("smp.merged.bin.gz");
    let last = whole.len() - 48;
    whole[last + 28] = 99;
    assert_eq!(read(&whole).unwrap().1.unknown_actions, 1);
}

#[test]
fn known_files_that_are_no_recordings_are_refused_by_name() {
    let cases = [
        ("fio version 3 iolog\n0 f add\n", "an I/O log of fio"),
        ("500, 1200, 0, 0, 0\n1000, 1208, 1, 0, 0\n", "a log of fio's latencies"),
        ("0, 58738, 0, 4096, 0x2003\n", "a log of fio's latencies"),
        ("{\n  \"fio version\" : \"fio-3.33\",\n", "results of fio"),
        ("; a comment\n[global]\nrw=read\n", "a fio job file"),
        ("; perf record -e block:block_rq_issue: too\n[global]\nrw=read\n", "a fio job file"),
        ("==================== All Devices ====================\n", "output of btt"),
        ("Linux 6.18\n\nDevice r/s rkB/s w/s wkB/s\nsda 1 2 3 4\n", "a summary, which has no individual I/Os"),
    ];
    for (text, what) in cases {
        let error = refused(text.as_bytes());
        assert!(error.contains(what) && error.contains(" (expected "), "{error}");
    }
}
