//! Pasted input, abbreviations, other names, and files of the host and the queue.

use std::fs;
use std::io::Read as _;
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::tempdir;

use crate::support::{printed, refused, repeatable};

const SHORT: [&str; 9] =
    ["compare", "example", "--device", "sata-ssd", "--runtime", "0.2s", "--ramp", "0", "--repeat=1"];

fn document(arguments: &[&str]) -> Value {
    repeatable(&printed(&[arguments, &["--format", "json"]].concat()))
}

#[test]
fn the_example_has_a_name_and_is_in_the_list() {
    let named = document(&[&SHORT[..], &["--schedulers", "none"]].concat());
    assert!(named["job_file"].as_str().unwrap().starts_with("example.fio"));
    assert!(printed(&["scenarios"]).starts_with("example "));
    let job = printed(&["scenarios", "example", "--job"]);
    assert!(printed(&["scenarios", "example"]).ends_with(&job) && job.contains("rw="));
    let folder = tempdir().unwrap();
    refused(
        folder.path(),
        &["compare", "exampel"],
        &["or one of the scenarios example, ", "did you mean \"example\"?"],
    );
    let command = "fio --name=a --filename=/dev/sda --rw=randread";
    refused(folder.path(), &["compare", command], &["; `hoistway fio` takes a command of fio)"]);
}

#[test]
fn a_pasted_command_of_fio_is_the_same_in_every_form() {
    let job = |line: &[&str]| printed(&[&["fio", "--print-job"], line].concat());
    let plain = job(&["--name=a", "--filename=/dev/sda", "--ioengine=libaio", "--iodepth=4", "--rw=randread"]);
    for line in [
        &["sudo", "fio", "--name=a", "--filename=/dev/sda", "--ioengine=libaio", "--iodepth=4", "--rw=randread"][..],
        &["sudo fio --name=a --filename=/dev/sda --ioengine=libaio --iodepth=4 --rw=randread"],
        &["fio '--name=a' --filename=\"/dev/sda\" --ioengine=libaio --iodepth=4 --rw=randread"],
        &["--name=a", "--filename=/dev/sda", "--ioeng=libaio", "--iodepth=4", "--rw=randread"],
    ] {
        assert_eq!(job(line), plain, "{line:?}");
    }
    let folder = tempdir().unwrap();
    refused(folder.path(), &["fio", "--name=a", "--io=4"], &["--io: ambiguous", "--ioengine"]);
}

#[test]
fn a_limit_that_one_scheduler_refuses_is_written_for_the_others() {
    let both =
        [&SHORT[..], &["--schedulers", "none,mq-deadline", "--kernel", "7.2", "--queue", "async_depth=8"]].concat();
    let notices = document(&both)["notices"].to_string();
    assert!(notices.contains("--queue async_depth=8: not written with none"), "{notices}");
    let folder = tempdir().unwrap();
    let alone = [&SHORT[..], &["--schedulers", "none", "--kernel", "7.2", "--queue", "async_depth=8"]].concat();
    refused(folder.path(), &alone, &["--queue async_depth=8: invalid value (EINVAL) with none"]);
    let tunable = [&SHORT[..], &["--kernel", "7.2", "--set", "mq-deadline.async_depth=8"]].concat();
    refused(folder.path(), &tunable, &["is a file of queue/, not a tunable (expected --queue async_depth=8)"]);
}

#[test]
fn common_synonyms_are_explained() {
    for (name, part) in
        [("ionice", "prioclass"), ("elevator", "boot option"), ("iostat", "r_await"), ("%util", "share of time")]
    {
        assert!(printed(&["explain", name]).contains(part), "{name}");
    }
}

