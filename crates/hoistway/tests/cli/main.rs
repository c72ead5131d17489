//! The binary from outside: what it prints, what it writes, what it refuses, and how it ends.

mod compare;
mod conform;
mod devices;
mod ending;
mod explain;
mod refusals;
mod schedulers;
mod support;
mod terminal;
mod trace;
