//! Infers programs from recordings.

mod recordings;
mod replayed;
mod support;
mod tables;
mod worked_example;
