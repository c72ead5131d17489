//! Checks sentences against the table that they describe, over random tables.

use crate::support::judged;

use hoistway_answer::document::{CheckedLatency, DeviceCheck, JobDemand, JobSummary};
use hoistway_answer::verdict::verdicts;
use hoistway_answer::{Analysis, Figure, ResultsDocument};
use hoistway_measure::Operation;
use proptest::prelude::*;

use judged::{conclusion_text, job, three};

const NAMES: [&str; 3] = ["none", "kyber", "bfq"];
/// A figure that is better by this factor in every run must be reported as a gain.
const LARGE: f64 = 1.5;

/// Factors by which progress and latency of a job differ from those under the first scheduler, and the job's queue depth.
type Shape = (u32, [f64; 3], [f64; 3]);

fn shape() -> impl Strategy<Value = Shape> {
    let factor = || prop::sample::select(vec![0.05, 0.5, 0.97, 1.0, 1.0, 1.03, 2.0, 20.0]);
    (
        prop::sample::select(vec![1, 4, 32]),
        [Just(1.0).boxed(), factor().boxed(), factor().boxed()],
        [Just(1.0).boxed(), factor().boxed(), factor().boxed()],
    )
}

fn compared(shapes: &[Shape]) -> ResultsDocument {
    let jobs_of = |scheduler: usize| {
        let shapes = shapes.to_vec();
        move |repeat: f64| -> Vec<JobSummary> {
            let of = |(number, (depth, progress, latency)): (usize, &Shape)| {
                job(["a", "b", "c"][number], number as u32, 2e6 * latency[scheduler] * repeat, |summary| {
                    summary.demand = Some(JobDemand { depth: *depth, ..JobDemand::default() });
                    let of = &mut summary.operations[0];
                    of.iops = 500.0 * f64::from(*depth) * progress[scheduler] / repeat;
                    of.bytes_per_second = of.iops * 4096.0;
                })
            };
            shapes.iter().enumerate().map(of).collect()
        }
    };
    let jobs: Vec<_> = (0..3).map(jobs_of).collect();
    three(&[(NAMES[0], &jobs[0]), (NAMES[1], &jobs[1]), (NAMES[2], &jobs[2])])
}

/// Figures of the table by which a scheduler is better than the first in every run, by a large factor.
fn large_gains(document: &ResultsDocument, scheduler: usize) -> Vec<String> {
    let analysis = Analysis::of(document);
    let mut gains = Vec::new();
    for (job, operation) in analysis.jobs.iter().flat_map(|job| job.operations.iter().map(move |of| (job, of))) {
        for figure in [Figure::Iops, Figure::Mean, Figure::P99] {
            let (Some(one), Some(reference)) = (operation.row(scheduler), operation.row(0)) else { continue };
            let is_large = one.samples().zip(reference.samples()).all(|(one, reference)| {
                let ratio = one.figure(figure) / reference.figure(figure);
                if figure.higher_is_better() { ratio > LARGE } else { ratio < 1.0 / LARGE }
            });
            if is_large {
                gains.push(format!("{} {}", job.name, figure.name()));
            }
        }
    }
    gains
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn nothing_is_worth_a_change_only_where_nothing_gains_much(shapes in prop::collection::vec(shape(), 1..4)) {
        let document = compared(&shapes);
        let text = conclusion_text(&document);
        let gains = [1, 2].map(|scheduler| large_gains(&document, scheduler)).concat();
        prop_assert!(!text.contains("nothing here is worth a change") || gains.is_empty(), "{gains:?}: {text}");
    }

    #[test]
    fn a_scheduler_called_no_different_has_no_large_gains(shapes in prop::collection::vec(shape(), 1..4)) {
        let document = compared(&shapes);
        let text = conclusion_text(&document);
        for (scheduler, name) in NAMES.iter().enumerate().skip(1) {
            let listed = text.lines().find(|line| line.starts_with("No different by") && line.contains(name));
            let gains = large_gains(&document, scheduler);
            prop_assert!(listed.is_none() || gains.is_empty(), "{gains:?}: {text}");
        }
    }

    #[test]
    fn the_first_sentence_names_the_recommendation(shapes in prop::collection::vec(shape(), 1..4)) {
        let document = compared(&shapes);
        let verdict = verdicts(&Analysis::of(&document)).remove(0);
        let text = conclusion_text(&document);
        let first = text.lines().next().unwrap();
        let expected = match verdict.recommended.as_str() {
            "none" => ": keep none: ".to_owned(),
            other => format!(": change from none to {other}"),
        };
        prop_assert!(first.contains(&expected), "{text}");
    }

    #[test]
    fn what_is_further_ahead_and_not_recommended_is_told_with_what_it_loses(shapes in prop::collection::vec(shape(), 2..4)) {
        let document = compared(&shapes);
        let verdict = verdicts(&Analysis::of(&document)).remove(0);
        let text = conclusion_text(&document);
        let gain = |name: &str| {
            let candidate = verdict.candidates.iter().find(|one| one.scheduler == name);
            candidate.and_then(|one| one.gain).map_or(1.0, |gain| gain.factor)
        };
        let also = text.lines().find(|line| line.starts_with("Also better than")).unwrap_or_default();
        for candidate in verdict.candidates.iter().filter(|one| one.scheduler != verdict.recommended) {
            let name = candidate.scheduler.as_str();
            let is_further = gain(name) > 1.05 * gain(&verdict.recommended);
            let is_excused = candidate.losses.is_empty();
            prop_assert!(!also.contains(name) || !is_further || is_excused, "{name}: {text}");
        }
    }

    #[test]
    fn a_device_that_is_not_the_observed_one_gets_no_verdict_and_the_first_sentence_says_so(
        shapes in prop::collection::vec(shape(), 1..4),
        rows in prop::collection::vec((1.0..1000.0_f64, 0.01..100.0_f64), 1..4),
    ) {
        let mut document = compared(&shapes);
        let row = |(ios, factor): &(f64, f64)| CheckedLatency {
            job: "reads".to_owned(), operation: Operation::Read, ios: *ios, observed_ns: 1e6 * factor, model_ns: 1e6, model_ios: None,
        };
        let check = DeviceCheck {
            setup: 0, disk: "sda".to_owned(), under: "none".to_owned(), rows: rows.iter().map(row).collect(),
        };
        document.device_checks = vec![check];
        let all: f64 = rows.iter().map(|(ios, _)| ios).sum();
        let is_other = rows.iter().any(|(ios, factor)| ios * 20.0 >= all && (*factor >= 3.0 || factor.recip() >= 3.0));
        document.verdicts = verdicts(&Analysis::of(&document));
        prop_assert_eq!(document.verdicts.is_empty(), is_other);
        let text = conclusion_text(&document);
        let first = text.lines().next().unwrap();
        prop_assert_eq!(first.starts_with("No verdict for nvme-datacenter: it is not the observed device sda: "), is_other, "{}", text);
        for words in ["change from", ": keep ", "Judged by"] {
            prop_assert!(!is_other || !text.contains(words), "{}", text);
        }
        let page = hoistway_render::html::html(&Analysis::of(&document));
        prop_assert_eq!(page.contains("No verdict for nvme-datacenter"), is_other);
        prop_assert!(!is_other || !page.contains("change from none to"), "the page differs");
    }
}
