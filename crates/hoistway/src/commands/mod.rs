//! The subcommands, one file each.

pub(crate) mod compare;
pub(crate) mod conform;
pub(crate) mod devices;
pub(crate) mod explain;
mod io_max;
mod queue_files;
pub(crate) mod schedulers;
pub(crate) mod why;
