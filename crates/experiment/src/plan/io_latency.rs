//! Latency targets of a load's cgroups, as writes to `io.latency`.

use hoistway_blk::ground::Kernel;
use hoistway_cgroup::IoLatencyTarget;
use hoistway_load::Load;

use crate::comparison::environment::Options;
use crate::comparison::error::Error;
use crate::comparison::fields::Field;
use crate::comparison::{CgroupFile, Vary};
use crate::plan::io_cost::{disk_named, target_of};
use crate::plan::io_max::check_cgroup;

/// An example of a valid write.
pub const EXAMPLE: &str = "such as \"pods/db target=2000\"";

/// What names a target that is varied.
const VARY_EXPECTED: &str = "expected io.latency.CGROUP.target, such as io.latency.pods/db.target=1000,5000";

/// The targets of the groups of each device, by the paths of the groups.
type Targets = Vec<(String, IoLatencyTarget)>;

/// The targets of each of the load's files, by cgroup; the last write to a cgroup counts. Empty if no group has one.
pub(crate) fn of_disks(
    options: &Options<'_>,
    workload: &Load,
    devices: usize,
    kernel: Kernel,
    in_guests: bool,
) -> Result<Vec<Targets>, Error> {
    let comparison = options.comparison;
    let writes = &comparison.io_latency;
    let varied = comparison.vary.iter().filter(|vary| vary.of == Vary::IO_LATENCY);
    let place = || check_place(options, kernel, in_guests);
    for vary in varied.clone() {
        let group = place().and_then(|()| check_group(workload, &vary.name));
        group.map_err(|problem| options.refuse(Field::Vary, vary, problem))?;
    }
    if writes.is_empty() && varied.count() == 0 {
        return Ok(Vec::new());
    }
    let mut disks: Vec<Targets> = vec![Vec::new(); workload.files.len().min(devices)];
    for CgroupFile { cgroup, text } in writes {
        let given = format!("{cgroup} {text}");
        let refuse = |problem: String| options.refuse(Field::IoLatency, format_args!("{given:?}"), problem);
        place().map_err(&refuse)?;
        let cgroup = cgroup.trim_matches('/');
        if cgroup.is_empty() {
            return Err(refuse(format!("the root cgroup has no io.latency (expected a cgroup below it, {EXAMPLE})")));
        }
        check_cgroup(workload, cgroup).map_err(&refuse)?;
        let (disk, setting) = target_of(text);
        let chosen =
            disk.map(|disk| disk_named(&workload.files[..disks.len()], disk, EXAMPLE)).transpose().map_err(&refuse)?;
        let target: IoLatencyTarget = setting.parse().map_err(|error| refuse(format!("{error}, {EXAMPLE}")))?;
        for (_, targets) in disks.iter_mut().enumerate().filter(|&(disk, _)| chosen.is_none_or(|chosen| chosen == disk))
        {
            targets.retain(|(other, _)| other != cgroup);
            targets.push((cgroup.to_owned(), target));
        }
    }
    Ok(disks)
}

/// Checks that targets can be set on the host of this kernel.
fn check_place(options: &Options<'_>, kernel: Kernel, in_guests: bool) -> Result<(), String> {
    if in_guests {
        return Err("io.latency is not modelled on a host below guests (expected a load without guests)".to_owned());
    }
    if !kernel.is_from(4, 19) {
        let later = options.given(Field::Kernels, "4.19");
        return Err(format!("Linux {kernel} has no io.latency (expected {later} or later)"));
    }
    Ok(())
}

/// The cgroup of a target that is varied, such as `pods/db.target`.
fn group_of(name: &str) -> Result<&str, String> {
    match name.rsplit_once('.') {
        Some((group, "target")) if !group.is_empty() && group.trim_matches('/') == group => Ok(group),
        _ => Err(format!("\"{name}\" is not the target of a cgroup ({VARY_EXPECTED})")),
    }
}

/// Checks that the load has the cgroup of a target that is varied.
///
/// # Errors
/// If it has not, or if the name is refused.
pub(crate) fn check_group(workload: &Load, name: &str) -> Result<(), String> {
    group_of(name).and_then(|group| check_cgroup(workload, group))
}

/// Changes the target of a group, named as in `pods/db.target`, on the devices where it has one, or else on all.
///
/// # Errors
/// If the name or the target is refused.
pub(crate) fn vary(disks: &mut [Targets], name: &str, text: &str) -> Result<(), String> {
    let group = group_of(name)?;
    let target: IoLatencyTarget = format!("target={text}").parse().map_err(|error| format!("{error}"))?;
    let is_written = |targets: &Targets| targets.iter().any(|(other, _)| other == group);
    let is_on_some = disks.iter().any(is_written);
    for targets in disks.iter_mut().filter(|targets| !is_on_some || is_written(targets)) {
        targets.retain(|(other, _)| other != group);
        targets.push((group.to_owned(), target));
    }
    Ok(())
}

/// Whether the groups have the same targets on each device; 0 is none.
pub(crate) fn are_equal(disks: &[Targets], others: &[Targets]) -> bool {
    let known = |targets: &Targets| {
        let mut known: Targets = targets.iter().filter(|(_, target)| target.duration().is_some()).cloned().collect();
        known.sort_by(|one, other| one.0.cmp(&other.0));
        known
    };
    disks.iter().map(known).eq(others.iter().map(known))
}
