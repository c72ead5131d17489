//! The conclusion of a comparison: its sentences state the verdict, and never claim differences within the noise.

use crate::support;
use crate::support::judged;
use crate::support::place;

use hoistway_answer::document::{JobSummary, LatencySummary, LockSummary, Run};
use hoistway_answer::{Analysis, FigureName, ResultsDocument};
use hoistway_measure::{Direction, Settling};
use hoistway_render::text::{conclusion, figure_in_words};
use serde_json::json;

use judged::{conclusion_text, job, three};
use place::place;
use support::{direction, document, run, syncs};

/// Repeats of one job of reads with these IOPS under each scheduler; latencies are inversely proportional.
fn repeated(schedulers: &[(&str, &[f64])]) -> ResultsDocument {
    let runs = schedulers.iter().flat_map(|(name, iops)| {
        iops.iter().zip(0..).map(|(iops, repeat)| Run {
            repeat,
            ..run(name, vec![("a", 1, vec![direction(Direction::Read, *iops, 1e9 / iops)])])
        })
    });
    document(runs.collect())
}

#[test]
fn figures_differing_twofold_between_repeats_show_both_ends() {
    let conclusion_text = |iops: &[f64]| {
        let sentences = conclusion(&Analysis::of(&repeated(&[("none", iops)])));
        sentences.into_iter().find(|sentence| sentence.contains("is between"))
    };
    assert_eq!(
        conclusion_text(&[1000.0, 90.0, 950.0]).as_deref(),
        Some(
            "The mean read latency of a under none is between 1.00 ms and 11.1 ms, depending on timing that a simulation cannot know."
        )
    );
    assert_eq!(conclusion_text(&[1000.0, 600.0, 950.0]), None);
}

#[test]
fn a_scheduler_better_beyond_the_noise_is_worth_a_change() {
    let document = repeated(&[
        ("none", &[1000.0, 1010.0, 990.0]),
        ("kyber", &[2000.0, 2020.0, 1985.0]),
        ("bfq", &[1200.0, 1190.0, 1210.0]),
    ]);
    let sentences = conclusion(&Analysis::of(&document));
    assert!(
        sentences[0].starts_with(
            "For this load on nvme-datacenter: change from none to kyber: p99 read latency of a 4.00 ms -> 2.00 ms, -50.0% (95 %: "
        ),
        "{sentences:?}"
    );
    assert!(sentences[1].starts_with("It also gains, largest first: "), "{sentences:?}");
    assert!(sentences[1].contains("read IOPS of a 1.00 k -> 2.00 k (2.00 times)"), "{sentences:?}");
    assert_eq!(sentences[2], "Nothing else gets worse by 2 % or more beyond the noise.");
    assert!(sentences[3].starts_with("Also better than none: bfq (p99 read latency -16.7%)."), "{sentences:?}");
    assert_eq!(sentences[4], "The decision is the same in 100 % of resamplings of the 3 runs.");
    assert!(sentences[5].contains("--focus JOB:OPERATION:FIGURE, such as a:read:p99"), "{sentences:?}");
    assert_eq!(sentences.len(), 6);
}

#[test]
fn within_the_noise_or_below_the_smallest_effect_the_default_stays() {
    let mut document = repeated(&[
        ("none", &[1000.0, 1300.0, 900.0]),
        ("mq-deadline", &[1000.0, 1301.0, 901.0]),
        ("bfq", &[1300.0, 900.0, 1400.0]),
    ]);
    document.default_scheduler = Some("mq-deadline".to_owned());
    let text = conclusion_text(&document);
    assert!(
        text.contains(
            ": keep the default (mq-deadline): bfq may be ahead on balance, but not beyond the noise (p99 read latency"
        ),
        "{text}"
    );
    assert!(text.contains("No different by 2 % beyond the noise on balance: none and bfq."), "{text}");
    document.smallest_effect = Some(0.1);
    assert!(conclusion_text(&document).contains("No different by 10 % beyond the noise"));
    document.baseline = Some("none".to_owned());
    assert!(conclusion_text(&document).contains(": keep none: bfq may be"), "who was asked for is no default");
    document.smallest_effect = Some(0.2);
    let text = conclusion_text(&document);
    assert!(text.contains(": keep none: nothing here is worth a change in p99 read latency of a ("), "{text}");
}

