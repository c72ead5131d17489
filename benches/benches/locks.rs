//! How often clients take a scheduler's lock and find it contended: 32 threads with four I/Os in flight each, over a device
//! that completes at once, with one contention option after the other.
//!
//! ```text
//! cargo bench -p hoistway-benches --bench locks
//! ```
//! The share is relevant, not the time: there are more threads than CPUs, so a lock is mostly contended because its holder
//! was interrupted.

mod techniques;

use std::collections::VecDeque;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Mutex, PoisonError, TryLockError};
use std::time::Instant as WallClock;

use hoistway_blk::bio::{Bio, Op, Status};
use hoistway_blk::caller::{Action, Agenda, Caller, Cx, Submitted, Submitter};
use hoistway_blk::drive::{Answer, Driver};
use hoistway_blk::ground::{
    CpuId, CpuLocks, Hz, Instant, Kernel, Lock, Meter, NoMeter, Now, OfThreads, Sector, Sharing, Site, Waiter,
};
use hoistway_blk::policy::ContentionOptions;
use hoistway_blk::queue::{Queue, QueueConfig};
use hoistway_blk::request::Rq;
use hoistway_blk::watch::NoProbe;

const CLIENTS: u32 = 32;
const DEPTH: u64 = 4;
const ROUNDS: u64 = 5_000;

/// Locks taken at a scheduler's sites.
static TAKEN: AtomicU64 = AtomicU64::new(0);
static CONTENDED: AtomicU64 = AtomicU64::new(0);
static GIVEN_UP: AtomicU64 = AtomicU64::new(0);
/// Other locks: those of buckets and pending lists.
static BESIDE: AtomicU64 = AtomicU64::new(0);
static BESIDE_CONTENDED: AtomicU64 = AtomicU64::new(0);

/// Like `Threads`, with counting locks.
struct Counting;

struct CountingLock<T>(Mutex<T>);

impl Sharing for Counting {
    type Lock<T> = CountingLock<T>;
    type ReadMostly<T> = CpuLocks<T>;
    type Word = AtomicU64;
    type Objects = OfThreads;
}

fn is_of_the_scheduler(site: Site) -> bool {
    matches!(site, Site::Merge | Site::Insert | Site::Dispatch | Site::Finish | Site::Elevator)
}

impl<T> Lock<T> for CountingLock<T> {
    fn new(value: T) -> Self {
        CountingLock(Mutex::new(value))
    }

    fn with<M: Meter, R>(&self, _: &M, site: Site, body: impl FnOnce(&mut T) -> R) -> R {
        if matches!(site, Site::Leave | Site::Take) {
            return self.aside(body);
        }
        let free = self.0.try_lock();
        if is_of_the_scheduler(site) {
            TAKEN.fetch_add(1, Relaxed);
            CONTENDED.fetch_add(u64::from(free.is_err()), Relaxed);
        }
        match free {
            Ok(mut value) => body(&mut value),
            Err(TryLockError::Poisoned(value)) => body(&mut value.into_inner()),
            Err(TryLockError::WouldBlock) => body(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner)),
        }
    }

    fn try_with<M: Meter, R>(&self, _: &M, site: Site, body: impl FnOnce(&mut T) -> R) -> Option<R> {
        let free = self.0.try_lock().ok();
        if is_of_the_scheduler(site) {
            let counter = if free.is_some() { &TAKEN } else { &GIVEN_UP };
            counter.fetch_add(1, Relaxed);
        }
        free.map(|mut value| body(&mut value))
    }

    fn aside<R>(&self, body: impl FnOnce(&mut T) -> R) -> R {
        let free = self.0.try_lock();
        BESIDE.fetch_add(1, Relaxed);
        BESIDE_CONTENDED.fetch_add(u64::from(free.is_err()), Relaxed);
        match free {
            Ok(mut value) => body(&mut value),
            Err(_) => body(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner)),
        }
    }
}

/// Accepts everything; its thread completes the requests.
#[derive(Default)]
struct Null(VecDeque<Rq>);

impl Driver for Null {
    fn queue_rq(&mut self, _: Now, rq: Rq, _: bool) -> Answer {
        self.0.push_back(rq);
        Answer::Queued
    }
}

struct Shared {
    queue: Queue<Counting>,
    start: WallClock,
    /// I/Os of each client that have completed.
    ended: Vec<AtomicU64>,
    woken: Vec<AtomicBool>,
}

struct Client<'a> {
    shared: &'a Shared,
    number: u32,
    device: Null,
    caller: Caller,
    agenda: Agenda,
}

