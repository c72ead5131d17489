//! The cells of one job's table, whatever it is drawn with.

use hoistway_results::Direction;
use hoistway_results::comparison::{Comparison, DirectionComparison, JobComparison};

use crate::colour::{Mark, marks};
use crate::columns::Column;

/// The cells of a table.
pub(crate) struct Grid {
    /// Of the columns of figures.
    pub(crate) headers: Vec<String>,
    pub(crate) lines: Vec<GridLine>,
}

/// A line of a table: one direction under one variant.
pub(crate) struct GridLine {
    pub(crate) label: String,
    pub(crate) direction: Direction,
    /// What the columns of figures show, and whether it is best or worst.
    pub(crate) cells: Vec<(String, Option<Mark>)>,
}

impl Grid {
    pub(crate) fn new(comparison: &Comparison<'_>, job: &JobComparison, columns: &[Column], ascii: bool) -> Self {
        let baseline = comparison.variants.get(comparison.baseline).map_or("", |variant| variant.scheduler());
        Self {
            headers: columns.iter().map(|column| column.header(baseline)).collect(),
            lines: job.directions.iter().flat_map(|direction| lines(comparison, direction, columns, ascii)).collect(),
        }
    }
}

fn lines(
    comparison: &Comparison<'_>,
    direction: &DirectionComparison,
    columns: &[Column],
    ascii: bool,
) -> Vec<GridLine> {
    let baseline = direction.row(comparison.baseline);
    let line = |variant: usize| GridLine {
        label: comparison.variants[variant].label.clone(),
        direction: direction.direction,
        cells: Vec::with_capacity(columns.len()),
    };
    let mut lines: Vec<GridLine> = direction.rows.iter().map(|row| line(row.variant)).collect();
    for column in columns {
        let texts: Vec<String> = direction.rows.iter().map(|row| column.cell(row, baseline, ascii)).collect();
        let marks = column_marks(direction, *column, &texts);
        for ((line, text), mark) in lines.iter_mut().zip(texts).zip(marks) {
            line.cells.push((text, mark));
        }
    }
    lines
}

/// Best and worst of a column. Over repeats: beyond the noise.
fn column_marks(direction: &DirectionComparison, column: Column, texts: &[String]) -> Vec<Option<Mark>> {
    let rows = &direction.rows;
    let Some(figure) = column.judged() else { return vec![None; rows.len()] };
    if rows.iter().all(|row| row.samples().len() == 1) {
        let values: Vec<f64> = rows.iter().map(|row| row.estimate(figure).mean).collect();
        return marks(&values, texts, figure.higher_is_better());
    }
    let ranking = direction.ranking(figure);
    let mark = |index: usize| match index {
        index if ranking.is_best(index) => Some(Mark::Best),
        index if ranking.is_worst(index) => Some(Mark::Worst),
        _ => None,
    };
    (0..rows.len()).map(mark).collect()
}
