//! The protocols between threads under a model checker: many interleavings of small loads, one thread at a time, in
//! which a lost wake-up shows as a deadlock and lost work as a request that is left.

#[path = "shuttle/departing.rs"]
mod departing;
#[path = "shuttle/flows.rs"]
mod flows;
#[path = "shuttle/reuse.rs"]
mod reuse;
#[path = "shuttle/steering.rs"]
mod steering;
#[path = "shuttle/timeouts.rs"]
mod timeouts;

use std::collections::VecDeque;
use std::sync::Arc;

use hoistway_blk::bio::{Bio, BioFlags, IoPriority, Limits, Op, PriorityClass, Status};
use hoistway_blk::caller::{Action, Agenda, Caller, Cx, Submitted, Submitter};
use hoistway_blk::drive::{Answer, Driver};
use hoistway_blk::ground::{
    CpuId, DeadlineGeneration, HctxId, Hz, Instant, Kernel, NoMeter, Now, RqId, Sector, ShallowRule, Waiter,
};
use hoistway_blk::policy::{ContentionOptions, DispatchBatch, ElevatorCx, Insertion, Place, Serialized};
use hoistway_blk::queue::{Queue, QueueConfig};
use hoistway_blk::request::{MergeRules, Merging, RequestPool, Rq};
use hoistway_blk::schedulers::{MqDeadline, MqDeadlineConfig};
use hoistway_blk::tags::{Depth, Sleeper, Tags};
use hoistway_blk::watch::{NoProbe, Reason};
use shuttle::sync::atomic::{AtomicU64, Ordering};

#[path = "support/checked.rs"]
mod checked;
use checked::{Beds, Checked, check, on_threads};

// --- a policy behind its lock ---

/// mq-deadline, and how often each of its requests was given out.
struct Scheduled {
    scheduler: Serialized<MqDeadline, Checked>,
    pool: RequestPool<Checked>,
    given: Vec<AtomicU64>,
}

impl Scheduled {
    const REQUESTS: u32 = 4;

