//! I/O statistics of cgroups, as `io.stat` shows them (BL-129): bytes and operations of each group's bios, counted when
//! they are submitted. A probe, as [`DiskStats`](hoistway_blk::watch::DiskStats) is.
//!
//! Used by: crate `sim`.
//! Tests: `crates/sim/tests/shares.rs`, `crates/sim/tests/statistics.rs`.

use hoistway_blk::bio::Op;
use hoistway_blk::ground::{CgroupId, CpuId, Now, SECTOR_BYTES};
use hoistway_blk::watch::{Event, Probe};

/// The I/O that one cgroup has submitted to one device, excluding its children.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct CgroupIo {
    /// Bytes read, written, discarded.
    pub bytes: [u64; 3],
    /// Bios that read, write, discard.
    pub ios: [u64; 3],
}

/// The statistics of all cgroups on one device.
#[derive(Clone, Default, Debug)]
pub struct CgroupStats {
    groups: Vec<CgroupIo>,
}

impl CgroupStats {
    /// The I/O of a group, excluding its children.
    #[must_use]
    pub fn own(&self, cgroup: CgroupId) -> CgroupIo {
        self.groups.get(cgroup.index()).copied().unwrap_or_default()
    }
}

impl CgroupIo {
    /// The sum with another group's I/O.
    #[must_use]
    pub fn plus(self, other: CgroupIo) -> CgroupIo {
        let sum = |a: [u64; 3], b: [u64; 3]| std::array::from_fn(|kind| a[kind] + b[kind]);
        CgroupIo { bytes: sum(self.bytes, other.bytes), ios: sum(self.ios, other.ios) }
    }
}

impl std::fmt::Display for CgroupIo {
    /// The fields of `io.stat`, without the device number in front.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ([rbytes, wbytes, dbytes], [rios, wios, dios]) = (self.bytes, self.ios);
        write!(f, "rbytes={rbytes} wbytes={wbytes} rios={rios} wios={wios} dbytes={dbytes} dios={dios}")
    }
}

impl Probe for CgroupStats {
    const WATCHES: bool = false;

    // The kind of an event is known at compile time, so most of this is removed by inlining.
    #[inline(always)]
    fn event(&mut self, _: Now, _: CpuId, event: Event<'_>) {
        let Event::Queue(bio) = event else { return };
        let kind = match bio.op {
            Op::Read => 0,
            Op::Write | Op::WriteZeroes | Op::Flush => 1,
            Op::Discard => 2,
        };
        if self.groups.len() <= bio.cgroup.index() {
            self.groups.resize(bio.cgroup.index() + 1, CgroupIo::default());
        }
        let group = &mut self.groups[bio.cgroup.index()];
        group.bytes[kind] += u64::from(bio.sectors) * SECTOR_BYTES;
        group.ios[kind] += 1;
    }
}
