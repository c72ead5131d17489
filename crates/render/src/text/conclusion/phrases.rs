//! Figures and their changes in words.

use hoistway_answer::document::{Aspect, Change, Shift};
use hoistway_answer::{Figure, FigureName};
use hoistway_measure::Operation;

use crate::text::columns::value;
use hoistway_measure::units;

/// A figure in words: `p99 read latency of oltp`.
pub fn figure_in_words(name: &FigureName) -> String {
    format!("{} of {}", noun(name.figure, name.operation), name.job)
}

/// `p99 read latency`, `write bandwidth`, `fsyncs a second`.
pub(super) fn noun(figure: Figure, operation: Operation) -> String {
    let operation_name = if operation == Operation::Sync { "fsync" } else { operation.name() };
    match figure {
        Figure::Iops if operation == Operation::Sync => "fsyncs a second".to_owned(),
        Figure::Iops => format!("{operation_name} IOPS"),
        Figure::Bandwidth => format!("{operation_name} bandwidth"),
        Figure::Mean => format!("mean {operation_name} latency"),
        Figure::P50 => format!("median {operation_name} latency"),
        Figure::P95 => format!("p95 {operation_name} latency"),
        Figure::P99 => format!("p99 {operation_name} latency"),
        Figure::P99_9 => format!("p99.9 {operation_name} latency"),
        Figure::Max => format!("largest {operation_name} latency"),
    }
}

/// An improvement by a factor, as the relative change of a figure: a factor of 2 is -50 % in a latency.
pub(super) fn relative(factor: f64, figure: Figure) -> String {
    units::difference(if figure.higher_is_better() { factor - 1.0 } else { 1.0 / factor - 1.0 })
}

/// Like [`relative`], but `149 times` for a figure that is at least twice as high.
pub(super) fn relative_or_times(factor: f64, figure: Figure) -> String {
    relative_to(if figure.higher_is_better() { factor } else { 1.0 / factor })
}

/// How a figure has changed to this multiple of it.
fn relative_to(multiple: f64) -> String {
    if multiple >= 2.0 { format!("{} times", units::times(multiple)) } else { units::difference(multiple - 1.0) }
}

/// `-61.0% (95 %: -64.2% to -58.1%)`.
pub(crate) fn change(change: Change, figure: Figure) -> String {
    change_text(change, figure, "")
}

/// Like [`change`], with a note if the change differs from the ratio of the two means.
pub(crate) fn change_between(change: Change, figure: Figure, means: Option<(f64, f64)>) -> String {
    change_text(change, figure, means.map_or("", |(from, to)| geometric_mean_note(from, to, change.factor)))
}

fn change_text(change: Change, figure: Figure, note: &str) -> String {
    /// Relative width up to which an interval has zero width: the rounding error of a sum.
    const ROUNDING: f64 = 1e-9;
    let words = relative(change.factor, figure) + note;
    match (change.low, change.high) {
        (Some(low), Some(high)) => {
            let ends = if figure.higher_is_better() { [low, high] } else { [high, low] };
            let [from, to] = ends.map(|end| relative(end, figure));
            // Zero width means that all runs have the same factor. A narrow interval may only mean many runs.
            if high / low - 1.0 < ROUNDING {
                format!("{words} in every run")
            } else {
                format!("{words} (95 %: {from} to {to})")
            }
        }
        _ => words,
    }
}

/// A shift: `p99 read latency of oltp 4.49 ms -> 38.5 ms (8.57 times)`.
pub fn shift(shift: &Shift) -> String {
    let what = shift_subject(shift);
    let (from, to) = match shift.aspect {
        Aspect::Figure(figure) | Aspect::Worst(figure) => {
            let shown = |number| value(figure, number, false);
            (shown(shift.from), shown(shift.to))
        }
        Aspect::Wait => (value(Figure::Mean, shift.from, false), value(Figure::Mean, shift.to, false)),
        Aspect::Fairness => (format!("{:.2}", shift.from), format!("{:.2}", shift.to)),
    };
    let aspect_note = match shift.aspect {
        Aspect::Figure(Figure::Max) => " in a run",
        _ => "",
    };
    // The factor is above 1 in either direction.
    let how_much = relative_to(if shift.to > shift.from { shift.factor } else { 1.0 / shift.factor });
    let geometric_mean_note = geometric_mean_note(shift.from, shift.to, shift.factor);
    let noise_note = if shift.significant == Some(false) { ", within the noise" } else { "" };
    let asked_note = if shift.as_asked { ", as asked for" } else { "" };
    format!("{what}{aspect_note} {from} -> {to} ({how_much}{geometric_mean_note}{noise_note}{asked_note})")
}

