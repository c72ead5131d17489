//! A disk and one guest: all that its front end has said, and the requests that are under way.

use std::fs::File;
use std::os::fd::{AsFd as _, BorrowedFd};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use crate::chain::Chain;
use crate::config_space::{CONFIG_BYTES, Disk, WRITEBACK_AT};
use crate::features::Features;
use crate::memory::{Memory, MemoryError, Space as _};
use crate::record::{QUEUES_MAX, Record, RecordError};
use crate::request::{Limits, Request, Status, Verdict, parse, write_id};
use crate::ring::{Addresses, Broken, Ring};

/// What is wrong with what a front end says.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// A ring that there is not.
    #[error("there is no queue {0}")]
    Queue(u64),
    /// A length that no ring has.
    #[error("a queue of {0} entries (expected a power of two up to 1024)")]
    Size(u32),
    /// Where a ring begins that has begun.
    #[error("queue {0} has begun already")]
    Running(u32),
    /// Features that were not offered.
    #[error("features that were not offered: {0:#x}")]
    Features(u64),
    /// A place that a driver may not write, or not that.
    #[error("the configuration at {offset} cannot be written with {bytes} bytes")]
    Config {
        /// Where.
        offset: u32,
        /// How much.
        bytes: usize,
    },
    /// A ring that is to be looked at again and again.
    #[error("a queue without a descriptor to be kicked with")]
    Polling,
    /// A descriptor that cannot be rung.
    #[error("a descriptor that is none to be rung: {0}")]
    Bell(std::io::Error),
    /// Memory.
    #[error("{0}")]
    Memory(#[from] MemoryError),
    /// The record of what is in flight.
    #[error("{0}")]
    Record(#[from] RecordError),
}

/// A request that has been taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Head {
    /// Of which ring.
    pub ring: u16,
    /// Where its chain begins.
    pub index: u16,
}

/// What taking came to.
#[derive(Debug)]
pub enum Taken {
    /// Nothing is available, or nothing is taken at present.
    Nothing,
    /// A request, which has to be [finished](Device::finish).
    Request(Head, Request),
    /// One that has been answered already.
    Answered(Status),
    /// One that has been given back without an answer, as there was no place for it.
    NoStatus,
    /// The ring is broken, which has not been told before.
    Broken(Broken),
}

/// A disk, as one guest has it.
pub struct Device {
    disk: Disk,
    limits: Limits,
    features: Features,
    memory: Memory,
    rings: Vec<Ring>,
    record: Option<Record>,
    is_write_back: bool,
    /// Nothing is taken while something changes.
    is_paused: bool,
}

impl Device {
    /// A disk that no driver has looked at.
    #[must_use]
    pub fn new(disk: Disk, limits: Limits) -> Device {
        let rings = (0..disk.queues.min(QUEUES_MAX)).map(Ring::new).collect();
        Device {
            disk,
            limits,
            features: Features::default(),
            memory: Memory::default(),
            rings,
            record: None,
            is_write_back: true,
            is_paused: false,
        }
    }

    /// The disk.
    #[must_use]
    pub fn disk(&self) -> &Disk {
        &self.disk
    }

    /// Its rings.
    #[must_use]
    pub fn rings(&self) -> &[Ring] {
        &self.rings
    }

    fn ring(&mut self, index: impl Into<u64>) -> Result<&mut Ring, Problem> {
        let index = index.into();
        usize::try_from(index).ok().and_then(|at| self.rings.get_mut(at)).ok_or(Problem::Queue(index))
    }

