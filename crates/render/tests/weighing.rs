//! How gains and losses are weighed: which losses outweigh a gain, which are only reported, and which figure a load is judged by.

use crate::support::judged;

use hoistway_answer::document::JobSummary;
use hoistway_answer::verdict::verdicts;
use hoistway_answer::{Analysis, ResultsDocument};

use judged::{conclusion_text, job, three};

/// Reads that are judged by their p99, which bfq halves, and reads of another job; `change` applies to both under bfq.
fn halved_p99(change: impl Fn(&mut JobSummary, &mut JobSummary) + 'static) -> ResultsDocument {
    p99_of(2e6, change)
}

/// Such reads with this p99 under bfq, in ns; under none it is 4 ms.
fn p99_of(bfq: f64, change: impl Fn(&mut JobSummary, &mut JobSummary) + 'static) -> ResultsDocument {
    fn jobs(p99: f64) -> [JobSummary; 2] {
        [
            job("reads", 0, 1e6, |summary| summary.operations[0].lat_ns.p99 = p99 as u64),
            job("strangers", 1, 1e7, |_| {}),
        ]
    }
    let bfq = move |factor: f64| {
        let [mut reads, mut others] = jobs(bfq * factor);
        change(&mut reads, &mut others);
        vec![reads, others]
    };
    three(&[("none", &|factor| jobs(4e6 * factor).into()), ("bfq", &bfq)])
}

#[test]
fn a_better_p99_with_progress_that_is_worse_by_more_is_no_reason_to_change() {
    let text = conclusion_text(&halved_p99(|reads, _| reads.operations[0].iops /= 3.0));
    assert!(
        text.contains("Not bfq (p99 read latency -50.0%), which loses more than it gains: read IOPS of reads 1.00 k"),
        "{text}"
    );
    assert!(conclusion_text(&halved_p99(|_, _| {})).contains("change from none to bfq"));
}

#[test]
fn a_longest_wait_is_reported_without_weight() {
    let text = conclusion_text(&halved_p99(|_, others| others.operations[0].lat_ns.max *= 10));
    assert!(text.contains("change from none to bfq"), "{text}");
    assert!(
        text.contains(
            "It costs, worst first: largest read latency of strangers in a run 305 ms -> 3.05 s (10.0 times)."
        ),
        "{text}"
    );
    let own = conclusion_text(&halved_p99(|reads, _| reads.operations[0].lat_ns.max *= 10));
    assert!(own.contains("change from none to bfq") && own.contains("largest read latency of reads in a run"), "{own}");
}

#[test]
fn a_longest_wait_seen_in_some_runs_only_is_reported_without_weight() {
    let mut document = halved_p99(|_, _| {});
    // As where a read meets the drive's collection in some runs, under any scheduler.
    for (run, factor) in document.runs.iter_mut().filter(|run| run.scheduler == "bfq").zip([1.0, 20.0, 20.0]) {
        let reads = &mut run.jobs[0].operations[0].lat_ns;
        reads.max = (reads.max as f64 * factor) as u64;
    }
    let text = conclusion_text(&document);
    assert!(text.contains("change from none to bfq"), "{text}");
    assert!(
        text.contains("It costs, worst first: largest read latency of reads in a run")
            && text.contains("within the noise"),
        "{text}"
    );
}

#[test]
fn a_loss_below_the_smallest_effect_is_no_loss() {
    let slower = |by: f64| halved_p99(move |_, others| others.operations[0].iops /= by);
    assert!(
        conclusion_text(&slower(1.01)).contains("Nothing else gets worse by 2 % or more beyond the noise."),
        "{}",
        conclusion_text(&slower(1.01))
    );
    assert!(
        conclusion_text(&slower(1.03)).contains("It costs, worst first: read IOPS of strangers 100 -> 97.1 (-2.9%)."),
        "{}",
        conclusion_text(&slower(1.03))
    );
    let mut document = slower(1.03);
    document.smallest_effect = Some(0.05);
    assert!(
        conclusion_text(&document).contains("Nothing else gets worse by 5 % or more beyond the noise."),
        "{}",
        conclusion_text(&document)
    );
}

