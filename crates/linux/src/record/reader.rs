//! One CPU's ring buffer, read and written as records until the end.

use std::fs::File;
use std::io::{self, Read};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hoistway_blk::bio::IoPriority;
use hoistway_trace::block::{Action, CpuFile, Event};
use rustc_hash::FxHashMap;
use rustix::event::{PollFd, PollFlags, Timespec};

use super::events::{Decoded, Decoder};
use super::format::PageLayout;
use super::output::RecordFile;
use super::page::Page;
use super::pressure::{Moments, Submissions};

/// Error of a bio that would have to wait.
const EAGAIN: u16 = 11;
/// Between two looks at a buffer that does not fill.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// Between two reports of what was seen.
const REPORT: Duration = Duration::from_millis(500);
/// A kernel that cannot wait until a buffer fills is asked less often.
const PAUSE: Duration = Duration::from_millis(20);
/// Pages that a buffer has to have for the reader to come back at once.
const PAGES_MIN: usize = 16;
/// Pages between two reports while a buffer does not get empty.
const PAGES_MAX: usize = 1024;

/// A task that was seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Task {
    /// Its name, padded with NUL.
    pub(crate) name: [u8; 16],
    /// That of the last request that it inserted or issued.
    pub(crate) priority: IoPriority,
    pub(crate) submissions: Submissions,
    /// It got a request since its plug was last emptied: the next plug is one for this device.
    has_request: bool,
}

impl Task {
    /// Takes in what another CPU saw of the task.
    pub(crate) fn merge(&mut self, other: &Task) {
        // A name or a priority that one of them does not have is none.
        if other.submissions.last_ns > self.submissions.last_ns || self.priority == IoPriority::UNSET {
            (self.name, self.priority) = (other.name, other.priority);
        }
        self.submissions.merge(&other.submissions);
    }
}

/// What a CPU's events add up to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// By pid.
    pub(crate) tasks: FxHashMap<u32, Task>,
    pub(crate) completed: Moments,
}

/// What the readers report.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    /// The buffers get no more events: what they hold is the rest.
    pub(crate) is_over: AtomicBool,
    /// I/Os that were queued, or completed on a device without requests.
    pub(crate) ios: AtomicU64,
    pub(crate) events: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) lost: AtomicU64,
    /// Pages that were not what the kernel describes.
    pub(crate) torn_pages: AtomicU64,
    /// Of each reader.
    pub(crate) seen: Vec<Mutex<Seen>>,
}

/// A reader with its file.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    pub(crate) cpu: u32,
    /// Its place among the readers.
    pub(crate) place: usize,
    pub(crate) pipe: File,
    pub(crate) pages: PageLayout,
    pub(crate) decoder: &'a Decoder,
    pub(crate) file: CpuFile<RecordFile>,
    pub(crate) reports: &'a Reports,
    /// When the recording began: no event is earlier.
    pub(crate) start_ns: u64,
}

impl Reader<'_> {
    /// Reads and writes until the recording is over and the buffer is empty.
    ///
    /// # Errors
    /// If the buffer cannot be read or the file cannot be written. What was written before ends with a whole record.
    pub(crate) fn run(self) -> io::Result<()> {
        let start_ns = self.start_ns;
        let page = vec![0; self.pages.bytes];
        let mut run = Run { reader: self, seen: Seen::default(), last_ns: start_ns, counted: Counted::default() };
        let ended = run.until_over(page);
        // What was held back before a failure is written as far as it can be.
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
    seen: Seen,
    /// Time of the last event.
    last_ns: u64,
    /// Since the last report.
    counted: Counted,
}

impl Run<'_> {
    fn until_over(&mut self, mut page: Vec<u8>) -> io::Result<()> {
        let mut reported = Instant::now();
        loop {
            let mut polled = [PollFd::new(&self.reader.pipe, PollFlags::IN)];
            // An interruption is no reason to end.
            let _ = rustix::event::poll(&mut polled, Some(&LOOK));
            // Looked at before the buffer: everything that it holds afterwards is read.
            let is_over = self.reader.reports.is_over.load(Ordering::Acquire);
            let mut pages = 0;
            while self.read(&mut page)? {
                pages += 1;
                if pages % PAGES_MAX == 0 {
                    self.report();
                }
            }
            if is_over {
                return Ok(());
            }
            if self.counted.has_new_task || reported.elapsed() > REPORT {
                reported = Instant::now();
                self.report();
            }
            if pages < PAGES_MIN {
                std::thread::sleep(PAUSE);
            }
        }
    }

    /// Reads a page and writes its events; whether there was one.
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
        // Readers refuse a time that goes back within a file; the clock of traces may step back by some ns.
        self.last_ns = self.last_ns.max(event.time_ns);
        event.time_ns = self.last_ns;
        let since_ns = event.time_ns - self.reader.start_ns;
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
                // A worker that issues requests of others has not chosen their priority.
                Action::Insert | Action::Issue if !name.starts_with(b"kworker/") => task.priority = event.priority,
                // Plugs do not name their device: those count that hold a request for this one.
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
        // A bio that must not wait, and would have to, is given back to its task, which has a worker queue it again.
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
            // What was given back was queued on the same CPU, perhaps before the last report.
            (&reports.ios, ios.wrapping_sub(given_back)),
            (&reports.events, events),
            // After a failed write the file may be shorter than what was held back.
            (&reports.bytes, bytes.wrapping_sub(before)),
            (&reports.lost, lost),
            (&reports.torn_pages, torn_pages),
        ] {
            total.fetch_add(more, Ordering::Relaxed);
        }
        let mut seen = reports.seen[self.reader.place].lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        seen.tasks.clone_from(&self.seen.tasks);
        seen.completed = self.seen.completed;
    }
}
