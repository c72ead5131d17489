//! A ring: the driver makes requests available in it, and the server returns them in it.
//!
//! Used by: `device`; crate `serve`.
//! Tests: below.

use std::collections::VecDeque;
use std::fs::File;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::fence;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use virtio_queue::{Queue, QueueT as _};
use vm_memory::Bytes as _;

use crate::chain::{Chain, Malformed};
use crate::features::Features;
use crate::memory::{GuestAddressSpace as _, Memory};
use crate::record::{QUEUE_SIZE_MAX, Record};

// Offsets in the available and the used ring, in bytes: the index, and the entries. Entries of the available ring are
// heads, those of the used ring are heads and lengths; after the entries there is the index from which on the other side
// wants a notification.
const INDEX_AT: u64 = 2;
const ENTRIES_AT: u64 = 4;
const AVAILABLE_BYTES: u64 = 2;
const USED_BYTES: u64 = 8;

/// The addresses of a ring's parts, in the front end's address space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Addresses {
    /// The table of descriptors.
    pub descriptors: u64,
    /// The available ring.
    pub available: u64,
    /// The used ring.
    pub used: u64,
}

/// How a driver has broken a ring, which is then stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Broken {
    /// More requests are available than the ring has entries.
    #[error("more requests are available than the ring has entries")]
    Available,
    /// A head beyond the table.
    #[error("a request begins beyond the ring's descriptors")]
    Head,
    /// A head that is in flight already.
    #[error("a request has been made available twice")]
    AlreadyInFlight,
    /// The ring is no longer in memory.
    #[error("the ring is not in memory")]
    Memory,
}

/// A ring: its configuration by the front end, and its requests in flight.
pub struct Ring {
    index: u16,
    queue: Queue,
    addresses: Option<Addresses>,
    /// The eventfd that the driver signals for new requests; the server watches it.
    pub(crate) kick: Option<File>,
    /// The eventfd to signal when requests have been returned.
    pub(crate) call: Option<File>,
    /// The eventfd to signal when the ring is broken.
    pub(crate) error: Option<File>,
    pub(crate) is_enabled: bool,
    /// Whether it is running, that is, its addresses and start index are known.
    is_running: bool,
    /// Whether requests are taken only while it is enabled.
    requires_enable: bool,
    is_broken: bool,
    /// The last index of the available ring that was read: earlier requests need not be checked again.
    seen_avail_index: u16,
    /// For each head, whether it is in flight.
    taken: Box<[bool]>,
    in_flight: u32,
    /// Requests that an earlier server had taken.
    recovered_heads: VecDeque<u16>,
    /// Number of requests taken so far, for the record.
    counter: u64,
    /// Number of requests returned since the driver was last notified.
    unnotified: u16,
}

impl Ring {
    pub(crate) fn new(index: u16) -> Ring {
        Ring {
            index,
            queue: new_queue(),
            addresses: None,
            kick: None,
            call: None,
            error: None,
            is_enabled: false,
            is_running: false,
            requires_enable: true,
            is_broken: false,
            seen_avail_index: 0,
            taken: Box::default(),
            in_flight: 0,
            recovered_heads: VecDeque::new(),
            counter: 0,
            unnotified: 0,
        }
    }

