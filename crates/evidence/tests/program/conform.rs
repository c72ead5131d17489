//! The output of `hoistway conform`.

use std::fs;
use std::io::Read as _;

use serde_json::Value;
use tempfile::tempdir;

use super::support::{RECORDINGS, keys, printed, program, refused};

const SCORES: [&str; 4] = ["all", "hard", "switch", "null"];

fn conform_json(recordings: &str) -> Value {
    let text = printed(&["conform", recordings, "--format", "json"]);
    serde_json::from_str(&text).unwrap()
}

/// Every score is a fraction, or null if nothing was counted.
fn assert_fractions(row: &Value) {
    for score in SCORES {
        let fraction = row[score].as_f64();
        let possible = row[score].is_null() || fraction.is_some_and(|fraction| (0.0..=1.0).contains(&fraction));
        assert!(possible && row.get(score).is_some(), "{score}: {row}");
    }
}

#[test]
fn every_decision_of_mq_deadline_on_one_cpu_is_the_kernels() {
    let document = conform_json(&format!("{RECORDINGS}/mq-deadline"));
    assert_eq!(keys(&document), ["format", "traces", "by_scheduler", "skipped", "refused"]);
    assert_eq!(document["format"], "hoistway-conformance/1");
    assert_eq!(document["skipped"].as_array().unwrap().len(), 0);
    let traces = document["traces"].as_array().unwrap();
    assert_eq!(traces.len(), 27);
    for trace in traces {
        assert_eq!(trace["scheduler"], "mq-deadline");
        assert!(trace["dispatches"].as_u64() > Some(100), "{trace}");
        assert_fractions(trace);
        let file = trace["file"].as_str().unwrap();
        if file.contains("2cpu") || file.contains("2hwq") {
            continue;
        }
        assert_eq!(trace["all"], 1.0, "{file}");
        for score in SCORES {
            assert!(trace[score].is_null() || trace[score] == 1.0, "{file}: {score}");
        }
        assert_eq!(trace["mismatches"].as_array().unwrap().len(), 0, "{file}");
    }
    let pooled = &document["by_scheduler"]["mq-deadline"];
    assert_eq!(pooled["traces"], 27);
    assert_fractions(pooled);
}

#[test]
fn the_table_names_each_recording_and_ends_with_the_pool() {
    let table = printed(&["conform", &format!("{RECORDINGS}/mq-deadline/dd-flush.jsonl.gz")]);
    assert!(table.contains(" dd-flush.jsonl.gz ") && table.contains(" 1 recordings "), "{table}");
    assert!(!table.contains('\x1b'), "escape codes without a terminal");
}

#[test]
fn a_file_receives_the_output_that_would_be_printed() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("scores.json");
    let recording = format!("{RECORDINGS}/mq-deadline/dd-flush.jsonl.gz");
    let arguments = ["conform", &recording, "--format", "json"];
    let to_file = printed(&[&arguments[..], &["-o", file.to_str().unwrap()]].concat());
    assert_eq!(to_file, "");
    assert_eq!(fs::read_to_string(&file).unwrap(), printed(&arguments));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn damaged_recordings_are_listed_and_the_others_scored() {
    let folder = tempdir().unwrap();
    let recording = fs::read(format!("{RECORDINGS}/mq-deadline/dd-flush.jsonl.gz")).unwrap();
    fs::write(folder.path().join("a-cut.jsonl.gz"), &recording[..3000]).unwrap();
    fs::write(folder.path().join("b-good.jsonl.gz"), &recording).unwrap();
    fs::write(folder.path().join("c-foreign.jsonl"), "no recording\n").unwrap();
    let mut unknown = String::new();
    flate2::read::GzDecoder::new(&recording[..]).read_to_string(&mut unknown).unwrap();
    let unknown = unknown.replacen("\"scheduler\":\"mq-deadline\"", "\"scheduler\":\"mine\"", 1);
    fs::write(folder.path().join("d-unknown.jsonl"), unknown).unwrap();
    let output = program(&["conform", "--format", "json"]).arg(folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("a-cut.jsonl.gz") && message.contains("1 more damaged"), "{message}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let files = |list: &str| -> Vec<String> {
        let rows = document[list].as_array().unwrap().iter();
        rows.map(|row| row["file"].as_str().unwrap().rsplit('/').next().unwrap().to_owned()).collect()
    };
    assert_eq!(files("traces"), ["b-good.jsonl.gz"]);
    assert_eq!(files("skipped"), ["d-unknown.jsonl"]);
    assert_eq!(files("refused"), ["a-cut.jsonl.gz", "c-foreign.jsonl"]);
    assert_eq!(keys(&document["refused"][1]), ["file", "line", "reason"]);
    assert_eq!(document["refused"][1]["line"], 1);
    assert!(document["refused"][1]["reason"].as_str().unwrap().contains("expected a header line"));
}

