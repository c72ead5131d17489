//! The subcommands, one file each.

pub(crate) mod compare;
pub(crate) mod conform;
pub(crate) mod devices;
mod io_max;
mod queue_files;
