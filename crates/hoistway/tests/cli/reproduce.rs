//! `hoistway reproduce`.

use serde_json::Value;
use tempfile::tempdir;

use crate::support::{printed, refused};

#[test]
fn every_table_is_listed_and_an_unknown_one_is_answered_with_those_that_exist() {
    let list = printed(&["reproduce", "--list"]);
    assert!(list.lines().count() >= 9, "{list}");
    refused(tempdir().unwrap().path(), &["reproduce", "habr-floppy"], &["habr-floppy", "habr-ssd, habr-nvme"]);
}

#[test]
fn the_document_has_the_keys_that_readers_count_on() {
    let document: Value = serde_json::from_str(&printed(&["reproduce", "suse-dd", "--format", "json"])).unwrap();
    assert_eq!(document["format"], "hoistway-reproduction/1");
    let table = &document["tables"][0];
    assert_eq!(table["name"], "suse-dd");
    let cells = table["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 4);
    for cell in cells {
        let keys: Vec<&String> = cell.as_object().unwrap().keys().collect();
        let expected = ["row", "column", "ours", "published", "error", "calibration", "tolerance", "within"];
        assert_eq!(keys.len(), expected.len(), "{cell}");
        assert!(expected.iter().all(|key| cell.get(key).is_some()), "{cell}");
    }
    assert!(cells[3]["tolerance"].is_null() && cells[3]["within"].is_null(), "nothing is claimed of low_latency=0");
}
