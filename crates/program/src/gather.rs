//! The pass over a recording: writes a log of its I/Os, and collects the tasks.
//!
//! Used by: `assign`, `infer`.
//! Tests: `crates/program/tests/program/recordings.rs`.

use std::io;

use hoistway_blk::bio::IoPriority;
use hoistway_trace::block::{
    Action, Counts, Device, Event, Flags, Flight, Flights, Intervals, Losses, ReadError, Recording, Step,
};
use rustc_hash::FxHashMap;

use crate::log::{Busiest, Entry, EntryLog, Kind, Writer};
use crate::served::ServedRequests;
use crate::ticks::{CoarseClock, TickEstimate};
use crate::track::PLUG_NS;

/// Events read ahead to decide whether a recording has queue events (bios), or only those of requests (RP29).
const LOOKAHEAD: usize = 4096;
/// Maximum tasks; I/Os of further tasks count as those of the last one.
const TASKS_MAX: usize = 1 << 18;

/// A task on one device. Its asynchronous writes count as a separate task.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    pub(crate) device: Device,
    pub(crate) pid: u32,
    pub(crate) is_async_write: bool,
    pub(crate) ios: u64,
    /// The priority of its requests (RP27).
    pub(crate) priority: IoPriority,
    /// ID of the cgroup of its I/Os; 0 if unknown (RP28).
    pub(crate) cgroup: u64,
}

/// Numbers of events of a device.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DeviceCounts {
    pub(crate) queued: u64,
    pub(crate) inserted: u64,
    pub(crate) issued: u64,
    pub(crate) completed: u64,
}

/// What the pass over a recording collects.
#[derive(Debug)]
pub(crate) struct GatheredRecording {
    pub(crate) log: EntryLog,
    pub(crate) tasks: Vec<Task>,
    pub(crate) devices: Vec<(Device, DeviceCounts)>,
    pub(crate) counts: Counts,
    pub(crate) losses: Losses,
    pub(crate) names: FxHashMap<u32, String>,
    pub(crate) has_only_requests: bool,
    pub(crate) intervals: Option<Intervals>,
    /// What the devices served, if requested.
    pub(crate) served: Option<ServedRequests>,
    /// Whether it shows which I/Os share a plug.
    pub(crate) has_plugs: bool,
    pub(crate) first_ns: u64,
    pub(crate) last_ns: u64,
    pub(crate) unfinished: u64,
    /// One more than the highest number of a CPU with an event.
    pub(crate) cpus: Option<u32>,
    /// The recording's clock, if it is coarse.
    pub(crate) tick: Option<CoarseClock>,
}

impl GatheredRecording {
    /// Keeps only the busiest stretch with this many I/Os of a device, if there are more. Returns the stretch; `None` if
    /// everything was kept.
    pub(crate) fn keep_busiest(&mut self, device: Device, ios: usize) -> io::Result<Option<Busiest>> {
        let tasks = &self.tasks;
        let Some(busiest) = self.log.busiest(ios, |task| tasks[task as usize].device == device)? else {
            return Ok(None);
        };
        self.log.keep(busiest.from_ns, busiest.to_ns);
        (self.first_ns, self.last_ns) = (busiest.from_ns, busiest.to_ns);
        self.tasks.iter_mut().for_each(|task| task.ios = 0);
        let (tasks, mut unfinished) = (&mut self.tasks, 0);
        self.log.for_each(|entry| {
            match entry.kind {
                Kind::Queued => {
                    tasks[entry.task as usize].ios += 1;
                    unfinished += 1;
                }
                Kind::Completed | Kind::GivenUp => unfinished -= 1,
                _ => {}
            }
            Ok(())
        })?;
        self.unfinished = unfinished;
        Ok(Some(busiest))
    }
}

struct Gatherer {
    writer: Writer,
    tasks: Vec<Task>,
    task_numbers: FxHashMap<(u32, u32, bool), u32>,
    /// For each pid, its task with the latest I/O.
    latest_task_of_pid: FxHashMap<u32, u32>,
    /// For each I/O in flight by its number: its task, and its entry in the log.
    flight_entries: Vec<(u32, u64)>,
    failure: Option<io::Error>,
    clock: TickEstimate,
    plugs: PlugEvidence,
}

