//! Infers from a recording the program that made it, which does not change under another scheduler.
//!
//! Used by: crates `experiment`, `hoistway`, `evidence`.
//! Tests: `crates/program/src/` (in its files), `crates/program/tests/`.
//!
//! Recorded arrival times depend on how fast the recorded scheduler and device completed I/Os. [`Program::infer`] finds the
//! cause: streams of I/Os, how many I/Os each keeps outstanding, its think time after a completion, and which streams wait for
//! each other; with the evidence, and with alternatives where the recording does not decide.
//!
//! The steps of a program are in a temporary file, sorted by stream, so that memory does not grow with the recording.
//!
//! A task that reads again as soon as its last read is complete is a closed loop:
//! ```
//! use std::io::Cursor;
//!
//! use hoistway_program::{Class, Options, Program};
//! use hoistway_trace::block::{Input, Recording};
//!
//! let mut text = String::new();
//! for read in 0..7 {
//!     let (begin_ms, end_ms, sector) = (2 * read, 2 * read + 1, 1000 * read);
//!     for (action, ms, task) in [('Q', begin_ms, "cat"), ('G', begin_ms, "cat"), ('D', begin_ms, "cat"), ('C', end_ms, "0")] {
//!         text += &format!("  8,0 0 1 0.{ms:03}000000 1 {action} R {sector} + 8 [{task}]\n");
//!     }
//! }
//! let input = Input::new("example", Box::new(Cursor::new(text.into_bytes()))).unwrap();
//! let mut recording = Recording::read(input).unwrap();
//! let options = Options { ios_min: 1, ..Options::default() };
//! let program = Program::infer(&mut recording, "example", &options).unwrap();
//! assert_eq!(program.streams[0].class, Class::Closed);
//! ```

mod activity;
mod alternatives;
mod assign;
mod class;
mod describe;
mod gather;
mod histogram;
mod infer;
mod log;
mod replay;
mod roles;
mod served;
mod steps;
mod stream;
mod ticks;
mod timeline;
mod track;
mod waits;

pub use alternatives::{Alternative, Change, DepthBound};
pub use class::{Class, Evidence};
pub use describe::{Description, Size, Table, Times};
pub use infer::{NAME_DEVICE, NO_DEVICE, Options, Program, RequestedDevice, Stretch};
pub use replay::{Mode, ReplayOptions};
pub use served::ServedRequest;
pub use steps::{Plug, Step, Steps};
pub use stream::{Kind, Latency, Stream, Wait};
pub use ticks::CoarseClock;
pub use timeline::{Done, Slice, StreamSlice};
