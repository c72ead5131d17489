//! Properties of verdicts that hold for any figures.

use crate::support;

use hoistway_answer::document::{Aspect, Decision, REVISION, RecordedStream, RecordingSummary, Run, Verdict};
use hoistway_answer::{Analysis, Figure, FigureName, ResultsDocument, judge};
use hoistway_measure::Operation;
use proptest::prelude::*;

use support::{Figures, Measured, NAMES, document, syncs, verdict};

fn measured() -> impl Strategy<Value = Measured> {
    // Few distinct values, so that ties and clear differences are frequent.
    let latency = prop::sample::select(vec![1_000_000_u64, 1_010_000, 1_030_000, 1_500_000, 4_000_000, 90_000_000]);
    (
        prop::sample::select(vec![1000.0, 1015.0, 1100.0, 3000.0]),
        [latency.clone(), latency.clone(), latency.clone(), latency],
    )
        .prop_map(|(iops, [mean, p50, p99, max])| Measured { iops, mean: mean as f64, p50, p99, max })
}

fn figures() -> impl Strategy<Value = Figures> {
    // A scheduler's repeats are similar, as in real runs.
    (2..5_usize, 2..5_usize).prop_flat_map(|(schedulers, repeats)| {
        let jittered =
            (measured(), measured(), prop::collection::vec(0.99..1.01_f64, repeats)).prop_map(|(a, b, jitter)| {
                let times = |one: Measured, by: f64| Measured {
                    iops: one.iops * by,
                    mean: one.mean * by,
                    p50: (one.p50 as f64 * by) as u64,
                    p99: (one.p99 as f64 * by) as u64,
                    max: (one.max as f64 * by) as u64,
                };
                jitter.iter().map(|by| [times(a, *by), times(b, *by)]).collect::<Vec<_>>()
            });
        prop::collection::vec(jittered, schedulers)
    })
}

