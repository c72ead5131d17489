//! A disk and its guest: the configuration by the front end, and requests in flight.
//!
//! Used by: crate `serve`.
//! Tests: `crates/vhost/tests/any_bytes.rs`, `crates/serve/tests/guest/front_ends.rs`.

mod front_end;

use crate::chain::Chain;
use crate::config_space::Disk;
use crate::features::Features;
use crate::memory::{GuestAddressSpace as _, Memory, MemoryError};
use crate::record::{InflightRecordError, QUEUES_MAX, Record};
use crate::request::{Limits, Request, RequestRejection, Status, parse, write_id};
use crate::ring::{Broken, Ring};

/// An error in a message of a front end.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// There is no such ring.
    #[error("there is no queue {0}")]
    Queue(u64),
    /// An invalid ring size.
    #[error("invalid queue size {0} (expected a power of two up to 1024)")]
    Size(u32),
    /// The ring is running, so its start index cannot be set.
    #[error("queue {0} is already running")]
    Running(u32),
    /// Features that were not offered.
    #[error("features that were not offered: {0:#x}")]
    Features(u64),
    /// A write to the configuration that is not allowed.
    #[error("the configuration at {offset} cannot be written with {bytes} bytes")]
    Config {
        /// Its offset.
        offset: u32,
        /// Its length.
        bytes: usize,
    },
    /// A ring without a kick descriptor, which would have to be polled.
    #[error("a queue without a kick descriptor")]
    Polling,
    /// A descriptor that cannot be signaled.
    #[error("a descriptor that cannot be signaled: {0}")]
    EventFd(std::io::Error),
    /// An error of memory regions.
    #[error("{0}")]
    Memory(#[from] MemoryError),
    /// An error of the in-flight record.
    #[error("{0}")]
    Record(#[from] InflightRecordError),
}

/// A request that has been taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Head {
    /// Its ring.
    pub ring: u16,
    /// The index of its first descriptor.
    pub index: u16,
}

/// The result of taking a request.
#[derive(Debug)]
pub enum Taken {
    /// No request is available, or none may be taken now.
    Nothing,
    /// A request, which must be [finished](Device::finish).
    Request(Head, Request),
    /// A request that has been returned already, with this status.
    Completed(Status),
    /// A request that has been returned without a status, because there was no room for it.
    NoStatus,
    /// The ring is broken; reported once.
    Broken(Broken),
}

/// A disk of one guest.
pub struct Device {
    disk: Disk,
    limits: Limits,
    features: Features,
    memory: Memory,
    rings: Vec<Ring>,
    record: Option<Record>,
    is_write_back: bool,
    /// Whether taking requests is paused during a change.
    is_paused: bool,
}

impl Device {
    /// A disk before any driver has used it.
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

    /// Requests in flight of all rings.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.rings.iter().map(Ring::in_flight).sum()
    }

    /// Whether a ring may have requests.
    #[must_use]
    pub fn may_take(&self, ring: u16) -> bool {
        !self.is_paused && self.rings[usize::from(ring)].is_running()
    }

    /// Takes the next available request of a ring. The chain is needed again to finish it.
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
            Err(broken) => return ring_broken(ring, broken),
        };
        let parsed = match ring.walk(chain, memory, head, *features) {
            Ok(()) => parse(chain, memory, disk, *limits),
            Err(_) => Err(RequestRejection::NoStatus),
        };
        let (taken, written) = match parsed {
            Ok(Request::Id) => match write_id(chain, memory, disk) {
                Some(bytes) => (Taken::Completed(Status::Ok), bytes + 1),
                None => (Taken::Completed(Status::IoError), 1),
            },
            Ok(request) => return Taken::Request(Head { ring: index, index: head }, request),
            Err(RequestRejection::Complete(status)) => (Taken::Completed(status), 1),
            Err(RequestRejection::NoStatus) => (Taken::NoStatus, 0),
        };
        if let (Taken::Completed(status), Some(at)) = (&taken, chain.status_address()) {
            memory.write(at, &[*status as u8]);
        }
        match ring.return_head(memory, record.as_ref(), head, written) {
            Ok(()) => taken,
            Err(broken) => ring_broken(ring, broken),
        }
    }

    /// A request has completed. `data` is the data of a successful read, and empty for anything else.
    ///
    /// # Errors
    /// If the ring cannot be written any more; reported once.
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
        match ring.return_head(memory, record.as_ref(), head.index, written) {
            Err(broken) if ring.stop_broken_ring() => Err(broken),
            _ => Ok(status),
        }
    }

    /// A request has completed but is not returned: its guest is gone, or the next server will carry it out again.
    pub fn forget(&mut self, head: Head) {
        self.rings[usize::from(head.ring)].forget(head.index);
    }

    /// Suppresses kicks: the driver need not notify the device of new requests.
    pub fn suppress_kicks(&mut self, ring: u16) {
        self.rings[usize::from(ring)].suppress_kicks(&self.memory);
    }

    /// Whether any running ring has an available request. With `enable_kicks` the driver has to kick from now on.
    pub fn has_more(&mut self, enable_kicks: bool) -> bool {
        if self.is_paused {
            return false;
        }
        let Device { memory, rings, .. } = self;
        // Check all rings, so that each of them listens.
        let mut has_available = false;
        for ring in rings {
            has_available |= if enable_kicks { ring.enable_kicks(memory) } else { ring.has_more(memory) };
        }
        has_available
    }

    /// Notifies the driver of returned requests, if it wants that.
    pub fn notify_driver(&mut self) {
        self.rings.iter_mut().for_each(|ring| ring.notify_driver(&self.memory));
    }
}

fn ring_broken(ring: &mut Ring, broken: Broken) -> Taken {
    if ring.stop_broken_ring() { Taken::Broken(broken) } else { Taken::Nothing }
}
