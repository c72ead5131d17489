//! The engine: workers, their queue, and the target below it.
//!
//! Used by: `job`, `open_volume`; crates `serve`, `calibrate`.
//! Tests: `crates/engine/tests/files.rs`, `crates/engine/tests/unaligned.rs`.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use hoistway_blk::caller::Submitter;
use hoistway_blk::ground::{CgroupId, Hz, Instant, IoContextId, Kernel, Nanos, SECTOR_BYTES, Sector, Tunable};
use hoistway_blk::policy::SchedulerEvent;
use hoistway_blk::queue::{ConfigError, Queue, QueueConfig};
use hoistway_blk::sysfs::AttributeError;

use hoistway_measure::DiskSummary;

use crate::backend::{Backend, Extent, VolumeShape};
use crate::client::Client;
use crate::clock::{Clock, MonotonicClock};
use crate::config::{Config, StartError};
use crate::context::{Context, Group};
use crate::handler::Handler;
use crate::mailbox::Mailbox;
use crate::memory::Buffer;
use crate::request::Errno;
use crate::resident::Resident;
use crate::slots::Slots;
use crate::worker::{Change, DiskCounters, Member, Message, Reply, Shared, Sink, Worker, events_of_group, waiter};

const WORKERS_MAX: usize = 256;
/// Valid weights of a group, as in the weight file of bfq.
const WEIGHTS: std::ops::RangeInclusive<u16> = 1..=1000;

/// A running block layer: a queue with its scheduler over a target, and the threads that drive it. It can be used from any
/// thread. Dropping it [stops](Self::stop) it.
pub struct Engine {
    shared: Arc<Shared>,
    pub(crate) backend: Arc<dyn Backend>,
    kernel: Kernel,
    /// The workers' threads, until they are stopped.
    threads: Mutex<Vec<JoinHandle<()>>>,
    next_worker: AtomicUsize,
}

impl Engine {
    /// Starts an engine over a target.
    ///
    /// # Errors
    /// If the configuration contradicts itself or the target, or the system refuses a resource.
    pub fn start(config: &Config, backend: impl Backend + 'static) -> Result<Engine, StartError> {
        Engine::start_with(config, backend, MonotonicClock::start())
    }

    /// Starts an engine with a clock that it shares with others.
    ///
    /// # Errors
    /// The same as [`start`](Self::start).
    pub fn start_with(
        config: &Config,
        backend: impl Backend + 'static,
        clock: impl Clock + 'static,
    ) -> Result<Engine, StartError> {
        let (engine, workers) = Engine::prepare(config, backend, clock)?;
        for (index, worker) in workers.into_iter().enumerate() {
            let thread = std::thread::Builder::new().name(format!("hoistway-{index}"));
            let backend = Arc::clone(&engine.backend);
            let run = move || {
                worker.run();
                // The target stays open as long as a worker uses it, even if the engine was abandoned.
                drop(backend);
            };
            let thread = thread.spawn(run).map_err(StartError::Thread)?;
            engine.threads().push(thread);
        }
        Ok(engine)
    }

