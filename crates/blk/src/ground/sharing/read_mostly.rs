//! Read-mostly values: read by every call and rarely changed, such as the state of a queue or the limits of a device.
//!
//! A change is exclusive: no call that reads the value is running, and calls that begin later see the change.

use std::cell::Cell;
use std::sync::{Arc, PoisonError, RwLock};

use super::Padded;
use crate::ground::ids::CpuId;

/// A read-mostly value.
pub trait ReadMostly<T> {
    /// The value, for readers on `cpus` CPUs.
    fn new(value: T, cpus: u16) -> Self;
    /// Runs `body` with the value, which does not change meanwhile. Not re-entrant: a nested read could deadlock with a
    /// pending change.
    fn read<R>(&self, cpu: CpuId, body: impl FnOnce(&T) -> R) -> R;
    /// Waits until there are no readers, and changes the value. Must not be called by a reader.
    fn change<R>(&self, body: impl FnOnce(&mut T) -> R) -> R;
}

/// A value of a single thread, borrowed by one call at a time. That costs less than counting readers, and a nested call,
/// which could deadlock with several threads, always panics here.
pub struct Lent<T>(Cell<Option<Box<T>>>);

const LENT: &str = "the value is borrowed by a call in progress";

impl<T> Lent<T> {
    #[inline]
    fn give_back(&self, value: Box<T>) {
        // The replaced value is `None`: forgetting it saves a drop check at each call.
        std::mem::forget(self.0.replace(Some(value)));
    }
}

impl<T> ReadMostly<T> for Lent<T> {
    fn new(value: T, _: u16) -> Self {
        Lent(Cell::new(Some(Box::new(value))))
    }

    #[inline]
    fn read<R>(&self, _: CpuId, body: impl FnOnce(&T) -> R) -> R {
        let value = self.0.take().expect(LENT);
        let result = body(&value);
        self.give_back(value);
        result
    }

    fn change<R>(&self, body: impl FnOnce(&mut T) -> R) -> R {
        let mut value = self.0.take().expect(LENT);
        let result = body(&mut value);
        self.give_back(value);
        result
    }
}

/// A lock for each CPU around the same value: readers take that of their CPU and so share no cache line that
/// is written; a change of the value takes all of them (a "big-reader lock").
#[derive(Debug)]
pub struct CpuLocks<T> {
    shares: Box<[Padded<Share<T>>]>,
}

/// All shares hold the same value; it is absent only while it is changed, under all locks.
type Share<T> = RwLock<Option<Arc<T>>>;

const PRESENT: &str = "a value is absent only under all locks";

impl<T> ReadMostly<T> for CpuLocks<T> {
    fn new(value: T, cpus: u16) -> Self {
        let value = Arc::new(value);
        CpuLocks { shares: (0..cpus.max(1)).map(|_| Padded(RwLock::new(Some(Arc::clone(&value))))).collect() }
    }

    #[inline]
    fn read<R>(&self, cpu: CpuId, body: impl FnOnce(&T) -> R) -> R {
        // A panic under a lock is a bug that has already been reported; the other threads continue.
        let share = self.shares[cpu.index() % self.shares.len()].read().unwrap_or_else(PoisonError::into_inner);
        body(share.as_ref().expect(PRESENT))
    }

    fn change<R>(&self, body: impl FnOnce(&mut T) -> R) -> R {
        // Always in the same order, so two changes cannot deadlock.
        let locked = self.shares.iter().map(|share| share.write().unwrap_or_else(PoisonError::into_inner));
        let mut shares: Vec<_> = locked.collect();
        let mut value = shares.iter_mut().filter_map(|share| share.take()).last().expect(PRESENT);
        let result = body(Arc::get_mut(&mut value).expect("all other shares have been taken back"));
        for share in &mut shares {
            **share = Some(Arc::clone(&value));
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "borrowed by a call in progress")]
    fn a_nested_call_is_detected() {
        let value = Lent::new(1, 1);
        value.read(CpuId(0), |_| value.read(CpuId(0), |_| {}));
    }

    #[test]
    fn a_change_becomes_visible_on_every_cpu_atomically() {
        let value: CpuLocks<(u64, u64)> = CpuLocks::new((0, 0), 3);
        std::thread::scope(|scope| {
            for cpu in 0..4 {
                let value = &value;
                scope.spawn(move || {
                    for _ in 0..1000 {
                        value.read(CpuId(cpu), |(one, other)| assert_eq!(one, other));
                    }
                });
            }
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        value.change(|pair| {
                            pair.0 += 1;
                            pair.1 += 1;
                        });
                    }
                });
            }
        });
        assert!((0..3).all(|cpu| value.read(CpuId(cpu), |pair| *pair == (200, 200))));
    }
}
