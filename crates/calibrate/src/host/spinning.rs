//! Spinlocks, like those of Linux, that tell the taker about the previous holder.

use std::hint::spin_loop;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, MutexGuard, TryLockError};

use hoistway_blk::ground::{CpuLocks, Held, Lock, Meter, OfThreads, Sharing, Site};

/// Spins before the thread yields: only reached if more threads than CPUs want the lock.
const SPINS_MAX: u32 = 20_000;

/// A kind of sharing with spinlocks.
pub(super) struct Spinning;

impl Sharing for Spinning {
    type Lock<T> = SpinLock<T>;
    type ReadMostly<T> = CpuLocks<T>;
    type Word = AtomicU64;
    type Objects = OfThreads;
}

/// A spinlock. It protects the meter's data as well.
pub(super) struct SpinLock<T>(Mutex<(T, Held)>);

impl<T> SpinLock<T> {
    fn try_take(&self) -> Option<MutexGuard<'_, (T, Held)>> {
        match self.0.try_lock() {
            Ok(guard) => Some(guard),
            // A panic under the lock has been reported already.
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn take(&self) -> MutexGuard<'_, (T, Held)> {
        let mut spins = 0_u32;
        loop {
            if let Some(guard) = self.try_take() {
                return guard;
            }
            spins += 1;
            if spins.is_multiple_of(SPINS_MAX) { std::thread::yield_now() } else { spin_loop() }
        }
    }
}

fn run_metered<T, M: Meter, R>(locked: &mut (T, Held), meter: &M, site: Site, body: impl FnOnce(&mut T) -> R) -> R {
    let (value, held) = locked;
    meter.enter(held, site);
    let answer = body(value);
    meter.leave(held, site);
    answer
}

impl<T> Lock<T> for SpinLock<T> {
    fn new(value: T) -> Self {
        SpinLock(Mutex::new((value, Held::default())))
    }

    #[inline]
    fn with<M: Meter, R>(&self, meter: &M, site: Site, body: impl FnOnce(&mut T) -> R) -> R {
        run_metered(&mut self.take(), meter, site, body)
    }

    #[inline]
    fn try_with<M: Meter, R>(&self, meter: &M, site: Site, body: impl FnOnce(&mut T) -> R) -> Option<R> {
        Some(run_metered(&mut *self.try_take()?, meter, site, body))
    }
}
