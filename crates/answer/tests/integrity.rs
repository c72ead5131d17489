//! Documents that were truncated, edited or assembled from others are refused, with the name of the contradicting field.

use crate::support;

use hoistway_answer::document::Statistics;
use hoistway_answer::tuning::Tuning;
use hoistway_answer::{Analysis, ResultsDocument};
use serde_json::{Value, json};
use support::{Measured, document};

const ONCE: Measured = Measured { iops: 1000.0, mean: 1e6, p50: 1_000_000, p99: 4_000_000, max: 9_000_000 };

/// A document as this version writes it, with seeds and statistics.
fn whole() -> ResultsDocument {
    let mut document = document(&vec![vec![[ONCE; 2]; 2]; 2]);
    (document.revision, document.version) = (hoistway_answer::document::REVISION, env!("CARGO_PKG_VERSION").to_owned());
    document.seeds = vec![0, 1];
    document.statistics = Some(Statistics::of(&Analysis::of(&document)));
    document
}

/// The field that the check reports after a change.
fn contradiction(change: impl FnOnce(&mut ResultsDocument)) -> Option<String> {
    let mut document = whole();
    change(&mut document);
    document.check().err().map(|contradiction| contradiction.field)
}

#[test]
fn seeds_repeats_and_statistics_are_those_of_the_runs() {
    assert_eq!(contradiction(|_| {}), None);
    assert_eq!(contradiction(|document| document.runs[1].seed = 7).as_deref(), Some("runs[1].seed"));
    assert_eq!(
        contradiction(|document| document.runs[1].repeat = 2).as_deref(),
        Some("runs[1].seed"),
        "there is no third"
    );
    let twice = |document: &mut ResultsDocument| (document.runs[1].repeat, document.runs[1].seed) = (0, 0);
    assert_eq!(contradiction(twice).as_deref(), Some("runs[1].repeat"));
    let edited = |document: &mut ResultsDocument| document.runs[0].jobs[0].operations[0].iops = 2000.0;
    assert!(contradiction(edited).unwrap().starts_with("statistics"));
    // Other versions may compute statistics differently, and old ones recorded no seeds.
    let of_another = |document: &mut ResultsDocument| {
        edited(document);
        (document.version, document.seeds) = ("0.0.1".to_owned(), Vec::new());
        document.runs[0].seed = 7;
    };
    assert_eq!(contradiction(of_another), None);
    let of_another_revision = |document: &mut ResultsDocument| {
        edited(document);
        document.revision += 1;
    };
    assert_eq!(contradiction(of_another_revision), None);
}

#[test]
fn impossible_values_are_refused_on_reading() {
    let read = |at: &str, value: Value| {
        let mut written = serde_json::to_value(whole()).unwrap();
        let (parent, key) = at.rsplit_once('/').unwrap();
        written.pointer_mut(parent).unwrap_or_else(|| panic!("{at}"))[key] = value;
        ResultsDocument::from_json(&written.to_string()).err().map(|error| error.to_string())
    };
    let reads = |key: &str| format!("/runs/0/jobs/0/operations/0/{key}");
    assert_eq!(read(&reads("iops"), json!(0.0)), None);
    for (key, value, named) in [
        ("iops", json!(-1.0), "iops"),
        ("bytes_per_second", json!(-1.0), "bytes_per_second"),
        ("lat_ns/mean", json!(-1.0), "lat_ns.mean"),
        ("distribution", json!({"percent": [0.0, 50.0], "lat_ns": [1]}), "distribution"),
        ("distribution", json!({"percent": [50.0, 0.0], "lat_ns": [1, 2]}), "distribution"),
        ("distribution", json!({"percent": [0.0, 50.0], "lat_ns": [2, 1]}), "distribution"),
        ("distribution", json!({"percent": [0.0, 100.0], "lat_ns": [1, 2]}), "distribution"),
        ("series", json!({"interval_seconds": 1.0, "ios": [1, 2], "mean_lat_ns": [1]}), "series"),
        ("series", json!({"interval_seconds": -1.0, "ios": [1], "mean_lat_ns": [1]}), "series"),
    ] {
        let error = read(&reads(key), value.clone()).unwrap_or_else(|| panic!("{key}: {value}"));
        assert!(error.contains(&format!("runs[0].jobs[0].operations[0].{named}")), "{error}");
    }
    let mut elsewhere = whole();
    elsewhere.runs[0].setup = 1;
    let error = ResultsDocument::from_json(&serde_json::to_string(&elsewhere).unwrap()).unwrap_err().to_string();
    assert!(error.contains("runs[0].setup"), "{error}");
}

