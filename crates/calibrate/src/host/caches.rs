//! Which CPUs share a last-level cache.

use std::fs;
use std::path::Path;

/// The CPUs that share the last-level cache of this one, as the kernel lists them in `cache/index*`; `None` if it does not.
pub(super) fn sharing(sys_cpu: &Path, cpu: usize) -> Option<Vec<usize>> {
    let caches = fs::read_dir(sys_cpu.join(format!("cpu{cpu}/cache"))).ok()?;
    let level_and_cpus = caches.filter_map(|entry| {
        let folder = entry.ok()?.path();
        let read = |file: &str| fs::read_to_string(folder.join(file)).ok();
        let level: u32 = read("level")?.trim().parse().ok()?;
        Some((level, cpus(read("shared_cpu_list")?.trim())?))
    });
    level_and_cpus.max_by_key(|(level, _)| *level).map(|(_, cpus)| cpus)
}

/// The CPUs of a list such as `0-7,16-23`.
fn cpus(list: &str) -> Option<Vec<usize>> {
    let mut cpus = Vec::new();
    for range in list.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        cpus.extend(first.parse::<usize>().ok()?..=last.parse().ok()?);
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpus_of_the_last_level_are_those_of_the_highest_number() {
        let root = tempfile::tempdir().unwrap();
        for (index, level, list) in [(0, 1, "0,16"), (3, 3, "0-2,16-17"), (2, 2, "0,16")] {
            let folder = root.path().join(format!("cpu0/cache/index{index}"));
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("level"), format!("{level}\n")).unwrap();
            fs::write(folder.join("shared_cpu_list"), format!("{list}\n")).unwrap();
        }
        assert_eq!(sharing(root.path(), 0), Some(vec![0, 1, 2, 16, 17]));
        assert_eq!(sharing(root.path(), 1), None);
        assert_eq!([cpus("3"), cpus(""), cpus("1-x")], [Some(vec![3]), None, None]);
    }
}
