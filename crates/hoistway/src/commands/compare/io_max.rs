//! `--io-max "CGROUP rbps=N wiops=N ..."`: limits of the cgroups that a job file names.

use anyhow::{Result, bail};
use hoistway_cgroup::IoMax;
use hoistway_load::Load;

/// Reads the limits.
pub(super) fn parse(wanted: &[String], workload: &Load) -> Result<Vec<(String, IoMax)>> {
    let mut limits: Vec<(String, IoMax)> = Vec::new();
    for text in wanted {
        let example = "such as \"backup wbps=10485760 riops=max\"";
        let Some((cgroup, keys)) = text.split_once(char::is_whitespace) else {
            bail!("--io-max {text:?}: expected a cgroup and its limits, {example}");
        };
        let cgroup = cgroup.trim_matches('/');
        let paths = workload.processes.iter().filter_map(|process| process.standing.cgroup.as_deref());
        let below = |path: &str| {
            let path = path.trim_matches('/');
            path == cgroup || path.strip_prefix(cgroup).is_some_and(|rest| rest.starts_with('/'))
        };
        if cgroup.is_empty() || !paths.clone().any(below) {
            let mut known: Vec<&str> = paths.collect();
            known.sort_unstable();
            known.dedup();
            let known = if known.is_empty() { "none of its jobs has a cgroup".to_owned() } else { known.join(", ") };
            bail!("--io-max {text:?}: no job is in cgroup \"{cgroup}\" (the job file names: {known})");
        }
        let mut limit =
            limits.iter().find(|(other, _)| other == cgroup).map_or_else(IoMax::default, |(_, limit)| *limit);
        if let Err(error) = limit.update(keys) {
            bail!(
                "--io-max {text:?}: {error}; expected rbps, wbps, riops or wiops = a number per second or max, {example}"
            );
        }
        limits.retain(|(other, _)| other != cgroup);
        limits.push((cgroup.to_owned(), limit));
    }
    Ok(limits)
}
