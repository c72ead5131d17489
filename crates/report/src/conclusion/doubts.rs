//! What makes a comparison uncertain.

use hoistway_results::comparison::Comparison;
use hoistway_results::settling::{Settling, SettlingFigure};
use hoistway_results::{Figure, ResultsDocument};

use super::{Chosen, noun};
use crate::words::{device_name, list};
use crate::{failures, units};

/// I/Os beyond a percentile, from which on it means something.
const BEYOND_MIN: f64 = 10.0;
/// Schedulers that are named at most.
const NAMES_MAX: usize = 3;

/// All doubts, as half sentences: those that follow from the data, then what else the document knows.
pub(super) fn doubts(document: &ResultsDocument, comparison: &Comparison<'_>, chosen: &Chosen<'_>) -> Vec<String> {
    let mut doubts = Vec::new();
    if document.partial {
        doubts.push("it was cut short".to_owned());
    }
    if failures::remark(comparison).is_some() {
        doubts.push("processes failed (see under the table)".to_owned());
    }
    doubts.extend(noise(comparison, chosen));
    doubts.extend(settling(comparison));
    doubts.extend(few(chosen));
    doubts.extend(document.doubts.iter().cloned());
    doubts
}

/// The second sentence.
pub(super) fn sentence(document: &ResultsDocument, comparison: &Comparison<'_>, doubts: &[String]) -> String {
    if doubts.is_empty() {
        return format!(
            "Nothing in the data speaks against it: {} repeats agree, all runs had settled, and the model of {} is \
             calibrated for such a load.",
            comparison.repeats(),
            device_name(&document.device)
        );
    }
    format!("What makes this uncertain: {}.", doubts.join("; "))
}

/// What is noise.
fn noise(comparison: &Comparison<'_>, chosen: &Chosen<'_>) -> Option<String> {
    let repeats = comparison.repeats();
    if repeats < 2 {
        return Some("of one run each nobody knows what is noise (--repeat 5 tells)".to_owned());
    }
    let rows = &chosen.direction.rows;
    let baseline = chosen.direction.row(comparison.baseline)?;
    let others = rows.iter().filter(|row| row.variant != baseline.variant);
    let within: Vec<String> = others
        .filter(|row| {
            let difference = row.difference(baseline, chosen.figure);
            difference.is_some_and(|difference| difference.is_significant() != Some(true))
        })
        .map(|row| comparison.variants[row.variant].label.clone())
        .collect();
    if within.is_empty() {
        return None;
    }
    let baseline = &comparison.variants[comparison.baseline].label;
    let noun = noun(chosen.figure, chosen.direction.operation);
    let who = if within.len() == rows.len() - 1 { "of all others".to_owned() } else { format!("of {}", list(&within)) };
    Some(format!("the difference in {noun} {who} from {baseline} is within the noise of {repeats} repeats"))
}

/// Runs that had not settled, or began with a warm-up: the worst of each kind.
fn settling(comparison: &Comparison<'_>) -> Vec<String> {
    let mut unsettled: Vec<(String, f64, SettlingFigure)> = Vec::new();
    let mut warming: Vec<(String, f64, SettlingFigure, f64)> = Vec::new();
    for job in &comparison.jobs {
        for direction in &job.operations {
            for row in &direction.rows {
                let name = || format!("{} under {}", job.name, comparison.variants[row.variant].label);
                for sample in row.samples() {
                    match sample.settling {
                        Settling::Unsettled { figure, difference } => unsettled.push((name(), difference, figure)),
                        Settling::WarmUp { seconds, figure, difference } => {
                            warming.push((name(), difference, figure, seconds));
                        }
                        Settling::Unknown | Settling::Settled => {}
                    }
                }
            }
        }
    }
    let mut doubts = Vec::new();
    let differs = |figure: SettlingFigure, difference: f64| {
        let what = match figure {
            SettlingFigure::Iops => "IOPS",
            SettlingFigure::MeanLatency => "latency",
        };
        format!("{what} {} at first", units::difference(difference))
    };
    if let Some((_, difference, figure)) = unsettled.iter().max_by(|a, b| a.1.abs().total_cmp(&b.1.abs())) {
        let who = named(unsettled.iter().map(|(name, ..)| name));
        let differs = differs(*figure, *difference);
        doubts.push(format!("{who} had not settled by the end (up to {differs}, by MSER): try a longer --runtime"));
    }
    if let Some((_, difference, figure, _)) = warming.iter().max_by(|a, b| a.1.abs().total_cmp(&b.1.abs())) {
        let longest = warming.iter().map(|(.., seconds)| *seconds).fold(0.0, f64::max);
        let who = named(warming.iter().map(|(name, ..)| name));
        let differs = differs(*figure, *difference);
        let first = units::seconds(longest);
        doubts.push(format!(
            "the first {first} of {who} are unlike the rest (up to {differs}, by MSER): leave them out with --ramp, or \
             try a longer --runtime"
        ));
    }
    doubts
}

/// Some of the names, and how many more there are.
fn named<'a>(names: impl Iterator<Item = &'a String>) -> String {
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

/// A percentile of too few I/Os.
fn few(chosen: &Chosen<'_>) -> Option<String> {
    let beyond = match chosen.figure {
        Figure::P99 => 0.01,
        Figure::P99_9 => 0.001,
        _ => return None,
    };
    let fewest = chosen.direction.rows.iter().map(|row| row.ios_min()).min()?;
    let noun = noun(chosen.figure, chosen.direction.operation);
    ((fewest as f64) * beyond < BEYOND_MIN)
        .then(|| format!("the {noun} rests on {fewest} I/O(s) in the run with the fewest: try a longer --runtime"))
}
