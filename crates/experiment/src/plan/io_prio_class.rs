//! I/O priority classes of a load's cgroups, as writes to `io.prio.class`.

use hoistway_blk::bio::CgroupPriority;
use hoistway_blk::ground::Kernel;
use hoistway_blk::schedulers::{Layer, Priorities, Row};
use hoistway_load::Load;
use hoistway_sim::QueueSettings;

use crate::comparison::CgroupFile;
use crate::comparison::environment::Options;
use crate::comparison::error::Error;
use crate::comparison::fields::Field;
use crate::plan::io_max::join_cgroups;

/// The settings; the last write to a cgroup counts.
pub(crate) fn classes(
    options: &Options<'_>,
    workload: &Load,
    kernel: Kernel,
) -> Result<Vec<(String, CgroupPriority)>, Error> {
    let mut classes: Vec<(String, CgroupPriority)> = Vec::new();
    for CgroupFile { cgroup, text } in &options.comparison.io_prio_class {
        let refuse = |problem: String| {
            Err(options.refuse(Field::IoPrioClass, format_args!("{:?}", format!("{cgroup} {text}")), problem))
        };
        let Some(priority) = CgroupPriority::parse(text) else {
            let known: Vec<&str> = CgroupPriority::TEXTS.iter().map(|(text, _)| *text).collect();
            return refuse(format!("unknown class \"{}\" (expected one of {})", text.trim(), known.join(", ")));
        };
        if !kernel.is_from(5, 14) {
            let later = options.given(Field::Kernels, "5.14");
            return refuse(format!("Linux {kernel} has no io.prio.class (expected {later} or later)"));
        }
        let cgroup = cgroup.trim_matches('/');
        // Unlike a limit, it does not apply to descendants.
        let named: Vec<&str> =
            workload.processes.iter().filter_map(|p| Some(p.standing.cgroup.as_deref()?.trim_matches('/'))).collect();
        if !named.contains(&cgroup) {
            let named = join_cgroups(named);
            return refuse(format!("no job is in cgroup \"{cgroup}\" itself (the job file names: {named})"));
        }
        classes.retain(|(other, _)| other != cgroup);
        classes.push((cgroup.to_owned(), priority));
    }
    Ok(classes)
}

/// A notice that names the schedulers under which it has no effect.
pub(crate) fn notice(options: &Options<'_>, schedulers: &[String], queue: &QueueSettings) -> Option<String> {
    let has_none =
        |row: &Row| row.layer == Layer::SingleQueue || (row.priorities)(&queue.kernel.generation()) == Priorities::No;
    let without: Vec<&str> = schedulers
        .iter()
        .map(String::as_str)
        .filter(|name| queue.schedulers.find(name).is_some_and(has_none))
        .collect();
    (!queue.io_prio_class.is_empty() && !without.is_empty()).then(|| {
        let (name, without) = (options.name(Field::IoPrioClass), without.join(", "));
        format!("{name}: no effect with {without}, which have no priorities or no such file.")
    })
}
