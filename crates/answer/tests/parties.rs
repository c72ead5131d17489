//! Which figures parties are judged by: parties that wait, bulk work, references, and figures that are ignored.

use hoistway_answer::ResultsDocument;
use hoistway_answer::document::{
    Aspect, Candidate, Decision, JobDemand, OperationSummary, Outcome, TimeWeighted, Verdict,
};
use hoistway_measure::Direction;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{Measured, summary, syncs, verdict};

/// Factors by which three repeats differ.
const REPEATS: [f64; 3] = [1.0, 1.004, 0.997];
/// The demand of a process with one I/O in flight.
const SHALLOW: JobDemand = JobDemand {
    depth: 1,
    asked_iops: None,
    weight: None,
    thinks: false,
    syncs: false,
    is_realtime: false,
    is_idle: false,
    ends: false,
    is_buffered: false,
};
const DEEP: JobDemand = JobDemand { depth: 32, ..SHALLOW };

/// I/Os of one direction of a job in a run: IOPS, mean and p99 latency in ms.
#[derive(Clone, Copy, Debug)]
struct Ios {
    direction: Direction,
    iops: f64,
    mean_ms: f64,
    p99_ms: f64,
    ios: u64,
}

fn ios(direction: Direction, iops: f64, mean_ms: f64, p99_ms: f64) -> Ios {
    Ios { direction, iops, mean_ms, p99_ms, ios: 5000 }
}

fn reads(iops: f64, mean_ms: f64, p99_ms: f64) -> Vec<Ios> {
    vec![ios(Direction::Read, iops, mean_ms, p99_ms)]
}

fn writes(iops: f64, mean_ms: f64, p99_ms: f64) -> Vec<Ios> {
    vec![ios(Direction::Write, iops, mean_ms, p99_ms)]
}

/// A job with its results under each scheduler.
struct Job {
    name: &'static str,
    demand: JobDemand,
    alike: Option<u32>,
    under: Vec<Vec<Ios>>,
}

fn job(name: &'static str, demand: JobDemand, under: Vec<Vec<Ios>>) -> Job {
    Job { name, demand, alike: None, under }
}

fn job_of_run(number: usize, job: &Job, scheduler: usize, factor: f64) -> Value {
    let of = |ios: &Ios| {
        let ns = |ms: f64| (ms * 1e6 * factor) as u64;
        let (mean, p99) = (ios.mean_ms * 1e6 * factor, ns(ios.p99_ms));
        let measured = Measured { iops: ios.iops / factor, mean, p50: ns(ios.mean_ms), p99, max: 2 * p99 };
        let mut summary = summary(measured, ios.direction);
        (summary.ios, summary.bytes) = (ios.ios, ios.ios * 4096);
        summary
    };
    let operations: Vec<_> = job.under[scheduler].iter().map(of).collect();
    json!({
        "name": job.name, "job": number, "processes": 1, "alike": job.alike, "demand": job.demand,
        "operations": operations,
    })
}

fn compared(schedulers: &[&str], jobs: &[Job]) -> ResultsDocument {
    let run = |(scheduler, name): (usize, &&str), repeat: usize| {
        let of_job = |(number, job): (usize, &Job)| job_of_run(number, job, scheduler, REPEATS[repeat]);
        json!({
            "scheduler": name, "front": "mq", "tunables": {}, "repeat": repeat, "seed": repeat, "simulated_seconds": 10.0,
            "simulated_ios": 10_000, "wall_seconds": 0.0, "cpu_us_per_io": null,
            "jobs": jobs.iter().enumerate().map(of_job).collect::<Vec<_>>(),
        })
    };
    let runs: Vec<Value> =
        schedulers.iter().enumerate().flat_map(|one| (0..3).map(move |repeat| run(one, repeat))).collect();
    serde_json::from_value(json!({
        "format": "hoistway-results/2", "version": "0.1.0", "command": "", "job_file": "a.fio", "job_text": "",
        "device": "null", "kernel": "6.18", "cpus": 1, "hw_queues": 1, "nr_requests": 2, "host": "instant", "seed": 1,
        "wall_seconds": 0.0, "simulated_ios": 30, "partial": false, "default_scheduler": "mq-deadline", "runs": runs,
    }))
    .unwrap()
}

