//! A table with a row per I/O.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_array::builder::PrimitiveBuilder;
use arrow_array::types::{UInt16Type, UInt32Type, UInt64Type};
use arrow_schema::ArrowError;
use hoistway_answer::document::ResultsDocument;
use hoistway_answer::rows::RunRow;
use hoistway_experiment::Ended;
use hoistway_measure::IoLog;

use super::keys::{Keys, Names, names};
use crate::table::batch;

/// The I/Os of a run.
pub(crate) struct RunLog {
    label: String,
    repeat: u32,
    /// For each process with a log: its number in the load, its job, and its I/Os.
    processes: Vec<(u32, String, IoLog)>,
}

impl RunLog {
    pub(crate) fn of(ended: &Ended<'_>) -> RunLog {
        let with_log = |(number, process): (u32, &hoistway_measure::ProcessResult)| {
            Some((number, process.name.clone(), *process.log.clone()?))
        };
        let processes = (0..).zip(ended.processes).filter_map(with_log).collect();
        RunLog { label: ended.label.to_owned(), repeat: ended.repeat, processes }
    }
}

/// One row for each I/O, or each averaging window, in the order of the document's runs.
pub(crate) fn ios(document: &ResultsDocument, logs: &[RunLog]) -> Result<RecordBatch, ArrowError> {
    let (mut keys, mut job, mut operation) = (Keys::default(), Names::new(), Names::new());
    let mut process = PrimitiveBuilder::<UInt32Type>::new();
    let mut end = PrimitiveBuilder::<UInt32Type>::new();
    let [mut latency, mut completion, mut submission, mut offset] =
        std::array::from_fn(|_| PrimitiveBuilder::<UInt64Type>::new());
    let mut bytes = PrimitiveBuilder::<UInt32Type>::new();
    let mut priority = PrimitiveBuilder::<UInt16Type>::new();
    for run in &document.runs {
        let row = RunRow::of(document, run);
        let run_logs = logs.iter().filter(|log| log.label == run.variant.label && log.repeat == run.repeat);
        for (number, name, log) in run_logs.flat_map(|log| &log.processes) {
            for (index, entry) in log.entries().iter().enumerate() {
                keys.append(&row);
                job.append_value(name);
                operation.append_value(entry.direction.name());
                process.append_value(*number);
                end.append_value(entry.at_ms);
                latency.append_value(entry.lat_ns);
                completion.append_value(entry.clat_ns);
                submission.append_value(entry.slat_ns);
                bytes.append_value(entry.bytes);
                offset.append_option(log.offset_bytes(index));
                priority.append_value(entry.ioprio);
            }
        }
    }
    batch(keys.with(vec![
        names("job", false, job),
        names("operation", false, operation),
        ("process", false, Arc::new(process.finish())),
        ("end_ms", false, Arc::new(end.finish())),
        ("lat_ns", false, Arc::new(latency.finish())),
        ("clat_ns", false, Arc::new(completion.finish())),
        ("slat_ns", false, Arc::new(submission.finish())),
        ("bytes", false, Arc::new(bytes.finish())),
        ("offset_bytes", true, Arc::new(offset.finish())),
        ("ioprio", false, Arc::new(priority.finish())),
    ]))
}
