//! Runs the binary as a user does: what it prints, what it writes, what it refuses, and how it ends.

mod advice;
mod apply;
mod bombs;
mod browser;
mod calibrate;
mod compare;
mod devices;
mod diff;
mod ending;
mod explain;
mod fio_files;
mod fio_lines;
mod fio_readers;
#[path = "../../../fio/tests/fio_run/mod.rs"]
mod fio_run;
mod fleet;
mod formats;
mod founding_texts;
mod guests;
mod host;
#[path = "../../../linux/tests/support/mod.rs"]
mod host_tree;
mod interrupts;
mod loads;
#[path = "../../../linux/tests/support/loop_device.rs"]
mod loop_device;
mod overwriting;
mod printable;
mod programs;
mod pty;
mod queues;
mod recordings;
mod recordings_out;
mod refusals;
mod repeats;
mod report;
mod run;
mod scenarios;
mod schedulers;
mod seen_device;
mod self_replay;
mod server;
mod shells;
mod small_points;
mod stacks;
mod support;
mod terminal;
mod trace;
mod tune;
mod tuned;
mod vary;
mod verdict;
mod writes;