/// Whether one variant is better than another in each figure of each job: in the mean by more than the smallest effect, and in
/// every single repeat.
fn is_better_at_everything(document: &ResultsDocument, one: &str, other: &str) -> bool {
    let analysis = Analysis::of(document);
    let find = |label: &str| analysis.variants.iter().position(|variant| variant.label == label).unwrap();
    let (one, other) = (find(one), find(other));
    analysis.jobs.iter().flat_map(|job| &job.operations).all(|operation| {
        Figure::ALL.into_iter().all(|figure| {
            let (one, other) = (operation.row(one).unwrap(), operation.row(other).unwrap());
            one.samples().zip(other.samples()).all(|(one, other)| {
                let ratio = one.figure(figure) / other.figure(figure);
                if figure.higher_is_better() { ratio > 1.03 } else { ratio < 0.97 }
            })
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_stored_document_is_judged_as_it_was(figures in figures(), is_recorded: bool, is_too_lossy: bool) {
        let mut document = document(&figures);
        document.revision = REVISION;
        document.recording = is_recorded.then(|| Box::new(RecordingSummary { is_too_lossy, ..Default::default() }));
        let judged = document.judged();
        prop_assert_eq!(judged.verdicts.is_empty(), is_recorded && is_too_lossy);
        let read = ResultsDocument::from_json(&serde_json::to_string(&judged).unwrap()).unwrap();
        let (statistics, verdicts) = judge(&read);
        prop_assert_eq!(verdicts, judged.verdicts);
        prop_assert_eq!(Some(statistics), judged.statistics);
    }

    #[test]
    fn the_recommended_scheduler_is_not_worse_than_another_at_everything(figures in figures()) {
        let document = document(&figures);
        let recommended = verdict(&document).recommended;
        for name in NAMES.iter().take(figures.len()).filter(|name| **name != recommended) {
            // Few repeats that vary have wide intervals: only differences that all repeats share are certain.
            let agree = figures.iter().all(|repeats| repeats.len() > 2);
            prop_assert!(!agree || !is_better_at_everything(&document, name, &recommended), "{name} beats {recommended}");
        }
    }

    #[test]
    fn only_judged_figures_differing_twofold_between_repeats_show_both_ends(
        iops in prop::collection::vec(prop::collection::vec(100.0..1000.0_f64, 2..5), 1..4),
    ) {
        let repeats = iops.iter().map(Vec::len).min().unwrap();
        let latency = |iops: f64| (1e9 / iops) as u64;
        let of = |iops: f64| Measured { iops, mean: 1e9 / iops, p50: latency(iops), p99: latency(iops), max: latency(iops) };
        let of_scheduler = |values: &Vec<f64>| values.iter().take(repeats).map(|iops| [of(*iops); 2]).collect();
        let figures: Figures = iops.iter().map(of_scheduler).collect();
        let document = document(&figures);
        let verdict = verdict(&document);
        let mut labels = vec![verdict.reference.clone()];
        if verdict.decision == Decision::Change {
            labels.push(verdict.recommended.clone());
        }
        for label in labels {
            let scheduler = NAMES.iter().position(|name| *name == label).unwrap();
            // Both jobs have the same figures.
            let judged = |[of, _]: &[Measured; 2]| match verdict.focus[0].figure.figure {
                Figure::Iops => Some(of.iops),
                Figure::Mean => Some(of.mean),
                Figure::P99 => Some(of.p99 as f64),
                _ => None,
            };
            let values: Vec<f64> = figures[scheduler].iter().map(|of| judged(of).expect("a figure of the test")).collect();
            let (least, most) = values.iter().fold((f64::INFINITY, 0.0_f64), |(a, b), of| (a.min(*of), b.max(*of)));
            let spread = verdict.spreads.iter().find(|spread| spread.scheduler == label);
            prop_assert_eq!(spread.map(|spread| (spread.least, spread.most)), (most >= least * 2.0).then_some((least, most)));
        }
    }

    #[test]
    fn the_order_of_the_runs_changes_nothing(figures in figures(), seed in any::<u64>()) {
        let document = document(&figures);
        let mut shuffled = document.clone();
        // Sorted by a hash of their content: any other order will do.
        shuffled.runs.sort_by_key(|run| (run.seed + 1).wrapping_mul(seed | 1).rotate_left(run.scheduler.len() as u32));
        let (one, other) = (verdict(&document), verdict(&shuffled));
        prop_assert_eq!((one.decision, one.recommended), (other.decision, other.recommended));
    }

    #[test]
    fn slower_time_for_all_changes_nothing(figures in figures(), by in prop::sample::select(vec![2_u64, 10, 100])) {
        let slower = figures.iter().map(|repeats| repeats.iter().map(|jobs| jobs.map(|one| Measured {
            iops: one.iops / by as f64,
            mean: one.mean * by as f64,
            p50: one.p50 * by,
            p99: one.p99 * by,
            max: one.max * by,
        })).collect()).collect();
        let (one, other) = (verdict(&document(&figures)), verdict(&document(&slower)));
        prop_assert_eq!((one.decision, one.recommended), (other.decision, other.recommended));
    }

    #[test]
    fn a_copy_of_a_scheduler_under_another_name_is_never_better_than_it(figures in figures()) {
        let mut twice = figures.clone();
        twice.truncate(3);
        twice.push(twice[0].clone());
        let verdict = verdict(&document(&twice));
        prop_assert_ne!(verdict.recommended.as_str(), NAMES[twice.len() - 1], "the copy of the reference");
    }

    #[test]
    fn more_runs_of_the_same_never_take_a_verdict_back_for_a_worse_one(figures in figures()) {
        let many = figures.iter().map(|repeats| [&repeats[..], &repeats[..]].concat()).collect();
        let (few, many) = (verdict(&document(&figures)), verdict(&document(&many)));
        let gain = |verdict: &Verdict| {
            let of = verdict.candidates.iter().find(|candidate| candidate.scheduler == verdict.recommended);
            of.and_then(|candidate| candidate.balance).map_or(1.0, |gain| gain.factor)
        };
        prop_assert!(gain(&many) > 0.98 && gain(&few) > 0.98, "no variant is recommended that is worse in what counts");
    }

    #[test]
    fn the_recommendation_gains_more_than_noise_and_the_smallest_effect(figures in figures()) {
        let verdict = verdict(&document(&figures));
        let recommended = verdict.candidates.iter().find(|candidate| candidate.scheduler == verdict.recommended);
        prop_assert_eq!(recommended.is_some(), verdict.decision == Decision::Change);
        if let Some(recommended) = recommended {
            let balance = recommended.balance.unwrap();
            prop_assert!(balance.low.unwrap() > 1.0 && balance.factor >= 1.02, "{balance:?}");
        }
        // None where the balance is beyond the noise and no figure shows it.
        prop_assert!(verdict.certainty.is_none_or(|share| (0.0..=1.0).contains(&share)));
    }
}

#[test]
fn small_random_reads_go_before_commits_these_before_streams_and_writes_come_last() {
    let one = Measured { iops: 1000.0, mean: 1e6, p50: 1_000_000, p99: 2_000_000, max: 3_000_000 };
    let mut document = document(&vec![vec![[one; 2]; 3]; 2]);
    let focus = |document: &ResultsDocument| verdict(document).focus[0].figure.to_string();
    assert_eq!(focus(&document), "reads:read:p99");
    let rest = RecordedStream { name: "reads".to_owned(), is_rest: true, ..RecordedStream::default() };
    document.recording = Some(Box::new(RecordingSummary { streams: vec![rest], ..RecordingSummary::default() }));
    assert_eq!(focus(&document), "writes:write:iops", "the rest of a recording is no party");
    document.recording = None;
    let each = |document: &mut ResultsDocument, change: fn(&mut Run)| document.runs.iter_mut().for_each(change);
    each(&mut document, |run| {
        run.jobs[0].random = Some(false);
        run.jobs[1].operations.push(syncs(100.0, 1));
    });
    assert_eq!(focus(&document), "writes:sync:p99");
    each(&mut document, |run| {
        run.jobs[1].operations.pop();
    });
    assert_eq!(focus(&document), "reads:read:p99", "small reads one behind the other");
    each(&mut document, |run| run.jobs[0].operations[0].bytes *= 64);
    assert_eq!(focus(&document), "reads:read:bandwidth");
    each(&mut document, |run| run.jobs[0].operations.clear());
    assert_eq!(focus(&document), "writes:write:iops");
    each(&mut document, |run| run.jobs[1].operations[0].ios = 900);
    document.focuses =
        vec![FigureName { job: "writes".into(), operation: Operation::Write, figure: Figure::Max }.into()];
    assert_eq!(focus(&document), "writes:write:max");
}

#[test]
fn a_longer_p99_that_only_the_runs_together_show_is_reported_and_decides_nothing() {
    let before = Measured { iops: 10.0, mean: 9e7, p50: 90_000_000, p99: 130_000_000, max: 140_000_000 };
    let after = Measured { iops: 17.0, mean: 6e7, p50: 40_000_000, p99: 220_000_000, ..before };
    let stream = Measured { iops: 75.0, mean: 5e7, p50: 50_000_000, p99: 90_000_000, max: 100_000_000 };
    let longer_p99 = |ios: u64, p99: u64| {
        let after = Measured { p99, ..after };
        let mut document = document(&vec![vec![[before, stream]; 4], vec![[after, stream]; 4]]);
        for run in &mut document.runs {
            let reads = &mut run.jobs[0].operations[0];
            (reads.ios, reads.bytes) = (ios, ios * 4096);
            run.jobs[1].operations[0].bytes *= 64;
        }
        let verdict = verdict(&document);
        let losses = verdict.candidates[0].losses.iter();
        let p99 = losses.filter(|loss| loss.job == "reads" && loss.aspect == Aspect::Figure(Figure::P99));
        (verdict.recommended, p99.map(|loss| (loss.factor, loss.weighs)).next())
    };
    let (recommended, loss) = longer_p99(300, 220_000_000);
    assert_eq!(recommended, "none");
    let (factor, weighs) = loss.expect("1,200 I/Os show a 99th percentile");
    assert!((factor - 220.0 / 130.0).abs() < 1e-9 && !weighs, "{factor} {weighs}");
    assert_eq!(longer_p99(300, 131_000_000).1, None, "within the smallest effect");
    assert_eq!(longer_p99(200, 220_000_000).1, None, "800 I/Os in all");
    assert_eq!(longer_p99(100, 220_000_000).1, None, "each run's is its slowest I/O");
}
