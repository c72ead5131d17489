//! HTML pages: [`html()`] renders a result document as a self-contained page with charts and a timeline, [`tuned_html`] a search.
//!
//! Used by: crate `hoistway`.
//! Tests: `crates/hoistway/tests/cli/report.rs`, `crates/render/tests/refuted.rs`.
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