#[test]
fn a_scheduler_equal_in_focus_but_far_better_elsewhere_is_recommended() {
    let jobs = |iops: f64| {
        move |factor: f64| {
            let others = job("strangers", 1, 1e7, |summary| {
                summary.operations[0].iops *= iops * factor;
                summary.operations[0].bytes_per_second *= iops * factor;
            });
            vec![job("reads", 0, 1e6 * factor, |_| {}), others]
        }
    };
    let mut document = three(&[("none", &jobs(1.0)), ("kyber", &jobs(8.0)), ("bfq", &jobs(1.05))]);
    document.focus = "reads:read:p99".parse().ok();
    let text = conclusion_text(&document);
    assert!(
        text.contains("change from none to kyber, which is no different in p99 read latency of reads and better at read IOPS of strangers \
                       100 -> 801 (8.00 times)."),
        "{text}"
    );
    assert!(text.contains("No different by 2 % beyond the noise on balance: bfq."), "{text}");
}

#[test]
fn a_recommended_scheduler_that_is_worse_in_the_judged_figure_is_said_to_be_worse_with_both_values() {
    let jobs = |wait: f64, iops: f64| {
        move |factor: f64| {
            let others = job("strangers", 1, 1e7, |summary| {
                summary.operations[0].iops *= iops * factor;
                summary.operations[0].bytes_per_second *= iops * factor;
            });
            vec![job("reads", 0, 1e6 * wait * factor, |_| {}), others]
        }
    };
    let mut document = three(&[("none", &jobs(1.0, 1.0)), ("kyber", &jobs(1.1, 500.0)), ("bfq", &jobs(1.05, 300.0))]);
    document.focus = "reads:read:p99".parse().ok();
    let text = conclusion_text(&document);
    assert!(
        text.contains("change from none to kyber, which is worse in p99 read latency of reads (4.01 ms")
            && text.contains(" but better at read IOPS of strangers"),
        "{text}"
    );
    assert!(text.contains("is better on balance, but worse in the judged figure"), "{text}");
}

#[test]
fn unfairness_among_the_processes_of_a_job_outweighs_a_smaller_gain() {
    let fairness = |of: f64| halved_p99(move |_, others| others.fairness = Some(of));
    let with_one = |mut document: ResultsDocument| {
        for job in document.runs.iter_mut().filter(|run| run.scheduler == "none").flat_map(|run| &mut run.jobs) {
            job.fairness = Some(1.0);
        }
        conclusion_text(&document)
    };
    let text = with_one(fairness(0.25));
    assert!(
        text.contains(
            "Not bfq (p99 read latency -50.0%), which loses more than it gains: fairness (Jain's index) of strangers"
        ),
        "{text}"
    );
    assert!(
        with_one(fairness(0.9)).contains("It costs, worst first: fairness (Jain's index) of strangers 1.00 -> 0.90")
    );
    assert!(with_one(fairness(1.0)).contains("Nothing else gets worse"));
}

/// Values of a figure of `strangers` in the three repeats of bfq, so different that the change is within the noise.
fn noisy(factors: [f64; 3], change: fn(&mut JobSummary, f64)) -> String {
    let mut document = halved_p99(|_, _| {});
    for (run, factor) in document.runs.iter_mut().filter(|run| run.scheduler == "bfq").zip(factors) {
        change(&mut run.jobs[1], factor);
    }
    conclusion_text(&document)
}