    /// Whether requests are taken from it.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.is_running && (self.is_enabled || !self.requires_enable)
    }

    /// Requests that were taken and not returned.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    // --- configuration by the front end ---

    /// Sets the number of entries. Returns false if that is not possible now.
    pub(crate) fn set_size(&mut self, size: u32) -> bool {
        !self.is_running && u16::try_from(size).is_ok_and(|size| self.queue.try_set_size(size).is_ok())
    }

    pub(crate) fn set_addresses(&mut self, addresses: Addresses, memory: &Memory) {
        self.addresses = Some(addresses);
        self.remap_ring(memory);
    }

    /// Sets the start index. Returns false if that is not possible now.
    pub(crate) fn set_base(&mut self, base: u16) -> bool {
        if !self.is_running {
            self.queue.set_next_avail(base);
        }
        !self.is_running
    }

    /// Starts it, if everything is known. The start index comes from the record, if there is one, otherwise from the front
    /// end.
    pub(crate) fn start(&mut self, memory: &Memory, features: Features, record: Option<&Record>) -> bool {
        let can_start = self.kick.is_some() && (self.is_enabled || !features.protocol()) && features.version_1();
        if self.is_running || !can_start || self.in_flight > 0 || !self.locate(memory) {
            return false;
        }
        self.queue.set_event_idx(features.event_idx());
        let Ok(used) = self.queue.used_idx(memory.map(), Acquire) else { return false };
        self.queue.set_next_used(used.0);
        self.taken = vec![false; usize::from(self.queue.size())].into();
        self.recovered_heads.clear();
        if let Some(record) = self.record_for_ring(record) {
            let mut recovered = record.recover(self.index, used.0);
            recovered.heads.retain(|&head| head < self.queue.size());
            // Requests were taken in the order of the ring, whatever order they were returned in.
            self.queue.set_next_avail(used.0.wrapping_add(recovered.heads.len() as u16));
            self.recovered_heads = recovered.heads.into();
            self.counter = recovered.counter;
        }
        self.seen_avail_index = self.queue.next_avail();
        self.requires_enable = features.protocol();
        (self.is_running, self.is_broken) = (true, false);
        true
    }

    /// The record, if it has an entry for each of this ring's heads: a front end may pass a record for other rings.
    fn record_for_ring<'a>(&self, record: Option<&'a Record>) -> Option<&'a Record> {
        record.filter(|record| record.covers(self.index, self.queue.size()))
    }

    /// Finds its parts in memory. Returns whether they are there.
    fn locate(&mut self, memory: &Memory) -> bool {
        let Some(addresses) = self.addresses else { return false };
        let parts = [addresses.descriptors, addresses.available, addresses.used].map(|user| memory.guest_address(user));
        let [Some(descriptors), Some(available), Some(used)] = parts else { return false };
        let (low, high) = (|address: u64| Some(address as u32), |address: u64| Some((address >> 32) as u32));
        self.queue.set_desc_table_address(low(descriptors), high(descriptors));
        self.queue.set_avail_ring_address(low(available), high(available));
        self.queue.set_used_ring_address(low(used), high(used));
        // Addresses without the right alignment are rejected.
        let is_aligned = (self.queue.desc_table(), self.queue.avail_ring(), self.queue.used_ring())
            == (descriptors, available, used);
        self.queue.set_ready(true);
        is_aligned && self.queue.is_valid(memory.map())
    }

    /// Memory has changed: finds the ring again, or stops it if it is no longer in memory.
    pub(crate) fn remap_ring(&mut self, memory: &Memory) {
        if self.is_running && !self.locate(memory) {
            self.is_running = false;
        }
    }

    /// Stops taking requests. Returns the index at which it would continue once all have been returned, for the front
    /// end.
    pub(crate) fn stop(&mut self) -> u16 {
        self.is_running = false;
        // Requests taken by an earlier server and not again by this one stay in the record.
        self.queue.next_avail()
    }

    /// Resets its configuration, except for the call descriptor, which outlives resets.
    pub(crate) fn reset(&mut self) {
        self.queue = new_queue();
        (self.addresses, self.kick) = (None, None);
        (self.is_enabled, self.is_running, self.is_broken) = (false, false, false);
    }

    // --- requests ---

    /// Takes the next head, if there is one.
    ///
    /// # Errors
    /// If the driver has broken the ring.
    pub(crate) fn take(&mut self, memory: &Memory, record: Option<&Record>) -> Result<Option<u16>, Broken> {
        if !self.is_running() {
            return Ok(None);
        }
        let head = match self.recovered_heads.pop_front() {
            Some(head) => head,
            None => {
                let (next, size) = (self.queue.next_avail(), self.queue.size());
                if self.seen_avail_index == next {
                    let available = self.available(memory).ok_or(Broken::Memory)?;
                    if available == 0 {
                        return Ok(None);
                    }
                    if available > size {
                        return Err(Broken::Available);
                    }
                    self.seen_avail_index = next.wrapping_add(available);
                }
                let at = entry(self.queue.avail_ring(), AVAILABLE_BYTES, next % size);
                let head = memory.load(at, Relaxed).ok_or(Broken::Memory)?;
                self.queue.set_next_avail(next.wrapping_add(1));
                head
            }
        };
        let is_taken = self.taken.get_mut(usize::from(head)).ok_or(Broken::Head)?;
        if std::mem::replace(is_taken, true) {
            return Err(Broken::AlreadyInFlight);
        }
        self.in_flight += 1;
        if let Some(record) = self.record_for_ring(record) {
            record.record_taken(self.index, head, self.counter);
        }
        self.counter = self.counter.wrapping_add(1);
        Ok(Some(head))
    }

    pub(crate) fn walk(
        &self,
        chain: &mut Chain,
        memory: &Memory,
        head: u16,
        features: Features,
    ) -> Result<(), Malformed> {
        chain.walk(memory, self.queue.desc_table(), self.queue.size(), head, features.indirect())
    }

    /// Returns a head to the driver, with the number of bytes written for it.
    pub(crate) fn return_head(
        &mut self,
        memory: &Memory,
        record: Option<&Record>,
        head: u16,
        written: u32,
    ) -> Result<(), Broken> {
        self.forget(head);
        let record = self.record_for_ring(record);
        if let Some(record) = record {
            record.begin_return(self.index, head);
        }
        let (ring, next) = (self.queue.used_ring(), self.queue.next_used());
        let (size, used) = (self.queue.size(), u64::from(written) << 32 | u64::from(head));
        let (at, next) = (entry(0, USED_BYTES, next % size), next.wrapping_add(1));
        // It almost always lies in one region.
        let is_written = match memory.slice(ring, entry(0, USED_BYTES, size) as usize) {
            Some(part) => {
                part.write_slice(&used.to_le_bytes(), at as usize).is_ok()
                    && part.store(next.to_le(), INDEX_AT as usize, Release).is_ok()
            }
            None => {
                memory.write(ring.wrapping_add(at), &used.to_le_bytes())
                    && memory.store(ring.wrapping_add(INDEX_AT), next, Release)
            }
        };
        if !is_written {
            return Err(Broken::Memory);
        }
        self.queue.set_next_used(next);
        if let Some(record) = record {
            record.finish_return(self.index, head, self.queue.next_used());
        }
        self.unnotified = self.unnotified.saturating_add(1);
        Ok(())
    }

    /// A head is no longer in flight, although it was not returned.
    pub(crate) fn forget(&mut self, head: u16) {
        self.taken[usize::from(head)] = false;
        self.in_flight -= 1;
    }

    /// Suppresses kicks from now on.
    pub(crate) fn suppress_kicks(&mut self, memory: &Memory) {
        let _ = self.queue.disable_notification(memory.map());
    }

    /// Whether requests are available.
    pub(crate) fn has_more(&self, memory: &Memory) -> bool {
        self.is_running() && self.available(memory).is_some_and(|available| available > 0)
    }

    /// The number of available requests; `None` if the ring is not in memory.
    #[inline]
    fn available(&self, memory: &Memory) -> Option<u16> {
        let index = memory.load(self.queue.avail_ring().wrapping_add(INDEX_AT), Acquire)?;
        Some(index.wrapping_sub(self.queue.next_avail()))
    }

    /// Asks the driver to kick from now on. Returns whether requests are available already.
    pub(crate) fn enable_kicks(&mut self, memory: &Memory) -> bool {
        self.is_running() && self.queue.enable_notification(memory.map()).unwrap_or(false)
    }

    /// Notifies the driver of requests returned since the last notification, if it wants one.
    pub(crate) fn notify_driver(&mut self, memory: &Memory) {
        let unnotified = std::mem::take(&mut self.unnotified);
        if unnotified > 0
            && self.wants_notification(memory, unnotified)
            && let Some(call) = &self.call
        {
            signal(call);
        }
    }

    /// Whether the driver wants a notification for the `newest` returned requests, given its index in the ring.
    fn wants_notification(&self, memory: &Memory, newest: u16) -> bool {
        // A driver that enables notifications and then checks again has to see the returned requests.
        fence(SeqCst);
        let next = self.queue.next_used();
        let event_at = entry(self.queue.avail_ring(), AVAILABLE_BYTES, self.queue.size());
        let event = self.queue.event_idx_enabled().then(|| memory.load(event_at, Relaxed)).flatten();
        event.is_none_or(|event| next.wrapping_sub(event).wrapping_sub(1) < newest)
    }

    /// The driver has broken it: stops it until it is restarted. Returns whether this is new.
    pub(crate) fn stop_broken_ring(&mut self) -> bool {
        self.is_running = false;
        if let Some(error) = &self.error {
            signal(error);
        }
        !std::mem::replace(&mut self.is_broken, true)
    }
}

