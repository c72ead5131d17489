//! Records the I/O of a block device through tracefs.
//!
//! A [`Recorder`] makes an instance of the kernel's tracer, with the block events of one device; [`Recorder::start`] begins, and
//! [`Recording::run`] writes what comes, until the end, as blktrace's files with a [`RecordedHost`] beside them. The instance is
//! removed in every case; if the process is killed, by the next recording.

mod clock;
mod error;
mod events;
mod format;
mod options;
mod output;
mod page;
mod pressure;
mod reader;
mod recorder;
mod sidecar;
mod target;
mod tasks;
mod tracefs;
mod watch;

pub use error::RecordError;
pub use options::{End, Options, Progress};
pub use recorder::{Recorder, Recording, Summary};
pub use sidecar::{ENDING, Mount, RecordedDevice, RecordedHost, RecordedTask};
pub use target::Target;
