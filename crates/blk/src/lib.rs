//! The Linux multi-queue block layer and its I/O schedulers as a pure state machine.

mod bio;
mod ids;
mod ioprio;
mod time;

pub use bio::{Bio, BioFlags, Direction, Op, Status, is_sync};
pub use ids::{CgroupId, CpuId, HctxId, IoContextId, RqId, SECTOR_BYTES, Sector, Waiter};
pub use ioprio::{IoPriority, PriorityClass};
pub use time::{Hz, Instant, Nanos, Now, Tick};
