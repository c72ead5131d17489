//! Watches a running recording: time, file size and blocked tasks.

use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use super::options::{End, Options, Progress};
use super::pressure::{self, Submissions};
use super::reader::{Checkpoint, CpuReport, Reports, Task};
use super::target::Target;
use super::tasks::{self, Tasks};
use crate::root::Root;

/// Interval of checks.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// The state of the watching thread.
pub(crate) struct Watcher<'a> {
    root: &'a Root,
    target: &'a Target,
    options: &'a Options,
    started_at: Instant,
    reports: &'a Reports,
    scheduler: Option<&'a str>,
    pub(crate) tasks: Tasks,
    /// Time up to which tasks have been checked for blocking, ns since the start.
    checked_ns: u64,
    /// Names of tasks that a warning was given for.
    warned_names: Vec<String>,
}

impl<'a> Watcher<'a> {
    pub(crate) fn new(
        root: &'a Root,
        target: &'a Target,
        scheduler: Option<&'a str>,
        options: &'a Options,
        reports: &'a Reports,
        started_at: Instant,
    ) -> Watcher<'a> {
        let (tasks, warned_names) = (Tasks::default(), Vec::new());
        Watcher { root, target, options, started_at, reports, scheduler, tasks, checked_ns: 0, warned_names }
    }

    pub(crate) fn wait_for_end(
        &mut self,
        is_failed: &dyn Fn() -> bool,
        watch: &mut dyn FnMut(&Progress) -> bool,
    ) -> End {
        loop {
            let elapsed = self.started_at.elapsed();
            let bytes = self.reports.bytes.load(Ordering::Relaxed);
            self.read_new_tasks();
            let progress = Progress {
                elapsed,
                ios: self.reports.ios.load(Ordering::Relaxed),
                bytes,
                lost: self.reports.lost.load(Ordering::Relaxed),
                warnings: self.check(),
            };
            if watch(&progress) {
                return End::Caller;
            }
            if is_failed() {
                // A placeholder: the error itself is known when the readers have ended.
                return End::Full;
            }
            if self.options.bytes_max.is_some_and(|max| bytes >= max) {
                return End::Size;
            }
            let remaining = self.options.time.map(|time| time.saturating_sub(elapsed));
            if remaining == Some(Duration::ZERO) {
                return End::Time;
            }
            thread::sleep(remaining.map_or(CHECK_INTERVAL, |remaining| remaining.min(CHECK_INTERVAL)));
        }
    }

    pub(crate) fn read_new_tasks(&mut self) {
        for report in &self.reports.by_cpu {
            let report = report.lock().unwrap_or_else(PoisonError::into_inner);
            report.tasks.keys().for_each(|pid| self.tasks.read_if_new(self.root, *pid));
        }
    }

    /// The tasks seen on all CPUs.
    pub(crate) fn merged_tasks(&self) -> FxHashMap<u32, Task> {
        let mut tasks = FxHashMap::default();
        for report in &self.reports.by_cpu {
            merge_tasks(&mut tasks, &report.lock().unwrap_or_else(PoisonError::into_inner).tasks);
        }
        tasks
    }

    /// Warnings about blocked tasks, once per name.
    fn check(&mut self) -> Vec<String> {
        // After lost events, waiting times cannot be computed.
        if self.reports.lost.load(Ordering::Relaxed) > 0 {
            return Vec::new();
        }
        let Some(Checkpoint { at_ns, tasks, completed }) = merged_checkpoint(&self.reports.by_cpu, self.checked_ns)
        else {
            return Vec::new();
        };
        self.checked_ns = at_ns;
        let mut warnings = Vec::new();
        for blocked in pressure::blocked(&with_workers_merged(&tasks), &completed, at_ns) {
            let name = tasks.get(&blocked.pid).map(|task| tasks::name(&task.name)).unwrap_or_default();
            if !self.warned_names.contains(&name) {
                warnings.push(warning(&name, blocked, self.target, self.scheduler));
                self.warned_names.push(name);
            }
        }
        warnings
    }
}

