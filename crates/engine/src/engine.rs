//! The engine: workers, their queue, and the target below it.

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
/// Of a group, as the weight file of bfq has it.
const WEIGHTS: std::ops::RangeInclusive<u16> = 1..=1000;

/// A running block layer: a queue with its scheduler over a target, and the threads that drive it. It can be used from any
/// thread. Dropping it [stops](Self::stop) it.
pub struct Engine {
    shared: Arc<Shared>,
    backend: Arc<dyn Backend>,
    kernel: Kernel,
    /// The workers' threads, until they are stopped.
    threads: Mutex<Vec<JoinHandle<()>>>,
    next_worker: AtomicUsize,
}

impl Engine {
    /// Starts one over a target.
    ///
    /// # Errors
    /// If the configuration contradicts itself or the target, or the system refuses what is needed.
    pub fn start(config: &Config, backend: impl Backend + 'static) -> Result<Engine, StartError> {
        let (engine, workers) = Engine::prepare(config, backend, MonotonicClock::start())?;
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

    /// The same by another clock, and without threads: the caller [runs](Worker::run) the workers, or has one after the other
    /// do a [step](Worker::step), until all have [stopped](crate::Stepped::Stopped), which takes dropping the engine.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn prepare(
        config: &Config,
        backend: impl Backend + 'static,
        clock: impl Clock + 'static,
    ) -> Result<(Engine, Vec<Worker>), StartError> {
        let backend: Arc<dyn Backend> = Arc::new(backend);
        let (workers, shape) = (config.workers, backend.shape());
        if !(1..=WORKERS_MAX).contains(&workers) {
            let why = format!("{workers} is not in 1 to {WORKERS_MAX}");
            return Err(ConfigError::new("workers", why).into());
        }
        if config.requests_per_worker == 0 {
            return Err(ConfigError::new("requests_per_worker", "with 0 nothing could be submitted").into());
        }
        let block_bytes = shape.limits.logical_block.max(1) * SECTOR_BYTES as u32;
        if config.turn_bytes == 0 || !config.turn_bytes.is_multiple_of(block_bytes) {
            let why = format!("{} is no multiple of the target's blocks of {block_bytes} bytes", config.turn_bytes);
            return Err(ConfigError::new("turn_bytes", why).into());
        }
        let queue_depth = config.queue_depth.unwrap_or(shape.queue_depth);
        if queue_depth > shape.queue_depth {
            let why = format!("{queue_depth} is more than the target takes, {}", shape.queue_depth);
            return Err(ConfigError::new("queue_depth", why).into());
        }
        let queue_config = QueueConfig {
            cpus: workers as u16,
            hw_queues: (workers as u16).min(shape.hw_queues_max),
            queue_depth,
            host_wide_tags: shape.host_wide_tags,
            nr_requests: config.nr_requests,
            nomerges: config.nomerges,
            techniques: config.techniques,
            limits: shape.limits.clone(),
            ..QueueConfig::new(config.kernel)
        };
        let queue = Queue::new(&queue_config, &config.scheduler)?;
        let station = |worker| backend.station(worker).map_err(|source| StartError::Station { worker, source });
        let stations = (0..workers).map(station).collect::<Result<Vec<_>, _>>()?;
        let shared = Arc::new(Shared {
            queue,
            slots: Slots::new(workers, config.requests_per_worker),
            mailboxes: stations.iter().map(|station| Mailbox::new(station.waker())).collect(),
            clock: Box::new(clock),
            hz: Hz::DEFAULT,
            statistics: config.keeps_statistics.then(|| Arc::new(DiskCounters::new(workers))),
            timer_ns: AtomicU64::new(Instant::NEVER.0),
            quiet: AtomicUsize::new(0),
            client_numbers: (0..workers).map(|_| Mutex::default()).collect(),
            io_contexts: AtomicU32::new(1),
            unaligned: Mutex::default(),
            groups_made: AtomicU32::new(0),
            groups: Mutex::default(),
        });
        let worker = |(index, station)| Worker::new(Arc::clone(&shared), index, station, queue_depth, config);
        let all = stations.into_iter().enumerate().map(worker).collect();
        let kernel = config.kernel;
        Ok((Engine { shared, backend, kernel, threads: Mutex::default(), next_worker: AtomicUsize::new(0) }, all))
    }

