//! `--io-prio-class "CGROUP CLASS"`: what cgroups that a job file names make of the priorities of their I/O.

use anyhow::{Result, bail};
use hoistway_blk::{CgroupPriority, Kernel, Layer, Priorities, Row};
use hoistway_load::Load;
use hoistway_sim::QueueSettings;

/// Reads the settings; the last one of a group counts, as of several writes.
pub(super) fn parse(wanted: &[String], workload: &Load, kernel: Kernel) -> Result<Vec<(String, CgroupPriority)>> {
    let mut classes: Vec<(String, CgroupPriority)> = Vec::new();
    for text in wanted {
        let option = format!("--io-prio-class {text:?}");
        let known: Vec<&str> = CgroupPriority::TEXTS.iter().map(|(text, _)| *text).collect();
        let Some((cgroup, class)) = text.split_once(char::is_whitespace) else {
            bail!("{option}: expected a cgroup and a class, such as \"backup idle\"");
        };
        let Some(priority) = CgroupPriority::parse(class) else {
            bail!("{option}: unknown class \"{}\" (expected one of {})", class.trim(), known.join(", "));
        };
        if !kernel.is_from(5, 14) {
            bail!("{option}: Linux {kernel} has no io.prio.class (expected --kernel 5.14 or later)");
        }
        let cgroup = cgroup.trim_matches('/');
        // Unlike limits, it does not act on what is below.
        let mut named: Vec<&str> =
            workload.processes.iter().filter_map(|p| Some(p.standing.cgroup.as_deref()?.trim_matches('/'))).collect();
        named.sort_unstable();
        named.dedup();
        if !named.contains(&cgroup) {
            let named = if named.is_empty() { "none of its jobs has a cgroup".to_owned() } else { named.join(", ") };
            bail!("{option}: no job is in cgroup \"{cgroup}\" itself (the job file names: {named})");
        }
        classes.retain(|(other, _)| other != cgroup);
        classes.push((cgroup.to_owned(), priority));
    }
    Ok(classes)
}

/// Which schedulers it does nothing for.
pub(super) fn notice(
    classes: &[(String, CgroupPriority)],
    schedulers: &[String],
    queue: &QueueSettings,
) -> Option<String> {
    let has_none =
        |row: &Row| row.layer == Layer::SingleQueue || (row.priorities)(&queue.kernel.generation()) == Priorities::No;
    let without: Vec<&str> = schedulers
        .iter()
        .map(String::as_str)
        .filter(|name| queue.schedulers.find(name).is_some_and(has_none))
        .collect();
    (!classes.is_empty() && !without.is_empty()).then(|| {
        format!("--io-prio-class: no effect with {}, which know no priorities or no such file.", without.join(", "))
    })
}
