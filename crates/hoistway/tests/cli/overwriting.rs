//! Results must not overwrite other files, such as inputs of the command and targets of links, or go to a folder that
//! no longer exists.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use tempfile::tempdir;

use crate::support::{hoistway, refused, succeeded};

const JOB: &str = "[global]\ninclude common.fio\n[reader]\nfilename=/dev/sda\n";
const COMMON: &str = "rw=randread\ndirect=1\nruntime=1\ntime_based\n";

fn load_in(folder: &Path) {
    fs::write(folder.join("job.fio"), JOB).unwrap();
    fs::write(folder.join("common.fio"), COMMON).unwrap();
    fs::write(folder.join("own.toml"), succeeded(hoistway().args(["devices", "intel-s3520-1600gb", "--toml"])))
        .unwrap();
}

#[test]
fn a_command_does_not_overwrite_its_input_under_any_name() {
    let folder = tempdir().unwrap();
    load_in(folder.path());
    fs::hard_link(folder.path().join("job.fio"), folder.path().join("hard")).unwrap();
    symlink("job.fio", folder.path().join("soft")).unwrap();
    let compare = ["compare", "job.fio", "--device", "own.toml", "--schedulers", "none", "--runtime", "10ms"];
    for option in ["-o", "--trace"] {
        for place in ["job.fio", "./common.fio", "own.toml", "hard", "soft"] {
            refused(folder.path(), &[&compare[..], &[option, place]].concat(), &["is read by this command"]);
        }
    }
    assert_eq!(fs::read_to_string(folder.path().join("job.fio")).unwrap(), JOB);
}

#[test]
fn a_dangling_link_stays_and_its_target_is_created() {
    let folder = tempdir().unwrap();
    load_in(folder.path());
    fs::create_dir(folder.path().join("below")).unwrap();
    symlink("below/second", folder.path().join("first")).unwrap();
    symlink("third", folder.path().join("below/second")).unwrap();
    symlink("round", folder.path().join("round")).unwrap();
    let compare = ["compare", "job.fio", "--schedulers", "none", "--runtime", "10ms", "-o"];
    succeeded(hoistway().current_dir(folder.path()).args(compare).arg("first"));
    assert!(fs::symlink_metadata(folder.path().join("first")).unwrap().is_symlink());
    assert!(fs::read_to_string(folder.path().join("below/third")).unwrap().contains("none"));
    refused(folder.path(), &[&compare[..], &["round"]].concat(), &["round: cannot be written"]);
}

#[test]
fn results_whose_folder_has_gone_are_printed() {
    let folder = tempdir().unwrap();
    load_in(folder.path());
    let results = folder.path().join("results");
    fs::create_dir(&results).unwrap();
    fs::write(folder.path().join("long.fio"), "[a]\nfilename=/dev/sda\nrw=read\ntime_based\nruntime=200000\n").unwrap();
    let child = Command::new(env!("CARGO_BIN_EXE_hoistway"))
        .current_dir(folder.path())
        .args(["compare", "long.fio", "--schedulers", "none", "-o", "results/table"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    fs::remove_dir_all(&results).unwrap();
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    let complaint = crate::interrupts::complaints(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{complaint}");
    assert!(complaint.contains("results/table: cannot be written"), "{complaint}");
    assert!(complaint.contains("the results are on standard output instead"), "{complaint}");
    assert!(String::from_utf8(output.stdout).unwrap().contains("none"));
}

#[test]
fn one_output_path_may_not_be_used_twice_under_any_name() {
    let folder = tempdir().unwrap();
    load_in(folder.path());
    fs::create_dir(folder.path().join("below")).unwrap();
    let compare = ["compare", "job.fio", "--schedulers", "none", "--runtime", "10ms"];
    for (one, other) in [(["--report", "x.html"], ["--trace", "./x.html"]), (["-o", "y"], ["--trace", "below/../y"])] {
        refused(folder.path(), &[&compare[..], &one, &other].concat(), &["(expected another file)"]);
    }
    fs::write(folder.path().join("job.fio"), "[a]\nrw=randread\ndirect=1\nsize=1m\n").unwrap();
    for results in ["disk", "below/../disk"] {
        let run = ["run", "job.fio", "--target", "file:./disk", "-o", results];
        refused(folder.path(), &run, &["disk: is the target (expected another file for the results)"]);
    }
    assert!(!folder.path().join("disk").exists());
}

#[test]
fn results_are_printed_and_pages_are_not_where_pages_cannot_be_written() {
    let folder = tempdir().unwrap();
    load_in(folder.path());
    // A file may not become as long as a report.
    let output = Command::new("sh")
        .current_dir(folder.path())
        .args(["-c", "trap '' XFSZ; ulimit -f 1; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_hoistway")])
        .args(["compare", "job.fio", "--schedulers", "none", "--runtime", "10ms"])
        .args(["--report", "page.html"])
        .output()
        .unwrap();
    let (text, complaint) = (String::from_utf8(output.stdout).unwrap(), crate::interrupts::complaints(&output.stderr));
    assert_eq!(output.status.code(), Some(2), "{complaint}");
    assert!(complaint.contains("page.html: cannot be written") && complaint.lines().count() == 1, "{complaint}");
    assert!(text.contains("none") && !text.contains("<html"), "{text}");
    let left = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert!(left.into_iter().all(|name| ["job.fio", "common.fio", "own.toml"].contains(&&*name)));
}

#[test]
fn the_command_of_a_document_can_be_given_to_a_shell() {
    let folder = tempdir().unwrap();
    let job = "it's $(touch pwned) & more.fio";
    fs::write(folder.path().join(job), format!("[global]\n{COMMON}[reader]\nfilename=/dev/sda\n")).unwrap();
    let arguments = ["compare", job, "--schedulers", "none", "--runtime", "10ms", "--format", "json"];
    let first = succeeded(hoistway().current_dir(folder.path()).args(arguments));
    let document: Value = serde_json::from_str(&first).unwrap();
    assert_eq!(document["arguments"][2], job);
    let shell = std::process::Command::new("sh")
        .current_dir(folder.path())
        .args(["-c", document["command"].as_str().unwrap()])
        .output()
        .unwrap();
    assert!(!folder.path().join("pwned").exists());
    let again: Value = serde_json::from_slice(&shell.stdout).unwrap();
    assert_eq!(again["arguments"], document["arguments"]);
    assert_eq!(again["runs"][0]["simulated_ios"], document["runs"][0]["simulated_ios"]);
}

#[test]
fn the_temporary_file_of_a_killed_command_is_removed_by_the_next_one_and_that_of_a_running_one_stays() {
    let folder = tempdir().unwrap();
    load_in(folder.path());
    let mut ended = Command::new("true").spawn().unwrap();
    ended.wait().unwrap();
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let temporary = |process: u32| folder.path().join(format!(".results.{}.{process}.part", host.trim()));
    let (left, in_use) = (temporary(ended.id()), temporary(std::process::id()));
    let of_another_machine = folder.path().join(format!(".results.not-{}.{}.part", host.trim(), ended.id()));
    for file in [&left, &in_use, &of_another_machine] {
        fs::write(file, "half").unwrap();
    }
    let compare = ["compare", "job.fio", "--schedulers", "none", "--runtime", "10ms", "-o", "results"];
    succeeded(hoistway().current_dir(folder.path()).args(compare));
    assert!(!left.exists() && in_use.exists() && of_another_machine.exists());
}
