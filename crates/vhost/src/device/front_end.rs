//! What a front end says of a disk, and what is to be known about it.

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
    /// What can be taken of features.
    #[must_use]
    pub fn offered(&self) -> Features {
        Features::offered(self.disk.read_only)
    }

    /// A driver has taken these, and is at its beginning.
    ///
    /// # Errors
    /// If some of them were not offered.
    pub fn set_features(&mut self, features: Features) -> Result<(), Problem> {
        if !self.offered().contain(features) {
            return Err(Problem::Features(features.0 & !self.offered().0));
        }
        self.features = features;
        self.begin_with_cache_mode();
        Ok(())
    }

    fn begin_with_cache_mode(&mut self) {
        let has_chosen_through = self.record.as_ref().is_some_and(Record::writes_through);
        self.is_write_back = self.features.begins_with_write_back() && !has_chosen_through;
    }

    /// The configuration, with zeroes behind it; `None` for what is not there.
    #[must_use]
    pub fn config(&self, offset: u32, bytes: u32) -> Option<Vec<u8>> {
        let (start, end) = (offset as usize, (offset as usize).checked_add(bytes as usize)?);
        (end <= CONFIG_BYTES).then(|| self.disk.config(self.is_write_back)[start..end].to_vec())
    }

    /// What writing the configuration would come to: whether the disk writes back from then on.
    ///
    /// # Errors
    /// If a driver may not write that.
    pub fn wants_write_back(&self, offset: u32, bytes: &[u8]) -> Result<bool, Problem> {
        match bytes {
            [0 | 1] if offset == WRITEBACK_AT && self.features.chooses_cache() => Ok(bytes[0] == 1),
            _ => Err(Problem::Config { offset, bytes: bytes.len() }),
        }
    }

    /// From now on writes end when they are durable, or before. The driver has flushed before it switches the cache off.
    pub fn set_write_back(&mut self, is_write_back: bool) {
        self.is_write_back = is_write_back;
        if let Some(record) = &self.record {
            record.set_writes_through(!is_write_back);
        }
    }

    /// Whether writes end before they are durable.
    #[must_use]
    pub fn is_write_back(&self) -> bool {
        self.is_write_back
    }

    /// The memory that is shared.
    #[must_use]
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Other memory is shared from now on. No in-flight request needs the old one.
    pub fn set_memory(&mut self, memory: Memory) {
        self.rings.iter_mut().for_each(|ring| ring.relocate(&memory));
        self.memory = memory;
        self.start();
    }

    /// The number of entries of a ring.
    ///
    /// # Errors
    /// If there is no such ring, cannot be one of that length, or it has begun.
    pub fn set_size(&mut self, index: u32, size: u32) -> Result<(), Problem> {
        if self.ring(index)?.set_size(size) { Ok(()) } else { Err(Problem::Size(size)) }
    }

    /// Where a ring lies. If that is nowhere at present it starts when there is memory.
    ///
    /// # Errors
    /// If there is no such ring.
    pub fn set_addresses(&mut self, index: u32, addresses: Addresses) -> Result<(), Problem> {
        self.ring(index)?;
        self.rings[index as usize].set_addresses(addresses, &self.memory);
        self.start();
        Ok(())
    }

    /// Where a ring goes on.
    ///
    /// # Errors
    /// If there is no such ring, or it has begun.
    pub fn set_base(&mut self, index: u32, base: u32) -> Result<(), Problem> {
        // The index of a split ring has 16 bits; what is above belongs to packed ones.
        if self.ring(index)?.set_base(base as u16) { Ok(()) } else { Err(Problem::Running(index)) }
    }

    /// Sets the eventfd that is signaled for new requests of a ring. Returns the previous one.
    ///
    /// # Errors
    /// If there is no such ring, or nothing to be rung.
    pub fn set_kick(&mut self, index: u8, kick: Option<File>) -> Result<Option<File>, Problem> {
        let kick = no_socket(kick.ok_or(Problem::Polling)?)?;
        let before = self.ring(index)?.kick.replace(kick);
        self.start();
        Ok(before)
    }

    /// What rings when there is something in a ring.
    #[must_use]
    pub fn kick(&self, index: u8) -> Option<BorrowedFd<'_>> {
        self.rings.get(usize::from(index))?.kick.as_ref().map(|kick| kick.as_fd())
    }

    /// What is rung when something has been given back.
    ///
    /// # Errors
    /// If there is no such ring.
    pub fn set_call(&mut self, index: u8, call: Option<File>) -> Result<(), Problem> {
        self.ring(index)?.call = call.map(event_fd).transpose()?;
        Ok(())
    }

    /// What is rung when a ring is broken.
    ///
    /// # Errors
    /// If there is no such ring.
    pub fn set_error(&mut self, index: u8, error: Option<File>) -> Result<(), Problem> {
        self.ring(index)?.error = error.map(event_fd).transpose()?;
        Ok(())
    }

    /// A ring may be taken from, or may not.
    ///
    /// # Errors
    /// If there is no such ring.
    pub fn enable(&mut self, index: u32, is_enabled: bool) -> Result<(), Problem> {
        self.ring(index)?.is_enabled = is_enabled;
        self.start();
        Ok(())
    }

    /// Stops a ring: no more requests are taken. Returns where it continues once nothing of it is in flight, and its kick eventfd.
    ///
    /// # Errors
    /// If there is no such ring.
    pub fn stop(&mut self, index: u32) -> Result<(u16, Option<File>), Problem> {
        let ring = self.ring(index)?;
        Ok((ring.stop(), ring.kick.take()))
    }

    /// All rings are stopped; what is in flight may be [finished](Self::finish).
    pub fn stop_all(&mut self) {
        self.rings.iter_mut().for_each(|ring| {
            ring.stop();
        });
    }

    /// As before a driver came. Nothing is in flight.
    pub fn reset(&mut self) {
        self.rings.iter_mut().for_each(Ring::reset);
        self.features = Features::default();
        (self.record, self.is_write_back) = (None, true);
    }

    /// A record of what is in flight is kept from now on.
    pub fn set_record(&mut self, record: Record) {
        self.record = Some(record);
        self.begin_with_cache_mode();
    }

    /// Nothing is taken until this is called with `false`.
    pub fn pause(&mut self, is_paused: bool) {
        self.is_paused = is_paused;
    }

    /// Starts whatever can be started now.
    fn start(&mut self) {
        for ring in &mut self.rings {
            ring.start(&self.memory, self.features, self.record.as_ref());
        }
    }
}

/// A descriptor that is no socket: one could be the front end's own end of the connection, and its peer would never see that
/// the front end has gone.
fn no_socket(file: File) -> Result<File, Problem> {
    let kind = fstat(&file).map(|status| FileType::from_raw_mode(status.st_mode));
    match kind.map_err(|error| Problem::EventFd(error.into()))? {
        FileType::Socket => Err(Problem::EventFd(std::io::Error::other("a socket (expected an eventfd)"))),
        _ => Ok(file),
    }
}

/// A descriptor to be rung, which must not make us wait.
fn event_fd(file: File) -> Result<File, Problem> {
    let file = no_socket(file)?;
    let not_waiting = fcntl_getfl(&file).and_then(|flags| fcntl_setfl(&file, flags | OFlags::NONBLOCK));
    not_waiting.map_err(|error| Problem::EventFd(error.into()))?;
    Ok(file)
}
