//! The quality of decisions based on simulations, compared with published measurements of the same loads and with rules of thumb.
//!
//! A *choice* is one published figure of a load under several schedulers. Based on our figures, one chooses the scheduler that is best in
//! the simulation; that is right if it was within 2 % of the best in the measurement, and its *regret* is how much worse it was. A *load*
//! is a source's job file: the verdict of a comparison without `--focus` names a job, which should be the job that the source is about.

use hoistway_experiment::Error;

use super::cell::Cell;
use super::document::Reproduced;
use super::watched::{FocusedLoad, Party};
use super::{habr, heatmaps, one_drive, prose};

/// A decision within this fraction of the best is right.
const RIGHT: f64 = 0.02;

/// The schedulers of a multi-queue kernel, and those of earlier kernels.
const SCHEDULERS: [&str; 7] = ["none", "mq-deadline", "kyber", "bfq", "noop", "deadline", "cfq"];

/// A scheduler that can be chosen, with its figure.
#[derive(Clone, PartialEq, Debug)]
pub struct PublishedOption {
    /// The scheduler.
    pub scheduler: String,
    /// The simulated figure.
    pub ours: f64,
    /// The published figure.
    pub published: f64,
}

/// A published figure of a load under several schedulers.
#[derive(Clone, PartialEq, Debug)]
pub struct PublishedChoice {
    /// The table, and the row or the column.
    pub name: String,
    /// Whether larger figures are better.
    pub higher_is_better: bool,
    /// The options.
    pub options: Vec<PublishedOption>,
}

/// Rules for choosing a scheduler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DecisionRule {
    /// The one that is best in the simulation.
    OurFigures,
    /// Always the same one.
    Always(&'static str),
    /// bfq if the figure is a latency, and none if it is a rate.
    BfqForLatency,
}

impl DecisionRule {
    /// All of them.
    pub const ALL: [DecisionRule; 4] = [
        DecisionRule::OurFigures,
        DecisionRule::Always("none"),
        DecisionRule::Always("mq-deadline"),
        DecisionRule::BfqForLatency,
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            DecisionRule::OurFigures => "our figures".to_owned(),
            DecisionRule::Always(scheduler) => format!("always {scheduler}"),
            DecisionRule::BfqForLatency => "bfq for latency, else none".to_owned(),
        }
    }
}

/// The quality of a rule's decisions.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Score {
    /// Decisions that are right.
    pub right: usize,
    /// Number of decisions.
    pub of: usize,
    /// Mean regret as a fraction: how much worse the chosen options are than the best.
    pub mean_regret: f64,
}

impl Score {
    /// The score of decisions with these regrets.
    #[must_use]
    pub fn of(regrets: &[f64]) -> Score {
        Score {
            right: regrets.iter().filter(|regret| **regret <= RIGHT).count(),
            of: regrets.len(),
            mean_regret: regrets.iter().sum::<f64>() / regrets.len().max(1) as f64,
        }
    }
}

impl PublishedChoice {
    /// The choices in a table: sets of cells that differ only in the scheduler.
    #[must_use]
    pub fn all(table: &Reproduced) -> Vec<PublishedChoice> {
        let mut choices: Vec<PublishedChoice> = Vec::new();
        for cell in &table.cells {
            let Some((scheduler, what, published)) = parts(cell) else { continue };
            let name = format!("{}: {what}", table.name);
            let option = PublishedOption { scheduler: scheduler.to_owned(), ours: cell.ours, published };
            match choices.iter_mut().find(|choice| choice.name == name) {
                Some(choice) => choice.options.push(option),
                None => choices.push(PublishedChoice {
                    higher_is_better: what.contains("IOPS"),
                    name,
                    options: vec![option],
                }),
            }
        }
        choices.retain(|choice| choice.options.len() > 1);
        choices
    }

    /// The regret of a rule's choice as a fraction; None if the choice was not measured.
    #[must_use]
    pub fn regret(&self, rule: DecisionRule) -> Option<f64> {
        let named = |name: &str| self.options.iter().find(|option| option.scheduler == name);
        let chosen = match rule {
            DecisionRule::OurFigures => self.best(|option| option.ours),
            DecisionRule::Always(scheduler) => named(scheduler),
            DecisionRule::BfqForLatency => named(if self.higher_is_better { "none" } else { "bfq" }),
        };
        chosen.map(|chosen| self.regret_of(chosen.published))
    }

