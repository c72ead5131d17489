//! The in-flight record: shared memory that outlives the server, in which its successor finds the requests that were taken and
//! not completed. Its layout is that of the vhost-user protocol for split rings, followed by 64 bytes of Hoistway's own with
//! the mode of the write cache, because front ends do not send the mode again.
//!
//! Used by: `device`, `ring`; crate `serve`.
//! Tests: below.
//!
//! The front end may write to it, so its content is checked like that of guest memory.

use std::fs::File;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Release};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use vm_memory::{AtomicAccess, Bytes as _, MmapRegion, VolatileMemory as _};

use crate::memory::map_file;

/// Maximum rings of a guest.
pub const QUEUES_MAX: u16 = 64;
/// Maximum entries of a ring.
pub const QUEUE_SIZE_MAX: u16 = 1024;

const VERSION: u16 = 1;
const ALIGN: usize = 64;
/// Hoistway's own part, at the end.
const HOISTWAY_BYTES: usize = 64;
// Offsets in a queue's part, in bytes.
const VERSION_AT: usize = 8;
const DESC_NUM_AT: usize = 10;
const LAST_BATCH_HEAD_AT: usize = 12;
const USED_IDX_AT: usize = 14;
const DESCRIPTORS_AT: usize = 16;
// Size and offsets of a descriptor's entry.
const DESCRIPTOR_BYTES: usize = 16;
const NEXT_AT: usize = 6;
const COUNTER_AT: usize = 8;

/// An error of a record.
#[derive(Debug, thiserror::Error)]
pub enum InflightRecordError {
    /// Impossible sizes.
    #[error("invalid in-flight record: {queues} queues of {size} entries in {bytes} bytes")]
    Shape {
        /// Queues.
        queues: u16,
        /// Entries per queue.
        size: u16,
        /// Length in bytes.
        bytes: u64,
    },
    /// Written by an unknown program.
    #[error("unsupported in-flight record: version {version} with {size} entries per queue")]
    Version {
        /// Its version.
        version: u16,
        /// Its number of entries.
        size: u16,
    },
    /// A system call failed.
    #[error("{0}")]
    System(String),
}

/// A record.
#[derive(Clone, Debug)]
pub struct Record {
    map: Arc<MmapRegion>,
    size: u16,
    queues: u16,
}

/// The requests in flight of a queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recovered {
    /// The heads that were taken and not returned, in the order of taking.
    pub heads: Vec<u16>,
    /// The number of the next head to be taken.
    pub counter: u64,
}

fn queue_bytes(size: u16) -> usize {
    (DESCRIPTORS_AT + DESCRIPTOR_BYTES * usize::from(size)).next_multiple_of(ALIGN)
}

fn bytes(queues: u16, size: u16) -> usize {
    usize::from(queues) * queue_bytes(size) + HOISTWAY_BYTES
}

