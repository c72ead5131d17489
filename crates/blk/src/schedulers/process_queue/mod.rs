//! The organs of schedulers that keep a queue for each process (cfq, bfq): what such a queue holds and what is
//! learnt of its process. Each file is one organ and knows nothing of the scheduler that uses it.
//!
//! - [`contexts`](Contexts): a record for each process;
//! - [`backlog`](Backlog): the requests of one queue, by sector and by arrival, and the next one to go;
//! - [`choice`](Chooser): which of two requests is nearer to the head;
//! - [`think_time`](ThinkTime): how long a process thinks between a completion and its next request;
//! - [`seek_history`](SeekHistory): whether a process jumps about;
//! - [`position`](PositionTree): which other queue has its next request close by.
//!
//! What looks alike and is not: the queue-depth detectors (cfq's verdict keeps the highest depth and asks for 50 samples
//! above a load of 5; bfq's forgets it with each verdict and leaves out thinkers), the merging of queues (cfq moves the
//! fewer processes to the more and plans it at a turn's end; bfq moves the asker, at each arrival), and the service
//! trees (moments against virtual time). These are two each.
//!
//! Rules: `cfq.md` 3.4, 5 to 8 and 19.1; `bfq.md` 3.5, 12, 13.1, 13.2, 20.2, 20.3.

mod backlog;
mod choice;
mod contexts;
mod position;
mod seek_history;
mod think_time;

pub(crate) use backlog::{Backlog, RequestTable, Waiting};
pub(crate) use choice::Chooser;
pub(crate) use contexts::{ContextId, Contexts, Scatter};
pub(crate) use position::PositionTree;
pub(crate) use seek_history::{SEEK_DISTANCE, SMALL_ON_FLASH, SeekHistory, distance};
pub(crate) use think_time::ThinkTime;
