//! `hoistway compare`: hardware queues, shared tags, default schedulers and the classes of cgroups.

use std::fs;

use hoistway_blk::bio::CgroupPriority;
use serde_json::Value;
use tempfile::{TempDir, tempdir};

use crate::support::{hoistway, printed, refused, succeeded};

const JOBS: &str = "[global]\ndirect=1\nrw=randrw\ntime_based\nruntime=1\n[a]\nfilename=/dev/sda\ncgroup=slow\nhipri\n\
                    [b]\nfilename=/dev/sdb\ncgroup=slow/below\n";

/// A folder with a load on two devices and a load on one device.
fn folder() -> TempDir {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("two.fio"), JOBS).unwrap();
    fs::write(folder.path().join("deep.fio"), JOBS.replace("[global]", "[global]\nioengine=libaio\niodepth=64"))
        .unwrap();
    fs::write(folder.path().join("one.fio"), JOBS.replace("/dev/sdb", "/dev/sda")).unwrap();
    folder
}

fn compared(options: &[&str]) -> Value {
    let folder = folder();
    let mut command = hoistway();
    command.current_dir(folder.path()).args(["compare", "--runtime", "100ms", "--format", "json"]).args(options);
    serde_json::from_str(&succeeded(&mut command)).unwrap()
}

fn notices(document: &Value) -> String {
    document["notices"].to_string()
}

fn schedulers(document: &Value) -> Vec<&str> {
    document["runs"].as_array().unwrap().iter().map(|run| run["scheduler"].as_str().unwrap()).collect()
}

fn reads(document: &Value, job: usize) -> u64 {
    document["runs"][0]["jobs"][job]["operations"][0]["ios"].as_u64().unwrap()
}

#[test]
fn hardware_queues_for_reads_and_polling_come_on_top_of_those_of_the_device() {
    let with = |options: &[&str]| {
        let device = ["one.fio", "--device", "intel-p4800x-375gb", "--cpus", "4", "--schedulers", "none,cfq"];
        compared(&[&device, options].concat())
    };
    let (plain, polled) = (with(&[]), with(&["--poll-queues", "2"]));
    assert_eq!((plain["hw_queues"].as_u64(), polled["hw_queues"].as_u64()), (Some(4), Some(6)));
    assert_eq!(with(&["--hw-queues", "1", "--read-queues", "9"])["hw_queues"], 5, "no more than CPUs are used");
    assert!(reads(&polled, 0) * 10 > reads(&plain, 0) * 11, "polling saves the wake-up");
    assert!(notices(&plain).contains("hipri: completions come by interrupt, because no device has hardware queues"));
    assert!(notices(&polled).contains("hipri: with cfq completions come by interrupt"), "{}", notices(&polled));
}

#[test]
fn devices_behind_one_controller_share_its_tags() {
    let with = |options: &[&str]| {
        let load = ["deep.fio", "--schedulers", "none,bfq"];
        compared(&[&load, options].concat())
    };
    let (apart, shared) = (with(&[]), with(&["--shared-tags"]));
    for run in [0, 1] {
        let latency = |document: &Value| document["runs"][run]["jobs"][1]["operations"][0]["lat_ns"]["mean"].clone();
        assert_ne!(latency(&apart), latency(&shared), "32 tags for two are fewer than 32 for each");
    }
}

#[test]
fn the_default_is_that_of_kernel_and_device_and_elevator_counts_for_legacy_queues_only() {
    let with = |options: &[&str]| compared(&[&["one.fio", "--device", "hgst-he10-8tb"], options].concat());
    let now = with(&["--schedulers", "default"]);
    assert_eq!(schedulers(&now), ["mq-deadline"]);
    assert!(notices(&now).contains("default is mq-deadline, as Linux 7.2 chooses for hgst-he10-8tb."));
    let then = |options: &[&str]| with(&[&["--kernel", "4.19", "--schedulers", "none,default"], options].concat());
    assert_eq!(schedulers(&then(&[])), ["none", "cfq"]);
    assert_eq!(schedulers(&then(&["--elevator", "deadline"])), ["none", "deadline"]);
    let ignored = with(&["--schedulers", "default", "--elevator", "deadline"]);
    assert_eq!(schedulers(&ignored), ["mq-deadline"]);
    assert!(notices(&ignored).contains("blk-mq devices have always ignored elevator=deadline"));
    let nvme = compared(&["one.fio", "--device", "micron-9100-1600gb", "--kernel", "4.19", "--schedulers", "default"]);
    assert_eq!(schedulers(&nvme), ["none"]);
}

#[test]
fn an_io_prio_class_without_effect_gets_a_notice() {
    let with = |options: &[&str]| compared(&[&["one.fio", "--schedulers", "none,mq-deadline"], options].concat());
    let idle = with(&["--io-prio-class", "slow idle"]);
    assert!(notices(&idle).contains("no effect with none, which have no priorities or no such file."), "{idle}");
    let jobs = |document: &Value| document["runs"][1]["jobs"].clone();
    assert_ne!(jobs(&idle), jobs(&with(&[])), "mq-deadline takes one of them for idle");
}

#[test]
fn the_help_names_every_class_that_a_cgroup_may_have() {
    let help = printed(&["compare", "--help"]);
    for (class, _) in CgroupPriority::TEXTS {
        assert!(help.contains(class), "{class}");
    }
}

#[test]
fn options_that_kernel_devices_or_job_file_cannot_have_are_refused() {
    let folder = folder();
    let refuse = |options: &[&str], words: &[&str]| refused(folder.path(), &[&["compare"], options].concat(), words);
    for option in ["--read-queues", "--poll-queues"] {
        refuse(
            &["one.fio", option, "2", "--kernel", "4.19"],
            &["Linux 4.19 has no hardware queues for reads or polling"],
        );
        refuse(&["one.fio", option, "some"], &["invalid value"]);
    }
    refuse(
        &["one.fio", "--hw-queues", "2048", "--read-queues", "1024", "--cpus", "1024", "--poll-queues", "1"],
        &["2049 hardware queues with intel-s3520-1600gb"],
    );
    refuse(&["one.fio", "--shared-tags"], &["--shared-tags: sharing tags needs several devices"]);
    refuse(
        &["two.fio", "--shared-tags", "--schedulers", "all"],
        &["--shared-tags: with noop devices cannot share tags", "expected --schedulers"],
    );
    let unlike = ["two.fio", "--shared-tags", "--device", "null", "--device", "/dev/sdb=intel-p4800x-375gb"];
    refuse(&unlike, &["null has 64 tags for each of 1 hardware queues", "expected devices with equal numbers"]);
    refuse(&["one.fio", "--elevator", "cfq"], &["--elevator cfq: only the kernel's default depends on it"]);
    let two = ["two.fio", "--device", "null", "--device", "/dev/sdb=intel-p4800x-375gb", "--schedulers", "default"];
    refuse(&two, &["null has mq-deadline and intel-p4800x-375gb has none"]);
    for (class, words) in [
        ("slow", "expected a cgroup and a class, such as"),
        ("slow real-time", "unknown class \"real-time\" (expected one of no-change, promote-to-rt"),
        ("sl idle", "no job is in cgroup \"sl\" itself (the job file names: slow, slow/below)"),
    ] {
        refuse(&["one.fio", "--io-prio-class", class], &["--io-prio-class", words]);
    }
    let old = ["one.fio", "--io-prio-class", "slow idle", "--kernel", "5.10"];
    refuse(&old, &["Linux 5.10 has no io.prio.class (expected --kernel 5.14 or later)"]);
}
