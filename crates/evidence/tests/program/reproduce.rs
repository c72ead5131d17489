//! `hoistway reproduce`.

use serde_json::Value;
use tempfile::tempdir;

use super::support::{printed, refused};

#[test]
fn every_table_is_listed_and_an_unknown_one_is_refused_with_the_known_ones() {
    let list = printed(&["reproduce", "--list"]);
    assert!(list.lines().count() >= 9, "{list}");
    refused(tempdir().unwrap().path(), &["reproduce", "habr-floppy"], &["habr-floppy", "habr-ssd, habr-nvme"]);
}

#[test]
fn the_document_has_the_keys_that_readers_count_on() {
    let folder = tempdir().unwrap();
    let csv = folder.path().join("cells.csv");
    let arguments = ["reproduce", "suse-dd", "--format", "json", "--cells", csv.to_str().unwrap()];
    let text = printed(&arguments);
    let document: Value = serde_json::from_str(&text).unwrap();
    let file = folder.path().join("tables.json");
    std::fs::write(&file, &text).unwrap();
    let file = file.to_str().unwrap();
    assert_eq!(printed(&["reproduce", "--tables", file, "--format", "json"]), text, "shown without simulating");
    let missing = ["reproduce", "--tables", "missing.json"];
    refused(folder.path(), &missing, &["missing.json", "expected a document of reproduce --format json"]);
    refused(
        folder.path(),
        &["reproduce", "habr-ssd", "--tables", file],
        &["--tables: no document has the table habr-ssd (expected one of suse-dd)"],
    );
    assert_eq!(document["format"], "hoistway-reproduction/2");
    let csv = std::fs::read_to_string(csv).unwrap();
    assert_eq!(csv.lines().count(), 1 + 4, "{csv}");
    assert!(csv.starts_with("table,row,column,here,published,error,claim,without\nsuse-dd,"), "{csv}");
    let table = &document["tables"][0];
    assert_eq!(table["name"], "suse-dd");
    let cells = table["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 4);
    for cell in cells {
        let keys: Vec<&String> = cell.as_object().unwrap().keys().collect();
        let expected =
            ["row", "column", "ours", "interval", "published", "error", "calibration", "claim", "holds", "without"];
        assert_eq!(keys.len(), expected.len(), "{cell}");
        assert!(expected.iter().all(|key| cell.get(key).is_some()), "{cell}");
    }
    assert!(table.get("sensitivity").is_none(), "only if it is asked for");
}

#[test]
fn tables_of_schedulers_outside_linux_are_made_only_on_request() {
    let list = printed(&["reproduce", "--list"]);
    for name in [
        "research-k2",
        "research-mqfq",
        "research-d2fq",
        "research-blk-switch",
        "research-adios",
        "research-tabs",
        "research-vfair",
        "research-cffq",
        "research-tournament",
    ] {
        assert!(list.lines().any(|line| line.starts_with(name)), "{list}");
    }
    let folder = tempdir().unwrap();
    refused(folder.path(), &["reproduce", "reseach"], &["reseach", "expected research, or one of", "research-k2"]);
}

#[test]
fn rows_are_selected_by_a_part_of_their_name_and_an_unknown_one_is_refused_with_the_known_ones() {
    let text = printed(&["reproduce", "axboe-contention", "--row", "alone"]);
    assert!(text.contains("single dispatcher alone") && !text.contains("before  "), "{text}");
    let expected = ["--row floppy", "axboe-contention", "single dispatcher alone; after"];
    refused(tempdir().unwrap().path(), &["reproduce", "axboe-contention", "--row", "floppy"], &expected);
    refused(tempdir().unwrap().path(), &["reproduce", "--row", "alone"], &["required arguments", "<NAMES>"]);
}
