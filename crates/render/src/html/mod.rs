//! What a result document looks like: [`html()`] makes one self-contained page of it, with charts and a timeline, and [`tuned_html`] one of
//! a search.
//!
//! What is decided (verdicts, intervals, what is best) comes from `hoistway_answer`, and words and tables from
//! `crate::text`, so that a page says what a terminal says. Nothing is read, and nothing fetched: scripts, styles and the chart
//! library (uPlot) are parts of the page.

mod curves;
mod data;
mod fairness;
mod front;
mod page;
mod template;
mod timeline;
mod tuned;

pub use page::html;
pub use tuned::tuned_html;
