//! The comparison as comma-separated values.

use hoistway_answer::analysis::{Analysis, JobAnalysis, OperationAnalysis, Row, Variant};
use hoistway_answer::document::Front;
use hoistway_answer::{Figure, ResultsDocument};

use crate::text::failures::Failed;

/// Columns before the figures.
const NAMES: [&str; 10] = [
    "job_file",
    "device",
    "kernel",
    "scheduler",
    "block_layer",
    "tunables",
    "job",
    "processes",
    "direction",
    "repeats",
];

/// Columns after the figures.
const COLUMNS_AFTER_FIGURES: [&str; 2] = ["failed_processes", "errnos"];

/// One line for each scheduler (with its setting), job and operation, after a header line.
///
/// Each figure has four columns: its mean over the repeats, half the width of its 95 % interval, the relative difference
/// from the baseline, and whether that is significant (`true` or `false`). Absent values, such as the interval of a
/// single run, are empty. Latencies are in ns. Syncs have a separate line without bandwidth. After the figures come the
/// number of the job's processes that ended with an error (in the repeat with most of them) and the numbers of these
/// errors. A job that failed before any I/O has a line without operation and figures.
pub fn csv(analysis: &Analysis<'_>) -> String {
    let mut records = vec![header()];
    for job in &analysis.jobs {
        for operation in &job.operations {
            records.extend(operation.rows.iter().map(|row| record(analysis, job, operation, row)));
        }
        let idle = (0..)
            .zip(&analysis.variants)
            .filter(|(variant, _)| job.operations.iter().all(|operation| operation.row(*variant).is_none()));
        records.extend(idle.filter_map(|(_, variant)| record_of_failure(analysis.document, variant, job)));
    }
    let mut writer = csv::Writer::from_writer(Vec::new());
    for record in records {
        writer.write_record(record).expect("a record in memory, as long as the others");
    }
    let bytes = writer.into_inner().expect("a buffer in memory");
    String::from_utf8(bytes).expect("it was made of text")
}

fn header() -> Vec<String> {
    let figures = Figure::ALL.into_iter().flat_map(|figure| {
        ["", "_half_width", "_vs_baseline", "_significant"].map(|suffix| format!("{}{suffix}", figure.key()))
    });
    let names = NAMES.into_iter().map(str::to_owned).chain(["ios".to_owned()]).chain(figures);
    names.chain(COLUMNS_AFTER_FIGURES.into_iter().map(str::to_owned)).collect()
}

/// The columns before the direction.
fn names(document: &ResultsDocument, variant: &Variant<'_>, job: &JobAnalysis<'_>) -> Vec<String> {
    let block_layer = match variant.first().front {
        Front::Mq => "mq",
        Front::Legacy => "legacy",
    };
    let (device, kernel) = document.setup_of(variant.first());
    vec![
        document.job_file.clone(),
        crate::text::words::device_name(device),
        kernel.to_owned(),
        variant.scheduler().to_owned(),
        block_layer.to_owned(),
        variant.tunables_text(),
        job.name.to_owned(),
        job.processes.to_string(),
    ]
}

fn record(
    analysis: &Analysis<'_>,
    job: &JobAnalysis<'_>,
    operation: &OperationAnalysis<'_>,
    row: &Row<'_>,
) -> Vec<String> {
    let variant = &analysis.variants[row.variant];
    let baseline = operation.baseline_of(row);
    let mut record = names(analysis.document, variant, job);
    record.extend([
        operation.operation.name().to_owned(),
        row.samples().len().to_string(),
        row.samples().map(|sample| sample.ios).sum::<u64>().to_string(),
    ]);
    for figure in Figure::ALL {
        if !figure.is_of(operation.operation) {
            record.extend([const { String::new() }; 4]);
            continue;
        }
        let estimate = row.estimate(figure);
        let difference = baseline.and_then(|baseline| row.difference(baseline, figure));
        let or_empty = |value: Option<String>| value.unwrap_or_default();
        record.extend([
            estimate.mean.to_string(),
            or_empty(estimate.half_width.map(|half_width| half_width.to_string())),
            or_empty(difference.and_then(|difference| difference.relative).map(|relative| relative.to_string())),
            or_empty(
                difference
                    .and_then(|difference| difference.is_significant())
                    .map(|is_significant| is_significant.to_string()),
            ),
        ]);
    }
    record.extend(failure(&Failed::of(job.job, variant)));
    record
}

/// The line of a failed job without any I/O.
fn record_of_failure(document: &ResultsDocument, variant: &Variant<'_>, job: &JobAnalysis<'_>) -> Option<Vec<String>> {
    let failed = Failed::of(job.job, variant);
    if failed.is_empty() {
        return None;
    }
    let mut record = names(document, variant, job);
    record.extend([String::new(), variant.runs.len().to_string(), "0".to_owned()]);
    record.resize(header().len() - 2, String::new());
    record.extend(failure(&failed));
    Some(record)
}

fn failure(failed: &Failed) -> [String; 2] {
    let errnos: Vec<String> = failed.errnos.iter().map(i32::to_string).collect();
    [failed.processes_max().to_string(), errnos.join(" ")]
}
