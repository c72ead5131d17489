//! Options of queue depth, batches and durability.

use hoistway_load::{Process, WriteSync};

use super::Job;
use super::Subject;
use super::files::engine_name;
use super::{OptionSpec, Setter, U32_MAX, row};
use crate::JobFileError;

const DEPTH_MAX: i64 = hoistway_load::limits::DEPTH as i64;

#[derive(Clone, Debug, Default)]
pub(crate) struct Depth {
    offload: bool,
    fsync_on_close: bool,
}

pub(super) const SUBJECT: Subject = Subject { rows: ROWS, apply, fields: &[("issue.depth", |_| "iodepth")] };

const ROWS: &[OptionSpec] = &[
    row("hipri", "0", Setter::Flag(|s, on| s.process.issue.polls = on))
        .doc("Poll for completions; needs a device with poll queues"),
    row("iodepth", "1", Setter::Int { min: 1, max: DEPTH_MAX, set: |s, v| s.process.issue.depth = v as u32 })
        .doc("I/Os that an asynchronous engine keeps in flight"),
    row("iodepth_batch", "1", Setter::Int { min: 0, max: DEPTH_MAX, set: |s, v| s.process.issue.batch = v as u32 })
        .doc("I/Os submitted at once (one system call, one plug); 0 means iodepth")
        .alias(&["iodepth_batch_submit"]),
    row(
        "iodepth_batch_complete_min",
        "1",
        Setter::Int { min: 0, max: DEPTH_MAX, set: |s, v| s.process.issue.complete_min = v as u32 },
    )
    .doc("Completions to wait for when the queue is full; 0 polls without waiting")
    .alias(&["iodepth_batch_complete"]),
    row(
        "iodepth_batch_complete_max",
        "",
        Setter::Int { min: 0, max: DEPTH_MAX, set: |s, v| s.process.issue.complete_max = v as u32 },
    )
    .doc("Maximum completions to take at once; at least the minimum"),
    row(
        "iodepth_low",
        "iodepth",
        Setter::Int { min: 0, max: DEPTH_MAX, set: |s, v| s.process.issue.depth_low = (v > 0).then_some(v as u32) },
    )
    .doc("Once full, let the queue drain to this depth before filling it again"),
    row(
        "io_submit_mode",
        "inline",
        Setter::Choice { words: &["inline", "offload"], set: |s, i| s.depth.offload = i == 1 },
    )
    .doc("offload: submit from a pool of threads, so that even a synchronous engine has a depth"),
    row("serialize_overlap", "0", Setter::Bool(|s, on| s.process.issue.serialize_overlap = on))
        .doc("Do not issue an I/O that overlaps an in-flight one of the same process"),
    row("fsync", "0", Setter::Int { min: 0, max: U32_MAX, set: |s, v| s.pattern().sync_every[0] = v as u32 })
        .doc("Flush after every N writes; 0 for never"),
    row("fdatasync", "0", Setter::Int { min: 0, max: U32_MAX, set: |s, v| s.pattern().sync_every[1] = v as u32 })
        .doc("As fsync; on a block device there is no difference"),
    row("end_fsync", "0", Setter::Bool(|s, on| s.process.caching.end_fsync = on))
        .doc("Flush at the end of a job that writes; counts as run time"),
    row("fsync_on_close", "0", Setter::Bool(|s, on| s.depth.fsync_on_close = on))
        .doc("Same as end_fsync, since files are closed at the end"),
    row(
        "sync",
        "none",
        Setter::Choice {
            words: &["none", "0", "sync", "1", "dsync"],
            set: |s, i| {
                s.process.caching.write_sync = match i {
                    0 | 1 => WriteSync::None,
                    2 | 3 => WriteSync::Sync,
                    _ => WriteSync::Dsync,
                }
            },
        },
    )
    .doc("Make each write durable before it completes (O_SYNC, O_DSYNC)"),
];

/// Corrects combinations in the same way as fio.
fn apply(job: &Job<'_>, process: &mut Process) -> Result<(), JobFileError> {
    let s = &job.settings.depth;
    process.caching.end_fsync |= s.fsync_on_close;
    let direct = process.caching.direct;
    let issue = &mut process.issue;
    let (name, requested) = (engine_name(issue.engine), issue.depth);
    let has_depth = issue.engine.is_asynchronous() || s.offload;
    let depth = if has_depth && direct { requested } else { 1 };
    issue.depth = depth;
    issue.depth_low = issue.depth_low.map(|low| low.min(depth));
    issue.batch = if issue.batch == 0 { depth } else { issue.batch.min(depth) };
    issue.complete_min = issue.complete_min.min(depth);
    issue.complete_max = issue.complete_max.max(issue.complete_min).max(1).min(depth);
    if s.offload {
        job.add_notice_of_job(
            "io_submit_mode=offload: iodepth applies to any engine, but the thread pool is not simulated: \
             the process submits its I/Os itself.",
        );
    }
    if !has_depth && requested > 1 {
        job.add_notice_of_job(&format!("ioengine={name} is synchronous: iodepth={requested} becomes 1."));
    }
    if !direct && issue.engine.is_asynchronous() && requested > 1 {
        let comparison = if name == "libaio" { "as in Linux" } else { "here, unlike in Linux" };
        job.add_notice_of_job(&format!(
            "ioengine={name} without direct=1 has one I/O in flight {comparison}: iodepth={requested} becomes 1."
        ));
    }
    Ok(())
}
