//! A guest's memory: a file that is shared with the server.

use std::fs::File;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::sync::atomic::Ordering;

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use vhost::VhostUserMemoryRegionInfo;
use vm_memory::{AtomicAccess, Bytes as _, FileOffset, MmapRegion, VolatileMemory as _};

/// Two regions with a hole between them, as guest-physical addresses and bytes.
pub(crate) const REGIONS: [(u64, u64); 2] = [(0x10_0000, 1 << 20), (0x1000_0000, 64 << 20)];

pub(crate) struct Memory {
    file: File,
    map: MmapRegion,
}

impl Memory {
    pub(crate) fn new() -> Memory {
        let file: OwnedFd = memfd_create("guest", MemfdFlags::CLOEXEC).unwrap();
        let bytes = REGIONS.iter().map(|(_, bytes)| bytes).sum::<u64>();
        ftruncate(&file, bytes).unwrap();
        let file = File::from(file);
        let map = MmapRegion::from_file(FileOffset::new(file.try_clone().unwrap(), 0), bytes as usize).unwrap();
        Memory { file, map }
    }

    /// What is sent to the server about it.
    pub(crate) fn regions(&self) -> Vec<VhostUserMemoryRegionInfo> {
        let mut offset = 0;
        let region = |&(guest, bytes): &(u64, u64)| {
            let region = VhostUserMemoryRegionInfo {
                guest_phys_addr: guest,
                memory_size: bytes,
                userspace_addr: self.user(guest),
                mmap_offset: offset,
                mmap_handle: self.file.as_raw_fd(),
            };
            offset += bytes;
            region
        };
        REGIONS.iter().map(region).collect()
    }

    fn offset(address: u64) -> usize {
        let mut before = 0;
        for (guest, bytes) in REGIONS {
            if (guest..guest + bytes).contains(&address) {
                return (before + address - guest) as usize;
            }
            before += bytes;
        }
        panic!("{address:#x} is no memory");
    }

    /// The address in this process.
    pub(crate) fn user(&self, address: u64) -> u64 {
        self.map.as_ptr() as u64 + Memory::offset(address) as u64
    }

    pub(crate) fn write(&self, address: u64, bytes: &[u8]) {
        self.map.as_volatile_slice().write_slice(bytes, Memory::offset(address)).unwrap();
    }

    pub(crate) fn read(&self, address: u64, bytes: usize) -> Vec<u8> {
        let mut into = vec![0; bytes];
        self.map.as_volatile_slice().read_slice(&mut into, Memory::offset(address)).unwrap();
        into
    }

    pub(crate) fn load<T: AtomicAccess>(&self, address: u64) -> T {
        self.map.as_volatile_slice().load(Memory::offset(address), Ordering::SeqCst).unwrap()
    }

    pub(crate) fn store<T: AtomicAccess>(&self, address: u64, value: T) {
        self.map.as_volatile_slice().store(value, Memory::offset(address), Ordering::SeqCst).unwrap();
    }
}
