//! The check of a recommendation on parts of a recording's time.

use hoistway_answer::document::{Decision, Outcome, PartsCheck, SeriesSummary, Verdict};
use hoistway_answer::{Figure, FigureName, WeightedFigure};
use hoistway_measure::Operation;
use proptest::prelude::*;

use crate::support::{Measured, document, verdict};

/// Reads whose mean latency falls from 10 ms to 7 ms under the second scheduler, judged by this figure, with these latencies in the parts.
fn judged(figure: Figure, fast: f64, parts: &[u64; 10]) -> Verdict {
    let of = |mean: f64| Measured { iops: 1000.0, mean, p50: mean as u64, p99: mean as u64, max: mean as u64 };
    let (slow, fast) = ([of(1e7), of(1e7)], [of(fast), of(1e7)]);
    let mut document = document(&vec![vec![slow; 3], vec![fast; 3]]);
    document.recording = Some(Box::default());
    let figure = FigureName { job: "reads".to_owned(), operation: Operation::Read, figure };
    document.focuses = vec![WeightedFigure { figure, weight: 1.0 }];
    for run in &mut document.runs {
        let is_fast = run.scheduler == "none";
        for job in &mut run.jobs {
            for operation in &mut job.operations {
                let mean_lat_ns: Vec<u64> = if is_fast { parts.to_vec() } else { vec![10_000_000; 10] };
                operation.series = SeriesSummary { interval_seconds: 1.0, ios: vec![100; 10], mean_lat_ns, rest: None };
            }
        }
    }
    verdict(&document)
}

fn check(parts: &[u64; 10]) -> PartsCheck {
    judged(Figure::P99, 7e6, parts).parts.expect("a change is recommended")
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
    let withdrawn = judged(Figure::Mean, 7e6, &parts);
    assert_eq!((withdrawn.decision, &withdrawn.recommended), (Decision::Keep, &withdrawn.reference));
    assert!(withdrawn.candidates.iter().all(|one| one.outcome != Outcome::Better), "{withdrawn:?}");
    assert_eq!(judged(Figure::Mean, 7e6, &[7_000_000; 10]).decision, Decision::Change);
}

#[test]
fn a_percentile_is_not_withdrawn_for_its_mean() {
    let mut parts = [10_000_000; 10];
    parts[4] = 1_000_000;
    assert_eq!(judged(Figure::P99, 7e6, &parts).decision, Decision::Change);
}

#[test]
fn nothing_is_checked_if_nothing_is_recommended() {
    let kept = judged(Figure::Mean, 1e7, &[7_000_000; 10]);
    assert_eq!((kept.decision, kept.parts), (Decision::Keep, None));
}

proptest! {
    /// The order of the parts does not matter.
    #[test]
    fn a_gain_in_all_parts_is_beyond_chance(mut parts in prop::array::uniform10(6_000_000_u64..8_000_000), turn in 0usize..10) {
        let one = check(&parts);
        prop_assert!(one.is_beyond_chance && one.parts == 10, "{:?}", one);
        let (low, high) = (one.change.low.unwrap(), one.change.high.unwrap());
        prop_assert!(low < one.change.factor && one.change.factor < high);
        parts.rotate_left(turn);
        let other = check(&parts);
        prop_assert!((one.change.factor - other.change.factor).abs() < 1e-9);
    }
}
