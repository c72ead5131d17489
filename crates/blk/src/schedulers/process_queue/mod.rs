//! The organs of schedulers that keep a queue for each process (cfq, bfq): what such a queue holds and what is
//! learnt of its process. Each file is one organ and knows nothing of the scheduler that uses it.
//!
//! - [`backlog`](Backlog): the requests of one queue, by sector and by arrival, and the next one to go;
//! - [`choice`](Chooser): which of two requests is nearer to the head;
//! - [`think_time`](ThinkTime): how long a process thinks between a completion and its next request;
//! - [`seek_history`](SeekHistory): whether a process jumps about;
//! - [`position`](PositionTree): which other queue has its next request close by.
//!
//! Rules: `cfq.md` 5 to 8 and 19.1; the sections of `bfq.md` that share them.

mod backlog;
mod choice;
mod position;
mod seek_history;
mod think_time;

pub(crate) use backlog::{Backlog, RequestTable, Waiting};
pub(crate) use choice::Chooser;
pub(crate) use position::PositionTree;
pub(crate) use seek_history::SeekHistory;
pub(crate) use think_time::ThinkTime;
