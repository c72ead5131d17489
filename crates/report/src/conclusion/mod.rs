//! What a comparison means, in two sentences: who is best at what and at which price, and what makes that uncertain.
//!
//! The words follow from the figures. Nobody is called the best unless the difference to everyone else is beyond the
//! noise of the repeats; of single runs only what they showed is told.

mod doubts;
mod focus;
mod price;

use hoistway_results::comparison::{Comparison, OperationComparison, Ranking};
use hoistway_results::{Figure, FigureName, Operation, ResultsDocument};

use crate::columns::value;
use crate::units;
use crate::words::{device_name, list};

/// The two sentences; none if there is nothing to compare.
///
/// They are about the document's focus; if it has none, or no such I/O, about what is likeliest to be waited for.
pub fn conclusion(document: &ResultsDocument) -> Vec<String> {
    let comparison = Comparison::of(document);
    let Some(chosen) = focus::chosen(&comparison, document.focus.as_ref()) else { return Vec::new() };
    if chosen.direction.rows.len() < 2 {
        return Vec::new();
    }
    let meaning = Meaning { document, comparison: &comparison, chosen: &chosen };
    let doubts = doubts::doubts(document, &comparison, &chosen);
    vec![meaning.sentence(), doubts::sentence(document, &comparison, &doubts)]
}

/// One figure of one direction of one job.
pub(crate) struct Chosen<'a> {
    pub(crate) job: &'a str,
    pub(crate) direction: &'a OperationComparison,
    pub(crate) figure: Figure,
}

/// A figure in words: `p99 read latency of oltp`.
pub fn figure_in_words(name: &FigureName) -> String {
    in_words(&name.job, name.operation, name.figure)
}

fn in_words(job: &str, operation: Operation, figure: Figure) -> String {
    format!("{} of {job}", noun(figure, operation))
}

/// `p99 read latency`, `write bandwidth`.
fn noun(figure: Figure, operation: Operation) -> String {
    let direction = operation.name();
    match figure {
        Figure::Iops => format!("{direction} IOPS"),
        Figure::Bandwidth => format!("{direction} bandwidth"),
        Figure::Mean => format!("mean {direction} latency"),
        Figure::P50 => format!("median {direction} latency"),
        Figure::P99 => format!("p99 {direction} latency"),
        Figure::P99_9 => format!("p99.9 {direction} latency"),
        Figure::Max => format!("largest {direction} latency"),
    }
}

struct Meaning<'a> {
    document: &'a ResultsDocument,
    comparison: &'a Comparison<'a>,
    chosen: &'a Chosen<'a>,
}

impl Meaning<'_> {
    fn sentence(&self) -> String {
        let ranking = self.chosen.direction.ranking(self.chosen.figure);
        let device = device_name(&self.document.device);
        let best = if self.chosen.figure.higher_is_better() { "highest" } else { "lowest" };
        let name = in_words(self.chosen.job, self.chosen.direction.operation, self.chosen.figure);
        let is_single = self.comparison.repeats() < 2;
        match (&ranking.best[..], is_single) {
            ([], true) => {
                format!(
                    "For this load on {device}, all schedulers had the same {name} ({}) in this one run.",
                    self.span()
                )
            }
            ([], false) => format!(
                "For this load on {device}, no difference between the schedulers in {name} can be told from the noise \
                 ({}).",
                self.span()
            ),
            ([winner], true) => format!(
                "For this load on {device}, {} had the {best} {name} in this one run ({}){}.",
                self.label(*winner),
                self.figures(*winner),
                self.price(*winner)
            ),
            ([winner], false) => format!(
                "For this load on {device}, {} gives the {best} {name} ({}){}.",
                self.label(*winner),
                self.figures(*winner),
                self.price(*winner)
            ),
            (several, is_single) => format!(
                "For this load on {device}, {} {} the {best} {name} ({}){}.",
                list(&several.iter().map(|row| self.label(*row)).collect::<Vec<_>>()),
                if is_single { "share" } else { "cannot be told apart at" },
                self.shown_once(several),
                self.worst(&ranking)
            ),
        }
    }

    fn label(&self, row: usize) -> String {
        self.comparison.variants[self.chosen.direction.rows[row].variant].label.clone()
    }

    /// The figure of a row, with its interval.
    fn shown(&self, row: usize) -> String {
        let estimate = self.chosen.direction.rows[row].estimate(self.chosen.figure);
        let text = value(self.chosen.figure, estimate.mean, false);
        match estimate.half_width {
            Some(half_width) if estimate.mean > 0.0 => {
                format!("{text} {}", units::spread(half_width / estimate.mean, false))
            }
            _ => text,
        }
    }

    /// The figures of several rows; one if they look alike.
    fn shown_once(&self, rows: &[usize]) -> String {
        let mut shown: Vec<String> = rows.iter().map(|row| self.shown(*row)).collect();
        shown.dedup();
        shown.join(", ")
    }

    /// The figure of the winner beside that of the baseline, or of the next if it is the baseline.
    fn figures(&self, winner: usize) -> String {
        let direction = self.chosen.direction;
        let rows = &direction.rows;
        let is_baseline = |row: &usize| rows[*row].variant == self.comparison.baseline;
        let others = (0..rows.len()).filter(|row| *row != winner);
        let sign = if self.chosen.figure.higher_is_better() { -1.0 } else { 1.0 };
        let badness = |row: &usize| sign * rows[*row].estimate(self.chosen.figure).mean;
        let other = others.clone().find(is_baseline);
        let other = other.or_else(|| others.min_by(|a, b| badness(a).total_cmp(&badness(b))));
        let Some(other) = other else { return self.shown(winner) };
        let difference = rows[winner].difference(&rows[other], self.chosen.figure);
        let relative = difference.and_then(|difference| difference.relative).map(units::difference);
        let relative = relative.map(|relative| format!(", {relative}")).unwrap_or_default();
        format!("{}; {} {}{relative}", self.shown(winner), self.label(other), self.shown(other))
    }

    fn price(&self, winner: usize) -> String {
        let variant = self.chosen.direction.rows[winner].variant;
        let losses = price::losses(self.comparison, self.chosen, variant);
        if losses.is_empty() {
            let beyond = if self.comparison.repeats() > 1 { " beyond the noise" } else { "" };
            return format!(", and is not worse than the best at anything else in the table{beyond} by 2 % or more");
        }
        format!(", at the price of {}", losses.join(" and "))
    }

    /// Who is worst where there are several best ones.
    fn worst(&self, ranking: &Ranking) -> String {
        match ranking.worst[..] {
            [worst] => format!("; {} is worst ({})", self.label(worst), self.shown(worst)),
            _ => String::new(),
        }
    }

    /// From the smallest to the largest.
    fn span(&self) -> String {
        let means = || self.chosen.direction.rows.iter().map(|row| row.estimate(self.chosen.figure).mean);
        let show = |mean| value(self.chosen.figure, mean, false);
        let (least, most) = (show(means().fold(f64::INFINITY, f64::min)), show(means().fold(0.0, f64::max)));
        if least == most { least } else { format!("{least} to {most}") }
    }
}
