//! Block devices over block devices: what a stacked device is, and its layers during a run.
//!
//! Used by: `simulation`, `disk`, `scenario`; crate `experiment`.
//! Tests: `crates/sim/src/stacks/` (in its files), `crates/sim/tests/stacks.rs`.
//!
//! A stacked device has no queue, no tags and no scheduler: it splits, copies or defers each bio, and what results goes to
//! the queues of the disks at the bottom. The submitting process does that itself within its call, so its plug holds the
//! bios for the disks; what a layer does later, its thread submits. `geometry` has the places, `joins` what is
//! outstanding, `layers` the path of a bio down, `mirror` that of raid1, and `thread` the threads.

pub(crate) mod geometry;
mod joins;
mod layers;
mod mirror;
mod thread;

pub(crate) use layers::Layers;

/// A block device over others.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StackedDevice {
    /// Its name, as the load's file or as other stacked devices know it.
    pub name: String,
    /// What it does.
    pub kind: StackKind,
    /// What it lies on, in order.
    pub members: Vec<StackMember>,
}

/// What a stacked device lies on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StackMember {
    /// A disk, by its number.
    Disk(u32),
    /// A stacked device before this one, by its number.
    Stack(u32),
}

/// What a stacked device does with a bio.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StackKind {
    /// Members one after the other, as dm-linear and LVM have them.
    Linear,
    /// Chunks on each member in turn, without redundancy.
    Raid0 {
        /// Sectors of a chunk.
        chunk_sectors: u32,
    },
    /// The same data on each member.
    Raid1,
}

impl StackKind {
    /// Sectors of a device of this kind over members with these sectors.
    #[must_use]
    pub fn sectors(self, members: &[u64]) -> u64 {
        let least = members.iter().copied().min().unwrap_or(0);
        match self {
            StackKind::Linear => members.iter().sum(),
            StackKind::Raid0 { chunk_sectors } => {
                let chunk = u64::from(chunk_sectors);
                least / chunk * chunk * members.len() as u64
            }
            StackKind::Raid1 => least,
        }
    }
}

impl StackedDevice {
    /// The numbers of those devices that are on top: no other lies on them.
    pub fn outermost(devices: &[StackedDevice]) -> impl Iterator<Item = usize> + use<'_> {
        let is_member = |number: usize| {
            devices.iter().flat_map(|device| &device.members).any(|&member| member == StackMember::Stack(number as u32))
        };
        (0..devices.len()).filter(move |&number| !is_member(number))
    }

    /// Sectors of each device, over disks with these sectors.
    #[must_use]
    pub fn capacities(devices: &[StackedDevice], disks: &[u64]) -> Vec<u64> {
        let mut capacities: Vec<u64> = Vec::with_capacity(devices.len());
        for device in devices {
            let of_member = |member: &StackMember| match *member {
                StackMember::Disk(disk) => disks[disk as usize],
                StackMember::Stack(stack) => capacities[stack as usize],
            };
            let members: Vec<u64> = device.members.iter().map(of_member).collect();
            capacities.push(device.kind.sectors(&members));
        }
        capacities
    }

    /// The disks at the bottom of a device, by its number.
    #[must_use]
    pub fn bottom_disks(devices: &[StackedDevice], number: usize) -> Vec<u32> {
        let of_member = |member: &StackMember| match *member {
            StackMember::Disk(disk) => vec![disk],
            StackMember::Stack(stack) => StackedDevice::bottom_disks(devices, stack as usize),
        };
        devices[number].members.iter().flat_map(of_member).collect()
    }
}
