//! Compares bfq with 31 recordings of Linux 6.18: every decision, and the internal state line by line.

use std::path::Path;

use hoistway_evidence::conform::bfq::replay_with_lines;
use hoistway_evidence::conform::{Consistent, Matches, Score};
use hoistway_trace::iosched::Trace;

#[test]
fn every_recorded_decision_and_refusal_is_met() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("traces/bfq");
    let (mut pooled, mut exact, mut recordings, mut lines) = (Score::default(), 0, 0, Matches::default());
    for entry in std::fs::read_dir(folder).expect("the recordings are here") {
        let path = entry.expect("the folder can be read").path();
        let trace = Trace::open(&path).expect("the recording is whole");
        let recording = Consistent::check(&trace).expect("a kernel does not contradict itself");
        let (outcome, differences) = replay_with_lines(&recording);
        assert!(outcome.score.is_perfect(), "{}: {:?}", path.display(), outcome.mismatches);
        pooled.add(&outcome.score);
        recordings += 1;
        exact += usize::from(differences.is_empty());
        lines.add(outcome.state_lines.expect("lines were compared"));
    }
    assert_eq!((recordings, pooled.dispatches), (31, 19_122));
    // The remaining differences are within the microseconds that a recording does not show: edges of ticks, and the
    // exit of a process.
    assert!(exact >= 26, "{exact} recordings without any difference");
    assert!(lines.total - lines.identical <= 10, "{lines} lines");
}
