//! The binary from outside: what it prints, what it writes, what it refuses, and how it ends.

mod compare;
mod conform;
mod devices;
mod ending;
mod refusals;
mod support;
mod terminal;
