//! Facts about recorded tasks, from `/proc`: nice value, policy and cgroup.

use std::collections::{BTreeMap, BTreeSet};

use hoistway_blk::bio::{IoPriority, PriorityClass};
use rustc_hash::FxHashMap;

use super::reader::Task;
use super::sidecar::{RecordedTask, files};
use crate::host::IoHierarchy;
use crate::root::Root;

/// Maximum number of tasks to read, which bounds memory.
const TASKS_MAX: usize = 1 << 14;

/// Facts about a task other than its I/O.
#[derive(Clone, Debug, Default)]
struct Facts {
    nice: Option<i32>,
    policy: Option<u32>,
    cgroup: Option<String>,
}

/// The recorded tasks. Each is read when first seen, since it may exit at any time.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    facts: FxHashMap<u32, Facts>,
}

impl Tasks {
    /// Reads the facts about a task if it is new.
    pub(crate) fn read_if_new(&mut self, root: &Root, pid: u32) {
        if self.facts.len() < TASKS_MAX && !self.facts.contains_key(&pid) {
            self.facts.insert(pid, Facts::of(root, pid));
        }
    }

    /// The tasks, by pid.
    pub(crate) fn recorded(&self, seen: &FxHashMap<u32, Task>) -> Vec<RecordedTask> {
        let mut tasks: Vec<RecordedTask> = seen
            .iter()
            .filter(|(_, task)| task.submissions.ios > 0)
            .map(|(&pid, task)| {
                let Facts { nice, policy, cgroup } = self.facts.get(&pid).cloned().unwrap_or_default();
                RecordedTask {
                    pid,
                    name: name(&task.name),
                    ios: task.submissions.ios,
                    io_priority: priority_text(task.priority),
                    nice,
                    policy,
                    cgroup,
                }
            })
            .collect();
        tasks.sort_by_key(|task| task.pid);
        tasks
    }
}

/// A task's name without its NUL padding.
pub(crate) fn name(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|letter| *letter == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// Class and level as text; `None` if no priority is set.
fn priority_text(priority: IoPriority) -> Option<String> {
    // An unset class may come with any level.
    let class = match priority.0 >> 13 {
        1 => PriorityClass::RealTime,
        2 => PriorityClass::BestEffort,
        3 => PriorityClass::Idle,
        _ => return None,
    };
    let level = priority.0 & 7;
    Some(match class {
        PriorityClass::RealTime => format!("rt:{level}"),
        PriorityClass::BestEffort => format!("be:{level}"),
        _ => "idle".to_owned(),
    })
}

impl Facts {
    fn of(root: &Root, pid: u32) -> Facts {
        let stat = root.read(&format!("proc/{pid}/stat")).unwrap_or_default();
        // The name in brackets may contain anything, so fields are counted after the last bracket, from the third.
        let fields: Vec<&str> = stat.rsplit_once(')').map_or(Vec::new(), |(_, rest)| rest.split_whitespace().collect());
        let field = |number: usize| fields.get(number - 3);
        Facts {
            nice: field(19).and_then(|text| text.parse().ok()),
            policy: field(41).and_then(|text| text.parse().ok()),
            cgroup: root.read(&format!("proc/{pid}/cgroup")).ok().and_then(|text| cgroup(&text).map(str::to_owned)),
        }
    }
}

/// The cgroup that controls I/O: that of `blkio` in version 1, otherwise that of version 2.
fn cgroup(text: &str) -> Option<&str> {
    let lines = || text.lines().filter_map(|line| line.split_once(':').and_then(|(_, rest)| rest.split_once(':')));
    let blkio = lines().find(|(controllers, _)| controllers.split(',').any(|name| name == "blkio"));
    blkio.or_else(|| lines().find(|(controllers, _)| controllers.is_empty())).map(|(_, path)| path)
}

/// Weights and limits of the cgroups of these tasks and their ancestors.
pub(crate) fn cgroups(root: &Root, tasks: &[RecordedTask]) -> BTreeMap<String, BTreeMap<String, String>> {
    let mut paths = BTreeSet::new();
    for path in tasks.iter().filter_map(|task| task.cgroup.as_deref()) {
        let ends = path.char_indices().filter(|(index, letter)| *letter == '/' && *index > 0).map(|(index, _)| index);
        paths.extend(ends.chain([path.len()]).map(|end| &path[..end]));
    }
    let hierarchy = IoHierarchy::find(root);
    let Some(folder) = &hierarchy.mounted_on else { return BTreeMap::new() };
    let settings = |path: &str| {
        let mut found = files(root, &format!("{folder}{path}"), |file| hierarchy.is_setting(file));
        found.retain(|_, text| !text.is_empty());
        Some(found).filter(|found| !found.is_empty())
    };
    paths.into_iter().filter_map(|path| Some((path.to_owned(), settings(path)?))).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn priorities_are_a_class_with_a_level() {
        for (number, words) in
            [(0, None), (4, None), (0x2004, Some("rt:4")), (0x4000, Some("be:0")), (0x6007, Some("idle"))]
        {
            assert_eq!(priority_text(IoPriority(number)).as_deref(), words, "{number:#x}");
        }
    }

    #[test]
    fn the_cgroup_for_io_is_that_of_blkio_or_of_version_2() {
        assert_eq!(cgroup("0::/user.slice/a\n"), Some("/user.slice/a"));
        assert_eq!(cgroup("4:cpu,cpuacct:/c\n3:blkio:/b\n0::/a\n"), Some("/b"));
        assert_eq!(cgroup("4:cpu,cpuacct:/c\n"), None);
    }

    #[test]
    fn a_task_has_its_facts_and_its_cgroups_their_weights() {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in [
            (
                "proc/7/stat",
                "7 (a) b) S 1 7 7 0 -1 4194304 1 0 0 0 0 0 0 0 20 5 1 0 100 1 1 1 1 1 1 1 1 1 1 1 1 0 0 0 17 0 0 3 0 0",
            ),
            ("proc/7/cgroup", "0::/a/b\n"),
            ("proc/self/mountinfo", "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
            ("sys/fs/cgroup/cgroup.controllers", "cpu io memory\n"),
            ("sys/fs/cgroup/a/io.weight", "default 200\n"),
            ("sys/fs/cgroup/a/memory.max", "max\n"),
            ("sys/fs/cgroup/a/b/io.max", "8:0 rbps=1000\n"),
        ] {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let root = Root::open(folder.path()).unwrap();
        let facts = Facts::of(&root, 7);
        assert_eq!((facts.nice, facts.policy, facts.cgroup.as_deref()), (Some(5), Some(3), Some("/a/b")));
        assert!(Facts::of(&root, 8).nice.is_none(), "it has ended");
        let task = RecordedTask { cgroup: facts.cgroup, ..RecordedTask::default() };
        let found = cgroups(&root, &[task]);
        assert_eq!(found.keys().collect::<Vec<_>>(), ["/a", "/a/b"]);
        assert_eq!(found["/a"], [("io.weight".to_owned(), "default 200".to_owned())].into());
    }
}
