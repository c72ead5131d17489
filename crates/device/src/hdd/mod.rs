//! A rotating disk: a single head, and the drive's own choice of its next position.
//!
//! Used by: `preset`.
//! Tests: below, `crates/device/src/hdd/` (in its files), `crates/device/tests/exact_disks.rs`.
//!
//! 1. **Geometry** ([`geometry`]): zones, tracks and skew; every sector has an angle, and the rotation of the platters
//!    is simulated.
//! 2. **Mechanics** ([`mechanics`]): a seek curve through the three figures of a data sheet, then the wait for the
//!    sector.
//! 3. **Write cache** ([`write_cache`]): a write is acknowledged when it is in the cache. The drive destages in the
//!    order of shortest positioning time; a full cache makes writes wait, first come, first served.
//! 4. **Command queue**: reads (and writes that must reach the platters) wait in the drive, which chooses the one that it
//!    reaches first, unless one has waited too long, or the head has followed one run of sectors for too long: then the
//!    oldest other one is next. While writes wait for the cache, a read goes before the next destage only if it has waited
//!    for a while, and none does once a write or a flush has waited too long.
//! 5. **Read cache** ([`read_cache`]): segments of recent reads, and read-ahead while the drive is idle.
//! 6. **Pauses**: the drive recalibrates occasionally.
//!
//! A flush ends when everything acknowledged before it is on the platters. A discard takes the time of a cache access.
//!
//! A destage only examines the dirty extents that can be reached first ([`slices`]): a few out of some hundreds.

mod geometry;
mod index;
mod mechanics;
mod read_cache;
mod slices;
mod write_cache;

use std::collections::VecDeque;

use hoistway_blk::bio::{Op, Status};
use hoistway_blk::ground::{Instant, Nanos, SECTOR_BYTES};
use serde::{Deserialize, Serialize};

use crate::model::{Command, Device, Refusal, Schedule, Shape};
use crate::random::{Random, UniformTime, from_ms, from_us};

use geometry::{Geometry, HeadPosition};
use mechanics::Mechanics;
use read_cache::{Lookup, ReadCache};
use write_cache::WriteCache;

/// The parameters of an [`Hdd`]: the `[hdd]` section of a preset.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HddParameters {
    /// Rotational speed of the platters, rotations per minute.
    pub rotations_per_minute: f64,
    /// Number of heads, which equals the tracks per cylinder.
    pub heads: u32,
    /// Number of zones, each with its own media rate.
    pub zones: u32,
    /// Media rate of the outermost zone while a track passes, megabytes (10^6 bytes) per second.
    pub outer_mb_per_s: f64,
    /// Media rate of the innermost zone.
    pub inner_mb_per_s: f64,
    /// Seek to the next cylinder, including settling, ms.
    pub seek_track_to_track_ms: f64,
    /// Mean seek between two random places, ms.
    pub seek_average_ms: f64,
    /// Seek across all cylinders, ms.
    pub seek_full_stroke_ms: f64,
    /// Switch to another track of the same cylinder, ms.
    pub head_switch_ms: f64,
    /// Additional time of a read after a write, ms.
    pub write_to_read_ms: f64,
    /// Time of a command that does not access the platters, excluding its transfer, us.
    pub cache_access_us: f64,
    /// Rate of the link to the host, megabytes (10^6 bytes) per second.
    pub link_mb_per_s: f64,
    /// A command that has waited for this long in the drive goes first, ms.
    pub queue_age_limit_ms: f64,
    /// After the head has followed commands that continue each other for this long, the oldest other one goes next, ms. Without
    /// it, a run continues as long as its next command is queued.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_limit_ms: Option<f64>,
    /// Number of segments of recent reads that are kept; 0 turns the read cache off.
    pub read_segments: u32,
    /// Distance of read-ahead, kilobytes (10^3 bytes).
    pub read_ahead_kb: f64,
    /// The volatile write cache; without it, every write goes to the platters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_cache: Option<WriteCacheParameters>,
    /// Pauses of the drive; without it there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause: Option<PauseParameters>,
}

/// The volatile write cache: the `[hdd.write_cache]` section.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WriteCacheParameters {
    /// Maximum number of dirty extents, among which the drive chooses.
    pub extents: u32,
    /// Maximum dirty data, megabytes (10^6 bytes).
    pub mb: f64,
    /// While writes wait for room, destages have the head for this long after each command from the platters, and a read that
    /// has just arrived waits for as long, ms.
    pub read_waits_ms: f64,
    /// How long writes still count as waiting after the last one got into the cache, ms: a host needs a moment to send the
    /// next. Without it, not at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pressure_lasts_ms: Option<f64>,
}