    /// Its volumes, as the target has them.
    #[must_use]
    pub fn volumes(&self) -> Vec<Volume<'_>> {
        let shapes = self.backend.shape().volumes.iter().cloned();
        shapes.map(|shape| Volume { engine: self, range: 0..shape.bytes, shape }).collect()
    }

    /// The first volume: most targets have one.
    ///
    /// # Panics
    /// If the target has none.
    #[must_use]
    pub fn volume(&self) -> Volume<'_> {
        self.volumes().swap_remove(0)
    }

    /// Number of workers.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.shared.mailboxes.len()
    }

    /// Number of hardware queues: as many as workers, or as the target has if those are fewer.
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

    /// The content of a file as in `/sys/block/DEV/queue/`, tunables under `iosched/`, its newline included. There is no
    /// `rq_affinity` (a completion is taken where its command was started) and no `io_timeout` (a command that does not come
    /// back is waited for).
    ///
    /// # Errors
    /// If there is no such file.
    pub fn attribute(&self, file: &str) -> Result<String, AttributeError> {
        check_file(file)?;
        self.shared.queue.attribute(file)
    }

    /// What the kernel's files of a disk with this name would show now, `passed` after the start. None unless the engine [keeps statistics](Config::keeps_statistics).
    #[must_use]
    pub fn disk_summary(&self, file: &str, passed: Nanos) -> Option<DiskSummary> {
        let now = (self.shared.hz, self.shared.now());
        Some(self.shared.statistics.as_ref()?.summary(self.kernel, now, file, passed.0))
    }

    /// The tunables of the present scheduler: the files under `iosched/`, in their order.
    #[must_use]
    pub fn tunables(&self) -> Vec<&'static Tunable> {
        self.shared.queue.tunables()
    }

    /// Writes such a file, and waits until the value takes effect. Another scheduler or number of requests takes effect once all
    /// in-flight requests have completed; new ones wait meanwhile. Not to be called by handlers and residents.
    ///
    /// # Errors
    /// If the kernel would refuse the text; then nothing has changed.
    pub fn set_attribute(&self, file: &str, text: &str) -> Result<(), AttributeError> {
        self.ask_to_set(file, text)?.wait()
    }

    /// The same without waiting. Whether the kernel would refuse the text is not reported.
    ///
    /// # Errors
    /// If there is no such file, or no engine any more.
    pub fn begin_to_set_attribute(&self, file: &str, text: &str) -> Result<(), AttributeError> {
        self.ask_to_set(file, text).map(drop)
    }

    fn ask_to_set(&self, file: &str, text: &str) -> Result<Arc<Reply>, AttributeError> {
        check_file(file)?;
        let reply: Arc<Reply> = Arc::default();
        let change = Change { file: file.to_owned(), text: text.to_owned(), reply: Arc::clone(&reply) };
        let sent = self.shared.mailboxes[0].send_one(Message::Change(change));
        sent.map(|()| reply).map_err(|_| AttributeError::Busy)
    }

    /// A new group of clients: one share of the device for all of them together, by weight, 1 to 1000 (100 is usual), if the
    /// scheduler has such shares (bfq).
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
    /// If it is out of range.
    pub fn set_weight(&self, Group(cgroup): Group, weight: u16) -> Result<(), ConfigError> {
        check_weight(weight)?;
        self.groups().iter_mut().filter(|(id, _)| *id == cgroup).for_each(|group| group.1 = weight);
        self.notify_scheduler(SchedulerEvent::Weight { cgroup, weight });
        Ok(())
    }

    /// Forgets a group. Its clients should have gone: what one of them still did would count as that of a new group.
    pub fn remove_group(&self, Group(cgroup): Group) {
        self.groups().retain(|(id, _)| *id != cgroup);
        self.notify_scheduler(SchedulerEvent::CgroupRemoved(cgroup));
    }

    fn groups(&self) -> std::sync::MutexGuard<'_, Vec<(CgroupId, u16)>> {
        self.shared.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn notify_scheduler(&self, event: SchedulerEvent) {
        // A stopped engine has no scheduler any more.
        let _ = self.shared.mailboxes[0].send_one(Message::Event(event));
    }

    /// Stops the workers and waits until their threads have ended: in-flight requests complete as usual, requests that the queue
    /// has not seen yet end with [`Errno::SHUTDOWN`], and so do later ones. Stopping it twice is no error. Dropping the engine closes
    /// the target.
    pub fn stop(&self) {
        self.begin_to_stop();
        let threads = std::mem::take(&mut *self.threads());
        let own = std::thread::current().id();
        // A worker that drops the last reference to its engine cannot wait for itself.
        for thread in threads.into_iter().filter(|thread| thread.thread().id() != own) {
            // A panic of the thread has been reported by it.
            let _ = thread.join();
        }
    }

    /// Makes the workers stop as [`stop`](Self::stop) does, but does not wait for them, now or when the engine is dropped: a command
    /// of the target may never end. Their threads keep the target open until they have ended.
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
        at: Option<usize>,
    ) -> (usize, u32, Arc<AtomicU32>) {
        let worker = at.unwrap_or_else(|| self.next_worker.fetch_add(1, Relaxed)) % self.workers();
        let client = self.shared.client_numbers[worker].lock().unwrap_or_else(PoisonError::into_inner).take();
        let unanswered: Arc<AtomicU32> = Arc::default();
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
            in_hand: None,
            rest: None,
            in_flight: 0,
            done: Vec::new(),
            turn_at: Instant::ZERO,
            sink,
            unanswered: Arc::clone(&unanswered),
            has_departed: false,
            is_listed: false,
            has_completions: false,
        };
        let _ = self.shared.mailboxes[worker].send_one(Message::Attach { client, member: Box::new(member) });
        (worker, client, unanswered)
    }
}

