//! A disk and one guest: its configuration by the front end, and the in-flight requests.

mod front_end;

use crate::chain::Chain;
use crate::config_space::Disk;
use crate::features::Features;
use crate::memory::{Memory, MemoryError, Space as _};
use crate::record::{QUEUES_MAX, Record, RecordError};
use crate::request::{Limits, Request, Status, Verdict, parse, write_id};
use crate::ring::{Broken, Ring};

/// What is wrong with a message of a front end.
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
    #[error("a queue without a kick descriptor")]
    Polling,
    /// A descriptor that cannot be signaled.
    #[error("a descriptor that cannot be signaled: {0}")]
    EventFd(std::io::Error),
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
    /// One that has been returned already, with this status.
    Completed(Status),
    /// One that has been returned without a status, because there was no place for it.
    NoStatus,
    /// The ring is broken, which has not been reported before.
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

    /// In-flight requests, of all rings.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.rings.iter().map(Ring::in_flight).sum()
    }

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
                Some(bytes) => (Taken::Completed(Status::Ok), bytes + 1),
                None => (Taken::Completed(Status::IoError), 1),
            },
            Ok(request) => return Taken::Request(Head { ring: index, index: head }, request),
            Err(Verdict::Complete(status)) => (Taken::Completed(status), 1),
            Err(Verdict::NoStatus) => (Taken::NoStatus, 0),
        };
        if let (Taken::Completed(status), Some(at)) = (&taken, chain.status_address()) {
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
    /// If the ring cannot be written any more, which has not been reported before.
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

    /// A request has ended and is not returned: its guest has gone, or the next server will carry it out again.
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
        // Each is asked, so that each listens.
        let mut any = false;
        for ring in rings {
            any |= if listens { ring.listen(memory) } else { ring.has_more(memory) };
        }
        any
    }

    /// Notifies the driver of returned requests, if it wants that.
    pub fn notify_driver(&mut self) {
        self.rings.iter_mut().for_each(|ring| ring.notify_driver(&self.memory));
    }
}

fn broke(ring: &mut Ring, broken: Broken) -> Taken {
    if ring.break_down() { Taken::Broken(broken) } else { Taken::Nothing }
}
