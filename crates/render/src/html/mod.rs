//! Pages: [`html()`] makes a self-contained page of a result document, with charts and a timeline, and [`tuned_html`] one of a search.
//!
//! Decisions (verdicts, intervals, the best variant) come from `hoistway_answer`, and words and tables from `crate::text`, so
//! that a page says the same as the terminal output. The page loads nothing: scripts, styles and the chart library (uPlot) are
//! included.

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
