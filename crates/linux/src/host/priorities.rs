//! Tasks whose I/O priority was set explicitly.
//!
//! procfs does not show I/O priorities, and ioprio_get(2) would need `unsafe`, so `ionice` of util-linux is run instead. A
//! dump stores its output in a file.

use std::path::Path;
use std::process::{Command, Stdio};

use serde::Serialize;

use crate::root::Root;

/// The file with the priorities in a dump: one line each, `PID CLASS LEVEL NAME`.
pub const PRIORITIES_FILE: &str = "hoistway/priorities";

/// A task and its I/O priority.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct TaskPriority {
    /// Its process ID.
    pub pid: u32,
    /// The kernel's name of the task.
    pub name: String,
    /// `realtime`, `best-effort` or `idle`.
    pub class: String,
    /// Its level in the class, 0 (highest) to 7; `None` for idle.
    pub level: Option<u8>,
}

impl TaskPriority {
    /// The task as a line of [`PRIORITIES_FILE`].
    pub(crate) fn line(&self) -> String {
        let level = self.level.map_or_else(|| "-".to_owned(), |level| level.to_string());
        format!("{} {} {level} {}\n", self.pid, self.class, self.name.replace('\n', " "))
    }

    fn from_line(line: &str) -> Option<Self> {
        let mut parts = line.splitn(4, ' ');
        let (pid, class, level) = (parts.next()?.parse().ok()?, parts.next()?.to_owned(), parts.next()?);
        Some(Self { pid, class, level: level.parse().ok(), name: parts.next()?.to_owned() })
    }
}

/// The priorities in a dump.
pub(super) fn from_dump(root: &Root) -> Vec<TaskPriority> {
    let text = root.read(PRIORITIES_FILE).unwrap_or_default();
    text.lines().filter_map(TaskPriority::from_line).collect()
}

/// The processes of the live system whose I/O priority differs from the one that their nice value implies. Empty without
/// `ionice`.
#[must_use]
pub fn live_priorities() -> Vec<TaskPriority> {
    let Ok(root) = Root::open(Path::new("/")) else { return Vec::new() };
    let names = root.names("proc").unwrap_or_default();
    let has_program = |pid: &u32| root.read(&format!("proc/{pid}/cmdline")).is_ok_and(|line| !line.is_empty());
    let pids: Vec<u32> = names.iter().filter_map(|name| name.parse().ok()).filter(has_program).collect();
    let mut found = Vec::new();
    for batch in pids.chunks(BATCH_MAX) {
        let mut rest = batch;
        while !rest.is_empty() {
            let Some(lines) = ionice(rest) else { return found };
            let printed = lines.len().min(rest.len());
            found.extend(rest.iter().zip(&lines).filter_map(|(&pid, line)| task_priority(&root, pid, line)));
            // `ionice` stops at a process that has ended.
            rest = rest.get(printed + 1..).unwrap_or_default();
        }
    }
    found
}

/// Maximum processes per call of `ionice`.
const BATCH_MAX: usize = 512;

/// The lines that `ionice` prints for these processes, up to the first error.
fn ionice(pids: &[u32]) -> Option<Vec<String>> {
    let pids = pids.iter().map(u32::to_string);
    let mut command = Command::new("ionice");
    command.arg("-p").args(pids).env("LC_ALL", "C").stdin(Stdio::null());
    let output = command.output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
}

fn task_priority(root: &Root, pid: u32, line: &str) -> Option<TaskPriority> {
    let (class, level) = parse_ionice_line(line)?;
    let stat = root.read(&format!("proc/{pid}/stat")).ok()?;
    if (class, level) == implied_by_nice(&stat)? {
        return None;
    }
    let name = root.read(&format!("proc/{pid}/comm")).ok()?.trim().to_owned();
    Some(TaskPriority { pid, name, class: class.to_owned(), level })
}

/// Parses a line of `ionice`: `best-effort: prio 4`, `idle`. `None` if the task has no priority of its own.
fn parse_ionice_line(line: &str) -> Option<(&'static str, Option<u8>)> {
    let (class, level) = line.trim().split_once(": prio ").unwrap_or((line.trim(), ""));
    match class {
        "realtime" => Some(("realtime", level.parse().ok())),
        "best-effort" => Some(("best-effort", level.parse().ok())),
        "idle" => Some(("idle", None)),
        _ => None,
    }
}

/// The priority implied by a task's nice value and policy in `/proc/PID/stat`, which `ionice` shows since Linux 5.18.
fn implied_by_nice(stat: &str) -> Option<(&'static str, Option<u8>)> {
    const SCHED_FIFO_AND_RR: [&str; 2] = ["1", "2"];
    const SCHED_IDLE: &str = "5";
    // The name in brackets may contain anything; the state is the third field.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let nice: i64 = fields.get(19 - 3)?.parse().ok()?;
    let policy = *fields.get(41 - 3)?;
    let level = u8::try_from((nice + 20) / 5).ok();
    Some(match policy {
        policy if SCHED_FIFO_AND_RR.contains(&policy) => ("realtime", level),
        SCHED_IDLE => ("idle", None),
        _ => ("best-effort", level),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_priority_derived_from_nice_is_not_reported_as_chosen() {
        let stat = |nice: i32, policy: u32| {
            format!(
                "7 (a) b) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 {nice} 1 0 5 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 {policy} 0"
            )
        };
        assert_eq!(implied_by_nice(&stat(0, 0)), Some(("best-effort", Some(4))));
        assert_eq!(implied_by_nice(&stat(19, 0)), Some(("best-effort", Some(7))));
        assert_eq!(implied_by_nice(&stat(-20, 0)), Some(("best-effort", Some(0))));
        assert_eq!(implied_by_nice(&stat(0, 5)), Some(("idle", None)));
        assert_eq!(implied_by_nice("nonsense"), None);
        assert_eq!(parse_ionice_line("best-effort: prio 6"), Some(("best-effort", Some(6))));
        assert_eq!(parse_ionice_line("idle"), Some(("idle", None)));
        assert_eq!(parse_ionice_line("none: prio 0"), None);
    }

    #[test]
    fn a_line_of_a_dump_is_read_back() {
        let tasks = [("two words", Some(2)), ("x", None)].map(|(name, level)| TaskPriority {
            pid: 17,
            name: name.to_owned(),
            class: "realtime".to_owned(),
            level,
        });
        for task in tasks {
            assert_eq!(TaskPriority::from_line(task.line().trim_end()), Some(task));
        }
    }
}