fn of<'v>(verdict: &'v Verdict, scheduler: &str) -> &'v Candidate {
    verdict.candidates.iter().find(|candidate| candidate.scheduler == scheduler).unwrap()
}

fn focus(verdict: &Verdict) -> String {
    verdict.focus[0].figure.to_string()
}

#[test]
fn a_write_and_its_sync_count_as_one_wait_and_buffered_writes_as_none() {
    let commit = job(
        "commit",
        JobDemand { syncs: true, thinks: true, is_buffered: true, ..SHALLOW },
        vec![writes(0.4, 0.002, 0.004), writes(40.0, 5.0, 17.2)],
    );
    let copy = job(
        "copy",
        JobDemand { is_buffered: true, ..SHALLOW },
        vec![writes(120.0, 8.0, 20.0), writes(100.0, 9.0, 22.0)],
    );
    let mut document = compared(&["mq-deadline", "bfq"], &[commit, copy]);
    for run in &mut document.runs {
        let (per_second, ms) = if run.scheduler == "bfq" { (40.0, 20.0) } else { (0.4, 2500.0) };
        run.jobs[0].operations.push(syncs(per_second, (ms * 1e6) as u64));
    }
    let verdict = verdict(&document);
    assert_eq!((verdict.decision, verdict.recommended.as_str()), (Decision::Change, "bfq"));
    assert_eq!(focus(&verdict), "commit:sync:p99");
    let losses = &of(&verdict, "bfq").losses;
    assert!(losses.iter().all(|loss| loss.job != "commit"), "{losses:?}");
}

#[test]
fn equivalent_jobs_that_wait_for_reads_and_writes_are_judged_together() {
    let shop = |number: u32, name| Job {
        alike: Some(0),
        ..job(
            name,
            JobDemand { depth: 2, thinks: true, ..SHALLOW },
            vec![
                vec![ios(Direction::Read, 0.17, 9000.0, 12_000.0), ios(Direction::Write, 0.2, 2500.0, 2600.0)],
                vec![
                    ios(Direction::Read, 39.0, 24.0, 60.0),
                    ios(Direction::Write, 39.0, 24.0 + f64::from(number), 60.0),
                ],
            ],
        )
    };
    let dump = job("dump", DEEP, vec![writes(480.0, 40.0, 50.0), writes(400.0, 50.0, 60.0)]);
    let verdict = verdict(&compared(&["mq-deadline", "none"], &[shop(0, "shop0"), shop(1, "shop1"), dump]));
    assert_eq!((verdict.decision, verdict.recommended.as_str()), (Decision::Change, "none"));
    let gains = &of(&verdict, "none").gains;
    let is_listed = |operation| gains.iter().any(|gain| gain.operation == Some(operation) && gain.factor > 50.0);
    assert!(is_listed(hoistway_measure::Operation::Read) && is_listed(hoistway_measure::Operation::Write), "{gains:?}");
    assert!(gains.first().is_some_and(|gain| gain.to - gain.from < -1e9), "seconds first: {gains:?}");
}

#[test]
fn a_job_of_the_idle_class_never_outvotes_jobs_that_wait() {
    let verdict_with = |is_idle: bool| {
        let guests = job(
            "guests",
            JobDemand { depth: 8, asked_iops: Some(200.0), ..SHALLOW },
            vec![reads(90.0, 76.0, 350.0), reads(66.0, 167.0, 720.0)],
        );
        let mut scan = reads(0.4, 10_000.0, 10_000.0);
        let mut scan_of_other = reads(148.0, 27.0, 260.0);
        for ios in scan.iter_mut().chain(&mut scan_of_other) {
            ios.ios = 40;
        }
        let scrub = job("scrub", JobDemand { depth: 4, is_idle, ..SHALLOW }, vec![scan, scan_of_other]);
        verdict(&compared(&["mq-deadline", "kyber"], &[guests, scrub]))
    };
    assert_eq!(verdict_with(true).decision, Decision::Keep);
    assert_eq!(verdict_with(false).decision, Decision::Change, "without the class its depth says that it waits");
}

