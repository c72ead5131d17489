//! Result documents and their evaluation: statistics, verdicts, diffs and advice. All of it is data; no clock, no I/O.
//!
//! Used by: crates `experiment`, `render`, `hoistway`, `real`, `evidence`.
//! Tests: `crates/answer/src/` (in its files), `crates/answer/tests/`.
//!
//! The result document ([`document`]) is the stored form, with everything needed to repeat its runs. An [`Analysis`] groups its
//! figures into variants, rows and differences. [`verdict`], [`tuning`], [`diff`] and [`advice`] are derived from it.

pub mod advice;
pub mod analysis;
mod check;
mod condition;
pub mod diff;
pub mod document;
mod figure;
mod figure_name;
mod focus;
mod objective;
pub mod rows;
pub mod tuning;
pub mod verdict;

pub use analysis::Analysis;
pub use check::Contradiction;
pub use condition::{BreakingError, Condition, ConditionError, Limit, Relation};
pub use document::ResultsDocument;
pub use figure::Figure;
pub use figure_name::{FigureName, FigureNameError, quoted};
pub use focus::WeightedFigure;
pub use objective::{Goal, Objective, ObjectiveError};
pub use verdict::judge;
