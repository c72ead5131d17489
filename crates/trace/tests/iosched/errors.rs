//! Each way in which a file can be wrong has its own error, with the line it is on.

use std::io::{self, Read, Write};

use flate2::{Compression, write::GzEncoder};
use hoistway_trace::iosched::{Limits, Problem, Trace};

use crate::small::{fault, header_with, read, recording};

const PLUG: &str = r#"{"t":5,"e":"plug","cpu":0,"pid":7}"#;
const QUEUE: &str =
    r#"{"t":5,"e":"queue","cpu":0,"pid":7,"bio":3,"op":"W","rwbs":"WS","sector":8,"n":16,"hint":"I","prio":[2,4]}"#;

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

/// The second line's problem when `QUEUE` has `from` replaced by `to`.
fn queue_with(from: &str, to: &str) -> String {
    assert!(QUEUE.contains(from));
    let (line, problem) = fault(recording(&[&QUEUE.replace(from, to)]));
    assert_eq!(line, Some(2));
    problem.to_string()
}

#[test]
fn a_missing_file_is_named() {
    let error = Trace::open("no/such/recording").unwrap_err();
    assert!(matches!(error.problem, Problem::Io(_)));
    assert!(error.to_string().starts_with("no/such/recording: cannot read it: "), "{error}");
}

