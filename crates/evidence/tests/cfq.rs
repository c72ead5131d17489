//! Compares cfq with all its recordings: decisions, slice lengths, and the kernel's own messages.

use std::path::PathBuf;

use hoistway_evidence::conform::{Consistent, Matches, Score, cfq, replay};
use hoistway_trace::iosched::Trace;

fn recordings() -> Vec<(String, Trace)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("traces/cfq");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).expect("the recordings").map(|file| file.expect("a file").path()).collect();
    files.sort();
    let open = |path: PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        (name, Trace::open(path).unwrap_or_else(|error| panic!("{error}")))
    };
    files.into_iter().map(open).collect()
}

#[test]
fn every_decision_refusal_and_slice_length_is_the_kernels() {
    let mut pooled = Score::default();
    let mut slices = Matches::default();
    for (name, trace) in recordings() {
        let outcome = replay(&trace).expect("cfq can be replayed");
        assert!(outcome.score.is_perfect(), "{name}: {:?}", outcome.mismatches);
        pooled.add(&outcome.score);
        let compared = outcome.slices.expect("cfq's slices are compared");
        assert_eq!(compared.identical, compared.total, "{name}: slice lengths");
        slices.add(compared);
    }
    assert_eq!((pooled.all, pooled.dispatches), (29_855, 29_855));
    assert_eq!(pooled.null, Matches { total: 44_775, identical: 44_775 });
    assert_eq!(pooled.hard.total, pooled.hard.identical);
    assert_eq!(pooled.switch.total, pooled.switch.identical);
    assert_eq!(slices, Matches { total: 2_750, identical: 2_750 });
}

#[test]
fn cfq_driven_freely_matches_the_kernels_decisions_and_messages() {
    for (name, trace) in recordings() {
        let recording = Consistent::check(&trace).expect("a kernel does not contradict itself");
        let difference = cfq::first_difference(&recording);
        assert!(difference.is_none(), "{name}:\n{}", difference.unwrap_or_default());
    }
}

#[test]
fn a_replay_continues_from_the_kernels_decision_after_a_different_one() {
    let mut pooled = Score::default();
    for (name, mut trace) in recordings().into_iter().step_by(5) {
        trace.header.tunables.insert("fifo_expire_sync".to_owned(), 20);
        let score = replay(&trace).expect("cfq can be replayed").score;
        let decisions = trace.events.iter().filter(|event| event.kind.name() == "dispatch").count() as u64;
        assert_eq!(score.questions, decisions, "{name}");
        pooled.add(&score);
    }
    // At the start of a turn it now often decides differently, but the state from which it continues is right.
    assert!(!pooled.is_perfect() && 10 * pooled.all > 9 * pooled.dispatches, "{pooled:?}");
}
