//! Compares kyber with the recorded kernel: every decision, every percentile, and every change of a depth.

use std::path::Path;

use hoistway_evidence::conform::{Matches, ReplayOutcome, replay};
use hoistway_trace::iosched::Trace;

fn outcome(name: &str) -> ReplayOutcome {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("traces/kyber").join(name).with_extension("jsonl.gz");
    let trace = Trace::open(&file).unwrap_or_else(|error| panic!("{error}"));
    replay(&trace).expect("kyber can be replayed")
}

fn all_identical(count: u64) -> Matches {
    Matches { total: count, identical: count }
}

/// All recordings, with the kernel's numbers of dispatches, refusals, percentiles read and depths changed.
const RECORDINGS: [(&str, u64, u64, u64, u64); 14] = [
    ("ky-2hwq", 1000, 0, 0, 0),
    ("ky-4cpu-1hwq", 1000, 0, 2, 0),
    ("ky-buffered", 578, 0, 0, 0),
    ("ky-default-d32-fast", 750, 0, 0, 0),
    ("ky-discard", 620, 0, 0, 0),
    ("ky-flush", 450, 0, 0, 0),
    ("ky-merges", 562, 0, 2, 0),
    ("ky-mix-d1", 660, 0, 0, 0),
    ("ky-read-throttle", 1198, 0, 4, 0),
    ("ky-reads-good-writes-bad", 1300, 0, 5, 1),
    ("ky-tight-both", 1200, 0, 4, 0),
    ("ky-wr-throttled-2cpu", 1708, 1320, 16, 2),
    ("ky-wr-throttled-deep", 1857, 1655, 17, 2),
    ("ky-write-throttle", 1298, 0, 4, 0),
];

#[test]
fn with_the_recorded_depths_every_decision_and_refusal_is_the_kernels() {
    for (name, dispatches, refusals, ..) in RECORDINGS {
        let outcome = outcome(name);
        let score = outcome.score;
        assert_eq!((score.dispatches, score.all), (dispatches, dispatches), "{name}");
        assert_eq!(score.null, all_identical(refusals), "{name}");
        assert!(score.is_perfect() && outcome.mismatches.is_empty(), "{name}");
        // Every token that the kernel picked was free here, too.
        assert_eq!(outcome.tokens, all_identical(dispatches), "{name}");
        assert_eq!(outcome.unknown_events, 0, "{name}");
    }
}

#[test]
fn its_own_controller_reads_the_kernels_percentiles_and_finds_its_depths() {
    for (name, dispatches, refusals, percentiles, depths) in RECORDINGS {
        let own = outcome(name).own_controller.expect("kyber's own controller was replayed");
        assert_eq!(own.latencies, all_identical(percentiles), "{name}");
        assert_eq!(own.depth_changes, all_identical(depths), "{name}");
        assert_eq!((own.score.all, own.score.null), (dispatches, all_identical(refusals)), "{name}");
    }
}

#[test]
fn every_bio_that_the_kernel_merged_into_a_staged_request_merges() {
    for (name, merges) in [("ky-merges", 482), ("ky-buffered", 8), ("ky-wr-throttled-deep", 2)] {
        assert_eq!(outcome(name).merges, all_identical(merges), "{name}");
    }
}
