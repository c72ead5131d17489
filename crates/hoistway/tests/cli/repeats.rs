//! `hoistway compare --repeat`: means, intervals and paired differences.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::tempdir;

use crate::support::{hoistway, printed, repeatable, succeeded};

fn compared(options: &[&str]) -> Value {
    let arguments = ["compare", "--runtime", "200ms", "--schedulers", "none,kyber", "--format", "json"];
    serde_json::from_str(&printed(&[&arguments[..], options].concat())).unwrap()
}

fn runs(document: &Value) -> &Vec<Value> {
    document["runs"].as_array().unwrap()
}

#[test]
fn each_repeat_has_a_seed_shared_by_all_schedulers() {
    let document = compared(&["--repeat", "3"]);
    let seeds = |scheduler: &str| -> Vec<u64> {
        let of_it = runs(&document).iter().filter(|run| run["scheduler"] == scheduler);
        of_it.map(|run| run["seed"].as_u64().unwrap()).collect()
    };
    assert_eq!(seeds("none").len(), 3);
    assert_eq!(seeds("none"), seeds("kyber"));
    let numbers: Vec<_> = runs(&document).iter().map(|run| run["repeat"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [0, 0, 1, 1, 2, 2]);
}

#[test]
fn a_repeat_can_be_run_again_by_its_seed_and_the_first_is_the_run_without_repeats() {
    let document = compared(&["--repeat", "2"]);
    for repeat in [0, 1] {
        let run = &runs(&document)[2 * repeat];
        let again = compared(&["--seed", &run["seed"].to_string()]);
        assert_eq!(run["jobs"], runs(&again)[0]["jobs"]);
    }
    assert_eq!(runs(&document)[0]["seed"], 1);
}

#[test]
fn the_document_has_intervals_and_significance() {
    let document = compared(&["--repeat", "3"]);
    let statistics = &document["statistics"];
    assert_eq!((&statistics["repeats"], &statistics["baseline"]), (&3.into(), &"none".into()));
    let rows = statistics["rows"].as_array().unwrap();
    let kyber = rows.iter().find(|row| row["scheduler"] == "kyber" && row["job"] == "mixed").unwrap();
    let iops = &kyber["figures"]["iops"];
    let of_kyber = runs(&document).iter().filter(|run| run["scheduler"] == "kyber");
    let sample = |run: &Value| {
        let job = run["jobs"].as_array().unwrap().iter().find(|job| job["name"] == "mixed").unwrap();
        let operations = job["operations"].as_array().unwrap();
        operations.iter().find(|of| of["operation"] == kyber["operation"]).unwrap()["iops"].as_f64().unwrap()
    };
    let samples: Vec<f64> = of_kyber.map(sample).collect();
    assert_eq!(samples.len(), 3);
    let mean = samples.iter().sum::<f64>() / 3.0;
    assert!((iops["mean"].as_f64().unwrap() - mean).abs() < 1e-6 * mean);
    assert!(iops["half_width"].as_f64().unwrap() >= 0.0);
    assert!(iops["from_baseline"]["significant"].is_boolean());
    assert!(rows[0]["figures"]["iops"]["from_baseline"].is_null(), "the baseline itself");
}

#[test]
fn repeats_give_the_same_bytes_on_one_thread_and_on_two() {
    let arguments = ["compare", "--runtime", "100ms", "--format", "json", "--repeat", "3"];
    let [one, two] = ["1", "2"].map(|threads| {
        let json = succeeded(hoistway().args(arguments).env("RAYON_NUM_THREADS", threads));
        repeatable(&json).to_string()
    });
    assert!(one == two, "one thread and two differ");
}

#[test]
fn the_table_shows_means_with_intervals_and_ends_with_a_recommendation() {
    let table = printed(&["compare", "--runtime", "200ms", "--repeat", "3"]);
    assert!(
        table.contains("Means of 3 repeats (max: the largest); ± is half the 95 % confidence interval."),
        "{table}"
    );
    let row = table.lines().find(|line| line.starts_with("kyber ")).unwrap();
    assert!(row.contains(" k ±") && row.contains(" ms ±"), "{row}");
    let (_, conclusion) = table.split_once("\n\nFor this load on intel-s3520-1600gb: ").unwrap();
    assert!(conclusion.contains("the default (mq-deadline)"), "{table}");
}

#[test]
fn another_baseline_is_named_in_the_table() {
    let arguments = ["compare", "--runtime", "50ms", "--schedulers", "none,bfq", "--baseline", "bfq"];
    let table = printed(&arguments);
    let header = table.lines().find(|line| line.starts_with("scheduler ")).unwrap();
    assert!(header.contains(" bfq ") && !header.contains("none"), "{header}");
}

/// A volume that is twice as fast until it has used up its burst credits, after about 10 s.
fn volume_with_few_credits(folder: &Path) {
    let preset = concat!(env!("CARGO_MANIFEST_DIR"), "/../device/presets/throttled-cloud-volume.toml");
    let text = fs::read_to_string(preset).unwrap();
    assert!(text.contains("ios = 5_400_000"));
    fs::write(folder.join("volume.toml"), text.replace("ios = 5_400_000", "ios = 15_000")).unwrap();
    let job = "[a]\nfilename=/dev/sda\ndirect=1\nrw=randread\nioengine=libaio\niodepth=16\ntime_based\nruntime=40\n";
    fs::write(folder.join("load.fio"), job).unwrap();
}

fn on_few_credits(folder: &Path, options: &[&str]) -> Value {
    let arguments = ["compare", "load.fio", "--device", "volume.toml", "--schedulers", "none,mq-deadline"];
    let mut command = hoistway();
    command.current_dir(folder).args(arguments).args(["--format", "json"]).args(options);
    serde_json::from_str(&succeeded(&mut command)).unwrap()
}

#[test]
fn a_warm_up_is_reported_with_its_length_and_a_remedy() {
    let folder = tempdir().unwrap();
    volume_with_few_credits(folder.path());
    let document = on_few_credits(folder.path(), &[]);
    let settling = &runs(&document)[0]["jobs"][0]["operations"][0]["settling"];
    assert_eq!(settling["state"], "warm_up");
    let seconds = settling["seconds"].as_f64().unwrap();
    assert!((9.0..14.0).contains(&seconds), "{settling}");
    let doubts = document["conclusion"].to_string();
    assert!(doubts.contains("s of a under none and a under mq-deadline are unlike the rest"), "{doubts}");
    assert!(doubts.contains("leave them out with --ramp, or try a longer --runtime"), "{doubts}");
    let without = on_few_credits(folder.path(), &["--ramp", "14s", "--runtime", "20s"]);
    assert_eq!(runs(&without)[0]["jobs"][0]["operations"][0]["settling"]["state"], "settled");
    assert!(!without["conclusion"].to_string().contains("--ramp"));
}

#[test]
fn the_series_of_a_run_covers_it_in_few_intervals() {
    let folder = tempdir().unwrap();
    volume_with_few_credits(folder.path());
    let document = on_few_credits(folder.path(), &["--runtime", "9s", "--from-start"]);
    let direction = &runs(&document)[0]["jobs"][0]["operations"][0];
    let series = &direction["series"];
    let ios: Vec<u64> = series["ios"].as_array().unwrap().iter().map(|ios| ios.as_u64().unwrap()).collect();
    assert!((64..=128).contains(&ios.len()), "{}", ios.len());
    let covered = ios.len() as f64 * series["interval_seconds"].as_f64().unwrap();
    assert!((8.8..=9.0).contains(&covered), "{covered}");
    assert!(ios.iter().sum::<u64>() <= direction["ios"].as_u64().unwrap());
    assert_eq!(series["mean_lat_ns"].as_array().unwrap().len(), ios.len());
}
