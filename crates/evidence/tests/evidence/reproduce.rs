//! `hoistway-evidence reproduce`: whole tables.

use serde_json::Value;

use super::support::printed;

#[test]
fn a_table_of_a_scheduler_outside_linux_has_a_figure_in_each_cell() {
    let document: Value = serde_json::from_str(&printed(&["reproduce", "research-adios", "--format", "json"])).unwrap();
    let cells = document["tables"][0]["cells"].as_array().unwrap();
    assert!(cells.len() == 4 && cells.iter().all(|cell| cell["ours"].as_f64().unwrap() > 0.0), "{cells:?}");
}

#[test]
fn tables_without_a_scheduler_of_their_own_are_among_those_of_linux() {
    let list = printed(&["reproduce", "--list"]);
    for name in ["icpe24-throughput", "hotstorage23-low-latency", "cachyos-kyber"] {
        assert!(list.lines().any(|line| line.starts_with(name)), "{list}");
    }
    let document: Value =
        serde_json::from_str(&printed(&["reproduce", "hotstorage23-low-latency", "--format", "json"])).unwrap();
    let cells = document["tables"][0]["cells"].as_array().unwrap();
    let rows = |row: &str| cells.iter().filter(|cell| cell["row"].as_str().unwrap().starts_with(row)).count();
    assert_eq!((rows("depth 1,"), rows("depth 32,")), (22, 8));
    let added = |scheduler: &str| {
        let column = format!("{scheduler} adds, us");
        // The first is that of submitters that dispatch.
        cells.iter().find(|cell| cell["column"] == column.as_str()).unwrap()["ours"].as_f64().unwrap()
    };
    assert!(added("bfq") > added("kyber").max(added("mq-deadline")) && added("mq-deadline") > 0.0, "{cells:?}");
}

#[test]
fn unmeasured_parameters_are_halved_and_doubled_on_request() {
    let arguments = ["reproduce", "suse-dd", "--sensitivity"];
    let text = printed(&arguments);
    assert!(text.contains("hdd.outer_mb_per_s = 70 instead of 140"), "{text}");
    let document: Value = serde_json::from_str(&printed(&[&arguments[..], &["--format", "json"]].concat())).unwrap();
    let table = &document["tables"][0];
    let changed = table["sensitivity"].as_array().unwrap();
    assert_eq!(changed.len(), 4, "half and double of two numbers");
    assert_eq!((&changed[1]["usual"], &changed[1]["value"]), (&140.0.into(), &280.0.into()));
    for one in changed {
        assert_eq!(one["cells"].as_array().unwrap().len(), table["cells"].as_array().unwrap().len());
        assert_ne!(one["cells"], table["cells"], "{}", one["key"]);
    }
}