#[test]
fn a_job_with_any_reads_is_judged_before_write_only_jobs() {
    let mixed = |reads_ms: f64| {
        let under = vec![ios(Direction::Read, 400.0, reads_ms, 4.0), ios(Direction::Write, 1600.0, 2.0, 8.0)];
        job("mixed", JobDemand { depth: 4, ..SHALLOW }, vec![under.clone(), under])
    };
    let writers = |name| job(name, JobDemand { depth: 4, ..SHALLOW }, vec![writes(2000.0, 2.0, 8.0); 2]);
    for reads_ms in [0.3, 30.0] {
        let verdict = verdict(&compared(&["none", "kyber"], &[writers("a"), mixed(reads_ms), writers("z")]));
        assert!(focus(&verdict).starts_with("mixed:"), "{}", focus(&verdict));
    }
}

#[test]
fn a_gain_in_the_named_figure_outranks_gains_elsewhere() {
    // none serves the database better. bfq leaves it unchanged, but gives thirty times as much to a guest that hardly did anything.
    let database =
        || job("database", SHALLOW, vec![reads(1000.0, 1.0, 8.0), reads(1000.0, 1.0, 6.0), reads(1000.0, 1.0, 8.0)]);
    let quiet = job("quiet", SHALLOW, vec![reads(100.0, 9.0, 40.0), reads(115.0, 8.0, 38.0), reads(3000.0, 0.3, 0.5)]);
    let mut document = compared(&["mq-deadline", "none", "bfq"], &[database(), quiet]);
    assert_eq!(verdict(&document).recommended, "bfq", "no figure was named");
    document.focuses = vec!["database:read:p99".parse().unwrap()];
    let verdict = verdict(&document);
    let [none, bfq] = ["none", "bfq"].map(|name| of(&verdict, name));
    assert_eq!((none.outcome, bfq.outcome), (Outcome::Better, Outcome::BetterElsewhere));
    assert!(bfq.balance.unwrap().factor > none.balance.unwrap().factor);
    assert_eq!((verdict.recommended.as_str(), verdict.certainty), ("none", Some(1.0)));
}

#[test]
fn equals_that_are_deep_are_judged_by_their_rate_and_by_no_percentile_that_is_cut_off() {
    let cut_off_ms = 8_790_000.0;
    let deep =
        |demand| job("deep", demand, vec![reads(400.0, 16_900.0, cut_off_ms), reads(500.0, 13_000.0, cut_off_ms)]);
    let verdict_of = |demand| verdict(&compared(&["mq-deadline", "none"], &[deep(demand)]));
    let deep = verdict_of(DEEP);
    assert_eq!((focus(&deep).as_str(), deep.recommended.as_str()), ("deep:read:iops", "none"));
    let shallow = verdict_of(SHALLOW);
    assert_eq!(focus(&shallow), "deep:read:mean", "its p99 is that of all that took too long");
    assert_eq!(shallow.recommended, "none");
    let is_p99 = |aspect| matches!(aspect, Aspect::Figure(hoistway_answer::Figure::P99));
    assert!(of(&shallow, "none").gains.iter().all(|gain| !is_p99(gain.aspect)));
}

#[test]
fn a_rate_limited_job_is_judged_by_the_share_of_its_rate_reached() {
    let paced = |reached: [f64; 2]| {
        job(
            "paced",
            JobDemand { asked_iops: Some(100.0), depth: 4, ..SHALLOW },
            reached.map(|iops| reads(iops, 1.0, 2.0)).into(),
        )
    };
    let outcome = |reached| of(&verdict(&compared(&["mq-deadline", "none"], &[paced(reached)])), "none").outcome;
    assert_eq!(outcome([50.0, 100.0]), Outcome::BetterElsewhere);
    assert_eq!(outcome([110.0, 140.0]), Outcome::NoDifference, "more than was asked for is no progress");
}

