//! Infers the program from the log of a recording.
//!
//! Used by: `describe`, `replay`; crates `experiment`, `hoistway`, `evidence`.
//! Tests: `crates/program/tests/program/tables.rs`, `crates/program/tests/program/recordings.rs`.

use std::io;

use hoistway_blk::bio::IoPriority;
use hoistway_blk::ground::Nanos;
use hoistway_load::When;
use hoistway_trace::block::{Counts, Device, Flags, Intervals, Losses, ReadError, Recording};
use rustc_hash::FxHashMap;

use crate::activity::Activity;
use crate::alternatives::{self, Alternative, Change};
use crate::assign::{NewStream, StreamAssignment, assign};
use crate::class::{Class, Evidence};
use crate::gather::{self, GatheredRecording};
use crate::histogram::Histogram;
use crate::log::{Entry, EntryLog, Kind as EntryKind};
use crate::roles;
use crate::served::{ServedRequest, ServedRequests};
use crate::steps::{Plug, Reading, Step, Steps, Store, Writer};
use crate::stream::{Kind, Latency, Stream};
use crate::ticks::CoarseClock;
use crate::timeline::{self, Slice, Timeline};
use crate::track::{self, StreamCursor};
use crate::waits::BurstOverlaps;

/// Maximum size of a device in Linux, whose sizes in bytes are signed 64-bit numbers.
const END_BYTES_MAX: u64 = i64::MAX as u64;
/// A stream with fewer I/Os that waited for completions does not show how soon its machine reacts.
const REACTIONS_MIN: u64 = 50;
/// A task that submits again within this time after a completion has not slept in between.
const RUNNING_NS: u64 = 50_000;
/// The expected part of the error if a recording has several devices.
pub const NAME_DEVICE: &str = "one device: name it";
/// How the error begins if a recording lacks the requested device.
pub const NO_DEVICE: &str = "has no I/Os of the device";

/// A device of a recording, as a user names it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RequestedDevice {
    /// By its numbers.
    Number(Device),
    /// By the recording's own name of it, without `/dev/`.
    Name(String),
}

impl RequestedDevice {
    /// Parses numbers such as `8,0` or `8:0`; any other text is a name.
    #[must_use]
    pub fn parse(text: &str) -> RequestedDevice {
        let name = || RequestedDevice::Name(text.strip_prefix("/dev/").unwrap_or(text).to_owned());
        Device::parse(text).map_or_else(name, RequestedDevice::Number)
    }
}

/// Options of the inference.
#[derive(Clone, Debug)]
pub struct Options {
    /// The device; needed if the recording has several.
    pub device: Option<RequestedDevice>,
    /// Streams with fewer I/Os go into `others` (RP3).
    pub ios_min: u64,
    /// Whether to measure the times between events: [`Program::intervals`].
    pub intervals: bool,
    /// Whether to keep what the device served: [`Program::served`].
    pub served: bool,
    /// The part of the recording to use, start and end in nanoseconds since its first event; `None` for all of it.
    pub window_ns: Option<(u64, u64)>,
    /// Maximum I/Os: a recording with more is reduced to its busiest stretch of this many. `None` for no limit.
    pub ios_max: Option<usize>,
}

impl Default for Options {
    fn default() -> Options {
        Options { device: None, ios_min: 20, intervals: false, served: false, window_ns: None, ios_max: None }
    }
}

/// The busiest part of a recording; times are since its first event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stretch {
    /// Its start, in nanoseconds.
    pub from_ns: u64,
    /// Its end, in nanoseconds.
    pub to_ns: u64,
    /// I/Os of the whole recording.
    pub all_ios: u64,
    /// Duration of the whole recording, in nanoseconds.
    pub all_ns: u64,
}

