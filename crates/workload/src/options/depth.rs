//! Queue depth, batches and durability.

use super::setter::{Setter, U32_MAX};
use super::spec::OptionSpec;
use crate::workload::WriteSync;

/// Deeper than any queue: more is a slip of the pen, and memory for nothing.
const DEPTH_MAX: i64 = 1 << 20;

pub(super) const OPTIONS: &[OptionSpec] = &[
    OptionSpec::new(
        "hipri",
        "0",
        Setter::Flag(|s, on| s.hipri = on),
        "Poll for completions; needs a device with hardware queues for that",
    ),
    OptionSpec::new(
        "iodepth",
        "1",
        Setter::Int { min: 1, max: DEPTH_MAX, set: |s, v| s.iodepth = v },
        "I/Os that an asynchronous engine keeps in flight",
    ),
    OptionSpec::new(
        "iodepth_batch",
        "1",
        Setter::Int { min: 0, max: DEPTH_MAX, set: |s, v| s.iodepth_batch = v },
        "I/Os submitted at once (one system call, one plug); 0 stands for iodepth",
    )
    .alias(&["iodepth_batch_submit"]),
    OptionSpec::new(
        "iodepth_batch_complete_min",
        "1",
        Setter::Int { min: 0, max: DEPTH_MAX, set: |s, v| s.iodepth_batch_complete_min = v },
        "Completions to wait for when the queue is full; 0 polls without waiting",
    )
    .alias(&["iodepth_batch_complete"]),
    OptionSpec::new(
        "iodepth_batch_complete_max",
        "",
        Setter::Int { min: 0, max: DEPTH_MAX, set: |s, v| s.iodepth_batch_complete_max = v },
        "Most completions taken at once; at least the minimum",
    ),
    OptionSpec::new(
        "iodepth_low",
        "iodepth",
        Setter::Int { min: 0, max: DEPTH_MAX, set: |s, v| s.iodepth_low = v },
        "Once full, let the queue drain to this depth before filling it again",
    ),
    OptionSpec::new(
        "io_submit_mode",
        "inline",
        Setter::Choice { of: &["inline", "offload"], set: |s, i| s.offload = i == 1 },
        "offload: submit from a pool of threads, so that a synchronous engine has a depth, too",
    ),
    OptionSpec::new(
        "serialize_overlap",
        "0",
        Setter::Bool(|s, on| s.serialize_overlap = on),
        "Issue no I/O that overlaps one of the same process in flight",
    ),
    OptionSpec::new(
        "fsync",
        "0",
        Setter::Int { min: 0, max: U32_MAX, set: |s, v| s.fsync = v },
        "Flush after each so many writes; 0 never",
    ),
    OptionSpec::new(
        "fdatasync",
        "0",
        Setter::Int { min: 0, max: U32_MAX, set: |s, v| s.fdatasync = v },
        "As fsync; on a block device there is no difference",
    ),
    OptionSpec::new(
        "end_fsync",
        "0",
        Setter::Bool(|s, on| s.end_fsync = on),
        "Flush when a job that writes has done its work; it belongs to its run time",
    ),
    OptionSpec::new(
        "fsync_on_close",
        "0",
        Setter::Bool(|s, on| s.fsync_on_close = on),
        "As end_fsync: files are closed at the end",
    ),
    OptionSpec::new(
        "sync",
        "none",
        Setter::Choice {
            of: &["none", "0", "sync", "1", "dsync"],
            set: |s, i| {
                s.write_sync = match i {
                    0 | 1 => WriteSync::None,
                    2 | 3 => WriteSync::Sync,
                    _ => WriteSync::Dsync,
                }
            },
        },
        "Make each write durable before it completes (O_SYNC, O_DSYNC)",
    ),
];
