//! I/O limits of a load's cgroups, as writes to `io.max`.

use hoistway_cgroup::IoMax;
use hoistway_load::Load;

use crate::comparison::CgroupFile;
use crate::comparison::environment::Options;
use crate::comparison::error::Error;
use crate::comparison::fields::Field;

/// An example of a valid write.
pub const EXAMPLE: &str = "such as \"backup wbps=10485760 riops=max\"";

/// The limits, by cgroup.
pub(crate) fn limits(options: &Options<'_>, workload: &Load) -> Result<Vec<(String, IoMax)>, Error> {
    let mut limits: Vec<(String, IoMax)> = Vec::new();
    for CgroupFile { cgroup, text } in &options.comparison.io_max {
        let refuse = |problem: String| {
            Err(options.refuse(Field::IoMax, format_args!("{:?}", format!("{cgroup} {text}")), problem))
        };
        let cgroup = cgroup.trim_matches('/');
        if let Err(problem) = check_cgroup(workload, cgroup) {
            return refuse(problem);
        }
        let mut limit =
            limits.iter().find(|(other, _)| other == cgroup).map_or_else(IoMax::default, |(_, limit)| *limit);
        if let Err(error) = limit.update(text) {
            return refuse(format!(
                "{error}; expected rbps, wbps, riops or wiops = a number per second or max, {EXAMPLE}"
            ));
        }
        limits.retain(|(other, _)| other != cgroup);
        limits.push((cgroup.to_owned(), limit));
    }
    Ok(limits)
}

/// Checks that a job is in a cgroup or below it.
pub(crate) fn check_cgroup(workload: &Load, cgroup: &str) -> Result<(), String> {
    let paths = workload.processes.iter().filter_map(|process| process.standing.cgroup.as_deref());
    let is_within = |path: &str| {
        let path = path.trim_matches('/');
        path == cgroup || path.strip_prefix(cgroup).is_some_and(|rest| rest.starts_with('/'))
    };
    if cgroup.is_empty() || !paths.clone().any(is_within) {
        let known = join_cgroups(paths.collect());
        return Err(format!("no job is in cgroup \"{cgroup}\" (the job file names: {known})"));
    }
    Ok(())
}

/// Lists cgroups, each once.
pub(crate) fn join_cgroups(mut cgroups: Vec<&str>) -> String {
    cgroups.sort_unstable();
    cgroups.dedup();
    if cgroups.is_empty() { "none of its jobs has a cgroup".to_owned() } else { cgroups.join(", ") }
}