#[test]
fn single_runs_are_described_as_such() {
    let text = conclusion_text(&repeated(&[("none", &[1000.0]), ("kyber", &[2000.0])]));
    assert!(
        text.contains("in this one run kyber was ahead of none: p99 read latency of a 4.00 ms -> 2.00 ms, -50.0%."),
        "{text}"
    );
    assert!(text.contains("--repeat 3"), "{text}");
    let text = conclusion_text(&repeated(&[("none", &[1000.0]), ("kyber", &[1000.0])]));
    assert!(text.contains("in this one run nothing was worth a change from none"), "{text}");
}

#[test]
fn a_scheduler_that_lost_more_than_it_gained_is_not_ahead_in_one_run() {
    let of = |scheduler: &str, reader_ns: f64, writer_iops: f64| {
        let reader = ("reader", 1, vec![direction(Direction::Read, 1e9 / reader_ns, reader_ns)]);
        run(scheduler, vec![reader, ("writer", 1, vec![direction(Direction::Write, writer_iops, 1e6)])])
    };
    let text = conclusion_text(&document(vec![of("none", 4e6, 1000.0), of("bfq", 2e6, 10.0), of("kyber", 3e6, 990.0)]));
    assert!(text.contains("in this one run kyber was ahead of none: mean read latency of reader"), "{text}");
    assert!(text.contains("Nothing else gets worse by 2 % or more.\n"), "no noise is known of one run: {text}");
    assert!(
        text.contains("Not bfq (mean read latency -50.0%), which loses more than it gains: write IOPS of writer"),
        "{text}"
    );
    let text = conclusion_text(&document(vec![of("none", 4e6, 1000.0), of("bfq", 2e6, 10.0)]));
    assert!(text.contains("in this one run nothing was worth a change from none"), "{text}");
    assert!(text.contains("Not bfq (mean read latency -50.0%), which loses"), "{text}");
    let text = conclusion_text(&document(vec![of("none", 4e6, 1000.0), of("bfq", 4.4e6, 1e5)]));
    assert!(text.contains("which is better on balance, but worse for those that wait: read IOPS"), "{text}");
    let text = conclusion_text(&document(vec![of("none", 4e6, 1000.0), of("bfq", 2e6, 1001.0)]));
    assert!(text.contains("Not bfq (mean read latency -50.0%), which gains no more than it loses: time"), "{text}");
}

#[test]
fn a_single_scheduler_is_reported_with_its_interval_and_doubts() {
    let mut document = repeated(&[("none", &[1000.0, 1010.0, 990.0])]);
    document.doubts = vec!["the device is unlike yours".to_owned()];
    let text = conclusion_text(&document);
    assert!(
        text.starts_with("For this load on nvme-datacenter: p99 read latency of a under none is 4.00 ms ±"),
        "{text}"
    );
    assert!(text.ends_with("Uncertain: the device is unlike yours."), "{text}");
}

#[test]
fn a_better_mean_with_a_much_worse_p99_and_stalls_is_no_reason_to_change() {
    // The effect of an idling scheduler on a desktop: most reads are fast, and some wait very long.
    let document = three(&[
        ("none", &|factor| vec![job("interactive", 0, 2e6 * factor, |_| {})]),
        ("bfq", &|factor| {
            vec![job("interactive", 0, 8e5 * factor, |summary| {
                let latency = &mut summary.operations[0].lat_ns;
                (latency.p99, latency.max) = (68_000_000, 8_500_000_000);
            })]
        }),
    ]);
    let mut document = document;
    document.focus = "interactive:read:mean".parse().ok();
    let text = conclusion_text(&document);
    assert!(
        text.contains(
            ": keep none: what others gain costs as much or more (mean read latency of interactive is 2.00 ms"
        ),
        "{text}"
    );
    assert!(
        text.contains(
            "Not bfq (mean read latency -60.0%), which loses more than it gains: largest read latency of interactive in a run 61.1 ms -> 8.50 s"
        ),
        "{text}"
    );
    assert!(text.contains("p99 read latency of interactive 8.01 ms -> 68.0 ms (8.49 times)"), "{text}");
}