#[test]
fn an_error_names_file_and_line_and_what_was_expected() {
    let error = read(recording(&[PLUG, &QUEUE.replace(r#""bio":3,"#, "")])).unwrap_err();
    let text = "small.jsonl:3: expected the field `bio`, which every `queue` event has";
    assert_eq!(error.to_string(), text);
}

#[test]
fn an_empty_file_is_no_recording() {
    assert!(matches!(fault(""), (None, Problem::Empty)));
    assert!(matches!(fault(gzip("")), (None, Problem::Empty)));
}

#[test]
fn foreign_formats_are_named_in_the_refusal() {
    let mut blktrace = b"\x07tae".to_vec();
    blktrace.resize(3 << 20, 0);
    let cases: &[(&[u8], &str)] = &[
        (&blktrace, "a binary blktrace file"),
        (b"eat\x07\0\0\0\x01", "a binary blktrace file"),
        (b"fio version 2 iolog\n/dev/sda add\n", "a fio iolog"),
        (b"# tracer: nop\n#\n", "ftrace text"),
        (b"\x28\xb5\x2f\xfd\0", "zstd data (unpack it first)"),
        (b"  8,0    3        1     0.000000000   697  G   W 223490 + 8 [kjournald]\n", "plain text"),
        ("Zeit, Gr\u{f6}\u{df}e\n1,2\n".as_bytes(), "plain text"),
        (b"\x7fELF\x02\x01\x01", "binary data of an unknown kind"),
        (b"\xff\xfe\xfd", "binary data of an unknown kind"),
        (b"[{\"t\":0}]\n", "a JSON array"),
        (b"\n", "plain text"),
        (b"{\"t\":0,\"e\":\"queue\"}\n", "JSON without a `format` key"),
        (b"{\"format\":\"fio\"}\n", "\"format\":\"fio\""),
        (b"{\"format\":\"iosched-trace/2\"}\n", "the version \"iosched-trace/2\", which this reader does not know"),
        (&gzip("# tracer: nop\n"), "ftrace text"),
    ];
    for (bytes, expected) in cases {
        match fault(bytes) {
            (Some(1), Problem::Foreign { found }) => assert_eq!(&found, expected),
            other => panic!("{expected}: {other:?}"),
        }
    }
    let twice = gzip(&String::from_utf8_lossy(b"\x1f\x8bxx"));
    assert!(matches!(fault(twice), (Some(1), Problem::Foreign { .. })));
}

#[test]
fn a_gzip_file_that_was_cut_or_damaged_says_so() {
    let whole = gzip(&recording(&[PLUG; 500]));
    assert_eq!(read(&whole).expect("whole").events.len(), 500);
    // A file cut inside the magic number cannot be distinguished from any other.
    for cut in 2..whole.len() {
        assert!(matches!(fault(&whole[..cut]).1, Problem::TruncatedGzip), "cut at {cut} of {}", whole.len());
    }
    let mut damaged = whole.clone();
    let checksum = damaged.len() - 8;
    damaged[checksum] ^= 1;
    assert!(matches!(fault(&damaged).1, Problem::CorruptGzip(_)));
    let trailing = [&whole[..], b"trailing garbage"].concat();
    assert!(matches!(fault(trailing).1, Problem::CorruptGzip(_)));
}

#[test]
fn gzip_members_behind_each_other_are_one_recording() {
    let text = recording(&[PLUG; 20]);
    let (front, back) = text.split_at(text.len() / 2);
    let members = [gzip(front), gzip(back)].concat();
    assert_eq!(read(members).expect("two members").events.len(), 20);
}

#[test]
fn a_text_cut_inside_its_last_line_says_so() {
    let text = recording(&[PLUG, QUEUE]);
    let start = text.trim_end().rfind('\n').unwrap() + 1;
    for cut in start + 1..text.len() - 1 {
        assert!(matches!(fault(&text[..cut]), (Some(3), Problem::TruncatedLine)), "cut at {cut}");
    }
    assert!(matches!(fault(&header_with(0, "")[..90]), (Some(1), Problem::TruncatedLine)));
}

#[test]
fn a_text_cut_between_lines_has_too_few_events() {
    let text = recording(&[PLUG, PLUG, PLUG]);
    let cut = text.trim_end().rfind('\n').unwrap() + 1;
    assert!(matches!(fault(&text[..cut]), (Some(1), Problem::EventCount { expected: 3, found: 2 })));
    let longer = format!("{text}{PLUG}\n");
    assert!(matches!(fault(longer), (Some(1), Problem::EventCount { expected: 3, found: 4 })));
}

#[test]
fn an_event_before_its_predecessor_is_refused() {
    let earlier = PLUG.replace("\"t\":5", "\"t\":4");
    assert!(matches!(
        fault(recording(&[PLUG, PLUG, &earlier])),
        (Some(4), Problem::TimeBackwards { t: 4, previous: 5 })
    ));
}

#[test]
fn lines_and_files_have_a_limit() {
    let long = format!("{{\"t\":5,\"e\":\"{}\"}}", "x".repeat(1 << 20));
    assert!(matches!(fault(recording(&[PLUG, &long])), (Some(3), Problem::LineTooLong { limit: 0x10_0000 })));
    let long_header = header_with(0, &format!(",\"notes\":\"{}\"", "x".repeat(1 << 20)));
    assert!(matches!(fault(long_header), (Some(1), Problem::LineTooLong { .. })));

    let limits = |line_bytes, events| Limits { line_bytes, events, ..Limits::default() };
    let text = recording(&[PLUG; 3]);
    let longest = text.lines().map(str::len).max().unwrap();
    assert!(Trace::read_limited(text.as_bytes(), "small.jsonl", limits(longest, 3)).is_ok());
    let error = Trace::read_limited(text.as_bytes(), "small.jsonl", limits(longest - 1, 3)).unwrap_err();
    assert!(matches!((error.line, error.problem), (Some(1), Problem::LineTooLong { .. })));
    let error = Trace::read_limited(text.as_bytes(), "small.jsonl", limits(longest, 2)).unwrap_err();
    assert!(matches!((error.line, error.problem), (Some(4), Problem::TooManyEvents { limit: 2 })));
    let bytes = text.len() as u64;
    assert!(Trace::read_limited(text.as_bytes(), "", Limits { bytes, ..Limits::default() }).is_ok());
    let fewer = Limits { bytes: bytes - 1, ..Limits::default() };
    let error = Trace::read_limited(text.as_bytes(), "", fewer).unwrap_err();
    assert!(matches!((error.line, error.problem), (Some(4), Problem::TooManyBytes { .. })));
}

#[test]
fn a_line_that_is_no_event_is_refused() {
    for line in ["", "null", "[]", "7", "{", "{}", "plug", "{\"t\":5}", "{\"e\":\"plug\"}", "{\"t\":5,\"e\":7}"] {
        assert!(matches!(fault(recording(&[PLUG, line, PLUG])), (Some(3), Problem::Json { .. })), "{line}");
    }
    let deep = "[".repeat(100_000);
    assert!(matches!(fault(recording(&[&deep])), (Some(2), Problem::Json { .. })));
}

#[test]
fn a_value_of_the_wrong_type_names_its_field() {
    let text = queue_with("\"sector\":8", "\"sector\":\"8\"");
    assert!(text.contains("field `sector`: invalid type: string \"8\", expected u64"), "{text}");
    let text = queue_with("\"n\":16", "\"n\":-16");
    assert!(text.contains("field `n`: invalid value: integer `-16`, expected u32"), "{text}");
    assert!(queue_with("[2,4]", "[2]").contains("field `prio`"));
    assert!(queue_with("\"n\":16", "\"n\":16,\"n\":17").contains("duplicate field `n`"));
}

#[test]
fn an_invalid_value_names_its_field_and_the_valid_values() {
    assert_eq!(queue_with("\"op\":\"W\"", "\"op\":\"Q\""), "field `op`: expected R, W, F or D, found `Q`");
    let found = "field `prio`: expected [class 0..3, level 0..7], found `[2,9]`";
    assert_eq!(queue_with("[2,4]", "[2,9]"), found);
    assert!(queue_with("\"WS\"", "\"R\"").starts_with("field `rwbs`: expected "));
    assert!(queue_with("\"I\"", "\"i\"").starts_with("field `hint`: expected "));
    assert!(queue_with("\"t\":5", "\"t\":5,\"cg\":\"/x\"").starts_with("field `cg`: expected a path of the header's"));
    let free = r#"{"t":5,"e":"free","cpu":0,"pid":7,"rq":1,"hctx":0,"ctx":0,"tag":-2,"stag":1}"#;
    assert!(matches!(fault(recording(&[free])).1, Problem::BadField { field: "tag", .. }));
    let bfq = r#"{"t":5,"e":"bfq","k":"busy","q":"queue"}"#;
    assert!(matches!(fault(recording(&[bfq])).1, Problem::BadField { field: "q", .. }));
}

#[test]
fn a_value_beyond_kernel_limits_names_its_range() {
    assert_eq!(queue_with("\"n\":16", "\"n\":8388608"), "field `n`: expected 0 to 8388607, found `8388608`");
    let sector = format!("\"sector\":{}", (1u64 << 54) - 15);
    let text = queue_with("\"sector\":8", &sector);
    assert!(text.starts_with("field `sector`: expected 0 to 18014398509481968, found "), "{text}");
    let text = queue_with("\"t\":5", "\"t\":3600000000001");
    assert_eq!(text, "field `t`: expected 0 to 3600000000000, found `3600000000001`");
    assert_eq!(queue_with("\"cpu\":0", "\"cpu\":2"), "field `cpu`: expected 0 to 1, found `2`");
    assert!(queue_with("\"pid\":7", "\"pid\":4194305").starts_with("field `pid`: expected 0 to 4194304, found "));
    assert!(queue_with("\"t\":5", "\"t\":5,\"j\":900001").starts_with("field `j`: expected 0 to 900000, found "));

    let refused = |line: &str| fault(recording(&[line])).1.to_string();
    let run = r#"{"t":5,"e":"run","cpu":0,"pid":7,"hctx":2}"#;
    assert_eq!(refused(run), "field `hctx`: expected 0 to 1, found `2`");
    let one_cpu = recording(&[&run.replace("2}", "1}")]).replace("\"cpus\":2", "\"cpus\":1");
    let idle = "a hardware queue without a CPU does nothing";
    assert_eq!(fault(one_cpu).1.to_string(), "field `hctx`: expected 0 to 0, found `1`", "{idle}");
    let asked = r#"{"t":5,"e":"dispatch","cpu":0,"pid":7,"asked":6,"j":0,"rq":null}"#;
    assert_eq!(refused(asked), "field `asked`: expected 0 to 5, found `6`");
    let queue = r#"{"t":5,"e":"bfq","k":"busy","q":"4294967295S"}"#;
    assert!(refused(queue).starts_with("field `q`: expected a queue name"));
    let latency = r#"{"t":5,"e":"kyber_latency","cpu":0,"pid":7,"domain":"READ","kind":"total","percentile":99,
        "bucket":0,"buckets":4,"samples":1}"#;
    assert_eq!(refused(&latency.replace('\n', "")), "field `bucket`: expected 1 to 8, found `0`");
}

#[test]
fn a_header_value_beyond_linux_limits_names_its_range() {
    let whole = header_with(0, "");
    for (key, replacement, expected) in [
        ("\"cpus\":2", "\"cpus\":0", "`cpus`: expected 1 to 8192"),
        ("\"hz\":250", "\"hz\":3", "`hz`: expected 24 to 10000"),
        ("\"nr_hw_queues\":2", "\"nr_hw_queues\":65535", "`queue.nr_hw_queues`: expected 1 to 2048"),
        ("\"queue_depth\":4", "\"queue_depth\":4294967295", "`queue.queue_depth`: expected 1 to 10240"),
        ("\"nr_requests\":64", "\"nr_requests\":0", "`queue.nr_requests`: expected 1 to 1048576"),
        ("\"max_sectors_kb\":1280", "\"max_sectors_kb\":4194304", "`queue.max_sectors_kb`: expected 1 to 4194303"),
        ("\"max_segments\":128", "\"max_segments\":0", "`queue.max_segments`: expected 1 to 65535"),
        ("\"rotational\":1", "\"rotational\":1,\"logical_block_size\":520", "a power of two from 512 to 65536"),
        ("\"a\":100", "\"a\":0", "`cgroups`: expected 1 to 10000"),
        ("\"pid\":7", "\"pid\":4194305", "`processes.pid`: expected 0 to 4194304"),
    ] {
        assert!(whole.contains(key), "{key}");
        let (line, problem) = fault(whole.replace(key, replacement));
        assert_eq!(line, Some(1), "{key}");
        assert!(problem.to_string().contains(expected), "{key}: {problem}");
    }
    let cgroups: Vec<String> = (0..1025).map(|number| format!("\"{number}\":100")).collect();
    let many = whole.replace("\"a\":100", &format!("\"a\":100,{}", cgroups.join(",")));
    assert_eq!(fault(many).1.to_string(), "field `cgroups`: expected 0 to 1024, found `1027`");
    let deep = whole.replace("\"a\":100", &format!("\"a\":100,\"{}\":100", "b/".repeat(3000)));
    assert!(fault(deep).1.to_string().starts_with("field `cgroups`: expected paths of at most 4096 bytes"));
}

#[test]
fn a_dispatch_without_a_result_is_not_taken_for_a_refusal() {
    let line = r#"{"t":5,"e":"dispatch","cpu":0,"asked":2,"queued":6,"j":3}"#;
    assert!(matches!(fault(recording(&[line])).1, Problem::MissingField { event: "dispatch", field: "rq" }));
}

#[test]
fn a_request_with_half_a_place_is_refused() {
    let line = QUEUE.replace("\"queue\"", "\"issue\"").replace("\"bio\"", "\"j\":0,\"hctx\":0,\"rq\"");
    assert!(matches!(fault(recording(&[&line])).1, Problem::MissingField { event: "issue", field: "ctx" }));
}

#[test]
fn a_header_without_a_required_key_is_refused() {
    let whole = header_with(0, "");
    for (key, replacement) in [
        ("\"kernel\":", "\"x\":"),
        ("\"scheduler\":", "\"x\":"),
        ("\"nr_requests\":", "\"x\":"),
        ("\"queue_depth\":", "\"x\":"),
        ("\"events\":", "\"x\":"),
        ("\"hz\":250", "\"hz\":0"),
        ("\"virtual\"", "\"lunar\""),
        ("\"write back\"", "\"sometimes\""),
        ("\"default 300\"", "\"heavy\""),
        ("[1,3]", "[9,9]"),
        ("\"cgroup\":\"/a/b\"", "\"cgroup\":\"/elsewhere\""),
        ("\"slice_idle\":8", "\"slice_idle\":\"8\""),
        ("\"rotational\":1", "\"rotational\":\"yes\""),
    ] {
        assert!(whole.contains(key), "{key}");
        let (line, problem) = fault(whole.replace(key, replacement));
        assert_eq!(line, Some(1), "{key}");
        let named = matches!(
            problem,
            Problem::Json { .. } | Problem::BadField { .. } | Problem::MissingField { event: "header", .. }
        );
        assert!(named, "{key}: {problem}");
    }
}

#[test]
fn an_error_of_the_source_is_passed_on() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("the cable came loose"))
        }
    }
    let text = header_with(1, "") + "\n";
    for start in ["", text.as_str()] {
        let error = Trace::read(start.as_bytes().chain(Broken), "cable").unwrap_err();
        assert!(error.to_string().contains("the cable came loose"), "{error}");
    }
}

#[test]
fn texts_of_a_hostile_file_do_not_flood_the_message() {
    let line = QUEUE.replace("\"W\"", &format!("\"{}\"", "\u{fc}".repeat(100_000)));
    assert!(fault(recording(&[&line])).1.to_string().len() < 1000);
    let line = PLUG.replace("0", &format!("\"{}\"", "\u{fc}".repeat(100_000)));
    assert!(fault(recording(&[&line])).1.to_string().len() < 1000);
}
