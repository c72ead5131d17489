//! `hoistway host --fleet`: its formats, conditions and exit status. `crates/linux/tests/fleet.rs` tests what is found.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::{TempDir, tempdir};

use crate::host_tree::{self, tree};
use crate::interrupts::complaints;
use crate::support::{complaint, hoistway, printed, succeeded};

/// A folder with a desktop, two guests as archives and a server.
fn fleet() -> TempDir {
    let folder = host_tree::folder();
    for (name, fixture) in [("desk", "desktop"), ("guest-1", "guest"), ("guest-2", "guest"), ("server", "server")] {
        let file = format!("{}/../linux/tests/fixtures/{fixture}.tree", env!("CARGO_MANIFEST_DIR"));
        let files = tree(&fs::read_to_string(file).unwrap());
        if fixture == "guest" {
            let mut command = hoistway();
            command.args(["host", "--dump", "-", "--sysfs", files.path().to_str().unwrap()]);
            let output = command.output().unwrap();
            assert!(output.status.success());
            fs::write(folder.path().join(format!("{name}.tar.zst")), output.stdout).unwrap();
        } else {
            fs::rename(files.keep(), folder.path().join(name)).unwrap();
        }
    }
    folder
}

fn path(folder: &Path) -> &str {
    folder.to_str().unwrap()
}

/// The status, standard output and standard error of `hoistway host --fleet`.
fn ended(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = hoistway().args(["host", "--fleet"]).args(arguments).output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap(), complaints(&output.stderr))
}

#[test]
fn the_table_has_classes_the_worst_hosts_and_advice() {
    let folder = fleet();
    let text = printed(&["host", "--fleet", path(folder.path())]);
    assert!(text.starts_with("4 hosts, 2 with findings\n"), "{text}");
    let lines: Vec<String> = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    let row = "1. bfq-on-fast-device high - nvme Samsung SSD 990 PRO 2TB 6.12 1 of 1 1 of 1".to_owned();
    assert!(lines.contains(&row), "{text}");
    assert!(text.contains("\nWorst hosts\n  desk: 1 high, 3 medium, 1 low: bfq-on-fast-device, "), "{text}");
    assert!(text.contains("Run on desk:\n     echo none > /sys/block/nvme0n1/queue/scheduler\n"), "{text}");
    let csv = printed(&["host", "--fleet", path(folder.path()), "--format", "csv"]);
    assert!(csv.starts_with("finding,severity,machine,device,kernel,hosts,hosts_of_class,"), "{csv}");
    assert!(
        csv.contains("\nbfq-on-fast-device,high,,nvme Samsung SSD 990 PRO 2TB,6.12,1,1,1,1,desk,echo none > "),
        "{csv}"
    );
    let json = printed(&["host", "--fleet", path(folder.path()), "--format", "json"]);
    let document: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(document["format"], "hoistway-fleet/1");
    assert_eq!(document["hosts"].as_array().unwrap().len(), 4);
    assert_eq!(csv.lines().count(), 1 + document["findings"].as_array().unwrap().len());
}

#[test]
fn dumps_are_named_by_a_pattern_or_a_list() {
    let folder = fleet();
    let pattern = format!("{}/guest-*", path(folder.path()));
    assert!(printed(&["host", "--fleet", &pattern]).starts_with("2 hosts, 0 with findings\n\nNothing found.\n"));
    let list = format!("{0}/desk\n{0}/guest-1.tar.zst\n", path(folder.path()));
    let text = succeeded(hoistway().args(["host", "--fleet", "-"]).write_stdin(list));
    assert!(text.starts_with("2 hosts, 1 with findings\n"), "{text}");
}

#[test]
fn a_damaged_dump_is_named_and_the_status_is_1() {
    let folder = fleet();
    let dump = folder.path().join("guest-1.tar.zst");
    let whole = fs::read(&dump).unwrap();
    fs::write(&dump, &whole[..whole.len() / 2]).unwrap();
    fs::write(folder.path().join("notes.txt"), "").unwrap();
    let (status, text, complaint) = ended(&[path(folder.path()), "--fail-if", "high"]);
    assert_eq!(status, Some(1));
    assert!(text.starts_with("3 hosts, 2 with findings; 1 dump that cannot be read\n"), "{text}");
    assert!(complaint.contains("guest-1.tar.zst: is truncated or damaged"), "{complaint}");
    assert!(complaint.contains("notes.txt: is not read, since its name"), "{complaint}");
}

