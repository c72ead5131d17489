//! A device model in real time: the content is in memory, in a file, or discarded, and commands end when the model
//! says.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hoistway_blk::bio::{Limits, Status};
use hoistway_blk::ground::{Instant, SECTOR_BYTES, Sector};
use hoistway_device as device;
use hoistway_device::{Device, Schedule};

use super::file::{OpenError, SparseFile};
use super::memory::carry_out;
use super::sparse::SparseBytes;
use super::{Backend, Command, Ended, Extent, IoChannel, Shape, Started, VolumeShape};
use crate::memory::Segments;
use crate::wake::{Parker, Wake};

/// For waits shorter than this a worker polls the clock: waking up takes longer than most devices do, and comes late.
const POLL_BELOW: Duration = Duration::from_micros(60);

/// A simulated device. All workers share the model.
pub struct Simulated {
    shape: Shape,
    content: Option<Arc<Content>>,
    model: Arc<Mutex<Model>>,
}

/// Where a device's content is kept.
enum Content {
    Memory(SparseBytes),
    File(SparseFile),
}

struct Model {
    device: Box<dyn Device>,
    schedule: Schedule,
    /// The last time passed to the device: workers read the clock before they take the lock, and may take it in a
    /// different order.
    now: Instant,
    /// Commands at the device, by their tag there.
    at_device: Vec<SubmittedCommand>,
    workers: Vec<Due>,
    /// Number of announcements so far: of two for the same time the earlier one comes first.
    announced: u64,
}

/// A command at the device.
#[derive(Clone, Copy)]
struct SubmittedCommand {
    worker: usize,
    ended: Ended,
    /// The status of the content access, if it failed.
    failed: Option<Status>,
}

/// An event that is due at a worker's channel.
struct Due {
    events: BinaryHeap<Reverse<(Instant, u64, Event)>>,
    parker: Arc<Parker>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Event {
    /// A timer of the model.
    Alarm(u32),
    /// The command with this tag ends.
    End(u32),
}

impl Simulated {
    /// A device in real time. Its content is as large as the model's disk, and takes memory only for written parts.
    #[must_use]
    pub fn new(device: Box<dyn Device>) -> Self {
        let device_shape = device.shape().clone();
        let sectors = |bytes: u32| bytes / SECTOR_BYTES as u32;
        let kernel_cap = 2560;
        let limits = Limits {
            capacity: Sector(device_shape.capacity_sectors),
            max_write_zeroes_sectors: device_shape.max_sectors,
            write_cache: device_shape.write_cache,
            fua: device_shape.fua,
            rotational: device_shape.rotational,
            ..Limits::new(
                sectors(device_shape.logical_block_bytes),
                sectors(device_shape.physical_block_bytes),
                device_shape.max_sectors,
                kernel_cap,
                device_shape.max_segments,
            )
        };
        let shape = Shape {
            volumes: vec![VolumeShape::new(Sector(0), device_shape.capacity_sectors)],
            limits,
            hw_queues_max: device_shape.hw_queues,
            queue_depth: device_shape.queue_depth,
            host_wide_tags: device_shape.host_wide_tags,
        };
        let commands = u32::from(device_shape.hw_queues) * device_shape.queue_depth;
        let unused = SubmittedCommand { worker: 0, ended: Ended { id: 0, status: Status::Ok }, failed: None };
        let model = Model {
            device,
            schedule: Schedule::default(),
            now: Instant::ZERO,
            at_device: vec![unused; commands as usize],
            workers: Vec::new(),
            announced: 0,
        };
        let content = Some(Arc::new(Content::Memory(SparseBytes::new(device_shape.capacity_sectors * SECTOR_BYTES))));
        Simulated { shape, content, model: Arc::new(Mutex::new(model)) }
    }

    /// The same, but writes are discarded and reads leave their buffers unchanged: for loads that only measure time. It needs
    /// no memory.
    #[must_use]
    pub fn discarding_data(self) -> Self {
        Simulated { content: None, ..self }
    }

    /// The same, but with its content in a sparse file, which is created if missing and kept. The file is written through the
    /// page cache and not synced: the content survives this program, but not a crash of the machine.
    ///
    /// # Errors
    /// If the file cannot be opened or created, is in use, or has another size than the device.
    pub fn in_file(self, path: &Path) -> Result<Self, OpenError> {
        let file = SparseFile::open(path, self.shape.limits.capacity.0 * SECTOR_BYTES)?;
        Ok(Simulated { content: Some(Arc::new(Content::File(file))), ..self })
    }
}

impl Backend for Simulated {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn channel(&self, _: usize) -> io::Result<Box<dyn IoChannel>> {
        let parker: Arc<Parker> = Arc::default();
        let due = Due { events: BinaryHeap::new(), parker: Arc::clone(&parker) };
        let worker = {
            let mut model = lock(&self.model);
            model.workers.push(due);
            model.workers.len() - 1
        };
        let (content, model) = (self.content.clone(), Arc::clone(&self.model));
        let stride = if self.shape.host_wide_tags { 0 } else { self.shape.queue_depth };
        Ok(Box::new(SimulatedChannel { worker, stride, content, model, parker }))
    }

