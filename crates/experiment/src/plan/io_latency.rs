//! Latency targets of a load's cgroups, as writes to `io.latency`.

use hoistway_blk::ground::Kernel;
use hoistway_cgroup::IoLatencyTarget;
use hoistway_load::Load;

use crate::comparison::CgroupFile;
use crate::comparison::environment::Options;
use crate::comparison::error::Error;
use crate::comparison::fields::Field;
use crate::plan::io_cost::{disk_named, target_of};
use crate::plan::io_max::check_cgroup;

/// An example of a valid write.
pub const EXAMPLE: &str = "such as \"pods/db target=2000\"";

/// The targets of each of the load's files, by cgroup; the last write to a cgroup counts. Empty if no group has one.
pub(crate) fn of_disks(
    options: &Options<'_>,
    workload: &Load,
    devices: usize,
    kernel: Kernel,
    in_guests: bool,
) -> Result<Vec<Vec<(String, IoLatencyTarget)>>, Error> {
    let writes = &options.comparison.io_latency;
    if writes.is_empty() {
        return Ok(Vec::new());
    }
    let mut disks: Vec<Vec<(String, IoLatencyTarget)>> = vec![Vec::new(); workload.files.len().min(devices)];
    for CgroupFile { cgroup, text } in writes {
        let given = format!("{cgroup} {text}");
        let refuse = |problem: String| options.refuse(Field::IoLatency, format_args!("{given:?}"), problem);
        if in_guests {
            let problem = "io.latency is not modelled on a host below guests (expected a load without guests)";
            return Err(refuse(problem.to_owned()));
        }
        if !kernel.is_from(4, 19) {
            let later = options.given(Field::Kernels, "4.19");
            return Err(refuse(format!("Linux {kernel} has no io.latency (expected {later} or later)")));
        }
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
