//! The subcommands, one file each.

pub(crate) mod apply;
pub(crate) mod calibrate;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod devices;
pub(crate) mod diff;
pub(crate) mod explain;
pub(crate) mod fio;
pub(crate) mod host;
pub(crate) mod hosts;
pub(crate) mod man;
pub(crate) mod merge;
pub(crate) mod options;
pub(crate) mod outputs;
pub(crate) mod programs;
pub(crate) mod record;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod scenarios;
pub(crate) mod schedulers;
pub(crate) mod sweep;
pub(crate) mod target;
pub(crate) mod trace;
pub(crate) mod tune;
pub(crate) mod verify;
pub(crate) mod why;
