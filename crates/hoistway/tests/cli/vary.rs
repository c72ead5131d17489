//! Comparisons of settings, kernels, devices and hosts: `hoistway compare --vary`, and lists.

use std::fs;

use serde_json::Value;
use tempfile::{TempDir, tempdir};

use crate::support::{hoistway, refused, succeeded};

/// Readers that wait for writes.
pub(crate) const LOAD: &str = "[global]\nfilename=/dev/sda\ndirect=1\nioengine=libaio\nruntime=40ms\ntime_based\n\
                               [readers]\nrw=randread\nbs=8k\niodepth=4\nnumjobs=4\n\
                               [writers]\nrw=randwrite\nbs=64k\niodepth=40\n";

pub(crate) fn with_load() -> TempDir {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("load.fio"), LOAD).unwrap();
    folder
}

fn compared(folder: &TempDir, options: &[&str]) -> String {
    succeeded(hoistway().current_dir(folder).args(["compare", "load.fio"]).args(options))
}

fn labels(document: &Value) -> Vec<&str> {
    document["runs"].as_array().unwrap().iter().map(|run| run["variant"]["label"].as_str().unwrap()).collect()
}

#[test]
fn settings_are_rows_of_one_table_and_one_of_them_is_recommended() {
    let folder = with_load();
    let options = [
        "--schedulers",
        "none,mq-deadline",
        "--vary",
        "mq-deadline.fifo_batch=1,16",
        "--vary",
        "queue.nr_requests=8,64",
    ];
    let table = compared(&folder, &[&options[..], &["--repeat", "3", "--focus", "readers:read:mean"]].concat());
    for row in
        ["none nr_requests=8 ", "mq-deadline fifo_batch=1 nr_requests=64 ", "mq-deadline fifo_batch=16 nr_requests=8 "]
    {
        assert_eq!(table.lines().filter(|line| line.starts_with(row)).count(), 2, "a row for each job: {table}");
    }
    assert!(table.contains("(base: mq-deadline fifo_batch=16 nr_requests=64)"), "{table}");
    let prose = table.split_whitespace().collect::<Vec<_>>().join(" ");
    let change = "change from the default (mq-deadline with fifo_batch=16 and nr_requests=64) to ";
    assert!(prose.contains(change) && prose.contains(" nr_requests=8: mean read latency of readers "), "{prose}");
    assert!(prose.contains("Left out: --vary queue.nr_requests=64:"), "none has 32 tags: {prose}");
    let json = compared(
        &folder,
        &[&options[..], &["--format", "json", "--baseline", "mq-deadline fifo_batch=1 nr_requests=8"]].concat(),
    );
    let document: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(document["statistics"]["baseline"], "mq-deadline fifo_batch=1 nr_requests=8");
    let run = &document["runs"][2];
    assert_eq!((&run["tunables"]["fifo_batch"], &run["queue_files"]["nr_requests"]), (&1.into(), &8.into()));
}

#[test]
fn kernels_devices_and_hosts_are_one_experiment_with_a_verdict_for_each_place() {
    let folder = with_load();
    let places = ["--schedulers", "none,mq-deadline", "--kernel", "4.19,7.2", "--device", "intel-s3520-1600gb,null"];
    let document: Value =
        serde_json::from_str(&compared(&folder, &[&places[..], &["--format", "json"]].concat())).unwrap();
    assert_eq!(document["setups"].as_array().unwrap().len(), 4);
    assert_eq!(labels(&document)[2], "none device=intel-s3520-1600gb kernel=7.2");
    assert_eq!(document["verdicts"].as_array().unwrap().len(), 4);
    let table = compared(&folder, &[&places[..], &["--repeat", "2"]].concat());
    for place in ["On intel-s3520-1600gb, Linux 4.19: ", "On null, Linux 7.2: "] {
        assert!(table.contains(place), "{table}");
    }
    assert_eq!(table.matches("Side by side, ").count(), 1, "{table}");
    let hosts = compared(&folder, &["--schedulers", "none", "--host", "server,instant"]);
    assert!(hosts.contains("none host=instant") && hosts.contains(" on host instant"), "{hosts}");
    let twice = compared(&folder, &["--schedulers", "none", "--host", "server", "--host", "instant"]);
    assert_eq!(hosts, twice, "an option may be given again, too");
}

