//! Readers and writers for recordings of block I/O.
//!
//! Used by: crates `evidence`, `program`, `experiment`, `hoistway`, `linux`.
//! Tests: `crates/trace/src/` (in its files), `crates/trace/tests/`.
//!
//! Each group of formats is an independent module:
//!
//! * [`iosched`]: recordings of a running kernel that include the scheduler's decisions, for conformance tests.
//! * [`block`]: recordings of block I/O on real machines, in the formats of blktrace and others.
//! * [`summary`]: output of tools such as iostat, without individual I/Os.
//! * [`events`]: events of a simulated run, with the reasons for scheduling decisions.
//!
//! A recording in any format gives the same events:
//! ```
//! use std::io::Cursor;
//!
//! use hoistway_trace::block::{Action, Input, Recording};
//!
//! let text = "  8,0 0 1 0.000000000 412 Q R 2048 + 8 [cat]\n  8,0 0 1 0.000012000 412 D R 2048 + 8 [cat]\n";
//! let input = Input::new("example", Box::new(Cursor::new(text))).unwrap();
//! let mut recording = Recording::read(input).unwrap();
//! let queued = recording.next_event().unwrap().unwrap();
//! assert_eq!((queued.action, queued.sector, queued.bytes), (Action::Queue, 2048, 4096));
//! let issued = recording.next_event().unwrap().unwrap();
//! assert_eq!((issued.action, issued.time_ns), (Action::Issue, 12_000));
//! ```

pub mod block;
pub mod events;
pub mod iosched;
pub mod summary;
