//! Recordings of block I/O in the formats of others.

mod flights;
mod readers;
mod refusals;
mod support;