#[test]
fn a_tunables_default_is_the_reference_wherever_it_stands_and_a_guests_host_has_the_default() {
    let reader = || job("r", SHALLOW, vec![reads(1000.0, 1.0, 2.0), reads(1001.0, 1.0, 2.0)]);
    let mut document = compared(&["kyber", "kyber"], &[reader()]);
    document.default_scheduler = Some("none".to_owned());
    for (index, run) in document.runs.iter_mut().enumerate() {
        let value = if index < 3 { 100_000 } else { 2_000_000 };
        let settings = serde_json::from_value(json!({"read_lat_nsec": value})).unwrap();
        run.variant = hoistway_answer::document::RunLabel::new("kyber", settings);
        run.variant.is_default = index >= 3;
    }
    let kyber = verdict(&document);
    assert_eq!((kyber.reference.as_str(), kyber.decision), ("kyber read_lat_nsec=2000000", Decision::Keep));
    let guests = |iops: [f64; 2]| job("r", SHALLOW, iops.map(|iops| reads(iops, 1e3 / iops, 2e3 / iops)).into());
    let document = compared(&["none-over-none", "none-over-mq-deadline"], &[guests([62.0, 0.9])]);
    let verdict = verdict(&document);
    assert_eq!((verdict.reference.as_str(), verdict.reference_is_default), ("none-over-mq-deadline", true));
    assert_eq!((verdict.decision, verdict.recommended.as_str()), (Decision::Change, "none-over-none"));
}

#[test]
fn a_job_without_any_io_still_counts_in_the_verdict() {
    let starved = job("starved", SHALLOW, vec![reads(10.0, 100.0, 200.0), Vec::new()]);
    let bulk = job("bulk", DEEP, vec![reads(1000.0, 32.0, 40.0), reads(3000.0, 10.0, 14.0)]);
    let verdict = verdict(&compared(&["mq-deadline", "none"], &[starved, bulk]));
    assert_eq!(verdict.decision, Decision::Keep);
}

#[test]
fn the_same_job_stands_for_those_that_are_alike_in_any_order() {
    let alike =
        |name| Job { alike: Some(0), ..job(name, SHALLOW, vec![reads(100.0, 10.0, 20.0), reads(150.0, 7.0, 15.0)]) };
    for names in [["x1", "x2", "x3"], ["x3", "x1", "x2"], ["x2", "x3", "x1"]] {
        let verdict = verdict(&compared(&["mq-deadline", "none"], &names.map(alike)));
        assert_eq!(
            (focus(&verdict).as_str(), &verdict.equivalent_jobs[..]),
            ("x1:read:p99", &["x1", "x2", "x3"].map(str::to_owned)[..])
        );
        assert!(of(&verdict, "none").gains.iter().all(|gain| gain.job == "x1"));
    }
}