/// Whether I/Os that follow each other closely are under one plug, where plugs were not recorded: those under a plug are passed on
/// together, so one that is inserted or issued before the next is queued was alone.
#[derive(Default)]
struct PlugEvidence {
    /// For each task its last I/O: its number, when it was queued, and whether it was passed on.
    last_of_task: Vec<(u64, u64, bool)>,
    together: u64,
    alone: u64,
}

impl PlugEvidence {
    fn queued(&mut self, task: u32, flight: &Flight, now_ns: u64) {
        let task = task as usize;
        if self.last_of_task.len() <= task {
            self.last_of_task.resize(task + 1, (u64::MAX, 0, false));
        }
        let (number, queued_ns, is_passed_on) =
            std::mem::replace(&mut self.last_of_task[task], (u64::from(flight.id), now_ns, false));
        if number != u64::MAX && now_ns < queued_ns + PLUG_NS {
            *(if is_passed_on { &mut self.alone } else { &mut self.together }) += 1;
        }
    }

    fn passed_on(&mut self, task: u32, flight: &Flight) {
        if let Some(last) = self.last_of_task.get_mut(task as usize).filter(|last| last.0 == u64::from(flight.id)) {
            last.2 = true;
        }
    }

    fn shows_single_ios(&self) -> bool {
        self.alone > self.together
    }
}

impl Gatherer {
    fn task_number(&mut self, flight: &Flight) -> u32 {
        let is_async_write =
            flight.flags.has(Flags::WRITE) && !flight.flags.has(Flags::SYNC) && !flight.flags.has(Flags::DISCARD);
        let is_full = self.tasks.len() >= TASKS_MAX;
        let key = (flight.device.number(), flight.pid, is_async_write);
        let number = match self.task_numbers.get(&key) {
            Some(&number) => number,
            None if is_full => TASKS_MAX as u32 - 1,
            None => {
                let number = self.tasks.len() as u32;
                self.tasks.push(Task {
                    device: flight.device,
                    pid: flight.pid,
                    is_async_write,
                    ios: 0,
                    priority: IoPriority::UNSET,
                    cgroup: 0,
                });
                self.task_numbers.insert(key, number);
                number
            }
        };
        self.latest_task_of_pid.insert(flight.pid, number);
        number
    }

    fn step(&mut self, step: Step, flight: &Flight, now_ns: u64) {
        let id = flight.id as usize;
        if step == Step::Queued {
            if self.flight_entries.len() <= id {
                self.flight_entries.resize(id + 1, (0, 0));
            }
            self.clock.add_time(now_ns);
            self.flight_entries[id].0 = self.task_number(flight);
            self.tasks[self.flight_entries[id].0 as usize].ios += 1;
            self.plugs.queued(self.flight_entries[id].0, flight, now_ns);
        }
        let (number, queued) = self.flight_entries[id];
        let task = &mut self.tasks[number as usize];
        if step == Step::Refused {
            task.ios -= 1;
            let withdrawn = self.writer.withdraw(queued);
            self.failure = self.failure.take().or(withdrawn.err());
            return;
        }
        if task.priority == IoPriority::UNSET {
            task.priority = flight.priority;
        }
        if task.cgroup == 0 {
            task.cgroup = flight.cgroup;
        }
        let (kind, value) = match step {
            Step::Queued => (Kind::Queued, flight.sector),
            Step::Submitted { blocked_ns } => (Kind::Submitted, blocked_ns),
            Step::Completed => (Kind::Completed, now_ns - flight.queue_ns),
            Step::GivenUp => (Kind::GivenUp, now_ns.saturating_sub(flight.queue_ns)),
            Step::Inserted | Step::Issued => return self.plugs.passed_on(number, flight),
            Step::Transferred | Step::Refused => return,
        };
        let entry = self.add(Entry {
            kind,
            time_ns: now_ns,
            value,
            bytes: flight.bytes,
            task: number,
            flags: flight.flags.bits(),
            priority: flight.priority.0,
        });
        if step == Step::Queued {
            self.flight_entries[id].1 = entry;
        }
    }

    /// Adds an entry and returns its number; 0 after an error.
    fn add(&mut self, entry: Entry) -> u64 {
        if self.failure.is_some() {
            return 0;
        }
        self.writer.add(entry).unwrap_or_else(|error| {
            self.failure = Some(error);
            0
        })
    }

    fn plug(&mut self, event: &Event, kind: Kind) {
        if let Some(&task) = self.latest_task_of_pid.get(&event.pid) {
            let (time_ns, value, bytes) = (event.time_ns, 0, 0);
            self.add(Entry { kind, time_ns, value, bytes, task, flags: 0, priority: 0 });
        }
    }
}

