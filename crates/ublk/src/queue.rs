//! The queue of a device: requests in, results out.
//!
//! Used by: `device`; crate `serve`.
//! Tests: `crates/ublk/src/kernel.rs`.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use crate::disk::Disk;
use crate::kernel::{Descriptors, QueueRing};
use crate::layout::{COMMIT_AND_FETCH_REQ, FETCH_REQ, data_position};
use crate::request::{BadDescriptor, Request};

/// The queue of a device. One thread serves it: the one that calls [`fetch_all`](Self::fetch_all).
pub struct UblkQueue {
    ring: QueueRing,
    descriptors: Descriptors,
    disk: Disk,
    depth: u16,
    /// Tags whose requests the kernel may still send, or has sent.
    tags_in_use: u16,
}

impl UblkQueue {
    pub(crate) fn new(device: OwnedFd, disk: &Disk, depth: u16) -> io::Result<UblkQueue> {
        let ring = QueueRing::new(device, depth)?;
        let descriptors = Descriptors::map(ring.device(), depth)?;
        Ok(UblkQueue { ring, descriptors, disk: *disk, depth, tags_in_use: 0 })
    }

    /// Maximum number of requests.
    #[must_use]
    pub fn depth(&self) -> u16 {
        self.depth
    }

    /// Becomes readable when there are requests, or when the device has been stopped.
    #[must_use]
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.ring.descriptor()
    }

    /// Fetches the first requests; the device can then be started. To be called once, by the thread that serves the queue.
    pub fn fetch_all(&mut self) {
        self.tags_in_use = self.depth;
        (0..self.depth).for_each(|tag| self.ring.push(FETCH_REQ, tag, 0));
        self.ring.submit();
    }

    /// The tag of the next new request.
    pub fn take(&mut self) -> Option<u16> {
        while let Some((tag, result)) = self.ring.take() {
            if result >= 0 && tag < self.depth {
                return Some(tag);
            }
            // The device has been stopped: the kernel sends no more requests with this tag.
            self.tags_in_use = self.tags_in_use.saturating_sub(1);
        }
        None
    }

    /// Whether there is something to take.
    pub fn has_more(&mut self) -> bool {
        self.ring.has_completions()
    }

    /// Whether the device has been stopped, and no request will come.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.tags_in_use == 0
    }

    /// What the request with this tag asks for.
    ///
    /// # Errors
    /// If it is no request to this disk.
    pub fn request(&self, tag: u16) -> Result<Request, BadDescriptor> {
        Request::parse(&self.descriptors.read(tag), &self.disk)
    }

    /// Reads the data of a write.
    ///
    /// # Errors
    /// If the device has been stopped meanwhile.
    pub fn read_data(&self, tag: u16, data: &mut [u8]) -> io::Result<()> {
        let (device, mut position, mut rest) = (self.ring.device(), data_position(tag), data);
        while !rest.is_empty() {
            match rustix::io::pread(device, &mut *rest, position)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => (position, rest) = (position + count as u64, &mut rest[count..]),
            }
        }
        Ok(())
    }

    /// Writes the data of a read.
    ///
    /// # Errors
    /// If the device has been stopped meanwhile.
    pub fn write_data(&self, tag: u16, data: &[u8]) -> io::Result<()> {
        let (device, mut position, mut rest) = (self.ring.device(), data_position(tag), data);
        while !rest.is_empty() {
            match rustix::io::pwrite(device, rest, position)? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                count => (position, rest) = (position + count as u64, &rest[count..]),
            }
        }
        Ok(())
    }

    /// Returns a request: the length of a read or write, 0 for others, or an errno. Its tag fetches the next request once it has been
    /// [submitted](Self::submit).
    pub fn commit(&mut self, tag: u16, result: Result<u32, i32>) {
        let result = result.map_or_else(|errno| -errno.abs(), |bytes| bytes as i32);
        self.ring.push(COMMIT_AND_FETCH_REQ, tag, result);
    }

    /// Sends the returned requests to the kernel. Returns whether it took all of them; if it is short of memory, the others wait for the
    /// next call.
    pub fn submit(&mut self) -> bool {
        self.ring.submit()
    }
}