/// The program behind a recording: streams of I/Os, and what they wait for.
#[derive(Debug)]
pub struct Program {
    /// The device of its I/Os.
    pub device: Device,
    /// Other devices of the recording, which are ignored.
    pub others: Vec<Device>,
    /// Time from the first event to the last, in nanoseconds.
    pub span_ns: u64,
    /// The busiest part that was used, if the recording has more than the maximum I/Os.
    pub stretch: Option<Stretch>,
    /// The streams, those with the most I/Os first, `others` last.
    pub streams: Vec<Stream>,
    /// Other programs that the recording also allows.
    pub alternatives: Vec<Alternative>,
    /// Counts of the recording, of all devices.
    pub counts: Counts,
    /// What the recording lacks.
    pub losses: Losses,
    /// I/Os without a recorded completion: they are replayed, but not measured (RP4).
    pub unfinished: u64,
    /// Whether only requests were recorded, so that arrivals include the effect of the recorded scheduler (RP29).
    pub has_only_requests: bool,
    /// Whether completions were recorded (otherwise RP30).
    pub has_completions: bool,
    /// The active scheduler, as far as the recording shows it: `none` without inserts, `bfq` with messages of bfq.
    pub recorded_under: Option<&'static str>,
    /// Whether most requests were inserted into a scheduler, so it was not `none`.
    pub was_scheduled: bool,
    /// CPUs of the recorded machine that events show; `None` if they name none.
    pub cpus: Option<u32>,
    /// How soon after a completion a task submitted what waited for it, in nanoseconds: a tenth of those that it did not sleep
    /// for were sooner. `None` if no task waits so.
    pub reaction_ns: Option<u64>,
    /// The recording's clock, if it is coarse (RP32).
    pub tick: Option<CoarseClock>,
    /// The end of the highest I/O, in bytes.
    pub end_bytes: u64,
    /// The I/Os in slices of equal length.
    pub slices: Vec<Slice>,
    /// I/Os by size: bytes, rounded up to a power of two, and the number of I/Os.
    pub sizes: Vec<(u64, u64)>,
    /// Times between events of all devices, if requested.
    pub intervals: Option<Intervals>,
    /// The first requests that the device served, if requested.
    pub served: Vec<ServedRequest>,
    names: FxHashMap<u32, String>,
    store: Store,
}

