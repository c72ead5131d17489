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
