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
pub const RIGHT: f64 = 0.02;

/// The schedulers of a multi-queue kernel, and those of earlier kernels.
const SCHEDULERS: [&str; 7] = ["none", "mq-deadline", "kyber", "bfq", "noop", "deadline", "cfq"];

/// The same from the one that does least to the one that does most.
const SIMPLEST_FIRST: [&str; 7] = ["none", "noop", "mq-deadline", "deadline", "kyber", "bfq", "cfq"];

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
    /// Of those that a verdict calls no different from the best in the simulation, the simplest.
    OurFiguresOrSimplest,
    /// Always the same one.
    Always(&'static str),
    /// bfq if the figure is a latency, and none if it is a rate.
    BfqForLatency,
}

impl DecisionRule {
    /// All of them.
    pub const ALL: [DecisionRule; 5] = [
        DecisionRule::OurFigures,
        DecisionRule::OurFiguresOrSimplest,
        DecisionRule::Always("none"),
        DecisionRule::Always("mq-deadline"),
        DecisionRule::BfqForLatency,
    ];

    /// What pages call it.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            DecisionRule::OurFigures => "our figures".to_owned(),
            DecisionRule::OurFiguresOrSimplest => "our figures, the simplest within 2 %".to_owned(),
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
    pub total: usize,
    /// Mean regret as a fraction: how much worse the chosen options are than the best.
    pub mean_regret: f64,
}

impl Score {
    /// The score of decisions with these regrets.
    #[must_use]
    pub fn of(regrets: &[f64]) -> Score {
        Score {
            right: regrets.iter().filter(|regret| **regret <= RIGHT).count(),
            total: regrets.len(),
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
            let Some((scheduler, figure, published)) = split_cell(cell) else { continue };
            let name = format!("{}: {figure}", table.name);
            let option = PublishedOption { scheduler: scheduler.to_owned(), ours: cell.ours, published };
            match choices.iter_mut().find(|choice| choice.name == name) {
                Some(choice) => choice.options.push(option),
                None => choices.push(PublishedChoice {
                    higher_is_better: figure.contains("IOPS"),
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
            DecisionRule::OurFiguresOrSimplest => self.simplest_of_best(),
            DecisionRule::Always(scheduler) => named(scheduler),
            DecisionRule::BfqForLatency => named(if self.higher_is_better { "none" } else { "bfq" }),
        };
        chosen.map(|chosen| self.regret_of(chosen.published))
    }

    /// The best scheduler in the simulation, and the best one in the measurement.
    #[must_use]
    pub fn best_of_both(&self) -> Option<(&str, &str)> {
        let [ours, published] = [self.best(|option| option.ours)?, self.best(|option| option.published)?];
        Some((&ours.scheduler, &published.scheduler))
    }

    /// By how much our best is better here than what was published as best, as a fraction.
    #[must_use]
    pub fn lead_here(&self) -> f64 {
        let [best, other] = [self.best(|option| option.ours), self.best(|option| option.published)];
        let figure_here = |option: Option<&PublishedOption>| option.map_or(f64::NAN, |option| option.ours);
        self.worse_by(figure_here(best), figure_here(other))
    }

    /// Of the two that are best here and best published the one whose figure here is further from the published one, with the relative error.
    #[must_use]
    pub fn largest_error(&self) -> Option<(&str, f64)> {
        let both = [self.best(|option| option.ours)?, self.best(|option| option.published)?];
        let errors = both.map(|option| (option.scheduler.as_str(), option.ours / option.published - 1.0));
        errors.into_iter().max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()))
    }

    fn simplest_of_best(&self) -> Option<&PublishedOption> {
        let best = self.best(|option| option.ours)?.ours;
        let simplicity = |option: &PublishedOption| SIMPLEST_FIRST.iter().position(|name| *name == option.scheduler);
        let near = self.options.iter().filter(|option| self.worse_by(best, option.ours) <= RIGHT);
        near.min_by_key(|option| simplicity(option).unwrap_or(SIMPLEST_FIRST.len()))
    }

    fn worse_by(&self, best: f64, other: f64) -> f64 {
        if self.higher_is_better { best / other - 1.0 } else { other / best - 1.0 }
    }

    fn regret_of(&self, published: f64) -> f64 {
        let best = self.best(|option| option.published).map_or(published, |best| best.published);
        self.worse_by(best, published)
    }

    fn best(&self, value: impl Fn(&PublishedOption) -> f64) -> Option<&PublishedOption> {
        let sign = if self.higher_is_better { -1.0 } else { 1.0 };
        self.options.iter().min_by(|a, b| (sign * value(a)).total_cmp(&(sign * value(b))))
    }
}

/// The scheduler of a cell, the rest of its name, and its published figure; None for a cell without a scheduler.
fn split_cell(cell: &Cell) -> Option<(&str, &str, f64)> {
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
    use proptest::prelude::*;

    use super::*;
    use crate::reproduction::Judgement;

    proptest! {
        #[test]
        fn the_simplest_of_those_within_2_percent_is_chosen_and_nothing_that_is_further_behind(
            ours in prop::array::uniform7(0.9..1.1_f64), higher_is_better in any::<bool>(),
        ) {
            let option = |(scheduler, ours): (&&str, &f64)| PublishedOption {
                scheduler: (*scheduler).to_owned(), ours: *ours, published: *ours,
            };
            let options = SIMPLEST_FIRST.iter().zip(&ours).map(option).collect();
            let choice = PublishedChoice { name: String::new(), higher_is_better, options };
            prop_assert!(choice.regret(DecisionRule::OurFigures).unwrap().abs() < 1e-12);
            prop_assert!(choice.regret(DecisionRule::OurFiguresOrSimplest).unwrap() <= RIGHT);
            let chosen = choice.simplest_of_best().unwrap();
            let simpler = choice.options.iter().take_while(|option| option.scheduler != chosen.scheduler);
            prop_assert!(simpler.into_iter().all(|option| choice.regret_of(option.published) > RIGHT));
        }
    }

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
        let simplest = regrets(DecisionRule::OurFiguresOrSimplest);
        assert_eq!(simplest, ours, "none is within 2 % of the others");
        let bfq = regrets(DecisionRule::BfqForLatency);
        assert!(near(bfq[0], 0.01) && bfq[1].is_none() && near(bfq[2], 0.25), "{bfq:?}");
        let score = Score::of(&ours.into_iter().flatten().collect::<Vec<_>>());
        assert_eq!((score.right, score.total), (1, 3));
        assert!((score.mean_regret - 0.42).abs() < 1e-9);
    }
}
