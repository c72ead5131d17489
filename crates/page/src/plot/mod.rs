//! Plots for papers.

mod comparison;
mod front;

use hoistway_answer::ResultsDocument;
use hoistway_answer::tuning::Tuning;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::{FontStyle, register_font};

/// Pixels of a plot.
const SIZE: (u32, u32) = (1200, 560);
/// Colours that can be told apart without seeing red or green, in print too.
const COLOURS: [RGBColor; 8] = [
    RGBColor(0x0b, 0x62, 0xc4),
    RGBColor(0xc2, 0x41, 0x0c),
    RGBColor(0x12, 0x80, 0x3c),
    RGBColor(0x8b, 0x3f, 0xb8),
    RGBColor(0xa1, 0x62, 0x07),
    RGBColor(0x0e, 0x7f, 0x88),
    RGBColor(0xc0, 0x26, 0x72),
    RGBColor(0x4b, 0x55, 0x63),
];
/// Pixels of an axis with latencies.
const Y_LABELS: u32 = 86;
const FONT: &str = "sans-serif";

/// Why a document cannot be plotted.
#[derive(Debug, thiserror::Error)]
pub enum PlotError {
    /// There is no figure to be judged.
    #[error("there was no I/O to be plotted")]
    NoFocus,
    /// There is no setting with all figures.
    #[error("no setting has the figures of the objective")]
    NoSetting,
    /// It cannot be drawn.
    #[error("the plot cannot be drawn: {0}")]
    Drawing(String),
}

fn failed(error: impl std::fmt::Display) -> PlotError {
    PlotError::Drawing(error.to_string())
}

/// What is drawn.
trait Picture {
    fn draw<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>) -> Result<(), PlotError>;
}

/// The plot as SVG: the figure by which the document is judged, with 95 % intervals, and the latencies of these I/Os by percentile.
///
/// # Errors
/// If there was no I/O.
pub fn svg(document: &ResultsDocument) -> Result<String, PlotError> {
    svg_of(document)
}

/// The same as PNG. Its letters are Latin, Greek and Cyrillic ones.
///
/// # Errors
/// If there was no I/O.
pub fn png(document: &ResultsDocument) -> Result<Vec<u8>, PlotError> {
    png_of(document)
}

/// The settings of a search as SVG: by the figure that is searched for and that of the first condition, with the front.
///
/// # Errors
/// If no setting has the figures.
pub fn tuned_svg(tuning: &Tuning) -> Result<String, PlotError> {
    svg_of(tuning)
}

/// The same as PNG.
///
/// # Errors
/// If no setting has the figures.
pub fn tuned_png(tuning: &Tuning) -> Result<Vec<u8>, PlotError> {
    png_of(tuning)
}

fn svg_of(picture: &impl Picture) -> Result<String, PlotError> {
    let mut text = String::new();
    draw(picture, SVGBackend::with_string(&mut text, SIZE))?;
    Ok(text)
}

fn png_of(picture: &impl Picture) -> Result<Vec<u8>, PlotError> {
    let (width, height) = SIZE;
    let mut pixels = vec![0; (width * height * 3) as usize];
    draw(picture, BitMapBackend::with_buffer(&mut pixels, SIZE))?;
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Rgb);
    let mut writer = encoder.write_header().map_err(failed)?;
    writer.write_image_data(&pixels).map_err(failed)?;
    writer.finish().map_err(failed)?;
    Ok(bytes)
}

fn draw<B: DrawingBackend>(picture: &impl Picture, backend: B) -> Result<(), PlotError> {
    let font = include_bytes!("../../assets/font/Roboto-Regular-subset.ttf");
    register_font(FONT, FontStyle::Normal, font).map_err(|_| failed("the font is damaged"))?;
    let area = backend.into_drawing_area();
    area.fill(&WHITE).map_err(failed)?;
    picture.draw(&area)?;
    area.present().map_err(failed)
}
