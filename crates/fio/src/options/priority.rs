//! Options of I/O priorities, cgroups and CPUs.

use hoistway_blk::bio::{IoPriority, PriorityClass};
use hoistway_load::limits::SHARES as SHARES_MAX;
use hoistway_load::{Engine, PriorityRule, Process};

use super::Job;
use super::files::engine_name;
use super::{OptionSpec, Setter, row};
use super::{Settings, Subject};
use crate::JobFileError;
use crate::error::quoted;
use crate::values::{KbBase, Refusal, bytes, merge, per_direction, whole};

/// Maximum CPU number.
const CPUS_MAX: i64 = 65_535;

#[derive(Clone, Debug, Default)]
pub(crate) struct Priority {
    class: Option<u8>,
    level: Option<u8>,
    /// `cmdprio_percentage`, for reads, writes and trims; trims get no priority of their own.
    command_percent: [u8; 3],
    /// `None` for the default, real time.
    command_class: [Option<u8>; 3],
    command_level: [u8; 3],
    command_split: [Vec<PrioShare>; 3],
    cpus_split: bool,
}

/// One entry of `cmdprio_bssplit`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct PrioShare {
    bytes: u64,
    percent: u8,
    /// Its own class and level, if given.
    prio: Option<(u8, u8)>,
}

pub(super) const SUBJECT: Subject = Subject { rows: ROWS, apply, fields: &[] };

const ROWS: &[OptionSpec] = &[
    row("prio", "", Setter::Int { min: 0, max: 7, set: |s, v| s.priority.level = Some(v as u8) })
        .doc("Level of the I/O priority, 0 is the highest; without prioclass it is best-effort"),
    row("prioclass", "", Setter::Int { min: 0, max: 3, set: |s, v| s.priority.class = Some(v as u8) })
        .doc("Class of the I/O priority: 1 real time, 2 best-effort, 3 idle"),
    row(
        "cmdprio_percentage",
        "0",
        Setter::IntList {
            min: 0,
            max: 100,
            set: |s, v| merge(&mut s.priority.command_percent, v.map(|v| v.map(|v| v as u8))),
        },
    )
    .doc("Percentage of the reads and writes that get a priority of their own"),
    row(
        "cmdprio_class",
        "1",
        Setter::IntList {
            min: 1,
            max: 3,
            set: |s, v| merge(&mut s.priority.command_class, v.map(|v| v.map(|v| Some(v as u8)))),
        },
    )
    .doc("Class of that priority: 1 real time, 2 best-effort, 3 idle"),
    row(
        "cmdprio",
        "0",
        Setter::IntList {
            min: 0,
            max: 7,
            set: |s, v| merge(&mut s.priority.command_level, v.map(|v| v.map(|v| v as u8))),
        },
    )
    .doc("Level of that priority, 0 is the highest"),
    row(
        "cmdprio_bssplit",
        "",
        Setter::Form {
            form: "read,write: size/percent:size/percent:..., or with /class/level after each",
            set: prio_split,
        },
    )
    .doc("Like cmdprio_percentage, but for each block size"),
    row("nice", "0", Setter::Int { min: -20, max: 19, set: |s, v| s.process.standing.nice = v as i8 })
        .doc("Nice level of the process; determines the best-effort level if no I/O priority is set"),
    row(
        "cgroup",
        "",
        Setter::Text {
            form: "a name",
            set: |s, v| {
                s.process.standing.cgroup = Some(v.to_owned());
                Ok(())
            },
        },
    )
    .doc("The cgroup that the job's I/O is charged to"),
    row(
        "cgroup_weight",
        "",
        Setter::Int { min: 10, max: 1000, set: |s, v| s.process.standing.cgroup_weight = Some(v as u32) },
    )
    .doc("I/O weight of that cgroup for bfq and cfq (fio itself accepts 100 to 1000)"),
    row("cpus_allowed", "", Setter::Form { form: "a list such as 0-3,5", set: cpus })
        .doc("The CPUs that the job may run on"),
    row("cpumask", "", Setter::Int { min: 1, max: i64::MAX, set: cpu_mask })
        .doc("The CPUs that the job may run on, as a mask: bit 0 is CPU 0"),
    row(
        "cpus_allowed_policy",
        "shared",
        Setter::Choice { words: &["shared", "split"], set: |s, i| s.priority.cpus_split = i == 1 },
    )
    .doc("Whether all clones share the allowed CPUs, or each gets one of them"),
];

fn apply(job: &Job<'_>, process: &mut Process) -> Result<(), JobFileError> {
    let s = &job.settings.priority;
    // As in fio, a level without a class is best-effort, and a class without a level has level 0.
    process.standing.io_priority = match (s.class, s.level) {
        (None, None) => None,
        (class, level) => Some(priority(class.unwrap_or(2), level.unwrap_or(0))),
    };
    let rules = rules_for_single_ios(job, s)?;
    if rules.is_empty() {
        job.add_notice_of_unused_options(
            &["cmdprio", "cmdprio_class"],
            "without cmdprio_percentage or cmdprio_bssplit",
        );
    }
    process.plan.pattern_mut().priorities = rules.into();
    if process.standing.cgroup.is_none() {
        job.add_notice_of_unused_options(&["cgroup_weight"], "without cgroup");
    }
    Ok(())
}

