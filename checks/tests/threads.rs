//! The same queue with threads of the operating system: each submits, dispatches and completes over a device of its
//! own that answers at once or a few calls later. Nothing is lost, nothing ends twice, all tags come back.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use hoistway_blk::bio::{Bio, Op, Status};
use hoistway_blk::caller::{Action, Agenda, BlockQueue, Caller, Cx, Due, Submitted, Submitter};
use hoistway_blk::drive::{Answer, Driver};
use hoistway_blk::ground::{CpuId, Hz, Instant, Kernel, NoMeter, Now, Sector, Threads, Waiter};
use hoistway_blk::policy::ContentionOptions;
use hoistway_blk::queue::QueueConfig;
use hoistway_blk::request::Rq;
use hoistway_blk::watch::NoProbe;
use hoistway_legacy::{AnyQueue, LEGACY_SCHEDULERS, all_schedulers};

/// A hung test ends after this long.
const HANG_TIMEOUT: Duration = Duration::from_secs(60);
const BIOS_PER_THREAD: u64 = 20_000;

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

/// What the threads share.
struct Shared {
    queue: AnyQueue<Threads>,
    /// ns.
    clock: AtomicU64,
    /// How often each bio has ended.
    ended: Vec<AtomicU8>,
    left: AtomicU64,
    /// For each thread: it was woken.
    woken: Vec<(Mutex<bool>, Condvar)>,
    failed: AtomicBool,
}

/// One thread: a CPU, a device and a submitter.
struct Worker {
    shared: Arc<Shared>,
    number: u32,
    device: Null,
    caller: Caller,
    agenda: Agenda,
    /// This many requests stay at the device until later calls.
    lag: usize,
}

