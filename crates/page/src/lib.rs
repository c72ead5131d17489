//! What a result document looks like: [`html`] makes one self-contained page of it, with charts and a timeline.
//!
//! What is decided (verdicts, intervals, what is best) comes from `hoistway_results`, and words and tables from
//! `hoistway_report`, so that a page says what a terminal says. Nothing is read, and nothing fetched: scripts, styles and the chart
//! library (uPlot) are parts of the page.

mod curves;
mod data;
mod fairness;
mod html;
mod plot;
mod timeline;

pub use html::html;
pub use plot::{PlotError, png, svg};