#[test]
fn an_output_fifo_without_a_reader_is_named() {
    let folder = tempdir().unwrap();
    let fifo = folder.path().join("results");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let mut child = Command::new(assert_cmd::cargo::cargo_bin!("hoistway"))
        .args([&SHORT[..], &["--schedulers", "none", "-o", fifo.to_str().unwrap()]].concat())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 20];
    child.stderr.as_mut().unwrap().read_exact(&mut first).unwrap();
    assert_eq!(&first, b"waiting for a reader");
    assert!(fs::read_to_string(&fifo).unwrap().contains("example.fio"));
    assert!(child.wait().unwrap().success());
}

#[test]
fn memory_and_queue_settings_change_page_cache_behaviour() {
    let folder = tempdir().unwrap();
    let job = folder.path().join("buffered.fio");
    fs::write(
        &job,
        "[w]\nfilename=/dev/sda\nrw=write\nbs=1m\nsize=256m\n[r]\nfilename=/dev/sdb\nrw=read\nbs=64k\nsize=64m\n",
    )
    .unwrap();
    let compared = |more: &[&str]| {
        document(
            &[&["compare", job.to_str().unwrap(), "--device=sata-ssd", "--schedulers=none", "--repeat=1"], more]
                .concat(),
        )
    };
    let cache = |document: &Value, key: &str| document["runs"][0]["page_cache"][key].as_u64().unwrap();
    let (plain, small) = (compared(&[]), compared(&["--sysctl", "vm.dirty_bytes=16777216"]));
    assert!(cache(&plain, "throttled_writes") == 0 && cache(&small, "throttled_writes") > 10, "{small}");
    let early = compared(&["--sysctl", "vm.dirty_background_bytes=1048576"]);
    assert!(cache(&early, "written_back_bytes") > cache(&plain, "written_back_bytes"));
    let none = compared(&["--queue", "read_ahead_kb=0"]);
    assert_eq!(cache(&none, "read_ahead_bytes"), 0);
    refused(
        folder.path(),
        &["compare", job.to_str().unwrap(), "--sysctl", "vm.dirty_byte=1"],
        &["vm.dirty_byte=1", "did you mean \"vm.dirty_bytes\"?"],
    );
    refused(folder.path(), &["compare", job.to_str().unwrap(), "--sysctl", "vm.dirty_ratio"], &["expected NAME=VALUE"]);
}

#[test]
fn dispatch_in_the_submitter_is_an_option_and_a_key_of_the_host() {
    let folder = tempdir().unwrap();
    let job = folder.path().join("many.fio");
    fs::write(&job, "[a]\nfilename=/dev/sda\ndirect=1\nioengine=libaio\niodepth=32\nrw=randread\nnumjobs=4\nsize=8m\n")
        .unwrap();
    let host = folder.path().join("host.toml");
    fs::write(
        &host,
        printed(&["hosts", "server", "--toml"]).replacen("submit_ns", "submitter_dispatches = true\nsubmit_ns", 1),
    )
    .unwrap();
    let runs = |more: &[&str]| {
        let arguments = [
            "compare",
            job.to_str().unwrap(),
            "--device=sata-ssd",
            "--schedulers=mq-deadline",
            "--kernel=5.10",
            "--repeat=1",
        ];
        document(&[&arguments[..], more].concat())["runs"].clone()
    };
    let (plain, option) = (runs(&[]), runs(&["--submitter-dispatches"]));
    assert_ne!(plain, option);
    assert_eq!(option, runs(&["--host", host.to_str().unwrap()]));
}

#[test]
fn a_time_is_the_same_in_every_unit() {
    for tenths in [1, 3, 9] {
        let runs = |time: String| {
            let asked = [&SHORT[..4], &["--schedulers", "none", "--repeat=1", "--ramp=0", "--runtime", &time]].concat();
            document(&asked)["runs"].clone()
        };
        assert_eq!(runs(format!("0.{tenths}s")), runs(format!("{}ms", tenths * 100)));
    }
    let folder = tempdir().unwrap();
    for wrong in ["0.s", ".5s", "1.2.3s", "0.0s"] {
        refused(folder.path(), &["compare", "example", "--runtime", wrong], &["--runtime"]);
    }
}
