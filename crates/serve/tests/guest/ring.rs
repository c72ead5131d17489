//! A ring as a driver has it, laid by hand: what a driver must not do can be done.

use std::os::fd::AsRawFd as _;
use std::rc::Rc;
use std::time::{Duration, Instant};

use vmm_sys_util::epoll::{ControlOperation, Epoll, EpollEvent, EventSet};
use vmm_sys_util::eventfd::{EFD_NONBLOCK, EventFd};

use super::memory::Memory;

pub(crate) const NEXT: u16 = 1;
pub(crate) const WRITE: u16 = 2;
pub(crate) const INDIRECT: u16 = 4;

/// Whatever takes longer hangs.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// A descriptor: address, length, flags, next.
pub(crate) type Descriptor = (u64, u32, u16, u16);

pub(crate) struct Ring {
    memory: Rc<Memory>,
    pub(crate) size: u16,
    pub(crate) descriptors: u64,
    pub(crate) available: u64,
    pub(crate) used: u64,
    pub(crate) kick: EventFd,
    pub(crate) call: EventFd,
    calls: Epoll,
    pub(crate) error: EventFd,
    pub(crate) available_index: u16,
    pub(crate) used_index: u16,
    /// Whether kicks and interrupts are asked for by index.
    pub(crate) has_event_index: bool,
}

impl Ring {
    /// In 64 KiB from this address on.
    pub(crate) fn new(memory: &Rc<Memory>, at: u64, size: u16) -> Ring {
        let eventfd = || EventFd::new(EFD_NONBLOCK).unwrap();
        let (call, calls) = (eventfd(), Epoll::new().unwrap());
        calls.ctl(ControlOperation::Add, call.as_raw_fd(), EpollEvent::new(EventSet::IN, 0)).unwrap();
        Ring {
            memory: Rc::clone(memory),
            size,
            descriptors: at,
            available: at + (16 << 10),
            used: at + (32 << 10),
            kick: eventfd(),
            call,
            calls,
            error: eventfd(),
            available_index: 0,
            used_index: 0,
            has_event_index: true,
        }
    }

    pub(crate) fn describe(&self, index: u16, descriptor: Descriptor) {
        describe(&self.memory, self.descriptors + 16 * u64::from(index), descriptor);
    }

    /// Makes heads available at once, without a kick.
    pub(crate) fn offer_all(&mut self, heads: &[u16]) {
        for &head in heads {
            let at = self.available + 4 + 2 * u64::from(self.available_index % self.size);
            self.memory.store(at, head);
            self.available_index = self.available_index.wrapping_add(1);
        }
        self.memory.store(self.available + 2, self.available_index);
    }

    /// Kicks, if the server wants to be notified of what came after `before`.
    pub(crate) fn kick_since(&self, before: u16) {
        let wants = if self.has_event_index {
            let event: u16 = self.memory.load(self.used + 4 + 8 * u64::from(self.size));
            self.available_index.wrapping_sub(event).wrapping_sub(1) < self.available_index.wrapping_sub(before)
        } else {
            self.memory.load::<u16>(self.used) & 1 == 0
        };
        if wants {
            self.kick.write(1).unwrap();
        }
    }

    /// What has been given back next: head and length.
    pub(crate) fn take_used(&mut self) -> Option<(u16, u32)> {
        if self.memory.load::<u16>(self.used + 2) == self.used_index {
            return None;
        }
        let at = self.used + 4 + 8 * u64::from(self.used_index % self.size);
        let entry = (self.memory.load::<u32>(at) as u16, self.memory.load::<u32>(at + 4));
        self.used_index = self.used_index.wrapping_add(1);
        Some(entry)
    }

    /// Waits for an interrupt, if nothing has been given back.
    pub(crate) fn wait(&mut self) {
        // Asked for, then looked again: what comes in between is seen by one of the two.
        self.memory.store(self.available + 4 + 2 * u64::from(self.size), self.used_index);
        let begin = Instant::now();
        while self.memory.load::<u16>(self.used + 2) == self.used_index {
            // What was given back and not announced is waited for in vain.
            while self.call.read().is_err() {
                assert!(begin.elapsed() < TIMEOUT, "no interrupt");
                self.calls.wait(1000, &mut [EpollEvent::default()]).unwrap();
            }
        }
    }

    pub(crate) fn next_used(&mut self) -> (u16, u32) {
        loop {
            match self.take_used() {
                Some(used) => return used,
                None => self.wait(),
            }
        }
    }
}

pub(crate) fn describe(memory: &Memory, at: u64, (address, len, flags, next): Descriptor) {
    let mut bytes = address.to_le_bytes().to_vec();
    bytes.extend(len.to_le_bytes());
    bytes.extend(flags.to_le_bytes());
    bytes.extend(next.to_le_bytes());
    memory.write(at, &bytes);
}