    /// Prepares an engine with another clock and without threads: the caller [runs](Worker::run) the workers, or lets them
    /// [step](Worker::step) in turn, until all have [stopped](crate::StepOutcome::Stopped), which happens after the engine is
    /// dropped.
    ///
    /// # Errors
    /// The same as [`start`](Self::start).
    pub fn prepare(
        config: &Config,
        backend: impl Backend + 'static,
        clock: impl Clock + 'static,
    ) -> Result<(Engine, Vec<Worker>), StartError> {
        let backend: Arc<dyn Backend> = Arc::new(backend);
        let (worker_count, shape) = (config.workers, backend.shape());
        if !(1..=WORKERS_MAX).contains(&worker_count) {
            let why = format!("{worker_count} is not in 1 to {WORKERS_MAX}");
            return Err(ConfigError::new("workers", why).into());
        }
        if config.requests_per_worker == 0 {
            return Err(ConfigError::new("requests_per_worker", "must be at least 1").into());
        }
        let block_bytes = shape.limits.logical_block.max(1) * SECTOR_BYTES as u32;
        if config.turn_bytes == 0 || !config.turn_bytes.is_multiple_of(block_bytes) {
            let why =
                format!("{} is not a multiple of the target's block size ({block_bytes} bytes)", config.turn_bytes);
            return Err(ConfigError::new("turn_bytes", why).into());
        }
        let queue_depth = config.queue_depth.unwrap_or(shape.queue_depth);
        if queue_depth > shape.queue_depth {
            let why = format!("{queue_depth} is more than the target's maximum of {}", shape.queue_depth);
            return Err(ConfigError::new("queue_depth", why).into());
        }
        let queue_config = QueueConfig {
            cpus: worker_count as u16,
            hw_queues: (worker_count as u16).min(shape.hw_queues_max),
            queue_depth,
            host_wide_tags: shape.host_wide_tags,
            nr_requests: config.nr_requests,
            merging: config.merging,
            contention_options: config.contention_options,
            limits: shape.limits.clone(),
            ..QueueConfig::new(config.kernel)
        };
        let queue = Queue::new(&queue_config, &config.scheduler)?;
        let channel = |worker| backend.channel(worker).map_err(|why| StartError::WorkerTarget { worker, why });
        let channels = (0..worker_count).map(channel).collect::<Result<Vec<_>, _>>()?;
        let shared = Arc::new(Shared {
            queue,
            slots: Slots::new(worker_count, config.requests_per_worker),
            mailboxes: channels.iter().map(|channel| Mailbox::new(channel.waker())).collect(),
            clock: Arc::new(clock),
            hz: Hz::DEFAULT,
            statistics: config.keeps_statistics.then(|| Arc::new(DiskCounters::new(worker_count))),
            timer_ns: AtomicU64::new(Instant::NEVER.0),
            drained_workers: AtomicUsize::new(0),
            client_numbers: (0..worker_count).map(|_| Mutex::default()).collect(),
            io_contexts: AtomicU32::new(1),
            unaligned: Mutex::default(),
            groups_made: AtomicU32::new(0),
            groups: Mutex::default(),
        });
        let worker = |(index, channel)| Worker::new(Arc::clone(&shared), index, channel, queue_depth, config);
        let workers = channels.into_iter().enumerate().map(worker).collect();
        let kernel = config.kernel;
        Ok((Engine { shared, backend, kernel, threads: Mutex::default(), next_worker: AtomicUsize::new(0) }, workers))
    }