impl Program {
    /// Reads a recording to its end and infers the program.
    ///
    /// # Errors
    /// If the recording is damaged, has no I/Os, or has several devices and none was selected.
    pub fn infer(recording: &mut Recording, file: &str, options: &Options) -> Result<Program, ReadError> {
        let intervals = options.intervals.then(Intervals::default);
        let mut gathered = gather::gather(
            recording,
            file,
            intervals,
            options.served.then(ServedRequests::default),
            options.window_ns,
        )?;
        let device = choose_device(&gathered, recording, file, options)?;
        let file_error = |error: io::Error| {
            ReadError::file(file, format!("cannot use the temporary file: {error}"), "enough space for temporary files")
        };
        let (begin_ns, all_ns) = (gathered.first_ns, gathered.last_ns - gathered.first_ns);
        let busiest =
            options.ios_max.map(|ios| gathered.keep_busiest(device, ios)).transpose().map_err(file_error)?.flatten();
        let assignment = assign(&gathered, device, options.ios_min);
        let mut findings = StreamFindings::new(&gathered, &assignment);
        let log = &mut gathered.log;
        let span_ns = gathered.last_ns - gathered.first_ns;
        let (slices, sizes) = findings.first_pass(log, &assignment, span_ns).map_err(file_error)?;
        if findings.end_bytes > END_BYTES_MAX {
            let message = format!("an I/O of the device {device} ends at byte {}", findings.end_bytes);
            return Err(ReadError::file(
                file,
                message,
                format!("at most {END_BYTES_MAX}, the end of the largest device"),
            ));
        }
        let (activities, jobs) = (for_second_pass(&findings.activities), for_second_pass(&findings.jobs));
        (findings.activities, findings.jobs) = (activities, jobs);
        let overlaps = findings.second_pass(log, &assignment).map_err(file_error)?;
        let pools = findings.classify(&assignment);
        let (waits, untested) = overlaps.waits(&findings.streams);
        findings.streams.iter_mut().zip(waits).for_each(|(stream, waits)| stream.waits = waits);
        let alternatives = alternatives::find(&findings.streams, &untested, &pools);
        for change in alternatives.iter().flat_map(|alternative| &alternative.changes) {
            if let Change::Waits { stream, on } = *change {
                findings.streams[stream].untested.push(on);
            }
        }
        roles::name_by_role(&mut findings.streams);
        // I/Os within one tick of a coarse clock were not necessarily submitted together.
        let has_plugs = gathered.has_plugs || gathered.tick.is_some();
        let store = findings.write_steps(log, &assignment, &gathered.tasks, has_plugs).map_err(file_error)?;
        let device_counts = gathered
            .devices
            .iter()
            .find(|(other, _)| *other == device)
            .map(|(_, device_counts)| *device_counts)
            .unwrap_or_default();
        let recorded_under = match device_counts.inserted {
            0 if device_counts.issued > 0 && !gathered.has_only_requests => Some("none"),
            _ => (gathered.losses.bfq_messages > 0).then_some("bfq"),
        };
        Ok(Program {
            device,
            others: gathered.devices.iter().map(|(other, _)| *other).filter(|other| *other != device).collect(),
            span_ns,
            stretch: busiest.map(|busiest| Stretch {
                from_ns: busiest.from_ns - begin_ns,
                to_ns: busiest.to_ns - begin_ns,
                all_ios: busiest.all_ios,
                all_ns,
            }),
            streams: findings.streams,
            alternatives,
            counts: gathered.counts,
            losses: gathered.losses,
            unfinished: gathered.unfinished,
            has_only_requests: gathered.has_only_requests,
            has_completions: device_counts.completed > 0,
            recorded_under,
            was_scheduled: 2 * device_counts.inserted > device_counts.issued,
            cpus: gathered.cpus,
            reaction_ns: findings.reaction_ns,
            tick: gathered.tick,
            end_bytes: findings.end_bytes,
            slices,
            sizes,
            intervals: gathered.intervals,
            served: gathered.served.map_or_else(Vec::new, |served| served.of(device)),
            names: gathered.names,
            store,
        })
    }

    /// The name of a task; `None` if it was not recorded.
    #[must_use]
    pub fn task_name(&self, pid: u32) -> Option<&str> {
        self.names.get(&pid).map(String::as_str)
    }

    /// The steps of a stream, by its index in [`Program::streams`].
    #[must_use]
    pub fn steps(&self, stream: usize) -> Steps {
        self.store.steps(stream, self.streams[stream].reading())
    }

    /// Whether the recorded kernel opened plugs for single I/Os.
    pub(crate) fn has_lone_plugs(&self) -> bool {
        self.store.has_lone_plugs
    }

    pub(crate) fn steps_as(&self, stream: usize, reading: Reading) -> Steps {
        self.store.steps(stream, reading)
    }
}

