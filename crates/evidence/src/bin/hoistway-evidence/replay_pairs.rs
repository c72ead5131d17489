//! `hoistway replay-pairs`: measures the prediction error of replays.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::Args;
use hoistway_evidence::halves::is_judged;
use hoistway_evidence::replay_pairs::{Figure, Prediction, predictions};
use hoistway_terminal::Ending;
use hoistway_terminal::output::{Format, Output};

/// Predict recordings of a program under one scheduler from its recordings under another, and compare.
///
/// Each program is recorded under several schedulers, in files NAME.SCHEDULER.blktrace.0.gz (or ftrace.txt.gz), each
/// with a file NAME.SCHEDULER.settings that names the device and its queue (docs/recordings.md).
///
/// Examples:
///   hoistway replay-pairs recordings/
///   hoistway replay-pairs --half judged recordings/
///   hoistway replay-pairs --format json recordings/
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// The folder with the recordings.
    folder: PathBuf,
    /// Only the programs of one half, by a hash of their names: the `fitted` ones may be looked at to mend what is wrong, the `judged` ones
    /// measure. [default: all]
    #[arg(long, value_enum)]
    half: Option<Half>,
    /// The output format.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Write to a file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum Half {
    Fitted,
    Judged,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending> {
    let output = Output::open(arguments.output.as_deref())?;
    let all = predictions(&arguments.folder, |name| {
        // The hash spreads the last letters of a name little, and programs differ in those.
        arguments.half.is_none_or(|half| is_judged(&format!("{name} {name}")) == (half == Half::Judged))
    })?;
    output.write(match arguments.format {
        Format::Json => serde_json::to_string_pretty(&all).context("the predictions")? + "\n",
        Format::Table => table(&all),
    })?;
    Ok(Ending::Done)
}

type Pick = fn(&Prediction) -> Figure;

const FIGURES: [(&str, Pick); 3] = [
    ("IOPS", |prediction| prediction.iops),
    ("mean", |prediction| prediction.mean_us),
    ("p99", |prediction| prediction.p99_us),
];
/// The order of two schedulers is scored only if their figures differ by more than this fraction.
const DIFFERENT: f64 = 0.10;
/// Relative tolerance for counting a recorded figure as within the predicted range.
const TOLERANCE: f64 = 0.02;

/// Renders Markdown: a row for each program and pair of schedulers, then a summary.
fn table(all: &[Prediction]) -> String {
    let mut text = String::from(
        "| program | recorded under | predicted | streams | depth hidden | IOPS, % | mean latency, % | p99, % |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    let same_row = |left: &Prediction, right: &Prediction| {
        (&left.pair, &left.from, &left.to) == (&right.pair, &right.from, &right.to)
    };
    for group in all.chunk_by(same_row) {
        let first = &group[0];
        if first.from == first.to {
            continue;
        }
        let hidden = if first.is_hidden { "yes" } else { "" };
        text += &format!("| {} | {} | {} | {} | {hidden} |", first.pair, first.from, first.to, group.len());
        for (_, pick) in FIGURES {
            let mut errors: Vec<f64> = group.iter().map(|prediction| pick(prediction).error() * 100.0).collect();
            errors.sort_by(f64::total_cmp);
            text += &format!(" {:+.0} ({:+.0} to {:+.0}) |", median(&errors), errors[0], errors[errors.len() - 1]);
        }
        text.push('\n');
    }
    text.push('\n');
    for (name, pick) in FIGURES {
        let sorted_errors = |is_selected: &dyn Fn(&Prediction) -> bool| {
            let mut errors: Vec<f64> = all
                .iter()
                .filter(|prediction| is_selected(prediction))
                .map(|prediction| pick(prediction).error().abs() * 100.0)
                .collect();
            errors.sort_by(f64::total_cmp);
            errors
        };
        let own = sorted_errors(&|prediction| prediction.from == prediction.to);
        let errors = sorted_errors(&|prediction| prediction.from != prediction.to && !prediction.is_hidden);
        let hidden: Vec<Figure> = all
            .iter()
            .filter(|prediction| prediction.from != prediction.to && prediction.is_hidden)
            .map(pick)
            .collect();
        let enclosed = hidden.iter().filter(|figure| figure.encloses(TOLERANCE)).count();
        let (right, scored) = count_orders(all, pick);
        text += &format!(
            "{name}: median error {:.1} % for {} streams whose depth is known; the range encloses {enclosed} of {} others; under their \
             own scheduler {:.1} % for {}; order of two schedulers right in {right} of {scored}\n",
            median(&errors),
            errors.len(),
            hidden.len(),
            median(&own),
            own.len()
        );
    }
    text
}

/// Counts pairs of schedulers under which a figure of a stream differs by more than [`DIFFERENT`], predicted from one
/// recording that hides no depth: (pairs in the right order, all pairs).
fn count_orders(all: &[Prediction], pick: Pick) -> (usize, usize) {
    let same_stream = |one: &Prediction, other: &Prediction| {
        (&one.pair, &one.from, &one.stream) == (&other.pair, &other.from, &other.stream)
    };
    let (mut right, mut count) = (0, 0);
    for (index, one) in all.iter().enumerate().filter(|(_, one)| !one.is_hidden) {
        for other in all[..index].iter().filter(|other| same_stream(one, other)) {
            let (one, other) = (pick(one), pick(other));
            let recorded = one.recorded / other.recorded;
            if recorded.max(recorded.recip()) > 1.0 + DIFFERENT {
                count += 1;
                right += usize::from((one.predicted > other.predicted) == (recorded > 1.0));
            }
        }
    }
    (right, count)
}

/// The median of sorted values.
fn median(sorted: &[f64]) -> f64 {
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}
