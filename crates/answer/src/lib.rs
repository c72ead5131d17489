//! From the figures of runs to an answer: data first, no clock, no I/O.
//!
//! The result document ([`document`]) is what is stored, with everything needed to repeat its runs. [`Analysis`] is what its
//! figures come to: variants, rows and differences. [`verdict`], [`tuning`], [`diff`] and [`advice`] follow from that.

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