/// Selects the device: the requested one, or the only one with requests (RP2).
fn choose_device(
    gathered: &GatheredRecording,
    recording: &Recording,
    file: &str,
    options: &Options,
) -> Result<Device, ReadError> {
    let list_devices = |devices: &[Device]| {
        const SHOWN: usize = 8;
        let name = |device: &Device| {
            recording.disk_name(*device).map_or_else(|| device.to_string(), |name| format!("{name} ({device})"))
        };
        let names: Vec<String> = devices.iter().take(SHOWN).map(name).collect();
        let more = devices.len().saturating_sub(SHOWN);
        names.join(" and ") + &if more > 0 { format!(" and {more} more") } else { String::new() }
    };
    let with_ios: Vec<Device> = gathered
        .devices
        .iter()
        .map(|(device, _)| *device)
        .filter(|device| gathered.tasks.iter().any(|task| task.device == *device && task.ios > 0))
        .collect();
    if let Some(requested) = &options.device {
        let is_requested = |device: &Device| match requested {
            RequestedDevice::Number(number) => device == number,
            RequestedDevice::Name(name) => recording.disk_name(*device).is_some_and(|known| known == *name),
        };
        if let Some(device) = with_ios.iter().copied().find(is_requested) {
            return Ok(device);
        }
        let requested = match requested {
            RequestedDevice::Number(number) => number.to_string(),
            RequestedDevice::Name(name) => name.clone(),
        };
        let message = format!("{NO_DEVICE} {requested}");
        return Err(ReadError::file(file, message, format!("one of {}", list_devices(&with_ios))));
    }
    let has_requests = |device: &&Device| {
        gathered.devices.iter().any(|(other, counts)| other == *device && counts.issued > 0 && counts.completed > 0)
    };
    let with_requests: Vec<Device> = with_ios.iter().filter(has_requests).copied().collect();
    match (&with_requests[..], &with_ios[..]) {
        ([device], _) | ([], [device]) => Ok(*device),
        ([], []) => Err(ReadError::file(file, "the recording has no I/Os", "at least one")),
        (several, all) => {
            let several = if several.is_empty() { all } else { several };
            let message = format!("has I/Os of several devices: {}", list_devices(several));
            Err(ReadError::file(file, message, NAME_DEVICE))
        }
    }
}

fn for_second_pass(activities: &[Activity]) -> Vec<Activity> {
    activities.iter().map(Activity::for_second_pass).collect()
}

/// I/Os by their size.
type Sizes = Vec<(u64, u64)>;

/// Findings of the passes over the log.
struct StreamFindings {
    streams: Vec<Stream>,
    activities: Vec<Activity>,
    jobs: Vec<Activity>,
    read_latency: Vec<Histogram>,
    discard_latency: Vec<Histogram>,
    write_latency: Vec<Histogram>,
    end_sectors: Vec<u64>,
    end_bytes: u64,
    reaction_ns: Option<u64>,
    start_ns: u64,
}

impl StreamFindings {
    fn new(gathered: &GatheredRecording, assignment: &StreamAssignment) -> StreamFindings {
        let span_ns = gathered.last_ns - gathered.first_ns;
        let mut streams: Vec<Stream> = assignment.streams.iter().map(|stream| empty_stream(stream, span_ns)).collect();
        for (task, stream) in gathered.tasks.iter().zip(&assignment.stream_of_task) {
            // Most tasks of a stream are in one cgroup, so take the first known one.
            if let Some(stream) = stream.map(|stream| &mut streams[stream]).filter(|_| task.cgroup != 0) {
                stream.cgroup.get_or_insert(task.cgroup);
            }
        }
        let count = streams.len();
        StreamFindings {
            activities: vec![Activity::default(); count],
            jobs: vec![Activity::default(); assignment.streams_of_job.len()],
            read_latency: vec![Histogram::default(); count],
            discard_latency: vec![Histogram::default(); count],
            write_latency: vec![Histogram::default(); count],
            end_sectors: vec![u64::MAX; count],
            streams,
            end_bytes: 0,
            reaction_ns: None,
            start_ns: gathered.first_ns,
        }
    }

    /// The first pass: counts, sizes, latencies and activity.
    fn first_pass(
        &mut self,
        log: &mut EntryLog,
        assignment: &StreamAssignment,
        span_ns: u64,
    ) -> io::Result<(Vec<Slice>, Sizes)> {
        let mut timeline = Timeline::new(span_ns);
        log.for_each(|entry| {
            if let Some(stream) = assignment.stream_of_task[entry.task as usize] {
                match entry.kind {
                    EntryKind::Queued => timeline.queued(entry.time_ns - self.start_ns, entry.bytes),
                    EntryKind::Completed | EntryKind::GivenUp => timeline.ended(entry.time_ns - self.start_ns),
                    _ => {}
                }
                self.count(stream, entry);
                update_activity(&mut self.activities[stream], entry);
                update_activity(&mut self.jobs[assignment.job_of_stream[stream]], entry);
            }
            Ok(())
        })?;
        for (index, stream) in self.streams.iter_mut().enumerate() {
            stream.read_latency = latency(&self.read_latency[index]);
            stream.discard_latency = latency(&self.discard_latency[index]);
            stream.write_latency = latency(&self.write_latency[index]);
        }
        Ok(timeline.finish(span_ns))
    }