    fn new(contention_options: ContentionOptions) -> Self {
        let config = MqDeadlineConfig {
            queue_async_depth: false,
            generation: DeadlineGeneration::CPrime,
            hz: Hz::DEFAULT,
            shallow: ShallowRule::WholeMap,
            limits_async: false,
            nr_requests: Self::REQUESTS,
        };
        Scheduled {
            scheduler: Serialized::new(MqDeadline::new(config, Self::REQUESTS), Self::REQUESTS)
                .with(contention_options),
            pool: RequestPool::new(Self::REQUESTS),
            given: (0..Self::REQUESTS).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    fn insert(&self, id: u32) {
        let class = if id.is_multiple_of(2) { PriorityClass::RealTime } else { PriorityClass::BestEffort };
        let mut rq = self.pool.take(RqId(id));
        let sector = Sector(u64::from(id) * 1000);
        rq.found(Bio { ioprio: IoPriority::new(class, 0), ..Bio::new(Op::Read, sector, 8) }, Instant::ZERO);
        let rules = MergeRules::new(&Kernel::V6_18.generation(), Limits::default(), Merging::Full);
        ElevatorCx::alone(Now::default(), |cx| {
            self.scheduler.insert(&NoMeter, cx, &rules, std::iter::once(rq), Place::Sorted);
            assert!(cx.freed.is_empty());
        });
    }

    /// Dispatches while there seems to be work. What is given out completes at once; the policy learns of it later.
    fn run(&self) {
        while self.scheduler.has_work() {
            let dispatched = self.dispatch();
            if dispatched.is_empty() {
                break;
            }
            for rq in dispatched {
                let id = rq.id();
                self.given[id.index()].fetch_add(1, Ordering::SeqCst);
                self.pool.put(rq);
                ElevatorCx::alone(Now::default(), |cx| self.scheduler.finish(&NoMeter, cx, id));
            }
        }
    }

    /// One request, or two in a batch.
    fn dispatch(&self) -> Vec<Rq> {
        ElevatorCx::alone(Now::default(), |cx| {
            if !self.scheduler.dispatches_batches() {
                return Vec::from_iter(self.scheduler.dispatch(&NoMeter, cx, HctxId(0)).0);
            }
            let mut dispatched = Drawn(Vec::new());
            self.scheduler.dispatch_batch(&NoMeter, cx, HctxId(0), 2, &mut dispatched);
            dispatched.0
        })
    }
}

struct Drawn(Vec<Rq>);

impl DispatchBatch for Drawn {
    fn may_dispatch(&mut self) -> bool {
        true
    }

    fn on_dispatched(&mut self, rq: Option<Rq>, _: Reason) -> bool {
        let goes_on = rq.is_some();
        self.0.extend(rq);
        goes_on
    }
}

const NONE: ContentionOptions = ContentionOptions {
    single_dispatcher: false,
    try_merge: false,
    batch_dispatch: false,
    insertion: Insertion::Direct,
};

/// None, some alone, and all (CL-1).
const CONTENTION_OPTIONS: [ContentionOptions; 7] = [
    NONE,
    ContentionOptions { single_dispatcher: true, ..NONE },
    ContentionOptions { insertion: Insertion::Buckets, ..NONE },
    ContentionOptions { insertion: Insertion::Pending, ..NONE },
    ContentionOptions { insertion: Insertion::Pending, single_dispatcher: true, ..NONE },
    ContentionOptions::ALL,
    ContentionOptions::ALL_PENDING,
];

#[test]
fn insert_and_run_dispatches_every_request_exactly_once() {
    for contention_options in CONTENTION_OPTIONS {
        check(move || inserts_and_runs(contention_options));
    }
}

fn inserts_and_runs(contention_options: ContentionOptions) {
    let shared = Arc::new(Scheduled::new(contention_options));
    on_threads(&shared, 3, |shared, number| {
        if number < 2 {
            for n in 0..2 {
                shared.insert(number * 2 + n);
                shared.run();
            }
        } else {
            shared.run();
            shared.run();
        }
    });
    assert!(!shared.scheduler.has_work(), "work is left");
    assert!(shared.given.iter().all(|count| count.load(Ordering::SeqCst) == 1));
    ElevatorCx::alone(Now::default(), |cx| {
        shared.scheduler.with_policy(&NoMeter, cx, |_, cx| {
            assert!((0..Scheduled::REQUESTS).all(|id| !cx.requests.holds(RqId(id))));
        });
    });
}

// --- waiting for a tag ---

struct Contended {
    tags: Tags<Checked>,
    beds: Beds,
}

impl Contended {
    /// Try, join, try again, sleep.
    fn take(&self, number: u32) -> u32 {
        let sleeper = Sleeper::Submitter(Waiter(number));
        let attempt = || self.tags.try_take(CpuId(number), Depth::Full);
        loop {
            if let Some(tag) = attempt() {
                return tag;
            }
            let place = self.tags.wait(&NoMeter, u64::from(number), sleeper);
            if let Some(tag) = attempt() {
                self.tags.resume(&NoMeter, place);
                return tag;
            }
            self.beds.sleep(number);
            // The wake-up may have been an old one.
            self.tags.resume(&NoMeter, place);
        }
    }

    fn free(&self, number: u32, tag: u32) {
        self.tags.free(&NoMeter, tag, CpuId(number), |sleeper| match sleeper {
            Sleeper::Submitter(waiter) => self.beds.wake(waiter),
            Sleeper::Hctx(_) | Sleeper::HctxOf(..) => unreachable!("only submitters sleep"),
        });
    }
}

fn no_thread_sleeps_forever(threads: u32, depth: u32, rounds: u32) {
    check(move || {
        let tags = Tags::new(depth, threads as usize, ShallowRule::WholeMap, None);
        let shared = Arc::new(Contended { tags, beds: Beds::new(threads) });
        on_threads(&shared, threads, move |shared, number| {
            for _ in 0..rounds {
                let tag = shared.take(number);
                shared.free(number, tag);
            }
        });
        assert_eq!((shared.tags.in_use(), shared.tags.sleepers()), (0, 0));
    });
}

#[test]
fn three_threads_share_one_tag_and_no_wake_up_is_lost() {
    no_thread_sleeps_forever(3, 1, 2);
}

#[test]
fn four_threads_share_two_tags_and_no_wake_up_is_lost() {
    no_thread_sleeps_forever(4, 2, 2);
}

// --- a whole queue ---

/// Takes everything; what it holds is completed by its thread.
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

struct Served {
    queue: Queue<Checked>,
    beds: Beds,
    ended: AtomicU64,
}

/// A CPU with its device.
struct Cpu<'a> {
    served: &'a Served,
    number: u32,
    device: Null,
    caller: Caller,
    agenda: Agenda,
}

impl<'a> Cpu<'a> {
    fn new(served: &'a Served, number: u32) -> Self {
        let agenda = Agenda::new(served.queue.hw_queues());
        Cpu { served, number, device: Null::default(), caller: Caller::new(), agenda }
    }

