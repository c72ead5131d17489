//! The figure in focus by variant, and the latency distribution behind it.

use std::ops::Range;

use hoistway_answer::analysis::{Analysis, Estimate, JobAnalysis, OperationAnalysis};
use hoistway_answer::verdict::verdicts;
use hoistway_answer::{Figure, FigureName, ResultsDocument};
use hoistway_report::{figure_in_words, figure_value};
use plotters::coord::Shift;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, ValueFormatter};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{COLOURS, FONT, Picture, PlotError, SIZE, Y_LABELS, failed};
use crate::curves::Curve;

/// Lines of names under bars.
const LINES_MAX: u32 = 4;
/// Pixels of a letter of a label, on average.
const LETTER_WIDTH: u32 = 8;

impl Picture for ResultsDocument {
    fn draw<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>) -> Result<(), PlotError> {
        let comparison = Analysis::of(self);
        let plot = Plot::of(self, &comparison)?;
        let (left, right) = area.split_horizontally(SIZE.0 / 2);
        plot.bars(&left)?;
        plot.curves(&right)
    }
}

/// What is drawn.
struct Plot<'a> {
    comparison: &'a Analysis<'a>,
    name: FigureName,
    job: &'a JobAnalysis,
    operation: &'a OperationAnalysis,
}

impl<'a> Plot<'a> {
    fn of(document: &ResultsDocument, comparison: &'a Analysis<'a>) -> Result<Self, PlotError> {
        let verdicts = verdicts(document);
        let name = verdicts.first().and_then(|verdict| verdict.focus.first()).ok_or(PlotError::NoFocus)?.figure.clone();
        let (job, operation) = comparison.find(&name).map_err(|_| PlotError::NoFocus)?;
        Ok(Plot { comparison, name, job, operation })
    }

    fn label(&self, row: usize) -> &str {
        &self.comparison.variants[self.operation.rows[row].variant].label
    }