/// Reads a recording to its end, or to the end of the window (ns since its first event).
pub(crate) fn gather(
    recording: &mut Recording,
    file: &str,
    mut intervals: Option<Intervals>,
    mut served: Option<ServedRequests>,
    window_ns: Option<(u64, u64)>,
) -> Result<GatheredRecording, ReadError> {
    let file_error = |error: io::Error| {
        ReadError::file(file, format!("cannot write a temporary file: {error}"), "enough space for temporary files")
    };
    let mut lookahead = Vec::with_capacity(LOOKAHEAD);
    while lookahead.len() < LOOKAHEAD
        && let Some(event) = recording.next_event()?
    {
        lookahead.push(event);
    }
    let has_only_requests = !lookahead.iter().any(|event| event.action == Action::Queue);
    let mut flights = Flights::new(has_only_requests);
    let mut gatherer = Gatherer {
        writer: Writer::new().map_err(file_error)?,
        tasks: Vec::new(),
        task_numbers: FxHashMap::default(),
        latest_task_of_pid: FxHashMap::default(),
        flight_entries: Vec::new(),
        failure: None,
        clock: TickEstimate::default(),
        plugs: PlugEvidence::default(),
    };
    let mut devices: Vec<(Device, DeviceCounts)> = Vec::new();
    let (mut has_plugs, mut first_ns, mut last_ns) = (recording.format().records_plugs(), None, 0);
    let mut cpus = 0;
    let begin_ns = lookahead.first().map_or(0, |event| event.time_ns);
    let mut lookahead_events = lookahead.into_iter();
    while let Some(event) = lookahead_events.next().map_or_else(|| recording.next_event(), |event| Ok(Some(event)))? {
        if let Some((from_ns, to_ns)) = window_ns {
            let since_ns = event.time_ns.saturating_sub(begin_ns);
            if since_ns < from_ns {
                continue;
            } else if since_ns > to_ns {
                break;
            }
        }
        first_ns.get_or_insert(event.time_ns);
        last_ns = event.time_ns;
        cpus = cpus.max(event.cpu + 1);
        flights.take(&event, &mut |step, flight| {
            gatherer.step(step, flight, event.time_ns);
            if let Some(intervals) = &mut intervals {
                intervals.take(step, flight, event.time_ns);
            }
        });
        if let Some(served) = &mut served {
            served.take(&event);
        }
        match event.action {
            Action::Plug => gatherer.plug(&event, Kind::Plug),
            Action::Unplug => gatherer.plug(&event, Kind::Unplug),
            Action::UnplugScheduled => gatherer.plug(&event, Kind::UnplugScheduled),
            Action::Queue | Action::Insert | Action::Issue | Action::Complete => count(&mut devices, &event),
            _ => {}
        }
        has_plugs |= event.action == Action::Plug;
    }
    if let Some(error) = gatherer.failure {
        return Err(file_error(error));
    }
    let names = gatherer
        .tasks
        .iter()
        .filter_map(|task| recording.names().get(task.pid).map(|name| (task.pid, name.to_owned())));
    Ok(GatheredRecording {
        names: names.collect(),
        log: gatherer.writer.finish().map_err(file_error)?,
        tasks: gatherer.tasks,
        devices,
        counts: flights.counts(),
        losses: recording.losses().clone(),
        has_only_requests,
        intervals,
        served,
        has_plugs: has_plugs || gatherer.plugs.shows_single_ios(),
        first_ns: first_ns.unwrap_or(0),
        last_ns,
        unfinished: flights.in_flight() as u64,
        cpus: recording.format().records_cpus().then_some(cpus),
        tick: gatherer.clock.coarse(),
    })
}

/// Counts an event of a device. Recordings have few devices, so a linear search is enough.
fn count(devices: &mut Vec<(Device, DeviceCounts)>, event: &Event) {
    const DEVICES_MAX: usize = 1 << 12;
    let index = match devices.iter().position(|(device, _)| *device == event.device) {
        Some(index) => index,
        None if devices.len() < DEVICES_MAX => {
            devices.push((event.device, DeviceCounts::default()));
            devices.len() - 1
        }
        None => return,
    };
    let counts = &mut devices[index].1;
    match event.action {
        Action::Queue => counts.queued += 1,
        Action::Insert => counts.inserted += 1,
        Action::Issue => counts.issued += 1,
        _ => counts.completed += 1,
    }
}
