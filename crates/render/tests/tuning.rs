//! The conclusion of a search: each sentence appears if and only if it holds.

use std::collections::BTreeMap;

use hoistway_answer::advice::CgroupWrites;
use hoistway_answer::analysis::Estimate;
use hoistway_answer::document::{Aspect, Change, Shift};
use hoistway_answer::tuning::{Budget, FORMAT, Round, SearchOutcome, Setting, SettingResult, Tuning};
use hoistway_answer::{Figure, FigureName};
use hoistway_measure::Operation;
use hoistway_render::html::tuned_html;
use hoistway_render::text::{tuning, tuning_conclusion};
use serde_json::json;

const READS: &str = "a:read:p99";
const WRITES: &str = "b:write:iops";

fn name(name: &str) -> FigureName {
    name.parse().unwrap()
}

fn batch(text: &str) -> Setting {
    Setting::untouched("mq-deadline").with("iosched/fifo_batch", text)
}

fn change(factor: f64, half: f64) -> Change {
    Change { factor, low: Some(factor / half), high: Some(factor * half) }
}

fn standing(setting: Setting, p99_ns: f64, margin: Change) -> SettingResult {
    let spread = |mean: f64| Estimate { mean, half_width: Some(mean / 100.0) };
    SettingResult {
        setting,
        seeds: 5,
        figures: BTreeMap::from([(name(READS), spread(p99_ns)), (name(WRITES), spread(1000.0))]),
        holds: margin.factor >= 1.0,
        margins: vec![Some(margin)],
        beside_best: Some(change(1.0, 1.0)),
    }
}

fn found(best: SettingResult, gain: Change) -> Tuning {
    let reference = standing(Setting::untouched("mq-deadline"), 2e6, change(1.2, 1.01));
    let settings = vec![best.clone(), reference.clone()];
    let found = SearchOutcome {
        holds: best.holds,
        best,
        reference,
        gain: Some(gain),
        undecided: Vec::new(),
        losses: Some(Vec::new()),
    };
    Tuning {
        format: FORMAT.to_owned(),
        version: "1".to_owned(),
        command: String::new(),
        job_file: "my.fio".to_owned(),
        job_text: String::new(),
        device: json!({"name": "hdd"}),
        kernel: "7.2".to_owned(),
        outside_linux: BTreeMap::from([("k2".to_owned(), "RTSS 2019".to_owned())]),
        cpus: 8,
        host: json!({"name": "server"}),
        search: json!(null),
        objective: format!("min {READS} subject to {WRITES} >= 0.9*none").parse().unwrap(),
        budget: Budget::Runs(200),
        seed: 1,
        tunables: Vec::new(),
        settings_possible: 2,
        window: None,
        rounds: vec![Round { runtime_ns: None, settings }],
        found: Some(found),
        cgroup_writes: Vec::new(),
        front: Vec::new(),
        effects: Vec::new(),
        notices: Vec::new(),
        conclusion: Vec::new(),
        runs: Vec::new(),
    }
}

fn shown(tuning: &Tuning) -> String {
    tuning_conclusion(tuning).join("\n")
}

#[test]
fn a_setting_better_beyond_the_noise_is_worth_a_change() {
    let mut document = found(standing(batch("1"), 1e6, change(1.1, 1.01)), change(2.0, 1.1));
    let text = shown(&document);
    let change_to = "For this load on hdd: change from mq-deadline to mq-deadline with fifo_batch=1: p99 read latency of a 2.00 ms \
                     ±1.0% -> 1.00 ms ±1.0%, -50.0% (95 %: ";
    assert!(text.starts_with(change_to), "{text}");
    assert!(text.contains("It meets \"b:write:iops >= 0.9*none\" beyond the noise, by a factor of 1.10."), "{text}");
    assert!(!text.contains("does not differ beyond") && !text.contains("settings were tried"), "{text}");
    document.found.as_mut().unwrap().undecided = (0..6).map(|n| batch(&n.to_string())).collect();
    document.settings_possible = 50;
    let text = shown(&document);
    assert!(
        text.contains("After 5 seeds it does not differ beyond the noise from mq-deadline with fifo_batch=0, "),
        "{text}"
    );
    assert!(text.contains(" and 2 more.") && text.contains("2 of 50 settings were tried"), "{text}");
    let table = tuning(&document, 100);
    assert!(table.contains("mq-deadline fifo_batch=1") && table.contains("kept"), "{table}");
}

#[test]
fn lines_for_files_of_cgroups_follow_a_change_in_text_and_page_and_nothing_else() {
    let with_lines = |gain| {
        let mut document = found(standing(batch("1"), 1e6, change(1.1, 1.01)), gain);
        let lines = ["echo max", "echo min"].map(|line| vec![line.to_owned()]);
        let [now, back] = lines;
        document.cgroup_writes = vec![CgroupWrites { device: "sda".to_owned(), now, back }];
        [tuning(&document, 100), tuned_html(&document)]
    };
    for text in with_lines(change(2.0, 1.1)) {
        let [now, undo, back] = ["    echo max\n", "To undo:\n", "    echo min"].map(|part| text.find(part));
        assert!(now.is_some() && now < undo && undo < back, "{text}");
    }
    for text in with_lines(change(1.01, 1.001)) {
        assert!(!text.contains("echo max") && !text.contains("To undo"), "{text}");
    }
}

