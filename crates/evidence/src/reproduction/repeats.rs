//! Repeats a table's runs until its figures are accurate enough, or up to a maximum.

use hoistway_measure::stats;

use super::Table;
use super::cell::Cell;
use super::runs::{Length, Setting};
use super::sensitivity::Variation;
use hoistway_experiment::Error;
use hoistway_experiment::seeds;

/// Minimum runs for a meaningful confidence interval.
pub(super) const REPEATS_MIN: usize = 3;

/// Relative half-width of a confidence interval below which no more runs are needed.
const NARROW: f64 = 0.01;

/// Runs a table with one seed after the other until the confidence intervals of all its cells are narrow, at most
/// `runs_max` times; once with the published runtime. Returns the means.
pub(super) fn run(
    table: &Table,
    length: Length,
    change: Option<Variation>,
    runs_max: usize,
) -> Result<Vec<Cell>, Error> {
    let runs_max = if length == Length::Published { 1 } else { runs_max };
    let mut runs = Vec::with_capacity(runs_max);
    for seed in seeds(1, runs_max as u32) {
        runs.push((table.run)(Setting { length, change, seed })?);
        let is_narrow = |cell: &Cell| cell.interval.is_none_or(|interval| interval < NARROW);
        if runs.len() >= REPEATS_MIN && means(&runs).iter().all(is_narrow) {
            break;
        }
    }
    Ok(means(&runs))
}

/// Averages the cells of these runs, which all have the same cells.
fn means(runs: &[Vec<Cell>]) -> Vec<Cell> {
    let Some(first) = runs.first() else { return Vec::new() };
    let mean = |(index, cell): (usize, &Cell)| {
        let values: Vec<f64> = runs.iter().map(|cells| cells[index].ours).collect();
        let ours = stats::mean(&values).unwrap_or(cell.ours);
        let interval = stats::half_width(&values).map(|half| half / ours.abs()).filter(|interval| interval.is_finite());
        let mean = Cell { interval, ..Cell::new(&cell.row, &cell.column, ours, cell.published, cell.judgement) };
        let without: Option<Vec<f64>> = runs.iter().map(|cells| cells[index].without).collect();
        match without.as_deref().and_then(stats::mean) {
            Some(without) => mean.beside(without),
            None => mean,
        }
    };
    first.iter().enumerate().map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduction::cell::Judgement;
    use crate::reproduction::{TABLES, Unknown};

    fn table(run: fn(Setting) -> Result<Vec<Cell>, Error>) -> Table {
        const NONE: &[Unknown] = &[];
        Table { unknowns: NONE, run, ..TABLES[0] }
    }

    fn cell(ours: f64) -> Result<Vec<Cell>, Error> {
        Ok(vec![Cell::new("row", "column", ours, Some(100.0), Judgement::Error(0.1))])
    }

    #[test]
    fn identical_results_need_few_repeats_and_scattered_ones_the_maximum() {
        let same = run(&table(|_| cell(104.0)), Length::Settled, None, 9).unwrap();
        assert_eq!((same[0].ours, same[0].interval, same[0].holds), (104.0, Some(0.0), Some(true)));
        // The first seed is 1.
        let scattered = table(|setting| cell(if setting.seed == 1 { 50.0 } else { 150.0 }));
        let cells = run(&scattered, Length::Settled, None, 4).unwrap();
        assert_eq!((cells[0].ours, cells[0].holds), (125.0, Some(false)), "the mean of one and three others");
        assert!(cells[0].interval.is_some_and(|interval| interval > 0.5));
    }

    #[test]
    fn a_run_of_published_length_is_run_once() {
        let once = run(&table(|setting| cell(setting.seed as f64)), Length::Published, None, 9).unwrap();
        assert_eq!((once[0].ours, once[0].interval), (1.0, None));
    }
}
