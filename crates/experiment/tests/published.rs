//! What schedulers that no kernel has do to the loads of their publications.

use hoistway_answer::ResultsDocument;
use hoistway_experiment::{Alone, Comparison, Devices, Load, Tunable, scenarios};

/// The IOPS of a job under the only scheduler.
fn iops(document: &ResultsDocument, job: &str) -> f64 {
    let jobs = document.runs[0].jobs.iter().filter(|summary| summary.name == job);
    jobs.flat_map(|summary| &summary.operations).map(|operation| operation.iops).sum()
}

/// A bundled load with only these of its jobs, under a scheduler with a tunable.
fn run(scenario: &str, jobs: &[&str], scheduler: &str, tunable: Option<(&str, &str)>) -> ResultsDocument {
    let scenario = scenarios::named(scenario).expect("it is bundled");
    let mut is_kept = true;
    let kept = scenario.job.lines().filter(|line| {
        if let Some(section) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            is_kept = section == "global" || jobs.contains(&section);
        }
        is_kept
    });
    let text: String = kept.flat_map(|line| [line, "\n"]).collect();
    let tunables = tunable.map(|(name, text)| Tunable {
        scheduler: scheduler.to_owned(),
        name: name.to_owned(),
        text: text.to_owned(),
    });
    let comparison = Comparison {
        load: Load::text(&text),
        devices: vec![Devices { common: Some(scenario.page.device_profile()), ..Devices::default() }],
        schedulers: vec![scheduler.to_owned()],
        tunables: tunables.into_iter().collect(),
        runtime_ns: Some(1_000_000_000),
        ramp_ns: Some(1_000_000_000),
        repeats: 1,
        ..Comparison::default()
    };
    comparison.run(&Alone).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn under_tabs_reads_and_writes_with_fua_keep_most_of_a_fair_bandwidth_and_under_none_reads_do_not() {
    const JOBS: [&str; 2] = ["reader", "fua-writer"];
    let alone = JOBS.map(|job| iops(&run("fua-writer", &[job], "none", None), job));
    // Both have 16 requests outstanding: half of what each has alone is fair.
    let fairness = |scheduler: &str| {
        let document = run("fua-writer", &JOBS, scheduler, None);
        let parts = [0, 1].map(|job: usize| iops(&document, JOBS[job]) / (alone[job] / 2.0));
        parts[0].min(parts[1])
    };
    let [none, tabs] = ["none", "tabs"].map(fairness);
    assert!(none <= 0.3 && tabs >= 0.7, "{none} {tabs}");
}

#[test]
fn a_client_at_depth_1_keeps_most_of_what_it_has_alone_under_vfair_with_few_slots() {
    let alone = iops(&run("deep-neighbour", &["lone"], "none", None), "lone");
    let lone = |scheduler: &str, slots: Option<(&str, &str)>| {
        iops(&run("deep-neighbour", &["lone", "deep"], scheduler, slots), "lone") / alone
    };
    let [none, default, few] = [lone("none", None), lone("vfair", None), lone("vfair", Some(("slots", "16")))];
    assert!(none < 0.2 && default > 0.5 && few >= 0.7, "{none} {default} {few}");
}

#[test]
fn cffq_gives_levels_their_shares_without_a_loss_of_throughput() {
    const LEVELS: [&str; 3] = ["level-0", "level-4", "level-7"];
    let of = |scheduler: &str| {
        let document = run("priority-shares", &LEVELS, scheduler, None);
        LEVELS.map(|level| iops(&document, level))
    };
    let [none, cffq] = ["none", "cffq"].map(of);
    let [all_none, all] = [none, cffq].map(|levels| levels.iter().sum::<f64>());
    assert!(all > 0.95 * all_none, "{all} {all_none}");
    for (part, due) in cffq.map(|iops| iops / all).into_iter().zip([8.0, 4.0, 1.0]) {
        assert!((part * 13.0 / due - 1.0).abs() < 0.05, "{cffq:?}");
    }
}