    /// A bar for each variant that has the figure, with its interval.
    fn bars<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>) -> Result<(), PlotError> {
        let figure = self.name.figure;
        let rows = &self.operation.rows;
        let estimates: Vec<Estimate> = rows.iter().map(|row| row.estimate(figure)).collect();
        let top = |one: &Estimate| one.mean + one.half_width.unwrap_or(0.0);
        let max = estimates.iter().map(top).fold(0.0, f64::max).max(f64::MIN_POSITIVE) * 1.12;
        // Names that would touch each other stand in several lines.
        let longest = (0..rows.len()).map(|row| self.label(row).chars().count()).max().unwrap_or(0) as u32;
        let lines =
            (longest * LETTER_WIDTH * rows.len() as u32).div_ceil(SIZE.0 / 2 - Y_LABELS - 32).clamp(1, LINES_MAX);
        let mut chart = ChartBuilder::on(area)
            .caption(figure_in_words(&self.name), (FONT, 20))
            .margin(16)
            .x_label_area_size(20 + 20 * lines)
            .y_label_area_size(Y_LABELS)
            .build_cartesian_2d((0..rows.len() as i32 - 1).into_segmented(), 0.0..max)
            .map_err(failed)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(TRANSPARENT)
            // Drawn below: these would touch each other.
            .x_labels(rows.len())
            .x_label_formatter(&|_| String::new())
            .y_label_formatter(&|value| figure_value(figure, *value))
            .label_style((FONT, 15))
            .draw()
            .map_err(failed)?;
        let (across, down) = chart.plotting_area().get_pixel_range();
        let below = TextStyle::from((FONT, 15).into_font()).pos(Pos::new(HPos::Center, VPos::Top));
        for row in 0..rows.len() as i32 {
            let middle = across.start + (across.end - across.start) * (2 * row + 1) / (2 * rows.len() as i32);
            let line = row % lines as i32;
            area.draw(&Text::new(self.label(row as usize), (middle, down.end + 8 + 20 * line), below.clone()))
                .map_err(failed)?;
        }
        for (estimate, row) in estimates.iter().zip(0..) {
            let colour = COLOURS[rows[row as usize].variant % COLOURS.len()];
            let corners = [(SegmentValue::Exact(row), 0.0), (SegmentValue::Exact(row + 1), estimate.mean)];
            let mut bar = Rectangle::new(corners, colour.mix(0.75).filled());
            bar.set_margin(0, 0, 14, 14);
            chart.draw_series([bar]).map_err(failed)?;
            if let Some(half) = estimate.half_width {
                let at = |value: f64| (SegmentValue::CenterOf(row), value.max(0.0));
                let interval =
                    PathElement::new([at(estimate.mean - half), at(estimate.mean + half)], BLACK.stroke_width(2));
                chart.draw_series([interval]).map_err(failed)?;
            }
        }
        Ok(())
    }

    /// A line for each variant: latencies by how few I/Os are slower.
    fn curves<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>) -> Result<(), PlotError> {
        let of = |variant| Curve::of(&self.comparison.variants[variant], self.job.job, self.operation.operation);
        let curves: Vec<(usize, Curve)> =
            self.operation.rows.iter().filter_map(|row| Some((row.variant, of(row.variant)?))).collect();
        let points = |curve: &Curve| -> Vec<(f64, f64)> {
            curve.percent.iter().map(|percent| nines(*percent)).zip(curve.lat_ns.iter().map(|ns| ns.max(1.0))).collect()
        };
        let all: Vec<(f64, f64)> = curves.iter().flat_map(|(_, curve)| points(curve)).collect();
        let end = all.iter().map(|(nines, _)| *nines).fold(1.0, f64::max);
        let mut chart = ChartBuilder::on(area)
            .caption(
                format!("{} {}: total latency by percentile", self.name.job, self.name.operation.name()),
                (FONT, 20),
            )
            .margin(16)
            .margin_right(36)
            .x_label_area_size(40)
            .y_label_area_size(Y_LABELS)
            .build_cartesian_2d(Nines(end), around(&all).log_scale())
            .map_err(failed)?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .y_label_formatter(&|ns| figure_value(Figure::Mean, *ns))
            .label_style((FONT, 15))
            .draw()
            .map_err(failed)?;
        for (variant, curve) in &curves {
            let colour = COLOURS[variant % COLOURS.len()];
            chart
                .draw_series(LineSeries::new(points(curve), colour.stroke_width(2)))
                .map_err(failed)?
                .label(&self.comparison.variants[*variant].label)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(3)));
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .background_style(WHITE.mix(0.8))
            .border_style(BLACK.mix(0.3))
            .label_font((FONT, 15))
            .draw()
            .map_err(failed)
    }
}

/// How many nines: 1 of p90, 2 of p99.
fn nines(percent: f64) -> f64 {
    -(1.0 - percent / 100.0).log10()
}

/// The axis of percentiles, up to so many nines.
struct Nines(f64);

impl Ranged for Nines {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (begin, end): (i32, i32)) -> i32 {
        begin + (f64::from(end - begin) * value / self.0).round() as i32
    }

    /// Those that people name.
    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        [0.0, 50.0, 90.0, 99.0, 99.9, 99.99].into_iter().map(nines).filter(|nines| *nines <= self.0 + 1e-9).collect()
    }

    fn range(&self) -> Range<f64> {
        0.0..self.0
    }
}

impl ValueFormatter<f64> for Nines {
    fn format(nines: &f64) -> String {
        let percent = 100.0 - 100.0 * 10_f64.powf(-nines);
        format!("p{}", (percent * 1e3).round() / 1e3)
    }
}

/// A range that all latencies are in.
fn around(points: &[(f64, f64)]) -> Range<f64> {
    let low = points.iter().map(|(_, ns)| *ns).fold(f64::INFINITY, f64::min);
    let high = points.iter().map(|(_, ns)| *ns).fold(1.0, f64::max);
    low.min(high) * 0.8..high * 1.25
}
