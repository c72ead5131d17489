//! `hoistway calibrate device`.

use std::fs;
use std::path::Path;

use tempfile::{TempDir, tempdir};

use crate::loop_device::{Loop, folder_in_memory, skipped};
use crate::support::{ended_with, has_fio, hoistway};

/// Short measurements, and a fit that needs neither to converge nor to be good.
const SHORT: [&str; 11] =
    ["--runtime", "50ms", "--rounds", "1", "--evaluations", "2", "--residuals", "100000", "--journal", "journal", "-o"];

#[test]
fn a_loop_device_is_measured_without_its_scheduler_which_is_restored() {
    let Some(device) = Loop::in_memory().filter(|_| has_fio()) else { return };
    let folder = tempdir().unwrap();
    device.set("scheduler", "bfq");
    device.set("iosched/slice_idle", "3");
    let before = device.state();
    let path = format!("/dev/{}", device.name);
    let line = [&["calibrate", "device", &path, "--csv", "m.csv"], &SHORT[..], &["mine.toml"]].concat();
    let (printed, _) = ended_with(&[0, 1], &mut hoistway(folder.path(), &line));
    assert_eq!(device.state(), before);
    let rows = printed.lines().filter(|line| line.contains(" outstanding ")).count();
    assert!(rows == 9 && printed.contains("optane.read_command_us"), "{printed}");
    let text = fs::read_to_string(folder.path().join("mine.toml")).unwrap();
    assert!(text.contains("name = \"mine\"") && text.contains("capacity_gb = 0.067108864"), "{text}");
    // The fit can read the table.
    let csv = fs::read_to_string(folder.path().join("m.csv")).unwrap();
    assert_eq!(csv.lines().count(), 10, "{csv}");
    let fit = ["calibrate", "fit", "m.csv", "--like", "mine.toml", "--evaluations", "1", "-o", "again.toml"];
    ended_with(&[0, 1], &mut hoistway(folder.path(), &fit));
    let compare = ["compare", "--device", "mine.toml", "--schedulers", "none", "--runtime", "20ms", "--repeat", "1"];
    ended_with(&[0], &mut hoistway(folder.path(), &compare));
    assert_eq!(journals(&folder), [""; 0]);
}

#[test]
fn a_fit_that_does_not_do_what_the_device_does_is_refused_and_its_figures_are_kept() {
    let Some(device) = Loop::in_memory().filter(|_| has_fio()) else { return };
    let folder = tempdir().unwrap();
    let path = format!("/dev/{}", device.name);
    // A rotating disk is never as fast as memory, and a single evaluation cannot improve that.
    let plan = [
        "--like",
        "hdd",
        "--quick",
        "--runtime",
        "50ms",
        "--rounds",
        "2",
        "--evaluations",
        "1",
        "--journal",
        "journal",
    ];
    let line = [&["calibrate", "device", &path, "--csv", "m.csv", "-o", "x.toml"], &plan[..]].concat();
    let (printed, said) = ended_with(&[2], &mut hoistway(folder.path(), &line));
    let words = [&format!("{path}: half of the figures are off by "), "(expected 10 % at most: ", "--residuals"];
    assert!(words.iter().all(|words| said.contains(words)), "{said}");
    assert!(printed.contains("random reads of 4096 bytes") && !printed.contains("written"), "{printed}");
    assert!(!folder.path().join("x.toml").exists());
    assert_eq!(fs::read_to_string(folder.path().join("m.csv")).unwrap().lines().count(), 10);
    assert!(device.shown("scheduler").contains("[none]"));
}

#[test]
fn a_file_is_created_and_written_only_if_it_is_named_twice() {
    if !has_fio() {
        return;
    }
    let Some(folder) = folder_in_memory(2 << 30) else { return };
    let at = folder.path();
    fs::write(at.join("mine"), vec![1; 64 << 20]).unwrap();
    let device = |target: &str, writes: &[&str]| {
        let line = [&["calibrate", "device", target], writes, &SHORT[..], &["x.toml"]].concat();
        hoistway(at, &line)
    };
    let refused = |target: &str, writes: &[&str], words: &str| {
        let (_, said) = ended_with(&[2], &mut device(target, writes));
        assert!(said.contains(words), "{said}");
        assert!(!at.join("x.toml").exists());
    };
    refused("none", &[], "none: cannot be found (expected a block device or a file)");
    refused("mine", &["--writes", "mine"], "no run created this file");
    refused("mine", &["--writes", "other"], "--writes other: is not the target");
    refused("/dev/null", &[], "neither a file nor a block device");
    fs::write(at.join("small"), "1").unwrap();
    refused("small", &[], "at least 64 MiB");
    fs::File::create(at.join("sparse")).unwrap().set_len(1 << 30).unwrap();
    refused("sparse", &[], "has holes");
    let before = fs::read(at.join("mine")).unwrap();
    ended_with(&[0, 1], &mut device("mine", &[]));
    assert!(fs::read(at.join("mine")).unwrap() == before, "it was only read");
    let (printed, _) = ended_with(&[0, 1], &mut device("new", &["--writes", "new"]));
    assert!(printed.contains("random writes of 4096 bytes, 1 x 32") && printed.contains("70 % reads"), "{printed}");
    assert_eq!(fs::metadata(at.join("new")).unwrap().len(), 1 << 30);
}

#[test]
fn a_loop_device_over_the_page_cache_is_refused() {
    // The file must be on a disk, whose page cache then serves the reads.
    let Some(device) = Loop::new() else { return };
    if fs::metadata(std::env::temp_dir()).is_ok() && is_tmpfs(&std::env::temp_dir()) {
        skipped("the folder for temporary files is in memory");
        return;
    }
    let folder = tempdir().unwrap();
    let path = format!("/dev/{}", device.name);
    let line = [&["calibrate", "device", &path], &SHORT[..], &["x.toml"]].concat();
    let (_, said) = ended_with(&[2], &mut hoistway(folder.path(), &line));
    assert!(said.contains("reads are served from the page cache of") && said.contains("--direct-io=on"), "{said}");
}

fn is_tmpfs(path: &Path) -> bool {
    rustix::fs::statfs(path).is_ok_and(|fs| fs.f_type as u64 == 0x0102_1994)
}

/// The remaining journals.
fn journals(folder: &TempDir) -> Vec<String> {
    let entries = fs::read_dir(folder.path().join("journal")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.ends_with(".json")).collect()
}
