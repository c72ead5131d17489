//! Result documents and their evaluation: statistics, verdicts, diffs and advice. All of it is data; no clock, no I/O.
//!
//! Used by: crates `experiment`, `render`, `hoistway`, `evidence`.
//! Tests: `crates/answer/src/` (in its files), `crates/answer/tests/`.
//!
//! The result document ([`document`]) is the stored form, with everything needed to repeat its runs. An [`Analysis`] groups its
//! figures into variants, rows and differences. [`verdict`], [`tuning`], [`diff`] and [`advice`] are derived from it.
//!
//! ```no_run
//! use hoistway_answer::{Analysis, Condition, ResultsDocument};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let document = ResultsDocument::from_json(&std::fs::read_to_string("results.json")?)?;
//! let analysis = Analysis::of(&document);
//! for (scheduler, latency) in analysis.figure(&"reader:read:p99".parse()?)? {
//!     println!("{scheduler}: {:.1} ms", latency.mean / 1e6);
//! }
//! let limit: Condition = "reader:read:p99 > 2ms".parse()?;
//! println!("the limit is about {}", limit.figure);
//! # Ok(())
//! # }
//! ```

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
pub mod verification;

pub use analysis::Analysis;
pub use check::Contradiction;
pub use condition::{BreakingError, Condition, ConditionError, Limit, Relation};
pub use document::ResultsDocument;
pub use figure::Figure;
pub use figure_name::{FigureName, FigureNameError, quoted};
pub use focus::WeightedFigure;
pub use objective::{Goal, Objective, ObjectiveError};
pub use verdict::judge;
