//! Queue depth, batches and durability.

use hoistway_load::{Issue, Process, WriteSync};

use super::Subject;
use super::files::name_of;
use crate::JobFileError;
use crate::job::Job;
use crate::options::{OptionSpec, Setter, U32_MAX};

const DEPTH_MAX: i64 = hoistway_load::limits::DEPTH as i64;

#[derive(Clone, Debug)]
pub(crate) struct Depth {
    polls: bool,
    iodepth: i64,
    /// 0 for `iodepth`, as for `low`.
    batch: i64,
    complete_min: i64,
    complete_max: i64,
    low: i64,
    offload: bool,
    serialize_overlap: bool,
    fsync: i64,
    fdatasync: i64,
    end_fsync: bool,
    fsync_on_close: bool,
    write_sync: WriteSync,
}

impl Default for Depth {
    fn default() -> Self {
        Depth {
            polls: false,
            iodepth: 1,
            batch: 1,
            complete_min: 1,
            complete_max: 1,
            low: 0,
            offload: false,
            serialize_overlap: false,
            fsync: 0,
            fdatasync: 0,
            end_fsync: false,
            fsync_on_close: false,
            write_sync: WriteSync::None,
        }
    }
}

pub(super) const SUBJECT: Subject = Subject { rows: ROWS, land, fields: &[("issue.depth", |_| "iodepth")] };

const ROWS: &[OptionSpec] = &[
    OptionSpec::new(
        "hipri",
        "0",
        Setter::Flag(|s, on| s.depth.polls = on),
        "Poll for completions; needs a device with hardware queues for that",
    ),
    OptionSpec::new(
        "iodepth",
        "1",
        Setter::Int { min: 1, max: DEPTH_MAX, set: |s, v| s.depth.iodepth = v },
        "I/Os that an asynchronous engine keeps in flight",
    ),
    OptionSpec::new(
        "iodepth_batch",
        "1",
        Setter::Int { min: 0, max: DEPTH_MAX, set: |s, v| s.depth.batch = v },
        "I/Os submitted at once (one system call, one plug); 0 stands for iodepth",
    )
    .alias(&["iodepth_batch_submit"]),
    OptionSpec::new(
        "iodepth_batch_complete_min",
        "1",
        Setter::Int { min: 0, max: DEPTH_MAX, set: |s, v| s.depth.complete_min = v },
        "Completions to wait for when the queue is full; 0 polls without waiting",
    )
    .alias(&["iodepth_batch_complete"]),
    OptionSpec::new(
        "iodepth_batch_complete_max",
        "",
        Setter::Int { min: 0, max: DEPTH_MAX, set: |s, v| s.depth.complete_max = v },
        "Most completions taken at once; at least the minimum",
    ),
    OptionSpec::new(
        "iodepth_low",
        "iodepth",
        Setter::Int { min: 0, max: DEPTH_MAX, set: |s, v| s.depth.low = v },
        "Once full, let the queue drain to this depth before filling it again",
    ),
    OptionSpec::new(
        "io_submit_mode",
        "inline",
        Setter::Choice { of: &["inline", "offload"], set: |s, i| s.depth.offload = i == 1 },
        "offload: submit from a pool of threads, so that a synchronous engine has a depth, too",
    ),
    OptionSpec::new(
        "serialize_overlap",
        "0",
        Setter::Bool(|s, on| s.depth.serialize_overlap = on),
        "Issue no I/O that overlaps one of the same process in flight",
    ),
    OptionSpec::new(
        "fsync",
        "0",
        Setter::Int { min: 0, max: U32_MAX, set: |s, v| s.depth.fsync = v },
        "Flush after each so many writes; 0 never",
    ),
    OptionSpec::new(
        "fdatasync",
        "0",
        Setter::Int { min: 0, max: U32_MAX, set: |s, v| s.depth.fdatasync = v },
        "As fsync; on a block device there is no difference",
    ),
    OptionSpec::new(
        "end_fsync",
        "0",
        Setter::Bool(|s, on| s.depth.end_fsync = on),
        "Flush when a job that writes has done its work; it belongs to its run time",
    ),
    OptionSpec::new(
        "fsync_on_close",
        "0",
        Setter::Bool(|s, on| s.depth.fsync_on_close = on),
        "As end_fsync: files are closed at the end",
    ),
    OptionSpec::new(
        "sync",
        "none",
        Setter::Choice {
            of: &["none", "0", "sync", "1", "dsync"],
            set: |s, i| {
                s.depth.write_sync = match i {
                    0 | 1 => WriteSync::None,
                    2 | 3 => WriteSync::Sync,
                    _ => WriteSync::Dsync,
                }
            },
        },
        "Make each write durable before it completes (O_SYNC, O_DSYNC)",
    ),
];

fn land(job: &Job<'_>, process: &mut Process) -> Result<(), JobFileError> {
    let s = &job.settings.depth;
    let (engine, direct) = (process.issue.engine, process.caching.direct);
    let is_deep = engine.is_asynchronous() || s.offload;
    let depth = if is_deep && direct { s.iodepth } else { 1 };
    let within = |value: i64| if value == 0 || value > depth { depth } else { value };
    let complete_min = s.complete_min.min(depth);
    process.issue = Issue {
        engine,
        depth: depth as u32,
        depth_low: Some(within(s.low) as u32),
        batch: within(s.batch) as u32,
        complete_min: complete_min as u32,
        complete_max: s.complete_max.max(complete_min).max(1).min(depth) as u32,
        polls: s.polls,
        serialize_overlap: s.serialize_overlap,
    };
    process.caching.write_sync = s.write_sync;
    process.caching.end_fsync = s.end_fsync || s.fsync_on_close;
    process.plan.pattern_mut().sync_every = [s.fsync as u32, s.fdatasync as u32];
    if s.offload {
        job.tell(
            "io_submit_mode=offload: iodepth holds for any engine, but the threads of the pool are not simulated: \
             the process submits its I/Os itself.",
        );
    }
    let (name, iodepth) = (name_of(engine), s.iodepth);
    if !is_deep && iodepth > 1 {
        job.tell(&format!("ioengine={name} is synchronous: iodepth={iodepth} becomes 1."));
    }
    if !direct && engine.is_asynchronous() && iodepth > 1 {
        let like = if name == "libaio" { "as in Linux" } else { "here, unlike in Linux" };
        job.tell(&format!(
            "ioengine={name} without direct=1 has one I/O in flight {like}: iodepth={iodepth} becomes 1."
        ));
    }
    Ok(())
}
