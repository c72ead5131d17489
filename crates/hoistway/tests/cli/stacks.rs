//! `hoistway compare --stack`: devices over the disks.

use std::fs;

use serde_json::Value;
use tempfile::{TempDir, tempdir};

use crate::support::{hoistway, refused, succeeded};

const JOBS: &str = "[global]\ndirect=1\ntime_based\nruntime=200ms\nfilename=/dev/md0\n[r]\nrw=randread\nbs=64k\n[w]\nrw=write\nfsync=8\n";

fn folder() -> TempDir {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("md.fio"), JOBS).unwrap();
    fs::write(folder.path().join("disk.fio"), JOBS.replace("/dev/md0", "/dev/sda")).unwrap();
    folder
}

fn compared(load: &str, options: &[&str]) -> Value {
    let folder = folder();
    let mut command = hoistway();
    command
        .current_dir(folder.path())
        .args(["compare", load, "--schedulers", "mq-deadline,bfq", "--format", "json"])
        .args(options);
    serde_json::from_str(&succeeded(&mut command)).unwrap()
}

fn files(document: &Value) -> Vec<&str> {
    document["runs"][0]["disks"].as_array().unwrap().iter().map(|disk| disk["file"].as_str().unwrap()).collect()
}

#[test]
fn the_figures_of_a_device_on_one_disk_are_those_of_the_disk() {
    let (plain, stacked) = (compared("disk.fio", &[]), compared("md.fio", &["--stack", "/dev/md0 = linear(/dev/sda)"]));
    for run in [0, 1] {
        for key in ["jobs", "disks", "simulated_ios"] {
            assert_eq!(plain["runs"][run][key], stacked["runs"][run][key], "{key}");
        }
    }
}

#[test]
fn disks_and_advice_are_those_below_and_a_notice_says_so() {
    let stack = ["--stack", "/dev/md0 = raid1(/dev/sda, /dev/sdb)", "--device", "/dev/sdb=hdd", "--device", "sata-ssd"];
    let document = compared("md.fio", &stack);
    assert_eq!(files(&document), ["/dev/sda", "/dev/sdb"]);
    let bare = ["--stack", "md0=raid1(sda,sdb)", "--device", "sdb=hdd", "--device", "sata-ssd"];
    let runs = compared("md.fio", &bare)["runs"].take();
    for (of_bare, run) in runs.as_array().unwrap().iter().zip(document["runs"].as_array().unwrap()) {
        assert_eq!((&of_bare["jobs"], &of_bare["disks"]), (&run["jobs"], &run["disks"]), "sda means /dev/sda");
    }
    let notices = document["notices"].to_string();
    assert!(
        notices.contains("/dev/md0 has no scheduler and no queue: those of the disks below it (/dev/sda, /dev/sdb)"),
        "{notices}"
    );
    assert!(!document["doubts"].to_string().contains("was simulated as a single disk"), "{}", document["doubts"]);
    let folder = folder();
    let mut command = hoistway();
    let advice = ["--advice", "--repeat", "2", "--schedulers", "mq-deadline,bfq"];
    command.current_dir(folder.path()).args(["compare", "md.fio", "--device", "hdd", stack[0], stack[1]]).args(advice);
    let text = succeeded(&mut command);
    assert!(
        text.contains("Commands for sda:") && text.contains("Commands for sdb:") && !text.contains("Commands for md0"),
        "{text}"
    );
}

#[test]
fn a_bundled_load_is_on_the_only_stacked_device_and_layers_lie_on_layers() {
    let stacks = [
        "--stack",
        "/dev/vg/data = crypt(/dev/md0, no_read_workqueue)",
        "--stack",
        "/dev/md0 = raid5(/dev/sda, /dev/sdb, /dev/sdc, chunk=64K)",
        "--runtime",
        "100ms",
    ];
    let document = compared("backup-beside-oltp", &stacks);
    assert_eq!(files(&document), ["/dev/sda", "/dev/sdb", "/dev/sdc"]);
    assert!(document["notices"].to_string().contains("The load is on /dev/vg/data, the only stacked device."));
}

#[test]
fn a_stack_that_cannot_be_is_refused_with_what_was_expected() {
    let folder = folder();
    for (stack, problem) in [
        ("/dev/md0", "--stack \"/dev/md0\": expected NAME = KIND(MEMBER, ...), such as"),
        ("/dev/md0 = raid1(/dev/sda)", "raid1 has 1 member(s) (expected 2 or more)"),
        ("/dev/md0 = raid0(a, b, chunk=5K)", "chunk=5K: expected a power of two from 4K to 1024M"),
        (
            "/dev/md1 = linear(/dev/sda)",
            "no job uses /dev/md1 (expected it as a filename of the job file, which has /dev/md0)",
        ),
        ("/dev/md0 = linear(/dev/md0)", "/dev/md0 lies on itself"),
    ] {
        refused(folder.path(), &["compare", "md.fio", "--stack", stack], &[problem]);
    }
    let device = ["compare", "md.fio", "--stack", "/dev/md0 = linear(a)", "--device", "/dev/md0=hdd"];
    refused(folder.path(), &device, &["/dev/md0 is a stacked device (expected a device for a disk: one of /dev/a)"]);
}
