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

/// A document of one table whose cells are off by 1 %, 2 % and so on; claims of an error of at most this many percent.
fn document_of_cells(count: u32, allowed_percent: u32) -> String {
    let cells: Vec<Value> = (1..=count)
        .map(|percent| {
            let error = f64::from(percent) / 100.0;
            serde_json::json!({
                "row": format!("row {percent}"), "column": "IOPS", "ours": 100.0 * (1.0 + error), "interval": 0.001,
                "published": 100.0, "error": error, "calibration": false, "without": null,
                "claim": format!("error at most {allowed_percent} %"), "holds": percent <= allowed_percent,
            })
        })
        .collect();
    let table = serde_json::json!({"name": "suse-dd", "source": "made here", "cells": cells});
    serde_json::json!({"format": "hoistway-reproduction/2", "tables": [table]}).to_string()
}

#[test]
fn a_page_shows_all_cells_of_a_short_table_and_the_worst_missed_ones_of_a_long_one() {
    let folder = tempdir().unwrap();
    let page = |count, allowed_percent| {
        let file = folder.path().join("tables.json");
        std::fs::write(&file, document_of_cells(count, allowed_percent)).unwrap();
        let page = printed(&["reproduce", "--tables", file.to_str().unwrap(), "--format", "markdown"]);
        let shown = page.lines().filter(|line| line.starts_with("| row ") && !line.contains("column")).count();
        (page, shown)
    };
    let (short, shown) = page(6, 3);
    assert!(shown == 6 && short.contains("\n3 of 6 claims hold; 0 cells are calibration. "), "{short}");
    let (long, shown) = page(7, 3);
    assert!(shown == 4 && long.contains("\nOf 7 cells the missed are shown. 3 of 7 claims hold; "), "{long}");
    assert!(long.contains("| row 7 | IOPS | 107.0 ±0.1% | 100.0 | +7.0% | MISSED: error at most 3% |"), "{long}");
    let (longest, shown) = page(15, 1);
    assert!(shown == 12 && longest.contains("Of 15 cells the worst 12 of 14 missed are shown. "), "{longest}");
    assert!(!longest.contains("| row 3 |") && longest.contains("| row 4 |"), "{longest}");
    let (held, shown) = page(7, 7);
    assert!(shown == 0 && held.contains("None of 7 cells is missed. 7 of 7 claims hold; "), "{held}");
}