#[test]
fn a_condition_that_is_met_ends_with_status_3_and_names_the_hosts() {
    let folder = fleet();
    let fleet = path(folder.path());
    let (status, _, complaint) = ended(&[fleet, "--fail-if", "nvme:scheduler!=none", "--fail-if", "high>1"]);
    assert_eq!(status, Some(3));
    assert_eq!(complaint, "hoistway: --fail-if nvme:scheduler!=none: desk (nvme0n1 bfq)\n");
    assert_eq!(ended(&[fleet, "--fail-if", "high>1", "--fail-if", "kernel<4.19"]).0, Some(0));
    let output = hoistway().args(["host", "--sysfs", path(&folder.path().join("desk")), "--fail-if", "high"]).output();
    assert_eq!(output.unwrap().status.code(), Some(3), "a single host, too");
}

#[test]
fn changes_since_an_earlier_day_are_listed() {
    let (then, now) = (fleet(), fleet());
    let unchanged = printed(&["host", "--fleet", path(now.path()), "--since", path(then.path())]);
    assert!(unchanged.ends_with("\nSince the earlier dumps\n  Nothing has changed.\n"), "{unchanged}");
    let scheduler = "desk/sys/block/nvme0n1/queue/scheduler";
    fs::write(now.path().join(scheduler), "[none] mq-deadline kyber bfq\n").unwrap();
    fs::remove_file(now.path().join("guest-2.tar.zst")).unwrap();
    let text = printed(&["host", "--fleet", path(now.path()), "--since", path(then.path())]);
    let changes = text.split_once("\nSince the earlier dumps\n").unwrap().1;
    for line in [
        "  1 host gone: guest-2\n",
        "  bfq-on-fast-device of nvme Samsung SSD 990 PRO 2TB: gone on desk\n",
        "  scheduler of nvme Samsung SSD 990 PRO 2TB: bfq -> none on desk\n",
    ] {
        assert!(changes.contains(line), "no {line:?} in\n{changes}");
    }
}

#[test]
fn what_cannot_be_a_fleet_is_refused() {
    let folder = tempdir().unwrap();
    let empty = path(folder.path());
    assert_eq!(
        complaint(&["host", "--fleet", empty]),
        format!(
            "hoistway: {empty}: no dumps (expected a folder or an archive .tar, .tar.gz or .tar.zst for each host)\n"
        )
    );
    assert!(complaint(&["host", "--fleet", "/no/such/dumps-*"]).contains("no such folder or dump (expected"));
    assert!(complaint(&["host", "--format", "csv"]).contains("or --fleet"));
    let error = complaint(&["host", "--fleet", empty, "--fail-if", "nvme:schedular=none"]);
    assert!(error.contains("no such file of queue/ (expected one of "), "{error}");
}

#[test]
fn the_script_for_hosts_without_hoistway_dumps_what_the_program_reads() {
    if !Path::new("/sys/block").is_dir() {
        eprintln!("skipped: there is no /sys/block");
        return;
    }
    let folder = tempdir().unwrap();
    let dump = folder.path().join("here.tar.gz");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/host-dump");
    let output = std::process::Command::new("sh").arg(script).output().unwrap();
    assert!(output.status.success());
    fs::write(&dump, output.stdout).unwrap();
    let shown = |arguments: &[&str]| -> Value {
        serde_json::from_str(&printed(&[&["host", "--format", "json"], arguments].concat())).unwrap()
    };
    let (here, dumped) = (shown(&[]), shown(&["--sysfs", path(&dump)]));
    // Loop devices come and go while other tests run.
    let lasting = |host: &Value| -> Vec<Value> {
        let devices = host["devices"].as_array().unwrap();
        devices.iter().filter(|device| device["class"] != "loop").cloned().collect()
    };
    assert_eq!(lasting(&dumped), lasting(&here));
    for field in ["kernel", "machine"] {
        assert_eq!(dumped[field], here[field]);
    }
}
