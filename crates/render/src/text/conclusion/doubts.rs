//! Reasons why a comparison is uncertain.

use hoistway_answer::analysis::{Analysis, Row, Variant};
use hoistway_answer::document::Verdict;
use hoistway_answer::{Figure, FigureName};
use hoistway_measure::settling::{Settling, SettlingFigure};

use super::phrases::figure_in_words;
use crate::text::failures;
use crate::text::words::list;
use hoistway_measure::units;

/// Minimum number of I/Os slower than a percentile for the percentile to be meaningful.
const IOS_BEYOND_PERCENTILE_MIN: f64 = 10.0;
/// Minimum I/Os of a run for means and rates: with fewer, a single I/O changes them too much.
const IOS_MIN: f64 = 30.0;
/// Shares of stalled I/Os near which a p99 is either a stall or not.
const STALL_SHARES: std::ops::Range<f64> = 0.004..0.025;
/// I/Os are stalled from this multiple of the median on.
const STALL_FACTOR: f64 = 5.0;
/// Maximum number of named schedulers.
const NAMES_MAX: usize = 3;

/// All doubts as clauses: those that follow from the data, then those stored in the document.
pub(super) fn doubts(analysis: &Analysis<'_>, verdict: &Verdict) -> Vec<String> {
    let document = analysis.document;
    let mut doubts = Vec::new();
    if document.partial {
        doubts.push("it was cut short".to_owned());
    }
    if failures::remark(analysis).is_some() {
        doubts.push("processes failed (see under the table)".to_owned());
    }
    doubts.extend(document.window.as_ref().and_then(super::window::doubt));
    doubts.extend(settling(analysis));
    doubts.extend(outstanding(analysis));
    doubts.extend(verdict.focus.iter().filter_map(|focus| rare_stalls(analysis, &focus.figure)));
    doubts.extend(verdict.focus.iter().filter_map(|focus| too_few_ios(analysis, &focus.figure)));
    doubts.extend(document.doubts.iter().cloned());
    doubts
}

/// A doubt about runs that ended while most of the slowest I/Os were in flight, with the counts of the run
/// that had most.
fn outstanding(analysis: &Analysis<'_>) -> Option<String> {
    let mut rows: Vec<(String, u64, u64)> = Vec::new();
    for job in &analysis.jobs {
        for operation in &job.operations {
            for row in &operation.rows {
                // Present only if most of the slowest I/Os are among them.
                let most = row.samples().filter_map(|sample| Some((sample.outstanding?, sample.ios))).max();
                let name = || {
                    format!(
                        "{} ({}) under {}",
                        job.name,
                        operation.operation.name(),
                        analysis.variants[row.variant].label
                    )
                };
                rows.extend(most.map(|(outstanding, ios)| (name(), outstanding, ios)));
            }
        }
    }
    let (_, outstanding, ios) = rows.iter().max_by_key(|(_, outstanding, _)| outstanding)?;
    Some(format!(
        "when the time was up, I/Os of {} were still in flight (up to {outstanding} of {ios}), among them most of the slowest: \
         their latencies are cut off, so the p99 is a lower bound; try a longer --runtime",
        list_names(rows.iter().map(|(name, ..)| name))
    ))
}

/// A start that differs changes what was measured by less than this fraction: no reason for a doubt.
const STIRRED_MIN: f64 = 0.05;

/// A row whose runs had not settled, or began with a warm-up.
struct Unsteady {
    name: String,
    /// By how much the start differs from what follows, relative.
    difference: f64,
    figure: SettlingFigure,
    /// Length of the warm-up, s; `None` if the row had not settled by the end.
    seconds: Option<f64>,
}

/// Doubts about rows that had not settled, or began with a warm-up that changes their figures, with the difference of the worst row.
fn settling(analysis: &Analysis<'_>) -> Vec<String> {
    let rows = analysis.jobs.iter().flat_map(|job| {
        let rows = job.operations.iter().flat_map(|operation| &operation.rows);
        rows.filter_map(|row| {
            let variant = &analysis.variants[row.variant];
            Unsteady::of(row, format!("{} under {}", job.name, variant.label), measured_seconds(analysis, variant))
        })
    });
    let (warming, unsettled): (Vec<Unsteady>, Vec<Unsteady>) = rows.partition(|row| row.seconds.is_some());
    let worst_of = |rows: &[Unsteady]| {
        let worst = rows.iter().max_by(|a, b| a.difference.abs().total_cmp(&b.difference.abs()))?;
        let what = match worst.figure {
            SettlingFigure::Iops => "IOPS",
            SettlingFigure::MeanLatency => "latency",
        };
        let row_names = list_names(rows.iter().map(|row| &row.name));
        Some((row_names, format!("up to {what} {} at first", units::difference(worst.difference))))
    };
    let had_not_settled = worst_of(&unsettled).map(|(row_names, differs)| {
        format!("{row_names} had not settled by the end ({differs}): try a longer --runtime")
    });
    let longest = warming.iter().filter_map(|row| row.seconds).fold(0.0, f64::max);
    let began_otherwise = worst_of(&warming).map(|(row_names, differs)| {
        let first = units::seconds(longest);
        format!(
            "the first {first} of {row_names} are unlike the rest ({differs}): leave them out with --ramp, or try a longer --runtime"
        )
    });
    had_not_settled.into_iter().chain(began_otherwise).collect()
}