/// A search of one round in which one setting ran with two seeds.
fn search() -> Value {
    let setting = |scheduler: &str| json!({"scheduler": scheduler});
    let run = |seed: u64, p99: f64, max: f64| json!({"setting": setting("bfq"), "seed": seed, "runtime_ns": null, "figures": {"a:read:p99": p99, "a:read:max": max}});
    let estimate = |mean: f64| json!({"mean": mean, "stddev": null, "half_width": null});
    let standing = json!({
        "setting": setting("bfq"), "seeds": 2, "margins": [], "holds": true, "beside_best": null,
        "figures": {"a:read:p99": estimate(20.0), "a:read:max": estimate(90.0)},
    });
    json!({
        "format": "hoistway-tune/1", "version": "0.1.0", "command": "", "job_file": "a.fio", "job_text": "", "device": "null",
        "kernel": "6.18", "cpus": 1, "host": "instant", "objective": "min a:read:p99", "budget": {"runs": 2}, "seed": 1,
        "knobs": [], "settings_possible": 1, "rounds": [{"runtime_ns": null, "settings": [standing]}],
        "found": {"best": standing, "holds": true, "reference": standing, "gain": null, "undecided": []},
        "front": [standing], "effects": [], "notices": [], "conclusion": [], "runs": [run(5, 10.0, 90.0), run(6, 30.0, 50.0)],
    })
}

#[test]
fn settings_of_a_search_must_agree_with_their_runs() {
    let contradiction = |at: &str, value: Value| {
        let mut search = search();
        *search.pointer_mut(at).unwrap_or_else(|| panic!("{at}")) = value;
        Tuning::from_json(&search.to_string()).unwrap().check().err().map(|contradiction| contradiction.field)
    };
    assert_eq!(contradiction("/seed", json!(2)), None, "the mean of p99, the largest of all");
    let figures = Some("rounds[0].settings[0].figures".to_owned());
    assert_eq!(contradiction("/rounds/0/settings/0/figures/a:read:p99/mean", json!(19.0)), figures);
    assert_eq!(contradiction("/rounds/0/settings/0/figures/a:read:max/mean", json!(70.0)), figures);
    assert_eq!(contradiction("/runs/1/figures/a:read:p99", json!(31.0)), figures);
    assert_eq!(contradiction("/runs/1/setting/scheduler", json!("none")), figures);
    assert_eq!(contradiction("/rounds/0/settings/0/seeds", json!(3)).as_deref(), Some("rounds[0]"));
    assert_eq!(contradiction("/front/0/setting/scheduler", json!("none")).as_deref(), Some("front[0]"));
    assert_eq!(contradiction("/found/best/seeds", json!(1)).as_deref(), Some("found.best"));
    assert_eq!(contradiction("/found/holds", json!(false)).as_deref(), Some("found.holds"));
    assert_eq!(contradiction("/found", Value::Null), None, "it was cut short");
}

#[test]
fn a_search_is_known_by_its_format_even_if_it_breaks_off() {
    let text = search().to_string();
    assert!(Tuning::is_search_document(&text) && Tuning::is_search_document(&text.replace("tune/1", "tune/9")));
    let begin = text.find("hoistway-tune").unwrap();
    assert!(Tuning::is_search_document(&text[begin - 1..begin + 100]), "cut");
    assert!(!Tuning::is_search_document(&serde_json::to_string(&whole()).unwrap()));
    assert!(
        !Tuning::is_search_document("{}")
            && !Tuning::is_search_document("")
            && !Tuning::is_search_document("{\"format\": 5}")
    );
    assert!(Tuning::from_json(&text.replace("tune/1", "tune/9")).unwrap_err().to_string().contains("hoistway-tune/9"));
}
