//! Basics that do not depend on bios and requests: identifiers, time, sharing and locking of memory, containers, the table of
//! kernels, declarations of tunables.
//!
//! Used by: `schedulers`, `queue`, `policy`, `tags`, `drive` and others; crates `sim`, `legacy`, `engine`, `device`, `experiment` and others.
//! Tests: `crates/blk/src/ground/` (in its files), `checks/tests/loom.rs`, `checks/tests/threads.rs`.

pub(crate) mod id_list;
pub(crate) mod ids;
pub(crate) mod kernel;
pub(crate) mod lost;
pub(crate) mod meter;
pub(crate) mod sharing;
pub(crate) mod sorted_tree;
pub(crate) mod sparse;
pub(crate) mod time;
pub(crate) mod tunables;

pub use id_list::{IdList, Links};
pub use ids::{CgroupId, CpuId, HctxId, IoContextId, QueueId, RqId, SECTOR_BYTES, Sector, Waiter};
pub use kernel::{
    AfterDispatchList, CfqGeneration, DeadlineGeneration, DirectIssue, Fetch, Generation, Kernel, KyberGeneration,
    PlugOrder, PlugUse, ShallowRule, SysfsGeneration,
};
pub use meter::{Held, Meter, NoMeter, Site};
pub use sharing::{
    CpuLocks, Lent, Local, Lock, MeteredCell, Objects, OfOneThread, OfThreads, Padded, ReadMostly, Sharing, Threads,
    Word,
};
pub use sorted_tree::{Augment, Nodes, Plain, SortedTree};
pub use time::{Hz, Instant, Nanos, Now, Tick};
pub use tunables::{Grammar, StoreError, Tunable, TunableRow, Tunables, Unit};
