//! Documents with several devices, kernels or hosts: the baseline of each row, and the sentences about each setup.

use crate::support;
use crate::support::place;

use hoistway_answer::document::{DiskGroup, JobSummary, Run, RunLabel, Statistics};
use hoistway_answer::verdict::verdicts;
use hoistway_answer::{Analysis, ResultsDocument};
use hoistway_measure::Direction;
use hoistway_render::text::{Style, csv, markdown, table};
use serde_json::{Map, json};

use place::place;
use support::{direction, document, run};

/// I/Os a second of schedulers on each device, with the device's default scheduler.
type Places<'a> = [(&'a str, &'a str, &'a [(&'a str, f64)])];

const TWO: &Places<'_> =
    &[("hdd", "bfq", &[("none", 100.0), ("bfq", 200.0)]), ("nvme", "none", &[("none", 1000.0), ("bfq", 500.0)])];

/// Three repeats of a job of reads.
fn of_places(places: &Places<'_>) -> ResultsDocument {
    let run_of = |setup: u32, device: &str, scheduler: &str, iops: f64, repeat: u32| {
        let iops = iops * [1.0, 1.01, 0.995][repeat as usize];
        let jobs = vec![("a", 1, vec![direction(Direction::Read, iops, 1e9 / iops)])];
        let variant = RunLabel::new(scheduler, Map::from_iter([("device".to_owned(), json!(device))]));
        Run { setup, repeat, variant, ..run(scheduler, jobs) }
    };
    let mut runs = Vec::new();
    for (setup, (device, _, schedulers)) in (0..).zip(places) {
        for (scheduler, iops) in *schedulers {
            runs.extend((0..3).map(|repeat| run_of(setup, device, scheduler, *iops, repeat)));
        }
    }
    let mut document = document(runs);
    document.setups = places.iter().map(|(device, default, _)| place(device, "7.2", Some(default))).collect();
    document.default_scheduler = Some(places[0].1.to_owned());
    document
}

/// Rows with their baselines, and the difference in I/Os a second in percent.
fn compared(document: &ResultsDocument) -> Vec<(String, Option<String>, Option<i64>)> {
    let rows = Statistics::of(&Analysis::of(document)).rows.into_iter();
    rows.map(|row| {
        let difference = row.figures.get("iops").unwrap().from_baseline.as_ref().and_then(|one| one.relative);
        (row.scheduler, row.compared_with, difference.map(|relative| (relative * 100.0).round() as i64))
    })
    .collect()
}

#[test]
fn each_row_is_compared_with_the_default_of_its_place() {
    let two = of_places(TWO);
    let owned = |rows: [(&str, &str, Option<i64>); 4]| {
        rows.map(|(row, with, difference)| (row.to_owned(), Some(with.to_owned()), difference)).to_vec()
    };
    let expected = owned([
        ("none device=hdd", "bfq device=hdd", Some(-50)),
        ("bfq device=hdd", "bfq device=hdd", None),
        ("none device=nvme", "none device=nvme", None),
        ("bfq device=nvme", "none device=nvme", Some(-50)),
    ]);
    assert_eq!(compared(&two), expected);
    for text in [table(&Analysis::of(&two), &Style::default()), markdown(&Analysis::of(&two))] {
        assert!(text.contains("its place") && !text.contains("+900%"), "{text}");
        let prose = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let shown = "vs its place: each row is compared with the row of its own kernel, device and host: bfq device=hdd and none device=nvme.";
        assert!(prose.contains(shown), "{prose}");
    }
    let csv = csv(&Analysis::of(&two));
    let column = csv.lines().next().unwrap().split(',').position(|name| name == "iops_vs_baseline").unwrap();
    let cells = csv.lines().skip(1).map(|line| line.split(',').nth(column).unwrap());
    let differences: Vec<Option<i64>> =
        cells.map(|cell| cell.parse::<f64>().ok().map(|relative| (relative * 100.0).round() as i64)).collect();
    assert_eq!(differences, [Some(-50), None, None, Some(-50)]);
}

#[test]
fn each_job_is_compared_with_the_default_of_its_disk() {
    let run_of = |scheduler: &str, repeat: u32| {
        let iops = if scheduler == "none" { 1000.0 } else { 500.0 };
        let job = |name| (name, 1, vec![direction(Direction::Read, iops, 1e9 / iops)]);
        Run { repeat, ..run(scheduler, vec![job("on-flash"), job("on-platters")]) }
    };
    let mut two = document(["none", "bfq"].iter().flat_map(|one| (0..3).map(|repeat| run_of(one, repeat))).collect());
    let disk = |file: &str, job: u32, default: &str| DiskGroup {
        model: file.to_owned(),
        files: vec![file.to_owned()],
        jobs: vec![job],
        default_scheduler: default.to_owned(),
    };
    two.disk_groups = vec![disk("/dev/nvme0n1", 0, "none"), disk("/dev/sda", 1, "bfq")];
    let differences: Vec<Option<i64>> = compared(&two).into_iter().map(|one| one.2).collect();
    assert_eq!(differences, [None, Some(-50), Some(100), None]);
    let text = table(&Analysis::of(&two), &Style::default());
    let headers: Vec<&str> = text.lines().filter(|line| line.starts_with("scheduler")).collect();
    assert!(headers[0].contains("none") && headers[1].contains("bfq"), "{text}");
    assert!(!text.contains("its place"), "{text}");
    two.baseline = Some("none".to_owned());
    let differences: Vec<Option<i64>> = compared(&two).into_iter().map(|one| one.2).collect();
    assert_eq!(differences, [None, Some(-50), None, Some(-50)], "a scheduler that was named is that of all disks");
}

#[test]
fn the_header_names_a_default_common_to_all_places() {
    let places: &Places<'_> =
        &[("hdd", "none", &[("none", 100.0), ("bfq", 200.0)]), ("nvme", "none", &[("none", 1000.0), ("bfq", 500.0)])];
    let text = table(&Analysis::of(&of_places(places)), &Style::default());
    assert!(text.contains("vs none: each row is compared with the row of its own kernel, device and host"), "{text}");
    let one = of_places(&places[..1]);
    assert!(!table(&Analysis::of(&one), &Style::default()).contains("its own place"));
    assert!(compared(&one).iter().all(|(_, with, _)| with.is_none()), "with one place there is no doubt");
}

#[test]
fn the_verdict_on_a_place_is_about_its_own_default() {
    let verdicts = verdicts(&Analysis::of(&of_places(TWO)));
    let shown: Vec<(&str, &str)> = verdicts.iter().map(|one| (&*one.reference, &*one.recommended)).collect();
    assert_eq!(shown, [("bfq device=hdd", "bfq device=hdd"), ("none device=nvme", "none device=nvme")]);
    assert!(verdicts.iter().all(|one| one.reference_is_default));
}

#[test]
fn a_scheduler_that_was_named_is_that_of_each_place_and_a_row_that_was_named_is_one_for_all() {
    let with = |baseline: &str| ResultsDocument { baseline: Some(baseline.to_owned()), ..of_places(TWO) };
    let differences = |document: &ResultsDocument| compared(document).into_iter().map(|one| one.2).collect::<Vec<_>>();
    assert_eq!(differences(&with("bfq")), [Some(-50), None, Some(100), None]);
    assert_eq!(differences(&with("none")), [None, Some(100), None, Some(-50)]);
    let row = with("bfq device=hdd");
    assert_eq!(differences(&row), [Some(-50), None, Some(400), Some(150)]);
    assert!(compared(&row).iter().all(|(_, with, _)| with.is_none()));
    assert!(!table(&Analysis::of(&row), &Style::default()).contains("its own place"));
}

#[test]
fn a_place_that_lacks_the_default_compares_with_its_first_row() {
    let mut document = of_places(&[TWO[0], ("nvme", "kyber", &[("none", 1000.0), ("bfq", 500.0)])]);
    document.setups[1].default_scheduler = None;
    let rows = compared(&document);
    assert_eq!(rows[3].1.as_deref(), Some("none device=nvme"));
}

#[test]
fn common_settings_of_places_are_stated_once_and_the_slowest_is_named() {
    let mut document = of_places(&[("hdd", "none", &[("none", 100.0)]), ("hdd", "none", &[("none", 160.0)])]);
    document.setups[0].kernel = "6.1".to_owned();
    for (setup, run) in document.runs.iter_mut().enumerate() {
        let kernel = if setup < 3 { "6.1" } else { "7.2" };
        run.variant = RunLabel::new("none", Map::from_iter([("kernel".to_owned(), json!(kernel))]));
    }
    let text = table(&Analysis::of(&document), &Style::default());
    let prose = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(prose.contains("on hdd, 8 CPUs, 1 hardware queue (Linux 6.1; Linux 7.2), seed"), "{prose}");
    let sentences = hoistway_render::text::conclusion(&Analysis::of(&document)).join(" ");
    assert!(sentences.starts_with("Side by side on hdd, ") && sentences.matches("hdd").count() == 1, "{sentences}");
    assert!(sentences.contains("Linux 6.1 is the slowest; Linux 7.2 is 1.60 times as good."), "{sentences}");
}

#[test]
fn if_the_judged_figure_is_equal_a_differing_rate_is_named() {
    let sentences = |of_others: f64| {
        let mut document = of_places(&[("hdd", "none", &[("none", 100.0)]), ("hdd", "none", &[("none", 104.0)])]);
        document.setups[0].kernel = "6.1".to_owned();
        for (number, run) in document.runs.iter_mut().enumerate() {
            let (kernel, iops) = if number < 3 { ("6.1", 1000.0) } else { ("7.2", of_others) };
            run.variant = RunLabel::new("none", Map::from_iter([("kernel".to_owned(), json!(kernel))]));
            let others = support::run("none", vec![("b", 1, vec![direction(Direction::Write, iops, 1e6)])]);
            run.jobs.extend(others.jobs.into_iter().map(|job| JobSummary { job: 1, ..job }));
        }
        hoistway_render::text::conclusion(&Analysis::of(&document)).join(" ")
    };
    for of_others in [250.0, 400.0] {
        let text = sentences(of_others);
        let expected =
            format!("They differ most in write IOPS of b: {of_others:.0} on Linux 7.2; 1.00 k on Linux 6.1 (");
        assert!(text.contains(&expected), "{text}");
    }
    assert!(!sentences(600.0).contains("They differ most"));
}

#[test]
fn places_with_one_row_each_are_compared_with_each_other() {
    let document = of_places(&[("hdd", "none", &[("none", 100.0)]), ("nvme", "none", &[("none", 1000.0)])]);
    let expected = [("none device=hdd", None), ("none device=nvme", Some(900))];
    let shown: Vec<(String, Option<i64>)> = compared(&document).into_iter().map(|one| (one.0, one.2)).collect();
    assert_eq!(shown, expected.map(|(row, difference)| (row.to_owned(), difference)));
}
