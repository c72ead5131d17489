//! Guests: virtual machines between the load and the host. The load's processes run in the guests; each of the load's files
//! is a virtual disk with its own queue and scheduler in the guest. All virtual disks are on one device of the host, which
//! has its own queue and scheduler.
//!
//! Used by: `scenario`, `simulation`; crate `experiment`.
//! Tests: `crates/sim/tests/guests.rs`.

use hoistway_blk::ground::{CgroupId, CpuId, IoContextId};

use crate::cgroups::Cgroups;
use crate::io_thread::IoThreadIdentity;
use crate::virtual_disk::VirtualDisk;

/// The guests of a scenario.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Guests {
    /// The kind of virtual disk.
    pub disk: VirtualDisk,
    /// Weights of the guests' cgroups on the host, by the files that are their disks. If any guest has a weight, the others
    /// have the default of 100.
    pub weights: Vec<(String, u32)>,
}

impl Guests {
    /// The cgroups of the guests on the host.
    pub(crate) fn cgroups(&self, files: &[String]) -> Cgroups {
        let mut cgroups = Cgroups::default();
        if !self.weights.is_empty() {
            for file in files {
                let weight = self.weights.iter().find(|(name, _)| name == file).map(|&(_, weight)| weight);
                cgroups.add_child(file, weight);
            }
        }
        cgroups
    }

    /// Identity of the I/O thread of a virtual disk. The host's device is numbered after all virtual disks.
    pub(crate) fn io_thread_identity(
        &self,
        number: u32,
        disks: usize,
        processes: usize,
        cpus: u16,
    ) -> IoThreadIdentity {
        // I/O contexts of processes come first, then those of the guests' flushers.
        let io_context = (processes + disks) as u32 + number + 1;
        IoThreadIdentity {
            number,
            lower: disks as u32,
            io_context: IoContextId(io_context),
            cgroup: if self.weights.is_empty() { CgroupId::ROOT } else { CgroupId(number + 1) },
            cpu: CpuId(number % u32::from(cpus.max(1))),
        }
    }
}