impl Client<'_> {
    fn call<R>(&mut self, body: impl FnOnce(&Queue<Counting>, &mut Cx<'_, (Null, NoProbe)>) -> R) -> R {
        let shared = self.shared;
        let now = Hz::DEFAULT.now(Instant(shared.start.elapsed().as_nanos() as u64));
        let mut probe = NoProbe;
        let mut cx = self.caller.cx(now, CpuId(self.number), &mut self.device, &mut probe, &NoMeter);
        let answer = body(&shared.queue, &mut cx);
        self.agenda.carry_out(&shared.queue, &mut cx, |_, action| match action {
            Action::End { bio, .. } => {
                shared.ended[bio.owner as usize].fetch_add(1, Release);
            }
            Action::Wake(Waiter(number)) => shared.woken[number as usize].store(true, Release),
            Action::TimedOut { .. } | Action::RunOther { .. } | Action::Arbitrate(_) | Action::MoveSubmitter { .. } => {
            }
        });
        answer
    }

    /// Completes the requests at its device, and does the work that is due.
    fn serve(&mut self) {
        while let Some(rq) = self.device.0.pop_front() {
            self.call(|queue, cx| queue.complete(cx, rq, Status::Ok));
        }
        self.call(|_, _| ());
    }

    fn wait_until(&mut self, holds: impl Fn(&Shared) -> bool) {
        while !holds(self.shared) {
            self.serve();
            if !holds(self.shared) {
                std::thread::yield_now();
            }
        }
    }

    fn work(mut self) {
        let me = self.number as usize;
        let mut submitter = Submitter::new(&self.shared.queue, Waiter(self.number));
        let mut random = u64::from(self.number) * 2 + 1;
        for round in 1..=ROUNDS {
            submitter.plug();
            for _ in 0..DEPTH {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                let bio = Bio { owner: me as u64, ..Bio::new(Op::Read, Sector(random % (1 << 24) * 8), 8) };
                submitter.begin(bio);
                while self.call(|queue, cx| submitter.make_progress(queue, cx)) == Submitted::Parked {
                    self.wait_until(|shared| shared.woken[me].swap(false, Acquire));
                }
            }
            self.call(|queue, cx| submitter.unplug(queue, cx));
            self.wait_until(|shared| shared.ended[me].load(Acquire) == round * DEPTH);
        }
        // Other clients' requests may be at this device.
        self.wait_until(|shared| shared.ended.iter().all(|ended| ended.load(Acquire) == ROUNDS * DEPTH));
    }
}

/// Per I/O: how often the lock was taken, found contended, given up; the other locks taken, found contended.
fn measure(scheduler: &str, contention_options: ContentionOptions) -> [f64; 5] {
    let config =
        QueueConfig { cpus: CLIENTS as u16, queue_depth: 256, contention_options, ..QueueConfig::new(Kernel::DEFAULT) };
    let shared = Shared {
        queue: Queue::new(&config, scheduler).expect("a valid configuration"),
        start: WallClock::now(),
        ended: (0..CLIENTS).map(|_| AtomicU64::new(0)).collect(),
        woken: (0..CLIENTS).map(|_| AtomicBool::new(false)).collect(),
    };
    let counters = [&TAKEN, &CONTENDED, &GIVEN_UP, &BESIDE, &BESIDE_CONTENDED];
    counters.iter().for_each(|counter| counter.store(0, Relaxed));
    std::thread::scope(|scope| {
        for number in 0..CLIENTS {
            let shared = &shared;
            scope.spawn(move || {
                let agenda = Agenda::new(shared.queue.hw_queues());
                Client { shared, number, device: Null::default(), caller: Caller::new(), agenda }.work();
            });
        }
    });
    let ios = (u64::from(CLIENTS) * ROUNDS * DEPTH) as f64;
    counters.map(|counter| counter.load(Relaxed) as f64 / ios)
}

fn main() {
    println!(
        "{CLIENTS} clients with {DEPTH} I/Os each; of an I/O: lock taken, found taken and waited for, given up; locks beside it taken, waited for"
    );
    for scheduler in ["mq-deadline", "bfq"] {
        for (name, contention_options) in techniques::COMPARED {
            let [taken, contended, given_up, beside, beside_contended] = measure(scheduler, contention_options);
            println!(
                "{scheduler:12} {name:18} {taken:6.3} {contended:8.5} {given_up:8.5} {beside:6.3} {beside_contended:8.5}"
            );
        }
    }
}