/// The address of an entry of a ring. One that would wrap around is out of memory.
fn entry(ring: u64, bytes: u64, index: u16) -> u64 {
    ring.wrapping_add(ENTRIES_AT + bytes * u64::from(index))
}

fn new_queue() -> Queue {
    Queue::new(QUEUE_SIZE_MAX).expect("the size is a power of two")
}

/// Signals an eventfd without blocking. It is polled first, since the front end shares it and may have made it blocking; a full one is
/// signaled already.
fn signal(event_fd: &File) {
    let mut watched = [PollFd::new(event_fd, PollFlags::OUT)];
    if poll(&mut watched, Some(&Timespec::default())).is_ok_and(|ready| ready > 0) {
        let _ = rustix::io::write(event_fd, &1_u64.to_ne_bytes());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use rustix::event::{EventfdFlags, eventfd};

    use super::*;

    #[test]
    fn a_blocking_eventfd_does_not_block_the_server() {
        let event_fd = File::from(eventfd(0, EventfdFlags::empty()).unwrap());
        signal(&event_fd);
        let mut count = [0; 8];
        rustix::io::read(&event_fd, &mut count).unwrap();
        assert_eq!(u64::from_ne_bytes(count), 1);
        // It takes no more.
        rustix::io::write(&event_fd, &(u64::MAX - 1).to_ne_bytes()).unwrap();
        let (sender, rung) = channel();
        std::thread::spawn(move || {
            signal(&event_fd);
            let _ = sender.send(());
        });
        assert!(rung.recv_timeout(Duration::from_secs(60)).is_ok());
    }
}