/// The time in which a variant's runs were measured, s.
fn measured_seconds(analysis: &Analysis<'_>, variant: &Variant<'_>) -> f64 {
    match &analysis.document.window {
        Some(window) => window.until_seconds - window.from_seconds,
        None => variant.first().simulated_seconds,
    }
}

impl Unsteady {
    /// `None` if at least half of the row's runs were steady: an occasional pause of the device makes a short run look unsettled, whereas
    /// effects of the load show in most repeats. Of the other runs the median counts. `measured_s` is the time that the figures are of.
    fn of(row: &Row<'_>, name: String, measured_s: f64) -> Option<Self> {
        let (mut warming, mut unsettled) = (Vec::new(), Vec::new());
        for sample in row.samples() {
            match sample.settling {
                Settling::WarmUp { seconds, figure, difference } => warming.push((difference, figure, Some(seconds))),
                Settling::Unsettled { figure, difference } => unsettled.push((difference, figure, None)),
                Settling::Unknown | Settling::Settled => {}
            }
        }
        if 2 * (warming.len() + unsettled.len()) < row.samples().len() {
            return None;
        }
        let mut most = if unsettled.len() >= warming.len() { unsettled } else { warming };
        most.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (difference, figure, seconds) = *most.get(most.len() / 2)?;
        let stirred = seconds.is_none_or(|seconds| difference.abs() * seconds >= STIRRED_MIN * measured_s);
        stirred.then_some(Self { name, difference, figure, seconds })
    }
}

/// The first names, and the number of the others.
fn list_names<'a>(names: impl Iterator<Item = &'a String>) -> String {
    let mut distinct: Vec<String> = Vec::new();
    for name in names {
        if !distinct.contains(name) {
            distinct.push(name.clone());
        }
    }
    let more = distinct.len().saturating_sub(NAMES_MAX);
    distinct.truncate(NAMES_MAX);
    if more > 0 {
        distinct.push(format!("{more} more"));
    }
    list(&distinct)
}

/// A doubt about a p99 that depends on whether stalls happen to be slightly more or slightly less than one in a hundred I/Os.
fn rare_stalls(analysis: &Analysis<'_>, name: &FigureName) -> Option<String> {
    let (_, operation) = analysis.find(name).ok().filter(|_| name.figure == Figure::P99)?;
    let stall_share = |row: &Row<'_>| {
        let by_time = row.samples().filter_map(|sample| sample.lat_ns.by_time.map(|by_time| (sample, by_time)));
        let is_rare = |longer: f64| STALL_SHARES.contains(&longer);
        let stalls = by_time.filter(|(sample, by_time)| {
            is_rare(by_time.longer_ios) && by_time.mean_ns >= STALL_FACTOR * sample.lat_ns.p50 as f64
        });
        stalls.map(|(_, by_time)| (by_time.longer_ios, by_time.mean_ns)).next()
    };
    let (row, (share, mean_ns)) = operation.rows.iter().find_map(|row| Some((row, stall_share(row)?)))?;
    Some(format!(
        "the {} under {} is moved by rare stalls ({:.1} % of its I/Os take {} or longer): a longer --runtime tells more",
        figure_in_words(name),
        analysis.variants[row.variant].label,
        100.0 * share,
        units::latency(mean_ns, false)
    ))
}

/// A doubt about a figure with too few I/Os.
fn too_few_ios(analysis: &Analysis<'_>, name: &FigureName) -> Option<String> {
    let ios_min = match name.figure {
        Figure::P95 => IOS_BEYOND_PERCENTILE_MIN / 0.05,
        Figure::P99 => IOS_BEYOND_PERCENTILE_MIN / 0.01,
        Figure::P99_9 => IOS_BEYOND_PERCENTILE_MIN / 0.001,
        _ => IOS_MIN,
    };
    let (_, operation) = analysis.find(name).ok()?;
    let fewest = operation.rows.iter().map(|row| row.ios_min()).min()?;
    let figure = figure_in_words(name);
    ((fewest as f64) < ios_min)
        .then(|| format!("the {figure} rests on {fewest} I/O(s) in the run with the fewest: try a longer --runtime"))
}
