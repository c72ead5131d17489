//! The binary from outside: what it prints, what it writes, what it refuses, and how it ends.

mod advice;
mod browser;
mod calibrate;
mod compare;
mod conform;
mod devices;
mod diff;
mod ending;
mod explain;
mod fio_files;
mod fio_lines;
mod fio_readers;
#[path = "../../../fio/tests/fio_run/mod.rs"]
mod fio_run;
mod formats;
mod guests;
mod loads;
mod overwriting;
mod printable;
mod queues;
mod refusals;
mod repeats;
mod report;
mod reproduce;
mod run;
mod scenarios;
mod schedulers;
mod shells;
mod support;
mod terminal;
mod trace;
mod tune;
mod vary;
mod verdict;
mod writes;