#[test]
fn recommended_costs_are_listed_worst_first_with_commits_and_other_jobs() {
    let with_syncs = |summary: &mut JobSummary, ms: f64| {
        let lat_ns = LatencySummary {
            mean: ms * 1e6,
            p99: (ms * 2e6) as u64,
            max: (ms * 3e6) as u64,
            ..LatencySummary::default()
        };
        summary.operations.push(syncs(2000.0 / ms, lat_ns));
    };
    let jobs = |reads_ns: f64, backup: f64, ms: f64| {
        move |factor: f64| {
            vec![
                job("backends", 0, reads_ns * factor, |summary| with_syncs(summary, ms)),
                job("backup", 1, 1e6, |summary| {
                    summary.operations[0].iops *= backup * factor;
                    summary.operations[0].bytes_per_second *= backup * factor;
                }),
            ]
        }
    };
    let document = three(&[("none", &jobs(1e6, 1.0, 1.0)), ("bfq", &jobs(2e5, 0.5, 1.3))]);
    let mut document = document;
    document.focus = "backends:read:p99".parse().ok();
    let sentences = conclusion(&Analysis::of(&document));
    assert!(
        sentences[0].contains("change from none to bfq: p99 read latency of backends 4.01 ms -> 801 µs"),
        "{sentences:?}"
    );
    let losses = sentences[2].strip_prefix("It costs, worst first: ").unwrap();
    assert!(losses.starts_with("read IOPS of backup 1.00 k -> 501 (-50.0%); "), "{losses}");
    assert!(losses.contains("p99 fsync latency of backends 2.00 ms -> 2.60 ms (+30.0%)"), "{losses}");
}

#[test]
fn equivalent_jobs_are_judged_as_one_and_their_unfairness_is_a_loss() {
    let guests = |means: [f64; 3]| {
        move |factor: f64| {
            (0..3)
                .map(|guest| {
                    job(&format!("guest{guest}"), guest, means[guest as usize] * factor, |summary| {
                        summary.equivalent_to = Some(0)
                    })
                })
                .collect::<Vec<_>>()
        }
    };
    let fair = three(&[("none", &guests([2e6; 3])), ("kyber", &guests([1e6; 3]))]);
    let text = conclusion_text(&fair);
    assert!(text.contains("p99 read latency of guest0 and the 2 jobs like it (median) 8.01 ms -> 4.01 ms"), "{text}");
    // The first job's own figure is never reported as if it were the median.
    let odd = three(&[("none", &guests([60e6, 2e6, 2e6])), ("kyber", &guests([60e6, 1e6, 1e6]))]);
    let text = conclusion_text(&odd);
    assert!(text.contains("jobs like it (median) 8.01 ms -> 4.01 ms, -50.0%"), "{text}");
    let unfair = three(&[("none", &guests([2e6; 3])), ("kyber", &guests([1e6, 1.5e6, 40e6]))]);
    let text = conclusion_text(&unfair);
    assert!(text.contains("Not kyber (p99 read latency -25.0%), which loses more than it gains"), "{text}");
    assert!(
        text.contains("p99 read latency of the worst-off job of guest0 and 2 equivalent jobs 8.01 ms -> 160 ms"),
        "{text}"
    );
}

