//! What a scheduler is: a [`Scheduler`] decides, alone and without locks, over requests that somebody else keeps for it
//! ([`Custody`]); [`Serialized`] makes it safe for many CPUs.

mod buckets;
mod custody;
mod finished;
mod legacy_hooks;
mod merge_index;
mod pending;
mod replayable;
mod scheduler;
pub mod sector_order;
mod serialized;
mod techniques;
mod woken;

pub use custody::{BoxedScheduler, Custody, OwnedPolicy};
pub use legacy_hooks::{LegacyHooks, MayQueue};
pub use replayable::Replayable;
pub use scheduler::{
    Choice, Completions, ElevatorCx, Needs, Place, PolicyCx, Requests, Scheduler, SchedulerEvent, Wishes,
};
pub use serialized::{Draws, Serialized};
pub use techniques::{Insertion, Techniques};
pub use woken::WokenHctxs;
