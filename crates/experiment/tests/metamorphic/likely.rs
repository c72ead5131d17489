//! Equivalent formulations that change the random draws: figures differ by no more than between seeds.

use super::case::{Case, Section, ios, ios_of_each};
use super::cases;
use super::chance::differ;

/// Systematic difference that is allowed, as a fraction: some times are rounded to whole milliseconds.
const SLACK: f64 = 0.05;

/// Asserts that the sections of a case get as many I/Os in an equivalent case, up to chance.
fn expect_indistinguishable(case: &Case, other: &Case) -> Result<(), String> {
    for section in &case.sections {
        let sample = |is_other, seed, runs| {
            let of = if is_other { other } else { case };
            of.run(seed, runs).iter().map(|run| ios(run, &section.name) as f64).collect()
        };
        if differ(SLACK, sample) {
            let of = |case: &Case| case.run(1, 4).iter().map(|run| ios(run, &section.name)).collect::<Vec<_>>();
            return Err(format!("{}: {:?}, and {:?} in\n{}", section.name, of(case), of(other), other.job_file()));
        }
    }
    Ok(())
}

#[test]
fn job_order_changes_nothing_beyond_chance() {
    cases(8, |case| {
        let mut other = case.clone();
        other.sections.reverse();
        if other.sections.len() > 1 { expect_indistinguishable(case, &other) } else { Ok(()) }
    });
}

#[test]
fn an_idle_job_before_others_changes_nothing_for_them() {
    cases(8, |case| {
        let mut other = case.clone();
        let more = vec![format!("startdelay={}s", 1 + case.runtime_ms / 500), "number_ios=1".to_owned()];
        let idle =
            Section { name: "idle".to_owned(), rw: "randread", block_kib: 4, depth: 1, numjobs: 1, disk: "sda", more };
        other.sections.insert(0, idle);
        expect_indistinguishable(case, &other)
    });
}

#[test]
fn the_first_of_two_identical_processes_has_no_advantage() {
    cases(8, |case| {
        let mut twins = case.clone();
        twins.sections.truncate(1);
        twins.sections[0].numjobs = 4;
        for twin in 1..4 {
            let sample = |is_other, seed, runs| {
                let of = if is_other { twin } else { 0 };
                twins.run(seed, runs).iter().map(|run| ios_of_each(run)[of] as f64).collect()
            };
            if differ(SLACK, sample) {
                let runs: Vec<_> = twins.run(1, 4).iter().map(ios_of_each).collect();
                return Err(format!("{runs:?} in\n{}", twins.job_file()));
            }
        }
        Ok(())
    });
}

/// Checks that `fast` does not do fewer I/Os than `slow`, over all jobs. Under bfq a run of 50 ms depends on which process it waits for, and
/// the sums of three such runs differ by half between seeds, so a difference counts if 24 runs from other seeds confirm it.
fn expect_no_less(slow: &Case, fast: &Case) -> Result<(), String> {
    let sums = |seed, runs| {
        [slow, fast].map(|case| case.run(seed, runs).iter().flat_map(ios_of_each).sum::<u64>() as f64 / f64::from(runs))
    };
    // I/Os of other processes may cost the host more, so a different share changes the sum.
    let is_less = |[slow, fast]: [f64; 2]| fast * 1.1 + 10.0 < slow;
    let first = sums(1, 3);
    if !is_less(first) {
        return Ok(());
    }
    let confirming = sums(1000, 24);
    if !is_less(confirming) {
        return Ok(());
    }
    Err(format!(
        "{first:?} I/Os a run on the slower and the faster, {confirming:?} in further runs, with\n{}",
        fast.in_words()
    ))
}

#[test]
fn a_faster_device_does_no_less() {
    cases(8, |case| {
        let queues = if case.cpus > 2 { case.cpus } else { 1 };
        let slow = case.clone().on_null(400, 16, queues);
        let fast = Case { runtime_ms: slow.runtime_ms, ..case.clone().on_null(200, 16, queues) };
        expect_no_less(&slow, &fast)
    });
}

#[test]
fn a_deeper_job_alone_gets_no_less() {
    cases(8, |case| {
        let mut shallow = case.clone().on_null(300, 32, 1);
        shallow.sections.truncate(1);
        shallow.sections[0].depth = 2;
        let mut deep = shallow.clone();
        deep.sections[0].depth = 16;
        expect_no_less(&shallow, &deep)
    });
}

#[test]
fn another_disk_changes_nothing_for_jobs_that_leave_it_cpus() {
    cases(8, |case| {
        let mut alone = case.clone();
        alone.cpus = 8;
        alone.sections.truncate(2);
        let mut beside = alone.clone();
        beside.sections.push(Section {
            name: "elsewhere".to_owned(),
            rw: "randread",
            block_kib: 4,
            depth: 1,
            numjobs: 1,
            disk: "sdb",
            more: vec!["rate_iops=50".to_owned()],
        });
        expect_indistinguishable(&alone, &beside)
    });
}
