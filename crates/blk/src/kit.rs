//! Building blocks for other kinds of queues, so that policies, drivers and callers work with any of them. The single queue of Linux up
//! to 4.20, in the crate `hoistway-legacy`, is built from them.
//!
//! Used by: crate `legacy`.
//! Tests: `crates/legacy/src/queue/tests/`, `crates/legacy/tests/properties/`.
//!
//! In the order of a request's path:
//! - bios: validation ([`check`]), splitting ([`split`]), whether it is a flush-type write ([`is_flush_type`]) and whether it may merge
//!   at all ([`bio_mergeable`]; the merge rules are in [`MergeRules`](crate::request::MergeRules));
//! - a task's [`Plug`](crate::request::Plug), which the queue fills and empties;
//! - request slots ([`Rq::empty`](crate::request::Rq::empty)) and a [`Home`] for them, by which debug builds detect leaks; a waiting
//!   submission has a [`Guard`] for the same purpose;
//! - a policy with its requests, to be kept under a lock: [`RequestStore`];
//! - flush and FUA: [`flush_queue`];
//! - requests at the device: [`Flights`] and [`Timeouts`];
//! - the files of `queue/`: [`attributes`].
//!
//! A queue that implements [`BlockQueue`](crate::caller::BlockQueue) can be used with [`Agenda`](crate::caller::Agenda) and
//! [`Submitter`](crate::caller::Submitter).
//!
//! [`process_queue`] has building blocks for policies with a queue for each process, such as bfq and cfq.

pub use crate::bio::check::{Checked, check};
pub use crate::bio::is_flush_type;
pub use crate::drive::flights::{Flights, ScanResult};
pub use crate::drive::timeouts::Timeouts;
pub use crate::ground::lost::{Guard, Home};
pub use crate::policy::RequestStore;
pub use crate::request::merge::bio_mergeable;
pub use crate::schedulers::process_queue;

/// Bios that are longer than the queue allows.
pub mod split {
    pub use crate::bio::split::{parts, rejoin, split, split_point};
}

/// Flush and FUA: a sequencer that lets many waiters share one flush command.
pub mod flush_queue {
    pub use crate::queue::flush_queue::{FlushQueue, Next, begin};
}

/// Files of `queue/` that all kinds of queues have.
pub mod attributes {
    pub use crate::ground::tunables::value_of;
    pub use crate::sysfs::{number, show, store, timeout};
}