/// Pauses of the drive: the `[hdd.pause]` section.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PauseParameters {
    /// Mean time between two pauses, s. Each interval is drawn uniformly from half to one and a half of it.
    pub every_s: f64,
    /// Duration of a pause, ms.
    pub lasts_ms: f64,
}

/// The model.
#[derive(Clone, Debug)]
pub struct Hdd {
    shape: Shape,
    mechanics: Mechanics,
    write_to_read: Nanos,
    cache_access: Nanos,
    /// Transfer time of a sector over the link, ns.
    link_sector_ns: f64,
    queue_age_limit: Nanos,
    run: SequentialRun,
    read_cache: ReadCache,
    write_cache: Option<WriteCache>,
    /// See [`WriteCacheParameters::read_waits_ms`].
    read_waits: Nanos,
    /// See [`WriteCacheParameters::pressure_lasts_ms`].
    pressure_lasts: Nanos,
    /// When the head last ended a command, as opposed to a destage.
    last_served_at: Instant,
    /// When a waiting write last got into the cache.
    last_admitted_at: Option<Instant>,
    pause: Option<Pause>,
    /// Commands that access the platters, in order of arrival.
    queued: Vec<Queued>,
    /// Writes that wait for room in the cache, in order of arrival, with their start of waiting.
    waiting: VecDeque<(Command, Instant)>,
    /// Flushes in progress. Writes that bypass the cache do not need them, because they are acknowledged only when they
    /// are durable.
    flushes: VecDeque<Flush>,
    /// The activity of the head; nothing else starts before `busy_until`.
    activity: HeadActivity,
    busy_until: Instant,
    last_was_write: bool,
    random: Random,
}

/// A command belongs to a run if it starts within this many of its lengths after the run's end: the drive may postpone one command
/// while it serves several queues full of others.
const RUN_COMMANDS: u64 = 256;

/// A run of commands that continue each other, such as those of a sequential reader.
#[derive(Clone, Debug)]
struct SequentialRun {
    /// See [`HddParameters::run_limit_ms`].
    limit: Nanos,
    /// When its first command started.
    since: Instant,
    /// Whether there was a second one.
    is_continued: bool,
    /// The sector after its last command.
    next_sector: u64,
}

impl SequentialRun {
    /// A read was served by read-ahead, without a seek.
    fn record_sequential_read(&mut self, end_sector: u64) {
        self.is_continued = true;
        self.next_sector = end_sector;
    }

    /// A command starts that moves the head.
    fn record_command(&mut self, now: Instant, sector: u64, sectors: u64) {
        self.is_continued = self.is_near(sector, sectors);
        if !self.is_continued {
            self.since = now;
        }
        self.next_sector = sector + sectors;
    }

    /// Whether a command belongs to the run. The drive may reorder commands that wait together.
    fn continues_with(&self, command: &Command) -> bool {
        self.is_near(command.sector.0, u64::from(command.sectors))
    }

    fn is_near(&self, sector: u64, sectors: u64) -> bool {
        sector.abs_diff(self.next_sector) <= RUN_COMMANDS * sectors
    }

    fn is_too_long(&self, now: Instant) -> bool {
        self.is_continued && now.since(self.since) >= self.limit
    }
}

/// A command that accesses the platters.
#[derive(Clone, Copy, Debug)]
struct Queued {
    command: Command,
    position: HeadPosition,
    since: Instant,
}

