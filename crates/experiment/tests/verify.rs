//! Verification of predictions against measurements on a kernel.

use hoistway_answer::document::{RealPlace, Run};
use hoistway_answer::verification::{About, Order, Verification};
use hoistway_answer::{Analysis, Figure, ResultsDocument};
use hoistway_experiment::{Alone, Comparison};

/// The bundled example, where kyber shortens the tail of writes by a third.
fn predicted() -> ResultsDocument {
    let schedulers = ["none", "kyber"].map(str::to_owned).to_vec();
    let asked = Comparison { schedulers, repeats: 4, runtime_ns: Some(500_000_000), ..Comparison::default() };
    asked.run(&Alone).unwrap()
}

fn verified(predicted: &ResultsDocument, measured: &ResultsDocument) -> Verification {
    let [load, model, target, kernel] = ["load", "model", "target", "kernel"].map(str::to_owned);
    Verification::of(predicted, measured, About { load, model, target, kernel })
}

/// Measurements of three rounds that differ by 1 %: under each scheduler the mean figures predicted for the scheduler that `of` returns.
fn kernel(document: &ResultsDocument, of: impl Fn(&str) -> &'static str) -> ResultsDocument {
    let analysis = Analysis::of(document);
    let run = |scheduler: &str, (round, factor): (u32, f64)| {
        let variant = analysis.variants.iter().position(|variant| variant.label == of(scheduler)).unwrap();
        let mut run: Run = analysis.variants[variant].first().clone();
        (run.scheduler, run.variant.label, run.repeat) = (scheduler.to_owned(), scheduler.to_owned(), round);
        for (job, analysed) in run.jobs.iter_mut().zip(&analysis.jobs) {
            for measured in &mut job.operations {
                let of_operation =
                    |of: &&hoistway_answer::analysis::OperationAnalysis<'_>| of.operation == measured.operation;
                let row = analysed.operations.iter().find(of_operation).unwrap().row(variant).unwrap();
                let mean = |figure| row.estimate(figure).mean * factor;
                measured.iops = mean(Figure::Iops);
                (measured.lat_ns.mean, measured.lat_ns.p99) = (mean(Figure::Mean), mean(Figure::P99) as u64);
            }
        }
        run
    };
    let rounds = (0..).zip([0.99, 1.0, 1.01]);
    let runs = rounds.flat_map(|round| ["none", "kyber"].map(|scheduler| run(scheduler, round))).collect();
    ResultsDocument { is_real: true, real_place: Some(RealPlace::Kernel), runs, ..document.clone() }
}

fn orders(verification: &Verification) -> Vec<Order> {
    verification.pairs.iter().filter(|pair| pair.is_certain).map(|pair| pair.order).collect()
}

#[test]
fn only_certain_predictions_with_the_opposite_outcome_are_refuted() {
    let mut document = predicted();
    assert_eq!(document.doubts, [""; 0]);
    let same = kernel(&document, |name| if name == "none" { "none" } else { "kyber" });
    let mut swapped = kernel(&document, |name| if name == "none" { "kyber" } else { "none" });

    let right = verified(&document, &same);
    assert!(!orders(&right).is_empty() && orders(&right).iter().all(|order| *order == Order::Right));
    assert_eq!((right.refuted().count(), right.rounds), (0, 3));
    // A percentile is a whole number of nanoseconds.
    assert!(right.figures.iter().all(|checked| checked.error.abs() < 1e-4 && (checked.spread - 0.02).abs() < 1e-4));

    let wrong = verified(&document, &swapped);
    assert_eq!(orders(&wrong), vec![Order::Wrong; orders(&right).len()]);
    assert_eq!(wrong.refuted().count(), orders(&right).len());

    // A doubtful model refutes nothing, and neither does a kernel that runs once.
    document.doubts.push("the model is doubtful".to_owned());
    assert_eq!(verified(&document, &swapped).refuted().count(), 0);
    document.doubts.clear();
    swapped.runs.retain(|run| run.repeat == 0);
    assert_eq!(verified(&document, &swapped).refuted().count(), 0);
}

#[test]
fn a_figure_and_its_difference_are_written_with_the_parts_of_its_name() {
    let document = predicted();
    let checked = verified(&document, &kernel(&document, |name| if name == "none" { "none" } else { "kyber" }));
    let value = serde_json::to_value(&checked).unwrap();
    let keys = |value: &serde_json::Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ");
    assert_eq!(keys(&value), "format load model target kernel rounds doubts figures pairs");
    assert_eq!(keys(&value["figures"][0]), "job operation figure scheduler predicted measured error spread");
    let pair = "job operation figure schedulers predicted is_certain measured half_width order";
    assert_eq!(keys(&value["pairs"][0]), pair);
    assert_eq!(serde_json::from_value::<Verification>(value).unwrap(), checked);
}

#[test]
fn a_measured_difference_is_a_ratio_paired_round_by_round() {
    let document = predicted();
    let mut measured = kernel(&document, |_| "none");
    // Under kyber twice as much in the first two rounds, four times as much in the third.
    for run in measured.runs.iter_mut().filter(|run| run.scheduler == "kyber") {
        let factor = if run.repeat < 2 { 2.0 } else { 4.0 };
        run.jobs.iter_mut().flat_map(|job| &mut job.operations).for_each(|operation| operation.iops *= factor);
    }
    let checked = verified(&document, &measured);
    let pair = checked.pairs.iter().find(|pair| pair.name.figure == Figure::Iops).unwrap();
    assert!((pair.measured - (16.0_f64.cbrt() - 1.0)).abs() < 1e-9, "{pair:?}");
    // Student's t for two degrees of freedom is 4.302653; the deviation of ln 2, ln 2 and ln 4 is ln 2 / sqrt 3.
    let half = (4.302_653 * 2.0_f64.ln() / 3.0).exp() - 1.0;
    assert!((pair.half_width.unwrap() - half).abs() < 1e-5, "{pair:?}");
    assert_eq!(pair.order, Order::Close);
}
