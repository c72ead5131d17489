//! Device models in virtual time.

mod model;

pub use model::{Command, Completion, Device, Refusal, Schedule, Shape};
