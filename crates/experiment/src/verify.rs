//! Compares predictions with measurements on a real kernel: the error of each figure, and the order of the schedulers.
//!
//! Used by: crate `hoistway`.
//! Tests: `crates/experiment/tests/verify.rs`.

use std::collections::BTreeMap;

use hoistway_answer::{Analysis, Figure, ResultsDocument};
use hoistway_measure::{Operation, stats};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The name and version of the document format: fields may be added within a version; none is removed or changes its meaning.
pub const FORMAT: &str = "hoistway-verify/1";
/// Schedulers whose figures differ by less than this fraction are not ordered.
pub const ORDER_MIN: f64 = 0.10;
/// The figures that are checked.
const FIGURES: [Figure; 3] = [Figure::Iops, Figure::Mean, Figure::P99];

/// A figure of a job.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Key {
    /// The job.
    pub job: String,
    /// The operation.
    pub operation: Operation,
    /// The figure.
    pub figure: Figure,
}

/// The figures of a run, by their keys.
pub type Figures = BTreeMap<Key, f64>;

/// Measurements on the kernel: for each scheduler its figures, round by round.
pub type KernelFigures = BTreeMap<String, Vec<Figures>>;

/// A figure under a scheduler, predicted and measured.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FigureCheck {
    /// The figure.
    #[serde(flatten)]
    pub key: Key,
    /// The scheduler.
    pub scheduler: String,
    /// The mean of the simulated repeats: I/Os per second, or ns.
    pub predicted: f64,
    /// The mean of the rounds on the kernel.
    pub measured: f64,
    /// The relative error of the prediction.
    pub error: f64,
    /// The spread of the measurements: the largest round minus the smallest, relative to the mean.
    pub spread: f64,
}

/// The result for a pair of schedulers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// On the kernel they differ by less than 10 %, or within the noise of the rounds.
    Close,
    /// The order on the kernel is the predicted one.
    Right,
    /// The order on the kernel is the opposite.
    Wrong,
}

/// Two schedulers compared in one figure.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Pair {
    /// The figure.
    #[serde(flatten)]
    pub key: Key,
    /// The schedulers: the second one is compared with the first.
    pub schedulers: [String; 2],
    /// The relative difference of the second scheduler, as predicted.
    pub predicted: f64,
    /// Whether the prediction is certain: more than 10 %, the repeats agree (95 %), and the model is calibrated for the load.
    pub is_certain: bool,
    /// The relative difference measured on the kernel.
    pub measured: f64,
    /// Half the width of its 95 % interval; `None` with a single round.
    pub half_width: Option<f64>,
    /// The result.
    pub order: Order,
}

/// The document of a checked prediction.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Verification {
    /// Always [`FORMAT`].
    pub format: String,
    /// The job file or the recording.
    pub load: String,
    /// The device model.
    pub model: String,
    /// The device or file.
    pub target: String,
    /// The kernel's release.
    pub kernel: String,
    /// Rounds on the kernel.
    pub rounds: usize,
    /// Reasons why the prediction is doubtful, as clauses.
    pub doubts: Vec<String>,
    /// Each figure under each scheduler.
    pub figures: Vec<FigureCheck>,
    /// Each pair of schedulers, for each figure.
    pub pairs: Vec<Pair>,
}

/// The names of the load, model, target and kernel of a verification.
#[derive(Clone, Debug)]
pub struct About {
    /// The job file or the recording.
    pub load: String,
    /// The device model.
    pub model: String,
    /// The device or file.
    pub target: String,
    /// The kernel's release.
    pub kernel: String,
}

