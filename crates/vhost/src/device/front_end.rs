//! The front end's configuration of a disk, and queries about it.

use std::fs::File;
use std::os::fd::{AsFd as _, BorrowedFd};

use rustix::fs::{FileType, OFlags, fcntl_getfl, fcntl_setfl, fstat};

use super::{Device, Problem};
use crate::config_space::{CONFIG_BYTES, WRITEBACK_AT};
use crate::features::Features;
use crate::memory::Memory;
use crate::record::Record;
use crate::ring::{Addresses, Ring};

impl Device {
    /// The features that a driver may accept.
    #[must_use]
    pub fn offered(&self) -> Features {
        Features::offered(self.disk.read_only)
    }

    /// A driver has accepted these features, and starts.
    ///
    /// # Errors
    /// If some of them were not offered.
    pub fn set_features(&mut self, features: Features) -> Result<(), Problem> {
        if !self.offered().contain(features) {
            return Err(Problem::Features(features.0 & !self.offered().0));
        }
        self.features = features;
        self.reset_cache_mode();
        Ok(())
    }

    fn reset_cache_mode(&mut self) {
        let chose_write_through = self.record.as_ref().is_some_and(Record::writes_through);
        self.is_write_back = self.features.begins_with_write_back() && !chose_write_through;
    }

    /// The configuration, followed by zeroes; `None` outside of it.
    #[must_use]
    pub fn config(&self, offset: u32, bytes: u32) -> Option<Vec<u8>> {
        let (start, end) = (offset as usize, (offset as usize).checked_add(bytes as usize)?);
        (end <= CONFIG_BYTES).then(|| self.disk.config(self.is_write_back)[start..end].to_vec())
    }

    /// The effect of a write to the configuration: whether the disk is in write-back mode afterwards.
    ///
    /// # Errors
    /// If a driver may not make this write.
    pub fn wants_write_back(&self, offset: u32, bytes: &[u8]) -> Result<bool, Problem> {
        match bytes {
            [0 | 1] if offset == WRITEBACK_AT && self.features.chooses_cache() => Ok(bytes[0] == 1),
            _ => Err(Problem::Config { offset, bytes: bytes.len() }),
        }
    }

    /// Sets whether writes may complete before they are durable. The driver has flushed before it turns the cache off.
    pub fn set_write_back(&mut self, is_write_back: bool) {
        self.is_write_back = is_write_back;
        if let Some(record) = &self.record {
            record.set_writes_through(!is_write_back);
        }
    }

    /// Whether writes may complete before they are durable.
    #[must_use]
    pub fn is_write_back(&self) -> bool {
        self.is_write_back
    }

    /// The shared memory.
    #[must_use]
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Replaces the shared memory. No request in flight may use the old memory.
    pub fn set_memory(&mut self, memory: Memory) {
        self.rings.iter_mut().for_each(|ring| ring.remap_ring(&memory));
        self.memory = memory;
        self.start();
    }

    /// Sets the number of entries of a ring.
    ///
    /// # Errors
    /// If there is no such ring, the size is invalid, or the ring is running.
    pub fn set_size(&mut self, index: u32, size: u32) -> Result<(), Problem> {
        if self.ring(index)?.set_size(size) { Ok(()) } else { Err(Problem::Size(size)) }
    }

    /// Sets the addresses of a ring. If they are not in memory yet, the ring starts when there is memory.
    ///
    /// # Errors
    /// If there is no such ring.
    pub fn set_addresses(&mut self, index: u32, addresses: Addresses) -> Result<(), Problem> {
        self.ring(index)?;
        self.rings[index as usize].set_addresses(addresses, &self.memory);
        self.start();
        Ok(())
    }

    /// Sets the index at which a ring continues.
    ///
    /// # Errors
    /// If there is no such ring, or it is running.
    pub fn set_base(&mut self, index: u32, base: u32) -> Result<(), Problem> {
        // The index of a split ring has 16 bits; higher bits are used by packed rings.
        if self.ring(index)?.set_base(base as u16) { Ok(()) } else { Err(Problem::Running(index)) }
    }

