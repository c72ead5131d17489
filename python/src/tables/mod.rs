//! What goes into tables: figures and intervals of a document, I/Os of logs, events of a trace.

mod events;
mod figures;
mod ios;
mod keys;

pub(crate) use events::Events;
pub(crate) use figures::{figures, intervals};
pub(crate) use ios::{RunLog, ios};
