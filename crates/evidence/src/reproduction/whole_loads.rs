//! Choices by whole loads: what all jobs of a table have, as a verdict weighs it, instead of one figure of one job.

use std::collections::BTreeMap;

use super::decisions::{PublishedChoice, PublishedOption};

/// Figures of a job that together are a load's.
const RATE: &str = "IOPS";
const WAIT: &str = "mean ms";

/// A simulated figure and a published one.
type OursAndPublished = [f64; 2];

/// The choices of one table with one choice in the place of those that name a rate and a wait of each job. Its figure is the geometric mean
/// over the jobs: half of a job is its I/Os a second, and half its mean latency, both as geometric means over its reads and writes. A mean
/// over all I/Os of a job would fall when each of its figures improves, but those of its slower direction most.
#[must_use]
pub fn of_whole_load(table: &str, choices: Vec<PublishedChoice>) -> Vec<PublishedChoice> {
    let (of_jobs, others): (Vec<_>, Vec<_>) =
        choices.into_iter().partition(|choice| parts(table, &choice.name).is_some());
    let mut schedulers: Vec<String> = Vec::new();
    for option in of_jobs.iter().flat_map(|choice| &choice.options) {
        if !schedulers.contains(&option.scheduler) {
            schedulers.push(option.scheduler.clone());
        }
    }
    let option = |scheduler: String| {
        let [ours, published] = score(table, &of_jobs, &scheduler)?;
        Some(PublishedOption { scheduler, ours, published })
    };
    let options: Vec<PublishedOption> = schedulers.into_iter().filter_map(option).collect();
    let whole = PublishedChoice { name: format!("{table}: all jobs"), higher_is_better: true, options };
    others.into_iter().chain(Some(whole).filter(|whole| whole.options.len() > 1)).collect()
}

/// Job, operation and figure of a choice's name: `habr-hdd: writers, write, IOPS`.
fn parts<'a>(table: &str, name: &'a str) -> Option<[&'a str; 3]> {
    let column = name.strip_prefix(table)?.strip_prefix(": ")?;
    let mut parts = column.splitn(3, ", ");
    let parts = [parts.next()?, parts.next()?, parts.next()?];
    [RATE, WAIT].contains(&parts[2]).then_some(parts)
}

/// How well a scheduler serves all jobs; None if a figure is missing.
fn score(table: &str, choices: &[PublishedChoice], scheduler: &str) -> Option<OursAndPublished> {
    // Of each job, by its operation: the rate and the wait.
    let mut jobs: BTreeMap<&str, BTreeMap<&str, [OursAndPublished; 2]>> = BTreeMap::new();
    for choice in choices {
        let [job, operation, figure] = parts(table, &choice.name)?;
        let option = choice.options.iter().find(|option| option.scheduler == scheduler)?;
        let figures = jobs.entry(job).or_default().entry(operation).or_insert([[f64::NAN; 2]; 2]);
        figures[usize::from(figure == WAIT)] = [option.ours, option.published];
    }
    let score_of_side = |side: usize| {
        let job_score = |operations: &BTreeMap<&str, [OursAndPublished; 2]>| {
            let of_operation = |[rate, wait]: &[OursAndPublished; 2]| 0.5 * rate[side].ln() - 0.5 * wait[side].ln();
            operations.values().map(of_operation).sum::<f64>() / operations.len() as f64
        };
        (jobs.values().map(job_score).sum::<f64>() / jobs.len() as f64).exp()
    };
    Some([score_of_side(0), score_of_side(1)]).filter(|scores| scores.iter().all(|score| score.is_finite()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::decisions::DecisionRule;
    use super::*;

    const SCHEDULERS: [&str; 3] = ["none", "kyber", "bfq"];
    const COLUMNS: [&str; 6] = [
        "writers, write, IOPS",
        "writers, write, mean ms",
        "reader, write, IOPS",
        "reader, write, mean ms",
        "reader, read, IOPS",
        "reader, read, mean ms",
    ];

    /// Figures by column and scheduler.
    fn table(figures: &[[OursAndPublished; 3]; 6]) -> Vec<PublishedChoice> {
        let choice = |(column, figures): (&str, &[OursAndPublished; 3])| PublishedChoice {
            name: format!("t: {column}"),
            higher_is_better: column.ends_with(RATE),
            options: SCHEDULERS
                .iter()
                .zip(figures)
                .map(|(scheduler, [ours, published])| PublishedOption {
                    scheduler: (*scheduler).to_owned(),
                    ours: *ours,
                    published: *published,
                })
                .collect(),
        };
        COLUMNS.into_iter().zip(figures).map(choice).collect()
    }

    proptest! {
        #[test]
        fn figures_as_published_choose_without_regret_and_one_that_is_better_at_everything_is_chosen(
            published in prop::array::uniform6(prop::array::uniform3(0.1..10.0_f64)), better in 0..3_usize, by in 1.1..3.0_f64,
        ) {
            let figures = published.map(|row| row.map(|figure| [figure, figure]));
            let mut whole = of_whole_load("t", table(&figures));
            prop_assert_eq!(whole.len(), 1);
            prop_assert!(whole.remove(0).regret(DecisionRule::OurFigures).is_some_and(|regret| regret.abs() < 1e-9));
            let mut ahead = figures;
            for (column, row) in COLUMNS.iter().zip(&mut ahead) {
                let rates = column.ends_with(RATE);
                let best = row.iter().map(|figure| figure[0]).fold(if rates { 0.0 } else { f64::MAX }, if rates { f64::max } else { f64::min });
                row[better][0] = if rates { best * by } else { best / by };
            }
            let whole = of_whole_load("t", table(&ahead)).remove(0);
            prop_assert_eq!(whole.best_of_both().map(|(ours, _)| ours), Some(SCHEDULERS[better]));
        }

        #[test]
        fn the_order_of_a_table_changes_nothing(
            published in prop::array::uniform6(prop::array::uniform3([0.1..10.0_f64, 0.1..10.0_f64])),
        ) {
            let one = of_whole_load("t", table(&published)).remove(0);
            let mut reversed = table(&published);
            reversed.reverse();
            let other = of_whole_load("t", reversed).remove(0);
            for (one, other) in one.options.iter().zip(&other.options) {
                prop_assert!((one.ours / other.ours - 1.0).abs() < 1e-9 && (one.published / other.published - 1.0).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn choices_without_jobs_stay_as_they_are() {
        let mut choices = table(&[[[1.0, 2.0]; 3]; 6]);
        choices.truncate(1);
        choices[0].name = "t: processes 256".to_owned();
        assert_eq!(of_whole_load("t", choices.clone()), choices);
    }
}
