//! Reads measurements from the output of `fio --output-format=json`.

use std::collections::BTreeMap;

use serde_json::Value;

use super::rows::{MeasurementRow, RowsError, mixes, row};
use crate::fio::JobFigures;

/// Creates a row for each job. The jobs must have run one after the other (`stonewall`), because the results of
/// concurrent jobs depend on each other. `file_name` is only used in errors.
///
/// # Errors
/// If the text is not a document of fio, or a job cannot be converted.
pub fn from_fio_json(text: &str, file_name: &str) -> Result<Vec<MeasurementRow>, RowsError> {
    let error_at = |line: usize, problem: String| RowsError { file: file_name.to_owned(), line: line as u64, problem };
    let document: Value = serde_json::from_str(text)
        .map_err(|error| error_at(error.line(), format!("{error}; expected the output of fio --output-format=json")))?;
    let jobs = document.get("jobs").and_then(Value::as_array).filter(|jobs| !jobs.is_empty());
    let jobs =
        jobs.ok_or_else(|| error_at(1, "has no `jobs`; expected the output of fio --output-format=json".to_owned()))?;
    let mut rows = Vec::with_capacity(jobs.len());
    for (index, job) in jobs.iter().enumerate() {
        let name = job.get("jobname").and_then(Value::as_str).unwrap_or("?");
        let options = options(&document, job);
        let job_error = |problem: String| error_at(1, format!("job {} (`{name}`): {problem}", index + 1));
        if index > 0 && !options.contains_key("stonewall") {
            return Err(job_error(
                "ran at the same time as the previous job; expected jobs one after the other (stonewall)".to_owned(),
            ));
        }
        if job.get("error").and_then(Value::as_i64).is_some_and(|errno| errno != 0) {
            return Err(job_error("ended with an error".to_owned()));
        }
        let mut values = options;
        values.extend(figures(job));
        let has_clones = values.get("numjobs").is_some_and(|clones| clones != "1");
        if has_clones && !values.contains_key("group_reporting") {
            return Err(job_error(
                "has several processes; expected group_reporting, so that they are reported together".to_owned(),
            ));
        }
        values.entry("bs".to_owned()).or_insert_with(|| "4k".to_owned());
        let direction = values.entry("rw".to_owned()).or_insert_with(|| "read".to_owned());
        // fio ignores the option for jobs that do not mix.
        if !mixes(direction) {
            values.remove("rwmixread");
        }
        values.entry("iodepth".to_owned()).or_insert_with(|| "1".to_owned());
        rows.push(row(1, |key| values.get(key).map(String::as_str)).map_err(job_error)?);
    }
    Ok(rows)
}

/// Options of a job, including global ones. fio prints all values as text.
fn options(document: &Value, job: &Value) -> BTreeMap<String, String> {
    let mut options = BTreeMap::new();
    for section in [document.get("global options"), job.get("job options")] {
        for (key, value) in section.and_then(Value::as_object).into_iter().flatten() {
            let key = match key.as_str() {
                "readwrite" => "rw",
                "blocksize" => "bs",
                key => key,
            };
            options.insert(key.to_owned(), value.as_str().map_or_else(|| value.to_string(), str::to_owned));
        }
    }
    // Remove keys that are columns of a table but not options of fio.
    options.retain(|key, _| key != "scheduler" && !key.starts_with("lat_") && key != "iops");
    options
}

/// IOPS and mean total latency of reads and writes together.
fn figures(job: &Value) -> Vec<(String, String)> {
    let JobFigures { iops, mean_us, .. } = JobFigures::of(job);
    [("iops", iops), ("lat_mean_us", mean_us)]
        .into_iter()
        .filter(|(_, value)| *value > 0.0)
        .map(|(key, value)| (key.to_owned(), value.to_string()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RIGHT: &str = r#"{"fio version": "fio-3.36", "global options": {"bs": "4k", "ioengine": "libaio"}, "jobs": [
        {"jobname": "a", "error": 0, "job options": {"rw": "randread", "rwmixread": "70", "iodepth": "8"},
         "read": {"total_ios": 100, "iops": 50000.5, "lat_ns": {"mean": 150000.0}},
         "write": {"total_ios": 0, "iops": 0, "lat_ns": {"mean": 0}}},
        {"jobname": "b", "error": 0, "job options": {"rw": "randrw", "rwmixread": "75", "numjobs": "2", "group_reporting": "", "stonewall": ""},
         "read": {"total_ios": 300, "iops": 300.0, "lat_ns": {"mean": 1000000.0}},
         "write": {"total_ios": 100, "iops": 100.0, "lat_ns": {"mean": 2000000.0}}}]}"#;

    #[test]
    fn each_job_of_fios_document_is_a_row_with_reads_and_writes_together() {
        let rows = from_fio_json(RIGHT, "m.json").unwrap();
        assert_eq!(rows[0].load_text(), "random reads of 4096 bytes, 1 x 8 outstanding");
        assert_eq!(rows[0].figures[0].value, 50_000.5);
        assert_eq!(rows[1].load_text(), "random 75 % reads of 4096 bytes, 2 x 1 outstanding");
        assert_eq!([rows[1].figures[0].value, rows[1].figures[1].value], [400.0, 1250.0]);
    }

    #[test]
    fn concurrent_jobs_and_documents_not_from_fio_are_refused() {
        let cases = [
            (
                RIGHT.replace(r#", "stonewall": """#, ""),
                "m.json:1: job 2 (`b`): ran at the same time as the previous job",
            ),
            (RIGHT.replace(r#""group_reporting": "", "#, ""), "m.json:1: job 2 (`b`): has several processes"),
            (RIGHT.replacen(r#""error": 0"#, r#""error": 5"#, 1), "m.json:1: job 1 (`a`): ended with an error"),
            (RIGHT.replace("randread", "trim"), "m.json:1: job 1 (`a`): `rw` is trim"),
            ("{}".to_owned(), "m.json:1: has no `jobs`"),
            ("{\n]".to_owned(), "m.json:2: "),
        ];
        for (text, expected) in cases {
            let error = from_fio_json(&text, "m.json").unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}\nexpected: {expected}");
        }
    }
}
