//! Tables with a row per figure, and with a row per interval.

use std::sync::Arc;

use arrow_array::{Float64Array, RecordBatch, UInt32Array, UInt64Array};
use arrow_schema::ArrowError;
use hoistway_answer::ResultsDocument;

use super::keys::{Keys, Names, names};
use crate::table::batch;

/// One row for each figure of each run.
pub(crate) fn figures(document: &ResultsDocument) -> Result<RecordBatch, ArrowError> {
    let (mut keys, mut job, mut operation) = (Keys::default(), Names::new(), Names::new());
    let (mut figure, mut unit) = (Names::new(), Names::new());
    let (mut value, mut ios, mut failed) = (Vec::new(), Vec::new(), Vec::new());
    for row in document.figure_rows() {
        keys.append(&row.run);
        job.append_value(&row.job);
        operation.append_value(row.operation.name());
        figure.append_value(row.figure.name());
        unit.append_value(row.unit);
        value.push(row.value);
        ios.push(row.ios);
        failed.push(row.failed_processes);
    }
    batch(keys.with(vec![
        names("job", false, job),
        names("operation", false, operation),
        names("figure", false, figure),
        names("unit", false, unit),
        ("value", false, Arc::new(Float64Array::from(value))),
        ("ios", false, Arc::new(UInt64Array::from(ios))),
        ("failed_processes", false, Arc::new(UInt32Array::from(failed))),
    ]))
}

/// One row for each interval of each run.
pub(crate) fn intervals(document: &ResultsDocument) -> Result<RecordBatch, ArrowError> {
    let (mut keys, mut job, mut operation) = (Keys::default(), Names::new(), Names::new());
    let (mut start, mut length, mut ios, mut mean) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for row in document.interval_rows() {
        keys.append(&row.run);
        job.append_value(&row.job);
        operation.append_value(row.operation.name());
        start.push(row.start_seconds);
        length.push(row.length_seconds);
        ios.push(row.ios);
        mean.push(row.mean_lat_ns);
    }
    batch(keys.with(vec![
        names("job", false, job),
        names("operation", false, operation),
        ("start_seconds", false, Arc::new(Float64Array::from(start))),
        ("length_seconds", false, Arc::new(Float64Array::from(length))),
        ("ios", false, Arc::new(UInt64Array::from(ios))),
        ("mean_lat_ns", true, Arc::new(UInt64Array::from(mean))),
    ]))
}
