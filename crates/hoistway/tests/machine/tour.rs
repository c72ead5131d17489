//! The tour of the README, command by command, on a loop device instead of a disk.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tempfile::tempdir;

use crate::loop_device::{Loop, skipped};
use crate::support::{ended_with, has_fio, hoistway};

const README: &str = include_str!("../../../../README.md");

/// The commands of the tour, without `sudo` and comments.
fn commands() -> Vec<String> {
    let tour = README.split("## Your own machine in six commands").nth(1).unwrap();
    let block = tour.split("```").nth(1).unwrap().trim_start_matches("sh\n");
    let command =
        |line: &str| line.split(" #").next().unwrap_or_default().trim().trim_start_matches("sudo ").to_owned();
    block.lines().map(command).filter(|line| !line.is_empty()).collect()
}

/// A load that ends with the test.
struct Load(Child);

impl Drop for Load {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const SHORT: [&str; 10] =
    ["--runtime", "50ms", "--rounds", "1", "--evaluations", "2", "--residuals", "100000", "--journal", "journal"];

/// A loop device in memory on a busy machine may be unlike its model, and then the answer says so: another load gives a verdict to apply.
fn decide_in_any_case(folder: &Path) {
    let file = folder.join("verdict.json");
    let document: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    if document.get("verdicts").is_some() {
        return;
    }
    let first = document["conclusion"][0].as_str().unwrap();
    assert!(first.starts_with("No verdict: under none, the replay is not what was recorded: "), "{first}");
    let words = ["compare", "--repeat", "3", "--runtime", "50ms", "--format", "json", "-o", "verdict.json"];
    fs::remove_file(&file).unwrap();
    ended_with(&[0], &mut hoistway(folder, &words));
}

#[test]
fn a_new_user_comes_from_a_look_at_a_device_to_a_setting_that_is_applied_verified_and_undone() {
    if fs::read_dir("/sys/kernel/tracing/events/block").is_err()
        || fs::metadata("/sys/kernel/tracing/instances").is_err()
    {
        skipped("there is no tracefs with block events (it takes root)");
        return;
    }
    let Some(device) = Loop::in_memory().filter(|_| has_fio()) else { return };
    let folder = tempdir().unwrap();
    let before = device.state();
    let path = format!("--filename=/dev/{}", device.name);
    let load = [
        "--name=load",
        &path,
        "--direct=1",
        "--rw=randread",
        "--bs=4k",
        "--rate_iops=200",
        "--time_based",
        "--runtime=60",
    ];
    let fio = Command::new("fio").args(load).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut load = Some(Load(fio));
    let commands = commands();
    let names: Vec<&str> = commands.iter().filter_map(|line| line.split(' ').nth(1)).collect();
    assert_eq!(names, ["host", "record", "calibrate", "compare", "apply", "verify"]);
    for line in &commands {
        // The command, shortened, for this device, and with a journal for this test.
        let line = line.replace("sda", &device.name).replace("30s", "1s");
        let mut words: Vec<&str> = line.split(' ').skip(1).collect();
        match words[0] {
            "apply" => words.extend(["--journal", "journal"]),
            "verify" => words.extend(["--journal", "journal", "--rounds", "2"]),
            // Short measurements: the model need not be good.
            "calibrate" => words.extend(SHORT),
            "compare" => drop(load.take()),
            _ => {}
        }
        let statuses: &[i32] = match words[0] {
            "verify" => &[0, 3],
            "calibrate" => &[0, 1],
            _ => &[0],
        };
        let (printed, _) = ended_with(statuses, &mut hoistway(folder.path(), &words));
        if words[0] == "compare" {
            decide_in_any_case(folder.path());
        }
        let expected = match words[0] {
            "host" => device.name.as_str(),
            "record" => "Next: hoistway compare",
            "apply" => "",
            "verify" => "Median error: iops",
            _ => continue,
        };
        assert!(printed.contains(expected), "{words:?}: {printed}");
    }
    ended_with(&[0], &mut hoistway(folder.path(), &["apply", "--undo", "--journal", "journal"]));
    assert_eq!(device.state(), before);
}