    /// The volumes of the target, including closed ones.
    #[must_use]
    pub fn volumes(&self) -> Vec<Volume<'_>> {
        let shapes = self.backend.volumes().into_iter();
        shapes.map(|shape| Volume { engine: self, range: 0..shape.bytes, shape }).collect()
    }

    /// The first volume: most targets have one.
    ///
    /// # Panics
    /// If the target has no volume.
    #[must_use]
    pub fn volume(&self) -> Volume<'_> {
        self.volumes().swap_remove(0)
    }

    /// Number of workers.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.shared.mailboxes.len()
    }

    /// Number of hardware queues: one per worker, or fewer if the target has fewer.
    #[must_use]
    pub fn hw_queues(&self) -> u16 {
        self.shared.queue.hw_queues()
    }

    /// Buffers for requests to its target.
    #[must_use]
    pub fn buffers(&self) -> Buffers {
        Buffers(Arc::clone(&self.backend))
    }

    /// The time on its clock.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.shared.clock.now()
    }

    /// Its clock.
    #[must_use]
    pub fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.shared.clock)
    }

    /// The content of a file in `/sys/block/DEV/queue/`, with tunables in `iosched/`, including the final newline. There is
    /// no `rq_affinity` (a command completes where it was started) and no `io_timeout` (commands never time out).
    ///
    /// # Errors
    /// If there is no such file.
    pub fn attribute(&self, file: &str) -> Result<String, AttributeError> {
        check_file(file)?;
        self.shared.queue.attribute(file)
    }

    /// The contents of the kernel's statistics files for a disk with this name, at time `running_time` after the start. `None`
    /// unless the engine [keeps statistics](Config::keeps_statistics).
    #[must_use]
    pub fn disk_summary(&self, file: &str, running_time: Nanos) -> Option<DiskSummary> {
        let now = (self.shared.hz, self.shared.now());
        Some(self.shared.statistics.as_ref()?.summary(self.kernel, now, file, running_time.0))
    }

    /// The tunables of the current scheduler: the files in `iosched/`, in order.
    #[must_use]
    pub fn tunables(&self) -> Vec<&'static Tunable> {
        self.shared.queue.tunables()
    }

    /// Writes such a file, and waits until the value takes effect. A new scheduler or number of requests takes effect once all
    /// requests in flight have completed; new requests wait meanwhile. Must not be called by handlers or residents.
    ///
    /// # Errors
    /// If the kernel would reject the text; then nothing has changed.
    pub fn set_attribute(&self, file: &str, text: &str) -> Result<(), AttributeError> {
        self.send_change(file, text)?.wait()
    }

    /// The same without waiting. It does not report whether the kernel would reject the text.
    ///
    /// # Errors
    /// If there is no such file, or the engine has stopped.
    pub fn begin_to_set_attribute(&self, file: &str, text: &str) -> Result<(), AttributeError> {
        self.send_change(file, text).map(drop)
    }

    fn send_change(&self, file: &str, text: &str) -> Result<Arc<Reply>, AttributeError> {
        check_file(file)?;
        let reply: Arc<Reply> = Arc::default();
        let change = Change { file: file.to_owned(), text: text.to_owned(), reply: Arc::clone(&reply) };
        let sent = self.shared.mailboxes[0].send_one(Message::Change(change));
        sent.map(|()| reply).map_err(|_| AttributeError::Busy)
    }

    /// Adds a group of clients, which together get a share of the device by weight, from 1 to 1000 (default 100), if the
    /// scheduler supports shares (bfq).
    ///
    /// # Errors
    /// If the weight is out of range.
    pub fn add_group(&self, weight: u16) -> Result<Group, ConfigError> {
        check_weight(weight)?;
        let group = CgroupId(self.shared.groups_made.fetch_add(1, Relaxed) + 1);
        self.groups().push((group, weight));
        events_of_group(group, weight).into_iter().for_each(|event| self.notify_scheduler(event));
        Ok(Group(group))
    }

    /// Changes the weight of a group.
    ///
    /// # Errors
    /// If the weight is out of range.
    pub fn set_weight(&self, Group(cgroup): Group, weight: u16) -> Result<(), ConfigError> {
        check_weight(weight)?;
        self.groups().iter_mut().filter(|(id, _)| *id == cgroup).for_each(|group| group.1 = weight);
        self.notify_scheduler(SchedulerEvent::Weight { cgroup, weight });
        Ok(())
    }

    /// Removes a group. Its clients must be gone: I/O of a remaining one would count as that of a new group.
    pub fn remove_group(&self, Group(cgroup): Group) {
        self.groups().retain(|(id, _)| *id != cgroup);
        self.notify_scheduler(SchedulerEvent::CgroupRemoved(cgroup));
    }

    fn groups(&self) -> std::sync::MutexGuard<'_, Vec<(CgroupId, u16)>> {
        self.shared.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn notify_scheduler(&self, event: SchedulerEvent) {
        // A stopped engine has no scheduler, so the event may be lost.
        let _ = self.shared.mailboxes[0].send_one(Message::Event(event));
    }

    /// Stops the workers and waits until their threads have ended: requests in flight complete as usual, and requests that the queue
    /// has not seen, or that come later, end with [`Errno::SHUTDOWN`]. Stopping it twice is allowed. Dropping the engine closes the
    /// target.
    pub fn stop(&self) {
        self.begin_to_stop();
        let threads = std::mem::take(&mut *self.threads());
        let own_thread = std::thread::current().id();
        // A worker that drops the last reference to its engine must not join itself.
        for thread in threads.into_iter().filter(|thread| thread.thread().id() != own_thread) {
            // A thread that panicked has reported it already.
            let _ = thread.join();
        }
    }

    /// Stops the workers like [`stop`](Self::stop), but does not wait for them, now or when the engine is dropped: a command of the
    /// target may never end. The threads keep the target open until they have ended.
    pub fn abandon(&self) {
        self.begin_to_stop();
        // Dropping a handle detaches its thread.
        self.threads().clear();
    }

    fn threads(&self) -> MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn attach(
        &self,
        volume: &Volume<'_>,
        context: Context,
        sink: Sink,
        requested_worker: Option<usize>,
    ) -> (usize, u32, Arc<AtomicU32>) {
        let worker = requested_worker.unwrap_or_else(|| self.next_worker.fetch_add(1, Relaxed)) % self.workers();
        let client = self.shared.client_numbers[worker].lock().unwrap_or_else(PoisonError::into_inner).take();
        let uncompleted_requests: Arc<AtomicU32> = Arc::default();
        let member = Member {
            submitter: Submitter::new(&self.shared.queue, waiter(worker, client)),
            context,
            io_context: IoContextId(self.shared.io_contexts.fetch_add(1, Relaxed)),
            first_byte: volume.shape.first.0 * SECTOR_BYTES + volume.range.start,
            bytes: volume.bytes(),
            read_only: volume.shape.read_only,
            block_bytes: u64::from(volume.block_bytes()),
            backlog: Default::default(),
            parts: Default::default(),
            partially_submitted: None,
            rest: None,
            in_flight: 0,
            done: Vec::new(),
            next_turn_at: Instant::ZERO,
            sink,
            uncompleted_requests: Arc::clone(&uncompleted_requests),
            has_departed: false,
            is_deferred: false,
            is_enqueued: false,
            has_completions: false,
        };
        let _ = self.shared.mailboxes[worker].send_one(Message::Attach { client, member: Box::new(member) });
        (worker, client, uncompleted_requests)
    }
}