#[test]
fn a_requested_focus_wins_and_a_loads_author_may_name_one() {
    let mut document = repeated(&[("none", &[1000.0, 1010.0]), ("kyber", &[2000.0, 2010.0])]);
    let focus: FigureName = "a:read:iops".parse().unwrap();
    assert_eq!(figure_in_words(&focus), "read IOPS of a");
    document.focus = Some(focus);
    let text = conclusion_text(&document);
    assert!(text.contains("change from none to kyber: read IOPS of a 1.00 k -> 2.00 k, "), "{text}");
    assert!(text.contains("Judged by read IOPS, the focus of this load"), "{text}");
    document.focuses = vec!["a:read:max".parse().unwrap(), "a:read:mean*3".parse().unwrap()];
    let text = conclusion_text(&document);
    assert!(text.contains("largest read latency of a 30.5 ms -> 15.2 ms, mean read latency of a"), "{text}");
    assert!(text.contains("; together 2.00 times as good"), "{text}");
    assert!(!text.contains("Judged by"), "they know: {text}");
}

#[test]
fn a_figure_that_the_results_do_not_have_is_replaced_by_one_that_they_have() {
    let mut document = repeated(&[("none", &[1000.0, 1010.0]), ("kyber", &[2000.0, 2010.0])]);
    document.focus = Some("a:write:iops".parse().unwrap());
    assert!(conclusion_text(&document).contains("p99 read latency of a"));
}

#[test]
fn schedulers_that_the_kernel_lacks_have_no_part_in_it() {
    let mut document =
        repeated(&[("none", &[1000.0, 1010.0]), ("noop", &[2000.0, 2010.0]), ("bfq", &[1000.0, 1011.0])]);
    document.runs.iter_mut().filter(|run| run.scheduler == "noop").for_each(|run| run.ran_as = Some("4.20".to_owned()));
    let text = conclusion_text(&document);
    assert!(text.contains("keep none") && !text.contains("noop"), "{text}");
}

#[test]
fn a_scheduler_with_nothing_to_reorder_is_reported() {
    let without_choices = |schedulers: &[(&str, &[f64])]| {
        let mut document = repeated(schedulers);
        for run in &mut document.runs {
            run.simulated_ios = 10_000;
            run.disks = serde_json::from_value(json!([{
                "file": "/dev/sda", "stat": "", "read_ios": 0, "read_merges": 0, "read_ms": 0, "write_ios": 0, "write_merges": 0,
                "write_ms": 0, "in_queue_ms": 0, "util_percent": 0.0, "choices": 3
            }]))
            .unwrap();
        }
        document
    };
    let mut document = without_choices(&[("none", &[1000.0, 1010.0, 990.0]), ("bfq", &[1000.0, 1011.0, 991.0])]);
    assert!(
        conclusion_text(&document).contains("almost never deep enough to reorder anything"),
        "{}",
        conclusion_text(&document)
    );
    document.runs[4].disks[0].choices = Some(5000);
    assert!(!conclusion_text(&document).contains("almost never deep enough"));
    for run in &mut document.runs {
        // Counts under none do not matter: it never reorders requests.
        run.disks[0].choices = Some(if run.scheduler == "none" { 5000 } else { 3 });
    }
    assert!(conclusion_text(&document).contains("almost never deep enough"), "{}", conclusion_text(&document));
    document.runs[4].disks[0].choices = None;
    assert!(!conclusion_text(&document).contains("almost never deep enough"), "it was not counted");
    let alone = without_choices(&[("bfq", &[1000.0, 1011.0, 991.0])]);
    assert!(!conclusion_text(&alone).contains("almost never deep enough"), "nothing differs from one alone");
}

#[test]
fn a_scheduler_that_may_be_better_is_why_the_default_is_kept() {
    let text = conclusion_text(&repeated(&[("none", &[1000.0, 1010.0, 990.0]), ("bfq", &[1000.0, 3000.0, 950.0])]));
    assert!(text.contains(": keep none: bfq may be ahead on balance, but not beyond the noise (p99 read "), "{text}");
    assert!(!text.contains("nothing here is worth a change") && !text.contains("costs as much or more"), "{text}");
}