    /// Requests that are under way, of all rings.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.rings.iter().map(Ring::in_flight).sum()
    }

    // --- what the front end says ---

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

    /// From now on writes end when they are durable, or before. Whoever switches the cache off has flushed.
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

    /// Other memory is shared from now on. Nothing is under way that what has gone is needed for.
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

    /// What rings when there is something in a ring. Answers what did so before.
    ///
    /// # Errors
    /// If there is no such ring, or nothing to be rung.
    pub fn set_kick(&mut self, index: u8, kick: Option<File>) -> Result<Option<File>, Problem> {
        let kick = kick.ok_or(Problem::Polling)?;
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
        self.ring(index)?.call = call.map(bell).transpose()?;
        Ok(())
    }

    /// What is rung when a ring is broken.
    ///
    /// # Errors
    /// If there is no such ring.
    pub fn set_error(&mut self, index: u8, error: Option<File>) -> Result<(), Problem> {
        self.ring(index)?.error = error.map(bell).transpose()?;
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

    /// A ring is stopped: no more is taken. Answers where it goes on once nothing of it is in flight, and what kicked it.
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

    // --- requests ---

    /// Whether a ring may have something.
    #[must_use]
    pub fn may_take(&self, ring: u16) -> bool {
        !self.is_paused && self.rings[usize::from(ring)].is_running()
    }

    /// Takes what is available next in a ring. The chain of a request is needed again to finish it.
    pub fn take(&mut self, ring: u16, chain: &mut Chain) -> Taken {
        if self.is_paused {
            return Taken::Nothing;
        }
        let Device { memory, record, features, disk, limits, rings, .. } = self;
        let index = ring;
        let ring = &mut rings[usize::from(ring)];
        let head = match ring.take(memory, record.as_ref()) {
            Ok(Some(head)) => head,
            Ok(None) => return Taken::Nothing,
            Err(broken) => return broke(ring, broken),
        };
        let verdict = match ring.walk(chain, memory, head, *features) {
            Ok(()) => parse(chain, memory, disk, *limits),
            Err(_) => Err(Verdict::NoStatus),
        };
        let (taken, written) = match verdict {
            Ok(Request::Id) => match write_id(chain, memory, disk) {
                Some(bytes) => (Taken::Answered(Status::Ok), bytes + 1),
                None => (Taken::Answered(Status::IoError), 1),
            },
            Ok(request) => return Taken::Request(Head { ring: index, index: head }, request),
            Err(Verdict::Answer(status)) => (Taken::Answered(status), 1),
            Err(Verdict::NoStatus) => (Taken::NoStatus, 0),
        };
        if let (Taken::Answered(status), Some(at)) = (&taken, chain.status_address()) {
            memory.write(at, &[*status as u8]);
        }
        match ring.give_back(memory, record.as_ref(), head, written) {
            Ok(()) => taken,
            Err(broken) => broke(ring, broken),
        }
    }

    /// A request has ended. `data` is that of a read that went well, and empty for anything else.
    ///
    /// # Errors
    /// If the ring cannot be written any more, which has not been told before.
    pub fn finish(&mut self, head: Head, chain: &Chain, status: Status, data: &[u8]) -> Result<Status, Broken> {
        let Device { memory, record, rings, .. } = self;
        let ring = &mut rings[usize::from(head.ring)];
        let (status, written) = match status {
            Status::Ok if chain.scatter(memory, data) => (Status::Ok, data.len() as u32 + 1),
            Status::Ok => (Status::IoError, 1),
            status => (status, 1),
        };
        if let Some(at) = chain.status_address() {
            memory.write(at, &[status as u8]);
        }
        match ring.give_back(memory, record.as_ref(), head.index, written) {
            Err(broken) if ring.break_down() => Err(broken),
            _ => Ok(status),
        }
    }

    /// A request has ended, and nobody is to be told: its guest has gone, or will ask for it again.
    pub fn forget(&mut self, head: Head) {
        self.rings[usize::from(head.ring)].forget(head.index);
    }

    /// The driver need not announce what comes.
    pub fn be_quiet(&mut self, ring: u16) {
        self.rings[usize::from(ring)].be_quiet(&self.memory);
    }

    /// Whether something is available in any ring that may be taken from. With `listens` the driver has to announce what comes
    /// from now on.
    pub fn has_more(&mut self, listens: bool) -> bool {
        if self.is_paused {
            return false;
        }
        let Device { memory, rings, .. } = self;
        let has_more = |ring: &mut Ring| if listens { ring.listen(memory) } else { ring.has_more(memory) };
        // Each is asked, so that each listens.
        rings.iter_mut().fold(false, |any, ring| has_more(ring) || any)
    }

    /// Tells the driver what has been given back, if it wants to know.
    pub fn tell(&mut self) {
        self.rings.iter_mut().for_each(|ring| ring.tell(&self.memory));
    }
}

fn broke(ring: &mut Ring, broken: Broken) -> Taken {
    if ring.break_down() { Taken::Broken(broken) } else { Taken::Nothing }
}

/// A descriptor to be rung, which must not make us wait.
fn bell(file: File) -> Result<File, Problem> {
    let not_waiting = fcntl_getfl(&file).and_then(|flags| fcntl_setfl(&file, flags | OFlags::NONBLOCK));
    not_waiting.map_err(|error| Problem::Bell(error.into()))?;
    Ok(file)
}
