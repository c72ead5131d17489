//! `iosched-trace/1`: recordings of a kernel's block layer and I/O scheduler, in which each decision of the scheduler
//! is a separate event.
//!
//! Used by: crate `evidence`.
//! Tests: `crates/trace/src/iosched/flags.rs`, `crates/trace/src/iosched/io.rs`, `crates/trace/tests/iosched/events.rs`.
//!
//! A recording is a text file of JSON lines, usually gzip'd: first the header (scheduler, tunables, queue, device,
//! processes), then one event per line in the order of time. [`Trace::open`] reads one:
//!
//! ```no_run
//! use hoistway_trace::iosched::{EventKind, Trace};
//!
//! let trace = Trace::open("crates/evidence/traces/bfq/bfq-2hwq.jsonl.gz")?;
//! let decisions = trace.events.iter().filter(|event| matches!(event.kind, EventKind::Dispatch(_))).count();
//! println!("{}: {decisions} decisions of {}", trace.header.name, trace.header.scheduler);
//! # Ok::<(), hoistway_trace::iosched::ReadError>(())
//! ```
//!
//! Two generations of kernels wrote this format: the multi-queue block layer (none, mq-deadline, kyber, bfq) and the
//! legacy single-queue one (noop, deadline, cfq). Their keys differ in part: a key that only one of them writes is an
//! `Option` here, and its documentation says which.
//!
//! Identifiers and measured quantities have the types of `hoistway-blk`; other numbers are plain integers.

mod bfq;
pub mod bounds;
mod error;
mod event;
mod flags;
mod foreign;
mod header;
mod io;
mod line;
mod raw;
mod reader;

pub use bfq::BfqState;
pub use error::{Problem, ReadError};
pub use event::{
    Chosen, Complete, Dispatch, Event, EventKind, Free, Insert, InsertedBy, Issue, KyberDomain, KyberLatency,
    LatencyKind, Mark, Merge, RqMerge, Submitted, Survivor,
};
pub use header::{Cgroup, Clock, Header, Process, QueueSettings};
pub use io::{BioNumber, Io, MqContext, QueueName, RqNumber};
pub use reader::{Limits, Trace};

/// The value of the header's `format` key.
pub const FORMAT: &str = "iosched-trace/1";
