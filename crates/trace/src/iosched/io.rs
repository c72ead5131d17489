//! Descriptions of bios and requests in events, and a recording's identifiers.

use std::fmt;

use super::bounds::PID_MAX;
use hoistway_blk::bio::{BioFlags, IoPriority, Op, is_sync};
use hoistway_blk::ground::{CgroupId, CpuId, HctxId, Sector, Tick};

/// A request instance: unique in its recording, counted from 1. A reused slot gets a new number, unlike
/// [`hoistway_blk::ground::RqId`]. The exception is the multi-queue flush request, a permanent object that keeps its number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RqNumber(pub u32);

/// A bio instance: unique in its recording, counted from 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BioNumber(pub u32);

/// Queues and tags of a request on a multi-queue kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MqContext {
    /// Its hardware queue.
    pub hctx: HctxId,
    /// The CPU of its software queue.
    pub ctx: CpuId,
    /// Its driver tag, if it already has one.
    pub tag: Option<u32>,
    /// Its scheduler tag, if it has one.
    pub stag: Option<u32>,
}

/// The state of a bio or request at the time of an event: merges make a request grow, and the flush machinery removes the
/// flush flags from requests that it issues.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Io {
    /// First sector.
    pub sector: Sector,
    /// Length in sectors.
    pub sectors: u32,
    /// The operation.
    pub op: Op,
    /// The flags, from `rwbs` and `hint` together.
    pub flags: BioFlags,
    /// The bio's priority; unset for flush commands, and on legacy kernels if the process set none.
    pub prio: IoPriority,
    /// Whether the flush machinery issued it. The mq-deadline recording with flushes lacks this mark on the flush command
    /// itself, so check for [`Op::Flush`], too.
    pub flushseq: bool,
    /// Queues and tags of the request (multi-queue kernels; `None` for events about a bio).
    pub context: Option<MqContext>,
    /// The tick counter, relative to the first tick of the recording: the clock for all times that the kernel counts in
    /// ticks. Inserts and dispatches always have it; other events depending on the kernel.
    pub j: Option<Tick>,
    /// The cgroup that it is charged to, if recorded.
    pub cg: Option<CgroupId>,
}

impl Io {
    /// The sector after the last one.
    #[must_use]
    pub fn end(&self) -> Sector {
        self.sector + self.sectors
    }

    /// Whether a task waits for it.
    #[must_use]
    pub fn is_sync(&self) -> bool {
        is_sync(self.op, self.flags)
    }
}

/// The name of a queue inside bfq or cfq, such as `431S`, `2929SN`, `0A` or `sharedS`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct QueueName {
    /// Pid of the owning process (for an asynchronous queue, of its first user). `None` for a bfq queue that several
    /// processes share after a merge; all shared queues have the same name.
    pub owner: Option<u32>,
    /// Synchronous or asynchronous.
    pub sync: bool,
    /// cfq only: the queue is currently on the no-idle service tree.
    pub noidle: bool,
}

impl QueueName {
    /// Parses a name: a pid or `shared`, then `S` or `A`, then optionally `N`. `None` for anything else.
    #[must_use]
    pub fn parse(name: &str) -> Option<QueueName> {
        let (name, noidle) = match name.strip_suffix('N') {
            Some(rest) => (rest, true),
            None => (name, false),
        };
        let (owner, sync) = match name.strip_suffix('S') {
            Some(owner) => (owner, true),
            None => (name.strip_suffix('A')?, false),
        };
        let owner = match owner {
            "shared" => None,
            // `parse` alone would accept a sign.
            pid if pid.bytes().all(|byte| byte.is_ascii_digit()) => {
                Some(pid.parse().ok().filter(|&pid| pid <= PID_MAX)?)
            }
            _ => return None,
        };
        Some(QueueName { owner, sync, noidle })
    }
}

impl fmt::Display for QueueName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.owner {
            Some(pid) => write!(f, "{pid}")?,
            None => f.write_str("shared")?,
        }
        f.write_str(if self.sync { "S" } else { "A" })?;
        f.write_str(if self.noidle { "N" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queue_names_read_back_as_written() {
        for name in ["431S", "2929SN", "0A", "sharedS"] {
            assert_eq!(QueueName::parse(name).expect(name).to_string(), name);
        }
        for name in ["", "S431", "431", "431X", "+431S", "S", "N", "99999999999S", "\u{e9}S"] {
            assert_eq!(QueueName::parse(name), None, "{name}");
        }
    }
}
