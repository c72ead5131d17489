//! A kind of sharing under a model checker that runs one thread at a time, and tries many interleavings. It takes every
//! access for sequentially consistent: weak orderings are the subject of `loom.rs`.

use std::sync::Arc;
use std::sync::atomic::Ordering::{self, SeqCst};

use hoistway_blk::ground::{CpuId, Lock, Meter, OfThreads, ReadMostly, Sharing, Site, Waiter, Word};
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::sync::atomic::AtomicU64;
use shuttle::sync::{Condvar, Mutex, RwLock};
use shuttle::{Config, Runner, thread};

/// A model's threads run code that is hardly optimised: the default of 32 KiB is too small for its frames.
const THREAD_STACK_BYTES: usize = 256 << 10;

/// Sharing whose every access is a point at which another thread may go on.
pub struct Checked;

pub struct CheckedLock<T>(Mutex<T>);
pub struct CheckedReadMostly<T>(RwLock<T>);
pub struct CheckedWord(AtomicU64);

impl Sharing for Checked {
    type Lock<T> = CheckedLock<T>;
    type ReadMostly<T> = CheckedReadMostly<T>;
    type Word = CheckedWord;
    type Objects = OfThreads;
}

impl<T> Lock<T> for CheckedLock<T> {
    fn new(value: T) -> Self {
        CheckedLock(Mutex::new(value))
    }
    fn with<M: Meter, R>(&self, _: &M, _: Site, body: impl FnOnce(&mut T) -> R) -> R {
        body(&mut self.0.lock().unwrap())
    }
    fn try_with<M: Meter, R>(&self, _: &M, _: Site, body: impl FnOnce(&mut T) -> R) -> Option<R> {
        self.0.try_lock().ok().map(|mut value| body(&mut value))
    }
}

impl<T> ReadMostly<T> for CheckedReadMostly<T> {
    fn new(value: T, _: u16) -> Self {
        CheckedReadMostly(RwLock::new(value))
    }
    fn read<R>(&self, _: CpuId, body: impl FnOnce(&T) -> R) -> R {
        body(&self.0.read().unwrap())
    }
    fn change<R>(&self, body: impl FnOnce(&mut T) -> R) -> R {
        body(&mut self.0.write().unwrap())
    }
}

impl Word for CheckedWord {
    fn new(value: u64) -> Self {
        CheckedWord(AtomicU64::new(value))
    }
    fn load(&self, _: Ordering) -> u64 {
        self.0.load(SeqCst)
    }
    fn store(&self, value: u64, _: Ordering) {
        self.0.store(value, SeqCst);
    }
    fn fetch_or(&self, bits: u64, _: Ordering) -> u64 {
        self.0.fetch_or(bits, SeqCst)
    }
    fn fetch_and(&self, mask: u64, _: Ordering) -> u64 {
        self.0.fetch_and(mask, SeqCst)
    }
    fn fetch_add(&self, n: u64, _: Ordering) -> u64 {
        self.0.fetch_add(n, SeqCst)
    }
    fn fetch_sub(&self, n: u64, _: Ordering) -> u64 {
        self.0.fetch_sub(n, SeqCst)
    }
    fn swap(&self, value: u64, _: Ordering) -> u64 {
        self.0.swap(value, SeqCst)
    }
    fn compare_exchange(&self, current: u64, value: u64, _: Ordering) -> bool {
        self.0.compare_exchange(current, value, SeqCst, SeqCst).is_ok()
    }
}

/// Checks a model under 500 random schedules, or as many as HOISTWAY_SCHEDULES says, and under as many that find bugs of small depth.
pub fn check(model: impl Fn() + Send + Sync + Clone + 'static) {
    let mut config = Config::new();
    config.stack_size = THREAD_STACK_BYTES;
    let schedules =
        std::env::var("HOISTWAY_SCHEDULES").map_or(500, |count| count.parse().expect("a number of schedules"));
    Runner::new(RandomScheduler::new(schedules), config.clone()).run(model.clone());
    Runner::new(PctScheduler::new(3, schedules), config).run(model);
}

/// Runs `body` on this many threads and waits for them.
pub fn on_threads<T: Send + Sync + 'static>(
    shared: &Arc<T>,
    threads: u32,
    body: impl Fn(&T, u32) + Send + Sync + Clone + 'static,
) {
    let spawn = |number| {
        let (shared, body) = (Arc::clone(shared), body.clone());
        thread::spawn(move || body(&shared, number))
    };
    let threads: Vec<_> = (0..threads).map(spawn).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// For each thread: it was woken.
pub struct Beds(Vec<(Mutex<bool>, Condvar)>);

impl Beds {
    pub fn new(threads: u32) -> Self {
        Beds((0..threads).map(|_| (Mutex::new(false), Condvar::new())).collect())
    }

    pub fn wake(&self, Waiter(number): Waiter) {
        let (woken, condvar) = &self.0[number as usize];
        *woken.lock().unwrap() = true;
        condvar.notify_one();
    }

    pub fn sleep(&self, number: u32) {
        let (woken, condvar) = &self.0[number as usize];
        let mut woken = woken.lock().unwrap();
        while !std::mem::take(&mut *woken) {
            woken = condvar.wait(woken).unwrap();
        }
    }
}
