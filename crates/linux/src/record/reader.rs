//! The reader of one CPU's ring buffer, which writes records until the end.

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

/// The error of a nowait bio that would have to wait.
const EAGAIN: u16 = 11;
/// Nice value of readers.
const NICE: i32 = -10;
/// Timeout of waiting for a buffer that does not fill.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// Interval of reports.
const REPORT: Duration = Duration::from_millis(500);
/// Pause between reads if the kernel cannot wait for a buffer to fill.
const PAUSE: Duration = Duration::from_millis(20);
/// Number of pages in the buffer from which the reader continues without a pause.
const PAGES_MIN: usize = 16;
/// Interval of saved sums, and their number.
const CUT_NS: u64 = 1_000_000_000;
const CUTS_MAX: usize = 8;
/// Maximum pages between two reports while a buffer does not become empty.
const PAGES_MAX: usize = 1024;

/// A task that was seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Task {
    /// Its name, padded with NUL.
    pub(crate) name: [u8; 16],
    /// The priority of the last request that it inserted or issued.
    pub(crate) priority: IoPriority,
    pub(crate) submissions: Submissions,
    /// Whether it got a request since its plug was last flushed: the next plug event is then for this device.
    has_request: bool,
}

impl Task {
    /// Merges what another CPU saw of the task.
    pub(crate) fn merge(&mut self, other: &Task) {
        // Keep the name and priority of the one that has them.
        if other.submissions.last_ns > self.submissions.last_ns || self.priority == IoPriority::UNSET {
            (self.name, self.priority) = (other.name, other.priority);
        }
        self.submissions.merge(&other.submissions);
    }
}

/// The sums of a CPU's events up to a time. Readers progress at different speeds, but sums of several CPUs must be of
/// the same time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cut {
    /// The time, since the start.
    pub(crate) at_ns: u64,
    /// Tasks by pid.
    pub(crate) tasks: FxHashMap<u32, Task>,
    pub(crate) completed: Moments,
}

/// What a CPU has seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// Tasks by pid.
    pub(crate) tasks: FxHashMap<u32, Task>,
    /// The most recent sums at full seconds.
    pub(crate) cuts: VecDeque<Cut>,
}

/// Reports of the readers.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    /// Whether tracing has stopped, so that the buffers contain the rest.
    pub(crate) is_over: AtomicBool,
    /// I/Os that were queued, or completed on a device without requests.
    pub(crate) ios: AtomicU64,
    pub(crate) events: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) lost: AtomicU64,
    /// Pages that did not match the kernel's description.
    pub(crate) torn_pages: AtomicU64,
    /// What each reader has seen.
    pub(crate) seen: Vec<Mutex<Seen>>,
}

/// A reader with its file.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    pub(crate) cpu: u32,
    /// Its index among the readers.
    pub(crate) place: usize,
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
        // A reader that waits long for a CPU loses events. Without the permission it runs at normal priority.
        let _ = rustix::process::setpriority_process(None, NICE);
        let start_ns = self.start_ns;
        let page = vec![0; self.pages.bytes];
        // The time of the next saved sums.
        let seen = Cut { at_ns: CUT_NS, ..Cut::default() };
        let mut run = Run { reader: self, seen, last_ns: start_ns, counted: Counted::default() };
        let ended = run.until_over(page);
        // Buffered records before an error are written as far as possible.
        let written = run.reader.file.get_mut().write_out(true);
        run.report();
        ended.and(written)
    }
}

#[derive(Default)]
struct Counted {
    ios: u64,
    given_back: u64,
    events: u64,
    bytes: u64,
    lost: u64,
    torn_pages: u64,
    has_new_task: bool,
}

struct Run<'a> {
    reader: Reader<'a>,
    seen: Cut,
    /// Time of the last event.
    last_ns: u64,
    /// Counters since the last report.
    counted: Counted,
}