/// Sets what differs between clones: as in fio, split CPUs are assigned in turn to all processes of the run. `number` is its
/// position among them.
pub(crate) fn apply_to_clone(job: &Job<'_>, number: u32, process: &mut Process) {
    if let (Some(cpus), true) = (&job.settings.process.standing.cpus, job.settings.priority.cpus_split) {
        process.standing.cpus = cpus.get(number as usize % cpus.len().max(1)).map(|&own| [own].into());
    }
}

/// The rules that give single I/Os a priority of their own.
fn rules_for_single_ios(job: &Job<'_>, s: &Priority) -> Result<Vec<PriorityRule>, JobFileError> {
    let is_split = s.command_split.iter().any(|split| !split.is_empty());
    let has_percent = s.command_percent != [0; 3];
    if !is_split && !has_percent {
        return Ok(Vec::new());
    }
    let option = if is_split { "cmdprio_bssplit" } else { "cmdprio_percentage" };
    if is_split && has_percent {
        let error = job.error(option, "cmdprio_bssplit and cmdprio_percentage exclude each other");
        return Err(error.with_hint("use one of them"));
    }
    let engine = job.settings.process.issue.engine;
    if !matches!(engine, Engine::Libaio | Engine::IoUring) {
        let message = format!("ioengine={} cannot set the priority of single I/Os", engine_name(engine));
        return Err(job.error(option, &message).with_hint("use libaio or io_uring, or prio for the whole job"));
    }
    let mut rules = Vec::new();
    for lane in 0..2 {
        let common = (s.command_class[lane].unwrap_or(1), s.command_level[lane]);
        let all = [PrioShare { bytes: 0, percent: s.command_percent[lane], prio: None }];
        for share in all.iter().chain(&s.command_split[lane]).filter(|share| share.percent > 0) {
            let (class, level) = share.prio.unwrap_or(common);
            rules.push(PriorityRule {
                lane,
                bytes: share.bytes,
                percent: share.percent,
                priority: priority(class, level),
            });
        }
    }
    Ok(rules)
}

fn priority(class: u8, level: u8) -> IoPriority {
    let class = match class {
        1 => PriorityClass::RealTime,
        3 => PriorityClass::Idle,
        _ => PriorityClass::BestEffort,
    };
    IoPriority::new(class, level)
}

fn prio_split(s: &mut Settings, text: &str) -> Result<(), Refusal> {
    let base = s.files.kb_base;
    let given = per_direction(text, |v| prio_shares(v, base))?;
    merge(&mut s.priority.command_split, given);
    Ok(())
}

/// The entries of one direction: at most 100 percent for each size, as in fio.
fn prio_shares(text: &str, base: KbBase) -> Result<Vec<PrioShare>, Refusal> {
    let shares = text.split(':').map(|entry| prio_share(entry, base)).collect::<Result<Vec<_>, _>>()?;
    if shares.len() > SHARES_MAX {
        return Err(Refusal::new(format!("more than {SHARES_MAX} entries")));
    }
    for share in &shares {
        let total: u32 = shares.iter().filter(|s| s.bytes == share.bytes).map(|s| u32::from(s.percent)).sum();
        if total > 100 {
            return Err(Refusal::new(format!("the percentages for {} bytes add up to {total}", share.bytes))
                .with_hint("expected at most 100 for each size"));
        }
    }
    Ok(shares)
}

fn prio_share(entry: &str, base: KbBase) -> Result<PrioShare, Refusal> {
    let parts: Vec<&str> = entry.split('/').map(str::trim).collect();
    let percent = |text: &str| if text.is_empty() { Ok(0) } else { whole(text, 0, 100) };
    let (bytes, percent, prio) = match parts[..] {
        // As in fio, a missing share is zero.
        [size] => (bytes(size, base)?, 0, None),
        [size, share] => (bytes(size, base)?, percent(share)?, None),
        [size, share, class, level] => {
            let prio = (whole(class, 1, 3)? as u8, whole(level, 0, 7)? as u8);
            (bytes(size, base)?, percent(share)?, Some(prio))
        }
        _ => {
            return Err(Refusal::new(format!("{} is not an entry", quoted(entry)))
                .with_hint("expected size/percent or size/percent/class/level"));
        }
    };
    Ok(PrioShare { bytes, percent: percent as u8, prio })
}

fn cpu_mask(s: &mut Settings, mask: i64) {
    s.process.standing.cpus = Some((0..63).filter(|cpu| mask >> cpu & 1 == 1).collect());
}

fn cpus(s: &mut Settings, text: &str) -> Result<(), Refusal> {
    let mut cpus = Vec::new();
    for part in text.split(',').map(str::trim) {
        let (first, last) = match part.split_once('-') {
            Some((first, last)) => (whole(first.trim(), 0, CPUS_MAX)?, whole(last.trim(), 0, CPUS_MAX)?),
            None => {
                let both = whole(part, 0, CPUS_MAX)?;
                (both, both)
            }
        };
        if first > last {
            return Err(Refusal::new(format!("the range {} is empty", quoted(part))));
        }
        cpus.extend((first..=last).map(|cpu| cpu as u32));
        if cpus.len() > CPUS_MAX as usize + 1 {
            return Err(Refusal::new("too many CPUs"));
        }
    }
    cpus.sort_unstable();
    cpus.dedup();
    s.process.standing.cpus = Some(cpus.into());
    Ok(())
}