#[test]
fn files_of_single_devices_go_with_each_of_the_others() {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("load.fio"), LOAD.replace("/dev/sda", "/dev/sda:/dev/sdb")).unwrap();
    let options = ["--device", "null,intel-s3520-1600gb", "--device", "/dev/sdb=hgst-he10-8tb", "--schedulers", "none"];
    let document: Value =
        serde_json::from_str(&compared(&folder, &[&options[..], &["--format", "json"]].concat())).unwrap();
    assert_eq!(labels(&document), ["none device=null+hgst-he10-8tb", "none device=intel-s3520-1600gb+hgst-he10-8tb"]);
}

#[test]
fn every_variant_has_its_logs() {
    let folder = with_load();
    compared(&folder, &["--schedulers", "none", "--vary", "queue.nr_requests=8", "--fio-logs", "logs"]);
    let mut names: Vec<String> = fs::read_dir(folder.path().join("logs"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["none", "none_nr_requests=8"]);
}

#[test]
fn an_invalid_variation_is_refused_with_the_valid_ones() {
    let folder = with_load();
    let refuse = |options: &[&str], words: &[&str]| {
        refused(folder.path(), &[&["compare", "load.fio"], options].concat(), words);
    };
    refuse(&["--vary", "fifo_batch=1"], &["--vary fifo_batch=1: expected SCHED.TUNABLE=V1,V2,..."]);
    refuse(&["--vary", "bfq.slice_idle=0,,8"], &["expected SCHED.TUNABLE=V1,V2,..."]);
    refuse(&["--vary", "bfq.slice_idel=0"], &["did you mean \"slice_idle\"?"]);
    refuse(&["--vary", "mq-deadline.fifo_batch=-1,x"], &["fifo_batch=x", "expected 0 to 2147483647"]);
    refuse(
        &["--vary", "bfq.slice_idle=0,8", "--set", "bfq.slice_idle=4"],
        &["--vary bfq.slice_idle=0,8: --set bfq.slice_idle=4 sets"],
    );
    refuse(
        &["--vary", "queue.nr_requests=8,16", "--nr-requests", "32"],
        &["--vary queue.nr_requests=8,16: --queue nr_requests=32 sets"],
    );
    let hundred = (1..=100).map(|number| number.to_string()).collect::<Vec<_>>().join(",");
    let [batch, starved] = ["fifo_batch", "writes_starved"].map(|name| format!("mq-deadline.{name}={hundred}"));
    refuse(
        &["--vary", &batch, "--vary", &starved, "--repeat", "2"],
        &[
            "mq-deadline.fifo_batch (100 values)",
            "makes 10003 variants and, with 2 repeats, 20006 runs (expected at most 1000",
        ],
    );
    refuse(&["--kernel", "6.18,2.6"], &["unknown kernel \"2.6\""]);
    refuse(&["--kernel", "6.18,6.18"], &["--kernel kernel=6.18: duplicate variant name"]);
    refuse(&["--host", "vm,vm", "--kernel", "6.18,6.19"], &["--host host=vm", "duplicate variant name"]);
    refuse(&["--device", "null,null", "--host", "vm,server"], &["--device device=null", "duplicate variant name"]);
    refuse(
        &["--device", "null", "--device", "hdd"],
        &["--device hdd: --device null was already given", "--device null,hdd"],
    );
    refuse(&["--device", "/dev/sda=null,hdd"], &["a list of devices to compare takes no NAME="]);
    refuse(&["--device", "/dev/sda=null", "--device", "/dev/sda=hdd"], &["--device /dev/sda=null was already given"]);
    refuse(&["--device", "null,floppy"], &["`floppy`; expected one of"]);
    refuse(&["--host", "server,x"], &["`x`"]);
}
