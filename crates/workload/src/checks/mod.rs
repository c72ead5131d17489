//! Whether the options of a job fit together, and what they come to.

mod latency;
mod notices;
mod strided;

use std::sync::Arc;

use hoistway_blk::{IoPriority, Nanos, PriorityClass};

use crate::JobFileError;
use crate::generator::{Distribution, PriorityRule, Sizes};
use crate::jobfile::{Document, Place, Section};
use crate::options::OptionIndex;
use crate::plan::{JobPlan, Origin};
use crate::settings::{Direction, Settings, Share};
use crate::values::Amount;
use crate::workload::{Engine, Flow, Rate, RateLimits, SteadyState, Think};

pub(crate) use latency::latency_target;
pub(crate) use latency::max_latency;
pub(crate) use notices::notices;

/// A job's options, and where they come from.
pub(crate) struct JobContext<'a> {
    pub(crate) document: &'a Document,
    pub(crate) index: &'a OptionIndex,
    pub(crate) section: &'a Section,
    pub(crate) settings: &'a Settings,
}

impl JobContext<'_> {
    /// The line that gave `option` its value, if one did.
    fn given(&self, option: &str) -> Option<Place> {
        let (id, _) = self.index.find(option)?;
        let entry = (self.settings.given[id] as usize).checked_sub(1)?;
        Some(self.document.entries.get(entry)?.place)
    }

    /// An error in the value of `option`, at the line that gave it, or else at the head of the section.
    pub(crate) fn error(&self, option: &str, message: &str) -> JobFileError {
        let place = self.given(option).unwrap_or(self.section.place);
        self.document.error_at(place, Some(self.section), message).on_option(option)
    }

    /// File and line of `option`, or of the section.
    fn origin(&self, option: &str) -> (Arc<str>, u32) {
        let place = self.given(option).unwrap_or(self.section.place);
        let file = self.document.files.get(usize::from(place.file)).unwrap_or(&self.document.files[0]);
        (Arc::clone(file), place.line)
    }
}

/// Checks the job, and says which I/Os it asks for.
pub(crate) fn plan(context: &JobContext<'_>) -> Result<JobPlan, JobFileError> {
    let s = context.settings;
    rates(context)?;
    let sizes = [sizes(context, 0)?, sizes(context, 1)?, sizes(context, 2)?];
    let mut align = [0, 1, 2].map(|lane| u64::from(sizes[lane].min()));
    for (align, given) in align.iter_mut().zip(s.block_align.0) {
        *align = given.unwrap_or(*align);
    }
    for &lane in s.direction.lanes() {
        whole_sectors(context, "ba", align[lane])?;
        if align[lane] == 0 || align[lane] > REGION_MAX {
            return Err(context.error("ba", "the alignment is out of range").hinting("expected 512 bytes to 1 EiB"));
        }
    }
    let smallest = s.direction.lanes().iter().map(|&lane| u64::from(sizes[lane].min())).min().unwrap_or(0);
    volume(context, smallest)?;
    files(context)?;
    // As in fio, a skewed distribution or an alignment of its own switches the map off.
    let random_map =
        !s.no_random_map && s.distribution == Distribution::Uniform && s.block_align.0.iter().all(Option::is_none);
    Ok(JobPlan {
        origin: Origin {
            section: context.section.name.clone(),
            size: context.origin("size"),
            offset: context.origin("offset"),
            random_distribution: context.origin("random_distribution"),
        },
        strided: strided::strided(context, &align)?,
        direction: s.direction,
        random: s.random,
        modifier: s.modifier,
        sequencer: s.sequencer,
        read_percent: s.read_percent,
        sizes,
        align,
        percent_random: s.percent_random.0,
        random_map,
        random_generator: s.random_generator,
        distribution: s.distribution.clone(),
        rand_seed: s.rand_seed,
        rand_repeat: s.rand_repeat,
        size: s.size,
        io_size: s.io_size,
        offset: s.offset,
        offset_increment: s.offset_increment,
        file_bytes: s.filesize,
        // As in fio, names are more than nrfiles.
        files: if s.filenames.is_empty() { s.nrfiles.unsigned_abs() } else { s.filenames.len() as u64 },
        open_files: s.openfiles.unsigned_abs(),
        service: s.service,
        priorities: priorities(context)?,
        number_ios: s.number_ios.unsigned_abs(),
        loops: s.loops.unsigned_abs(),
        time_based: s.time_based && s.runtime > Nanos::ZERO,
        verify_backlog: verify_backlog(context, random_map)?,
        sync_every: [s.fsync as u32, s.fdatasync as u32],
    })
}

