//! Records the I/O of a block device through tracefs.
//!
//! Used by: crates `hoistway`, `experiment`.
//! Tests: `crates/linux/src/record/` (in its files), `crates/hoistway/tests/record/`.
//!
//! A [`Recorder`] creates a tracefs instance with the block events of one device. [`Recorder::start`] starts tracing, and
//! [`Recording::run`] writes events until the end in the format of blktrace, with a [`RecordedHost`] next to these files.
//! The instance is always removed; if the process is killed, the next recording removes it.

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
