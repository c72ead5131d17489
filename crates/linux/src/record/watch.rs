//! Watches time, file size and tasks while the readers read.

use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use super::options::{End, Options, Progress};
use super::pressure::{self, Submissions};
use super::reader::{Cut, Reports, Seen, Task};
use super::target::Target;
use super::tasks::{self, Tasks};
use crate::root::Root;

/// Interval of checks.
const LOOK: Duration = Duration::from_millis(50);

/// The thread that checks time, size and tasks while others read.
pub(crate) struct Watching<'a> {
    root: &'a Root,
    target: &'a Target,
    options: &'a Options,
    begun: Instant,
    reports: &'a Reports,
    scheduler: Option<&'a str>,
    pub(crate) tasks: Tasks,
    /// Time until which tasks have been checked for blocking.
    checked_ns: u64,
    /// Tasks with a warning, by name.
    named: Vec<String>,
}

impl<'a> Watching<'a> {
    pub(crate) fn new(
        root: &'a Root,
        target: &'a Target,
        scheduler: Option<&'a str>,
        options: &'a Options,
        reports: &'a Reports,
        begun: Instant,
    ) -> Watching<'a> {
        let (tasks, named) = (Tasks::default(), Vec::new());
        Watching { root, target, options, begun, reports, scheduler, tasks, checked_ns: 0, named }
    }

    pub(crate) fn until_end(&mut self, is_failed: &dyn Fn() -> bool, watch: &mut dyn FnMut(&Progress) -> bool) -> End {
        loop {
            let elapsed = self.begun.elapsed();
            let bytes = self.reports.bytes.load(Ordering::Relaxed);
            self.look_at_tasks();
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
                // The error itself is known when the readers have ended.
                return End::Full;
            }
            if self.options.bytes_max.is_some_and(|most| bytes >= most) {
                return End::Size;
            }
            let left = self.options.time.map(|time| time.saturating_sub(elapsed));
            if left == Some(Duration::ZERO) {
                return End::Time;
            }
            thread::sleep(left.map_or(LOOK, |left| left.min(LOOK)));
        }
    }

    pub(crate) fn look_at_tasks(&mut self) {
        for seen in &self.reports.seen {
            let seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.tasks.keys().for_each(|pid| self.tasks.look_at(self.root, *pid));
        }
    }

    /// The tasks seen on all CPUs.
    pub(crate) fn seen(&self) -> FxHashMap<u32, Task> {
        let mut tasks = FxHashMap::default();
        for seen in &self.reports.seen {
            add(&mut tasks, &seen.lock().unwrap_or_else(PoisonError::into_inner).tasks);
        }
        tasks
    }

    /// Warnings about tasks that were not reported before.
    fn check(&mut self) -> Vec<String> {
        // With lost events, waiting times cannot be attributed.
        if self.reports.lost.load(Ordering::Relaxed) > 0 {
            return Vec::new();
        }
        let Some(Cut { at_ns, tasks, completed }) = cut(&self.reports.seen, self.checked_ns) else { return Vec::new() };
        self.checked_ns = at_ns;
        let mut warnings = Vec::new();
        for blocked in pressure::blocked(&streams(&tasks), &completed, at_ns) {
            let name = tasks.get(&blocked.pid).map(|task| tasks::name(&task.name)).unwrap_or_default();
            if !self.named.contains(&name) {
                warnings.push(warning(&name, blocked, self.target, self.scheduler));
                self.named.push(name);
            }
        }
        warnings
    }
}

/// The merged sums at the latest time that all CPUs have reached, if it is after `after_ns`.
fn cut(seen: &[Mutex<Seen>], after_ns: u64) -> Option<Cut> {
    let all: Vec<_> = seen.iter().map(|seen| seen.lock().unwrap_or_else(PoisonError::into_inner)).collect();
    let at_ns = all.iter().map(|seen| seen.cuts.back().map_or(0, |cut| cut.at_ns)).min()?;
    if at_ns <= after_ns {
        return None;
    }
    let mut sum = Cut { at_ns, ..Cut::default() };
    for seen in &all {
        let cut = seen.cuts.iter().find(|cut| cut.at_ns == at_ns)?;
        add(&mut sum.tasks, &cut.tasks);
        sum.completed.merge(&cut.completed);
    }
    Some(sum)
}

/// Adds the tasks seen on another CPU.
fn add(tasks: &mut FxHashMap<u32, Task>, more: &FxHashMap<u32, Task>) {
    for (pid, task) in more {
        tasks.entry(*pid).and_modify(|known| known.merge(task)).or_insert(*task);
    }
}

/// Tasks by pid, with io_uring workers as part of the task in their name (RP3).
fn streams(tasks: &FxHashMap<u32, Task>) -> FxHashMap<u32, Submissions> {
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
    let under = match scheduler {
        // Without a scheduler the number of requests is limited by the device's tags.
        Some("none") => format!("mq-deadline (echo mq-deadline > {queue}/scheduler) and "),
        _ => String::new(),
    };
    format!(
        "{name} ({}) waits for free requests for {:.0} % of the time of its I/Os: the depth that it wants does not show. Record \
         it with {under}a larger queue (echo 1024 > {queue}/nr_requests), or give its depth later (compare --depth {name}=N).",
        blocked.pid,
        blocked.share * 100.0
    )
}

#[cfg(test)]
mod tests {
    use super::super::pressure::Moments;
    use super::*;

    /// A CPU that has progressed this many seconds, with one completed sector in each.
    fn cpu(seconds: u64) -> Mutex<Seen> {
        let mut seen = Seen::default();
        let mut cut = Cut::default();
        for second in 1..=seconds {
            cut.completed.add(second, 512);
            cut.at_ns = second * 1_000_000_000;
            seen.cuts.push_back(cut.clone());
        }
        Mutex::new(seen)
    }

    #[test]
    fn cpus_are_compared_at_the_moment_that_all_have_reached() {
        let seen = [cpu(3), cpu(2)];
        let sum = cut(&seen, 0).unwrap();
        let mut two = Moments::default();
        [1, 1, 2, 2].into_iter().for_each(|second| two.add(second, 512));
        assert_eq!((sum.at_ns, sum.completed), (2_000_000_000, two));
        assert!(cut(&seen, 2_000_000_000).is_none(), "that was looked at");
        assert!(cut(&[cpu(3), cpu(0)], 0).is_none() && cut(&[], 0).is_none());
    }
}