    fn extents(&self, range: Range<Sector>, extents_max: usize) -> io::Result<Vec<Extent>> {
        match self.content.as_deref() {
            Some(Content::Memory(bytes)) => Ok(bytes.extents(range.start, range.end, extents_max)),
            Some(Content::File(file)) => file.extents(range, extents_max),
            None => Ok(vec![Extent { bytes: (range.end - range.start) * SECTOR_BYTES, is_hole: false }]),
        }
    }

    fn extents_of_read(&self, range: Range<Sector>) -> io::Result<Vec<Extent>> {
        match self.content.as_deref() {
            Some(Content::Memory(bytes)) => Ok(bytes.extents(range.start, range.end, usize::MAX)),
            Some(Content::File(file)) => file.extents_of_read(range),
            None => Ok(vec![Extent { bytes: (range.end - range.start) * SECTOR_BYTES, is_hole: false }]),
        }
    }
}

struct SimulatedChannel {
    worker: usize,
    /// Distance between the tags of two hardware queues at the device.
    stride: u32,
    content: Option<Arc<Content>>,
    model: Arc<Mutex<Model>>,
    parker: Arc<Parker>,
}

fn lock(model: &Mutex<Model>) -> MutexGuard<'_, Model> {
    model.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Model {
    /// The time to pass to the device: this one, or the last one if that is later.
    fn device_time(&mut self, now: Instant) -> Instant {
        self.now = self.now.max(now);
        self.now
    }

    /// Records the events that the device announced during a call of this worker.
    fn queue_announced_events(&mut self, worker: usize) {
        let Model { schedule, at_device, workers, announced, .. } = self;
        let mut schedule_event = |target_worker: usize, at: Instant, event| {
            *announced += 1;
            let due = &mut workers[target_worker];
            let is_first = due.events.peek().is_none_or(|Reverse((first, ..))| at < *first);
            due.events.push(Reverse((at, *announced, event)));
            if is_first && target_worker != worker {
                due.parker.wake();
            }
        };
        for completion in schedule.completions.drain(..) {
            let command = &mut at_device[completion.tag as usize];
            command.ended.status = completion.status;
            schedule_event(command.worker, completion.at, Event::End(completion.tag));
        }
        for (at, alarm) in schedule.alarms.drain(..) {
            schedule_event(worker, at, Event::Alarm(alarm));
        }
    }
}

impl IoChannel for SimulatedChannel {
    fn start(&mut self, now: Instant, command: &Command, data: Segments<'_>) -> Started {
        let tag = u32::from(command.queue) * self.stride + command.tag;
        let device_command = device::Command {
            tag,
            queue: command.queue,
            op: command.op,
            sector: command.sector,
            sectors: command.sectors,
            fua: command.fua,
        };
        let mut guard = lock(&self.model);
        let model = &mut *guard;
        let now = model.device_time(now);
        // A command that the device refuses now is accepted after one of its completions.
        if model.device.submit(now, device_command, &mut model.schedule).is_err() {
            return Started::Full;
        }
        let ended = Ended { id: command.id, status: Status::Ok };
        model.at_device[tag as usize] = SubmittedCommand { worker: self.worker, ended, failed: None };
        model.queue_announced_events(self.worker);
        drop(guard);
        // The device may access the content at any time until the command ends.
        match self.content.as_deref() {
            Some(Content::Memory(bytes)) => carry_out(bytes, command, data),
            Some(Content::File(file)) => {
                let status = file.carry_out(command, data);
                if status != Status::Ok {
                    lock(&self.model).at_device[tag as usize].failed = Some(status);
                }
            }
            None => {}
        }
        Started::Queued
    }

    fn reap(&mut self, now: Instant, ended: &mut Vec<Ended>) {
        let mut guard = lock(&self.model);
        let model = &mut *guard;
        while let Some(Reverse((at, _, event))) = model.workers[self.worker].events.peek().copied()
            && at <= now
        {
            model.workers[self.worker].events.pop();
            match event {
                Event::End(tag) => {
                    let SubmittedCommand { ended: as_modelled, failed, .. } = model.at_device[tag as usize];
                    ended.push(Ended { status: failed.unwrap_or(as_modelled.status), ..as_modelled });
                }
                Event::Alarm(alarm) => {
                    // Late by our clock, but on time by the device's.
                    let at = model.device_time(at);
                    model.device.wake(at, alarm, &mut model.schedule);
                    model.queue_announced_events(self.worker);
                }
            }
        }
    }

    fn next_at(&self) -> Option<Instant> {
        lock(&self.model).workers[self.worker].events.peek().map(|Reverse((at, ..))| *at)
    }

    fn sleep(&mut self, timeout: Option<Duration>) {
        match timeout.map(|timeout| timeout.checked_sub(POLL_BELOW)) {
            None => self.parker.park(None),
            Some(Some(timeout)) => self.parker.park(Some(timeout)),
            Some(None) => std::hint::spin_loop(),
        }
    }

    fn wake_instead(&mut self, waker: Arc<dyn Wake>) {
        self.parker.wake_instead(waker);
    }

    fn waker(&self) -> Arc<dyn Wake> {
        Arc::clone(&self.parker) as Arc<dyn Wake>
    }
}
