//! Writes a simulated run as a blktrace recording, for blkparse and btt.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use hoistway_blk::bio::{Bio, BioFlags, IoPriority, Op, Status};
use hoistway_blk::ground::{CpuId, IoContextId, Now, RqId, Waiter};
use hoistway_blk::request::{Edge, Marks, Request};
use hoistway_blk::watch::{Event as BlockEvent, Probe};

use crate::block::{Action, BlktraceWriter, Device, Event, Flags, Names, Payload};

/// Major number 8 (sd): btt treats some other drivers as remapping ones.
const MAJOR: u16 = 8;
/// Minor numbers per disk, for the disk and its partitions.
const MINORS_OF_DISK: u32 = 16;

/// A probe that writes a record for each event that blktrace supports: one file for each CPU; pids of processes count from 1.
///
/// A probe cannot fail: the first error is kept, nothing is written after it, and the run is stopped.
#[derive(Debug)]
pub struct BlktraceProbe<'a, W> {
    writer: BlktraceWriter<W>,
    names: Names,
    stop: &'a AtomicBool,
    device: u32,
    submitter: Option<Waiter>,
    /// Time and CPU of the last record.
    last: (u64, u32),
    /// The request that the driver completed last.
    completed: Option<RqId>,
    error: Option<io::Error>,
}

impl<'a, W: Write> BlktraceProbe<'a, W> {
    /// A probe for a run with one file for each CPU, and the job name of each process. `stop` is set if a file cannot be written.
    #[must_use]
    pub fn new<'j>(files: Vec<W>, jobs: impl Iterator<Item = &'j str>, stop: &'a AtomicBool) -> BlktraceProbe<'a, W> {
        let mut names = Names::default();
        (1..).zip(jobs).for_each(|(pid, job)| names.learn(pid, job.as_bytes()));
        let (writer, last) = (BlktraceWriter::new(files), (0, 0));
        BlktraceProbe { writer, names, stop, device: 0, submitter: None, last, completed: None, error: None }
    }

    /// Flushes buffered records and returns the files.
    ///
    /// # Errors
    /// If something could not be written.
    pub fn finish(self) -> io::Result<Vec<W>> {
        self.error.map_or_else(|| self.writer.finish(), Err)
    }

    /// An event without an I/O.
    fn empty_event(&self, action: Action) -> Event {
        Event {
            time_ns: 0,
            sector: 0,
            bytes: 0,
            pid: self.submitter.map_or(0, |submitter| submitter.0.saturating_add(1)),
            device: Device { major: MAJOR, minor: self.device * MINORS_OF_DISK },
            cpu: 0,
            error: 0,
            action,
            flags: Flags::default(),
            priority: IoPriority::UNSET,
            cgroup: 0,
            payload: Payload::None,
        }
    }

    fn bio_event(&self, action: Action, bio: &Bio) -> Event {
        let (sector, bytes, pid) = (bio.sector.0, bio.sectors.saturating_mul(512), pid(bio.io_context));
        Event { sector, bytes, pid, flags: flags(bio.op, bio.flags), ..self.empty_event(action) }
    }

    fn request_event(&self, action: Action, rq: &Request) -> Event {
        let (sector, bytes, pid) = (rq.sector.0, rq.sectors.saturating_mul(512), pid(rq.io_context));
        Event { sector, bytes, pid, flags: flags(rq.op, rq.flags), ..self.empty_event(action) }
    }

    /// Makes a completion event: its pid is 0, because completions run outside of any task.
    fn completion_of(event: Event, status: Status) -> Event {
        let error = u16::try_from(status.errno().unsigned_abs()).unwrap_or(u16::MAX);
        Event { pid: 0, error, ..event }
    }
}

/// The pid of an I/O context: the same number, 0 for none.
fn pid(context: IoContextId) -> u32 {
    context.0
}

fn flags(op: Op, flags: BioFlags) -> Flags {
    let operation = match op {
        Op::Read => Flags::READ,
        Op::Write | Op::WriteZeroes => Flags::WRITE,
        Op::Flush => Flags::FLUSH,
        Op::Discard => Flags::WRITE | Flags::DISCARD,
    };
    let pairs = [
        (BioFlags::PREFLUSH, Flags::FLUSH),
        (BioFlags::FUA, Flags::FUA),
        (BioFlags::SYNC, Flags::SYNC),
        (BioFlags::META, Flags::META),
        (BioFlags::RAHEAD, Flags::AHEAD),
    ];
    let set = pairs.into_iter().filter(|(flag, _)| flags.contains(*flag));
    set.fold(operation, |all, (_, flag)| all | flag)
}

impl<W: Write> Probe for BlktraceProbe<'_, W> {
    fn enter(&mut self, device: u32, submitter: Option<Waiter>) {
        self.device = device;
        self.submitter = submitter;
    }

    fn event(&mut self, now: Now, cpu: CpuId, event: BlockEvent<'_>) {
        let record = match event {
            BlockEvent::Queue(bio) => self.bio_event(Action::Queue, bio),
            BlockEvent::Merge(Edge::Back, bio) => self.bio_event(Action::BackMerge, bio),
            BlockEvent::Merge(Edge::Front, bio) => self.bio_event(Action::FrontMerge, bio),
            BlockEvent::Split(front) => {
                Event { payload: Payload::Rest(front.end().0), ..self.bio_event(Action::Split, front) }
            }
            BlockEvent::Plug => self.empty_event(Action::Plug),
            BlockEvent::Unplug { count, explicit } => {
                let action = if explicit { Action::Unplug } else { Action::UnplugScheduled };
                Event { payload: Payload::Requests(count as u64), ..self.empty_event(action) }
            }
            BlockEvent::GetRq(rq) => self.request_event(Action::GetRequest, rq),
            BlockEvent::Insert(rq) => self.request_event(Action::Insert, rq),
            BlockEvent::Issue(rq) => self.request_event(Action::Issue, rq),
            BlockEvent::Requeue(rq) => self.request_event(Action::Requeue, rq),
            BlockEvent::Complete(rq, status) => {
                self.completed = Some(rq.id());
                Self::completion_of(self.request_event(Action::Complete, rq), status)
            }
            BlockEvent::End(rq) => {
                // The last step of a flush sequence has its own record, of length 0.
                let is_empty_step = rq.sectors == 0 && self.completed != Some(rq.id());
                if rq.marks.contains(Marks::FLUSH_COMMAND) || !(rq.marks.contains(Marks::IN_SEQUENCE) || is_empty_step)
                {
                    return;
                }
                let end = Self::completion_of(self.request_event(Action::Complete, rq), Status::Ok);
                Event { bytes: 0, flags: end.flags.without(Flags::FLUSH | Flags::FUA), ..end }
            }
            BlockEvent::BioComplete(bio, status) => Self::completion_of(self.bio_event(Action::Complete, bio), status),
            // blktrace has no records for these: bios of an absorbed request complete with the request that absorbed it.
            BlockEvent::Absorbed(_) | BlockEvent::Dispatch { .. } => return,
        };
        if self.error.is_some() {
            return;
        }
        let cpu = cpu.0;
        // Readers merge files by time alone, so simultaneous events of several CPUs are spaced by 1 ns to keep their order.
        let (last_ns, last_cpu) = self.last;
        let time_ns = now.at.0.max(last_ns + u64::from(cpu != last_cpu));
        self.last = (time_ns, cpu);
        if let Err(error) = self.writer.write(&Event { time_ns, cpu, ..record }, &self.names) {
            self.error = Some(error);
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}
