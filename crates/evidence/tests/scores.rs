//! The scores reached on the recordings of the simpler schedulers, which must not fall. bfq, cfq and kyber have tests
//! of their own.

use std::path::PathBuf;

use hoistway_evidence::conform::{Score, replay};
use hoistway_trace::iosched::Trace;

/// The pooled score of a folder, and the recordings in it that are not perfect.
fn scores(folder: &str) -> (Score, Vec<String>, usize) {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("traces").join(folder);
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).expect("the recordings").map(|file| file.expect("a file").path()).collect();
    files.sort();
    let (mut pooled, mut imperfect) = (Score::default(), Vec::new());
    for file in &files {
        let trace = Trace::open(file.clone()).unwrap_or_else(|error| panic!("{error}"));
        let outcome = replay(&trace).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        if !outcome.score.is_perfect() {
            imperfect.extend(file.file_name().map(|name| name.to_string_lossy().into_owned()));
        }
        pooled.add(&outcome.score);
    }
    (pooled, imperfect, files.len())
}

#[test]
fn every_decision_of_mq_deadline_deadline_and_noop_is_the_kernels() {
    for (folder, recordings, dispatches) in [("mq-deadline", 27, 15_316), ("deadline", 36, 9_308), ("noop", 15, 3_617)]
    {
        let (score, imperfect, files) = scores(folder);
        assert_eq!((imperfect, files), (Vec::new(), recordings), "{folder}");
        assert_eq!((score.all, score.dispatches), (dispatches, dispatches), "{folder}");
    }
}

#[test]
fn none_misses_one_decision_where_four_cpus_overlap() {
    let (score, imperfect, files) = scores("none");
    assert_eq!((imperfect, files), (vec!["none-4cpu-1hwq.jsonl.gz".to_owned()], 9));
    assert_eq!((score.all, score.dispatches), (2_856, 2_857));
    assert_eq!(score.hard.total, score.hard.identical);
}

#[test]
fn schedulers_that_are_changed_under_load_decide_as_the_kernels_did() {
    let (score, imperfect, _) = scores("switch");
    assert_eq!((imperfect, score.all, score.dispatches), (Vec::new(), 800, 800));
}

#[test]
fn later_and_earlier_kernels_decide_as_their_rows_of_the_table_say() {
    // For each folder: correct decisions, all decisions, refusals, and the recordings that are not perfect.
    let missed = |kernel: &str, scheduler: &str| {
        let (score, imperfect, files) = scores(&format!("{kernel}/{scheduler}"));
        assert_eq!((score.hard.total, score.switch.total > 0), (score.hard.identical, true), "{kernel}, {scheduler}");
        (files, score.dispatches - score.all, score.null.total - score.null.identical, imperfect)
    };
    let four_cpus = vec!["none-4cpu-1hwq.jsonl.gz".to_owned()];
    for (scheduler, of_7_3, of_6_12) in [("bfq", 26, 5), ("mq-deadline", 18, 5), ("kyber", 10, 3), ("switch", 2, 1)] {
        assert_eq!(missed("linux-7.3", scheduler), (of_7_3, 0, 0, Vec::new()), "7.3, {scheduler}");
        assert_eq!(missed("linux-6.12", scheduler), (of_6_12, 0, 0, Vec::new()), "6.12, {scheduler}");
    }
    assert_eq!(missed("linux-5.10", "bfq"), (3, 0, 0, Vec::new()));
    // Decisions that four CPUs make at the same time.
    assert_eq!(missed("linux-7.3", "none"), (6, 2, 1, four_cpus));
    assert_eq!(missed("linux-6.12", "none"), (3, 0, 0, Vec::new()));
}