#[test]
fn a_loss_on_which_runs_do_not_agree_counts_if_it_is_large_and_a_gain_never() {
    let mean = |job: &mut JobSummary, factor: f64| job.operations[0].lat_ns.mean *= factor;
    let text = noisy([0.9, 1.1, 1.3], mean);
    assert!(text.contains("Nothing else gets worse by 2 % or more beyond the noise."), "{text}");
    let text = noisy([0.9, 1.5, 1.9], mean);
    assert!(
        text.contains("It costs, worst first: mean read latency of strangers") && text.contains("within the noise"),
        "{text}"
    );
    let max = |job: &mut JobSummary, factor: f64| job.operations[0].lat_ns.max = (305e6 * factor) as u64;
    let text = noisy([0.9, 1.5, 2.5], max);
    assert!(text.contains("Nothing else gets worse by 2 % or more beyond the noise."), "{text}");
    let text = noisy([0.9, 4.0, 9.0], max);
    assert!(text.contains("It costs, worst first: largest read latency of strangers"), "{text}");
    let mut document = halved_p99(|_, _| {});
    for (run, factor) in document.runs.iter_mut().filter(|run| run.scheduler == "bfq").zip([1.0, 0.1, 0.3]) {
        run.jobs[1].operations[0].lat_ns.mean *= factor;
    }
    let gains = &verdicts(&Analysis::of(&document))[0].candidates[0].gains;
    assert!(gains.iter().all(|gain| gain.job != "strangers"), "{gains:?}");
}

#[test]
fn an_uncertain_loss_above_a_small_gain_is_reported_without_weight() {
    let conclusion_text = |p99| {
        let mut document = p99_of(p99, |_, _| {});
        for (run, factor) in document.runs.iter_mut().filter(|run| run.scheduler == "bfq").zip([0.97, 1.15, 1.25]) {
            run.jobs[1].operations[0].lat_ns.mean *= factor;
        }
        conclusion_text(&document)
    };
    let (little, much) = (conclusion_text(3.6e6), conclusion_text(2e6));
    assert!(little.contains("change from none to bfq"), "{little}");
    assert!(
        little.contains("It costs, worst first: mean read latency of strangers")
            && little.contains(
                "It may lose more in the mean read latency of strangers than it gains: a larger --repeat tells."
            ),
        "{little}"
    );
    assert!(much.contains("Nothing else gets worse by 2 % or more beyond the noise."), "{much}");
}

#[test]
fn of_two_similar_jobs_the_one_with_more_processes_then_ios_is_judged() {
    let focus = |processes: [u32; 2], ios: [u64; 2]| {
        let jobs = move |factor: f64| {
            let of = |name: &str, number: usize| {
                job(name, number as u32, 1e6 * factor, |summary| {
                    summary.processes = processes[number];
                    (summary.operations[0].ios, summary.operations[0].bytes) = (ios[number], ios[number] * 4096);
                })
            };
            vec![of("a", 0), of("b", 1)]
        };
        verdicts(&Analysis::of(&three(&[("none", &jobs), ("bfq", &jobs)])))[0].focus[0].figure.to_string()
    };
    assert_eq!(focus([1, 2], [5000, 2000]), "b:read:p99");
    assert_eq!(focus([2, 1], [2000, 5000]), "a:read:p99");
    assert_eq!(focus([2, 2], [2000, 5000]), "b:read:p99");
    assert_eq!(focus([2, 2], [5000, 2000]), "a:read:p99");
    assert_eq!(focus([2, 2], [900, 800]), "a:read:mean", "a p99 of so few says nothing");
}

