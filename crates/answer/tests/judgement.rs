//! Verdicts on figures that are clear, and on figures that are uncertain.

use crate::support;

use hoistway_answer::document::{Aspect, Candidate, Decision, LatencySummary, Outcome, Run, Shift, Verdict};
use hoistway_answer::{Analysis, Figure, ResultsDocument};
use support::{Figures, Measured, document, verdict};

/// Factors by which reads and writes are slower than under the reference.
type Slower = [f64; 2];

const ONCE: Measured = Measured { iops: 10_000.0, mean: 1e6, p50: 1_000_000, p99: 4_000_000, max: 9_000_000 };
/// Factors by which three repeats differ.
const REPEATS: [f64; 3] = [1.0, 1.01, 0.995];

/// Three repeats of reads and writes under the reference and others.
fn compared(others: &[Slower]) -> ResultsDocument {
    let slower = |by: f64| Measured {
        iops: ONCE.iops / by,
        mean: ONCE.mean * by,
        p50: (ONCE.p50 as f64 * by) as u64,
        p99: (ONCE.p99 as f64 * by) as u64,
        max: (ONCE.max as f64 * by) as u64,
    };
    let repeats = |by: &Slower| REPEATS.map(|repeat| by.map(|by| slower(by * repeat))).to_vec();
    let figures: Figures = [[1.0; 2]].iter().chain(others).map(repeats).collect();
    document(&figures)
}

/// The document with a change applied to each run.
fn each(mut document: ResultsDocument, change: impl Fn(&mut Run)) -> ResultsDocument {
    document.runs.iter_mut().for_each(change);
    document
}

fn of<'v>(verdict: &'v Verdict, scheduler: &str) -> &'v Candidate {
    verdict.candidates.iter().find(|candidate| candidate.scheduler == scheduler).unwrap()
}

fn listed(shifts: &[Shift]) -> Vec<(&str, Aspect)> {
    shifts.iter().map(|shift| (shift.job.as_str(), shift.aspect)).collect()
}

#[test]
fn the_best_wins_unless_indistinguishable_from_one_that_loses_less() {
    let clear = verdict(&compared(&[[0.25, 1.05], [0.8, 1.0]]));
    assert_eq!((clear.decision, clear.recommended.as_str()), (Decision::Change, "none"));
    let alike = verdict(&compared(&[[0.5, 1.05], [0.5, 1.0]]));
    assert_eq!((alike.decision, alike.recommended.as_str()), (Decision::Change, "kyber"));
}

#[test]
fn clear_losses_chance_and_no_difference_are_distinguished() {
    let outcomes = |document: &ResultsDocument| {
        let verdict = verdict(document);
        assert_eq!((verdict.decision, verdict.recommended.as_str()), (Decision::Keep, "mq-deadline"));
        ["none", "kyber"].map(|scheduler| of(&verdict, scheduler).outcome)
    };
    let mut document = compared(&[[1.3, 1.0], [1.01, 1.0]]);
    assert_eq!(outcomes(&document), [Outcome::Worse, Outcome::NoDifference]);
    // The second repeat contradicts the first.
    let reads = |document: &mut ResultsDocument, repeat: u32, p99| {
        let mut runs = document.runs.iter_mut();
        let run = runs.find(|run| run.scheduler == "none" && run.repeat == repeat).unwrap();
        run.jobs[0].operations[0].lat_ns.p99 = p99;
    };
    reads(&mut document, 0, 30_000_000);
    reads(&mut document, 1, 1_000_000);
    assert_eq!(outcomes(&document), [Outcome::WithinNoise, Outcome::NoDifference]);
}

#[test]
fn bulk_work_has_half_a_vote_beside_a_job_that_waits() {
    let outcome = |slower| of(&verdict(&compared(&[slower])), "none").outcome;
    assert_eq!(outcome([0.5, 3.0]), Outcome::Better);
    assert_eq!(outcome([0.5, 4.1]), Outcome::Outweighed);
    assert_eq!(outcome([1.05, 0.1]), Outcome::Outweighed, "no gain of bulk work outvotes a loss of those that wait");
}

#[test]
fn a_loss_that_may_be_chance_does_not_outweigh_a_gain_that_is_certain() {
    let mut document = compared(&[[0.5, 1.0]]);
    // Bulk work almost stops in one of three runs: the balance is better, but within the noise.
    document.runs.iter_mut().filter(|run| run.scheduler == "none" && run.repeat == 1).for_each(|run| {
        run.jobs[1].operations[0].iops /= 20.0;
    });
    let verdict = verdict(&document);
    let none = of(&verdict, "none");
    assert!(none.balance.unwrap().factor > 1.1 && none.gain.unwrap().is_better(), "{none:?}");
    assert_eq!((verdict.decision, none.outcome), (Decision::Keep, Outcome::WithinNoise));
    // Gains of bulk work never outweigh losses of the parties that wait.
    let mut document = compared(&[[1.05, 0.25]]);
    document.runs.iter_mut().filter(|run| run.scheduler == "none" && run.repeat == 1).for_each(|run| {
        run.jobs[1].operations[0].iops /= 20.0;
    });
    let verdict = support::verdict(&document);
    let none = of(&verdict, "none");
    assert!(none.balance.unwrap().factor > 1.02 && !none.balance.unwrap().is_better(), "{none:?}");
    assert_eq!(none.outcome, Outcome::Outweighed);
}

