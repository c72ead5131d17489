//! The protocols that rest on the order of two words, under a model checker that knows weak memory: every outcome that the
//! orderings allow, within a bound of preemptions.
//!
//! It has no sequentially consistent accesses, only fences. They are made here as processors make them that have none: a
//! fence before each.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};

use hoistway_blk::bio::{Bio, Limits, Op, Status};
use hoistway_blk::caller::{Caller, Cx, Submitted};
use hoistway_blk::drive::{Answer, Driver, Effect, Effects};
use hoistway_blk::ground::{
    CpuId, HctxId, Instant, Kernel, Lock, Meter, NoMeter, Now, OfThreads, ReadMostly, RqId, Sector, ShallowRule,
    Sharing, Site, Waiter, Word,
};
use hoistway_blk::policy::{Choice, Completions, ElevatorCx, Needs, Place, PolicyCx, Scheduler, Serialized};
use hoistway_blk::queue::{ChangeError, HardwareQueue, Queue, QueueConfig, QueueSubmission};
use hoistway_blk::request::{MergeRules, Merging, RequestPool, Rq};
use hoistway_blk::tags::{Depth, Sleeper, Tags};
use hoistway_blk::watch::{NoProbe, Reason};
use loom::sync::atomic::{AtomicU64, fence};
use loom::sync::{Mutex, RwLock};
use loom::thread;

struct Weak;

struct WeakLock<T>(Mutex<T>);
struct WeakReadMostly<T>(RwLock<T>);
struct WeakWord(AtomicU64);

impl Sharing for Weak {
    type Lock<T> = WeakLock<T>;
    type ReadMostly<T> = WeakReadMostly<T>;
    type Word = WeakWord;
    type Objects = OfThreads;
}

impl<T> Lock<T> for WeakLock<T> {
    fn new(value: T) -> Self {
        WeakLock(Mutex::new(value))
    }
    fn with<M: Meter, R>(&self, _: &M, _: Site, body: impl FnOnce(&mut T) -> R) -> R {
        body(&mut self.0.lock().unwrap())
    }
    fn try_with<M: Meter, R>(&self, _: &M, _: Site, body: impl FnOnce(&mut T) -> R) -> Option<R> {
        self.0.try_lock().ok().map(|mut value| body(&mut value))
    }
}

impl<T> ReadMostly<T> for WeakReadMostly<T> {
    fn new(value: T, _: u16) -> Self {
        WeakReadMostly(RwLock::new(value))
    }
    fn read<R>(&self, _: CpuId, body: impl FnOnce(&T) -> R) -> R {
        body(&self.0.read().unwrap())
    }
    fn change<R>(&self, body: impl FnOnce(&mut T) -> R) -> R {
        body(&mut self.0.write().unwrap())
    }
}

/// The ordering of an access, behind the fence that a sequentially consistent one needs.
fn fenced(order: Ordering, instead: Ordering) -> Ordering {
    if order == SeqCst {
        fence(SeqCst);
        instead
    } else {
        order
    }
}

impl Word for WeakWord {
    fn new(value: u64) -> Self {
        WeakWord(AtomicU64::new(value))
    }
    fn load(&self, order: Ordering) -> u64 {
        self.0.load(fenced(order, Acquire))
    }
    fn store(&self, value: u64, order: Ordering) {
        self.0.store(value, fenced(order, Release));
    }
    fn fetch_or(&self, bits: u64, order: Ordering) -> u64 {
        self.0.fetch_or(bits, fenced(order, AcqRel))
    }
    fn fetch_and(&self, mask: u64, order: Ordering) -> u64 {
        self.0.fetch_and(mask, fenced(order, AcqRel))
    }
    fn fetch_add(&self, n: u64, order: Ordering) -> u64 {
        self.0.fetch_add(n, fenced(order, AcqRel))
    }
    fn fetch_sub(&self, n: u64, order: Ordering) -> u64 {
        self.0.fetch_sub(n, fenced(order, AcqRel))
    }
    fn swap(&self, value: u64, order: Ordering) -> u64 {
        self.0.swap(value, fenced(order, AcqRel))
    }
    fn compare_exchange(&self, current: u64, value: u64, order: Ordering) -> bool {
        self.0.compare_exchange(current, value, fenced(order, AcqRel), Relaxed).is_ok()
    }
}

/// Tries what two threads may see of each other if they interrupt each other at most this many times.
fn check<T: Send + Sync + 'static>(
    interruptions: usize,
    made: impl Fn() -> T + Send + Sync + 'static,
    one: fn(&T),
    other: fn(&T),
    after: fn(&T),
) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(interruptions);
    let made = Arc::new(made);
    model.check(move || {
        let made = Arc::clone(&made);
        let first = spawn(move || {
            let shared = Arc::new(made());
            let there = Arc::clone(&shared);
            let second = spawn(move || one(&there));
            other(&shared);
            second.join().unwrap();
            after(&shared);
        });
        first.join().unwrap();
    });
}

