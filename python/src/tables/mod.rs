//! The contents of tables: figures and intervals of a document, figures of searches and sweeps, I/Os of logs, events of a trace.

mod events;
mod figures;
mod ios;
mod keys;
mod search;
mod sweep;

pub(crate) use events::Events;
pub(crate) use figures::{figures, intervals};
pub(crate) use ios::{RunLog, ios};
pub(crate) use search::figures_of_search;
pub(crate) use sweep::Rows;