/// The figures in fio's document of a run; jobs of the same name are combined.
#[must_use]
pub fn of_fio(document: &Value) -> Figures {
    let mut jobs: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    for job in document.get("jobs").and_then(Value::as_array).into_iter().flatten() {
        let name = job.get("jobname").and_then(Value::as_str).unwrap_or_default();
        jobs.entry(name).or_default().push(job);
    }
    let mut figures = Figures::new();
    for (name, processes) in jobs {
        for operation in [Operation::Read, Operation::Write, Operation::Trim] {
            let number = |job: &Value, path: &str| {
                job.pointer(&format!("/{}/{path}", operation.name())).and_then(Value::as_f64).unwrap_or(0.0)
            };
            let sum = |path: &str| processes.iter().map(|job| number(job, path)).sum::<f64>();
            let ios = sum("total_ios");
            if ios == 0.0 {
                continue;
            }
            let key = |figure| Key { job: name.to_owned(), operation, figure };
            let weighted: f64 = processes.iter().map(|job| number(job, "total_ios") * number(job, "lat_ns/mean")).sum();
            figures.insert(key(Figure::Iops), sum("iops"));
            figures.insert(key(Figure::Mean), weighted / ios);
            // Percentiles of several processes cannot be combined.
            if let [job] = processes[..] {
                figures.insert(key(Figure::P99), number(job, "lat_ns/percentile/99.000000"));
            }
        }
    }
    figures.retain(|_, value| *value > 0.0);
    figures
}

/// The figures of the only run of a document.
#[must_use]
pub fn of_run(document: &ResultsDocument) -> Figures {
    let analysis = Analysis::of(document);
    let mut figures = Figures::new();
    for_each(&analysis, &mut |key, rows| {
        if let Some(row) = rows.first() {
            figures.insert(key, row.1);
        }
    });
    figures
}

/// Calls `call` with each figure and its mean under each variant.
fn for_each(analysis: &Analysis<'_>, visit: &mut dyn FnMut(Key, Vec<(usize, f64)>)) {
    for job in &analysis.jobs {
        for operation in job.operations.iter().filter(|operation| operation.operation != Operation::Sync) {
            for figure in FIGURES {
                let rows = operation.rows.iter().map(|row| (row.variant, row.estimate(figure).mean)).collect();
                visit(Key { job: job.name.to_owned(), operation: operation.operation, figure }, rows);
            }
        }
    }
}

impl Verification {
    /// Compares predictions with measurements. Figures that only one side has are left out.
    #[must_use]
    pub fn of(predicted: &ResultsDocument, measured: &KernelFigures, about: About) -> Verification {
        let analysis = Analysis::of(predicted);
        let rounds = measured.values().map(Vec::len).min().unwrap_or(0);
        let values = |scheduler: &str, key: &Key| -> Vec<f64> {
            let rounds = measured.get(scheduler).into_iter().flatten();
            rounds.filter_map(|figures| figures.get(key).copied()).collect()
        };
        let mut figures = Vec::new();
        for_each(&analysis, &mut |key, rows| {
            for (variant, predicted) in rows {
                let scheduler = analysis.variants[variant].scheduler().to_owned();
                let values = values(&scheduler, &key);
                let Some(mean) = stats::mean(&values).filter(|mean| *mean > 0.0) else { continue };
                let (least, most) = min_max(&values);
                let (error, spread) = (predicted / mean - 1.0, (most - least) / mean);
                figures.push(FigureCheck { key: key.clone(), scheduler, predicted, measured: mean, error, spread });
            }
        });
        let mut pairs = Vec::new();
        for job in &analysis.jobs {
            for operation in &job.operations {
                for figure in FIGURES {
                    let key = Key { job: job.name.to_owned(), operation: operation.operation, figure };
                    for (index, first) in operation.rows.iter().enumerate() {
                        for second in &operation.rows[index + 1..] {
                            let names =
                                [first, second].map(|row| analysis.variants[row.variant].scheduler().to_owned());
                            let Some(difference) = second.difference(first, figure) else { continue };
                            let on_kernel = [&names[0], &names[1]].map(|name| values(name, &key));
                            let Some((measured, half_width)) = difference_over_rounds(&on_kernel) else { continue };
                            let predicted_part = difference.relative.unwrap_or(0.0);
                            let is_agreed = difference.is_significant() == Some(true);
                            let is_clear =
                                measured.abs() > ORDER_MIN && half_width.is_some_and(|half| measured.abs() > half);
                            let order = if !is_clear {
                                Order::Close
                            } else if measured.signum() == predicted_part.signum() && predicted_part != 0.0 {
                                Order::Right
                            } else {
                                Order::Wrong
                            };
                            pairs.push(Pair {
                                key: key.clone(),
                                schedulers: names,
                                predicted: predicted_part,
                                is_certain: is_agreed
                                    && predicted_part.abs() > ORDER_MIN
                                    && predicted.doubts.is_empty(),
                                measured,
                                half_width,
                                order,
                            });
                        }
                    }
                }
            }
        }
        let About { load, model, target, kernel } = about;
        let doubts = predicted.doubts.clone();
        Verification { format: FORMAT.to_owned(), load, model, target, kernel, rounds, doubts, figures, pairs }
    }