/// The merged sums at the latest time that all CPUs have reached; `None` if it is not after `after_ns`.
fn merged_checkpoint(cpus: &[Mutex<CpuReport>], after_ns: u64) -> Option<Checkpoint> {
    let reports: Vec<_> = cpus.iter().map(|report| report.lock().unwrap_or_else(PoisonError::into_inner)).collect();
    let at_ns =
        reports.iter().map(|report| report.checkpoints.back().map_or(0, |checkpoint| checkpoint.at_ns)).min()?;
    if at_ns <= after_ns {
        return None;
    }
    let mut sum = Checkpoint { at_ns, ..Checkpoint::default() };
    for report in &reports {
        let checkpoint = report.checkpoints.iter().find(|checkpoint| checkpoint.at_ns == at_ns)?;
        merge_tasks(&mut sum.tasks, &checkpoint.tasks);
        sum.completed.merge(&checkpoint.completed);
    }
    Some(sum)
}

/// Adds the tasks seen on another CPU.
fn merge_tasks(tasks: &mut FxHashMap<u32, Task>, more: &FxHashMap<u32, Task>) {
    for (pid, task) in more {
        tasks.entry(*pid).and_modify(|known| known.merge(task)).or_insert(*task);
    }
}

/// Tasks by pid, with io_uring workers as part of the task in their name (RP3).
fn with_workers_merged(tasks: &FxHashMap<u32, Task>) -> FxHashMap<u32, Submissions> {
    let mut streams: FxHashMap<u32, Submissions> = FxHashMap::default();
    for (pid, task) in tasks {
        let name = tasks::name(&task.name);
        let parent = name.strip_prefix("iou-wrk-").or_else(|| name.strip_prefix("iou-sqp-"));
        let parent = parent.and_then(|pid| pid.parse().ok()).filter(|pid| tasks.contains_key(pid));
        streams.entry(parent.unwrap_or(*pid)).or_default().merge(&task.submissions);
    }
    streams
}

/// A warning about a blocked task, with advice on what to record instead.
fn warning(name: &str, blocked: pressure::Blocked, target: &Target, scheduler: Option<&str>) -> String {
    let queue = format!("/sys/block/{}/queue", target.name);
    let scheduler_advice = match scheduler {
        // Under none, the number of requests is limited to the device's tags.
        Some("none") => format!("mq-deadline (echo mq-deadline > {queue}/scheduler) and "),
        _ => String::new(),
    };
    format!(
        "{name} ({}) waits for free requests during {:.0} % of its I/O latency, which hides the queue depth it would use. Record \
         it with {scheduler_advice}a larger queue (echo 1024 > {queue}/nr_requests), or set its depth later (compare --depth {name}=N).",
        blocked.pid,
        blocked.share * 100.0
    )
}

#[cfg(test)]
mod tests {
    use super::super::pressure::Moments;
    use super::*;

    /// A CPU that has advanced by this many seconds, with one sector completed in each.
    fn cpu(seconds: u64) -> Mutex<CpuReport> {
        let mut report = CpuReport::default();
        let mut checkpoint = Checkpoint::default();
        for second in 1..=seconds {
            checkpoint.completed.add(second, 512);
            checkpoint.at_ns = second * 1_000_000_000;
            report.checkpoints.push_back(checkpoint.clone());
        }
        Mutex::new(report)
    }

    #[test]
    fn cpus_are_compared_at_the_moment_that_all_have_reached() {
        let cpus = [cpu(3), cpu(2)];
        let sum = merged_checkpoint(&cpus, 0).unwrap();
        let mut two = Moments::default();
        [1, 1, 2, 2].into_iter().for_each(|second| two.add(second, 512));
        assert_eq!((sum.at_ns, sum.completed), (2_000_000_000, two));
        assert!(merged_checkpoint(&cpus, 2_000_000_000).is_none(), "that was looked at");
        assert!(merged_checkpoint(&[cpu(3), cpu(0)], 0).is_none() && merged_checkpoint(&[], 0).is_none());
    }
}