    /// Calls, and does what follows at once. Delayed runs never come due: they are a safety net that nothing here may need.
    fn call<R>(&mut self, body: impl FnOnce(&Queue<Checked>, &mut Cx<'_, (Null, NoProbe)>) -> R) -> R {
        let (served, mut probe) = (self.served, NoProbe);
        let mut cx = self.caller.cx(Now::default(), CpuId(self.number), &mut self.device, &mut probe, &NoMeter);
        let answer = body(&served.queue, &mut cx);
        self.agenda.carry_out(&served.queue, &mut cx, |_, action| match action {
            Action::End { .. } => {
                served.ended.fetch_add(1, Ordering::SeqCst);
            }
            Action::Wake(waiter) => served.beds.wake(waiter),
            Action::TimedOut { .. } | Action::RunOther { .. } | Action::Arbitrate(_) | Action::MoveSubmitter { .. } => {
                unreachable!("its tags are not shared")
            }
        });
        answer
    }

    /// Completes requests until there are none.
    fn serve(&mut self) {
        while let Some(rq) = self.device.in_flight.pop_front() {
            self.call(|queue, cx| queue.complete(cx, rq, Status::Ok));
        }
    }

    fn submit(&mut self, submitter: &mut Submitter<Queue<Checked>>, bio: Bio) {
        submitter.begin(bio);
        while self.call(|queue, cx| submitter.make_progress(queue, cx)) == Submitted::Parked {
            self.serve();
            self.served.beds.sleep(self.number);
        }
        self.serve();
    }
}

fn a_queue_serves_everything(scheduler: &'static str, kernel: Kernel, threads: u32, queue_depth: u32) {
    a_queue_serves(Bio::new(Op::Read, Sector(0), 8), scheduler, kernel, threads, queue_depth);
}

/// `pattern` is what all bios are like.
fn a_queue_serves(pattern: Bio, scheduler: &'static str, kernel: Kernel, threads: u32, queue_depth: u32) {
    const BIOS: u64 = 2;
    check(move || {
        let pattern = pattern.clone();
        let config = QueueConfig {
            kernel,
            cpus: threads as u16,
            hw_queues: 1,
            queue_depth,
            nr_requests: None,
            merging: Merging::Off,
            limits: Limits::default(),
            ..QueueConfig::new(kernel)
        };
        let queue = Queue::new(&config, scheduler).expect("a valid configuration");
        let shared = Arc::new(Served { queue, beds: Beds::new(threads), ended: AtomicU64::new(0) });
        on_threads(&shared, threads, move |served, number| {
            let mut cpu = Cpu::new(served, number);
            let mut submitter = Submitter::new(&served.queue, Waiter(number));
            for n in 0..BIOS {
                let sector = Sector(u64::from(number) * 10_000 + n * 1000);
                cpu.submit(&mut submitter, Bio { sector, ..pattern.clone() });
            }
        });
        assert_eq!(shared.ended.load(Ordering::SeqCst), u64::from(threads) * BIOS, "every bio has ended");
        assert_eq!((shared.queue.requests_in_use(), shared.queue.driver_tags_in_use()), (0, 0));
    });
}

#[test]
fn without_a_scheduler_every_sleeping_submitter_is_woken() {
    a_queue_serves_everything("none", Kernel::V6_18, 3, 1);
}

#[test]
fn with_mq_deadline_a_request_on_the_dispatch_list_is_followed_by_a_run() {
    a_queue_serves_everything("mq-deadline", Kernel::V6_18, 2, 1);
    a_queue_serves_everything("mq-deadline", Kernel::V6_18, 3, 2);
}

#[test]
fn on_older_kernels_mq_deadline_reruns_the_queue_for_the_dispatch_list() {
    for kernel in [Kernel::V4_19, Kernel::V5_10, Kernel::V6_3] {
        a_queue_serves_everything("mq-deadline", kernel, 2, 1);
    }
}

#[test]
fn throttled_write_back_is_woken_when_any_other_write_back_ends() {
    let write_back = Bio { flags: BioFlags::BACKGROUND, ..Bio::new(Op::Write, Sector(0), 8) };
    for scheduler in ["none", "mq-deadline"] {
        // Of 2 tags, 1 may be in flight.
        a_queue_serves(write_back.clone(), scheduler, Kernel::V6_18, 3, 2);
    }
}