/// Progress of a job under three schedulers; latencies change in proportion.
fn any_job(depth: u32) -> impl Strategy<Value = Vec<Vec<Ios>>> {
    let rate = prop::sample::select(vec![1.0, 50.0, 100.0, 101.0, 130.0, 1000.0, 50_000.0]);
    let of_rate = move |iops: f64| reads(iops, f64::from(depth) * 1e3 / iops, f64::from(depth) * 2.5e3 / iops);
    prop::collection::vec(rate.prop_map(of_rate), 3)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn one_io_at_a_time_is_never_outvoted_by_deep_jobs(
        shallow in any_job(1), deep in prop::collection::vec(any_job(64), 1..6),
    ) {
        const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
        let under = |scheduler: &str| shallow[["mq-deadline", "none", "bfq"].iter().position(|one| *one == scheduler).unwrap()][0].iops;
        let reader = job("z", SHALLOW, shallow.clone());
        let crowd = deep.into_iter().zip(NAMES).map(|(under, name)| job(name, JobDemand { depth: 64, ..SHALLOW }, under));
        let jobs: Vec<Job> = crowd.chain([reader]).collect();
        let verdict = verdict(&compared(&["mq-deadline", "none", "bfq"], &jobs));
        prop_assert!(focus(&verdict).starts_with("z:"), "{}", focus(&verdict));
        prop_assert!(under(&verdict.recommended) > 0.97 * under("mq-deadline"), "{}", verdict.recommended);
    }

    #[test]
    fn jobs_of_the_idle_class_and_discards_change_no_decision_and_are_never_the_focus(
        reader in any_job(1), writer in any_job(64), scrub in any_job(4), idle in any::<bool>(), deep in 1..64_u32,
    ) {
        const SCHEDULERS: [&str; 3] = ["mq-deadline", "none", "bfq"];
        let others = || [job("reader", SHALLOW, reader.clone()), job("writer", DEEP, writer.clone())];
        let scrub = job("scrub", JobDemand { depth: deep, is_idle: idle, ..SHALLOW }, scrub);
        let mut document = compared(&SCHEDULERS, &others().into_iter().chain([scrub]).collect::<Vec<_>>());
        for run in document.runs.iter_mut().filter(|_| !idle) {
            run.jobs[2].operations[0].operation = hoistway_measure::Operation::Trim;
        }
        let (with, without) = (verdict(&document), verdict(&compared(&SCHEDULERS, &others())));
        prop_assert_eq!((with.decision, &with.recommended), (without.decision, &without.recommended));
        prop_assert!(!focus(&with).starts_with("scrub:"), "{}", focus(&with));
        for candidate in &with.candidates {
            prop_assert!(candidate.gains.iter().all(|gain| gain.job != "scrub"), "{:?}", candidate);
            prop_assert!(candidate.losses.iter().all(|loss| loss.as_asked == (loss.job == "scrub")), "{:?}", candidate);
        }
    }

    #[test]
    fn nothing_is_recommended_for_discards_alone(discards in any_job(4)) {
        let mut document = compared(&["mq-deadline", "none", "bfq"], &[job("discards", SHALLOW, discards)]);
        for run in &mut document.runs {
            run.jobs[0].operations[0].operation = hoistway_measure::Operation::Trim;
        }
        let verdict = verdict(&document);
        prop_assert_eq!(verdict.decision, Decision::Keep);
        prop_assert!(verdict.candidates.iter().all(|one| one.outcome == Outcome::Incomparable), "{:?}", verdict);
    }

    #[test]
    fn the_focus_of_a_loads_author_changes_no_decision(jobs in prop::collection::vec(any_job(1), 2..4), named in 0..2_usize) {
        const NAMES: [&str; 3] = ["a", "b", "c"];
        let jobs: Vec<Job> = jobs.into_iter().zip(NAMES).map(|(under, name)| job(name, SHALLOW, under)).collect();
        let mut document = compared(&["mq-deadline", "none", "bfq"], &jobs);
        let without = verdict(&document);
        document.focus = Some(format!("{}:read:p99", NAMES[named]).parse().unwrap());
        let with = verdict(&document);
        prop_assert_eq!((with.decision, with.recommended), (without.decision, without.recommended));
    }

    /// A tenth more of a named figure does not pay for half of the progress of others.
    #[test]
    fn a_small_gain_in_a_named_figure_does_not_pay_for_a_large_loss(gain in 1.03..1.12_f64, loss in 2.0..50.0_f64) {
        let named = vec![reads(1000.0, 1.0, 4.0), reads(1000.0 * gain, 1.0 / gain, 4.0 / gain)];
        let other = vec![reads(500.0, 2.0, 8.0), reads(500.0 / loss, 2.0 * loss, 8.0 * loss)];
        let mut document = compared(&["mq-deadline", "bfq"], &[job("a", SHALLOW, named), job("b", SHALLOW, other)]);
        document.focuses = vec!["a:read:p99".parse().unwrap()];
        prop_assert_eq!(verdict(&document).decision, Decision::Keep);
    }

    /// Whatever the percentiles say, waits that get longer when weighed by time are no gain.
    #[test]
    fn a_gain_that_the_waits_weighed_by_time_contradict_is_none(p99_by in 0.1..0.9_f64, wait_by in 1.3..500.0_f64) {
        let under = vec![reads(1000.0, 1.0, 4.0), reads(1000.0, 1.0, 4.0 * p99_by)];
        let mut document = compared(&["mq-deadline", "bfq"], &[job("reader", SHALLOW, under)]);
        for run in &mut document.runs {
            let by = if run.scheduler == "bfq" { wait_by } else { 1.0 };
            let by_time = TimeWeighted { judged_ns: 1.1e6 * by, mean_ns: 1.2e6 * by, longer_ios: 0.004, longer_time: 0.5 };
            run.jobs[0].operations[0].lat_ns.by_time = Some(by_time);
        }
        document.focus = Some("reader:read:p99".parse().unwrap());
        let verdict = verdict(&document);
        prop_assert_eq!(verdict.decision, Decision::Keep);
        let hidden = of(&verdict, "bfq").losses.iter().find(|loss| loss.aspect == Aspect::Wait);
        prop_assert!(hidden.is_some_and(|loss| loss.weighs), "{:?}", verdict.candidates);
    }

    /// However much one party gains: a variant that helps everybody is recommended before one that harms another party, even one that
    /// is less likely to be waited for.
    #[test]
    fn what_helps_everybody_comes_before_what_harms_somebody(
        gain in 10.0..100.0_f64, loss in 3.0..10.0_f64, help in 1.1..1.5_f64, depth in 2..=8_u32,
    ) {
        let under = |by: f64| reads(1000.0 * by, 1.0 / by, 4.0 / by);
        let first = job("a", SHALLOW, vec![under(1.0), under(gain), under(help)]);
        let second = job("b", JobDemand { depth, ..SHALLOW }, vec![under(1.0), under(1.0 / loss), under(help)]);
        let verdict = verdict(&compared(&["mq-deadline", "bfq", "none"], &[first, second]));
        prop_assert_eq!(&verdict.recommended, "none");
    }

    #[test]
    fn a_figure_that_is_the_same_everywhere_is_not_judged_beside_one_that_differs(
        same in 1.0..1e5_f64, rates in prop::collection::vec(10.0..1e4_f64, 3), is_zero in any::<bool>(),
    ) {
        let of_rate = |iops: f64| reads(iops, 1e3 / iops, 2e3 / iops);
        let constant = job("constant", SHALLOW, vec![reads(same, if is_zero { 0.0 } else { 1e3 / same }, 0.0); 3]);
        let varied = job("varied", SHALLOW, rates.iter().copied().map(of_rate).collect());
        let document = compared(&["mq-deadline", "none", "bfq"], &[constant, varied]);
        // What differs by less than the smallest effect takes nobody's place.
        if rates.iter().any(|rate| (rate / rates[0]).ln().abs() > 0.025) {
            let focus = focus(&verdict(&document));
            prop_assert!(focus.starts_with("varied:"), "{}", focus);
        }
    }

    #[test]
    fn of_two_alike_the_one_whose_cgroup_has_more_weight_decides(
        weights in (1..1000_u32, 1..1000_u32), by in 1.2..20.0_f64, is_bulk in any::<bool>(),
    ) {
        let depth = if is_bulk { 64 } else { 1 };
        let at = |iops: f64| reads(iops, f64::from(depth) * 1e3 / iops, f64::from(depth) * 2e3 / iops);
        let under = |own: f64| vec![at(1000.0), at(1000.0 * own), at(1000.0 / own)];
        let weighted = |weight| JobDemand { depth, weight: Some(weight), ..SHALLOW };
        let jobs = [job("a", weighted(weights.0), under(by)), job("b", weighted(weights.1), under(1.0 / by))];
        let verdict = verdict(&compared(&["mq-deadline", "none", "bfq"], &jobs));
        // Both gain and lose by the same factor, so what is left is in proportion to the difference of their weights.
        let (a, b) = (f64::from(weights.0), f64::from(weights.1));
        let left = (by.ln() * (a - b) / (a + b)).exp();
        let expected = if left > 1.03 { "none" } else if left < 1.0 / 1.03 { "bfq" } else { return Ok(()) };
        prop_assert_eq!(&verdict.recommended, expected);
        prop_assert!(focus(&verdict).starts_with(if a > b { "a:" } else { "b:" }), "{}", focus(&verdict));
    }

    #[test]
    fn discards_chance_streams_and_synced_bulk_never_outvote_guests_that_are_paced(
        guests in any_job(8), depth in 1..8_u32, beside in any_job(8), kind in 0..3, ios_per_sync in 32..1000_u64,
    ) {
        const SCHEDULERS: [&str; 3] = ["mq-deadline", "none", "bfq"];
        let under = |scheduler: &str| guests[SCHEDULERS.iter().position(|one| *one == scheduler).unwrap()][0].iops;
        let paced = JobDemand { depth: 8, asked_iops: Some(1e6), ..SHALLOW };
        let jobs = [job("guests", paced, guests.clone()), job("a", JobDemand { depth, syncs: kind == 2, ..SHALLOW }, beside)];
        let mut document = compared(&SCHEDULERS, &jobs);
        for run in &mut document.runs {
            let operations = &mut run.jobs[1].operations;
            operations[0].bytes = operations[0].ios * 524_288;
            if kind == 1 {
                operations[0].operation = hoistway_measure::Operation::Trim;
            }
            if kind == 2 {
                operations[0].operation = hoistway_measure::Operation::Write;
                let mut ends = syncs(operations[0].iops / ios_per_sync as f64, operations[0].lat_ns.p99);
                ends.ios = operations[0].ios / ios_per_sync;
                operations.push(ends);
            }
        }
        let verdict = verdict(&document);
        prop_assert!(focus(&verdict).starts_with("guests:"), "{}", focus(&verdict));
        prop_assert!(under(&verdict.recommended) > 0.97 * under("mq-deadline"), "{}", verdict.recommended);
    }

    #[test]
    fn of_two_that_differ_in_stalls_alone_the_steady_one_is_taken_however_few_turns_of_the_reference_have_ended(
        turns in 1..5000_u64, stall in 1.5..50.0_f64, is_first in any::<bool>(), cut_off in any::<[bool; 3]>(),
    ) {
        let under = |iops, mean_ms, p99_ms, ios| vec![Ios { direction: Direction::Read, iops, mean_ms, p99_ms, ios }];
        let (steady, stalls) = (under(100.0, 10.0, 20.0, 5000), under(100.0, 10.0, 20.0 * stall, 5000));
        let others = if is_first { [steady, stalls] } else { [stalls, steady] };
        let starved = under(0.2, 5000.0, 5000.0, turns);
        let reader = job("reader", SHALLOW, std::iter::once(starved).chain(others).collect());
        let mut document = compared(&["mq-deadline", "none", "bfq"], &[reader]);
        // Its runs come first. The slowest I/Os of some were in flight at the end.
        for (run, is_cut_off) in document.runs.iter_mut().zip(cut_off) {
            run.jobs[0].operations[0].outstanding = is_cut_off.then_some(20);
        }
        let verdict = verdict(&document);
        prop_assert_eq!(&verdict.recommended, if is_first { "none" } else { "bfq" });
    }

    #[test]
    fn the_named_gain_is_the_part_of_a_loop_that_the_change_affects(
        read_ms in 1.0..100.0_f64, write_ms in 1.0..100.0_f64, by in 2.0..50.0_f64, moves_reads in any::<bool>(), rest_by in 2.0..50.0_f64,
    ) {
        let under = |read_ms: f64, write_ms: f64| {
            let iops = 500.0 / (read_ms + write_ms);
            vec![ios(Direction::Read, iops, read_ms, 2.0 * read_ms), ios(Direction::Write, iops, write_ms, 2.0 * write_ms)]
        };
        let faster = if moves_reads { under(read_ms / by, write_ms) } else { under(read_ms, write_ms / by) };
        // What a third scheduler, worse than the reference, does to the other part is no reason to name that.
        let slower = if moves_reads { under(read_ms, write_ms * rest_by) } else { under(read_ms * rest_by, write_ms) };
        let mixed = job("mixed", SHALLOW, vec![under(read_ms, write_ms), faster, slower]);
        let verdict = verdict(&compared(&["mq-deadline", "none", "bfq"], &[mixed]));
        let moved = (1.0 - 1.0 / by) * if moves_reads { read_ms } else { write_ms };
        if moved > 0.05 * (read_ms + write_ms) {
            prop_assert_eq!(focus(&verdict), if moves_reads { "mixed:read:p99" } else { "mixed:write:p99" });
        }
        // What is short beside the rest hardly matters.
        let power = |ms: f64| ms.powf(1.5);
        let part = power(if moves_reads { read_ms } else { write_ms }) / (power(read_ms) + power(write_ms));
        if part * (1.0 - power(1.0 / by)) > 0.05 {
            prop_assert_eq!(&verdict.recommended, "none");
        }
    }

    #[test]
    fn the_rate_of_a_program_that_reads_and_writes_is_that_of_its_reads(
        read_share in 0.01..0.99_f64, read_ms in 0.1..10.0_f64, write_ms in 0.1..10.0_f64, by in 0.1..10.0_f64, is_deep in any::<bool>(),
    ) {
        // Its writes are what a scheduler changes, and their share of its loop is any.
        let under = |write_ms: f64| {
            let iops = 4000.0 / (read_share * read_ms + (1.0 - read_share) * write_ms);
            let of = |direction, share: f64, ms: f64| Ios { ios: (1e5 * share) as u64, ..ios(direction, share * iops, ms, 2.0 * ms) };
            vec![of(Direction::Read, read_share, read_ms), of(Direction::Write, 1.0 - read_share, write_ms)]
        };
        let demand = if is_deep { DEEP } else { JobDemand { depth: 4, ends: true, ..SHALLOW } };
        let mixed = job("mixed", demand, vec![under(write_ms), under(write_ms * by)]);
        let verdict = verdict(&compared(&["mq-deadline", "none"], &[mixed]));
        if read_share > 0.11 {
            prop_assert_eq!(focus(&verdict), "mixed:read:iops");
        } else if read_share < 0.09 {
            prop_assert_eq!(focus(&verdict), "mixed:write:iops", "a rare operation does not name the rate");
        }
    }

    #[test]
    fn a_scheduler_under_which_no_commit_ended_shortens_no_wait(
        commit_s in 0.1..9.0_f64, write_share in 0.01..0.9_f64, late_s in 0.0..5.0_f64,
    ) {
        // Four writes and a sync are a commit. Under bfq the last writes of the first commit are in flight when the time is up.
        let write_ms = 1e3 * commit_s * write_share / 4.0;
        let commits = 1.0 / commit_s;
        let under = |per_second: f64, ms: f64| vec![Ios { ios: 4, ..ios(Direction::Write, per_second, ms, 2.0 * ms) }];
        let demand = JobDemand { syncs: true, ..SHALLOW };
        let job = job("editor", demand, vec![under(4.0 * commits, write_ms), under(0.3, 2500.0)]);
        let mut document = compared(&["mq-deadline", "bfq"], &[job]);
        for run in document.runs.iter_mut().filter(|run| run.scheduler == "mq-deadline") {
            run.simulated_seconds = 10.0 + late_s;
            let sync_ns = (1e9 * commit_s * (1.0 - write_share)) as u64;
            run.jobs[0].operations.push(OperationSummary { ios: 1, ..syncs(commits, sync_ns) });
        }
        let verdict = verdict(&document);
        prop_assert_eq!(&verdict.recommended, "mq-deadline", "{:?}", of(&verdict, "bfq").balance);
    }

    #[test]
    fn the_order_of_jobs_changes_nothing(
        jobs in prop::collection::vec((any_job(8), 0..3_usize, any::<bool>()), 2..6),
    ) {
        const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];
        let made = |(number, (under, depth, thinks)): (usize, &(Vec<Vec<Ios>>, usize, bool))| {
            let demand = JobDemand { depth: [1, 4, 32][*depth], thinks: *thinks, ..SHALLOW };
            job(NAMES[number], demand, under.clone())
        };
        let jobs: Vec<Job> = jobs.iter().enumerate().map(made).collect();
        let one = verdict(&compared(&["mq-deadline", "none", "bfq"], &jobs));
        let other = verdict(&compared(&["mq-deadline", "none", "bfq"], &jobs.into_iter().rev().collect::<Vec<_>>()));
        prop_assert_eq!((&one.recommended, focus(&one)), (&other.recommended, focus(&other)));
        let outcomes = |verdict: &Verdict| verdict.candidates.iter().map(|one| (one.scheduler.clone(), one.outcome)).collect::<Vec<_>>();
        prop_assert_eq!(outcomes(&one), outcomes(&other));
    }
}
