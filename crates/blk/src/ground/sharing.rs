//! How a queue is shared: by one thread (the simulator) or by many (real storage). The code of the block layer is the same for
//! both; the types of locks and shared words are a type parameter.
//!
//! With [`Local`] a queue is not `Sync`, its locks are checked borrows and its words plain cells. With [`Threads`] they are
//! mutexes and atomics. Tests may define further kinds, for model checkers.

mod objects;
mod padded;
mod read_mostly;

pub use objects::{Objects, OfOneThread, OfThreads};
pub use padded::Padded;
pub use read_mostly::{CpuLocks, Lent, ReadMostly};

use std::cell::{Cell, RefCell};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::ground::meter::{Held, Meter, NoMeter, Site};

/// A kind of sharing: the family of locks and words that a queue is built from.
pub trait Sharing: Sized + 'static {
    /// A lock around a value.
    type Lock<T>: Lock<T>;
    /// A value that every call reads and that is rarely changed.
    type ReadMostly<T>: ReadMostly<T>;
    /// A word that several CPUs read and change.
    type Word: Word;
    /// How they share objects of a trait.
    type Objects: Objects;
    /// Whether several CPUs call at once: then others may change something in the middle of a call, and it pays to put work off
    /// that would need a lock.
    const CONTENDS: bool = true;
}

/// Mutual exclusion around a value. Locks are not re-entrant and no path of the block layer holds two, but for kyber's and mqfq's:
/// under a hardware queue's they take a software queue's, a wait queue's or that of the flows, never the other way round.
pub trait Lock<T> {
    /// An unlocked lock.
    fn new(value: T) -> Self;
    /// Waits for the lock and runs `body` under it. `meter` charges for that.
    fn with<M: Meter, R>(&self, meter: &M, site: Site, body: impl FnOnce(&mut T) -> R) -> R;
    /// Runs `body` under the lock if it is free.
    fn try_with<M: Meter, R>(&self, meter: &M, site: Site, body: impl FnOnce(&mut T) -> R) -> Option<R>;
    /// Whether no other call asks for requests under this lock, as far as `meter` knows.
    #[inline]
    fn may_become_dispatcher<M: Meter>(&self, _meter: &M) -> bool {
        true
    }
    /// Whether `meter` knows of a call that is still taking the last request under this lock in virtual time.
    #[inline]
    fn sees_work_being_taken<M: Meter>(&self, _meter: &M) -> bool {
        false
    }
    /// Whether `meter` knows of a call that has the lock now and accepts delegated work, although its code has returned: in
    /// virtual time a call is executed at one instant but lasts longer.
    #[inline]
    fn is_accepting_delegated_work<M: Meter>(&self, _meter: &M) -> bool {
        false
    }
    /// Charges `body` to that call, under its hold of the lock. In real time that call does the work itself, and this does
    /// nothing.
    #[inline]
    fn join<M: Meter>(&self, _meter: &M, _body: impl FnOnce(&mut T)) {}
    /// Waits for the lock and runs `body` under it, without charge, for calls that are no part of the processing of requests.
    #[inline]
    fn aside<R>(&self, body: impl FnOnce(&mut T) -> R) -> R {
        self.with(&NoMeter, Site::Elevator, body)
    }
}

/// A shared 64-bit word, with the orderings of [`AtomicU64`].
///
/// Each access is as weak as its protocol allows; the declaration of each word says why:
/// - `Relaxed`: hints, counts, and words that are already ordered by a lock or by passing on a request;
/// - `Acquire` and `Release`: who takes a tag sees what was done before it was returned;
/// - `SeqCst`: two threads each write a word and then read the other's, and one of them must see the other's write (a freed tag
///   and a sleeper, a freed tag and a restart mark, a restart and remaining requests). All four accesses must be `SeqCst`.
pub trait Word {
    /// A word with this value.
    fn new(value: u64) -> Self;
    /// Its value.
    fn load(&self, order: Ordering) -> u64;
    /// Overwrites it.
    fn store(&self, value: u64, order: Ordering);
    /// Sets bits; returns the value before.
    fn fetch_or(&self, bits: u64, order: Ordering) -> u64;
    /// Keeps only the bits of `mask`; returns the value before.
    fn fetch_and(&self, mask: u64, order: Ordering) -> u64;
    /// Adds, wrapping; returns the value before.
    fn fetch_add(&self, n: u64, order: Ordering) -> u64;
    /// Subtracts, wrapping; returns the value before.
    fn fetch_sub(&self, n: u64, order: Ordering) -> u64;
    /// Overwrites it; returns the value before.
    fn swap(&self, value: u64, order: Ordering) -> u64;
    /// Overwrites it if its value is `current`; returns whether it was. If not, the access is `Relaxed`.
    fn compare_exchange(&self, current: u64, value: u64, order: Ordering) -> bool;
}

/// One thread drives the queue: virtual time.
#[derive(Debug)]
pub struct Local;

/// Any number of threads drive the queue: real time.
#[derive(Debug)]
pub struct Threads;

impl Sharing for Local {
    type Lock<T> = MeteredCell<T>;
    type ReadMostly<T> = Lent<T>;
    type Word = Cell<u64>;
    type Objects = OfOneThread;
    const CONTENDS: bool = false;
}