#[test]
fn nothing_is_recommended_for_gains_that_are_each_within_the_noise() {
    // Reads are unchanged; writes are faster by varying factors, so that no single figure is significant.
    let mut document = compared(&[[1.0, 1.0]]);
    let runs = document.runs.iter_mut().filter(|run| run.scheduler == "none");
    for (run, factor) in runs.zip([1.5, 2.8, 1.4]) {
        run.jobs[1].operations[0].iops *= factor;
        run.jobs[1].operations[0].bytes_per_second *= factor;
        run.jobs[0].operations[0].iops *= [1.3, 0.75, 1.32][run.repeat as usize];
    }
    let verdict = verdict(&document);
    let none = of(&verdict, "none");
    assert!(none.balance.unwrap().is_better(), "{none:?}");
    assert_eq!((none.outcome, none.gains.len()), (Outcome::WithinNoise, 0), "{none:?}");
    assert_eq!((verdict.decision, verdict.certainty), (Decision::Keep, None));
}

#[test]
fn gains_of_bulk_work_count_when_waiting_jobs_lose_nothing() {
    let outcome = |slower| of(&verdict(&compared(&[slower])), "none").outcome;
    assert_eq!(outcome([1.0, 0.8]), Outcome::BetterElsewhere);
    assert_eq!(outcome([1.0, 0.95]), Outcome::NoDifference);
    let mut document = compared(&[[1.0, 0.8]]);
    for run in document.runs.iter_mut().filter(|run| run.scheduler == "none") {
        run.jobs[0].operations[0].iops /= 1.2;
    }
    assert_eq!(of(&verdict(&document), "none").outcome, Outcome::NoDifference);
}

#[test]
fn a_single_io_of_another_job_is_no_reason_to_change() {
    let with_writes = |change: fn(&mut LatencySummary)| {
        let mut document = compared(&[[1.0, 1.0]]);
        for run in document.runs.iter_mut().filter(|run| run.scheduler == "none") {
            change(&mut run.jobs[1].operations[0].lat_ns);
        }
        let verdict = verdict(&document);
        let none = of(&verdict, "none");
        (none.outcome, none.gains.iter().map(|gain| (gain.job.clone(), gain.aspect)).collect::<Vec<_>>())
    };
    let (outcome, gains) = with_writes(|writes| writes.max /= 2);
    assert_eq!((outcome, gains), (Outcome::NoDifference, vec![("writes".to_owned(), Aspect::Figure(Figure::Max))]));
    assert_eq!(with_writes(|writes| writes.p99 /= 2).0, Outcome::NoDifference, "bulk work is not waited for");
}

#[test]
fn the_judged_figure_is_not_listed_again_but_that_of_another_job_is() {
    let both_read = each(compared(&[[0.5, 0.5]]), |run| {
        let reads = run.jobs[0].operations[0].operation;
        run.jobs[1].operations[0].operation = reads;
    });
    let verdict = verdict(&both_read);
    assert_eq!(verdict.focus[0].figure.to_string(), "reads:read:p99");
    let gains = listed(&of(&verdict, "none").gains);
    let p99 = Aspect::Figure(Figure::P99);
    assert!(gains.contains(&("writes", p99)) && !gains.contains(&("reads", p99)), "{gains:?}");
    assert!(gains.contains(&("reads", Aspect::Figure(Figure::Mean))), "{gains:?}");
}

#[test]
fn the_throughput_of_streams_is_their_bandwidth() {
    let losses = |blocks: u64| {
        let document = each(compared(&[[0.5, 1.5]]), |run| run.jobs[1].operations[0].bytes = blocks * 5000);
        let verdict = verdict(&document);
        listed(&of(&verdict, "none").losses).into_iter().map(|(_, aspect)| aspect).collect::<Vec<_>>()
    };
    let [bandwidth, iops] = [Figure::Bandwidth, Figure::Iops].map(Aspect::Figure);
    for (blocks, is_stream) in [(65_535, false), (65_536, true)] {
        let losses = losses(blocks);
        assert_eq!(
            [losses.contains(&bandwidth), losses.contains(&iops)],
            [is_stream, !is_stream],
            "{blocks}: {losses:?}"
        );
    }
}

#[test]
fn equivalent_jobs_are_judged_by_their_median_and_the_worst_is_examined() {
    let alike = each(compared(&[[0.5, 0.5]]), |run| {
        let mut slow = run.jobs[0].clone();
        slow.operations[0].lat_ns.p99 *= 3;
        (slow.name, slow.job) = ("slow".to_owned(), 2);
        run.jobs.push(slow);
        for job in [0, 2] {
            run.jobs[job].equivalent_to = Some(0);
        }
    });
    let verdict = verdict(&alike);
    assert_eq!(verdict.equivalent_jobs, ["reads", "slow"]);
    let (analysis, figure) = (Analysis::of(&alike), verdict.focus[0].figure.clone());
    let estimate = verdict.estimate(&analysis, &figure, "mq-deadline").unwrap();
    // The median of 4 ms and 12 ms.
    let mean = REPEATS.iter().sum::<f64>() / 3.0;
    assert!((estimate.mean / (8e6 * mean) - 1.0).abs() < 1e-3, "{estimate:?}");
    let gains = &of(&verdict, "none").gains;
    let worst = gains.iter().find(|gain| gain.aspect == Aspect::Worst(Figure::P99)).expect("it is looked at");
    assert!((worst.from / (12e6 * mean) - 1.0).abs() < 1e-3 && worst.jobs == 2, "{worst:?}");
    assert!(!gains.iter().any(|gain| gain.job == "writes" && matches!(gain.aspect, Aspect::Worst(_))), "one job alone");
}
