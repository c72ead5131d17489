//! The reader thread of one CPU's ring buffer, which writes blktrace records until the end.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hoistway_blk::bio::IoPriority;
use hoistway_trace::block::{Action, CpuFile, Event};
use rustc_hash::FxHashMap;
use rustix::event::{PollFd, PollFlags, Timespec};

use super::clock::monotonic_ns;
use super::events::{Decoded, Decoder};
use super::format::PageLayout;
use super::output::RecordFile;
use super::page::Page;
use super::pressure::{Moments, Submissions};

/// errno of a REQ_NOWAIT bio that would have to block.
const EAGAIN: u16 = 11;
/// Nice value of readers.
const NICE: i32 = -10;
/// Timeout of poll(2) for a buffer that does not fill.
const POLL_TIMEOUT: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// Interval of reports.
const REPORT_INTERVAL: Duration = Duration::from_millis(500);
/// Pause between reads if the kernel cannot wait for a buffer to fill.
const PAUSE: Duration = Duration::from_millis(20);
/// After reading at least this many pages the reader continues without a pause.
const PAGES_MIN: usize = 16;
/// Interval of checkpoints.
const CHECKPOINT_INTERVAL_NS: u64 = 1_000_000_000;
const CHECKPOINTS_MAX: usize = 8;
/// Maximum pages between two reports while a buffer stays non-empty.
const PAGES_MAX: usize = 1024;

/// A task with events on this CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Task {
    /// Its name, padded with NUL.
    pub(crate) name: [u8; 16],
    /// The priority of the last request that it inserted or issued.
    pub(crate) priority: IoPriority,
    pub(crate) submissions: Submissions,
    /// Whether it got a request of this device since its plug was last flushed; plug events do not name a device.
    has_request: bool,
}

impl Task {
    /// Adds the sums of the same task on another CPU.
    pub(crate) fn merge(&mut self, other: &Task) {
        // Keep the most recent name and priority, preferring one with a priority.
        if other.submissions.last_ns > self.submissions.last_ns || self.priority == IoPriority::UNSET {
            (self.name, self.priority) = (other.name, other.priority);
        }
        self.submissions.merge(&other.submissions);
    }
}

/// The sums of a CPU's events up to a time. Readers progress at different speeds, but sums of several CPUs must end at the
/// same time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Checkpoint {
    /// The time, since the start.
    pub(crate) at_ns: u64,
    /// Tasks by pid.
    pub(crate) tasks: FxHashMap<u32, Task>,
    pub(crate) completed: Moments,
}

/// The events of a CPU so far, as its reader reported them.
#[derive(Clone, Debug, Default)]
pub(crate) struct CpuReport {
    /// Tasks by pid.
    pub(crate) tasks: FxHashMap<u32, Task>,
    /// The most recent sums at full seconds.
    pub(crate) checkpoints: VecDeque<Checkpoint>,
}

/// Reports of all readers.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    /// Whether tracing has stopped: readers then empty their buffers and end.
    pub(crate) is_stopped: AtomicBool,
    /// I/Os that were queued, without refused ones.
    pub(crate) ios: AtomicU64,
    pub(crate) events: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) lost: AtomicU64,
    /// Pages that did not match the kernel's description.
    pub(crate) torn_pages: AtomicU64,
    /// Reports about each CPU.
    pub(crate) by_cpu: Vec<Mutex<CpuReport>>,
}

/// The reader of a CPU, with its output file.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    pub(crate) cpu: u32,
    /// The index of its CPU in [`Reports::by_cpu`].
    pub(crate) index: usize,
    pub(crate) pipe: File,
    pub(crate) pages: PageLayout,
    pub(crate) decoder: &'a Decoder,
    pub(crate) file: CpuFile<RecordFile>,
    pub(crate) reports: &'a Reports,
    /// Start of the recording: no event is earlier.
    pub(crate) start_ns: u64,
}

impl Reader<'_> {
    /// Reads and writes until the recording is over and the buffer is empty.
    ///
    /// # Errors
    /// If the buffer cannot be read or the file cannot be written. The file then ends with a complete record.
    pub(crate) fn run(self) -> io::Result<()> {
        // A reader that waits long for its CPU loses events. Without permission it stays at normal priority.
        let _ = rustix::process::setpriority_process(None, NICE);
        let start_ns = self.start_ns;
        let page = vec![0; self.pages.bytes];
        // `at_ns` is the time at which the next sums are saved.
        let sums = Checkpoint { at_ns: CHECKPOINT_INTERVAL_NS, ..Checkpoint::default() };
        let mut run = Run { reader: self, sums, last_ns: start_ns, counters: Counters::default() };
        let result = run.run_until_stopped(page);
        // After an error, still write buffered records if possible.
        let written = run.reader.file.get_mut().write_out(true);
        run.report();
        result.and(written)
    }
}

#[derive(Default)]
struct Counters {
    ios: u64,
    retracted: u64,
    events: u64,
    bytes: u64,
    lost: u64,
    torn_pages: u64,
    has_new_task: bool,
}

