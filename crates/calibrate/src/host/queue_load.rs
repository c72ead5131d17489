//! A closed-loop load over a queue of the block layer on one or more threads, to measure schedulers.

use std::collections::VecDeque;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant as WallClock};

use hoistway_blk::bio::{Bio, Op, Status};
use hoistway_blk::caller::{Action, Agenda, Caller, Cx, Submitter};
use hoistway_blk::drive::{Answer, Driver};
use hoistway_blk::ground::{CpuId, HctxId, Hz, Instant, Kernel, Meter, Now, Sector, Waiter};
use hoistway_blk::policy::ContentionOptions;
use hoistway_blk::queue::{ConfigError, Queue, QueueConfig};
use hoistway_blk::request::Rq;
use hoistway_blk::schedulers::NONE;
use hoistway_blk::watch::NoProbe;

use super::machine::{pin, thread_cpu_ns};
use super::spinning::Spinning;

/// I/Os in flight per thread.
const DEPTH: u32 = 16;
/// I/Os between two readings of the clock.
const BATCH: usize = 8;
const IO_SECTORS: u64 = 8;

/// The work and time of one thread.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Spent {
    pub(super) ios: u64,
    /// CPU time of the thread, ns.
    pub(super) cpu_ns: u64,
    /// Wall-clock time, ns.
    pub(super) ns: u64,
    /// Time in submissions, ns, without interrupted batches.
    pub(super) submit_ns: u64,
    /// Time in completions, ns, without interrupted batches.
    pub(super) complete_ns: u64,
    /// I/Os of batches that were not interrupted.
    pub(super) timed_ios: u64,
}

/// State shared by all threads.
struct SharedLoopState {
    queue: Queue<Spinning>,
    begin: WallClock,
    in_flight_requests: AtomicU64,
    is_over: AtomicBool,
    woken: Vec<AtomicBool>,
    start: Barrier,
}

/// A driver that holds requests until the loop completes them, up to a limit.
struct Shelf {
    requests: VecDeque<Rq>,
    limit: usize,
}

impl Driver for Shelf {
    fn get_budget(&mut self, _: HctxId) -> bool {
        self.requests.len() < self.limit
    }

    fn queue_rq(&mut self, _: Now, rq: Rq, _: bool) -> Answer {
        self.requests.push_back(rq);
        Answer::Queued
    }
}

/// Runs the loop under a scheduler for this time, on one thread per entry of `cpus`, each with a meter. Returns the
/// times and the meter of each thread. With a scheduler, half of the I/Os wait in it.
pub(super) fn run<M: Meter + Send>(
    scheduler: &str,
    contention_options: ContentionOptions,
    cpus: &[usize],
    length: Duration,
    meter: impl Fn(u32) -> M + Sync,
) -> Result<Vec<(Spent, M)>, ConfigError> {
    let threads = cpus.len() as u16;
    let config = QueueConfig {
        cpus: threads,
        hw_queues: threads,
        queue_depth: 1024,
        contention_options,
        // Enough requests that no thread waits for a tag.
        nr_requests: (scheduler != NONE.name).then_some(1024),
        ..QueueConfig::new(Kernel::DEFAULT)
    };
    let shared = SharedLoopState {
        queue: Queue::new(&config, scheduler)?,
        begin: WallClock::now(),
        in_flight_requests: AtomicU64::new(0),
        is_over: AtomicBool::new(false),
        woken: cpus.iter().map(|_| AtomicBool::new(false)).collect(),
        start: Barrier::new(cpus.len()),
    };
    let limit = if scheduler == NONE.name { usize::MAX } else { DEPTH as usize / 2 };
    let work = |index: usize, cpu: usize| {
        pin(cpu);
        let meter = meter(index as u32);
        let spent = LoopThread::new(&shared, index as u16, limit, &meter).work(length);
        (spent, meter)
    };
    Ok(thread::scope(|scope| {
        let threads: Vec<_> =
            cpus.iter().enumerate().map(|(index, &cpu)| scope.spawn(move || work(index, cpu))).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    }))
}

/// One thread of the loop.
struct LoopThread<'a, M: Meter> {
    shared: &'a SharedLoopState,
    meter: &'a M,
    cpu: CpuId,
    shelf: Shelf,
    caller: Caller,
    agenda: Agenda,
    submitter: Submitter<Queue<Spinning>>,
    random: u64,
}

impl<'a, M: Meter> LoopThread<'a, M> {
    fn new(shared: &'a SharedLoopState, cpu: u16, limit: usize, meter: &'a M) -> Self {
        LoopThread {
            shared,
            meter,
            cpu: CpuId(cpu.into()),
            shelf: Shelf { requests: VecDeque::new(), limit },
            caller: Caller::new(),
            agenda: Agenda::new(shared.queue.hw_queues()),
            submitter: Submitter::new(&shared.queue, Waiter(cpu.into())),
            random: u64::from(cpu) + 1,
        }
    }

    fn work(mut self, length: Duration) -> Spent {
        let mut spent = Spent::default();
        self.shared.start.wait();
        for _ in 0..DEPTH {
            self.submit();
        }
        let (begin, cpu_ns) = (WallClock::now(), thread_cpu_ns());
        // On a busy machine the time may be over before any I/O completed.
        while begin.elapsed() < length || (spent.ios == 0 && !self.shared.is_over.load(SeqCst)) {
            self.cycle(&mut spent);
        }
        spent.ns = begin.elapsed().as_nanos() as u64;
        spent.cpu_ns = thread_cpu_ns() - cpu_ns;
        self.shared.is_over.store(true, SeqCst);
        while self.shared.in_flight_requests.load(SeqCst) > 0 || self.submitter.is_parked() {
            self.cycle(&mut Spent::default());
        }
        spent
    }

