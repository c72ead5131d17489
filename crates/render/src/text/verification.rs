//! A verification as text: predicted and measured figures, and the order of the schedulers.

use hoistway_answer::Figure;
use hoistway_answer::verification::{FIGURES, FigureCheck, Order, Pair, Verification};

/// The verification as text.
#[must_use]
pub fn verification(checked: &Verification) -> String {
    let Verification { load, target, rounds, kernel, model, .. } = checked;
    let mut text = format!("{load} on {target} ({rounds} rounds, Linux {kernel}), predicted with {model}\n");
    for section in checked.figures.chunk_by(|a, b| (&a.name.job, a.name.operation) == (&b.name.job, b.name.operation)) {
        let name = &section[0].name;
        let width = section.iter().map(|row| row.scheduler.chars().count()).max().unwrap_or(0).max(12);
        text += &format!("\n{}, {}\n", name.job, name.operation.name());
        text += &format!("  {:<width$} figure    predicted     measured    error   spread\n", "scheduler");
        section.iter().for_each(|row| text += &line(row, width));
    }
    let median = |figure: &Figure| Some(format!("{} {:.0} %", figure.name(), 100.0 * checked.median_error(*figure)?));
    let errors: Vec<String> = FIGURES.iter().filter_map(median).collect();
    text += &format!("\nMedian error: {}.\n", errors.join(", "));
    text += &order(&checked.pairs);
    for doubt in &checked.doubts {
        text += &format!("Nothing is certain: {doubt}.\n");
    }
    text
}

fn line(row: &FigureCheck, width: usize) -> String {
    let figure = row.name.figure;
    format!(
        "  {:<width$} {:<6} {:>12} {:>12}  {:>+5.0} %  {:>5.0} %\n",
        row.scheduler,
        figure.name(),
        value(figure, row.predicted),
        value(figure, row.measured),
        100.0 * row.error,
        100.0 * row.spread
    )
}

/// How many pairs of schedulers are in the predicted order, and which are not.
fn order(pairs: &[Pair]) -> String {
    let count = |order| pairs.iter().filter(|pair| pair.order == order).count();
    let (right, wrong, close) = (count(Order::Right), count(Order::Wrong), count(Order::Close));
    let mut text = format!(
        "Order: of {} pairs of schedulers that differ on the kernel by more than 10 % and beyond its spread, {right} were predicted \
         correctly; {close} pairs differ by less.\n",
        right + wrong
    );
    for pair in pairs.iter().filter(|pair| pair.order == Order::Wrong) {
        let (name, [first, second]) = (&pair.name, &pair.schedulers);
        text += &format!(
            "  wrong: {}:{}:{}, {second} against {first}: predicted {:+.0} %{}, measured {:+.0} %\n",
            name.job,
            name.operation.name(),
            name.figure.name(),
            100.0 * pair.predicted,
            if pair.is_certain { " (certain)" } else { "" },
            100.0 * pair.measured
        );
    }
    text
}

/// A figure with its unit.
fn value(figure: Figure, value: f64) -> String {
    if figure.is_latency() { format!("{:.1} us", value / 1e3) } else { format!("{value:.0}/s") }
}
