//! What a stacked device is: a block device over others.
//!
//! Used by: `disk`, `stacks`, `simulation`; crate `experiment`.
//! Tests: `crates/sim/tests/stacks.rs`.

/// Sectors of a write-intent bitmap, after the data of each member.
pub(crate) const BITMAP_SECTORS: u64 = 256;

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
    Raid1 {
        /// Whether it has an internal write-intent bitmap.
        bitmap: bool,
    },
    /// Chunks on each member in turn, one of each stripe with the parity of the others.
    Raid5 {
        /// Sectors of a chunk.
        chunk_sectors: u32,
    },
    /// The same with two chunks of parity.
    Raid6 {
        /// Sectors of a chunk.
        chunk_sectors: u32,
    },
    /// One member with encrypted data, as dm-crypt has it.
    Crypt(Encryption),
}

impl StackKind {
    /// Sectors of a device of this kind over members with these sectors.
    #[must_use]
    pub fn sectors(self, members: &[u64]) -> u64 {
        let least = members.iter().copied().min().unwrap_or(0);
        match self {
            StackKind::Linear | StackKind::Crypt(_) => members.iter().sum(),
            StackKind::Raid0 { chunk_sectors } => {
                let chunk = u64::from(chunk_sectors);
                least / chunk * chunk * members.len() as u64
            }
            StackKind::Raid1 { bitmap } => least.saturating_sub(if bitmap { BITMAP_SECTORS } else { 0 }),
            StackKind::Raid5 { chunk_sectors } | StackKind::Raid6 { chunk_sectors } => {
                let chunk = u64::from(chunk_sectors);
                let parities = if matches!(self, StackKind::Raid6 { .. }) { 2 } else { 1 };
                least / chunk * chunk * (members.len() as u64).saturating_sub(parities)
            }
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

/// The options of an encrypted device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Encryption {
    /// Whether reads are decrypted by a work queue: false for `no_read_workqueue`.
    pub read_queue: bool,
    /// Whether writes are encrypted by a work queue: false for `no_write_workqueue`.
    pub write_queue: bool,
    /// CPU time to encrypt or decrypt 1 KiB, ns.
    pub ns_per_kib: u32,
}

impl Encryption {
    /// The default CPU time for 1 KiB, ns: 2.5 GB/s, the order of what `cryptsetup benchmark` prints for aes-xts with AES
    /// instructions. Assumed.
    pub const NS_PER_KIB: u32 = 400;
}
