//! Findings about latency targets of cgroups. Source of the rules: `docs/rules/io-latency.md`, IL-1 and IL-3.

use super::{Finding, Rule, Severity, by_count, disks, join_names};
use crate::host::{CgroupSetting, Host};

/// A target of a cgroup, and the groups above it that have none on the same device.
struct Unprotected<'a> {
    setting: &'a CgroupSetting,
    without: Vec<&'a str>,
}

/// Targets act between siblings only, so a group is protected from other parts of the hierarchy only if each group above it has a
/// target, too.
pub(super) fn targets_without_effect(host: &Host) -> Option<Finding> {
    let is_target = |setting: &&CgroupSetting| setting.file == "io.latency" && setting.value != "target=0";
    let targets: Vec<&CgroupSetting> = host.cgroups.settings.iter().filter(is_target).collect();
    let unprotected = targets.iter().map(|&setting| {
        let has_none =
            |above: &&str| !targets.iter().any(|other| other.cgroup == *above && other.device == setting.device);
        Unprotected { setting, without: above(&setting.cgroup).filter(has_none).collect() }
    });
    let unprotected: Vec<Unprotected<'_>> = unprotected.filter(|target| !target.without.is_empty()).collect();
    let first = unprotected.first()?;
    const SHOWN_MAX: usize = 5;
    let mount_point = host.cgroups.mounted_on.as_deref().unwrap_or_default();
    let line = |setting: &CgroupSetting| {
        format!("{} {}", setting.device.as_deref().unwrap_or_default(), setting.value).trim().to_owned()
    };
    let describe = |target: &Unprotected<'_>| {
        let (group, without) = (&target.setting.cgroup, join_names(target.without.iter().copied()));
        format!("{mount_point}{group}/io.latency: {}; none in {without}", line(target.setting))
    };
    let mut evidence: Vec<String> = unprotected.iter().take(SHOWN_MAX).map(describe).collect();
    if unprotected.len() > SHOWN_MAX {
        evidence.push(format!("and {} others", unprotected.len() - SHOWN_MAX));
    }
    let mut cgroups: Vec<&str> = unprotected.iter().map(|target| target.setting.cgroup.as_str()).collect();
    cgroups.dedup();
    let is_named = |number: &String| unprotected.iter().any(|target| target.setting.device.as_ref() == Some(number));
    let write = |above: &&str| format!("echo \"{}\" > {mount_point}{above}/io.latency", line(first.setting));
    Some(Finding {
        rule: Rule::LatencyTargetWithoutEffect,
        severity: Severity::Medium,
        devices: disks(host).filter(|device| is_named(&device.number)).map(|device| device.name.clone()).collect(),
        what: format!(
            "{} {} a latency target that protects only from siblings: a group above has none, and targets act between siblings. \
             Give each group above a target, too.",
            join_names(cgroups.iter().copied()),
            by_count(cgroups.len(), "has", "have"),
        ),
        evidence,
        commands: first.without.first().map(write).into_iter().collect(),
    })
}

/// The groups above one, without the root, which has no targets.
fn above(cgroup: &str) -> impl Iterator<Item = &str> {
    cgroup.match_indices('/').map(|(end, _)| &cgroup[..end]).filter(|above| !above.is_empty())
}

#[cfg(test)]
mod tests {
    use super::above;

    #[test]
    fn the_groups_above_one_are_its_path_without_the_root() {
        assert_eq!(above("/a.slice/b/c").collect::<Vec<_>>(), ["/a.slice", "/a.slice/b"]);
        assert_eq!(above("/a.slice").count() + above("/").count(), 0);
    }
}