impl Record {
    /// Creates a record without requests in flight, for this number of queues and entries per queue. Returns its file
    /// and length.
    ///
    /// # Errors
    /// If there are no such queues, or the system refuses.
    pub fn create(queues: u16, size: u16) -> Result<(File, u64), InflightRecordError> {
        let len = check(queues, size, u64::MAX)?;
        let make = || -> rustix::io::Result<File> {
            let file = memfd_create("hoistway-in-flight", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
            ftruncate(&file, len as u64)?;
            // Prevents the front end from truncating it while it is mapped.
            fcntl_add_seals(file.as_fd(), SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
            Ok(file.into())
        };
        Ok((make().map_err(|error| InflightRecordError::System(error.to_string()))?, len as u64))
    }

    /// Opens a record that the front end has kept, from this server or an earlier one.
    ///
    /// # Errors
    /// If it is not a valid record.
    pub fn open(file: File, offset: u64, len: u64, queues: u16, size: u16) -> Result<Record, InflightRecordError> {
        let len = check(queues, size, len)?;
        let map = Arc::new(map_file(file, offset, len as u64).map_err(InflightRecordError::System)?);
        let record = Record { map, size, queues };
        for queue in 0..queues {
            match (record.queue_get(queue, VERSION_AT), record.queue_get(queue, DESC_NUM_AT)) {
                // All zeroes: a new record.
                (0_u16, _) => {
                    record.queue_set(queue, DESC_NUM_AT, size);
                    record.queue_set(queue, VERSION_AT, VERSION);
                }
                (VERSION, found) if found == size => {}
                (version, size) => return Err(InflightRecordError::Version { version, size }),
            }
        }
        Ok(record)
    }

    /// Whether it contains this queue with this size.
    #[must_use]
    pub fn covers(&self, queue: u16, size: u16) -> bool {
        queue < self.queues && size <= self.size
    }

    // All offsets were checked against the record's length.
    fn get<T: AtomicAccess + Default>(&self, offset: usize) -> T {
        self.map.as_volatile_slice().load(offset, Acquire).unwrap_or_default()
    }

    fn set<T: AtomicAccess>(&self, offset: usize, value: T) {
        let stored = self.map.as_volatile_slice().store(value, offset, Release);
        debug_assert!(stored.is_ok(), "it is as long as its queues need");
    }

    fn queue_get(&self, queue: u16, offset: usize) -> u16 {
        self.get(usize::from(queue) * queue_bytes(self.size) + offset)
    }

    fn queue_set(&self, queue: u16, offset: usize, value: u16) {
        self.set(usize::from(queue) * queue_bytes(self.size) + offset, value);
    }

    fn descriptor_offset(&self, queue: u16, head: u16) -> usize {
        usize::from(queue) * queue_bytes(self.size) + DESCRIPTORS_AT + DESCRIPTOR_BYTES * usize::from(head)
    }

    /// A head was taken; `counter` is its number in the queue.
    #[inline]
    pub fn record_taken(&self, queue: u16, head: u16, counter: u64) {
        let offset = self.descriptor_offset(queue, head);
        self.set(offset + COUNTER_AT, counter);
        self.set(offset, 1_u8);
    }

    /// A head is about to be returned: if [`finish_return`](Self::finish_return) is not reached, the server that recovers the record
    /// completes the step.
    #[inline]
    pub fn begin_return(&self, queue: u16, head: u16) {
        self.queue_set(queue, LAST_BATCH_HEAD_AT, head);
    }

    /// A head has been returned, and the index of the used ring is now `used_idx`.
    #[inline]
    pub fn finish_return(&self, queue: u16, head: u16, used_idx: u16) {
        self.set(self.descriptor_offset(queue, head), 0_u8);
        self.queue_set(queue, USED_IDX_AT, used_idx);
    }

    /// Finds the requests in flight. `used_idx` is that of the ring: heads returned there are not in flight, even if the
    /// previous server could not record that.
    #[must_use]
    pub fn recover(&self, queue: u16, used_idx: u16) -> Recovered {
        let recorded = self.queue_get(queue, USED_IDX_AT);
        let mut head = self.queue_get(queue, LAST_BATCH_HEAD_AT);
        for _ in 0..used_idx.wrapping_sub(recorded).min(self.size) {
            if head >= self.size {
                break;
            }
            let offset = self.descriptor_offset(queue, head);
            self.set(offset, 0_u8);
            head = self.get(offset + NEXT_AT);
        }
        self.queue_set(queue, USED_IDX_AT, used_idx);
        let is_in_flight = |head: &u16| self.get::<u8>(self.descriptor_offset(queue, *head)) == 1;
        let with_counter = |head| (self.get::<u64>(self.descriptor_offset(queue, head) + COUNTER_AT), head);
        let mut heads: Vec<_> = (0..self.size).filter(is_in_flight).map(with_counter).collect();
        heads.sort_unstable();
        let counter = heads.last().map_or(0, |&(counter, _)| counter.wrapping_add(1));
        Recovered { heads: heads.into_iter().map(|(_, head)| head).collect(), counter }
    }

    fn hoistway_offset(&self) -> usize {
        bytes(self.queues, self.size) - HOISTWAY_BYTES
    }

    /// Whether the driver had chosen write-through mode.
    #[must_use]
    pub fn writes_through(&self) -> bool {
        self.get::<u8>(self.hoistway_offset()) == 1
    }

    /// Records the mode that the driver has chosen.
    pub fn set_writes_through(&self, writes_through: bool) {
        self.set(self.hoistway_offset(), u8::from(writes_through));
    }
}

fn check(queues: u16, size: u16, len: u64) -> Result<usize, InflightRecordError> {
    let needed = bytes(queues, size);
    if queues == 0 || queues > QUEUES_MAX || size == 0 || size > QUEUE_SIZE_MAX || len < needed as u64 {
        return Err(InflightRecordError::Shape { queues, size, bytes: len });
    }
    Ok(needed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        let (file, len) = Record::create(2, 8).unwrap();
        Record::open(file, 0, len, 2, 8).unwrap()
    }

    #[test]
    fn unreturned_requests_are_recovered_in_the_order_they_were_taken() {
        let record = record();
        for (counter, head) in [5, 2, 7, 0].into_iter().enumerate() {
            record.record_taken(1, head, counter as u64);
        }
        record.begin_return(1, 2);
        record.finish_return(1, 2, 1);
        assert_eq!(record.recover(1, 1), Recovered { heads: vec![5, 7, 0], counter: 4 });
        assert_eq!(record.recover(0, 0), Recovered { heads: vec![], counter: 0 });
    }

    #[test]
    fn an_interrupted_completion_is_resolved_by_the_ring() {
        for steps in 0..3 {
            let record = record();
            record.record_taken(0, 3, 0);
            record.record_taken(0, 4, 1);
            let mut used_idx = 9;
            record.queue_set(0, USED_IDX_AT, used_idx);
            record.begin_return(0, 3);
            if steps > 0 {
                used_idx += 1;
            }
            if steps > 1 {
                record.set(record.descriptor_offset(0, 3), 0_u8);
            }
            let expected = if steps == 0 { vec![3, 4] } else { vec![4] };
            assert_eq!(record.recover(0, used_idx).heads, expected, "after {steps} steps");
            assert_eq!(record.recover(0, used_idx).heads, expected, "and again");
        }
    }

    #[test]
    fn a_record_of_nonsense_is_refused_or_means_something_that_is_inside() {
        for (queues, size) in [(0, 8), (QUEUES_MAX + 1, 8), (1, 0), (1, QUEUE_SIZE_MAX + 1)] {
            assert!(matches!(Record::create(queues, size), Err(InflightRecordError::Shape { .. })));
        }
        let (file, len) = Record::create(1, 8).unwrap();
        assert!(matches!(
            Record::open(file.try_clone().unwrap(), 0, len - 1, 1, 8),
            Err(InflightRecordError::Shape { .. })
        ));
        assert!(matches!(
            Record::open(file.try_clone().unwrap(), 0, 1 << 20, 2, 128),
            Err(InflightRecordError::System(_))
        ));
        let record = Record::open(file.try_clone().unwrap(), 0, len, 1, 8).unwrap();
        record.queue_set(0, LAST_BATCH_HEAD_AT, 3);
        record.set(record.descriptor_offset(0, 3) + NEXT_AT, 60_000_u16);
        assert!(record.recover(0, 40_000).heads.is_empty());
        record.queue_set(0, VERSION_AT, 2);
        assert!(matches!(Record::open(file, 0, len, 1, 8), Err(InflightRecordError::Version { version: 2, size: 8 })));
    }
}
