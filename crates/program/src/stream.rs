//! Streams: the I/Os of one task, or of several tasks with one function.
//!
//! Used by: `roles`, `track`, `alternatives`, `describe`, `assign` and others; crates `experiment`, `hoistway`.
//! Tests: below.

use hoistway_load::WAITS_MAX;
use serde::{Deserialize, Serialize};

use crate::class::{Class, Evidence};
use crate::steps::Reading;
use crate::timeline::StreamSlice;

/// The kind of task that a stream's I/Os come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A task of a program.
    Task,
    /// Asynchronous writes by flush threads (RP16): a burst begins at its recorded time.
    WriteBack,
    /// A journal thread or another helper of file systems and drivers (RP17).
    Helper,
    /// Tasks with few I/Os.
    Others,
}

/// Whether a task's name is that of a kernel helper thread.
pub(crate) fn is_helper(name: &str) -> bool {
    const PREFIXES: [&str; 7] = ["jbd2/", "xfsaild/", "xfs-", "btrfs-transacti", "dmcrypt_write/", "z_wr_", "loop"];
    let is_raid = name.starts_with("md") && name.contains("_raid");
    let is_loop = name.strip_prefix("loop").is_none_or(|rest| rest.bytes().all(|letter| letter.is_ascii_digit()));
    (PREFIXES.iter().any(|prefix| name.starts_with(prefix)) && is_loop) || is_raid || is_dispatcher(name)
}

/// Whether a task is a kworker that issues requests of other tasks (`kworker/N:*H`).
pub(crate) fn is_dispatcher(name: &str) -> bool {
    name.strip_prefix("kworker/").is_some_and(|rest| !rest.starts_with('u') && rest.ends_with('H'))
}

/// Whether a task is a flusher thread of the page cache.
pub(crate) fn is_flusher(name: &str) -> bool {
    name.starts_with("kworker/u")
}

/// The pid of the task that an io_uring worker belongs to; `None` for other names.
pub(crate) fn task_of_io_worker(name: &str) -> Option<u32> {
    name.strip_prefix("iou-wrk-").or_else(|| name.strip_prefix("iou-sqp-"))?.parse().ok()
}

/// Latencies of one direction, from submission to completion.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Latency {
    /// I/Os that completed.
    pub ios: u64,
    /// Mean, in nanoseconds.
    pub mean_ns: f64,
    /// 99th percentile in nanoseconds, accurate to 4 %.
    pub p99_ns: u64,
}

/// A stream that another one waits for.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Wait {
    /// Index of the stream that is waited for.
    pub on: usize,
    /// Bursts that began while that stream had I/Os outstanding.
    pub observed: u64,
    /// The number of such bursts expected by chance.
    pub expected: f64,
    /// Whether the recording shows the dependency; otherwise it is assumed from the kind of task (RP17).
    pub is_seen: bool,
}

/// One stream.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Stream {
    /// Name of its job: that of the task, or what it does if tasks of this name have several roles.
    pub name: String,
    /// Name of the task.
    #[serde(default)]
    pub task_name: String,
    /// The task; `None` for several tasks.
    pub pid: Option<u32>,
    /// Number of tasks.
    pub tasks: u64,
    /// ID of the cgroup that its I/Os are charged to; `None` if not recorded (RP28).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<u64>,
    /// What kind of task.
    pub kind: Kind,
    /// I/Os.
    pub ios: u64,
    /// Number of reads, and their bytes.
    pub reads: (u64, u64),
    /// Number of writes, and their bytes.
    pub writes: (u64, u64),
    /// Number of discards, and their bytes.
    pub discards: (u64, u64),
    /// Flushes without data.
    pub flushes: u64,
    /// Writes with the flag SYNC.
    pub sync_writes: u64,
    /// Writes with FUA or a preceding flush.
    pub durable_writes: u64,
    /// I/Os that begin at the end of the previous one.
    pub sequential: u64,
    /// First submission since the start, in nanoseconds.
    pub first_ns: u64,
    /// Last event since the start, in nanoseconds.
    pub last_ns: u64,
    /// How its I/Os arrive.
    pub class: Class,
    /// The figures that decide the class.
    pub evidence: Evidence,
    /// Class of all streams with this name together, if it decided (RP13, pools); else `None`.
    pub pool: Option<Class>,
    /// Recorded depth, if the recorded queue limited it (RP15); else `None`.
    pub hidden_depth: Option<u32>,
    /// Streams that it waits for (RP17, RP18).
    pub waits: Vec<Wait>,
    /// Streams that it may wait for: the recording has too few bursts to tell (RP19), so alternatives try both.
    pub untested: Vec<usize>,
    /// Median time from a completion to the I/O that waited for it, in nanoseconds; `None` if no I/O waited.
    pub think_ns: Option<u64>,
    /// Latencies of reads.
    pub read_latency: Latency,
    /// Latencies of discards.
    #[serde(default)]
    pub discard_latency: Latency,
    /// Latencies of everything else.
    pub write_latency: Latency,
    /// Completions in slices of equal length.
    pub over_time: Vec<StreamSlice>,
}

impl Stream {
    /// A stream of a task of a program, so far without I/Os.
    pub(crate) fn of_task(name: String) -> Stream {
        Stream {
            task_name: name.clone(),
            name,
            pid: None,
            tasks: 1,
            cgroup: None,
            kind: Kind::Task,
            ios: 0,
            reads: (0, 0),
            writes: (0, 0),
            discards: (0, 0),
            flushes: 0,
            sync_writes: 0,
            durable_writes: 0,
            sequential: 0,
            first_ns: 0,
            last_ns: 0,
            class: Class::Undecided,
            evidence: Evidence::default(),
            pool: None,
            hidden_depth: None,
            waits: Vec::new(),
            untested: Vec::new(),
            think_ns: None,
            read_latency: Latency::default(),
            discard_latency: Latency::default(),
            write_latency: Latency::default(),
            over_time: Vec::new(),
        }
    }

    /// Whether a user means this stream: by its own name, by the name of its task, which may have streams of several roles, or by its PID.
    #[must_use]
    pub fn is_called(&self, text: &str) -> bool {
        let is_pid = |pid: u32| text.parse() == Ok(pid);
        self.name == text || self.task_name == text || self.pid.is_some_and(is_pid)
    }

    /// The streams whose completions are stored with each step: first those that it waits for.
    pub(crate) fn may_wait_for(&self) -> impl Iterator<Item = usize> {
        self.waits.iter().map(|wait| wait.on).chain(self.untested.iter().copied()).take(WAITS_MAX)
    }

    /// The interpretation that the recording suggests.
    pub(crate) fn reading(&self) -> Reading {
        let waits = std::array::from_fn(|wait| wait < self.waits.len());
        Reading { is_open: self.class == Class::Open, waits, deeper: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_threads_are_known_by_their_names() {
        for name in ["jbd2/sda1-8", "xfsaild/nvme0n1", "loop0", "md0_raid1", "kworker/1:1H", "btrfs-transacti"] {
            assert!(is_helper(name), "{name}");
        }
        for name in ["python3", "kworker/u8:3", "kworker/0:1", "looper", "mdadm"] {
            assert!(!is_helper(name), "{name}");
        }
        assert_eq!(
            (task_of_io_worker("iou-wrk-123"), task_of_io_worker("iou-sqp-7"), task_of_io_worker("fio")),
            (Some(123), Some(7), None)
        );
        assert_eq!((is_flusher("kworker/u8:3"), is_dispatcher("kworker/0:2H-kblockd")), (true, false));
    }
}