/// The figure that has shifted: `p99 read latency of oltp`.
fn shift_subject(shift: &Shift) -> String {
    let what = match (shift.aspect, shift.operation) {
        (Aspect::Figure(figure), Some(operation)) => noun(figure, operation),
        (Aspect::Worst(figure), Some(operation)) => {
            format!("{} of the worst-off job", noun(figure, operation))
        }
        (Aspect::Wait, Some(operation)) => noun(Figure::Mean, operation).replace("mean", "time-weighted"),
        // Only fairness has no operation.
        (Aspect::Fairness | Aspect::Figure(_) | Aspect::Worst(_) | Aspect::Wait, _) => {
            "fairness (Jain's index)".to_owned()
        }
    };
    match shift.jobs {
        1 => format!("{what} of {}", shift.job),
        2 => format!("{what} of {} and 1 equivalent job", shift.job),
        jobs => format!("{what} of {} and {} equivalent jobs", shift.job, jobs - 1),
    }
}

/// The figure of the first loss that may be larger than the gain, whose factor is `gain`: `p99 read latency of oltp`.
pub(crate) fn may_lose_more(losses: &[Shift], gain: f64) -> Option<String> {
    losses.iter().find(|loss| loss.may_exceed(gain)).map(shift_subject)
}

/// A note for a change that differs from the change of the two means shown with it: the judged change is the geometric mean of the runs'
/// ratios, which differs if runs scatter.
fn geometric_mean_note(from: f64, to: f64, factor: f64) -> &'static str {
    /// Slightly more than the rounding of three digits in each.
    const ROUNDING_TOLERANCE: f64 = 0.02;
    let apart = (to / from).ln().abs() - factor.ln().abs();
    if apart.abs() > ROUNDING_TOLERANCE { " in the geometric mean of its runs" } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_factor_for_the_better_is_less_latency_or_more_throughput() {
        assert_eq!(relative(2.0, Figure::P99), "-50.0%");
        assert_eq!(relative(0.5, Figure::P99), "+100%");
        assert_eq!(relative(1.25, Figure::Iops), "+25.0%");
        assert_eq!(
            [relative_or_times(2.0, Figure::P99), relative_or_times(0.25, Figure::P99)],
            ["-50.0%", "4.00 times"]
        );
        let words = change(Change { factor: 2.0, low: Some(1.6), high: Some(2.5) }, Figure::Mean);
        assert_eq!(words, "-50.0% (95 %: -60.0% to -37.5%)");
        let words = change(Change { factor: 2.0, low: Some(2.0), high: Some(2.0) }, Figure::Mean);
        assert_eq!(words, "-50.0% in every run");
        let words = change(Change { factor: 2.0, low: Some(1.9999), high: Some(2.0001) }, Figure::Mean);
        assert_eq!(words, "-50.0% (95 %: -50.0% to -50.0%)");
    }

    #[test]
    fn a_change_that_differs_from_the_shown_means_is_labelled_geometric() {
        assert_eq!(geometric_mean_note(881.0, 4976.0, 4.5), " in the geometric mean of its runs");
        assert_eq!(geometric_mean_note(1.60, 2.67, 1.618), " in the geometric mean of its runs");
        // Whichever of the two is larger.
        assert_eq!((geometric_mean_note(3.26, 1.27, 2.564), geometric_mean_note(1.27, 3.26, 2.56)), ("", ""));
        let gain = Change { factor: 4.5, low: Some(1.306), high: Some(15.5) };
        let words = change_between(gain, Figure::Iops, Some((881.0, 4976.0)));
        assert_eq!(words, "+350% in the geometric mean of its runs (95 %: +30.6% to +1450%)");
    }

    #[test]
    fn a_shift_shows_the_old_and_the_new_value() {
        let base = Shift {
            job: "a".to_owned(),
            jobs: 1,
            operation: Some(Operation::Read),
            aspect: Aspect::Figure(Figure::P99),
            from: 4.49e6,
            to: 38.5e6,
            factor: 38.5 / 4.49,
            significant: Some(true),
            weighs: true,
            as_asked: false,
        };
        assert_eq!(shift(&base), "p99 read latency of a 4.49 ms -> 38.5 ms (8.57 times)");
        let max = Shift { aspect: Aspect::Figure(Figure::Max), ..base.clone() };
        assert_eq!(shift(&max), "largest read latency of a in a run 4.49 ms -> 38.5 ms (8.57 times)");
        let iops = Aspect::Figure(Figure::Iops);
        let fewer =
            Shift { aspect: iops, from: 100.0, to: 80.0, factor: 1.25, significant: Some(false), ..base.clone() };
        assert_eq!(shift(&fewer), "read IOPS of a 100 -> 80.0 (-20.0%, within the noise)");
        let faster = Shift { from: 7.34e9, to: 0.919e9, factor: 7.34 / 0.919, ..base.clone() };
        assert_eq!(shift(&faster), "p99 read latency of a 7.34 s -> 919 ms (-87.5%)", "a gain");
        let more = Shift { aspect: iops, from: 100.0, to: 150.0, factor: 1.5, ..base.clone() };
        assert_eq!(shift(&more), "read IOPS of a 100 -> 150 (+50.0%)");
        let unfair =
            Shift { aspect: Aspect::Fairness, operation: None, jobs: 20, from: 1.0, to: 0.25, factor: 4.0, ..base };
        assert_eq!(shift(&unfair), "fairness (Jain's index) of a and 19 equivalent jobs 1.00 -> 0.25 (-75.0%)");
    }
}