/// A flush in progress.
#[derive(Clone, Copy, Debug)]
struct Flush {
    /// Its number in the cache.
    number: u64,
    tag: u32,
    since: Instant,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum HeadActivity {
    Nothing,
    Destage,
    /// A command or a pause, at whose end nothing has to be done.
    Other,
}

#[derive(Clone, Debug)]
struct Pause {
    between: UniformTime,
    lasts: Nanos,
    next: Instant,
}

/// The only alarm: the head is free.
const HEAD_FREE_ALARM: u32 = 0;

impl Hdd {
    /// An idle disk of this shape with empty caches. `seed` determines all its random numbers.
    #[must_use]
    pub fn new(shape: Shape, parameters: &HddParameters, seed: u64) -> Hdd {
        let mut random = Random::from_seed(seed);
        let geometry = Geometry::new(shape.capacity_sectors, parameters);
        // Capacity of a SATA or SAS queue; more memory is allocated if needed.
        let commands = (usize::from(shape.hw_queues) * shape.queue_depth as usize).min(256);
        let pause = parameters.pause.as_ref().map(|pause| {
            let between = UniformTime::around(from_ms(pause.every_s * 1e3), 50.0);
            Pause { between, lasts: from_ms(pause.lasts_ms), next: Instant::ZERO + between.draw(&mut random) }
        });
        let mechanics = Mechanics::new(geometry, parameters);
        let write_cache =
            parameters.write_cache.as_ref().map(|cache| WriteCache::new(cache.extents, cache.mb * 1e6, &mechanics));
        Hdd {
            mechanics,
            write_to_read: from_ms(parameters.write_to_read_ms),
            cache_access: from_us(parameters.cache_access_us),
            link_sector_ns: SECTOR_BYTES as f64 * 1e3 / parameters.link_mb_per_s,
            queue_age_limit: from_ms(parameters.queue_age_limit_ms),
            run: SequentialRun {
                limit: parameters.run_limit_ms.map_or(Nanos(u64::MAX), from_ms),
                since: Instant::ZERO,
                is_continued: false,
                next_sector: u64::MAX,
            },
            read_cache: ReadCache::new(parameters.read_segments, parameters.read_ahead_kb, shape.capacity_sectors),
            write_cache,
            read_waits: from_ms(parameters.write_cache.as_ref().map_or(0.0, |cache| cache.read_waits_ms)),
            pressure_lasts: from_ms(
                parameters.write_cache.as_ref().and_then(|cache| cache.pressure_lasts_ms).unwrap_or_default(),
            ),
            last_served_at: Instant::ZERO,
            last_admitted_at: None,
            pause,
            queued: Vec::with_capacity(commands),
            waiting: VecDeque::with_capacity(commands),
            flushes: VecDeque::with_capacity(commands),
            activity: HeadActivity::Nothing,
            busy_until: Instant::ZERO,
            last_was_write: false,
            random,
            shape,
        }
    }

    /// When a command that does not access the platters ends.
    #[inline]
    fn cache_access_end(&self, now: Instant, sectors: u32) -> Instant {
        now + self.cache_access + Nanos((f64::from(sectors) * self.link_sector_ns) as u64)
    }

    /// Acknowledges writes while there is room for them.
    fn admit_waiting(&mut self, now: Instant, schedule: &mut Schedule) {
        while let (Some(&(command, since)), Some(cache)) = (self.waiting.front(), &mut self.write_cache) {
            let (sector, sectors) = (command.sector.0, command.sectors);
            if !cache.admit(sector, u64::from(sectors), &self.mechanics) {
                return;
            }
            self.read_cache.invalidate(sector, u64::from(sectors));
            self.waiting.pop_front();
            if since < now {
                self.last_admitted_at = Some(now);
            }
            schedule.complete(self.cache_access_end(now, sectors), command.tag);
        }
    }

    /// Ends flushes whose data is on the platters.
    fn end_flushes(&mut self, now: Instant, schedule: &mut Schedule) {
        while let Some(&Flush { number, tag, .. }) = self.flushes.front() {
            if self.write_cache.as_ref().is_some_and(|cache| !cache.is_flushed(number)) {
                return;
            }
            self.flushes.pop_front();
            schedule.complete(now + self.cache_access, tag);
        }
    }

    /// Decides the next activity of the idle head, and starts it.
    fn make_progress(&mut self, now: Instant, schedule: &mut Schedule) {
        let was_idle = self.activity == HeadActivity::Nothing;
        self.activity = HeadActivity::Nothing;
        let has_dirty = self.write_cache.as_ref().is_some_and(|cache| !cache.is_empty());
        if self.queued.is_empty() && !has_dirty {
            return;
        }
        if let Some(pause) = &mut self.pause
            && now >= pause.next
        {
            pause.next = now + pause.between.draw(&mut self.random);
            // A pause that began in idle time has ended before.
            if !was_idle {
                let until = now + pause.lasts;
                self.begin(HeadActivity::Other, until, schedule);
                return;
            }
        }
        match self.next_command(now, has_dirty) {
            Some(index) => self.serve(now, index, schedule),
            None => self.destage(now, schedule),
        }
    }

