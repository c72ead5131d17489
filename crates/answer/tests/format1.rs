//! Reads a document of format 1 from the last version that wrote it: two schedulers, two repeats, and jobs with reads, writes and syncs.

use hoistway_answer::document::Statistics;
use hoistway_answer::{Analysis, ResultsDocument};
use hoistway_measure::Operation;
use serde_json::{Value, json};

const TEXT: &str = include_str!("data/format1.json");

#[test]
fn a_document_of_format_1_is_read_whole_and_written_in_todays_format() {
    let read = ResultsDocument::from_json(TEXT).unwrap();
    let value: Value = serde_json::from_str(TEXT).unwrap();
    for (run, old) in read.runs.iter().zip(value["runs"].as_array().unwrap()) {
        for (job, old) in run.jobs.iter().zip(old["jobs"].as_array().unwrap()) {
            let directions = old["directions"].as_array().unwrap();
            assert_eq!(job.operations.len(), directions.len() + usize::from(old.get("sync").is_some()));
            for (operation, old) in job.transfers().zip(directions) {
                assert_eq!(json!(operation.operation), old["direction"]);
                assert_eq!((json!(operation.ios), json!(operation.iops)), (old["ios"].clone(), old["iops"].clone()));
                assert_eq!(json!(operation.series), old["series"]);
            }
            if let Some(syncs) = job.operation(Operation::Sync) {
                assert_eq!(
                    (json!(syncs.ios), json!(syncs.lat_ns)),
                    (old["sync"]["syncs"].clone(), old["sync"]["lat_ns"].clone())
                );
            }
        }
    }
    let means = |statistics: &Statistics| -> Vec<f64> {
        statistics.rows.iter().flat_map(|row| row.figures.values()).map(|figure| figure.mean).collect()
    };
    let computed = Statistics::of(&Analysis::of(&read));
    // Intervals of percentiles were narrower than a bin of the histogram.
    assert_eq!(
        read.statistics.as_ref().map(means),
        Some(means(&computed)),
        "those that it holds are those of its runs"
    );
    let written = serde_json::to_string(&read).unwrap();
    assert!(written.starts_with("{\"format\":\"hoistway-results/2\"") && written.len() < TEXT.len());
    assert_eq!(ResultsDocument::from_json(&written).unwrap(), read);
}

#[test]
fn errors_in_format_1_documents_use_the_field_names_of_format_1() {
    for (at, value, field) in [
        ("/runs/0/jobs/0/directions/1/iops", json!("many"), "runs[0].jobs[0].directions[1].iops"),
        ("/runs/0/jobs/0/directions/1/direction", json!("up"), "runs[0].jobs[0].directions[1].direction"),
        ("/runs/3/jobs/1/sync/syncs", json!(-1), "runs[3].jobs[1].sync.syncs"),
        ("/runs/3/jobs/1/sync/syncs_per_second", json!("x"), "runs[3].jobs[1].sync.syncs_per_second"),
        ("/runs/3/jobs/1/sync/distribution/lat_ns", json!([1]), "runs[3].jobs[1].sync.distribution"),
        ("/runs/3/jobs/1/sync", json!(7), "runs[3].jobs[1].sync"),
        ("/runs/2/jobs/0/directions", json!("none"), "runs[2].jobs[0].directions"),
        ("/runs/2/seed", json!("x"), "runs[2].seed"),
        ("/statistics/rows/0/direction", json!("up"), "statistics.rows[0].direction"),
        ("/kernel", json!(5), "kernel"),
    ] {
        let mut document: Value = serde_json::from_str(TEXT).unwrap();
        *document.pointer_mut(at).unwrap_or_else(|| panic!("{at}")) = value;
        let error = ResultsDocument::from_json(&document.to_string()).unwrap_err().to_string();
        assert!(error.starts_with(&format!("the result document cannot be read: {field}: ")), "{at}: {error}");
    }
    let without = |at: &str, key: &str| {
        let mut document: Value = serde_json::from_str(TEXT).unwrap();
        document.pointer_mut(at).unwrap().as_object_mut().unwrap().remove(key);
        ResultsDocument::from_json(&document.to_string()).unwrap_err().to_string()
    };
    assert!(without("/runs/0/jobs/0", "directions").contains("runs[0].jobs[0]: missing field"), "");
}
