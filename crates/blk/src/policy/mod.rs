//! What a scheduler is: a [`Scheduler`] decides, alone and without locks, over requests that its caller keeps for it
//! ([`RequestStore`]); [`Serialized`] makes it safe for many CPUs. A [`Concurrent`] one has locks of its own instead.
//! A [`Steering`] policy holds nothing back; it only chooses hardware queues.
//!
//! Used by: `schedulers`, `queue`, `elevator`, `caller`, `kit` and others; crates `legacy`, `evidence`, `engine`, `sim`, `calibrate` and others.
//! Tests: `crates/blk/src/policy/` (in its files), `checks/tests/shuttle.rs`, `checks/tests/loom.rs`.

mod buckets;
mod concurrent;
mod contention_options;
mod finished;
pub(crate) mod key_order;
mod merge_index;
mod pending;
mod replayable;
mod request_store;
mod scheduler;
mod serialized;
mod steering;
mod woken;

pub use concurrent::{AnyFamily, Concurrent, ConcurrentObject, Family};
pub use contention_options::{ContentionOptions, Insertion};
pub use replayable::Replayable;
pub use request_store::{BoxedScheduler, OwnedPolicy, RequestStore};
pub use scheduler::legacy_hooks::{LegacyHooks, MayQueue};
pub use scheduler::{
    Choice, Completions, ElevatorCx, Needs, Place, PolicyCx, RequestedActions, Requests, Scheduler, SchedulerEvent,
};
pub use serialized::{DispatchBatch, Serialized};
pub use steering::{AnySteeringFamily, Steering, SteeringFamily, SteeringObject};
pub use woken::WokenHctxs;