    /// The best scheduler in the simulation, and the best one in the measurement.
    #[must_use]
    pub fn best_of_both(&self) -> Option<(&str, &str)> {
        let [ours, published] = [self.best(|one| one.ours)?, self.best(|one| one.published)?];
        Some((&ours.scheduler, &published.scheduler))
    }

    fn regret_of(&self, published: f64) -> f64 {
        let best = self.best(|option| option.published).map_or(published, |best| best.published);
        if self.higher_is_better { best / published - 1.0 } else { published / best - 1.0 }
    }

    fn best(&self, value: impl Fn(&PublishedOption) -> f64) -> Option<&PublishedOption> {
        let sign = if self.higher_is_better { -1.0 } else { 1.0 };
        self.options.iter().min_by(|a, b| (sign * value(a)).total_cmp(&(sign * value(b))))
    }
}

/// The scheduler of a cell, the rest of its name, and its published figure; None for a cell without a scheduler.
fn parts(cell: &Cell) -> Option<(&str, &str, f64)> {
    let published = cell.published?;
    if SCHEDULERS.contains(&cell.row.as_str()) {
        return Some((&cell.row, &cell.column, published));
    }
    SCHEDULERS.contains(&cell.column.as_str()).then_some((&cell.column, &cell.row, published))
}

/// The loads of the sources that have several jobs, and one with a single job. Runtimes are shorter than those of the tables: the focus is
/// clear early.
///
/// # Errors
/// The same as [`Table::reproduce`](super::Table::reproduce).
pub fn parties() -> Result<Vec<Party>, Error> {
    let loads =
        habr::watched().into_iter().chain(prose::watched()).chain(one_drive::watched()).chain(heatmaps::watched());
    loads.map(FocusedLoad::party).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduction::Judgement;

    fn table(cells: &[(&str, &str, f64, Option<f64>)]) -> Reproduced {
        let cell = |&(row, column, ours, published): &(&str, &str, f64, Option<f64>)| {
            Cell::new(row, column, ours, published, Judgement::None)
        };
        let cells = cells.iter().map(cell).collect();
        Reproduced { name: "t".to_owned(), source: String::new(), cells, sensitivity: Vec::new() }
    }

    #[test]
    fn a_choice_is_right_if_our_best_was_near_the_published_best() {
        let choices = PublishedChoice::all(&table(&[
            ("none", "read, mean ms", 3.0, Some(2.00)),
            ("bfq", "read, mean ms", 2.0, Some(2.02)),
            ("kyber", "read, mean ms", 1.0, Some(4.0)),
            ("depth 2", "none", 1.0, Some(1.0)),
            ("depth 2", "mq-deadline", 0.9, Some(1.01)),
            ("depth 2", "median error", 0.9, None),
            ("none", "write, IOPS", 100.0, Some(100.0)),
            ("bfq", "write, IOPS", 50.0, Some(125.0)),
            ("alone", "write, IOPS", 50.0, Some(125.0)),
        ]));
        let names: Vec<&str> = choices.iter().map(|choice| choice.name.as_str()).collect();
        assert_eq!(names, ["t: read, mean ms", "t: depth 2", "t: write, IOPS"]);
        let regrets = |rule| choices.iter().map(|choice| choice.regret(rule)).collect::<Vec<_>>();
        let near = |regret: Option<f64>, wanted: f64| (regret.unwrap() - wanted).abs() < 1e-9;
        let ours = regrets(DecisionRule::OurFigures);
        assert!(near(ours[0], 1.0) && near(ours[1], 0.01) && near(ours[2], 0.25), "{ours:?}");
        let bfq = regrets(DecisionRule::BfqForLatency);
        assert!(near(bfq[0], 0.01) && bfq[1].is_none() && near(bfq[2], 0.25), "{bfq:?}");
        let score = Score::of(&ours.into_iter().flatten().collect::<Vec<_>>());
        assert_eq!((score.right, score.of), (1, 3));
        assert!((score.mean_regret - 0.42).abs() < 1e-9);
    }
}