#[test]
fn the_fairer_of_two_schedulers_is_recommended_despite_worse_figures() {
    // Both halve the latency; one of them is 5 % better than the other at each figure, and lets one process starve.
    let jobs = |by: f64, fairness: f64| {
        move |factor: f64| {
            let by = by * factor;
            vec![job("reads", 0, 1e6 * by, |summary| {
                summary.fairness = Some(fairness);
                let of = &mut summary.operations[0];
                (of.iops, of.bytes_per_second) = (1e3 / by, 4e6 / by);
            })]
        }
    };
    let fair = three(&[("none", &jobs(1.0, 1.0)), ("kyber", &jobs(0.5, 1.0))]);
    assert!(conclusion_text(&fair).contains("change from none to kyber"), "{}", conclusion_text(&fair));
    let both = three(&[("none", &jobs(1.0, 1.0)), ("kyber", &jobs(0.5, 1.0)), ("bfq", &jobs(0.475, 0.25))]);
    let text = conclusion_text(&both);
    assert!(text.contains("change from none to kyber"), "{text}");
    let fairness = "against kyber it loses fairness (Jain's index) of reads 1.00 -> 0.25 (-75.0%).";
    let why =
        format!("bfq (p99 read latency -52.5%) is further ahead in the judged figure, but not on balance: {fairness}");
    assert!(text.contains(&why) && !text.contains("Also better"), "{text}");
}

#[test]
fn of_two_equally_good_schedulers_the_one_that_loses_less_is_recommended() {
    let jobs = |p99: f64, others: f64| {
        move |factor: f64| {
            let iops = |summary: &mut JobSummary| summary.operations[0].iops *= others;
            vec![
                job("reads", 0, 1e6, |summary| summary.operations[0].lat_ns.p99 = (p99 * factor) as u64),
                job("strangers", 1, 1e7, iops),
            ]
        }
    };
    let of = |bfq: f64, kyber: f64| {
        conclusion_text(&three(&[("none", &jobs(4e6, 1.0)), ("bfq", &jobs(2e6, bfq)), ("kyber", &jobs(2e6, kyber))]))
    };
    assert!(of(0.8, 0.9).contains("change from none to kyber"), "{}", of(0.8, 0.9));
    assert!(of(0.9, 0.8).contains("change from none to bfq"), "{}", of(0.9, 0.8));
}

/// Reads that are judged, and those of another user, which bfq changes and kyber leaves as they are.
fn elsewhere(change: fn(&mut JobSummary)) -> String {
    let jobs = |by: f64, change: fn(&mut JobSummary)| {
        move |factor: f64| {
            let others = job("strangers", 1, 1e7 * factor, change);
            vec![job("reads", 0, 1e6 * by * factor, |_| {}), others]
        }
    };
    conclusion_text(&three(&[
        ("none", &jobs(1.0, |_| {})),
        ("bfq", &jobs(1.0, change)),
        ("kyber", &jobs(1.004, |_| {})),
    ]))
}

#[test]
fn a_largest_latency_alone_is_no_reason_to_change() {
    let text = elsewhere(|others| others.operations[0].lat_ns.max /= 4);
    assert!(text.contains("keep none") && !text.contains("Better than"), "{text}");
}

#[test]
fn a_scheduler_better_elsewhere_is_listed_with_its_main_reason() {
    let text = elsewhere(|others| {
        others.operations[0].lat_ns.max /= 40;
        others.operations[0].lat_ns.p99 /= 2;
    });
    assert!(
        text.contains("no different in p99 read latency of reads and better at p99 read latency of strangers"),
        "{text}"
    );
}

#[test]
fn a_scheduler_not_better_in_the_judged_figure_is_not_called_so() {
    let better = |by: u64| {
        move |factor: f64| {
            let others = job("strangers", 1, 1e7 * factor, |others| others.operations[0].lat_ns.p99 /= by);
            vec![job("reads", 0, (1e6 + 4e3 * by as f64) * factor, |_| {}), others]
        }
    };
    let text = conclusion_text(&three(&[("none", &better(1)), ("bfq", &better(2)), ("kyber", &better(2))]));
    assert!(text.contains("change from none to bfq, which is no different"), "{text}");
    assert!(text.contains("Better than none on balance, but not in the judged figure: kyber."), "{text}");
    assert!(!text.contains("Also better") && !text.contains("(0.0%)"), "{text}");
}
