//! The multi-queue block layer of Linux and its I/O schedulers as a pure state machine.
//!
//! Used by: crates `legacy`, `sim`, `engine`, `experiment`, `evidence` and others.
//! Tests: `crates/blk/src/` (in its files), `crates/evidence/tests/`, `checks/tests/`.
//!
//! No clock, no I/O, no threads, no randomness: every call gets the time and returns [effects](drive::Effect), which an
//! [`Agenda`](caller::Agenda) carries out in time. The same code runs in virtual time over device models and in real
//! time over disks; the difference is the type parameter [`Sharing`](ground::Sharing).
//!
//! # Embedding it
//! To embed a queue, the owner of threads, a clock and a device needs four things: a [`Queue`](queue::Queue) (a
//! [`BlockQueue`](caller::BlockQueue)), a [`Driver`](drive::Driver) for each thread, an [`Agenda`](caller::Agenda) of
//! pending work, and a [`Submitter`](caller::Submitter) for each task that submits. A [`Caller`](caller::Caller) holds
//! a thread's state between calls. This is a complete program:
//! ```
#![doc = include_str!("../examples/embed.rs")]
//! ```
//!
//! # The path of a request
//! A [`Bio`](bio::Bio) goes in through [`Queue::submit`](queue::Queue::submit). It is split if it is longer than the
//! [`Limits`](bio::Limits) allow, merged into a request of the task's [`Plug`](request::Plug), of the scheduler or of
//! its software queue if it fits, and otherwise given a [request](request::Rq), whose slot comes with a
//! [tag](tags::Tags). The request passes the plug, goes into the [`Elevator`](elevator::Elevator) (or, without a
//! scheduler, into a software queue of its [`HardwareQueue`](queue::HardwareQueue), or past it), is dispatched by a run
//! of a hardware queue, gets a driver tag, and goes to the [`Driver`](drive::Driver). At its end,
//! [`Queue::complete`](queue::Queue::complete), its bios end, the scheduler is notified, and the tags are free for the
//! next waiter.
//!
//! # Trying your own scheduler
//! Implement [`Scheduler`](policy::Scheduler) (four functions are required), give it a [`Row`](schedulers::Row), and
//! hand a [`Registry`](schedulers::Registry) with that row to a queue.
//!
//! # Other kinds of queues
//! Another implementation of [`BlockQueue`](caller::BlockQueue) can reuse the building blocks in [`kit`]. The single
//! queue of Linux up to 4.20, with cfq, is one: the crate `hoistway-legacy`.
//!
//! # The modules
//! Modules are in order of dependency, each using only those above it; [`prelude`] exports what most programs need.
#![doc = include_str!("../README.md")]

pub mod ground;

pub mod bio;

pub mod request;

pub mod tags;

mod wbt;

pub mod watch;

pub mod policy;

pub mod schedulers;

pub mod elevator;

pub mod drive;

pub mod caller;

pub mod sysfs;

pub mod queue;

pub mod kit;

/// Exports for programs that embed a queue or implement a scheduler.
pub mod prelude {
    pub use crate::bio::{Bio, Op, Status};
    pub use crate::caller::{Action, Agenda, BlockQueue, Caller, Submitter};
    pub use crate::drive::{Answer, Driver};
    pub use crate::ground::{CpuId, HctxId, Hz, Instant, Kernel, NoMeter, Now, RqId, Sector, Threads, Waiter};
    pub use crate::policy::{Choice, Place, PolicyCx, Scheduler};
    pub use crate::queue::{Queue, QueueConfig};
    pub use crate::request::Rq;
    pub use crate::schedulers::{Policy, Registry, Row};
    pub use crate::watch::{NoProbe, Reason};
}