/// Writes after which what they wrote is read again, if it is at all.
fn verify_backlog(context: &JobContext<'_>, random_map: bool) -> Result<Option<u64>, JobFileError> {
    let s = context.settings;
    if !s.verify || !s.do_verify || matches!(s.direction, Direction::Read | Direction::Trim) {
        return Ok(None);
    }
    let backlog = s.verify_backlog.unsigned_abs();
    let is_partial = s.verify_backlog_batch != 0 && s.verify_backlog_batch != s.verify_backlog;
    if backlog > 0 && is_partial {
        let error = context.error("verify_backlog_batch", "a part of the backlog at a time is not supported");
        return Err(error.hinting("leave it out: the whole backlog is read"));
    }
    if s.random && !random_map {
        // fio then reads each block once, sorted by offset, for which it remembers all of them.
        let error = context.error("verify", "reading the blocks of a job without random map again is not supported");
        return Err(error.hinting("set do_verify=0 to leave out the reads, or use the random map"));
    }
    Ok(Some(if backlog == 0 { u64::MAX } else { backlog }))
}

fn rates(context: &JobContext<'_>) -> Result<(), JobFileError> {
    let s = context.settings;
    let limited = |limits: &[u64; 3]| limits.iter().any(|&limit| limit > 0);
    if limited(&s.rate_bytes.0) && limited(&s.rate_ios.0) {
        return Err(context.error("rate_iops", "rate and rate_iops exclude each other").hinting("use one of them"));
    }
    if s.think_spin > s.think_time {
        return Err(context.error("thinktime_spin", "the spin is longer than thinktime"));
    }
    Ok(())
}

fn files(context: &JobContext<'_>) -> Result<(), JobFileError> {
    let s = context.settings;
    let Some((least, most)) = s.filesize else { return Ok(()) };
    whole_sectors(context, "filesize", least)?;
    whole_sectors(context, "filesize", most)?;
    if !s.filenames.is_empty() && least != most {
        let error = context.error("filesize", "a range of sizes, but the files have names");
        return Err(error.hinting("give one size, or leave filename out"));
    }
    Ok(())
}

/// The priorities of single I/Os, if there are any.
fn priorities(context: &JobContext<'_>) -> Result<Option<Arc<[PriorityRule]>>, JobFileError> {
    let s = context.settings;
    let c = &s.command_prio;
    let is_split = c.split.0.iter().any(|split| !split.is_empty());
    if !is_split && c.percent.0 == [0; 3] {
        return Ok(None);
    }
    let option = if is_split { "cmdprio_bssplit" } else { "cmdprio_percentage" };
    if is_split && c.percent.0 != [0; 3] {
        let error = context.error(option, "cmdprio_bssplit and cmdprio_percentage exclude each other");
        return Err(error.hinting("use one of them"));
    }
    if !matches!(s.engine, Engine::Libaio | Engine::IoUring) {
        let message = format!("ioengine={} cannot give single I/Os a priority", s.engine.name());
        return Err(context.error(option, &message).hinting("use libaio or io_uring, or prio for the whole job"));
    }
    let mut rules = Vec::new();
    for lane in 0..2 {
        let common = || priority(c.class.0[lane], c.level.0[lane]);
        let mut rule = |bytes, percent, priority| {
            if percent > 0 {
                rules.push(PriorityRule { lane, bytes, percent, priority });
            }
        };
        rule(0, c.percent.0[lane], common());
        for share in &c.split.0[lane] {
            let own = share.prio.map_or_else(common, |(class, level)| priority(class, level));
            rule(share.bytes, share.percent, own);
        }
    }
    Ok(if rules.is_empty() { None } else { Some(rules.into()) })
}

fn priority(class: u8, level: u8) -> IoPriority {
    let class = match class {
        1 => PriorityClass::RealTime,
        3 => PriorityClass::Idle,
        _ => PriorityClass::BestEffort,
    };
    IoPriority::new(class, level)
}

