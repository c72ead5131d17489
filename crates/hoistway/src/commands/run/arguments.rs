//! The options of a run.

use std::path::PathBuf;

use clap::Args;
use hoistway_blk::ContentionOptions;

use crate::commands::compare::Format;
use crate::commands::options::RunOptions;

/// Runs a fio job file for real, through the block layer and its schedulers, on a file, a disk, memory or a simulated device.
///
/// Everything that is said of I/O schedulers elsewhere happens here to real data: the very same block layer stands between the
/// processes of the job file and the target. Several schedulers run one after the other, each on the target as it is then.
///
/// The job file's filename is replaced by the target. A file that does not exist is made, and filled, as large as the job file
/// says; it stays. What a run cannot do (I/O through the page cache, verify, ...) is refused.
///
/// Exit status: 0; 1 if an error ended a process, after all is printed; 2 for bad input; 130 if interrupted, with the results
/// so far.
///
/// Examples:
///   hoistway run my-load.fio --target file:/mnt/test.img
///   hoistway run my-load.fio --target blk:/dev/sdb --force --scheduler none,mq-deadline,kyber,bfq
///   hoistway run my-load.fio --target sim:hgst-he10-8tb --scheduler bfq --runtime 30s
///   hoistway run my-load.fio --target mem:1G --workers 2 --format fio-json
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// A fio job file, - for standard input.
    #[arg(value_name = "JOB")]
    pub(super) job: PathBuf,
    /// What it runs on: a file, a block device, memory, nothing at all (null: or null:SIZE, 1T by default), or a device model in real
    /// time (see `hoistway devices`), which takes its time but keeps no data.
    #[arg(long, value_name = "file:PATH|blk:PATH|mem:SIZE|null:|sim:PRESET")]
    pub(super) target: String,
    /// The scheduler, or several, which run one after the other, each as often as it is named: none, mq-deadline, kyber, bfq.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "none")]
    pub(super) scheduler: Vec<String>,
    /// Commands that each hardware queue has at the target at most: a scheduler has a choice only among what is beyond.
    /// [default: what the target takes]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_240))]
    pub(super) queue_depth: Option<u32>,
    /// Threads that work, each with a hardware queue if the target has as many. [default: one for each process, at most one
    /// for each CPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(super) workers: Option<u16>,
    /// What is done so that threads wait less for the lock of mq-deadline or bfq: all, none, or some of single-dispatcher,
    /// try-merge, batch-dispatch, and insertion-buckets or pending-lists. Linux does none of it.
    #[arg(long, value_name = "LIST", default_value = "single-dispatcher,try-merge,batch-dispatch")]
    pub(super) techniques: ContentionOptions,
    /// Memory for the data of requests to files and disks that the rings of all workers know beforehand, so that a request
    /// need not look it up; 0 is none. It is locked: see `ulimit -l`.
    #[arg(long, value_name = "SIZE", default_value = "4M", value_parser = hoistway_engine::parse_fixed_buffers)]
    pub(super) fixed_buffers: usize,
    #[command(flatten)]
    pub(super) run: RunOptions,
    /// Writes to a block device, or to a file that was not made by a run.
    #[arg(long)]
    pub(super) force: bool,
    /// How the results are written.
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: Format,
    /// Also shows medians and p99.9.
    #[arg(long)]
    pub(super) wide: bool,
}
