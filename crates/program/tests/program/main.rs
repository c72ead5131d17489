//! Programs that are inferred from recordings.

mod recordings;
mod replayed;
mod support;
mod tables;
mod worked_example;
