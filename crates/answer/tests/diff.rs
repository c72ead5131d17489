//! Diffs of two documents: which differences count as changes.

use hoistway_answer::diff::{Diff, FigureChange, Outcome};
use hoistway_answer::document::{LatencySummary, OperationSummary};
use hoistway_answer::{Analysis, ResultsDocument};
use hoistway_measure::{Operation, Settling};
use proptest::prelude::*;
use serde_json::json;

fn summary(iops: f64) -> OperationSummary {
    let ns = (1e9 / iops) as u64;
    OperationSummary {
        operation: Operation::Read,
        ios: 5000,
        bytes: 5000 * 4096,
        iops,
        bytes_per_second: iops * 4096.0,
        lat_ns: LatencySummary { mean: 1e9 / iops, p50: ns, p99: ns, p99_9: ns, max: ns, ..LatencySummary::default() },
        distribution: Default::default(),
        outstanding: None,
        series: Default::default(),
        settling: Settling::Settled,
    }
}

/// Runs of one scheduler and job, as pairs of seed and I/Os a second.
fn document(runs: &[(u64, f64)]) -> ResultsDocument {
    let run = |(repeat, (seed, iops)): (usize, &(u64, f64))| {
        json!({
            "scheduler": "none", "front": "mq", "tunables": {}, "repeat": repeat, "seed": seed, "simulated_seconds": 1.0,
            "simulated_ios": 5000, "wall_seconds": 0.0, "cpu_us_per_io": null,
            "jobs": [{"name": "a", "job": 0, "processes": 1, "operations": [summary(*iops)]}],
        })
    };
    serde_json::from_value(json!({
        "format": "hoistway-results/2", "version": "0.1.0", "command": "", "job_file": "a.fio", "job_text": "[a]\nrw=read\n",
        "device": {"name": "null", "read_ns": 5}, "kernel": "6.18", "cpus": 1, "hw_queues": 1, "nr_requests": 2, "host": "instant",
        "seed": runs[0].0, "seeds": runs.iter().map(|(seed, _)| *seed).collect::<Vec<_>>(), "wall_seconds": 0.0,
        "simulated_ios": 30, "partial": false, "runs": runs.iter().enumerate().map(run).collect::<Vec<_>>(),
    }))
    .unwrap()
}

fn change(before: &[(u64, f64)], after: &[(u64, f64)], figure: &str) -> FigureChange {
    let diff = Diff::of(&Analysis::of(&document(before)), &Analysis::of(&document(after)));
    diff.figures.into_iter().find(|change| change.figure.to_string() == format!("a:read:{figure}")).unwrap()
}

const BASE: [(u64, f64); 3] = [(1, 1000.0), (2, 1100.0), (3, 900.0)];

fn times(factors: [f64; 3], seeds: u64) -> Vec<(u64, f64)> {
    BASE.iter().zip(factors).map(|((seed, iops), factor)| (seed + seeds, iops * factor)).collect()
}

#[test]
fn paired_runs_detect_what_independent_samples_cannot() {
    let five_percent = [1.05, 1.051, 1.049];
    let paired = change(&BASE, &times(five_percent, 0), "iops");
    assert_eq!((paired.outcome, paired.paired), (Outcome::Better, true));
    assert!((paired.change.unwrap().factor - 1.05).abs() < 0.001);
    let unpaired = change(&BASE, &times(five_percent, 10), "iops");
    assert_eq!((unpaired.outcome, unpaired.paired), (Outcome::WithinNoise, false));
    assert!((unpaired.change.unwrap().factor - 1.05).abs() < 0.001 && unpaired.change.unwrap().low.unwrap() < 1.0);
    let far = change(&BASE, &times([3.0; 3], 10), "iops");
    assert_eq!(far.outcome, Outcome::Better);
}

#[test]
fn less_latency_is_better_and_fewer_ios_are_worse() {
    let slower = times([0.9, 0.901, 0.899], 0);
    assert_eq!(change(&BASE, &slower, "iops").outcome, Outcome::Worse);
    assert_eq!(change(&BASE, &slower, "mean").outcome, Outcome::Worse);
    assert_eq!(change(&slower, &BASE, "mean").outcome, Outcome::Better);
    assert!(change(&BASE, &slower, "mean").change.unwrap().factor < 1.0);
}

#[test]
fn small_uncertain_and_single_changes_are_not_claimed() {
    assert_eq!(change(&BASE, &times([1.01, 1.011, 1.009], 0), "iops").outcome, Outcome::Small);
    assert_eq!(change(&BASE, &times([1.5, 0.9, 1.1], 0), "iops").outcome, Outcome::WithinNoise);
    assert_eq!(change(&BASE[..1], &times([2.0; 3], 0)[..1], "iops").outcome, Outcome::NoInterval);
    assert_eq!(change(&BASE, &times([0.5; 3], 0), "max").outcome, Outcome::NoInterval, "of maxima it is not known");
    assert_eq!(change(&BASE, &BASE, "iops").outcome, Outcome::Same);
}

#[test]
fn changed_inputs_are_reported_with_their_location() {
    let before = document(&BASE);
    let mut after = before.clone();
    after.device["read_ns"] = 9.into();
    after.kernel = "7.2".to_owned();
    after.job_text = "[a]\nrw=write\n".to_owned();
    after.runs.iter_mut().for_each(|run| run.tunables = serde_json::Map::from_iter([("x".to_owned(), 1.into())]));
    let diff = Diff::of(&Analysis::of(&before), &Analysis::of(&after));
    let shown: Vec<(&str, String, String)> =
        diff.inputs.iter().map(|one| (one.input.as_str(), one.before.to_string(), one.after.to_string())).collect();
    let expected = [
        ("job_text, line 2", "\"rw=read\"", "\"rw=write\""),
        ("device.read_ns", "5", "9"),
        ("kernel", "\"6.18\"", "\"7.2\""),
        ("none.x", "null", "1"),
    ];
    assert_eq!(shown, expected.map(|(input, before, after)| (input, before.to_owned(), after.to_owned())));
    assert!(Diff::of(&Analysis::of(&before), &Analysis::of(&before)).inputs.is_empty());
    after.runs.iter_mut().for_each(|run| run.scheduler = "kyber".to_owned());
    let other = Diff::of(&Analysis::of(&before), &Analysis::of(&after));
    assert_eq!((other.only_before, other.only_after), (vec!["none".to_owned()], vec!["kyber".to_owned()]));
    assert!(other.figures.is_empty());
}

proptest! {
    #[test]
    fn swapping_the_documents_inverts_every_change(
        before in prop::collection::vec(500.0..2000.0_f64, 1..5), after in prop::collection::vec(500.0..2000.0_f64, 1..5),
        shift in 0_u64..6,
    ) {
        let seeded = |values: &[f64], from: u64| -> Vec<(u64, f64)> { (from..).zip(values.iter().copied()).collect() };
        let (before, after) = (document(&seeded(&before, 0)), document(&seeded(&after, shift)));
        let (there, back) = (Diff::of(&Analysis::of(&before), &Analysis::of(&after)), Diff::of(&Analysis::of(&after), &Analysis::of(&before)));
        for (there, back) in there.figures.iter().zip(&back.figures) {
            let opposite = match there.outcome {
                Outcome::Better => Outcome::Worse,
                Outcome::Worse => Outcome::Better,
                other => other,
            };
            prop_assert_eq!(back.outcome, opposite);
            let factors = [there, back].map(|one| one.change.unwrap().factor);
            prop_assert!((factors[0] * factors[1] - 1.0).abs() < 1e-9);
        }
    }
}