/// A thread that has room for a whole queue: loom's own have little.
fn spawn(body: impl FnOnce() + Send + 'static) -> thread::JoinHandle<()> {
    thread::Builder::new().stack_size(1 << 15).spawn(body).unwrap()
}

const SLEEPER: Sleeper = Sleeper::Submitter(Waiter(0));

/// One tag, which is taken, and its slot.
struct OneTag {
    tags: Tags<Weak>,
    pool: RequestPool<Weak>,
    hctx: HardwareQueue<Weak>,
    /// How often one was woken; whether one was served.
    woken: AtomicU64,
    served: AtomicU64,
}

impl OneTag {
    fn taken() -> Self {
        let shared = OneTag {
            tags: Tags::new(1, 1, ShallowRule::WholeMap, None),
            pool: RequestPool::new(2),
            hctx: HardwareQueue::new(HctxId(0), vec![CpuId(0)]),
            woken: AtomicU64::new(0),
            served: AtomicU64::new(0),
        };
        assert!(shared.take());
        shared
    }

    fn take(&self) -> bool {
        self.tags.try_take(CpuId(0), Depth::Full).is_some()
    }

    fn free(&self) {
        self.tags.free(&NoMeter, 0, CpuId(0), |_| {
            self.woken.fetch_add(1, SeqCst);
        });
    }

    /// A run of the hardware queue: what was left over gets the tag.
    fn run(&self) {
        let mut list = VecDeque::new();
        self.hctx.take_dispatch_list(&NoMeter, &mut list);
        for rq in list {
            assert!(self.take(), "the one that runs finds the tag that was freed");
            self.served.fetch_add(1, SeqCst);
            self.pool.put(rq);
        }
    }
}

#[test]
fn a_new_tag_sleeper_gets_the_freed_tag_or_is_woken() {
    let sleeps = |shared: &OneTag| {
        shared.tags.wait(&NoMeter, 0, SLEEPER);
        if shared.take() {
            shared.served.fetch_add(1, SeqCst);
        }
    };
    check(3, OneTag::taken, sleeps, OneTag::free, |shared| {
        assert!(shared.served.load(SeqCst) + shared.woken.load(SeqCst) > 0, "it sleeps for ever beside a free tag");
    });
}

#[test]
fn a_request_that_lacks_a_tag_is_sent_or_its_hardware_queue_is_run() {
    let sends = |shared: &OneTag| {
        shared.hctx.mark_restart();
        if shared.take() {
            shared.served.fetch_add(1, SeqCst);
            return;
        }
        let mut list = VecDeque::from([shared.pool.take(RqId(1))]);
        shared.hctx.append_to_dispatch_list(&NoMeter, &mut list, true);
        if !shared.hctx.wants_restart() {
            shared.run();
        }
    };
    let completes = |shared: &OneTag| {
        shared.free();
        if shared.hctx.take_restart() {
            shared.run();
        }
    };
    check(3, OneTag::taken, sends, completes, |shared| {
        assert_eq!(shared.served.load(SeqCst), 1, "it is left over, and none comes");
    });
}

/// A policy that wants to hear of a request's end before it sees the slot again.
struct Strict {
    holds: bool,
}

impl Scheduler for Strict {
    fn needs(&self) -> Needs {
        Needs { completions: Completions::Deferred, ..Needs::default() }
    }
    fn insert(&mut self, _: &mut PolicyCx<'_>, _: RqId, _: Place) {
        assert!(!self.holds, "the slot is used again, and its old request has not ended");
        self.holds = true;
    }
    fn dispatch(&mut self, _: &mut PolicyCx<'_>, _: HctxId) -> Choice {
        Choice { rq: Some(RqId(0)), reason: Reason::DomainTurn }
    }
    fn finish(&mut self, _: &mut PolicyCx<'_>, _: RqId) {
        self.holds = false;
    }
    fn has_work(&self) -> bool {
        true
    }
}

/// A policy with a slot, which is in use.
struct Used {
    tags: Tags<Weak>,
    pool: RequestPool<Weak>,
    scheduler: Serialized<Strict, Weak>,
}

impl Used {
    fn new() -> Self {
        let shared = Used {
            tags: Tags::new(1, 1, ShallowRule::WholeMap, None),
            pool: RequestPool::new(1),
            scheduler: Serialized::new(Strict { holds: false }, 1),
        };
        shared.begin();
        shared
    }

