//! The parts that schedulers with a queue for each process (cfq, bfq) have in common: what such a queue holds, and what
//! is learned about its process. The parts do not depend on the scheduler that uses them.
//!
//! Used by: `schedulers::bfq`, `schedulers::d2fq`, `kit`, `schedulers::mqfq`; crate `legacy`.
//! Tests: `crates/blk/src/schedulers/process_queue/` (in its files).
//!
//! - [`contexts`](Contexts): a record for each process;
//! - [`backlog`](Backlog): the requests of one queue, by sector and by arrival, and the next one to dispatch;
//! - [`choice`](Chooser): which of two requests is nearer to the head;
//! - [`think_time`](ThinkTime): how long a process thinks between a completion and its next request;
//! - [`seek_history`](SeekHistory): whether the requests of a process are far apart;
//! - [`position`](PositionTree): which other queue has its next request near a position.
//!
//! Some things look alike in cfq and bfq but differ, and are therefore not shared: the detectors of queue depth (cfq
//! keeps the highest depth and takes 50 samples above a load of 5; bfq resets it with each answer and leaves out
//! processes with few requests at a time), the merging of queues (cfq plans it at the end of a slice and moves the
//! queue with fewer processes; bfq does it at each arrival and moves the queue of the arriving request), and the
//! service trees (real time in cfq, virtual time in bfq).
//!
//! Rules: BFQ-10, BFQ-57 to BFQ-65, BFQ-105, BFQ-106, CFQ-7, CFQ-14 to CFQ-23, CFQ-65, CFQ-66.

mod backlog;
mod choice;
mod contexts;
mod position;
mod seek_history;
mod think_time;

pub use backlog::{Backlog, RequestTable, Waiting};
pub use choice::{Candidate, Chooser};
pub use contexts::{ContextId, Contexts, Record, Scatter};
pub use position::PositionTree;
pub use seek_history::{SEEK_DISTANCE, SMALL_ON_FLASH, SeekHistory, distance};
pub use think_time::ThinkTime;