    fn begin(&mut self, activity: HeadActivity, until: Instant, schedule: &mut Schedule) {
        self.activity = activity;
        self.busy_until = until;
        schedule.alarms.push((until, HEAD_FREE_ALARM));
    }

    /// The next command, if it goes before the next destage.
    fn next_command(&self, now: Instant, has_dirty: bool) -> Option<usize> {
        let oldest = self.queued.first()?;
        // With room in the cache, only flushes wait for a destage, and writes that are expected.
        let oldest_waiting_since = if has_dirty { self.needs_destage_since() } else { None };
        let was_relieved = self.last_admitted_at.is_some_and(|at| now.since(at) < self.pressure_lasts);
        let writes_press = oldest_waiting_since.is_some() || (has_dirty && was_relieved);
        // The turn of the destages. It begins anew after each command, so that many reads do not keep writes out.
        let has_waited = |since: Instant| now.since(since.max(self.last_served_at)) >= self.read_waits;
        if writes_press && !has_waited(oldest.since) {
            return None;
        }
        // Without such turns, reads would keep writes out forever.
        if oldest_waiting_since.is_some_and(|since| since < oldest.since && now.since(since) >= self.queue_age_limit) {
            return None;
        }
        if now.since(oldest.since) >= self.queue_age_limit {
            return Some(0);
        }
        if self.run.is_too_long(now)
            && let Some(index) = self.queued.iter().position(|queued| !self.run.continues_with(&queued.command))
        {
            return Some(index);
        }
        let is_eligible = |queued: &Queued| !writes_press || has_waited(queued.since);
        let candidates = self.queued.iter().enumerate().filter(|(_, queued)| is_eligible(queued));
        self.mechanics.nearest(now, candidates.map(|(index, queued)| (index, &queued.position)))
    }

    /// Since when a command has been waiting for a destage: the oldest write without room, or flush.
    fn needs_destage_since(&self) -> Option<Instant> {
        let write = self.waiting.front().map(|&(_, since)| since);
        let flush = self.flushes.front().map(|flush| flush.since);
        write.into_iter().chain(flush).min()
    }

    /// The head leaves its read-ahead position.
    fn stop_reading_ahead(&mut self, now: Instant) {
        if let Some(sector) = self.read_cache.stop_read_ahead(now, &self.mechanics.geometry) {
            self.mechanics.head_at = self.mechanics.geometry.position(sector);
        }
    }

    fn serve(&mut self, now: Instant, index: usize, schedule: &mut Schedule) {
        // The order is that of arrival, and there are few commands.
        let Queued { command, position, .. } = self.queued.remove(index);
        let (sector, sectors) = (command.sector.0, u64::from(command.sectors));
        let is_read = command.op == Op::Read;
        if is_read {
            // The data may have been read into the cache meanwhile.
            let done = match self.read_cache.look_up(now, sector, sectors, &self.mechanics.geometry) {
                Lookup::Hit => Some(now),
                Lookup::Coming(at) => Some(at),
                Lookup::Miss => None,
            };
            if let Some(at) = done {
                self.run.record_sequential_read(sector + sectors);
                self.last_served_at = at;
                schedule.complete(self.cache_access_end(at, 0), command.tag);
                self.begin(HeadActivity::Other, at, schedule);
                return;
            }
        }
        self.run.record_command(now, sector, sectors);
        self.stop_reading_ahead(now);
        let turnaround = if is_read && self.last_was_write { self.write_to_read } else { Nanos::ZERO };
        let end = self.mechanics.pass(now + turnaround, sector, &position, sectors);
        if is_read {
            self.read_cache.record_read(end, sector, sectors);
        } else {
            self.read_cache.invalidate(sector, sectors);
        }
        self.last_was_write = !is_read;
        self.last_served_at = end;
        schedule.complete(end + self.cache_access, command.tag);
        self.begin(HeadActivity::Other, end, schedule);
    }

    fn destage(&mut self, now: Instant, schedule: &mut Schedule) {
        self.stop_reading_ahead(now);
        let Some(cache) = &mut self.write_cache else { return };
        let Some((sector, position, sectors)) = cache.destage(now, &self.mechanics) else { return };
        let end = self.mechanics.pass(now, sector, &position, sectors);
        self.last_was_write = true;
        self.begin(HeadActivity::Destage, end, schedule);
    }