struct Run<'a> {
    reader: Reader<'a>,
    /// The sums so far, of which checkpoints are saved.
    sums: Checkpoint,
    /// Time of the last event.
    last_ns: u64,
    /// Counters since the last report.
    counters: Counters,
}

impl Run<'_> {
    fn run_until_stopped(&mut self, mut page: Vec<u8>) -> io::Result<()> {
        let mut last_report = Instant::now();
        loop {
            let mut polled = [PollFd::new(&self.reader.pipe, PollFlags::IN)];
            // An interrupted wait is not an error.
            let _ = rustix::event::poll(&mut polled, Some(&POLL_TIMEOUT));
            // Checked before reading, so that nothing traced before the stop is missed.
            let is_stopped = self.reader.reports.is_stopped.load(Ordering::Acquire);
            let (mut pages, now_ns) = (0, monotonic_ns());
            while self.read(&mut page)? {
                pages += 1;
                if pages % PAGES_MAX == 0 {
                    self.report();
                }
            }
            if is_stopped {
                return Ok(());
            }
            self.save_checkpoints(now_ns.saturating_sub(self.reader.start_ns));
            if self.counters.has_new_task || last_report.elapsed() > REPORT_INTERVAL {
                last_report = Instant::now();
                self.report();
            }
            if pages < PAGES_MIN {
                std::thread::sleep(PAUSE);
            }
        }
    }

    /// Reads a page and writes its events; returns `false` if the buffer was empty.
    fn read(&mut self, page: &mut [u8]) -> io::Result<bool> {
        let bytes = loop {
            match self.reader.pipe.read(page) {
                Ok(bytes) => break bytes,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        };
        if bytes == 0 {
            return Ok(false);
        }
        let Some(mut page) = Page::new(&page[..bytes], &self.reader.pages) else {
            self.counters.torn_pages += 1;
            return Ok(true);
        };
        if page.lost > 0 {
            self.counters.lost += page.lost;
            self.reader.file.lost(self.last_ns, page.lost)?;
        }
        for entry in page.by_ref() {
            if let Some(decoded) = self.reader.decoder.decode(entry.data, entry.time_ns, self.reader.cpu) {
                self.write(decoded)?;
            }
        }
        self.counters.torn_pages += u64::from(page.is_torn);
        self.reader.file.get_mut().write_out(false)?;
        Ok(true)
    }

    fn write(&mut self, Decoded { mut event, task: name }: Decoded<'_>) -> io::Result<()> {
        // blkparse rejects times that go back within a file, but the trace clock may step back by some ns.
        self.last_ns = self.last_ns.max(event.time_ns);
        event.time_ns = self.last_ns;
        let since_ns = event.time_ns - self.reader.start_ns;
        if since_ns >= self.sums.at_ns {
            self.save_checkpoints(since_ns);
        }
        if event.action == Action::Complete {
            self.complete(&event, since_ns);
        } else if let Some(name) = name {
            let task = self.sums.tasks.entry(event.pid).or_insert_with(|| Task {
                name: [0; 16],
                priority: IoPriority::UNSET,
                submissions: Submissions::default(),
                has_request: false,
            });
            match event.action {
                Action::Queue => {
                    task.submissions.queue(since_ns, event.bytes);
                    self.counters.ios += 1;
                }
                Action::GetRequest | Action::BackMerge | Action::FrontMerge => {
                    task.submissions.allocated.add(since_ns, event.bytes);
                    task.has_request |= event.action == Action::GetRequest;
                }
                // A kworker issues requests of other tasks, whose priority is not its own.
                Action::Insert | Action::Issue if !name.starts_with(b"kworker/") => task.priority = event.priority,
                // Plug events do not name a device: keep those of tasks with a request for this device.
                Action::Plug if !task.has_request => return Ok(()),
                Action::Unplug if !std::mem::take(&mut task.has_request) => return Ok(()),
                _ => {}
            }
            if task.name != *name {
                task.name = *name;
                self.counters.has_new_task = true;
                let end = name.iter().position(|letter| *letter == 0).unwrap_or(name.len());
                self.reader.file.name(event.time_ns, event.pid, &name[..end])?;
            }
        }
        self.counters.events += 1;
        self.reader.file.event(&event)
    }

    fn complete(&mut self, event: &Event, since_ns: u64) {
        self.sums.completed.add(since_ns, event.bytes);
        // A REQ_NOWAIT bio that would block is returned to its task, and a worker queues it again.
        if event.error == EAGAIN
            && let Some(task) = self.sums.tasks.get_mut(&event.pid)
        {
            task.submissions.retract(since_ns, event.bytes);
            self.counters.retracted += 1;
        }
    }

    fn report(&mut self) {
        let reports = self.reader.reports;
        let bytes = self.reader.file.get_mut().len();
        let Counters { ios, retracted, events, lost, torn_pages, bytes: before, .. } =
            std::mem::take(&mut self.counters);
        self.counters.bytes = bytes;
        for (total, delta) in [
            // A refused bio was queued on the same CPU, possibly before the last report.
            (&reports.ios, ios.wrapping_sub(retracted)),
            (&reports.events, events),
            // After a failed write the file may be shorter than before.
            (&reports.bytes, bytes.wrapping_sub(before)),
            (&reports.lost, lost),
            (&reports.torn_pages, torn_pages),
        ] {
            total.fetch_add(delta, Ordering::Relaxed);
        }
        self.cpu_report().tasks.clone_from(&self.sums.tasks);
    }

    /// Saves the sums up to this time.
    #[cold]
    fn save_checkpoints(&mut self, since_ns: u64) {
        while self.sums.at_ns <= since_ns {
            // Sums do not change while idle, so those of the last seconds are enough.
            let first_ns = since_ns.saturating_sub(CHECKPOINTS_MAX as u64 * CHECKPOINT_INTERVAL_NS)
                / CHECKPOINT_INTERVAL_NS
                * CHECKPOINT_INTERVAL_NS;
            self.sums.at_ns = self.sums.at_ns.max(first_ns);
            let mut cpu_report = self.cpu_report();
            if cpu_report.checkpoints.len() == CHECKPOINTS_MAX {
                cpu_report.checkpoints.pop_front();
            }
            cpu_report.checkpoints.push_back(self.sums.clone());
            drop(cpu_report);
            self.sums.at_ns += CHECKPOINT_INTERVAL_NS;
        }
    }

    fn cpu_report(&self) -> MutexGuard<'_, CpuReport> {
        self.reader.reports.by_cpu[self.reader.index].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use hoistway_trace::block::{Device, Recording};

    use super::super::events::tests::{decoder, pages};
    use super::*;

    /// The records written for a buffer with these pages, and the reports about it.
    fn written(content: &[u8]) -> (Vec<Event>, Recording, Reports) {
        let folder = tempfile::tempdir().unwrap();
        let (buffer, records) = (folder.path().join("buffer"), folder.path().join("x.blktrace.0"));
        std::fs::write(&buffer, content).unwrap();
        let reports = Reports { is_stopped: true.into(), by_cpu: vec![Mutex::default()], ..Reports::default() };
        let (decoder, device) = (decoder(), Device { major: 7, minor: 0 });
        let file = CpuFile::new(RecordFile::create(&records).unwrap(), 0, device);
        let (pipe, pages, reports_of_it) = (File::open(&buffer).unwrap(), pages(), &reports);
        let reader =
            Reader { cpu: 0, index: 0, pipe, pages, decoder: &decoder, file, reports: reports_of_it, start_ns: 0 };
        reader.run().unwrap();
        let mut recording = Recording::open(&records).unwrap();
        let mut events = Vec::new();
        while let Some(event) = recording.next_event().unwrap() {
            events.push(event);
        }
        (events, recording, reports)
    }

    #[test]
    fn a_buffer_is_written_with_its_names_and_losses() {
        let gaps: &[u8] = include_bytes!("../../tests/pages/gaps.page");
        let loss = include_bytes!("../../tests/pages/loss.page");
        let (events, recording, reports) = written(&[gaps, loss].concat());
        let of = |action: Action| events.iter().filter(|event| event.action == action).count() as u64;
        let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
        assert_eq!((count(&reports.lost), recording.losses().lost_events), (882, 882));
        assert_eq!((count(&reports.ios), count(&reports.events)), (of(Action::Queue), events.len() as u64));
        assert!(of(Action::Queue) > 10 && recording.names().all().iter().any(|(_, name)| *name == "fio"));
        assert!(events.iter().filter(|event| event.action == Action::Unplug).all(|event| event.pid != 0));
        assert_eq!(count(&reports.torn_pages), 0);
        let report = reports.by_cpu[0].lock().unwrap();
        let ios: u64 = report.tasks.values().map(|task| task.submissions.ios).sum();
        assert_eq!(ios, of(Action::Queue));
    }

    #[test]
    fn plugs_without_a_request_for_the_device_are_left_out() {
        let (events, ..) = written(include_bytes!("../../tests/pages/gaps.page"));
        let mut has_request = false;
        for event in &events {
            match event.action {
                Action::GetRequest => has_request = true,
                Action::Plug => assert!(has_request),
                Action::Unplug => assert!(std::mem::take(&mut has_request)),
                _ => {}
            }
        }
        let count = |action: Action| events.iter().filter(|event| event.action == action).count();
        assert!(count(Action::Plug) > 0 && count(Action::Plug) == count(Action::Unplug));
    }

    #[test]
    fn a_page_that_is_torn_is_counted() {
        let mut page = include_bytes!("../../tests/pages/gaps.page").to_vec();
        page[9] = 0xff;
        let (events, _, reports) = written(&page);
        assert!(!events.is_empty() && reports.torn_pages.load(Ordering::Relaxed) == 1);
    }
}
