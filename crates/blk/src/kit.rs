//! The kit for another queue: what a block layer of another shape takes from this one, so that policies, drivers and callers
//! cannot distinguish the two. The single queue that Linux had until 4.20, the crate `hoistway-legacy`, is made of it.
//!
//! In the order of the way:
//! - a bio: what is wrong with it ([`check`]), where it is cut ([`split`]), whether it asks for durability
//!   ([`is_flush_type`]) and whether it merges at all ([`bio_mergeable`]; the rules themselves are
//!   [`MergeRules`](crate::request::MergeRules));
//! - a task's [`Plug`](crate::request::Plug), which the queue fills and empties;
//! - the slots of requests ([`Rq::empty`](crate::request::Rq::empty)) and a [`Home`] for them, by which debug builds report what is lost;
//!   a submission that waits has a [`Guard`] for the same;
//! - a policy with the requests that it decides on, to be kept under a lock: [`RequestStore`];
//! - what must be durable: [`flush_queue`];
//! - requests at the device: [`Flights`], and [`Timeouts`] for those that are there for too long;
//! - the files of `queue/`: [`attributes`].
//!
//! A queue that implements [`BlockQueue`](crate::caller::BlockQueue) then has the caller's kit, [`Agenda`](crate::caller::Agenda) and
//! [`Submitter`](crate::caller::Submitter), for nothing.
//!
//! [`process_queue`] is a kit of another kind, for policies that keep a queue for each process, as bfq and cfq do.

pub use crate::bio::check::{Checked, check};
pub use crate::bio::is_flush_type;
pub use crate::drive::flights::{Flights, Seen};
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

/// What the files of `queue/` have in common, whatever the queue.
pub mod attributes {
    pub use crate::ground::tunables::value_of;
    pub use crate::sysfs::{number, show, store, timeout};
}