#[test]
fn an_unsupported_recording_is_not_an_error() {
    let folder = tempdir().unwrap();
    let mut text = String::new();
    let recording = fs::read(format!("{RECORDINGS}/mq-deadline/dd-flush.jsonl.gz")).unwrap();
    flate2::read::GzDecoder::new(&recording[..]).read_to_string(&mut text).unwrap();
    let file = folder.path().join("mine.jsonl");
    fs::write(&file, text.replacen("\"scheduler\":\"mq-deadline\"", "\"scheduler\":\"mine\"", 1)).unwrap();
    let document = conform_json(file.to_str().unwrap());
    assert_eq!(document["skipped"].as_array().unwrap().len(), 1);
}

#[test]
fn every_decision_is_counted_at_the_rule_of_our_choice() {
    for (folder, rules) in
        [("none", vec!["NONE-5"]), ("kyber", vec!["KY-10", "KY-7"]), ("mq-deadline", vec!["DD-14", "DD-15"])]
    {
        let document = conform_json(&format!("{RECORDINGS}/{folder}"));
        let mut seen = Vec::new();
        for trace in document["traces"].as_array().unwrap() {
            let listed = trace["rules"].as_array().unwrap();
            let decisions: u64 = listed.iter().map(|rule| rule["decisions"].as_u64().unwrap()).sum();
            assert_eq!(Some(decisions), trace["questions"].as_u64(), "{}", trace["file"]);
            seen.extend(listed.iter().map(|rule| rule["rule"].as_str().unwrap().to_owned()));
        }
        assert!(seen.iter().all(|rule| !rule.is_empty()), "{folder}: a choice without a rule");
        assert!(rules.iter().all(|rule| seen.iter().any(|other| other == rule)), "{folder}: {seen:?}");
    }
}

#[test]
fn a_difference_names_the_rule_that_we_followed() {
    let table = printed(&["conform", &format!("{RECORDINGS}/none/none-4cpu-1hwq.jsonl.gz")]);
    assert!(table.contains("(NONE-5: the order of dispatch list and software queues)"), "{table}");
}

#[test]
fn two_kernels_differ_by_the_file_that_moved_and_by_the_decisions_that_follow() {
    let arguments = ["conform", "--format", "json", "--diff"];
    let sides = [format!("{RECORDINGS}/mq-deadline"), format!("{RECORDINGS}/linux-7.3/mq-deadline")];
    let text = printed(&[&arguments[..], &[&sides[0], &sides[1]]].concat());
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(keys(&document), ["format", "comparisons", "unpaired"]);
    assert_eq!(document["format"], "hoistway-conformance-diff/1");
    let comparisons = document["comparisons"].as_array().unwrap();
    // Linux 7.0 moved async_depth from the scheduler to the queue.
    let of = |scenario: &str| comparisons.iter().find(|comparison| comparison["scenario"] == scenario).unwrap();
    for (scenario, depth) in [("dd-prio-classes", "128"), ("dd-mix-d1", "64")] {
        let settings = of(scenario)["settings"].as_array().unwrap();
        let moved = |name: &str, first: &str, second: &str| {
            settings.iter().any(|it| it["name"] == name && it["first"] == first && it["second"] == second)
        };
        assert!(moved("tunables.async_depth", depth, "-") && moved("queue.async_depth", "-", depth), "{settings:?}");
        assert!(of(scenario)["first"]["number"].as_u64() > Some(0));
    }
    let equal = of("dd-rexpire50-slow5ms");
    assert_eq!((equal["common"].as_u64(), equal["decisions"][0].as_u64()), (Some(389), Some(389)));
    assert!(equal["first"].is_null());
    assert!(!document["unpaired"].as_array().unwrap().is_empty());
}

#[test]
fn a_recording_does_not_differ_from_itself_also_without_a_scheduler() {
    for recording in ["none/none-2hwq", "bfq/bfq-classes", "switch/switch-dd-bfq-kyber-none"] {
        let file = format!("{RECORDINGS}/{recording}.jsonl.gz");
        let text = printed(&["conform", "--diff", &file, &file]);
        assert!(text.ends_with("1 of 1 scenarios have the same decisions.\n"), "{text}");
        assert!(!text.contains(": 0 of 0 and"), "{text}");
    }
}

#[test]
fn a_side_of_a_diff_that_is_missing_or_has_a_name_twice_is_refused() {
    let folder = tempdir().unwrap();
    refused(folder.path(), &["conform", "--diff", "absent", RECORDINGS], &["absent", "no such file or folder"]);
    refused(folder.path(), &["conform", "--diff", RECORDINGS, RECORDINGS], &["one recording of each scenario"]);
}