    fn count(&mut self, index: usize, entry: &Entry) {
        let (stream, now_ns) = (&mut self.streams[index], entry.time_ns - self.start_ns);
        let flags = Flags::from_category(entry.flags);
        match entry.kind {
            EntryKind::Queued => {
                if stream.ios == 0 {
                    stream.first_ns = now_ns;
                }
                stream.ios += 1;
                stream.last_ns = now_ns;
                let end = entry.value.saturating_add(u64::from(entry.bytes / 512));
                self.end_bytes = self.end_bytes.max(end.saturating_mul(512));
                stream.sequential += u64::from(self.end_sectors[index] == entry.value && entry.bytes > 0);
                self.end_sectors[index] = end;
                let direction_counts = match flags {
                    flags if flags.has(Flags::DISCARD) => &mut stream.discards,
                    _ if entry.bytes == 0 => {
                        stream.flushes += 1;
                        return;
                    }
                    flags if flags.has(Flags::WRITE) => {
                        stream.sync_writes += u64::from(flags.has(Flags::SYNC));
                        stream.durable_writes += u64::from(flags.has(Flags::FUA) || flags.has(Flags::FLUSH));
                        &mut stream.writes
                    }
                    _ => &mut stream.reads,
                };
                direction_counts.0 += 1;
                direction_counts.1 += u64::from(entry.bytes);
            }
            EntryKind::Completed => {
                stream.last_ns = now_ns;
                let is_read = flags.has(Flags::READ);
                let latencies = match flags {
                    _ if is_read => &mut self.read_latency,
                    flags if flags.has(Flags::DISCARD) => &mut self.discard_latency,
                    _ => &mut self.write_latency,
                };
                latencies[index].add(entry.value);
                timeline::add_completion(&mut stream.over_time, now_ns, is_read, entry.value);
            }
            _ => {}
        }
    }

    /// The second pass: how batches follow completions, and which bursts overlap with other streams.
    fn second_pass(&mut self, log: &mut EntryLog, assignment: &StreamAssignment) -> io::Result<BurstOverlaps> {
        let mut overlaps = BurstOverlaps::new(&self.streams);
        log.for_each(|entry| {
            let Some(stream) = assignment.stream_of_task[entry.task as usize] else { return Ok(()) };
            let now_ns = entry.time_ns - self.start_ns;
            overlaps.reached(now_ns, &self.activities);
            if entry.kind == EntryKind::Queued && !self.activities[stream].is_busy() {
                overlaps.add_burst(stream, now_ns, &self.activities);
            }
            let relative = Entry { time_ns: now_ns, ..*entry };
            update_activity(&mut self.activities[stream], &relative);
            update_activity(&mut self.jobs[assignment.job_of_stream[stream]], &relative);
            Ok(())
        })?;
        Ok(overlaps)
    }

    /// Classifies all streams. Returns those that their pool decided, with the pool's batches.
    fn classify(&mut self, assignment: &StreamAssignment) -> Vec<(usize, u64)> {
        let jobs: Vec<Evidence> = self.jobs.iter().map(Activity::evidence).collect();
        let mut pools = Vec::new();
        for (index, stream) in self.streams.iter_mut().enumerate() {
            stream.evidence = self.activities[index].evidence();
            stream.class = stream.evidence.class();
            stream.hidden_depth = stream.evidence.hidden_depth();
            if stream.kind == Kind::WriteBack {
                // Its bursts begin at recorded times (RP16), and within a burst it waits.
                stream.class = Class::Closed;
                continue;
            }
            let job = assignment.job_of_stream[index];
            if assignment.streams_of_job[job] > 1 && jobs[job].class() == Class::Open && stream.class == Class::Closed {
                stream.pool = Some(Class::Open);
                stream.class = Class::Open;
                pools.push((index, jobs[job].batches));
            }
        }
        pools
    }

