//! `hoistway host`: its output for trees of files, and what it refuses.

use std::fs;

use serde_json::Value;
use tempfile::{TempDir, tempdir};

use crate::host_tree::tree;
use crate::support::{complaint, hoistway, printed, succeeded};

fn fixture(name: &str) -> TempDir {
    let file = format!("{}/../linux/tests/fixtures/{name}.tree", env!("CARGO_MANIFEST_DIR"));
    tree(&fs::read_to_string(file).unwrap())
}

fn path(folder: &TempDir) -> &str {
    folder.path().to_str().unwrap()
}

#[test]
fn the_table_has_a_row_for_each_device_and_the_findings_are_numbered_with_commands() {
    let folder = fixture("desktop");
    let text = printed(&["host", "--sysfs", path(&folder)]);
    let row = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("no {name} in\n{text}"));
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(row("nvme0n1"), "nvme0n1 - nvme 2.0 TB 4 x 1023 bfq* back off Samsung_SSD_990_PRO_2TB");
    assert_eq!(row("dm-1"), "dm-1 (vg-root) lvm: dm-0 stacked 550 GB - - back - -");
    assert_eq!(row("Changed of"), "Changed of nvme0n1: iosched/slice_idle 0 (default 8).");
    assert_eq!(row("Without a medium"), "Without a medium, not shown: loop1.");
    assert!(text.contains("\n1. high: bfq runs on nvme0n1"), "{text}");
    assert!(text.contains("\n     echo none > /sys/block/nvme0n1/queue/scheduler\n"), "{text}");
    assert!(text.lines().filter(|line| !line.starts_with("     ")).all(|line| line.chars().count() <= 120), "{text}");
}

#[test]
fn a_named_device_is_shown_with_its_lower_devices_and_all_tunables() {
    let folder = fixture("server");
    let text = printed(&["host", "--sysfs", path(&folder), "/dev/md127"]);
    assert!(text.contains("\nsda") && text.contains("\nsdb") && !text.contains("\nsdc"), "{text}");
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("Tunables of sda: nr_requests 64, rotational 1,"), "{text}");
    assert!(words.contains("iosched/read_expire 100 (default 500)"), "{text}");
    assert!(!words.contains("io.max"), "that is for another disk: {text}");
    let error = complaint(&["host", "--sysfs", path(&folder), "sdq"]);
    assert_eq!(error, "hoistway: sdq: no such block device (expected one of sda, sdb, sdc, md127)\n");
}

#[test]
fn a_dump_shows_the_same_as_the_machine() {
    let (folder, place) = (fixture("server"), tempdir().unwrap());
    let dump = place.path().join("dump.tar.zst");
    let dump = dump.to_str().unwrap();
    let line = printed(&["host", "--sysfs", path(&folder), "--dump", dump]);
    assert!(line.contains("about 4 devices") && line.ends_with("without serial numbers\n"), "{line}");
    for format in ["table", "json"] {
        let shown = |place: &str| printed(&["host", "--format", format, "--sysfs", place]);
        assert_eq!(shown(dump), shown(path(&folder)));
    }
    let document: Value = serde_json::from_str(&printed(&["host", "--format", "json", "--sysfs", dump])).unwrap();
    assert_eq!(document["format"], "hoistway-host/1");
    let whole = fs::read(dump).unwrap();
    fs::write(dump, &whole[..whole.len() / 2]).unwrap();
    let error = complaint(&["host", "--sysfs", dump]);
    assert!(error.contains("truncated or damaged") && error.contains("(expected a complete archive"), "{error}");
    fs::write(dump, &whole).unwrap();
    let error = complaint(&["host", "--sysfs", dump, "--dump", dump]);
    assert!(error.contains("is read by this command"), "{error}");
    assert_eq!(fs::read(dump).unwrap(), whole);
}

#[test]
fn names_in_a_dump_cannot_steer_a_terminal() {
    let folder = fixture("guest");
    let release = folder.path().join("proc/sys/kernel/osrelease");
    fs::write(release, "6.1.0\x1b]0;owned\x07\n").unwrap();
    let text = printed(&["host", "--sysfs", path(&folder)]);
    assert!(!text.contains('\x1b') && text.contains('\u{241b}'), "{text}");
}

#[test]
fn the_machine_that_runs_the_tests_can_be_shown() {
    if !std::path::Path::new("/sys/block").is_dir() {
        eprintln!("skipped: there is no /sys/block");
        return;
    }
    let text = succeeded(hoistway().args(["host"]));
    assert!(text.starts_with("Linux "), "{text}");
    let folder = tempdir().unwrap();
    let error = complaint(&["host", "--sysfs", path(&folder)]);
    assert!(error.contains("has no proc/sys/kernel/osrelease (expected"), "{error}");
    let error = complaint(&["host", "--sysfs", "/no/such/folder"]);
    assert!(
        error.contains("/no/such/folder: ") && error.contains("(expected the folder or the archive of a dump)"),
        "{error}"
    );
}
