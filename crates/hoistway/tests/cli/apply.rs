//! `hoistway apply`: applies the results of a comparison to a device and undoes that, also after being killed.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use tempfile::tempdir;

use crate::loop_device::Loop;
use crate::support::{complaint, hoistway, printed};

/// Writes the document of a comparison that recommends kyber with a tunable to `folder`.
fn result(folder: &Path) -> String {
    let file = folder.join("result.json");
    let file = file.to_str().unwrap();
    let load = ["compare", "--runtime", "300ms", "--schedulers", "mq-deadline,kyber", "--focus", "mixed:read:p99"];
    let tunable = ["--set", "kyber.read_lat_nsec=1000000", "--advice", "sda", "--format", "json", "-o", file];
    printed(&[&load[..], &tunable].concat());
    file.to_owned()
}

#[test]
fn a_verdict_is_planned_applied_listed_and_undone() {
    let Some(device) = Loop::new() else { return };
    let folder = tempdir().unwrap();
    let (result, journal) = (result(folder.path()), folder.path().join("journal"));
    let journal = journal.to_str().unwrap();
    let before = device.state();
    let apply = |options: &[&str]| printed(&[&["apply", "--journal", journal], options].concat());
    let plan = apply(&[&result, "--device", &device.name]);
    assert!(plan.contains(&format!("{}: none -> kyber\n", device.file("scheduler"))), "{plan}");
    assert!(plan.ends_with("Nothing was written. Add --yes to write it.\n"), "{plan}");
    assert_eq!(device.state(), before);
    assert!(!Path::new(journal).exists());
    assert_eq!(apply(&["--status"]), "Nothing is applied.\n");
    let written = apply(&[&result, "--device", &device.name, "--yes"]);
    assert!(written.contains(&format!("{}: set to 1000000\n", device.file("iosched/read_lat_nsec"))), "{written}");
    assert_eq!(device.shown("iosched/read_lat_nsec"), "1000000");
    assert_eq!(apply(&[&result, "--device", &device.name, "--yes"]), format!("{}: already set\n", device.name));
    assert!(
        apply(&["--status"]).starts_with(&format!("{}: in force\n  queue/scheduler: none -> kyber\n", device.name))
    );
    let undone = apply(&["--undo", "--device", &device.name]);
    assert_eq!(undone, format!("{}: back to none\n", device.file("scheduler")));
    assert_eq!(device.state(), before);
    assert_eq!(apply(&["--undo"]), "Nothing is applied.\n");
}

#[test]
fn a_verdict_that_keeps_another_scheduler_than_the_devices_names_both() {
    let Some(device) = Loop::new() else { return };
    let folder = tempdir().unwrap();
    let file = folder.path().join("result.json");
    let file = file.to_str().unwrap();
    let load = ["compare", "--runtime", "300ms", "--schedulers", "mq-deadline,kyber", "--focus", "mixed:read:p99"];
    printed(&[&load[..], &["--baseline", "kyber", "--repeat", "3", "--format", "json", "-o", file]].concat());
    let kept = "The verdict keeps kyber: nothing is worth a change.\n";
    let name = &device.name;
    let expected = format!("{kept}{name} has none: compare with --baseline none to see whether kyber is better.\n");
    assert_eq!(printed(&["apply", file, "--device", name]), expected);
    device.set("scheduler", "kyber");
    assert_eq!(printed(&["apply", file, "--device", name, "--yes"]), kept);
}

/// The default number of kills; `HOISTWAY_KILLS=200` increases it.
fn kills() -> u32 {
    std::env::var("HOISTWAY_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(8)
}

#[test]
fn a_run_that_is_killed_at_any_moment_leaves_a_device_that_the_next_one_restores() {
    let Some(device) = Loop::new() else { return };
    let folder = tempdir().unwrap();
    let (result, journal) = (result(folder.path()), folder.path().join("journal"));
    let journal = journal.to_str().unwrap();
    device.set("scheduler", "bfq");
    device.set("iosched/slice_idle", "3");
    device.set("nr_requests", "77");
    let before = device.state();
    let start = |options: &[&str]| {
        let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin!("hoistway"));
        let output = || std::process::Stdio::null();
        command.args(["apply", "--journal", journal]).args(options).stdout(output()).stderr(output()).spawn().unwrap()
    };
    let whole = Instant::now();
    assert!(start(&[&result, "--device", &device.name, "--yes"]).wait().unwrap().success());
    let apply_time = whole.elapsed();
    let whole = Instant::now();
    assert!(start(&["--undo"]).wait().unwrap().success());
    let undo_time = whole.elapsed();
    assert_eq!(device.state(), before);
    let part = |time: Duration, number: u32| time * (number * 7919 % 1000) / 1000;
    for number in 0..kills() {
        let mut applying = start(&[&result, "--device", &device.name, "--yes"]);
        std::thread::sleep(part(apply_time, number));
        applying.kill().unwrap();
        applying.wait().unwrap();
        let status = printed(&["apply", "--journal", journal, "--status"]);
        if status.contains("left incomplete") {
            let undo = format!("Undo it with: hoistway apply --undo --device {} --journal {journal}\n", device.name);
            assert!(status.contains(&undo) && !status.contains("-> -"), "{status}");
            assert!(status.contains("nothing is changed yet") == (device.state() == before), "{status}");
        }
        // `--undo` is killed, too; the last one is not.
        let mut undoing = start(&["--undo"]);
        std::thread::sleep(part(undo_time, number.wrapping_mul(31)));
        undoing.kill().unwrap();
        undoing.wait().unwrap();
        printed(&["apply", "--journal", journal, "--undo"]);
        assert_eq!(device.state(), before, "after kill {number}");
        let left: Vec<_> = fs::read_dir(journal).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert!(left.iter().all(|name| !name.to_string_lossy().ends_with(".json")), "{left:?}");
    }
}

#[test]
fn an_inapplicable_result_is_refused_and_nothing_is_written() {
    let folder = tempdir().unwrap();
    let result = result(folder.path());
    let journal = folder.path().join("journal");
    let journal = journal.to_str().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let refused = |arguments: &[&str], words: &[&str]| {
        let complaint = complaint(arguments);
        assert!(words.iter().all(|word| complaint.contains(word)), "{arguments:?}: {complaint}");
    };
    refused(&["apply", "--journal", journal, &result], &["--device: expected the name of the device"]);
    refused(&["apply", &result, "--device", "sdzz"], &["sdzz: no such block device (expected"]);
    refused(&["apply", &result, "--device", "sdzz", "--by-name"], &["--by-name", "--persist udev"]);
    refused(&["apply", "--journal", journal, "--undo", "--device", "sdzz"], &["sdzz: nothing is applied to it"]);
    fs::write(file("cut.json"), &fs::read(&result).unwrap()[..500]).unwrap();
    refused(&["apply", &file("cut.json"), "--device", "sda"], &["cut.json"]);
    let one = ["compare", "--runtime", "50ms", "--schedulers", "none", "--format", "json", "-o"];
    hoistway().args(one).arg(file("one.json")).assert().success();
    refused(&["apply", &file("one.json"), "--device", "sda"], &["one.json", "too little for a verdict"]);
    fs::write(folder.path().join("journal/00000001.json"), "{").unwrap();
    refused(&["apply", "--journal", journal, "--undo"], &["journal/00000001.json: is not a journal"]);
}
