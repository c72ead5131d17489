//! Whatever the input, reading ends with a recording or an error, never with a panic.

use std::io::Read;
use std::sync::LazyLock;

use flate2::read::GzDecoder;
use hoistway_trace::iosched::Trace;
use proptest::prelude::*;

use crate::recordings::RECORDINGS;
use crate::small::{read, recording};

/// The first lines of recordings of both generations: together they hold nearly every kind of event.
static TEXTS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let names = ["bfq/bfq-flush", "cfq/cg-100-900", "kyber/ky-flush", "mq-deadline/dd-split-bs", "noop/merges-hdd"];
    names.map(|name| head_of(&bytes_of(name), 300)).to_vec()
});

fn bytes_of(name: &str) -> Vec<u8> {
    let path = format!("{RECORDINGS}/{name}.jsonl.gz");
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn head_of(gzipped: &[u8], lines: usize) -> Vec<u8> {
    let mut text = String::new();
    GzDecoder::new(gzipped).read_to_string(&mut text).unwrap();
    text.split_inclusive('\n').take(lines).collect::<String>().into_bytes()
}

/// A value that a JSON file may hold where another was expected.
fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("{}".to_owned()),
        Just("[0,0]".to_owned()),
        Just("1e400".to_owned()),
        any::<i64>().prop_map(|number| number.to_string()),
        any::<u64>().prop_map(|number| number.to_string()),
        "[A-Z0-9]{0,4}".prop_map(|text| format!("\"{text}\"")),
    ]
}

/// A key of the format.
fn key() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "cpu",
        "pid",
        "bio",
        "rq",
        "op",
        "rwbs",
        "hint",
        "sector",
        "n",
        "prio",
        "hctx",
        "ctx",
        "tag",
        "stag",
        "j",
        "q",
        "k",
        "at",
        "nr",
        "explicit",
        "by",
        "batch",
        "head",
        "absorbed",
        "from_sector",
        "from_n",
        "asked",
        "token",
        "domain",
        "kind",
        "percentile",
        "bucket",
        "buckets",
        "samples",
        "depth",
        "msg",
        "text",
        "cg",
        "flushseq",
    ])
}

fn kind() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "queue",
        "split",
        "getrq",
        "sleeprq",
        "plug",
        "unplug",
        "backmerge",
        "frontmerge",
        "insert",
        "rqmerge",
        "run",
        "runend",
        "dispatch",
        "issue",
        "requeue",
        "complete",
        "sample",
        "finish",
        "free",
        "kyber_latency",
        "kyber_adjust",
        "kyber_throttled",
        "bfq",
        "bfq_idle_timer",
        "mark",
        "exit",
        "msg",
        "other",
    ])
}

proptest! {
    #[test]
    fn random_bytes_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        prop_assert!(read(&bytes).is_err());
    }

    #[test]
    fn random_bytes_behind_the_gzip_magic_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        let gzip_header = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
        prop_assert!(read([&gzip_header[..], &bytes].concat()).is_err());
    }

    #[test]
    fn random_text_as_an_event_never_panics(lines in prop::collection::vec("\\PC{0,60}", 0..5)) {
        let lines: Vec<_> = lines.iter().map(String::as_str).collect();
        let _ = read(recording(&lines));
    }

    #[test]
    fn events_with_any_values_never_panic(
        kind in kind(),
        fields in prop::collection::btree_map(key(), value(), 0..40),
    ) {
        let fields: String = fields.iter().map(|(key, value)| format!(",\"{key}\":{value}")).collect();
        let _ = read(recording(&[&format!("{{\"t\":0,\"e\":\"{kind}\"{fields}}}")]));
    }

    #[test]
    fn changed_recordings_never_panic(
        which in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut text = which.get(&TEXTS).clone();
        for (place, byte) in changes {
            let place = place.index(text.len());
            text[place] = byte;
        }
        let _ = read(&text);
    }

    #[test]
    fn cut_recordings_are_refused(which in any::<prop::sample::Index>(), at in any::<prop::sample::Index>()) {
        let text = which.get(&TEXTS);
        prop_assert!(read(&text[..at.index(text.len())]).is_err());
    }

    #[test]
    fn cut_or_changed_gzip_files_never_panic(
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        cut in any::<bool>(),
    ) {
        static SMALL: LazyLock<Vec<u8>> = LazyLock::new(|| bytes_of("noop/discard"));
        let mut bytes = SMALL.clone();
        let at = at.index(bytes.len());
        if cut {
            bytes.truncate(at);
            prop_assert!(Trace::read(&bytes[..], "cut").is_err());
        } else {
            bytes[at] = byte;
            let _ = Trace::read(&bytes[..], "changed");
        }
    }
}