    /// The last pass: writes each I/O with what it waits for.
    fn write_steps(
        &mut self,
        log: &mut EntryLog,
        assignment: &StreamAssignment,
        tasks: &[gather::Task],
        has_plugs: bool,
    ) -> io::Result<Store> {
        let sizes = self.streams.iter().map(|stream| (stream.ios, stream.may_wait_for().count()));
        let mut writer = Writer::new(sizes)?;
        let mut cursors: Vec<StreamCursor> = self.streams.iter().map(|_| StreamCursor::default()).collect();
        log.for_each(|entry| {
            let Some(stream) = assignment.stream_of_task[entry.task as usize] else { return Ok(()) };
            let now_ns = entry.time_ns - self.start_ns;
            if entry.kind != EntryKind::Queued {
                cursors[stream].add_event(entry.kind, now_ns);
                return Ok(());
            }
            let causes = track::causes(&self.streams[stream], stream, &mut cursors, now_ns);
            let when = causes.when(Nanos(now_ns), &self.streams[stream].reading());
            let cursor = &mut cursors[stream];
            if let When::AfterCompletions { gap, .. } = when {
                cursor.thinks.add(gap.0);
            }
            let step = Step {
                at: Nanos(now_ns),
                when,
                sector: entry.value,
                bytes: entry.bytes,
                flags: Flags::from_category(entry.flags),
                priority: match IoPriority(entry.priority) {
                    IoPriority::UNSET => tasks[entry.task as usize].priority,
                    priority => priority,
                },
                plug: if cursor.is_plugged { Plug::Within } else { Plug::None },
            };
            if let Some((previous, causes)) = cursor.queued(step, causes, has_plugs) {
                writer.add(stream, &previous, &causes)?;
            }
            Ok(())
        })?;
        for (stream, cursor) in cursors.iter_mut().enumerate() {
            if let Some((last, causes)) = cursor.take_last() {
                writer.add(stream, &last, &causes)?;
            }
            let thinks = &cursor.thinks;
            self.streams[stream].think_ns = (thinks.count() > 0).then(|| thinks.quantile_ns(0.5));
            if thinks.count() >= REACTIONS_MIN {
                let reaction_ns = Some(thinks.quantile_ns(0.1)).filter(|&reaction_ns| reaction_ns <= RUNNING_NS);
                self.reaction_ns = [self.reaction_ns, reaction_ns].into_iter().flatten().min();
            }
        }
        writer.finish()
    }
}

fn update_activity(activity: &mut Activity, entry: &Entry) {
    match entry.kind {
        EntryKind::Queued => activity.queued(entry.time_ns, entry.value, entry.bytes),
        EntryKind::Submitted => activity.submitted(entry.time_ns, entry.value),
        EntryKind::Completed => activity.completed(entry.time_ns, entry.value),
        EntryKind::GivenUp => activity.ended(entry.time_ns),
        _ => {}
    }
}

fn latency(histogram: &Histogram) -> Latency {
    Latency { ios: histogram.count(), mean_ns: histogram.mean_ns(), p99_ns: histogram.quantile_ns(0.99) }
}

fn empty_stream(stream: &NewStream, span_ns: u64) -> Stream {
    Stream {
        pid: stream.pid,
        tasks: stream.tasks,
        kind: stream.kind,
        over_time: timeline::slices_of_stream(span_ns),
        ..Stream::of_task(stream.name.clone())
    }
}