    /// Sets the eventfd that is signaled for new requests of a ring. Returns the previous one.
    ///
    /// # Errors
    /// If there is no such ring, or the descriptor is not an eventfd.
    pub fn set_kick(&mut self, index: u8, kick: Option<File>) -> Result<Option<File>, Problem> {
        let kick = reject_socket(kick.ok_or(Problem::Polling)?)?;
        let previous = self.ring(index)?.kick.replace(kick);
        self.start();
        Ok(previous)
    }

    /// The eventfd that is signaled for new requests of a ring.
    #[must_use]
    pub fn kick(&self, index: u8) -> Option<BorrowedFd<'_>> {
        self.rings.get(usize::from(index))?.kick.as_ref().map(|kick| kick.as_fd())
    }

    /// Sets the eventfd to signal when requests are returned.
    ///
    /// # Errors
    /// If there is no such ring.
    pub fn set_call(&mut self, index: u8, call: Option<File>) -> Result<(), Problem> {
        self.ring(index)?.call = call.map(event_fd).transpose()?;
        Ok(())
    }

    /// Sets the eventfd to signal when a ring is broken.
    ///
    /// # Errors
    /// If there is no such ring.
    pub fn set_error(&mut self, index: u8, error: Option<File>) -> Result<(), Problem> {
        self.ring(index)?.error = error.map(event_fd).transpose()?;
        Ok(())
    }

    /// Enables or disables a ring.
    ///
    /// # Errors
    /// If there is no such ring.
    pub fn enable(&mut self, index: u32, is_enabled: bool) -> Result<(), Problem> {
        self.ring(index)?.is_enabled = is_enabled;
        self.start();
        Ok(())
    }

    /// Stops a ring: no more requests are taken. Returns the index at which it continues once none of its requests is in flight,
    /// and its kick eventfd.
    ///
    /// # Errors
    /// If there is no such ring.
    pub fn stop(&mut self, index: u32) -> Result<(u16, Option<File>), Problem> {
        let ring = self.ring(index)?;
        Ok((ring.stop(), ring.kick.take()))
    }

    /// Stops all rings; requests in flight may still be [finished](Self::finish).
    pub fn stop_all(&mut self) {
        self.rings.iter_mut().for_each(|ring| {
            ring.stop();
        });
    }

    /// Resets it to the state before a driver. Nothing may be in flight.
    pub fn reset(&mut self) {
        self.rings.iter_mut().for_each(Ring::reset);
        self.features = Features::default();
        (self.record, self.is_write_back) = (None, true);
    }

    /// Keeps an in-flight record from now on.
    pub fn set_record(&mut self, record: Record) {
        self.record = Some(record);
        self.reset_cache_mode();
    }

    /// While paused no requests are taken.
    pub fn pause(&mut self, is_paused: bool) {
        self.is_paused = is_paused;
    }

    /// Starts all rings that can be started now.
    fn start(&mut self) {
        for ring in &mut self.rings {
            ring.start(&self.memory, self.features, self.record.as_ref());
        }
    }
}

/// Rejects sockets: a socket could be the front end's own end of the connection, and then its disconnection would never be
/// noticed.
fn reject_socket(file: File) -> Result<File, Problem> {
    let kind = fstat(&file).map(|status| FileType::from_raw_mode(status.st_mode));
    match kind.map_err(|error| Problem::EventFd(error.into()))? {
        FileType::Socket => Err(Problem::EventFd(std::io::Error::other("a socket (expected an eventfd)"))),
        _ => Ok(file),
    }
}

/// An eventfd, made non-blocking.
fn event_fd(file: File) -> Result<File, Problem> {
    let file = reject_socket(file)?;
    let nonblocking = fcntl_getfl(&file).and_then(|flags| fcntl_setfl(&file, flags | OFlags::NONBLOCK));
    nonblocking.map_err(|error| Problem::EventFd(error.into()))?;
    Ok(file)
}
