//! What was observed beside the model of the device, as sentences: whether it fits, or by how much it is off.
//!
//! Used by: `load`.
//! Tests: `crates/hoistway/tests/cli/recordings.rs`, `crates/hoistway/tests/cli/loads.rs`.

use hoistway_answer::ResultsDocument;
use hoistway_answer::document::{CheckedLatency, DeviceCheck, device_name};
use hoistway_measure::units;

/// A model whose mean latency is off by more than this fraction does not fit.
const OFF_MAX: f64 = 0.2;

/// Adds the checks, and what they say unless there is no verdict because of them, which the conclusion reports.
pub(super) fn add(document: &mut ResultsDocument, checks: Vec<DeviceCheck>) {
    document.device_checks = checks;
    for check in document.device_checks.clone() {
        if document.device_mismatch(check.setup).is_some() {
            continue;
        }
        let device = document.setups.get(check.setup as usize).map(|setup| device_name(&setup.device));
        let model_location = device.map_or_else(|| "here".to_owned(), |name| format!("on {name}"));
        let words = |row: &CheckedLatency| {
            let [observed, model] = [row.observed_ns, row.model_ns].map(|ns| units::latency(ns, true));
            format!("{} took {observed} on {}, {model} {model_location}", row.subject(), check.disk)
        };
        let all = check.rows.iter().map(words).collect::<Vec<_>>().join(", ");
        let is_off = |row: &CheckedLatency| (row.model_ns / row.observed_ns - 1.0).abs() > OFF_MAX;
        if check.rows.iter().any(is_off) {
            document
                .doubts
                .push(format!("{all} under {}: choose a model with --device that fits, or calibrate one", check.under));
        } else {
            document.notices.push(format!("The model fits: {all} under {}.", check.under));
        }
    }
}