    /// Queues a command that accesses the platters.
    fn enqueue(&mut self, now: Instant, command: Command) {
        let position = self.mechanics.geometry.position(command.sector.0);
        self.queued.push(Queued { command, position, since: now });
    }

    /// Whether a cache can serve a read.
    fn is_cached(&self, command: &Command) -> bool {
        let (sector, sectors) = (command.sector.0, u64::from(command.sectors));
        let is_dirty = self.write_cache.as_ref().is_some_and(|cache| cache.holds(sector, sectors));
        is_dirty || self.read_cache.holds(sector, sectors)
    }
}

impl Device for Hdd {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn submit(&mut self, now: Instant, command: Command, schedule: &mut Schedule) -> Result<(), Refusal> {
        if !self.shape.holds(&command) {
            schedule.end(now + self.cache_access, command.tag, Status::IoError);
            return Ok(());
        }
        match command.op {
            Op::Discard => schedule.complete(now + self.cache_access, command.tag),
            Op::Flush => {
                let number = self.write_cache.as_mut().map_or(0, WriteCache::flush);
                self.flushes.push_back(Flush { number, tag: command.tag, since: now });
                self.end_flushes(now, schedule);
            }
            // Nothing to transfer.
            _ if command.sectors == 0 => schedule.complete(now + self.cache_access, command.tag),
            Op::Read if self.is_cached(&command) => {
                schedule.complete(self.cache_access_end(now, command.sectors), command.tag);
            }
            Op::Read => self.enqueue(now, command),
            Op::Write | Op::WriteZeroes if self.write_cache.is_some() && !command.fua => {
                self.waiting.push_back((command, now));
                // The first one that waits has no room until a destage ends.
                if self.waiting.len() == 1 {
                    self.admit_waiting(now, schedule);
                }
            }
            Op::Write | Op::WriteZeroes => self.enqueue(now, command),
        }
        if self.activity == HeadActivity::Nothing {
            self.make_progress(now, schedule);
        }
        Ok(())
    }