/// Larger than any device: below it, sums of sizes cannot overflow.
const REGION_MAX: u64 = 1 << 60;
/// The largest block that is accepted.
const BLOCK_MAX: u64 = 1 << 30;
/// As in fio.
const SHARES_MAX: usize = 64;

fn whole_sectors(context: &JobContext<'_>, option: &str, bytes: u64) -> Result<(), JobFileError> {
    if bytes.is_multiple_of(512) {
        return Ok(());
    }
    let message = format!("{bytes} bytes are not a multiple of a sector of 512");
    let why =
        if context.settings.direct { "direct I/O needs whole sectors" } else { "only whole sectors are modelled" };
    Err(context.error(option, &message).hinting(why))
}

/// The block sizes of direction `lane`: those of bssplit, or else of bsrange, or else bs, as in fio.
fn sizes(context: &JobContext<'_>, lane: usize) -> Result<Sizes, JobFileError> {
    let s = context.settings;
    let used = s.direction.lanes().contains(&lane);
    let check = |option: &str, bytes: u64| -> Result<u32, JobFileError> {
        if used {
            whole_sectors(context, option, bytes)?;
        }
        if bytes == 0 || bytes > BLOCK_MAX {
            let error = context.error(option, &format!("a block of {bytes} bytes is out of range"));
            return Err(error.hinting("expected 512 bytes to 1 GiB"));
        }
        Ok(bytes as u32)
    };
    if !s.bs_split.0[lane].is_empty() {
        return split(context, &s.bs_split.0[lane], check);
    }
    if let Some((low, high)) = s.bs_range.0[lane] {
        let (min, max) = (check("bsrange", low)?, check("bsrange", high)?);
        let step = if s.bs_unaligned { 512 } else { min };
        return Ok(if min == max { Sizes::Fixed(min) } else { Sizes::Range { min, max, step } });
    }
    Ok(Sizes::Fixed(check("bs", s.bs.0[lane])?))
}

fn split(
    context: &JobContext<'_>,
    shares: &[Share],
    check: impl Fn(&str, u64) -> Result<u32, JobFileError>,
) -> Result<Sizes, JobFileError> {
    if shares.len() > SHARES_MAX {
        return Err(context.error("bssplit", &format!("more than {SHARES_MAX} sizes")));
    }
    let given: u32 = shares.iter().filter_map(|share| share.percent).map(u32::from).sum();
    let open = shares.iter().filter(|share| share.percent.is_none()).count() as f64;
    if given > 100 || (open == 0.0 && given < 100) {
        let message = format!("the percentages add up to {given}, not to 100");
        return Err(context.error("bssplit", &message).hinting("leave out a percentage to have it filled in"));
    }
    let mut ends = Vec::with_capacity(shares.len());
    let mut total = 0.0;
    for share in shares {
        let bytes = check("bssplit", share.bytes)?;
        let percent = share.percent.map_or_else(|| f64::from(100 - given) / open, f64::from);
        total += percent;
        if percent > 0.0 {
            ends.push(((total / 100.0 * (1u64 << 32) as f64) as u64, bytes));
        }
    }
    if let Some(last) = ends.last_mut() {
        last.0 = 1 << 32;
    }
    Ok(match ends.as_slice() {
        [(_, bytes)] => Sizes::Fixed(*bytes),
        _ => Sizes::Split(ends.into()),
    })
}

fn volume(context: &JobContext<'_>, smallest: u64) -> Result<(), JobFileError> {
    let s = context.settings;
    let amounts = [
        ("size", s.size),
        ("io_size", s.io_size),
        ("offset", Some(s.offset)),
        ("offset_increment", Some(s.offset_increment)),
    ];
    for (option, amount) in amounts {
        match amount {
            Some(Amount::Bytes(bytes)) if bytes > REGION_MAX => {
                return Err(context.error(option, "larger than any device"));
            }
            Some(Amount::Percent(0)) if option.ends_with("size") => {
                return Err(context.error(option, "nothing is left to do"));
            }
            _ => {}
        }
    }
    let files = if s.filenames.is_empty() { s.nrfiles.unsigned_abs() } else { s.filenames.len() as u64 };
    if let Some(Amount::Bytes(whole)) = s.size
        && let Amount::Bytes(size) = s.size.map_or(Amount::Bytes(0), |size| size.part_of(files))
        && s.filesize.is_none()
        && size < smallest
    {
        let of = if files > 1 {
            format!("{whole} bytes make {size} for each of {files} files, which")
        } else {
            format!("{size} bytes")
        };
        let message = format!("{of} are smaller than a block of {smallest}");
        return Err(context.error("size", &message).hinting("use a larger size, or a smaller bs"));
    }
    if let Amount::Bytes(offset) = s.offset {
        whole_sectors(context, "offset", offset)?;
    }
    if let Amount::Bytes(increment) = s.offset_increment {
        whole_sectors(context, "offset_increment", increment)?;
    }
    Ok(())
}

