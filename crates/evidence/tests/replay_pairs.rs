//! Predicts the figures under one scheduler from a recording under another.

use std::path::Path;

use hoistway_evidence::replay_pairs::{Figure, Prediction, predictions};

fn all() -> Vec<Prediction> {
    predictions(&Path::new(env!("CARGO_MANIFEST_DIR")).join("replay-pairs"), |_| true).unwrap()
}

fn median_error(
    all: &[Prediction],
    is_wanted: impl Fn(&Prediction) -> bool,
    pick: impl Fn(&Prediction) -> Figure,
) -> f64 {
    let mut errors: Vec<f64> = all.iter().filter(|of| is_wanted(of)).map(|of| pick(of).error().abs()).collect();
    errors.sort_by(f64::total_cmp);
    errors[errors.len() / 2]
}

#[test]
fn schedulers_are_predicted_from_a_recording_under_another_one() {
    let all = all();
    assert_eq!(all.len(), 45, "five streams, three schedulers predicted from each of three");
    let is_known = |of: &Prediction| of.from != of.to && !of.is_hidden;
    for (name, limit, pick) in [
        ("IOPS", 0.06, (|of: &Prediction| of.iops) as fn(&Prediction) -> Figure),
        ("mean", 0.10, |of| of.mean_us),
        ("p99", 0.45, |of| of.p99_us),
    ] {
        let error = median_error(&all, is_known, pick);
        assert!(error < limit, "{name}: {error}");
        let own = median_error(&all, |of| of.from == of.to, pick);
        assert!(own < limit, "{name} under their own scheduler: {own}");
    }
}

#[test]
fn readings_of_a_recording_with_hidden_depth_enclose_the_real_outcome() {
    let all = all();
    let hidden: Vec<&Prediction> = all.iter().filter(|of| of.from == "none" && of.to != "none").collect();
    assert!(hidden.len() == 10 && hidden.iter().all(|of| of.is_hidden));
    let enclosed = hidden.iter().filter(|of| of.iops.encloses(0.05)).count();
    assert!(enclosed >= 9, "{enclosed} of 10");
}
