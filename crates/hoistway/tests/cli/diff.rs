//! `hoistway diff`.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{hoistway, refused, succeeded};
use crate::vary::with_load;

fn compare(folder: &TempDir, file: &str, options: &[&str]) {
    let wanted = ["compare", "load.fio", "--schedulers", "none,mq-deadline", "--format", "json", "-o", file];
    succeeded(hoistway().current_dir(folder).args(wanted).args(options));
}

fn diff(folder: &Path, files: [&str; 2], options: &[&str]) -> String {
    succeeded(hoistway().current_dir(folder).arg("diff").args(files).args(options))
}

#[test]
fn differing_inputs_and_figures_are_listed_and_equal_ones_are_not() {
    let folder = with_load();
    compare(&folder, "a.json", &["--repeat", "4"]);
    compare(&folder, "same.json", &["--repeat", "4"]);
    compare(&folder, "b.json", &["--repeat", "4", "--queue", "nr_requests=8", "--set", "mq-deadline.fifo_batch=1"]);
    compare(&folder, "other-seed.json", &["--repeat", "4", "--seed", "9"]);
    let same = diff(folder.path(), ["a.json", "same.json"], &[]);
    assert!(same.starts_with("The inputs are the same.\n") && same.contains("figures are bit-identical."), "{same}");
    let text = diff(folder.path(), ["a.json", "b.json"], &[]);
    for input in ["mq-deadline.fifo_batch: (nothing) -> 1\n", "none.nr_requests: (nothing) -> 8\n"] {
        assert!(text.contains(input), "{text}");
    }
    let row = text.lines().find(|line| line.starts_with("mq-deadline") && line.contains("readers:read:mean")).unwrap();
    assert!(row.ends_with("better") && row.contains("(95 %: -"), "{text}");
    assert!(text.contains("writers:write:iops") && text.contains("WORSE") && !text.contains("independent"), "{text}");
    let document: Value =
        serde_json::from_str(&diff(folder.path(), ["a.json", "b.json"], &["--format", "json"])).unwrap();
    let figures = document["figures"].as_array().unwrap();
    let mean = figures.iter().find(|one| one["label"] == "none" && one["figure"] == "readers:read:mean").unwrap();
    assert_eq!((&mean["outcome"], &mean["paired"]), (&"better".into(), &true.into()));
    // With the documents swapped it is the inverse.
    let back: Value = serde_json::from_str(&diff(folder.path(), ["b.json", "a.json"], &["--format", "json"])).unwrap();
    let inverse = back["figures"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["label"] == "none" && one["figure"] == "readers:read:mean");
    let [there, again] = [mean, inverse.unwrap()].map(|one| one["change"]["factor"].as_f64().unwrap());
    assert!((there * again - 1.0).abs() < 1e-9 && there > 1.02);
    let unpaired = diff(folder.path(), ["a.json", "other-seed.json"], &["--format", "markdown", "--all"]);
    assert!(
        unpaired.contains("- seed: 1 -> 9\n") && unpaired.contains("compared as independent samples"),
        "{unpaired}"
    );
    assert!(unpaired.contains("| row | figure | before | after | change |  |\n"), "{unpaired}");
    let claimed = unpaired.matches("| WORSE |").count() + unpaired.matches("| better |").count();
    assert!(claimed <= 4, "only the seed is another, and of twenty figures one errs: {unpaired}");
    // With another seed hardly anything changes by more than noise.
    let lines = |options: &[&str]| diff(folder.path(), ["a.json", "other-seed.json"], options).lines().count();
    assert!(lines(&["--all"]) > lines(&[]));
}

#[test]
fn single_runs_claim_no_change_and_unmatched_rows_are_listed() {
    let folder = with_load();
    compare(&folder, "a.json", &[]);
    compare(&folder, "b.json", &["--queue", "nr_requests=8", "--vary", "mq-deadline.fifo_batch=1"]);
    let text = diff(folder.path(), ["a.json", "b.json"], &[]);
    assert!(text.contains("Only the second document has mq-deadline fifo_batch=1.\n"), "{text}");
    assert!(
        text.contains("no interval") && !text.contains("WORSE") && text.contains("0 got worse")
            || text.contains("none has changed"),
        "{text}"
    );
}

#[test]
fn an_incomplete_or_edited_document_is_refused_with_the_field() {
    let folder = with_load();
    compare(&folder, "a.json", &["--repeat", "2"]);
    let text = fs::read_to_string(folder.path().join("a.json")).unwrap();
    let refuse = |changed: &str, words: &[&str]| {
        fs::write(folder.path().join("b.json"), changed).unwrap();
        refused(folder.path(), &["diff", "a.json", "b.json"], words);
    };
    let edited = |change: &dyn Fn(&mut Value)| {
        let mut value: Value = serde_json::from_str(&text).unwrap();
        change(&mut value);
        value.to_string()
    };
    refuse(&text.replacen("results/2", "results/3", 1), &["unknown result format \"hoistway-results/3\""]);
    refuse(&text[..text.len() * 3 / 4], &["b.json: the result document cannot be read: runs[", ": EOF while parsing"]);
    refuse(&edited(&|value| value["runs"][1]["repeat"] = "x".into()), &["runs[1].repeat: invalid type"]);
    refuse(&edited(&|value| value["kernel"] = Value::Null), &["kernel: invalid type: null"]);
    let faster = edited(&|value| value["runs"][0]["jobs"][0]["operations"][0]["iops"] = 1e9.into());
    refuse(&faster, &["statistics.rows[0].figures.iops.mean is ", "but its runs say "]);
    refuse(&edited(&|value| value["runs"][2]["seed"] = 5.into()), &["runs[2].seed is not the seed of repeat 1"]);
    refuse(&edited(&|value| value["smallest_effect"] = (-2.0).into()), &["smallest_effect: expected a fraction"]);
    refuse(&edited(&|value| value["runs"][0]["setup"] = 3.into()), &["runs[0].setup: expected an index into `setups`"]);
    let doubled = edited(&|value| {
        let run = value["runs"][0].clone();
        value["runs"].as_array_mut().unwrap().push(run);
    });
    refuse(&doubled, &["runs[4].repeat is 0 twice under none"]);
    refuse("{}", &["b.json: not a result document"]);
    refuse("not JSON", &["b.json: the result document cannot be read"]);
    refused(folder.path(), &["diff", "a.json", "gone.json"], &["gone.json: cannot be read"]);
    refused(folder.path(), &["diff", "-", "-"], &["standard input can be read once"]);
    refused(folder.path(), &["diff", "a.json", "a.json", "-o", "a.json"], &["a.json: is read by this command"]);
}
