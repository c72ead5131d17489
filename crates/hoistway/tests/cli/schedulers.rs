//! The output of `hoistway schedulers`.

use serde_json::Value;
use tempfile::tempdir;

use crate::support::{keys, printed, refused};

const ALL: [&str; 15] = [
    "none",
    "mq-deadline",
    "kyber",
    "bfq",
    "noop",
    "deadline",
    "cfq",
    "k2",
    "adios",
    "mqfq",
    "d2fq",
    "blk-switch",
    "tabs",
    "vfair",
    "cffq",
];

#[test]
fn every_scheduler_has_a_row_and_a_sentence() {
    let list = printed(&["schedulers"]);
    for scheduler in ALL {
        let row = list.lines().find(|line| line.split_whitespace().next() == Some(scheduler));
        assert!(row.is_some_and(|row| row.contains("multi-queue") || row.contains("legacy")), "{scheduler}:\n{list}");
        assert!(list.contains(&format!("\n{scheduler}: ")), "{scheduler} lacks its sentence:\n{list}");
    }
    assert_eq!(list.matches("  Costs: ").count(), ALL.len());
    assert_eq!(list.matches("  Default for: ").count(), ALL.len());
    assert!(list.lines().all(|line| line.chars().count() <= 80 && line.trim_end() == line), "{list}");
}

#[test]
fn a_kernel_lists_those_that_it_has() {
    let list = printed(&["schedulers", "--kernel", "4.4"]);
    assert!(list.contains("Not in Linux 4.4: mq-deadline, kyber, bfq."), "{list}");
    assert!(list.contains("\ncfq: ") && !list.contains("\nbfq: "), "{list}");
    assert!(printed(&["schedulers", "--kernel", "6.18"]).contains("Not in Linux 6.18: noop, deadline, cfq."));
    let list = printed(&["schedulers", "--kernel", "4.19"]);
    assert!(!list.contains("Not in Linux") && !list.contains("\nk2"), "{list}");
}

#[test]
fn the_document_has_all_its_keys_in_order() {
    let document: Value = serde_json::from_str(&printed(&["schedulers", "--format", "json"])).unwrap();
    assert_eq!(keys(&document).join(" "), "format kernel schedulers");
    assert_eq!((document["format"].as_str(), document["kernel"].is_null()), (Some("hoistway-schedulers/1"), true));
    let schedulers = document["schedulers"].as_array().unwrap();
    assert_eq!(schedulers.iter().map(|scheduler| scheduler["name"].as_str().unwrap()).collect::<Vec<_>>(), ALL);
    let expected = "name title front linux kernels promises costs ioprio cgroup_weights default_for tunables";
    assert!(schedulers.iter().all(|scheduler| keys(scheduler).join(" ") == expected));
    let tunables = |scheduler: usize| schedulers[scheduler]["tunables"].as_array().unwrap().len();
    assert_eq!((0..10).map(tunables).collect::<Vec<_>>(), [0, 6, 2, 10, 0, 5, 17, 2, 21, 3]);
    assert_eq!(
        (&schedulers[7]["kernels"], schedulers[7]["linux"].as_str()),
        (&Value::Array(vec![]), Some("none: research (RTSS 2019)"))
    );
    let of_4_4: Value = serde_json::from_str(&printed(&["schedulers", "--kernel", "4.4", "--format", "json"])).unwrap();
    assert_eq!(of_4_4["kernel"], "4.4");
    assert_eq!(of_4_4["schedulers"][3]["tunables"].as_array().unwrap().len(), 12, "no microseconds before 4.8");
}

#[test]
fn kernels_that_cannot_be_placed_are_refused() {
    let folder = tempdir().unwrap();
    refused(
        folder.path(),
        &["schedulers", "--kernel", "6.99"],
        &["unknown kernel \"6.99\"", "expected one of the releases from 4.4 on, such as 6.18"],
    );
    refused(folder.path(), &["schedulers", "--format", "xml"], &["'xml'", "table, json"]);
    refused(folder.path(), &["schedulers", "bfq"], &["'bfq'"]);
}

#[test]
fn any_release_may_be_given_and_is_shown_as_written() {
    let text = printed(&["schedulers", "--kernel", "6.1.0-25-amd64"]);
    assert!(text.contains("Linux 6.1.0-25-amd64 is simulated as 6.1"), "{text}");
    let document: Value =
        serde_json::from_str(&printed(&["schedulers", "--kernel", "5.15", "--format", "json"])).unwrap();
    assert_eq!(document["kernel"], "5.15");
    let of = |kernel: &str| {
        let text = printed(&["schedulers", "--kernel", kernel, "--format", "json"]);
        let document: Value = serde_json::from_str(&text).unwrap();
        document["schedulers"][1]["tunables"].as_array().unwrap().len()
    };
    // Five tunables at first; then async_depth and later prio_aging_expire are added; then async_depth becomes a file
    // of the queue.
    assert_eq!(["5.13", "5.15", "5.16", "6.18.15", "7.0"].map(of), [5, 6, 7, 7, 6]);
}