#[test]
fn each_place_has_a_separate_verdict() {
    let mut document = repeated(&[("none", &[1000.0, 1010.0]), ("kyber", &[2000.0, 2010.0])]);
    let elsewhere = repeated(&[("none", &[1000.0, 1010.0]), ("kyber", &[500.0, 505.0])]);
    let settings = |kernel: &str| serde_json::Map::from_iter([("kernel".to_owned(), json!(kernel))]);
    let at = |kernel: &str| place("hdd", kernel, Some("none"));
    document.runs.extend(elsewhere.runs.into_iter().map(|run| Run { setup: 1, ..run }));
    for run in &mut document.runs {
        let kernel = ["4.19", "6.18"][run.setup as usize];
        run.variant = hoistway_answer::document::RunLabel::new(&run.scheduler, settings(kernel));
    }
    document.setups = vec![at("4.19"), at("6.18")];
    let text = conclusion_text(&document);
    assert!(text.contains("On hdd, Linux 4.19: change from the default (none) to kyber: "), "{text}");
    assert!(text.contains("On hdd, Linux 6.18: keep the default (none): "), "{text}");
    assert!(
        text.contains("Side by side on hdd, ")
            && text.contains("under kyber on Linux 4.19; ")
            && text.contains(" under none on Linux 6.18.")
            && text.contains("Linux 6.18 is the slowest; Linux 4.19 is 2.00 times as good."),
        "{text}"
    );
    assert_eq!(text.matches("chooses another figure").count(), 1, "{text}");
}

#[test]
fn a_run_in_real_time_is_judged_in_the_same_words() {
    let variants: [&[(&str, &[f64])]; 3] = [
        &[("none", &[1000.0, 1010.0]), ("kyber", &[2000.0, 2010.0])],
        &[("none", &[1000.0]), ("kyber", &[2000.0])],
        &[("none", &[1000.0]), ("kyber", &[500.0])],
    ];
    for variants in variants {
        let mut document = repeated(variants);
        let simulated = conclusion_text(&document);
        document.is_real = true;
        assert_eq!(conclusion_text(&document), simulated);
        assert!(!simulated.contains("simulat"), "{simulated}");
    }
}

#[test]
fn runs_that_had_not_settled_are_named() {
    let mut document = repeated(&[("none", &[1000.0, 1010.0]), ("kyber", &[2000.0, 2010.0])]);
    let figure = hoistway_measure::settling::SettlingFigure::Iops;
    document.runs[0].jobs[0].operations[0].settling = Settling::WarmUp { seconds: 2.5, figure, difference: 0.4 };
    document.runs[2].jobs[0].operations[0].settling = Settling::Unsettled { figure, difference: -0.3 };
    let doubt = conclusion_text(&document);
    assert!(
        doubt.contains("Uncertain: a under kyber had not settled by the end (up to IOPS -30.0% at first)"),
        "{doubt}"
    );
    assert!(doubt.contains("the first 2.50 s of a under none are unlike the rest (up to IOPS +40.0%"), "{doubt}");
}

#[test]
fn one_unsettled_run_of_three_raises_no_doubt_and_two_do() {
    let mut document = repeated(&[("none", &[1000.0, 1010.0, 990.0]), ("kyber", &[2000.0, 2010.0, 1990.0])]);
    let figure = hoistway_measure::settling::SettlingFigure::Iops;
    for (repeats, is_told) in [(1, false), (2, true)] {
        for run in &mut document.runs[..repeats] {
            run.jobs[0].operations[0].settling = Settling::Unsettled { figure, difference: -0.3 };
        }
        assert_eq!(
            conclusion_text(&document).contains("a under none had not settled by the end"),
            is_told,
            "{}",
            conclusion_text(&document)
        );
    }
}

#[test]
fn nothing_is_concluded_from_nothing() {
    assert!(conclusion(&Analysis::of(&document(Vec::new()))).is_empty());
}

