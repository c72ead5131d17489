//! What is looked at while the readers read: the time, the size, and the tasks.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;
use rustix::time::ClockId;

use super::options::{End, Options, Progress};
use super::pressure::{self, Moments, Submissions};
use super::reader::{Reports, Task};
use super::target::Target;
use super::tasks::{self, Tasks};
use crate::root::Root;

/// Between two looks at the time and the size.
const LOOK: Duration = Duration::from_millis(50);
/// Between two looks at the tasks that are blocked.
const CHECK: Duration = Duration::from_secs(1);

/// The thread that looks at time, size and tasks while others read.
pub(crate) struct Watching<'a> {
    root: &'a Root,
    target: &'a Target,
    options: &'a Options,
    begun: Instant,
    start_ns: u64,
    reports: &'a Reports,
    scheduler: Option<&'a str>,
    pub(crate) tasks: Tasks,
    /// When it was last looked whether tasks are blocked.
    checked: Instant,
    /// Tasks that were warned of, by name.
    named: Vec<String>,
}

impl<'a> Watching<'a> {
    pub(crate) fn new(
        root: &'a Root,
        target: &'a Target,
        scheduler: Option<&'a str>,
        options: &'a Options,
        reports: &'a Reports,
        (begun, start_ns): (Instant, u64),
    ) -> Watching<'a> {
        let (tasks, named) = (Tasks::default(), Vec::new());
        Watching { root, target, options, begun, start_ns, reports, scheduler, tasks, checked: begun, named }
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
                // Which failure it was is known when the readers have ended.
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

    /// What all CPUs have seen.
    pub(crate) fn seen(&self) -> (FxHashMap<u32, Task>, Moments) {
        let (mut tasks, mut completed): (FxHashMap<u32, Task>, Moments) = Default::default();
        for seen in &self.reports.seen {
            let seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            completed.merge(&seen.completed);
            for (pid, task) in &seen.tasks {
                tasks.entry(*pid).and_modify(|known| known.merge(task)).or_insert(*task);
            }
        }
        (tasks, completed)
    }

    /// Sentences about tasks that were not blocked before, as far as it was looked.
    fn check(&mut self) -> Vec<String> {
        // Without all events nobody knows who waits for what.
        if self.checked.elapsed() < CHECK || self.reports.lost.load(Ordering::Relaxed) > 0 {
            return Vec::new();
        }
        self.checked = Instant::now();
        let now_ns = monotonic_ns() - self.start_ns;
        let (tasks, completed) = self.seen();
        let submissions = streams(&tasks);
        let mut warnings = Vec::new();
        for blocked in pressure::blocked(&submissions, &completed, now_ns) {
            let name = tasks.get(&blocked.pid).map(|task| tasks::name(&task.name)).unwrap_or_default();
            if !self.named.contains(&name) {
                warnings.push(warning(&name, blocked, self.target, self.scheduler));
                self.named.push(name);
            }
        }
        warnings
    }
}

/// Tasks by pid, with the workers of io_uring as part of the task that their name tells (RP3).
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

/// What to record instead of a task that is blocked.
fn warning(name: &str, blocked: pressure::Blocked, target: &Target, scheduler: Option<&str>) -> String {
    let queue = format!("/sys/block/{}/queue", target.name);
    let under = match scheduler {
        // Without a scheduler there are no more requests than the device has tags.
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

/// Time of the clock that events have.
pub(crate) fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