#[test]
fn a_setting_without_a_gain_is_no_reason_to_change() {
    let best = || standing(batch("1"), 1.9e6, change(1.1, 1.01));
    for gain in [change(1.3, 1.5), change(1.01, 1.001), change(0.9, 1.01)] {
        let text = shown(&found(best(), gain));
        assert!(
            text.starts_with("For this load on hdd: keep mq-deadline: the best that was found, "),
            "{gain:?}: {text}"
        );
        assert!(!text.contains("change from"), "{text}");
    }
    let same = standing(Setting::untouched("mq-deadline"), 2e6, change(1.2, 1.01));
    let text = shown(&found(same, change(1.0, 1.0)));
    assert!(
        text.contains("keep mq-deadline: nothing that was tried is better in p99 read latency of a (2.00 ms"),
        "{text}"
    );
}

#[test]
fn costs_of_a_change_are_reported_only_if_they_were_examined() {
    let loss = Shift {
        as_asked: false,
        job: "c".to_owned(),
        jobs: 1,
        operation: Some(Operation::Sync),
        aspect: Aspect::Figure(Figure::P99),
        from: 1e6,
        to: 3e6,
        factor: 3.0,
        significant: Some(true),
        weighs: true,
    };
    let with = |losses: Option<Vec<Shift>>, gain: Change| {
        let mut document = found(standing(batch("1"), 1e6, change(1.1, 1.01)), gain);
        document.found.as_mut().unwrap().losses = losses;
        shown(&document)
    };
    let (better, same) = (change(2.0, 1.1), change(1.01, 1.001));
    let text = with(Some(vec![loss.clone(); 8]), better);
    let words =
        "It loses more than it gains, worst first: p99 fsync latency of c 1.00 ms -> 3.00 ms (3.00 times); p99 fsync";
    assert!(text.contains(words) && text.contains("; 2 more. Add a condition (subject to) for"), "{text}");
    assert!(text.contains(": by this objective alone change from mq-deadline to"), "{text}");
    for lighter in [Shift { factor: 1.5, ..loss.clone() }, Shift { weighs: false, ..loss.clone() }] {
        let text = with(Some(vec![lighter]), better);
        assert!(text.contains("It costs, worst first: p99 fsync") && text.contains(": change from"), "{text}");
    }
    assert!(with(Some(Vec::new()), better).contains("Nothing else gets worse by 2 % or more beyond the noise."));
    assert!(!with(None, better).contains("worse"), "it is not known");
    assert!(!with(Some(vec![loss]), same).contains("It costs"), "nothing is changed");
}

#[test]
fn a_condition_that_holds_by_luck_is_not_claimed() {
    let text = shown(&found(standing(batch("1"), 1e6, change(1.01, 1.1)), change(2.0, 1.1)));
    assert!(text.contains("It meets \"b:write:iops >= 0.9*none\" on average, but not beyond the noise"), "{text}");
}

#[test]
fn a_reference_that_does_not_keep_the_conditions_is_not_kept() {
    let mut document = found(standing(batch("1"), 3e6, change(1.1, 1.01)), change(0.66, 1.01));
    document.found.as_mut().unwrap().reference.holds = false;
    let text = shown(&document);
    assert!(
        text.contains("+51.5% (95 %: ") && text.contains("from mq-deadline, which does not meet the conditions."),
        "{text}"
    );
    assert!(!text.contains("keep mq-deadline"), "{text}");
}

#[test]
fn unmet_conditions_name_the_closest_setting_and_what_it_misses() {
    let text = shown(&found(standing(batch("1"), 1e6, change(0.8, 1.01)), change(2.0, 1.1)));
    assert_eq!(
        text,
        "For this load on hdd, no setting that was tried meets the conditions. The closest is mq-deadline with fifo_batch=1, which \
         misses \"b:write:iops >= 0.9*none\" (by a factor of 1.25: 1.00 k ±1.0%)."
    );
    let nothing = Tuning { found: None, ..found(standing(batch("1"), 1e6, change(1.0, 1.0)), change(1.0, 1.0)) };
    assert!(tuning_conclusion(&nothing).is_empty());
}

#[test]
fn a_setting_that_no_kernel_has_is_not_recommended_without_saying_so() {
    let of = |scheduler: &str| {
        shown(&found(standing(Setting::untouched(scheduler), 1e6, change(1.2, 1.01)), change(2.0, 1.1)))
    };
    let says = "No Linux kernel has k2 (RTSS 2019)";
    assert!(of("k2").contains(says) && !of("bfq").contains(says), "{}", of("k2"));
}
