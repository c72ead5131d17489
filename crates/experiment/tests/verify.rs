//! Verification of predictions against measurements on a kernel.

use hoistway_answer::ResultsDocument;
use hoistway_experiment::verify::{About, Figures, KernelFigures, Order, Verification, of_run};
use hoistway_experiment::{Alone, Comparison};

/// The bundled example, where kyber shortens the tail of writes by a third.
fn predicted() -> ResultsDocument {
    let schedulers = ["none", "kyber"].map(str::to_owned).to_vec();
    let asked = Comparison { schedulers, repeats: 4, runtime_ns: Some(500_000_000), ..Comparison::default() };
    asked.run(&Alone).unwrap()
}

fn verified(document: &ResultsDocument, measured: &KernelFigures) -> Verification {
    let [load, model, target, kernel] = ["load", "model", "target", "kernel"].map(str::to_owned);
    Verification::of(document, measured, About { load, model, target, kernel })
}

/// The predicted figures under a scheduler.
fn figures(document: &ResultsDocument, scheduler: &str) -> Figures {
    let mut alone = document.clone();
    alone.runs.retain(|run| run.scheduler == scheduler);
    of_run(&alone)
}

/// Measurements of three rounds that differ by 1 %: under each scheduler the figures predicted for the scheduler that `of` returns.
fn kernel(document: &ResultsDocument, of: impl Fn(&str) -> &'static str) -> KernelFigures {
    let rounds = |figures: &Figures| {
        let round = |factor: f64| figures.iter().map(|(key, value)| (key.clone(), value * factor)).collect();
        [0.99, 1.0, 1.01].map(round).to_vec()
    };
    ["none", "kyber"].map(|name| (name.to_owned(), rounds(&figures(document, of(name))))).into_iter().collect()
}

fn orders(verification: &Verification) -> Vec<Order> {
    verification.pairs.iter().filter(|pair| pair.is_certain).map(|pair| pair.order).collect()
}

#[test]
fn only_certain_predictions_with_the_opposite_outcome_are_refuted() {
    let mut document = predicted();
    assert_eq!(document.doubts, [""; 0]);
    let same = kernel(&document, |name| if name == "none" { "none" } else { "kyber" });
    let swapped = kernel(&document, |name| if name == "none" { "kyber" } else { "none" });

    let right = verified(&document, &same);
    assert!(!orders(&right).is_empty() && orders(&right).iter().all(|order| *order == Order::Right));
    assert_eq!(right.refuted().count(), 0);
    assert!(right.figures.iter().all(|checked| checked.error.abs() < 1e-9 && (checked.spread - 0.02).abs() < 1e-9));

    let wrong = verified(&document, &swapped);
    assert_eq!(orders(&wrong), vec![Order::Wrong; orders(&right).len()]);
    assert_eq!(wrong.refuted().count(), orders(&right).len());

    // A doubtful model refutes nothing, and neither does a kernel that runs once.
    document.doubts.push("the model is doubtful".to_owned());
    assert_eq!(verified(&document, &swapped).refuted().count(), 0);
    document.doubts.clear();
    let once = swapped.into_iter().map(|(name, rounds)| (name, rounds[..1].to_vec())).collect();
    assert_eq!(verified(&document, &once).refuted().count(), 0);
}