impl Run<'_> {
    fn until_over(&mut self, mut page: Vec<u8>) -> io::Result<()> {
        let mut reported = Instant::now();
        loop {
            let mut polled = [PollFd::new(&self.reader.pipe, PollFlags::IN)];
            // An interrupted wait is not an error.
            let _ = rustix::event::poll(&mut polled, Some(&LOOK));
            // Checked before the buffer: everything in the buffer afterwards is read.
            let is_over = self.reader.reports.is_over.load(Ordering::Acquire);
            let (mut pages, now_ns) = (0, monotonic_ns());
            while self.read(&mut page)? {
                pages += 1;
                if pages % PAGES_MAX == 0 {
                    self.report();
                }
            }
            if is_over {
                return Ok(());
            }
            self.cut_before(now_ns.saturating_sub(self.reader.start_ns));
            if self.counted.has_new_task || reported.elapsed() > REPORT {
                reported = Instant::now();
                self.report();
            }
            if pages < PAGES_MIN {
                std::thread::sleep(PAUSE);
            }
        }
    }

    /// Reads a page and writes its events; returns whether there was one.
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
            self.counted.torn_pages += 1;
            return Ok(true);
        };
        if page.lost > 0 {
            self.counted.lost += page.lost;
            self.reader.file.lost(self.last_ns, page.lost)?;
        }
        for entry in page.by_ref() {
            if let Some(decoded) = self.reader.decoder.decode(entry.data, entry.time_ns, self.reader.cpu) {
                self.write(decoded)?;
            }
        }
        self.counted.torn_pages += u64::from(page.is_torn);
        self.reader.file.get_mut().write_out(false)?;
        Ok(true)
    }

    fn write(&mut self, Decoded { mut event, task: name }: Decoded<'_>) -> io::Result<()> {
        // Readers reject times that go back within a file, but the trace clock may step back by some ns.
        self.last_ns = self.last_ns.max(event.time_ns);
        event.time_ns = self.last_ns;
        let since_ns = event.time_ns - self.reader.start_ns;
        if since_ns >= self.seen.at_ns {
            self.cut_before(since_ns);
        }
        if event.action == Action::Complete {
            self.complete(&event, since_ns);
        } else if let Some(name) = name {
            let task = self.seen.tasks.entry(event.pid).or_insert_with(|| Task {
                name: [0; 16],
                priority: IoPriority::UNSET,
                submissions: Submissions::default(),
                has_request: false,
            });
            match event.action {
                Action::Queue => {
                    task.submissions.queue(since_ns, event.bytes);
                    self.counted.ios += 1;
                }
                Action::GetRequest | Action::BackMerge | Action::FrontMerge => {
                    task.submissions.taken.add(since_ns, event.bytes);
                    task.has_request |= event.action == Action::GetRequest;
                }
                // A worker that issues requests of other tasks has not set their priority.
                Action::Insert | Action::Issue if !name.starts_with(b"kworker/") => task.priority = event.priority,
                // Plug events do not name a device: those of tasks with a request for this device count.
                Action::Plug if !task.has_request => return Ok(()),
                Action::Unplug if !std::mem::take(&mut task.has_request) => return Ok(()),
                _ => {}
            }
            if task.name != *name {
                task.name = *name;
                self.counted.has_new_task = true;
                let end = name.iter().position(|letter| *letter == 0).unwrap_or(name.len());
                self.reader.file.name(event.time_ns, event.pid, &name[..end])?;
            }
        }
        self.counted.events += 1;
        self.reader.file.event(&event)
    }

    fn complete(&mut self, event: &Event, since_ns: u64) {
        self.seen.completed.add(since_ns, event.bytes);
        // A nowait bio that would have to wait is returned to its task, which lets a worker queue it again.
        if event.error == EAGAIN
            && let Some(task) = self.seen.tasks.get_mut(&event.pid)
        {
            task.submissions.give_back(since_ns, event.bytes);
            self.counted.given_back += 1;
        }
    }

    fn report(&mut self) {
        let reports = self.reader.reports;
        let bytes = self.reader.file.get_mut().len();
        let Counted { ios, given_back, events, lost, torn_pages, bytes: before, .. } =
            std::mem::take(&mut self.counted);
        self.counted.bytes = bytes;
        for (total, more) in [
            // A returned bio was queued on the same CPU, possibly before the last report.
            (&reports.ios, ios.wrapping_sub(given_back)),
            (&reports.events, events),
            // After a failed write the file may be shorter than before.
            (&reports.bytes, bytes.wrapping_sub(before)),
            (&reports.lost, lost),
            (&reports.torn_pages, torn_pages),
        ] {
            total.fetch_add(more, Ordering::Relaxed);
        }
        self.reported().tasks.clone_from(&self.seen.tasks);
    }

    /// Saves the sums up to this time.
    #[cold]
    fn cut_before(&mut self, since_ns: u64) {
        while self.seen.at_ns <= since_ns {
            // During a pause all sums are equal, so those of its last seconds are enough.
            let first_ns = since_ns.saturating_sub(CUTS_MAX as u64 * CUT_NS) / CUT_NS * CUT_NS;
            self.seen.at_ns = self.seen.at_ns.max(first_ns);
            let mut reported = self.reported();
            if reported.cuts.len() == CUTS_MAX {
                reported.cuts.pop_front();
            }
            reported.cuts.push_back(self.seen.clone());
            drop(reported);
            self.seen.at_ns += CUT_NS;
        }
    }

    fn reported(&self) -> MutexGuard<'_, Seen> {
        self.reader.reports.seen[self.reader.place].lock().unwrap_or_else(PoisonError::into_inner)
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
        let reports = Reports { is_over: true.into(), seen: vec![Mutex::default()], ..Reports::default() };
        let (decoder, device) = (decoder(), Device { major: 7, minor: 0 });
        let file = CpuFile::new(RecordFile::create(&records).unwrap(), 0, device);
        let (pipe, pages, reports_of_it) = (File::open(&buffer).unwrap(), pages(), &reports);
        let reader =
            Reader { cpu: 0, place: 0, pipe, pages, decoder: &decoder, file, reports: reports_of_it, start_ns: 0 };
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
        let seen = reports.seen[0].lock().unwrap();
        let ios: u64 = seen.tasks.values().map(|task| task.submissions.ios).sum();
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
