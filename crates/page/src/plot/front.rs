//! The settings of a search as points, and the front of those that no other beats.

use std::ops::Range;

use hoistway_report::{figure_value, tuning_round};
use hoistway_results::Figure;
use hoistway_results::tuning::Tuning;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{COLOURS, FONT, Picture, PlotError, Y_LABELS, failed};
use crate::front::{Front, Point};

/// Pixels around a point for its name.
const BESIDE: i32 = 12;

impl Picture for Tuning {
    fn draw<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>) -> Result<(), PlotError> {
        let front = Front::of(self);
        let placed = Placed::of(&front);
        let title = self.rounds.first().map(tuning_round).unwrap_or_default();
        placed.draw(area, &title)
    }
}

/// Points at their places.
struct Placed<'a> {
    points: Vec<(f64, f64, &'a Point)>,
    across: (&'a str, Option<Figure>),
    up: (&'a str, Figure),
}

impl<'a> Placed<'a> {
    /// By the figure of the first condition, or, without one, in their order.
    fn of(front: &'a Front) -> Self {
        let at = |point: &'a Point| {
            let x = if front.figures.len() > 1 { point.values[1]? } else { point.place as f64 };
            Some((x, point.values[0]?, point))
        };
        let mut points: Vec<(f64, f64, &Point)> = front.points.iter().filter_map(at).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let across = front.figures.get(1).map(|axis| (&*axis.label, Some(axis.figure)));
        Placed {
            points,
            across: across.unwrap_or(("settings, the best first", None)),
            up: (&front.figures[0].label, front.figures[0].figure),
        }
    }

    fn draw<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>, title: &str) -> Result<(), PlotError> {
        if self.points.is_empty() {
            return Err(PlotError::NoSetting);
        }
        let range = |of: fn(&(f64, f64, &Point)) -> f64| around(self.points.iter().map(of));
        let mut chart = ChartBuilder::on(area)
            .caption(title, (FONT, 20))
            .margin(16)
            .margin_right(36)
            .x_label_area_size(56)
            .y_label_area_size(Y_LABELS + 24)
            .build_cartesian_2d(range(|point| point.0), range(|point| point.1))
            .map_err(failed)?;
        let x_text = |value: &f64| match self.across.1 {
            Some(figure) => figure_value(figure, *value),
            None => format!("{value:.0}"),
        };
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .x_desc(self.across.0)
            .y_desc(self.up.0)
            .x_labels(8)
            .x_label_formatter(&x_text)
            .y_label_formatter(&|value| figure_value(self.up.1, *value))
            .label_style((FONT, 15))
            .draw()
            .map_err(failed)?;
        let of = |is: fn(&Point) -> bool| {
            self.points.iter().filter(move |point| is(point.2)).map(|(x, y, _)| (*x, *y)).collect::<Vec<_>>()
        };
        // What joins points is above the others, and rings are above all.
        let kinds: [(&str, RGBColor, fn(&Point) -> bool); 3] = [
            ("tried", COLOURS[7], |point| point.holds),
            ("misses a condition", COLOURS[1], |point| !point.holds),
            ("on the front", COLOURS[0], |point| point.on_front),
        ];
        for (name, colour, is) in kinds.into_iter().filter(|(.., is)| !of(*is).is_empty()) {
            let dots = of(is).into_iter().map(|at| Circle::new(at, 4, colour.filled()));
            let drawn = chart.draw_series(dots).map_err(failed)?;
            drawn.label(name).legend(move |(x, y)| Circle::new((x + 9, y), 4, colour.filled()));
        }
        if self.across.1.is_some() {
            let line = LineSeries::new(of(|point| point.on_front), COLOURS[0].stroke_width(2));
            chart.draw_series(line).map_err(failed)?;
        }
        let (width, _) = area.dim_in_pixel();
        let named: [(&str, RGBColor, fn(&Point) -> bool); 2] =
            [("the default", COLOURS[3], |point| point.is_default), ("recommended", COLOURS[2], |point| point.is_best)];
        for (name, colour, is) in named {
            for (x, y, point) in self.points.iter().filter(|point| is(point.2)) {
                let ring = Circle::new((*x, *y), 9, colour.stroke_width(3));
                let drawn = chart.draw_series([ring]).map_err(failed)?;
                drawn.label(name).legend(move |(x, y)| Circle::new((x + 9, y), 6, colour.stroke_width(3)));
                // Names stand where there is room, that of the default below, as both may be one point.
                let (across, down) = chart.backend_coord(&(*x, *y));
                let is_left = across < width as i32 / 2;
                let (side, across) =
                    if is_left { (HPos::Left, across + BESIDE) } else { (HPos::Right, across - BESIDE) };
                let (height, down) =
                    if point.is_best && !point.is_default { (VPos::Bottom, down - 4) } else { (VPos::Top, down + 4) };
                let style = TextStyle::from((FONT, 15).into_font()).color(&colour).pos(Pos::new(side, height));
                area.draw(&Text::new(point.setting.clone(), (across, down), style)).map_err(failed)?;
            }
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperRight)
            .background_style(WHITE.mix(0.8))
            .border_style(BLACK.mix(0.3))
            .label_font((FONT, 15))
            .draw()
            .map_err(failed)
    }
}

/// A range that all values are in, with some room.
fn around(values: impl Iterator<Item = f64> + Clone) -> Range<f64> {
    let low = values.clone().fold(f64::INFINITY, f64::min);
    let high = values.fold(f64::NEG_INFINITY, f64::max);
    let room = if high > low { (high - low) * 0.1 } else { high.abs().max(1.0) * 0.1 };
    // Nothing that is measured is below nothing.
    (low - room).max(0.0)..high + room
}