impl Engine {
    /// Makes all workers complete the requests in flight and stop.
    pub(crate) fn begin_to_stop(&self) {
        for mailbox in &self.shared.mailboxes {
            let _ = mailbox.send_one(Message::Stop);
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Whether a file of `queue/` is supported here.
fn check_file(file: &str) -> Result<(), AttributeError> {
    if matches!(file, "rq_affinity" | "io_timeout") { Err(AttributeError::Unknown) } else { Ok(()) }
}

fn check_weight(weight: u16) -> Result<(), ConfigError> {
    if WEIGHTS.contains(&weight) {
        return Ok(());
    }
    Err(ConfigError::new("weight", format!("{weight} is not in {} to {}", WEIGHTS.start(), WEIGHTS.end())))
}

/// A source of buffers for requests to a target. A request that does not consist of whole blocks needs no copy of its data if its
/// buffer is made by [`around`](Self::around).
#[derive(Clone)]
pub struct Buffers(Arc<dyn Backend>);

impl Buffers {
    /// A buffer of `len` zeroes, in registered memory if the target has some left.
    #[must_use]
    pub fn zeroed(&self, len: usize) -> Buffer {
        self.0.buffer(len)
    }

    /// A buffer of `len` zeroes for the data of a request, with room for the rest of the first and last block: `before` and `behind`
    /// bytes.
    #[must_use]
    pub fn around(&self, before: usize, len: usize, behind: usize) -> Buffer {
        self.0.buffer(before + len + behind).window(before, len)
    }
}

/// A disk as clients see it: a volume of the target, or a part of one.
#[derive(Clone)]
pub struct Volume<'a> {
    engine: &'a Engine,
    shape: VolumeShape,
    /// Its bytes in the target's volume.
    range: Range<u64>,
}

impl Volume<'_> {
    /// Its length in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// Bytes of a block of the target. Requests that do not consist of whole blocks cost more: a write reads the blocks that it
    /// changes in part, while other writes to them wait.
    #[must_use]
    pub fn block_bytes(&self) -> u32 {
        self.engine.backend.shape().limits.logical_block.max(1) * SECTOR_BYTES as u32
    }

    /// Preferred size and alignment of requests, in bytes.
    #[must_use]
    pub fn preferred_block_bytes(&self) -> u32 {
        self.engine.backend.shape().limits.physical_block.max(1) * SECTOR_BYTES as u32
    }

    /// Whether seeks cost time.
    #[must_use]
    pub fn is_rotational(&self) -> bool {
        self.engine.backend.shape().limits.rotational
    }

    /// Whether it is read-only.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.shape.read_only
    }

