//! `hoistway decide`.

use tempfile::tempdir;

use super::support::printed;

#[test]
fn decisions_are_scored_beside_rules_of_thumb_and_loads_name_their_focus() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("tables.json");
    let cell = |row: &str, ours: f64, published: f64| {
        serde_json::json!({"row": row, "column": "read, mean ms", "ours": ours, "published": published, "error": null,
            "calibration": false, "claim": null, "holds": null})
    };
    let cells = [cell("none", 1.0, 2.0), cell("bfq", 2.0, 1.0)];
    let table = serde_json::json!({"name": "t", "source": "", "cells": cells});
    let document = serde_json::json!({"format": "hoistway-reproduction/2", "tables": [table]});
    std::fs::write(&file, document.to_string()).unwrap();
    let page = printed(&["decide", "--tables", file.to_str().unwrap()]);
    assert!(page.contains("| our figures | 0 of 1 (0 %) | 100.0 % | 6 of 6 |"), "{page}");
    assert!(page.contains("| bfq for latency, else none | 1 of 1 (100 %) | 0.0 % | 1 of 5 |"), "{page}");
    assert!(page.contains("| shops-one-dump.fio | sata-ssd | none | none |"), "{page}");
    assert!(page.contains("| t: read, mean ms | none | bfq | 100.0 % |"), "{page}");
    assert!(page.contains("the verdict is about the job that the source watches in 9 of 9 loads."), "{page}");
}