impl Engine {
    /// Makes all workers complete in-flight requests and stop.
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

/// Whether a file of `queue/` means anything here.
fn check_file(file: &str) -> Result<(), AttributeError> {
    if matches!(file, "rq_affinity" | "io_timeout") { Err(AttributeError::Unknown) } else { Ok(()) }
}

fn check_weight(weight: u16) -> Result<(), ConfigError> {
    if WEIGHTS.contains(&weight) {
        return Ok(());
    }
    Err(ConfigError::new("weight", format!("{weight} is not in {} to {}", WEIGHTS.start(), WEIGHTS.end())))
}

/// Where buffers for requests to a target come from. Requests that are not made of whole blocks need no copy of their data in buffers
/// of [`around`](Self::around).
#[derive(Clone)]
pub struct Buffers(Arc<dyn Backend>);

impl Buffers {
    /// One of `len` zeroes, in memory that the target knows beforehand, if there is such and it has room.
    #[must_use]
    pub fn zeroed(&self, len: usize) -> Buffer {
        self.0.buffer(len)
    }

    /// One of `len` zeroes for the data of a request, with room in its memory for the rest of the first and last block: `before` and
    /// `behind` bytes.
    #[must_use]
    pub fn around(&self, before: usize, len: usize, behind: usize) -> Buffer {
        self.0.buffer(before + len + behind).window(before, len)
    }
}

/// A disk as clients see it: one of the target's volumes, or a part of it.
#[derive(Clone)]
pub struct Volume<'a> {
    engine: &'a Engine,
    shape: VolumeShape,
    /// Which bytes of the target's volume.
    range: Range<u64>,
}

