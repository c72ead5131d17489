//! The options of a run.

use std::path::PathBuf;

use clap::Args;
use hoistway_blk::policy::ContentionOptions;
use hoistway_experiment::limits::REPEATS_MAX;

use crate::commands::options::{ReplayOptions, RunOptions, parse_trimmed};
use crate::commands::outputs::{JudgingOptions, OutputOptions};

/// Run a fio job file, or a recording of block I/O, in real time, through the block layer and its schedulers, on a file, a disk, memory or a simulated device.
///
/// The same block layer as in virtual time handles real I/O between the processes of the job file and the target. Several
/// schedulers run one after the other on the same target, which is not reset between them; their results are compared as by
/// hoistway compare.
///
/// The target replaces the job file's filename. A target file that does not exist is created and filled to the size that the
/// job file needs, and is kept. What a real run does not support (I/O through the page cache, hipri, verify, several files) is
/// refused.
///
/// Exit status: 0 on success; 1 if a process ended with an error and 3 if a --fail-if condition is true, both after the results
/// are printed; 2 for bad input; 130 if interrupted, after the results so far are printed.
///
/// Examples:
///   hoistway run my-load.fio --target file:/mnt/test.img
///   hoistway run my-load.fio --target blk:/dev/sdb --writes /dev/sdb --scheduler none,bfq
///   hoistway run my-load.fio --target sim:hgst-he10-8tb --scheduler bfq --runtime 30s
///   hoistway run my-load.fio --target blk:/dev/sdb --scheduler none,bfq --report page.html --advice
///   hoistway run my-load.fio --target file:/mnt/test.img --scheduler bfq --vary bfq.slice_idle=0,8
///   hoistway run my-load.fio --target file:/mnt/test.img --fail-if "backends:read:p99>2ms"
///   hoistway run trace.blktrace.0 --target file:/mnt/test.img --scheduler none,bfq
///   hoistway run my-load.fio --target mem:1G --workers 2 --format fio-json
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// A fio job file, a recording of block I/O (docs/recordings.md), or - for standard input.
    #[arg(value_name = "JOB")]
    pub(super) job: PathBuf,
    #[command(flatten)]
    pub(super) replay: ReplayOptions,
    /// The target: a file, a block device, memory, a null device (null: or null:SIZE, 1T by default), or a device model in real
    /// time (see `hoistway devices`), which has the latencies of the device but stores no data.
    #[arg(long, value_name = "file:PATH|blk:PATH|mem:SIZE|null:|sim:PRESET")]
    pub(super) target: String,
    /// The scheduler, or a list of schedulers to run in turn, each as often as it is listed: none, mq-deadline, kyber, bfq.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "none", value_parser = parse_trimmed)]
    pub(super) scheduler: Vec<String>,
    /// Compare several values of a tunable, or of a file that --queue accepts (queue.nr_requests=64,256). The scheduler runs with
    /// its default and with each value. May be given several times: every combination runs.
    #[arg(long, value_name = "SCHED.TUNABLE=V1,V2,...")]
    pub(super) vary: Vec<String>,
    /// Limit the commands that each hardware queue has in flight at the target; the scheduler reorders only requests queued above
    /// this limit. [default: as many as the target accepts]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_240))]
    pub(super) queue_depth: Option<u32>,
    /// Worker threads, each with a hardware queue if the target has enough. [default: one for each process, at most one for each
    /// CPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(super) workers: Option<u16>,
    /// Reduce lock contention in mq-deadline and bfq: all, none, or some of single-dispatcher, try-merge, batch-dispatch, and
    /// either insertion-buckets or pending-lists. No Linux release has these.
    #[arg(long, value_name = "LIST", default_value = "single-dispatcher,try-merge,batch-dispatch")]
    pub(super) techniques: ContentionOptions,
    /// Register this much memory with the io_uring of every worker for the data of requests to files and disks, which saves a
    /// look-up per request; 0 registers none. The memory is locked: see `ulimit -l`.
    #[arg(long, value_name = "SIZE", default_value = "4M", value_parser = hoistway_engine::parse_fixed_buffers)]
    pub(super) fixed_buffers: usize,
    #[command(flatten)]
    pub(super) run: RunOptions,
    /// Allow writes to a block device, or to a file that no earlier run created: name the target again. Its data is lost.
    #[arg(long, value_name = "TARGET", conflicts_with = "force")]
    pub(super) writes: Option<String>,
    /// The older name of --writes, which does not name the target.
    #[arg(long, hide = true)]
    pub(super) force: bool,
    /// Run all schedulers K times, one round after the other, for means, 95 % confidence intervals and paired differences.
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=i64::from(REPEATS_MAX)))]
    pub(super) repeat: u32,
    /// Measure as fio does, from the start of each job (or the end of its ramp_time) to its end. [default: only the time in which
    /// all jobs run; for fio's formats and --fio-logs as fio does]
    #[arg(long)]
    pub(super) from_start: bool,
    #[command(flatten)]
    pub(super) judging: JudgingOptions,
    #[command(flatten)]
    pub(super) outputs: OutputOptions,
}

impl Arguments {
    /// Whether to measure as fio does: output in its formats is what it would write.
    pub(super) fn measures_as_fio(&self) -> bool {
        self.from_start || self.outputs.is_of_fio()
    }
}