/// Depth and batches after fio's own corrections.
pub(crate) struct Depth {
    pub(crate) iodepth: u32,
    pub(crate) submit_batch: u32,
    pub(crate) complete_min: u32,
    pub(crate) complete_max: u32,
    pub(crate) iodepth_low: u32,
}

pub(crate) fn depth(s: &Settings) -> Depth {
    let iodepth = if (s.engine.is_asynchronous() || s.offload) && s.direct { s.iodepth } else { 1 };
    let within = |value: i64| if value == 0 || value > iodepth { iodepth } else { value };
    let complete_min = s.iodepth_batch_complete_min.min(iodepth);
    Depth {
        iodepth: iodepth as u32,
        submit_batch: within(s.iodepth_batch) as u32,
        complete_min: complete_min as u32,
        complete_max: s.iodepth_batch_complete_max.max(complete_min).max(1).min(iodepth) as u32,
        iodepth_low: within(s.iodepth_low) as u32,
    }
}

pub(crate) fn think(context: &JobContext<'_>) -> Option<Think> {
    let s = context.settings;
    // As in fio, a pause by time is one by I/Os only if that is asked for, too.
    let by_ios = s.think_io_time == Nanos::ZERO || context.given("thinktime_blocks").is_some();
    (s.think_time > Nanos::ZERO).then(|| Think {
        sleep: Nanos(s.think_time.0 - s.think_spin.0),
        spin: s.think_spin,
        blocks: if by_ios { s.think_blocks as u32 } else { 0 },
        io_time: s.think_io_time,
        is_lost_to_rate: s.rate_ignore_thinktime,
        counting: s.think_blocks_type,
    })
}

pub(crate) fn rate(s: &Settings) -> Option<Rate> {
    let limits = if s.rate_bytes.0 != [0; 3] {
        RateLimits::Bytes(s.rate_bytes.0)
    } else if s.rate_ios.0 != [0; 3] {
        RateLimits::Ios(s.rate_ios.0)
    } else {
        return None;
    };
    Some(Rate { limits, process: s.rate_process })
}

/// When its results are steady, if it ends then.
pub(crate) fn steady_state(context: &JobContext<'_>) -> Result<Option<SteadyState>, JobFileError> {
    let s = context.settings;
    if s.steady_duration == Nanos::ZERO {
        return Ok(None);
    }
    const SECOND_NS: u64 = 1_000_000_000;
    if s.steady_duration.0 < SECOND_NS || s.steady_duration.0 / SECOND_NS > STEADY_SECONDS_MAX {
        let error = context.error("steadystate_duration", "out of range");
        return Err(error.hinting(format!("samples are of a second: expected 1 s to {STEADY_SECONDS_MAX} s")));
    }
    let seconds = (s.steady_duration.0 / SECOND_NS) as u32;
    Ok(Some(SteadyState { steadiness: s.steadiness, seconds, ramp: s.steady_ramp }))
}

/// A day.
const STEADY_SECONDS_MAX: u64 = 86_400;

pub(crate) fn flow(s: &Settings) -> Option<Flow> {
    (s.flow > 0).then(|| Flow {
        id: s.flow_id as u32,
        weight: s.flow as u32,
        sleep: Nanos(s.flow_sleep_us.unsigned_abs() * 1000),
    })
}

/// The priority that fio sets: a level without class is best-effort, a class without level has level 0.
pub(crate) fn io_priority(s: &Settings) -> Option<IoPriority> {
    if s.prio.is_none() && s.prio_class.is_none() {
        return None;
    }
    Some(priority(s.prio_class.unwrap_or(2), s.prio.unwrap_or(0)))
}
