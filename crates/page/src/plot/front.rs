//! The settings of a search as points, and the front of those that no other beats.

use std::ops::Range;

use hoistway_answer::Figure;
use hoistway_answer::tuning::Tuning;
use hoistway_report::{figure_value, tuning_round};
use plotters::coord::Shift;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, ValueFormatter};
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

/// What points are called, how they are drawn, and which they are.
type Kind = (&'static str, RGBColor, fn(&Point) -> bool);

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

    /// Where the fewest points are.
    fn emptiest_corner(&self) -> SeriesLabelPosition {
        let across = Values::around(self.points.iter().map(|point| point.0));
        let up = Values::around(self.points.iter().map(|point| point.1));
        let count = |is_right: bool, is_up: bool| {
            let is_there = |place: f64, is_far: bool| if is_far { place > 0.6 } else { place < 0.4 };
            let is_in =
                |(x, y, _): &&(f64, f64, &Point)| is_there(across.place(*x), is_right) && is_there(up.place(*y), is_up);
            self.points.iter().filter(is_in).count()
        };
        let corners = [
            (count(false, true), SeriesLabelPosition::UpperLeft),
            (count(true, true), SeriesLabelPosition::UpperRight),
            (count(false, false), SeriesLabelPosition::LowerLeft),
            (count(true, false), SeriesLabelPosition::LowerRight),
        ];
        corners
            .into_iter()
            .min_by_key(|(count, _)| *count)
            .map_or(SeriesLabelPosition::UpperRight, |(_, corner)| corner)
    }

    fn draw<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>, title: &str) -> Result<(), PlotError> {
        if self.points.is_empty() {
            return Err(PlotError::NoSetting);
        }
        let of = |of: fn(&(f64, f64, &Point)) -> f64| Values::around(self.points.iter().map(of));
        let mut chart = ChartBuilder::on(area)
            .caption(title, (FONT, 20))
            .margin(16)
            .margin_right(36)
            .x_label_area_size(56)
            .y_label_area_size(Y_LABELS + 24)
            .build_cartesian_2d(of(|point| point.0), of(|point| point.1))
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
            .x_label_formatter(&x_text)
            .y_label_formatter(&|value| figure_value(self.up.1, *value))
            .label_style((FONT, 15))
            .draw()
            .map_err(failed)?;
        let of = |is: fn(&Point) -> bool| {
            self.points.iter().filter(move |point| is(point.2)).map(|(x, y, _)| (*x, *y)).collect::<Vec<_>>()
        };
        // What joins points is above the others, and rings are above all.
        let kinds: [Kind; 3] = [
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
        let ringed = self.points.iter().filter(|(.., point)| point.is_best || point.is_default);
        let highest = ringed.map(|(_, y, _)| *y).fold(f64::NEG_INFINITY, f64::max);
        let named: [Kind; 2] =
            [("the default", COLOURS[3], |point| point.is_default), ("recommended", COLOURS[2], |point| point.is_best)];
        for (name, colour, is) in named {
            for (x, y, point) in self.points.iter().filter(|point| is(point.2)) {
                let ring = Circle::new((*x, *y), 9, colour.stroke_width(3));
                let drawn = chart.draw_series([ring]).map_err(failed)?;
                drawn.label(name).legend(move |(x, y)| Circle::new((x + 9, y), 6, colour.stroke_width(3)));
                if name == "the default" && point.is_best {
                    continue;
                }
                // Names stand where there is room, and not one over the other.
                let (across, down) = chart.backend_coord(&(*x, *y));
                let is_left = across < width as i32 / 2;
                let (side, across) =
                    if is_left { (HPos::Left, across + BESIDE) } else { (HPos::Right, across - BESIDE) };
                let (height, down) = if *y >= highest { (VPos::Bottom, down - 4) } else { (VPos::Top, down + 4) };
                let style = TextStyle::from((FONT, 15).into_font()).color(&colour).pos(Pos::new(side, height));
                area.draw(&Text::new(point.setting.clone(), (across, down), style)).map_err(failed)?;
            }
        }
        let corner = self.emptiest_corner();
        chart
            .configure_series_labels()
            .position(corner)
            .background_style(WHITE.mix(0.8))
            .border_style(BLACK.mix(0.3))
            .label_font((FONT, 15))
            .draw()
            .map_err(failed)
    }
}

/// An axis around values: logarithmic if they differ much.
struct Values {
    low: f64,
    high: f64,
    is_log: bool,
}

/// By what more values differ much.
const WIDE: f64 = 20.0;
/// Labels of an axis, about.
const LABELS: f64 = 6.0;

impl Values {
    fn around(values: impl Iterator<Item = f64> + Clone) -> Values {
        let low = values.clone().fold(f64::INFINITY, f64::min);
        let high = values.fold(f64::NEG_INFINITY, f64::max);
        if low > 0.0 && high / low > WIDE {
            return Values { low: low * 0.8, high: high * 1.25, is_log: true };
        }
        let room = if high > low { (high - low) * 0.1 } else { high.abs().max(1.0) * 0.1 };
        // Nothing that is measured is below nothing.
        Values { low: (low - room).max(0.0), high: high + room, is_log: false }
    }

    /// Where a value lies, from 0 to 1.
    fn place(&self, value: f64) -> f64 {
        match self.is_log {
            true => (value / self.low).ln() / (self.high / self.low).ln(),
            false => (value - self.low) / (self.high - self.low),
        }
    }
}

impl Ranged for Values {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (begin, end): (i32, i32)) -> i32 {
        begin + (f64::from(end - begin) * self.place(*value)).round() as i32
    }

    /// 1, 2 and 5 of each decade of a logarithmic axis, of many only the decades; else round steps.
    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        let is_inside = |value: &f64| (self.low..=self.high).contains(value);
        if self.is_log {
            let decades = self.low.log10().floor() as i32..=self.high.log10().ceil() as i32;
            let factors: &[f64] = if decades.clone().count() > 4 { &[1.0] } else { &[1.0, 2.0, 5.0] };
            let steps = decades.flat_map(|decade| factors.iter().map(move |factor| factor * 10_f64.powi(decade)));
            return steps.filter(is_inside).collect();
        }
        let rough = (self.high - self.low) / LABELS;
        let decade = 10_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * decade).into_iter().find(|step| *step >= rough);
        let step = step.unwrap_or(rough);
        let first = (self.low / step).ceil();
        (0..).map(|number| (first + f64::from(number)) * step).take_while(|value| *value <= self.high).collect()
    }

    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

impl ValueFormatter<f64> for Values {
    fn format(value: &f64) -> String {
        value.to_string()
    }
}
