//! Guests: virtual machines between the load and the host. The load's processes run in them, each of its files is a
//! virtual disk with a queue and a scheduler of the guest's, and all virtual disks lie on one device of the host, which has
//! a queue and a scheduler of its own.

use hoistway_blk::ground::{CgroupId, CpuId, IoContextId};

use crate::cgroups::Cgroups;
use crate::io_thread::IoThreadIdentity;
use crate::virtual_disk::VirtualDisk;

/// The guests of a scenario.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Guests {
    /// What their disks are.
    pub disk: VirtualDisk,
    /// Weights of the cgroups that the guests have on the host, by the files that are their disks. If there are any,
    /// guests without one have the default weight, 100.
    pub weights: Vec<(String, u32)>,
}

/// What a run sets in all guests.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GuestSpec {
    /// The scheduler of every virtual disk.
    pub scheduler: String,
    /// Its tunables: name and text.
    pub tunables: Vec<(String, String)>,
}

impl Guests {
    /// The cgroups of the guests on the host.
    pub(crate) fn cgroups(&self, files: &[String]) -> Cgroups {
        let mut cgroups = Cgroups::default();
        if !self.weights.is_empty() {
            for file in files {
                let weight = self.weights.iter().find(|(of, _)| of == file).map(|&(_, weight)| weight);
                cgroups.add_child(file, weight);
            }
        }
        cgroups
    }

    /// Where the virtual disk of this number lies, on a device of the host that comes after all of them.
    pub(crate) fn place(&self, number: u32, disks: usize, processes: usize, cpus: u16) -> IoThreadIdentity {
        // I/O contexts: those of the processes come first, then those of the guests' flushers.
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
