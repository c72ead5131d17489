//! From a recording to the program that made it: what does not change under another scheduler.
//!
//! A recording says when I/Os arrived because of how the old scheduler and device answered. [`Program::infer`] finds what lies
//! behind: streams of I/Os, how many of them each lets be outstanding, how long it thinks after a completion, and which
//! streams wait for each other; with the evidence, and with the alternatives where the recording does not decide.
//!
//! The steps of a program lie in a temporary file, one run for each stream, so that memory does not grow with the recording.

mod activity;
mod alternatives;
mod class;
mod describe;
mod gather;
mod histogram;
mod infer;
mod log;
mod replay;
mod sort;
mod steps;
mod stream;
mod ticks;
mod timeline;
mod track;
mod waits;

pub use alternatives::{Alternative, Change};
pub use class::{Class, Evidence};
pub use describe::{Description, Size, Table, Times};
pub use infer::{NAME_DEVICE, Options, Program, Stretch};
pub use replay::{Mode, ReplayOptions};
pub use steps::{Plug, Step, Steps};
pub use stream::{Kind, Latency, Stream, Wait};
pub use ticks::CoarseClock;
pub use timeline::{Done, Slice, StreamSlice};
