//! `hoistway scenarios`, and comparisons of bundled loads.

use std::fs;

use hoistway_blk::queue::SCHEDULERS;
use serde_json::Value;
use tempfile::tempdir;

use crate::support::{hoistway, printed, refused, succeeded};

fn names() -> Vec<String> {
    let list = printed(&["scenarios"]);
    let lines = list.lines().take_while(|line| !line.is_empty());
    // The example is listed, too, but has no page.
    lines.map(|line| line.split_whitespace().next().unwrap().to_owned()).filter(|name| name != "example").collect()
}

#[test]
fn every_scenario_runs_under_every_scheduler_of_the_kernel_and_ends_with_a_sentence_about_its_figure() {
    let names = names();
    assert_eq!(names.len(), 26);
    for name in names {
        let text = printed(&["compare", &name, "--runtime", "1s", "--ramp", "100ms", "--format", "json"]);
        let document: Value = serde_json::from_str(&text).unwrap();
        let runs = document["runs"].as_array().unwrap();
        // Guests have three schedulers, combined with each of the four of the host.
        let expected = if name == "guests" { 3 * 4 } else { SCHEDULERS.len() };
        assert_eq!(runs.len(), expected, "{name}");
        assert!(runs.iter().all(|run| run["simulated_ios"].as_u64() > Some(100)), "{name}");
        let notices = document["notices"].to_string();
        assert!(!notices.contains("as one application") || name == "boot", "{name}: {notices}");
        let page = printed(&["scenarios", &name]);
        let figure = page.split_once("In one figure\n  ").unwrap().1.lines().next().unwrap();
        let sentence = document["conclusion"][0].as_str().unwrap();
        assert!(sentence.contains(figure), "{name}: {sentence:?} is not about {figure:?}");
    }
}

#[test]
fn every_scenario_page_names_its_figure_and_lists_valid_commands() {
    for name in names() {
        let page = printed(&["scenarios", &name]);
        for chapter in ["The load", "What to look at", "Real systems", "Device", "In one figure", "Try", "The job file"]
        {
            assert!(page.contains(&format!("\n{chapter}\n  ")), "{name} lacks {chapter}:\n{page}");
        }
        let commands = page.lines().filter_map(|line| line.strip_prefix("  hoistway "));
        for command in commands {
            let arguments: Vec<&str> = command.split(' ').collect();
            assert_eq!(arguments[..2], ["compare", &name], "{command}");
            let mut shorter: Vec<&str> = Vec::new();
            let mut rest = arguments.iter();
            while let Some(argument) = rest.next() {
                if *argument == "--repeat" {
                    rest.next();
                } else {
                    shorter.push(argument);
                }
            }
            shorter.extend(["--runtime", "10ms", "--ramp", "0", "--repeat", "1"]);
            printed(&shorter);
        }
    }
}

#[test]
fn a_buffered_copy_freezes_the_desktop_under_none_without_wbt_and_hardly_under_bfq() {
    const COMPARE: [&str; 9] = [
        "compare",
        "desktop-freeze",
        "--schedulers",
        "none,noop,bfq,cfq",
        "--runtime",
        "20s",
        "--format",
        "json",
        "--from-start",
    ];
    let without: Value =
        serde_json::from_str(&printed(&[&COMPARE[..], &["--queue", "wbt_lat_usec=0"]].concat())).unwrap();
    let with: Value = serde_json::from_str(&printed(&COMPARE)).unwrap();
    let mean_ms_of = |document: &Value, scheduler: &str| {
        let runs = document["runs"].as_array().unwrap();
        let run = runs.iter().find(|run| run["scheduler"] == scheduler).unwrap();
        assert!(run["page_cache"]["written_back_bytes"].as_u64() > Some(1 << 30), "{scheduler}");
        let jobs = run["jobs"].as_array().unwrap();
        let job = jobs.iter().find(|job| job["name"] == "interactive").unwrap();
        job["operations"][0]["lat_ns"]["mean"].as_f64().unwrap() / 1e6
    };
    let [none, noop, bfq, cfq] = ["none", "noop", "bfq", "cfq"].map(|scheduler| mean_ms_of(&without, scheduler));
    // Reads are very slow, but not at a standstill: tags are not handed over, but a process that waits for one soon
    // gets it.
    assert!(none < 1000.0 && noop < 1000.0, "none {none} ms, noop {noop}");
    assert!(none > 5.0 * bfq && none > 10.0 * cfq && noop > none, "none {none} ms, noop {noop}, bfq {bfq}, cfq {cfq}");
    let throttled = mean_ms_of(&with, "none");
    assert!(
        5.0 * throttled < none && mean_ms_of(&with, "noop") == noop,
        "none with wbt {throttled} ms, without {none}"
    );
}

#[test]
fn the_job_file_of_a_scenario_can_be_had_alone_and_runs_as_a_file() {
    let folder = tempdir().unwrap();
    let job = printed(&["scenarios", "boot", "--job"]);
    fs::write(folder.path().join("mine.fio"), &job).unwrap();
    let mut command = hoistway();
    command.current_dir(folder.path()).args(["compare", "mine.fio", "--schedulers", "none"]);
    assert!(succeeded(&mut command).starts_with("mine.fio on intel-s3520-1600gb"));
}

#[test]
fn a_file_of_the_same_name_goes_first() {
    let folder = tempdir().unwrap();
    let compare = || {
        let mut command = hoistway();
        command.current_dir(folder.path()).args(["compare", "boot", "--schedulers", "none", "--runtime", "10ms"]);
        succeeded(&mut command)
    };
    assert!(compare().starts_with("boot.fio (bundled) on hgst-he10-8tb"));
    fs::write(folder.path().join("boot"), "[mine]\nfilename=/dev/sda\ndirect=1\ntime_based\nruntime=1\n").unwrap();
    assert!(compare().contains("\nmine, 1 process\n"));
}

#[test]
fn loads_are_listed_by_what_they_are_for() {
    let listed = |tag: &str| {
        let list = printed(&["scenarios", "--for", tag]);
        list.lines()
            .take_while(|line| !line.is_empty())
            .map(|line| line.split(' ').next().unwrap().to_owned())
            .collect()
    };
    let for_ai: Vec<String> = listed("ai");
    assert_eq!(for_ai, ["training-checkpoint", "checkpoint-restore", "training-epochs", "kv-cache", "vector-search"]);
    let all = printed(&["scenarios"]);
    let tags =
        all.split_once("`hoistway scenarios --for TAG` lists some: ").unwrap().1.trim_end().trim_end_matches('.');
    let tags = tags.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut tagged: Vec<String> = tags.split(", ").flat_map(listed).collect();
    tagged.sort();
    tagged.dedup();
    let mut expected = names();
    expected.sort();
    assert_eq!(tagged, expected, "every load has a tag");
    let output = hoistway().args(["scenarios", "--for", "iot"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let message = crate::interrupts::complaints(&output.stderr);
    assert!(message.contains("expected one of ai, ") && output.stdout.is_empty(), "{message}");
}

#[test]
fn unknown_names_are_refused_with_those_that_exist() {
    let folder = tempdir().unwrap();
    refused(folder.path(), &["compare", "databse"], &["databse: cannot be read", "desktop-freeze", "boot"]);
    let output = hoistway().args(["scenarios", "databse"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let message = crate::interrupts::complaints(&output.stderr);
    assert!(message.contains("did you mean \"database\"?") && output.stdout.is_empty(), "{message}");
}
