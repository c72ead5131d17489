//! Recordings of block I/O on real machines: all formats are converted to the same events.
//!
//! Used by: `events`; crates `program`, `hoistway`, `linux`, `experiment`, `evidence`.
//! Tests: `crates/trace/src/block/iolog.rs`, `crates/trace/src/block/sorter.rs`, `crates/trace/tests/block/written.rs`.
//!
//! [`Recording`] opens a path and yields [`Event`]s in the order of time; [`Flights`] assembles them into I/Os.

mod biosnoop;
mod blkparse;
mod blktrace;
mod chrome;
mod detect;
mod error;
mod event;
mod flights;
mod header;
mod input;
mod intervals;
mod iolog;
mod lanes;
mod names;
mod recording;
mod set;
mod sorter;
mod table;
mod tail;
mod text;
mod tracefs_text;
mod vscsi;
mod writer;

pub use chrome::ChromeWriter;
pub use detect::{Candidate, Format, candidates};
pub use error::{Losses, Position, ReadError};
pub use event::{Action, Device, Event, Flags, Payload};
pub use flights::{Counts, Flight, Flights, Step};
pub use input::Input;
pub use intervals::{Interval, Intervals, Spread, Spreads};
pub use iolog::{IologAction, IologVersion, IologWriter};
pub use names::Names;
pub use recording::Recording;
pub use table::Columns;
pub use writer::{BlktraceWriter, CpuFile};
