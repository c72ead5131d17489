//! The block layer in real time: the schedulers of the simulator over memory, files, disks and simulated devices.
//!
//! Used by: crates `serve`, `calibrate`, `hoistway`, `serve-options`.
//! Tests: `crates/engine/src/` (in its files), `crates/engine/tests/`.
//!
//! An [`Engine`] is a queue with a scheduler over a target (a [`Backend`]), driven by worker threads. Its users are
//! [`Client`]s of its [volumes](Volume), each with an I/O [`Context`] for the scheduler.
//!
//! # What it promises
//! - Each request completes exactly once, with an errno if it failed ([`Errno`]), unless its client is dropped first.
//! - A [`Buffer`] belongs to the engine until its request completes: even a client that disappears cannot take it away
//!   from a device.
//! - Memory is bounded: a client has at most its depth of requests in flight; further ones are [`Refused`], not queued.
//! - Writes that completed before a flush, and durable writes, are on stable storage if the target has any.
//! - Requests may begin and end at any byte. A write that does not consist of whole [blocks](Volume::block_bytes) reads the
//!   missing parts of its blocks first; no other write comes in between.
//! - The scheduler, tunables, the number of requests, weights and priorities can change while clients submit.
//!
//! # What it does not do
//! - It has no timeout: it waits forever for a command that a target never ends.
//! - It does not limit rates (`io.max`); callers can.
//! - Only buffers from [`Buffers`] can be registered with the ring ([`Files::with_fixed_buffers`]), and only requests that were not merged
//!   use the registration.
//!
//! # How it works
//! Clients are assigned to workers in turn. Their requests pass through the worker's mailbox in batches, and through the block
//! layer on the worker's thread; so do those of a [`Resident`], which runs on that thread and needs no mailbox. The worker that
//! the scheduler gives a request to carries it out on its own channel, and sends the completion to the client's worker. An idle
//! worker busy-polls for a moment ([`Config::busy_poll_time`]) and then sleeps until a command ends, a message comes, or a timer of the
//! scheduler is due.
//!
//! [`job`] runs the processes of a load as residents.
#![doc = include_str!("../README.md")]

mod backend;
mod client;
mod clock;
mod config;
mod context;
mod engine;
#[cfg(any(test, feature = "faults"))]
pub mod faults;
mod handler;
pub mod job;
mod mailbox;
mod memory;
mod open_volume;
mod request;
mod resident;
mod ring;
mod slots;
mod target;
mod wake;
mod worker;

pub use backend::{
    Backend, Command, DiskId, Ended, Extent, FileSpec, Files, IoChannel, Memory, Null, OpenError, Shape, Simulated,
    Started, VolumeShape, Zeroing,
};
pub use client::{Client, Refused};
pub use clock::{Clock, MonotonicClock};
pub use config::{Config, StartError};
pub use context::{Context, Group};
pub use engine::{Buffers, Engine, Volume};
pub use handler::{Completions, CompletionsHandler, Handler, completions};
pub use memory::{BUFFER_ALIGN, Buffer, RawSegment, Segments};
pub use open_volume::OpenVolume;
pub use request::{Completion, Errno, Operation, Request, TRANSFER_BYTES_MAX};
pub use resident::{Resident, Turn};
pub use target::{Target, parse_fixed_buffers, parse_size};
pub use wake::{Parker, Wake};
pub use worker::{StepOutcome, Worker};