impl Worker {
    fn call<R>(&mut self, body: impl FnOnce(&AnyQueue<Threads>, &mut Cx<'_, (Null, NoProbe)>) -> R) -> R {
        let (shared, cpu, mut probe) = (&*self.shared, CpuId(self.number), NoProbe);
        let now = Hz::DEFAULT.now(Instant(shared.clock.fetch_add(1000, Ordering::Relaxed)));
        let mut cx = self.caller.cx(now, cpu, &mut self.device, &mut probe, &NoMeter);
        let answer = body(&shared.queue, &mut cx);
        self.agenda.carry_out(&shared.queue, &mut cx, |_, action| match action {
            Action::End { bio, .. } => {
                shared.ended[bio.owner as usize].fetch_add(1, Ordering::Relaxed);
                shared.left.fetch_sub(1, Ordering::Release);
            }
            Action::Wake(Waiter(number)) => {
                let (woken, condvar) = &shared.woken[number as usize];
                *woken.lock().unwrap() = true;
                condvar.notify_one();
            }
            Action::TimedOut { .. } | Action::RunOther { .. } | Action::Arbitrate(_) | Action::MoveSubmitter { .. } => {
                unreachable!("its tags are not shared")
            }
        });
        answer
    }

    /// Completes what is at the device but for the newest `keep`.
    fn reap(&mut self, keep: usize) {
        while self.device.in_flight.len() > keep {
            if let Some(rq) = self.device.in_flight.pop_front() {
                self.call(|queue, cx| queue.complete(cx, rq, Status::Ok));
            }
        }
    }

    /// Everything that this thread can do without submitting.
    fn serve(&mut self) {
        self.reap(0);
        // Nothing is at the device for too long. What else is delayed comes at once.
        self.agenda.cancel(Due::Timeouts);
        if let Some(at) = self.agenda.next_at() {
            self.shared.clock.fetch_max(at.0, Ordering::Relaxed);
            self.call(|_, _| ());
        }
        self.reap(0);
    }

    /// Sleeps until woken, still serving its device. No timeout wakes a sleeper: a lost wake-up is for ever.
    fn sleep(&mut self) {
        let shared = Arc::clone(&self.shared);
        let (woken, condvar) = &shared.woken[self.number as usize];
        loop {
            self.serve();
            let mut flag = woken.lock().unwrap();
            if !*flag {
                flag = condvar.wait_timeout(flag, Duration::from_millis(1)).unwrap().0;
            }
            if std::mem::take(&mut *flag) || shared.failed.load(Ordering::Relaxed) {
                return;
            }
        }
    }

    fn submit(&mut self, submitter: &mut Submitter<AnyQueue<Threads>>, bio: Bio) {
        submitter.begin(bio);
        while self.call(|queue, cx| submitter.make_progress(queue, cx)) == Submitted::Parked {
            self.sleep();
            if self.shared.failed.load(Ordering::Relaxed) {
                return;
            }
        }
        self.reap(self.lag);
    }

    fn work(mut self) {
        let mut submitter = Submitter::new(&self.shared.queue, Waiter(self.number));
        for n in 0..BIOS_PER_THREAD {
            // Runs of four neighbours, some of them in a plug.
            let sector = (n / 4 * 7919 % 100_000) * 64 + n % 4 * 8;
            let op = if n % 3 == 0 { Op::Write } else { Op::Read };
            let owner = u64::from(self.number) * BIOS_PER_THREAD + n;
            if n % 16 == 0 {
                submitter.plug();
            }
            self.submit(&mut submitter, Bio { owner, ..Bio::new(op, Sector(sector), 8) });
            if n % 16 == 7 {
                self.call(|queue, cx| submitter.unplug(queue, cx));
            }
        }
        while self.shared.left.load(Ordering::Acquire) > 0 && !self.shared.failed.load(Ordering::Relaxed) {
            self.serve();
            std::thread::yield_now();
        }
    }
}

/// Runs the load and judges it. The threads are not joined if one hangs: the test fails and says what it saw.
fn drive(config: &QueueConfig, scheduler: &str, lag: usize) {
    let threads = u32::from(config.cpus);
    let bios = u64::from(threads) * BIOS_PER_THREAD;
    let shared = Arc::new(Shared {
        queue: AnyQueue::new(config, scheduler).expect("a valid configuration"),
        clock: AtomicU64::new(0),
        ended: (0..bios).map(|_| AtomicU8::new(0)).collect(),
        left: AtomicU64::new(bios),
        woken: (0..threads).map(|_| Default::default()).collect(),
        failed: AtomicBool::new(false),
    });
    let (done, finished) = channel();
    for number in 0..threads {
        let (shared, done) = (Arc::clone(&shared), done.clone());
        std::thread::spawn(move || {
            let agenda = Agenda::new(shared.queue.hw_queues());
            Worker { shared, number, device: Null::default(), caller: Caller::new(), agenda, lag }.work();
            let _ = done.send(());
        });
    }
    drop(done);
    let what = format!("{scheduler} on {}, {threads} threads, {} hardware queues", config.kernel, config.hw_queues);
    watch(&finished, threads, &shared, &what);
    assert!(shared.ended.iter().all(|count| count.load(Ordering::Relaxed) == 1), "{what}: each bio ends once");
    assert_eq!(shared.queue.requests_in_use(), 0, "{what}: requests are left");
    assert_eq!(shared.queue.driver_tags_in_use(), 0, "{what}: driver tags are left");
}

fn watch(finished: &Receiver<()>, threads: u32, shared: &Shared, what: &str) {
    for _ in 0..threads {
        let Err(problem) = finished.recv_timeout(HANG_TIMEOUT) else { continue };
        shared.failed.store(true, Ordering::Relaxed);
        let left = shared.left.load(Ordering::Relaxed);
        let (requests, tags) = (shared.queue.requests_in_use(), shared.queue.driver_tags_in_use());
        match problem {
            RecvTimeoutError::Timeout => {
                panic!("{what}: hung with {left} bios to end, {requests} requests and {tags} driver tags in use")
            }
            RecvTimeoutError::Disconnected => panic!("{what}: a thread panicked with {left} bios to end"),
        }
    }
}

fn config(kernel: Kernel, threads: u16, hw_queues: u16, queue_depth: u32) -> QueueConfig {
    let schedulers = all_schedulers();
    QueueConfig {
        cpus: threads,
        hw_queues,
        queue_depth,
        schedulers,
        contention_options: ContentionOptions::ALL,
        ..QueueConfig::new(kernel)
    }
}

/// Devices from one tag to many, that answer at once or late.
fn every_device(kernel: Kernel, threads: u16, scheduler: &str) {
    for (hw_queues, depth, lag) in [(1, 1, 0), (1, 4, 0), (1, 4, 3), (2, 2, 1), (2, 64, 8)] {
        let config = config(kernel, threads, hw_queues, depth);
        drive(&config, scheduler, lag);
        if scheduler != "none" {
            for contention_options in [ContentionOptions::default(), ContentionOptions::ALL_PENDING] {
                drive(&QueueConfig { contention_options, ..config.clone() }, scheduler, lag);
            }
        }
        if hw_queues > 1 {
            drive(&QueueConfig { host_wide_tags: true, ..config }, scheduler, lag);
        }
    }
}

#[test]
fn two_threads_lose_nothing_without_a_scheduler() {
    every_device(Kernel::V6_18, 2, "none");
}

#[test]
fn four_threads_lose_nothing_without_a_scheduler() {
    every_device(Kernel::V6_18, 4, "none");
}

#[test]
fn two_threads_lose_nothing_with_mq_deadline() {
    every_device(Kernel::V6_18, 2, "mq-deadline");
}

#[test]
fn four_threads_lose_nothing_with_mq_deadline() {
    every_device(Kernel::V6_18, 4, "mq-deadline");
}

#[test]
fn two_and_four_threads_lose_nothing_on_the_legacy_front() {
    for scheduler in LEGACY_SCHEDULERS {
        for (threads, depth, lag, nr_requests) in [(2, 1, 0, 4), (2, 8, 3, 4), (4, 4, 0, 4), (4, 64, 8, 128)] {
            let config = QueueConfig { nr_requests: Some(nr_requests), ..config(Kernel::V4_12, threads, 1, depth) };
            drive(&config, scheduler, lag);
        }
    }
}

#[test]
fn older_kernels_lose_nothing_either() {
    for kernel in [Kernel::V4_12, Kernel::V4_19, Kernel::V5_10, Kernel::V6_3] {
        for scheduler in ["none", "mq-deadline"] {
            drive(&config(kernel, 2, 1, 2), scheduler, 1);
        }
    }
}