    /// The same volume, read-only.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.shape.read_only = true;
        self
    }

    /// A part of it, in bytes from its start.
    ///
    /// # Errors
    /// If its end is before its start ([`Errno::INVAL`]), or it exceeds the volume ([`Errno::NOSPC`]).
    pub fn part(mut self, range: Range<u64>) -> Result<Self, Errno> {
        self.range = self.to_target_range(range)?;
        Ok(self)
    }

    /// Converts a range of this volume to one of the target's volume.
    fn to_target_range(&self, range: Range<u64>) -> Result<Range<u64>, Errno> {
        if range.end < range.start {
            return Err(Errno::INVAL);
        }
        if range.end > self.bytes() {
            return Err(Errno::NOSPC);
        }
        Ok(self.range.start + range.start..self.range.start + range.end)
    }

    /// The extents of a byte range; `find` finds them in whole sectors.
    fn find_extents(
        &self,
        range: Range<u64>,
        find: impl FnOnce(Range<Sector>) -> std::io::Result<Vec<Extent>>,
    ) -> std::io::Result<Vec<Extent>> {
        let Range { start, end } = self.to_target_range(range)?;
        let sector = |bytes: u64| Sector(self.shape.first.0 + bytes);
        let mut extents = find(sector(start / SECTOR_BYTES)..sector(end.div_ceil(SECTOR_BYTES)))?;
        // The bytes before the range in its first sector, and after it in its last sector.
        let (mut skip, mut remaining) = (start % SECTOR_BYTES, end - start);
        extents.retain_mut(|extent| {
            let skipped = extent.bytes.min(skip);
            skip -= skipped;
            extent.bytes = (extent.bytes - skipped).min(remaining);
            remaining -= extent.bytes;
            extent.bytes > 0
        });
        Ok(extents)
    }

    /// Data and holes of a byte range, in order and without gaps: all parts, or the first `extents_max`, at least one. The search
    /// runs on this thread and may take time. Blocks that are being written may count as either.
    ///
    /// # Errors
    /// If the range is outside the volume, or the target cannot find the extents.
    pub fn extents(&self, range: Range<u64>, extents_max: usize) -> std::io::Result<Vec<Extent>> {
        self.find_extents(range, |sectors| self.engine.backend.extents(sectors, extents_max))
    }

    /// All data and holes of a range that is about to be read. If finding holes takes too long, they count as data.
    ///
    /// # Errors
    /// The same as [`extents`](Self::extents).
    pub fn extents_of_read(&self, range: Range<u64>) -> std::io::Result<Vec<Extent>> {
        self.find_extents(range, |sectors| self.engine.backend.extents_of_read(sectors))
    }

    /// Adds a client of this volume with at most `depth` uncompleted requests, at least 1. Clients are assigned to
    /// workers in turn.
    #[must_use]
    pub fn client(&self, context: Context, depth: u32, handler: impl Handler + 'static) -> Client {
        self.client_at(None, context, depth, handler)
    }

    /// The same, on the worker with this number, modulo the number of workers: for callers on that worker's thread.
    #[must_use]
    pub fn client_on(&self, worker: usize, context: Context, depth: u32, handler: impl Handler + 'static) -> Client {
        self.client_at(Some(worker), context, depth, handler)
    }

    fn client_at(
        &self,
        worker: Option<usize>,
        context: Context,
        depth: u32,
        handler: impl Handler + 'static,
    ) -> Client {
        let sink = Sink::Handler(Box::new(handler));
        let (worker, client, uncompleted_requests) = self.engine.attach(self, context, sink, worker);
        Client::new(Arc::clone(&self.engine.shared), worker, client, depth.max(1), uncompleted_requests)
    }

    /// Adds a client that runs on a worker's thread: the worker with this number, modulo the number of workers. Its
    /// first turn comes at once, and it stays until it leaves or the engine is stopped.
    pub fn settle(&self, context: Context, worker: usize, resident: impl Resident + 'static) {
        let sink = Sink::Resident(Box::new(resident));
        self.engine.attach(self, context, sink, Some(worker));
    }
}