    /// A request from its allocation until the driver has it, if there is a slot.
    fn begin(&self) {
        if self.tags.try_take(CpuId(0), Depth::Full).is_none() {
            return;
        }
        let mut rq = self.pool.take(RqId(0));
        rq.found(Bio::new(Op::Read, Sector(0), 8), Instant::ZERO);
        let rules = MergeRules::new(&Kernel::V6_18.generation(), Limits::default(), Merging::Off);
        let rq = ElevatorCx::alone(Now::default(), |cx| {
            self.scheduler.insert(&NoMeter, cx, &rules, std::iter::once(rq), Place::Sorted);
            self.scheduler.dispatch(&NoMeter, cx, HctxId(0)).0
        });
        self.pool.put(rq.expect("it was inserted"));
    }

    /// Its end, as a completion without a lock reports it.
    fn end(&self) {
        ElevatorCx::alone(Now::default(), |cx| self.scheduler.finish(&NoMeter, cx, RqId(0)));
        self.tags.free(&NoMeter, 0, CpuId(0), |_| {});
    }
}

#[test]
fn a_scheduler_hears_of_a_requests_end_before_its_slot_is_used_again() {
    check(3, Used::new, Used::end, Used::begin, |_| {});
}

#[test]
fn a_slot_is_back_before_the_tag_that_names_it() {
    let ends = |shared: &OneTag| {
        let rq = shared.pool.take(RqId(0));
        shared.pool.put(rq);
        shared.free();
    };
    let begins = |shared: &OneTag| {
        if shared.take() {
            // Panics if the slot is not there.
            shared.pool.put(shared.pool.take(RqId(0)));
        }
    };
    check(3, OneTag::taken, ends, begins, |_| {});
}

/// Takes everything.
#[derive(Default)]
struct Null {
    in_flight: VecDeque<Rq>,
}

impl Driver for Null {
    fn queue_rq(&mut self, _: Now, rq: Rq, _: bool) -> Answer {
        self.in_flight.push_back(rq);
        Answer::Queued
    }
}

struct Gated {
    queue: Queue<Weak>,
    /// The submission that was shut out, if it was; how many were let in again.
    shut_out: std::sync::Mutex<Option<QueueSubmission>>,
    let_in: AtomicU64,
}

impl Gated {
    fn new() -> Self {
        let config = QueueConfig { cpus: 2, queue_depth: 1, ..QueueConfig::new(Kernel::V6_18) };
        let queue = Queue::new(&config, "none").expect("a valid configuration");
        Gated { queue, shut_out: Default::default(), let_in: AtomicU64::new(0) }
    }

    /// A call on a CPU, whose requests end before the next. Returns how many were woken.
    fn call<R>(&self, cpu: u32, body: impl FnOnce(&Queue<Weak>, &mut Cx<'_, (Null, NoProbe)>) -> R) -> (R, u64) {
        let (mut caller, mut driver, mut probe) = (Caller::new(), Null::default(), NoProbe);
        let mut cx = caller.cx(Now::default(), CpuId(cpu), &mut driver, &mut probe, &NoMeter);
        let answer = body(&self.queue, &mut cx);
        while let Some(rq) = cx.driver.in_flight.pop_front() {
            self.queue.complete(&mut cx, rq, Status::Ok);
        }
        let effects = std::iter::from_fn(|| caller.effects.pop());
        (answer, effects.filter(|effect| matches!(effect, Effect::Wake(_))).count() as u64)
    }

    fn submit(&self) {
        let mut submission = QueueSubmission::new(Bio::new(Op::Read, Sector(0), 8), Waiter(0));
        let (submitted, _) = self.call(0, |queue, cx| queue.submit(cx, &mut submission, None));
        if submitted == Submitted::Parked {
            *self.shut_out.lock().unwrap() = Some(submission);
        }
    }

    /// A change, if the queue is empty at once.
    fn switch(&self) {
        self.call(1, |queue, cx| queue.freeze(cx));
        let switched = self.queue.switch_scheduler("mq-deadline", &mut Effects::new());
        assert!(matches!(switched, Ok(()) | Err(ChangeError::Busy)));
        let ((), woken) = self.call(1, |queue, cx| queue.unfreeze(cx));
        self.let_in.store(woken, SeqCst);
    }
}

#[test]
fn a_submission_during_a_scheduler_switch_enters_or_is_woken() {
    check(2, Gated::new, Gated::submit, Gated::switch, |shared| {
        let shut_out = shared.shut_out.lock().unwrap().take();
        assert_eq!(u64::from(shut_out.is_some()), shared.let_in.load(SeqCst), "who is shut out is let in");
        if let Some(mut submission) = shut_out {
            let (submitted, _) = shared.call(0, |queue, cx| queue.submit(cx, &mut submission, None));
            assert_eq!(submitted, Submitted::Done);
        }
        assert_eq!((shared.queue.requests_in_use(), shared.queue.driver_tags_in_use()), (0, 0));
    });
}