    /// Certain predictions that are wrong.
    pub fn refuted(&self) -> impl Iterator<Item = &Pair> {
        self.pairs.iter().filter(|pair| pair.is_certain && pair.order == Order::Wrong)
    }

    /// The median of a figure's absolute prediction errors; `None` if there are no predictions.
    #[must_use]
    pub fn median_error(&self, figure: Figure) -> Option<f64> {
        let of_figure = self.figures.iter().filter(|checked| checked.key.figure == figure);
        stats::median(of_figure.map(|checked| checked.error.abs()).collect())
    }

    /// The report as text.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!(
            "{} on {} ({} rounds, Linux {}), predicted with {}\n",
            self.load, self.target, self.rounds, self.kernel, self.model
        );
        let mut section = None;
        for checked in &self.figures {
            let key = &checked.key;
            if section != Some((&key.job, key.operation)) {
                section = Some((&key.job, key.operation));
                text += &format!("\n{}, {}\n", key.job, key.operation.name());
                text += "  scheduler    figure    predicted     measured    error   spread\n";
            }
            text += &format!(
                "  {:<12} {:<6} {:>12} {:>12}  {:>+5.0} %  {:>5.0} %\n",
                checked.scheduler,
                key.figure.name(),
                value(key.figure, checked.predicted),
                value(key.figure, checked.measured),
                100.0 * checked.error,
                100.0 * checked.spread
            );
        }
        let errors = FIGURES
            .iter()
            .filter_map(|figure| Some(format!("{} {:.0} %", figure.name(), 100.0 * self.median_error(*figure)?)));
        text += &format!("\nMedian error: {}.\n", errors.collect::<Vec<_>>().join(", "));
        let count = |order| self.pairs.iter().filter(|pair| pair.order == order).count();
        let (right, wrong, close) = (count(Order::Right), count(Order::Wrong), count(Order::Close));
        text += &format!(
            "Order: of {} pairs of schedulers that differ on the kernel by more than 10 % and beyond its spread, {right} were predicted \
             correctly; {close} pairs differ by less.\n",
            right + wrong
        );
        for pair in self.pairs.iter().filter(|pair| pair.order == Order::Wrong) {
            let (key, [first, second]) = (&pair.key, &pair.schedulers);
            text += &format!(
                "  wrong: {}:{}:{}, {second} against {first}: predicted {:+.0} %{}, measured {:+.0} %\n",
                key.job,
                key.operation.name(),
                key.figure.name(),
                100.0 * pair.predicted,
                if pair.is_certain { " (certain)" } else { "" },
                100.0 * pair.measured
            );
        }
        for doubt in &self.doubts {
            text += &format!("Nothing is certain: {doubt}.\n");
        }
        text
    }
}

/// The relative difference of the second to the first over the rounds, and half the width of its interval.
fn difference_over_rounds([first, second]: &[Vec<f64>; 2]) -> Option<(f64, Option<f64>)> {
    let ratios: Vec<f64> = first.iter().zip(second).map(|(first, second)| (second / first).ln()).collect();
    let mean = stats::mean(&ratios)?;
    Some((mean.exp_m1(), stats::half_width(&ratios).map(f64::exp_m1)))
}

fn min_max(values: &[f64]) -> (f64, f64) {
    values.iter().fold((f64::INFINITY, 0.0), |(least, most), value| (value.min(least), value.max(most)))
}

/// A figure with its unit.
fn value(figure: Figure, value: f64) -> String {
    if figure.is_latency() { format!("{:.1} us", value / 1e3) } else { format!("{value:.0}/s") }
}