impl Sharing for Threads {
    type Lock<T> = Mutex<T>;
    type ReadMostly<T> = CpuLocks<T>;
    type Word = AtomicU64;
    type Objects = OfThreads;
}

/// A lock of a queue that one thread drives: a checked borrow, and the state that a meter keeps with it.
#[derive(Debug)]
pub struct MeteredCell<T> {
    value: RefCell<T>,
    held: Held,
}

impl<T> Lock<T> for MeteredCell<T> {
    fn new(value: T) -> Self {
        MeteredCell { value: RefCell::new(value), held: Held::default() }
    }

    #[inline]
    fn with<M: Meter, R>(&self, meter: &M, site: Site, body: impl FnOnce(&mut T) -> R) -> R {
        meter.enter(&self.held, site);
        let result = body(&mut self.value.borrow_mut());
        meter.leave(&self.held, site);
        result
    }

    #[inline]
    fn try_with<M: Meter, R>(&self, meter: &M, site: Site, body: impl FnOnce(&mut T) -> R) -> Option<R> {
        let mut value = self.value.try_borrow_mut().ok()?;
        if !meter.try_enter(&self.held, site) {
            return None;
        }
        let result = body(&mut value);
        meter.leave(&self.held, site);
        Some(result)
    }

    #[inline]
    fn may_become_dispatcher<M: Meter>(&self, meter: &M) -> bool {
        meter.may_become_dispatcher(&self.held)
    }

    #[inline]
    fn sees_work_being_taken<M: Meter>(&self, meter: &M) -> bool {
        meter.sees_work_being_taken(&self.held)
    }

    #[inline]
    fn is_accepting_delegated_work<M: Meter>(&self, meter: &M) -> bool {
        meter.is_accepting_delegated_work(&self.held)
    }

    #[inline]
    fn join<M: Meter>(&self, meter: &M, body: impl FnOnce(&mut T)) {
        meter.join(&self.held);
        body(&mut self.value.borrow_mut());
        meter.leave(&self.held, Site::Insert);
    }
}

impl<T> Lock<T> for Mutex<T> {
    fn new(value: T) -> Self {
        Mutex::new(value)
    }

    #[inline]
    fn with<M: Meter, R>(&self, _: &M, _: Site, body: impl FnOnce(&mut T) -> R) -> R {
        // A panic under the lock is a bug that has already been reported; the other threads continue.
        body(&mut self.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    #[inline]
    fn try_with<M: Meter, R>(&self, _: &M, _: Site, body: impl FnOnce(&mut T) -> R) -> Option<R> {
        self.try_lock().ok().map(|mut value| body(&mut value))
    }
}

impl Word for Cell<u64> {
    fn new(value: u64) -> Self {
        Cell::new(value)
    }
    #[inline]
    fn load(&self, _: Ordering) -> u64 {
        self.get()
    }
    #[inline]
    fn store(&self, value: u64, _: Ordering) {
        self.set(value);
    }
    #[inline]
    fn fetch_or(&self, bits: u64, _: Ordering) -> u64 {
        self.replace(self.get() | bits)
    }
    #[inline]
    fn fetch_and(&self, mask: u64, _: Ordering) -> u64 {
        self.replace(self.get() & mask)
    }
    #[inline]
    fn fetch_add(&self, n: u64, _: Ordering) -> u64 {
        self.replace(self.get().wrapping_add(n))
    }
    #[inline]
    fn fetch_sub(&self, n: u64, _: Ordering) -> u64 {
        self.replace(self.get().wrapping_sub(n))
    }
    #[inline]
    fn swap(&self, value: u64, _: Ordering) -> u64 {
        self.replace(value)
    }
    #[inline]
    fn compare_exchange(&self, current: u64, value: u64, _: Ordering) -> bool {
        let is_current = self.get() == current;
        if is_current {
            self.set(value);
        }
        is_current
    }
}

impl Word for AtomicU64 {
    fn new(value: u64) -> Self {
        AtomicU64::new(value)
    }
    #[inline]
    fn load(&self, order: Ordering) -> u64 {
        self.load(order)
    }
    #[inline]
    fn store(&self, value: u64, order: Ordering) {
        self.store(value, order);
    }
    #[inline]
    fn fetch_or(&self, bits: u64, order: Ordering) -> u64 {
        self.fetch_or(bits, order)
    }
    #[inline]
    fn fetch_and(&self, mask: u64, order: Ordering) -> u64 {
        self.fetch_and(mask, order)
    }
    #[inline]
    fn fetch_add(&self, n: u64, order: Ordering) -> u64 {
        self.fetch_add(n, order)
    }
    #[inline]
    fn fetch_sub(&self, n: u64, order: Ordering) -> u64 {
        self.fetch_sub(n, order)
    }
    #[inline]
    fn swap(&self, value: u64, order: Ordering) -> u64 {
        self.swap(value, order)
    }
    #[inline]
    fn compare_exchange(&self, current: u64, value: u64, order: Ordering) -> bool {
        self.compare_exchange(current, value, order, Ordering::Relaxed).is_ok()
    }
}

#[cfg(test)]
mod tests;
