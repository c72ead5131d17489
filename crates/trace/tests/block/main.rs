//! Recordings of block I/O in the formats of others.

mod btt;
mod flights;
mod readers;
mod refusals;
mod support;
mod tables;
mod vscsi;
mod written;
