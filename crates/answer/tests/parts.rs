//! The check of a recommendation on parts of a recording's time.

use hoistway_answer::document::{Decision, Outcome, PartsCheck, SeriesSummary};
use hoistway_answer::{Figure, ResultsDocument};
use hoistway_measure::Operation;
use proptest::prelude::*;

use crate::support::{Measured, document, verdict};

/// Reads whose mean latency falls from 10 ms to 7 ms under the second scheduler, with these latencies in the parts.
fn with_parts(parts: &[u64; 10]) -> ResultsDocument {
    let of = |mean: f64| Measured { iops: 1000.0, mean, p50: mean as u64, p99: mean as u64, max: mean as u64 };
    let (slow, fast) = ([of(1e7), of(1e7)], [of(7e6), of(1e7)]);
    let mut document = document(&vec![vec![slow; 3], vec![fast; 3]]);
    document.verdicts = vec![verdict(&document)];
    assert_eq!((document.verdicts[0].decision, &*document.verdicts[0].recommended), (Decision::Change, "none"));
    for run in &mut document.runs {
        let is_fast = run.scheduler == "none";
        for job in &mut run.jobs {
            for operation in &mut job.operations {
                let mean_lat_ns: Vec<u64> = if is_fast { parts.to_vec() } else { vec![10_000_000; 10] };
                operation.series = SeriesSummary { interval_seconds: 1.0, ios: vec![100; 10], mean_lat_ns, rest: None };
            }
        }
    }
    document
}

fn check(parts: &[u64; 10]) -> PartsCheck {
    let ios = |job: &str, operation: Operation| u64::from(job == "reads" && operation == Operation::Read) * 1234;
    PartsCheck::of(&with_parts(parts), ios).expect("a change is recommended")
}

#[test]
fn a_gain_in_a_single_part_may_be_chance() {
    let mut parts = [10_000_000; 10];
    parts[4] = 1_000_000;
    let check = check(&parts);
    assert!(check.change.factor > 1.2 && !check.is_beyond_chance, "{check:?}");
}

#[test]
fn less_than_the_smallest_effect_is_not_beyond_chance() {
    let check = check(&[9_900_000; 10]);
    assert!(check.change.low.unwrap() > 1.0 && !check.is_beyond_chance, "{check:?}");
}

#[test]
fn a_change_that_chance_explains_is_withdrawn() {
    let mut parts = [10_000_000; 10];
    parts[4] = 1_000_000;
    let mut document = with_parts(&parts);
    let one = check(&parts);
    let of_mean = document.verdicts[0].focus[0].figure.figure == Figure::Mean;
    assert_eq!(one.withdraws(&document.verdicts[0]), of_mean);
    // The same document, judged by the figure that the parts measure.
    document.verdicts[0].focus[0].figure = one.figure.clone();
    one.correct(&mut document.verdicts[0]);
    let verdict = &document.verdicts[0];
    assert_eq!((verdict.decision, &verdict.recommended), (Decision::Keep, &verdict.reference));
    assert!(verdict.candidates.iter().all(|one| one.outcome != Outcome::Better), "{verdict:?}");
    let gained = check(&[7_000_000; 10]);
    let mut document = with_parts(&[7_000_000; 10]);
    document.verdicts[0].focus[0].figure = gained.figure.clone();
    gained.correct(&mut document.verdicts[0]);
    assert_eq!(document.verdicts[0].decision, Decision::Change);
}

#[test]
fn a_percentile_is_not_withdrawn_for_its_mean() {
    let mut parts = [10_000_000; 10];
    parts[4] = 1_000_000;
    let mut document = with_parts(&parts);
    document.verdicts[0].focus[0].figure.figure = Figure::P99;
    check(&parts).correct(&mut document.verdicts[0]);
    assert_eq!(document.verdicts[0].decision, Decision::Change);
}

#[test]
fn nothing_is_checked_if_nothing_is_recommended() {
    let mut document = with_parts(&[7_000_000; 10]);
    document.verdicts[0].decision = Decision::Keep;
    assert_eq!(PartsCheck::of(&document, |_, _| 0), None);
    document.verdicts.clear();
    assert_eq!(PartsCheck::of(&document, |_, _| 0), None);
}

proptest! {
    /// The order of the parts does not matter.
    #[test]
    fn a_gain_in_all_parts_is_beyond_chance(mut parts in prop::array::uniform10(6_000_000_u64..8_000_000), turn in 0usize..10) {
        let one = check(&parts);
        prop_assert!(one.is_beyond_chance && one.parts == 10 && one.ios == 1234, "{:?}", one);
        let (low, high) = (one.change.low.unwrap(), one.change.high.unwrap());
        prop_assert!(low < one.change.factor && one.change.factor < high);
        parts.rotate_left(turn);
        let other = check(&parts);
        prop_assert!((one.change.factor - other.change.factor).abs() < 1e-9);
    }
}
