//! Identifier types: sectors, CPUs, hardware queues, requests and others.

use std::fmt;
use std::ops::{Add, Sub};

/// A position on a device in 512-byte sectors, whatever the device's block size.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Sector(pub u64);

/// Bytes in a [`Sector`].
pub const SECTOR_BYTES: u64 = 512;

impl Add<u32> for Sector {
    type Output = Sector;
    #[inline]
    fn add(self, sectors: u32) -> Sector {
        Sector(self.0 + u64::from(sectors))
    }
}

impl Sub<Sector> for Sector {
    type Output = u64;
    /// The distance in sectors; `other` must not lie behind `self`.
    #[inline]
    fn sub(self, other: Sector) -> u64 {
        self.0 - other.0
    }
}

impl fmt::Debug for Sector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s{}", self.0)
    }
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($int:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
        pub struct $name(pub $int);

        impl $name {
            /// As an index into a table.
            #[inline]
            #[must_use]
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

id! {
    /// A CPU, which is also a software queue (*ctx*): there is one of each per possible CPU. Wider than necessary,
    /// because a narrower write followed by a word-sized read would stall the processor for every I/O.
    CpuId(u32)
}
id! {
    /// A hardware queue (*hctx*) of one device.
    HctxId(u16)
}
id! {
    /// A request slot of one queue: a copyable identifier for indexes, without ownership. No two existing requests have
    /// the same id.
    RqId(u32)
}
id! {
    /// An I/O context: normally one process. Priorities, think times and bfq's queues belong to it.
    IoContextId(u32)
}
id! {
    /// A cgroup; 0 is the root.
    CgroupId(u32)
}
id! {
    /// A sleeper for a tag or a frozen queue; numbered by its owner.
    Waiter(u32)
}

id! {
    /// A queue among those that share a tag set, in the order of joining it.
    QueueId(u32)
}

impl CgroupId {
    /// The root of the hierarchy.
    pub const ROOT: CgroupId = CgroupId(0);
}
