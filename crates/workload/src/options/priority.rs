//! Priorities, cgroups and CPUs.

use super::setter::Setter;
use super::spec::OptionSpec;
use crate::error::quoted;
use crate::settings::{PrioShare, Settings};
use crate::values::{KbBase, PerDirection, Refusal, bytes, merge, per_direction, whole};

/// CPUs are numbered below this.
const CPUS_MAX: i64 = 65_535;

pub(super) const OPTIONS: &[OptionSpec] = &[
    OptionSpec::new(
        "prio",
        "",
        Setter::Int { min: 0, max: 7, set: |s, v| s.prio = Some(v as u8) },
        "Level of the I/O priority, 0 is the highest; without prioclass it is best-effort",
    ),
    OptionSpec::new(
        "prioclass",
        "",
        Setter::Int { min: 0, max: 3, set: |s, v| s.prio_class = Some(v as u8) },
        "Class of the I/O priority: 1 real time, 2 best-effort, 3 idle",
    ),
    OptionSpec::new(
        "cmdprio_percentage",
        "0",
        Setter::IntList {
            min: 0,
            max: 100,
            set: |s, v| merge(&mut s.command_prio.percent, v.map(|v| v.map(|v| v as u8))),
        },
        "Percentage of the reads and writes that get a priority of their own",
    ),
    OptionSpec::new(
        "cmdprio_class",
        "1",
        Setter::IntList { min: 1, max: 3, set: |s, v| merge(&mut s.command_prio.class, v.map(|v| v.map(|v| v as u8))) },
        "Class of that priority: 1 real time, 2 best-effort, 3 idle",
    ),
    OptionSpec::new(
        "cmdprio",
        "0",
        Setter::IntList { min: 0, max: 7, set: |s, v| merge(&mut s.command_prio.level, v.map(|v| v.map(|v| v as u8))) },
        "Level of that priority, 0 is the highest",
    ),
    OptionSpec::new(
        "cmdprio_bssplit",
        "",
        Setter::Form {
            form: "read,write: size/percent:size/percent:..., or with /class/level after each",
            set: prio_split,
        },
        "Percentages as cmdprio_percentage gives them, for each block size",
    ),
    OptionSpec::new(
        "nice",
        "0",
        Setter::Int { min: -20, max: 19, set: |s, v| s.nice = v as i8 },
        "Nice level of the process; without an I/O priority it decides the best-effort level",
    ),
    OptionSpec::new(
        "cgroup",
        "",
        Setter::Text {
            form: "a name",
            set: |s, v| {
                s.cgroup = Some(v.to_owned());
                Ok(())
            },
        },
        "The cgroup that the job's I/O is charged to",
    ),
    OptionSpec::new(
        "cgroup_weight",
        "",
        Setter::Int { min: 10, max: 1000, set: |s, v| s.cgroup_weight = Some(v as u32) },
        "I/O weight of that cgroup for bfq and cfq (fio itself takes 100 to 1000)",
    ),
    OptionSpec::new(
        "cpus_allowed",
        "",
        Setter::Form { form: "a list such as 0-3,5", set: cpus },
        "The CPUs that the job may run on",
    ),
    OptionSpec::new(
        "cpumask",
        "",
        Setter::Int { min: 1, max: i64::MAX, set: cpu_mask },
        "The CPUs that the job may run on, as a mask: bit 0 is CPU 0",
    ),
    OptionSpec::new(
        "cpus_allowed_policy",
        "shared",
        Setter::Choice { of: &["shared", "split"], set: |s, i| s.cpus_split = i == 1 },
        "Whether all clones share the allowed CPUs, or each gets one of them",
    ),
];

/// Entries of one direction that are accepted.
const SHARES_MAX: usize = 64;

fn prio_split(s: &mut Settings, text: &str) -> Result<(), Refusal> {
    let base = s.kb_base;
    let given = per_direction(text, |v| prio_shares(v, base))?;
    let PerDirection(splits) = &mut s.command_prio.split;
    for (old, new) in splits.iter_mut().zip(given.0) {
        if let Some(new) = new {
            *old = new;
        }
    }
    Ok(())
}

/// The entries of one direction: no more than 100 percent for each size, as in fio.
fn prio_shares(text: &str, base: KbBase) -> Result<Vec<PrioShare>, Refusal> {
    let shares = text.split(':').map(|entry| prio_share(entry, base)).collect::<Result<Vec<_>, _>>()?;
    if shares.len() > SHARES_MAX {
        return Err(Refusal::new(format!("more than {SHARES_MAX} entries")));
    }
    for share in &shares {
        let total: u32 = shares.iter().filter(|s| s.bytes == share.bytes).map(|s| u32::from(s.percent)).sum();
        if total > 100 {
            return Err(Refusal::new(format!("the percentages for {} bytes add up to {total}", share.bytes))
                .hinting("expected at most 100 for each size"));
        }
    }
    Ok(shares)
}

fn prio_share(entry: &str, base: KbBase) -> Result<PrioShare, Refusal> {
    let parts: Vec<&str> = entry.split('/').map(str::trim).collect();
    let percent = |text: &str| if text.is_empty() { Ok(0) } else { whole(text, 0, 100) };
    let (bytes, percent, prio) = match parts[..] {
        // As in fio, what is left out is no share at all.
        [size] => (bytes(size, base)?, 0, None),
        [size, share] => (bytes(size, base)?, percent(share)?, None),
        [size, share, class, level] => {
            let prio = (whole(class, 1, 3)? as u8, whole(level, 0, 7)? as u8);
            (bytes(size, base)?, percent(share)?, Some(prio))
        }
        _ => {
            return Err(Refusal::new(format!("{} is not an entry", quoted(entry)))
                .hinting("expected size/percent or size/percent/class/level"));
        }
    };
    Ok(PrioShare { bytes, percent: percent as u8, prio })
}

fn cpu_mask(s: &mut Settings, mask: i64) {
    s.cpus_allowed = Some((0..63).filter(|cpu| mask >> cpu & 1 == 1).collect());
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
    s.cpus_allowed = Some(cpus.into());
    Ok(())
}
