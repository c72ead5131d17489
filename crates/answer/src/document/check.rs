//! Invariants between the fields of a result document: an edited or inconsistent one is refused, not misread.

use super::{Excerpt, LatencyDistribution, OperationSummary, ResultsDocument, Run};

/// A field and what was expected of it.
type Problem = (String, &'static str);

/// Returns the first field that violates an invariant, if any.
pub(super) fn check(document: &ResultsDocument) -> Result<(), Problem> {
    let is_possible = document.smallest_effect.is_none_or(|effect| (0.0..1.0).contains(&effect));
    expect(is_possible, || "smallest_effect".to_owned(), "expected a fraction: from 0 to less than 1")?;
    for (number, check) in document.device_checks.iter().enumerate() {
        let setup_count = document.setups.len().max(1);
        let field = |name: &str| format!("device_checks[{number}].{name}");
        expect((check.setup as usize) < setup_count, || field("setup"), "expected the number of one of `setups`")?;
        let is_positive = check.rows.iter().all(|row| row.ios >= 0.0 && row.observed_ns > 0.0 && row.model_ns > 0.0);
        expect(is_positive, || field("rows"), "expected latencies above 0")?;
    }
    for (number, run) in document.runs.iter().enumerate() {
        self::run(document, run).map_err(|(field, expected)| (format!("runs[{number}].{field}"), expected))?;
    }
    Ok(())
}

fn expect(holds: bool, field: impl FnOnce() -> String, expected: &'static str) -> Result<(), Problem> {
    if holds { Ok(()) } else { Err((field(), expected)) }
}

fn run(document: &ResultsDocument, run: &Run) -> Result<(), Problem> {
    let setup_count = document.setups.len().max(1);
    expect((run.setup as usize) < setup_count, || "setup".to_owned(), "expected an index into `setups`")?;
    for (job, summary) in run.jobs.iter().enumerate() {
        for (number, operation_summary) in summary.operations.iter().enumerate() {
            let field = |name: &str| format!("jobs[{job}].operations[{number}].{name}");
            operation(operation_summary).map_err(|(name, expected)| (field(&name), expected))?;
        }
    }
    match &run.excerpt {
        Some(excerpt) => self::excerpt(excerpt).map_err(|(field, expected)| (format!("excerpt.{field}"), expected)),
        None => Ok(()),
    }
}

const DISTRIBUTION: &str = "expected ascending percentiles below 100 and one ascending latency for each";

fn is_valid_distribution(distribution: &LatencyDistribution) -> bool {
    let LatencyDistribution { percent, lat_ns } = distribution;
    let is_percent = |percent: &f64| (0.0..100.0).contains(percent);
    percent.len() == lat_ns.len() && percent.iter().all(is_percent) && percent.is_sorted() && lat_ns.is_sorted()
}

fn operation(summary: &OperationSummary) -> Result<(), Problem> {
    for (name, value) in
        [("iops", summary.iops), ("bytes_per_second", summary.bytes_per_second), ("lat_ns.mean", summary.lat_ns.mean)]
    {
        expect(value >= 0.0, || name.to_owned(), "expected a number that is not negative")?;
    }
    expect(is_valid_distribution(&summary.distribution), || "distribution".to_owned(), DISTRIBUTION)?;
    let series = &summary.series;
    let have_equal_lengths = series.ios.len() == series.mean_lat_ns.len() && series.interval_seconds >= 0.0;
    expect(have_equal_lengths, || "series".to_owned(), "expected one latency for each count of I/Os")
}

fn excerpt(excerpt: &Excerpt) -> Result<(), Problem> {
    let is_known = |number: Option<u32>, length: usize| number.is_none_or(|number| (number as usize) < length);
    let (devices, reasons) = (excerpt.devices.len(), excerpt.reasons.len());
    for (number, request) in excerpt.requests.iter().enumerate() {
        let is_valid = is_known(Some(request.device), devices) && is_known(request.reason, reasons);
        expect(is_valid, || format!("requests[{number}]"), "expected a known device and a known reason")?;
        let is_chosen = request.chosen_ns.is_some() == request.reason.is_some();
        expect(
            is_chosen,
            || format!("requests[{number}].reason"),
            "expected for each request with `chosen_ns`, and for no other",
        )?;
    }
    for (number, answer) in excerpt.answers.iter().enumerate() {
        let is_valid = is_known(Some(answer.device), devices)
            && is_known(Some(answer.reason), reasons)
            && is_known(answer.request, excerpt.requests.len());
        expect(is_valid, || format!("answers[{number}]"), "expected a known device, reason and request")?;
    }
    Ok(())
}