    /// Completes the requests at the driver, and submits the same number.
    fn cycle(&mut self, spent: &mut Spent) {
        /// A batch that takes longer than this counts as interrupted.
        const BATCH_TIME_MAX: Duration = Duration::from_micros(100);
        let mut ended = 0;
        let begin = WallClock::now();
        while ended < BATCH
            && let Some(rq) = self.shelf.requests.pop_front()
        {
            self.call(|queue, cx, _| queue.complete(cx, rq, Status::Ok));
            ended += 1;
        }
        let hctx = HctxId(self.cpu.0 as u16);
        self.call(|queue, cx, _| queue.run_hctx(cx, hctx));
        let completed = begin.elapsed();
        if self.submitter.is_parked() {
            if self.shared.woken[self.cpu.index()].swap(false, SeqCst) {
                self.call(|queue, cx, submitter| {
                    submitter.make_progress(queue, cx);
                });
            }
            return;
        }
        if self.shared.is_over.load(SeqCst) {
            return;
        }
        for _ in 0..ended {
            self.submit();
        }
        let elapsed = begin.elapsed();
        spent.ios += ended as u64;
        if elapsed < BATCH_TIME_MAX && ended == BATCH {
            spent.complete_ns += completed.as_nanos() as u64;
            spent.submit_ns += (elapsed - completed).as_nanos() as u64;
            spent.timed_ios += ended as u64;
        }
    }

    fn submit(&mut self) {
        if self.submitter.is_parked() {
            return;
        }
        // A linear congruential generator scatters sectors well enough that nothing merges.
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let sector = Sector((self.random >> 30) & !(IO_SECTORS - 1));
        self.shared.in_flight_requests.fetch_add(1, SeqCst);
        self.call(|queue, cx, submitter| {
            submitter.submit(queue, cx, Bio::new(Op::Read, sector, IO_SECTORS as u32));
        });
    }

    fn call(
        &mut self,
        body: impl FnOnce(&Queue<Spinning>, &mut Cx<'_, (Shelf, NoProbe, M)>, &mut Submitter<Queue<Spinning>>),
    ) {
        let shared = self.shared;
        let now = Hz::DEFAULT.now(Instant(shared.begin.elapsed().as_nanos() as u64));
        let mut probe = NoProbe;
        let mut cx = self.caller.cx(now, self.cpu, &mut self.shelf, &mut probe, self.meter);
        body(&shared.queue, &mut cx, &mut self.submitter);
        self.agenda.carry_out(&shared.queue, &mut cx, |_, action| match action {
            Action::End { .. } => {
                shared.in_flight_requests.fetch_sub(1, SeqCst);
            }
            Action::Wake(Waiter(thread)) => shared.woken[thread as usize].store(true, SeqCst),
            // Requests never time out at this driver, and no other queue shares its tags.
            Action::TimedOut { .. } | Action::RunOther { .. } | Action::Arbitrate(_) | Action::MoveSubmitter { .. } => {
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use hoistway_blk::ground::{NoMeter, Site};
    use hoistway_blk::policy::Insertion;
    use hoistway_blk::queue::SCHEDULERS;

    const PLAIN: ContentionOptions = ContentionOptions::NONE;

    use super::super::machine::allowed_cpus;
    use super::super::stopwatch::Stopwatch;
    use super::*;

    #[test]
    fn every_scheduler_carries_the_load_out_on_one_thread_and_on_several() {
        let cpu = allowed_cpus()[0];
        for scheduler in SCHEDULERS {
            for threads in [1, 3] {
                let all = run(scheduler, PLAIN, &vec![cpu; threads], Duration::from_millis(2), |_| NoMeter).unwrap();
                assert_eq!(all.len(), threads);
                assert!(all.iter().map(|(spent, _)| spent.ios).sum::<u64>() > 0, "{scheduler}, {threads} threads");
            }
        }
    }

    #[test]
    fn a_stopwatch_sees_requests_left_in_lists_and_taken_from_there() {
        let cpu = allowed_cpus()[0];
        let lists = ContentionOptions { insertion: Insertion::Pending, ..ContentionOptions::NONE };
        let all = run("mq-deadline", lists, &[cpu], Duration::from_millis(5), Stopwatch::new).unwrap();
        let (spent, watch) = &all[0];
        for site in [Site::Leave, Site::Take] {
            assert!(watch.at(site).both().times * 2 > spent.ios, "{site:?}");
        }
        assert_eq!(watch.at(Site::Insert).both().times, 0);
    }

    #[test]
    fn a_stopwatch_sees_each_scheduler_insert_dispatch_and_finish() {
        let cpu = allowed_cpus()[0];
        for scheduler in ["mq-deadline", "bfq"] {
            let all = run(scheduler, PLAIN, &[cpu], Duration::from_millis(5), Stopwatch::new).unwrap();
            let (spent, watch) = &all[0];
            for site in [Site::Insert, Site::Dispatch] {
                assert!(watch.at(site).both().times * 2 > spent.ios, "{scheduler}: {site:?}");
            }
        }
    }
}