impl Volume<'_> {
    /// Its length in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// Where it begins within its block, in bytes: 0 unless it is a [part](Self::part) that begins elsewhere.
    #[must_use]
    pub fn offset_in_block(&self) -> u64 {
        self.range.start % u64::from(self.block_bytes())
    }

    /// Bytes of a block of the target. Requests that are not made of whole blocks cost more: a write reads the blocks that it changes
    /// in part, while other writes to them wait.
    #[must_use]
    pub fn block_bytes(&self) -> u32 {
        self.engine.backend.shape().limits.logical_block.max(1) * SECTOR_BYTES as u32
    }

    /// What they should be multiples of, in bytes.
    #[must_use]
    pub fn preferred_block_bytes(&self) -> u32 {
        self.engine.backend.shape().limits.physical_block.max(1) * SECTOR_BYTES as u32
    }

    /// Whether distance costs time there.
    #[must_use]
    pub fn is_rotational(&self) -> bool {
        self.engine.backend.shape().limits.rotational
    }

    /// Whether it cannot be written.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.shape.read_only
    }

    /// The same, but read-only.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.shape.read_only = true;
        self
    }

    /// A part of it, in bytes from its start.
    ///
    /// # Errors
    /// If it ends before it begins ([`Errno::INVAL`]), or reaches beyond the end ([`Errno::NOSPC`]).
    pub fn part(mut self, range: Range<u64>) -> Result<Self, Errno> {
        self.range = self.place(range)?;
        Ok(self)
    }

    /// A range of it in the target's volume.
    fn place(&self, range: Range<u64>) -> Result<Range<u64>, Errno> {
        if range.end < range.start {
            return Err(Errno::INVAL);
        }
        if range.end > self.bytes() {
            return Err(Errno::NOSPC);
        }
        Ok(self.range.start + range.start..self.range.start + range.end)
    }

    /// The extents of a range, which `find` finds in whole sectors.
    fn find_extents(
        &self,
        range: Range<u64>,
        find: impl FnOnce(Range<Sector>) -> std::io::Result<Vec<Extent>>,
    ) -> std::io::Result<Vec<Extent>> {
        let Range { start, end } = self.place(range)?;
        let sector = |bytes: u64| Sector(self.shape.first.0 + bytes);
        let mut extents = find(sector(start / SECTOR_BYTES)..sector(end.div_ceil(SECTOR_BYTES)))?;
        // What lies before the range in its first sector, and behind it in its last one.
        let (mut skip, mut left) = (start % SECTOR_BYTES, end - start);
        extents.retain_mut(|extent| {
            let skipped = extent.bytes.min(skip);
            skip -= skipped;
            extent.bytes = (extent.bytes - skipped).min(left);
            left -= extent.bytes;
            extent.bytes > 0
        });
        Ok(extents)
    }

    /// What of a range of bytes is data and what are holes, in order and without gaps: all of it, or the first `most` parts, one at
    /// least. It searches on this thread, and may take a while. Blocks that are being written may be either.
    ///
    /// # Errors
    /// If the range is no part of the volume, or the target cannot be asked.
    pub fn extents(&self, range: Range<u64>, most: usize) -> std::io::Result<Vec<Extent>> {
        self.find_extents(range, |sectors| self.engine.backend.extents(sectors, most))
    }

    /// All of the data and holes of a range that is about to be read. Where finding holes takes long, they count as data.
    ///
    /// # Errors
    /// As [`extents`](Self::extents).
    pub fn extents_of_read(&self, range: Range<u64>) -> std::io::Result<Vec<Extent>> {
        self.find_extents(range, |sectors| self.engine.backend.extents_of_read(sectors))
    }

    /// A client on it, which may have `depth` requests unanswered, at least 1. Clients go to workers in turn.
    #[must_use]
    pub fn client(&self, context: Context, depth: u32, handler: impl Handler + 'static) -> Client {
        self.client_at(None, context, depth, handler)
    }

    /// The same, at the worker of this number, modulo how many there are: for a caller on its thread.
    #[must_use]
    pub fn client_on(&self, worker: usize, context: Context, depth: u32, handler: impl Handler + 'static) -> Client {
        self.client_at(Some(worker), context, depth, handler)
    }

    fn client_at(&self, at: Option<usize>, context: Context, depth: u32, handler: impl Handler + 'static) -> Client {
        let sink = Sink::Handler(Box::new(handler));
        let (worker, client, unanswered) = self.engine.attach(self, context, sink, at);
        Client::new(Arc::clone(&self.engine.shared), worker, client, depth.max(1), unanswered)
    }

    /// A client that lives on a worker's thread: that of this number, modulo how many there are. Its first turn comes at
    /// once, and it stays until it leaves or the engine is stopped.
    pub fn settle(&self, context: Context, worker: usize, resident: impl Resident + 'static) {
        let sink = Sink::Resident(Box::new(resident));
        self.engine.attach(self, context, sink, Some(worker));
    }
}