#[test]
fn a_setting_is_recommended_in_words_and_default_values_as_the_default() {
    let one = [("mq-deadline", &[1000.0, 1010.0][..]), ("none", &[1000.0, 1010.0]), ("a", &[2000.0, 2010.0])];
    let mut document = repeated(&one);
    for run in document.runs.iter_mut().filter(|run| run.scheduler != "none") {
        let batch = if run.scheduler == "a" { 4 } else { 16 };
        run.scheduler = "mq-deadline".to_owned();
        run.tunables = serde_json::Map::from_iter([("fifo_batch".to_owned(), json!(batch))]);
        run.variant = hoistway_answer::document::RunLabel::new("mq-deadline", run.tunables.clone());
        run.variant.is_default = batch == 16;
    }
    document.default_scheduler = Some("mq-deadline".to_owned());
    // Whatever stands first.
    for _ in 0..document.runs.len() {
        document.runs.rotate_left(1);
        let text = conclusion_text(&document);
        let change =
            "change from the default (mq-deadline with fifo_batch=16) to mq-deadline with fifo_batch=4: p99 read";
        assert!(text.contains(change), "{text}");
        assert_eq!(hoistway_answer::Analysis::of(&document).variants.len(), 3);
    }
    // The kernel's scheduler, but none of the variants is its default.
    document.runs.iter_mut().for_each(|run| run.variant.is_default = false);
    let text = conclusion_text(&document);
    assert!(text.contains("change from mq-deadline with fifo_batch="), "{text}");
}

/// Two repeats of bfq whose lock was held for this share of the time, percent, and one of none.
fn with_locks(busy_percents: [f64; 2]) -> Vec<String> {
    let mut document = repeated(&[("none", &[400_000.0]), ("bfq", &[200_000.0, 200_000.0])]);
    for (run, busy) in document.runs[1..].iter_mut().zip(busy_percents) {
        run.locks = Some(LockSummary {
            held_percent: busy / 8.0,
            waited_percent: 40.0,
            taken_per_io: 3.0,
            lists_taken_per_io: None,
            busy_percent: Some(busy),
            ceiling_iops: Some(200_000.0 / (busy / 100.0)),
        });
    }
    conclusion(&Analysis::of(&document))
}

#[test]
fn a_lock_held_all_the_time_is_reported_with_its_throughput_ceiling() {
    let conclusion_text = with_locks([100.0, 99.0]);
    let sentences: Vec<_> = conclusion_text.iter().filter(|sentence| sentence.contains("cannot exceed")).collect();
    assert_eq!(sentences.len(), 1, "{conclusion_text:?}");
    assert!(
        sentences[0].starts_with("bfq cannot exceed 201 k I/Os a second here: its single lock"),
        "{conclusion_text:?}"
    );
}

#[test]
fn a_lock_with_headroom_in_any_repeat_is_not_reported() {
    for busy in [[100.0, 80.0], [50.0, 50.0]] {
        let conclusion_text = with_locks(busy);
        assert!(!conclusion_text.iter().any(|sentence| sentence.contains("cannot exceed")), "{conclusion_text:?}");
    }
}

#[test]
fn a_mean_of_a_handful_of_ios_is_in_doubt() {
    let of = |ios: u64| {
        let few = move |mean: f64| {
            move |factor: f64| {
                vec![job("few", 0, mean * factor, |summary| {
                    (summary.operations[0].ios, summary.operations[0].bytes) = (ios, ios * 4096);
                })]
            }
        };
        conclusion_text(&three(&[("none", &few(2e6)), ("kyber", &few(1e6))]))
    };
    let text = of(3);
    assert!(text.contains("change from none to kyber: mean read latency of few 2.00 ms"), "{text}");
    assert!(
        text.contains("Uncertain: the mean read latency of few rests on 3 I/O(s) in the run with the fewest"),
        "{text}"
    );
    assert!(of(29).contains("rests on 29 I/O(s)") && !of(30).contains("rests on"), "{}", of(30));
}

#[test]
fn two_equivalent_jobs_are_described_as_one_and_the_job_like_it() {
    let both = |mean: f64| {
        move |factor: f64| {
            let one = |name, number| job(name, number, mean * factor, |summary| summary.equivalent_to = Some(0));
            vec![one("a", 0), one("b", 1)]
        }
    };
    let text = conclusion_text(&three(&[("none", &both(2e6)), ("kyber", &both(1e6))]));
    assert!(text.contains("p99 read latency of a and the job like it (median)"), "{text}");
}
