//! What events say about a bio or a request, and the names that a recording gives to things.

use std::fmt;

use super::bounds::PID_MAX;
use hoistway_blk::bio::{BioFlags, IoPriority, Op, is_sync};
use hoistway_blk::ground::{CgroupId, CpuId, HctxId, Sector, Tick};

/// A request *instance*: unique in its recording, counted from 1. A slot that is used again gets a new number, so
/// this is not [`hoistway_blk::ground::RqId`]. One exception: the multi-queue flush request is a permanent object that keeps
/// its number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RqNumber(pub u32);

/// A bio instance: unique in its recording, counted from 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BioNumber(pub u32);

/// Where a request of a multi-queue kernel sits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// Its hardware queue.
    pub hctx: HctxId,
    /// The CPU of its software queue.
    pub ctx: CpuId,
    /// Its driver tag, if it has one already.
    pub tag: Option<u32>,
    /// Its scheduler tag, if it has one.
    pub stag: Option<u32>,
}

/// What an event says about its bio or request *at that moment*: a request grows by merges, and the flush machinery
/// strips the flush flags from what it sends on.
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
    /// The priority that the bio carries, unset for flush commands and on legacy kernels where the process set none.
    pub prio: IoPriority,
    /// Whether the flush machinery sent it. The mq-deadline recording with flushes lacks the mark on the flush
    /// command itself, so ask for [`Op::Flush`] as well.
    pub flushseq: bool,
    /// Where the request sits (multi-queue kernels; absent on events about a bio).
    pub place: Option<Place>,
    /// The tick counter, relative to the first of the recording: *the* clock for everything that the kernel counts in
    /// ticks. Which events carry it depends on the kernel; inserts and dispatches always do.
    pub j: Option<Tick>,
    /// The cgroup it is charged to, where the recording says so.
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
    /// Pid of the process that owns it (of an asynchronous queue: of its first user). `None` is bfq's name for a
    /// queue that several processes share after a merge; all of those have the same name.
    pub owner: Option<u32>,
    /// Synchronous or asynchronous.
    pub sync: bool,
    /// cfq only: the queue is at this moment of the kind that the scheduler does not idle for by itself.
    pub noidle: bool,
}

impl QueueName {
    /// Reads a name; `None` if it is not of the form pid or `shared`, then `S` or `A`, then perhaps `N`.
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