    fn wake(&mut self, now: Instant, _alarm: u32, schedule: &mut Schedule) {
        if self.activity == HeadActivity::Nothing || now < self.busy_until {
            return;
        }
        if self.activity == HeadActivity::Destage
            && let Some(cache) = &mut self.write_cache
        {
            cache.finish_destage(&self.mechanics);
            self.end_flushes(now, schedule);
            self.admit_waiting(now, schedule);
        }
        self.make_progress(now, schedule);
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    use hoistway_blk::ground::Sector;

    use super::*;
    use crate::preset::Preset;

    /// Sends writes to distinct sectors, and occasional flushes, at random times. At the end of each flush no write
    /// acknowledged before it may be dirty.
    #[test]
    fn after_a_flush_everything_acknowledged_before_it_is_on_the_platters() {
        let preset = Preset::builtin("hgst-he10-8tb").unwrap();
        let crate::preset::Parameters::Hdd(parameters) = preset.parameters() else { unreachable!() };
        let mut disk = Hdd::new(preset.shape(), parameters, 1);
        let mut random = Random::from_seed(2);
        let mut schedule = Schedule::default();
        // Time, kind (0: submit, 1: alarm, 2: end), tag.
        let mut events = BinaryHeap::from([Reverse((Instant::ZERO, 0, 0_u32))]);
        let (mut acknowledged, mut before_flush) = (Vec::new(), std::collections::BTreeMap::new());
        let mut flushes = 0;
        while let Some(Reverse((now, kind, tag))) = events.pop() {
            let sector_of = |tag: u32| u64::from(tag) * 7_919_123 % 15_000_000_000 / 8 * 8;
            match kind {
                0 if tag < 3000 => {
                    let is_flush = tag % 50 == 49;
                    let (op, sectors) = if is_flush { (Op::Flush, 0) } else { (Op::Write, 8) };
                    if is_flush {
                        before_flush.insert(tag, acknowledged.clone());
                    }
                    let command = Command { tag, queue: 0, op, sector: Sector(sector_of(tag)), sectors, fua: false };
                    disk.submit(now, command, &mut schedule).unwrap();
                    events.push(Reverse((now + Nanos(random.below(20_000_000)), 0, tag + 1)));
                }
                0 => {}
                1 => disk.wake(now, tag, &mut schedule),
                _ => match before_flush.remove(&tag) {
                    Some(writes) => {
                        flushes += 1;
                        let cache = disk.write_cache.as_ref().unwrap();
                        let dirty = writes.iter().filter(|&&tag: &&u32| cache.holds(sector_of(tag), 8)).count();
                        assert_eq!(dirty, 0, "flush {tag}");
                    }
                    None => acknowledged.push(tag),
                },
            }
            events.extend(schedule.alarms.drain(..).map(|(at, alarm)| Reverse((at, 1, alarm))));
            events.extend(schedule.completions.drain(..).map(|end| Reverse((end.at, 2, end.tag))));
        }
        assert_eq!((flushes, before_flush.len()), (60, 0));
    }

    /// End of a read that arrives while a write waits for a cache with room for one extent.
    fn read_beside_a_write_ends_at(pressure_lasts_ms: Option<f64>) -> Instant {
        let preset = Preset::builtin("hgst-he10-8tb").unwrap();
        let crate::preset::Parameters::Hdd(mut parameters) = preset.parameters().clone() else { unreachable!() };
        let cache = WriteCacheParameters { extents: 1, mb: 1.0, read_waits_ms: 100.0, pressure_lasts_ms };
        parameters.write_cache = Some(cache);
        let mut disk = Hdd::new(preset.shape(), &parameters, 1);
        let mut schedule = Schedule::default();
        let ops = [(Op::Write, 1_000_000), (Op::Write, 9_000_000_000), (Op::Read, 5_000_000_000)];
        for (tag, (op, sector)) in (0..).zip(ops) {
            let command = Command { tag, queue: 0, op, sector: Sector(sector), sectors: 8, fua: false };
            disk.submit(Instant(u64::from(tag) * 1000), command, &mut schedule).unwrap();
        }
        loop {
            if let Some(end) = schedule.completions.iter().find(|end| end.tag == 2) {
                return end.at;
            }
            let (at, alarm) = schedule.alarms.remove(0);
            disk.wake(at, alarm, &mut schedule);
        }
    }

    /// Time of the slowest read on a disk that pauses for 300 ms each second: each read starts `idle_ms` after the end of the
    /// previous one, with `at_a_time` in flight.
    fn slowest_read_ms(idle_ms: u64, at_a_time: u32) -> u64 {
        let preset = Preset::builtin("hgst-he10-8tb").unwrap();
        let crate::preset::Parameters::Hdd(mut parameters) = preset.parameters().clone() else { unreachable!() };
        parameters.pause = Some(PauseParameters { every_s: 1.0, lasts_ms: 300.0 });
        let mut disk = Hdd::new(preset.shape(), &parameters, 1);
        let (mut schedule, mut random) = (Schedule::default(), Random::from_seed(1));
        let (mut now, mut slowest) = (Instant::ZERO, Nanos::ZERO);
        for _ in 0..200 {
            now += Nanos::from_millis(idle_ms);
            for tag in 0..at_a_time {
                let sector = Sector(random.below(15_000_000_000));
                let command = Command { tag, queue: 0, op: Op::Read, sector, sectors: 8, fua: false };
                disk.submit(now, command, &mut schedule).unwrap();
            }
            let begin = now;
            while !schedule.alarms.is_empty() {
                let (at, alarm) = schedule.alarms.remove(0);
                disk.wake(at, alarm, &mut schedule);
            }
            now = schedule.completions.drain(..).map(|end| end.at).max().unwrap();
            slowest = slowest.max(now.since(begin));
        }
        slowest.0 / 1_000_000
    }

    #[test]
    fn a_disk_pauses_between_commands_that_follow_each_other_and_unnoticed_while_it_is_idle() {
        assert!((300..450).contains(&slowest_read_ms(1, 4)), "{} ms", slowest_read_ms(1, 4));
        assert!(slowest_read_ms(1000, 1) < 60, "{} ms", slowest_read_ms(1000, 1));
    }

    #[test]
    fn while_the_pressure_of_writes_lasts_a_destage_goes_before_a_young_read() {
        let is_to_be_preempted = read_beside_a_write_ends_at(Some(1.0));
        assert!(read_beside_a_write_ends_at(None) < is_to_be_preempted);
        assert_eq!(read_beside_a_write_ends_at(Some(0.0)), read_beside_a_write_ends_at(None));
    }
}
