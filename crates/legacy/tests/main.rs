//! Random loads over whole queues, and over policies alone, as one program.

mod cases;
mod policies;
mod properties;
mod support;
