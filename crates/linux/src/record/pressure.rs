//! Detects tasks that block for a free request: then the recording does not show the queue depth they would use (RP15).
//!
//! For each task and for the device, the times of submission, of getting a request and of completion are summed, weighted by
//! sectors. The difference of two sums is the total time between these points for all sectors, so I/Os need not be matched
//! across CPUs.

use rustc_hash::FxHashMap;

/// Minimum share of the latency of I/Os that a task spends blocked, for a warning.
const SHARE_MIN: f64 = 0.05;
/// Minimum mean number of outstanding I/Os for a warning: a task that waits for each I/O has at most one.
const DEPTH_MIN: f64 = 1.5;
/// Minimum I/Os of a task for a warning.
const IOS_MIN: u64 = 200;

/// A sum of event times, weighted by sectors.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Moments {
    /// Sectors counted.
    sectors: u64,
    /// Sum of sectors times nanoseconds.
    sum: i128,
}

impl Moments {
    #[inline]
    pub(crate) fn add(&mut self, time_ns: u64, bytes: u32) {
        let sectors = u64::from(bytes / 512);
        self.sectors += sectors;
        self.sum += i128::from(sectors) * i128::from(time_ns);
    }

    pub(crate) fn merge(&mut self, other: &Moments) {
        self.sectors += other.sectors;
        self.sum += other.sum;
    }

    /// Sectors times nanoseconds from these times to those of `later`; sectors not yet in `later` count until `now_ns`.
    fn until(&self, later: &Moments, now_ns: u64) -> f64 {
        let missing = i128::from(self.sectors) - i128::from(later.sectors);
        (later.sum + missing * i128::from(now_ns) - self.sum) as f64
    }
}

/// The sums of one task.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Submissions {
    /// I/Os.
    pub(crate) ios: u64,
    /// Times of queueing.
    pub(crate) queued: Moments,
    /// Times of getting a request, or of a merge into one.
    pub(crate) allocated: Moments,
    /// When the first I/O was queued.
    pub(crate) first_ns: u64,
    /// When the last I/O was queued.
    pub(crate) last_ns: u64,
}

impl Submissions {
    #[inline]
    pub(crate) fn queue(&mut self, time_ns: u64, bytes: u32) {
        if self.ios == 0 {
            self.first_ns = time_ns;
        }
        (self.ios, self.last_ns) = (self.ios + 1, time_ns);
        self.queued.add(time_ns, bytes);
    }

    /// Takes back the last I/O, which was refused.
    pub(crate) fn retract(&mut self, time_ns: u64, bytes: u32) {
        self.ios = self.ios.saturating_sub(1);
        self.allocated.add(time_ns, bytes);
    }

    /// Adds the sums of the same task on another CPU.
    pub(crate) fn merge(&mut self, other: &Submissions) {
        if other.ios > 0 {
            self.first_ns = if self.ios == 0 { other.first_ns } else { self.first_ns.min(other.first_ns) };
            self.last_ns = self.last_ns.max(other.last_ns);
        }
        self.ios += other.ios;
        self.queued.merge(&other.queued);
        self.allocated.merge(&other.allocated);
    }
}

/// A task that was blocked.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Blocked {
    pub(crate) pid: u32,
    /// Share of the latency of its I/Os that it spent blocked.
    pub(crate) share: f64,
}

/// The tasks whose depth is hidden because they block so long, based on events until `now_ns`.
pub(crate) fn blocked(tasks: &FxHashMap<u32, Submissions>, completed: &Moments, now_ns: u64) -> Vec<Blocked> {
    let mut total_submissions = Submissions::default();
    tasks.values().for_each(|task| total_submissions.merge(task));
    let waiting = total_submissions.queued.until(&total_submissions.allocated, now_ns).max(0.0);
    let total = total_submissions.queued.until(completed, now_ns);
    // Time at the device per sector, ns.
    let device_ns_per_sector = (total - waiting).max(0.0) / total_submissions.queued.sectors.max(1) as f64;
    let mut found: Vec<Blocked> = tasks
        .iter()
        .filter(|(_, task)| task.ios >= IOS_MIN && task.queued.sectors > 0)
        .filter_map(|(pid, task)| {
            let waiting = task.queued.until(&task.allocated, now_ns);
            let total = waiting + device_ns_per_sector * task.queued.sectors as f64;
            let sectors_per_io = task.queued.sectors as f64 / task.ios as f64;
            let elapsed = task.last_ns.saturating_sub(task.first_ns) as f64;
            let (share, depth) = (waiting / total, total / sectors_per_io / elapsed);
            (share > SHARE_MIN && depth > DEPTH_MIN).then_some(Blocked { pid: *pid, share })
        })
        .collect();
    found.sort_by_key(|task| task.pid);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A task that wants a depth of `depth` over a queue with `tags`, where each I/O takes 100 us.
    fn run(depth: u64, tags: u64, think_ns: u64) -> (Submissions, Moments) {
        let (mut task, mut completed) = (Submissions::default(), Moments::default());
        let service_ns = 100_000;
        // Times at which the tags become free, of which the earliest is used next.
        let mut free_ns = vec![0; tags as usize];
        let mut done_ns = vec![0; depth as usize];
        let mut now_ns = 0;
        for number in 0..2000 {
            // The task waits for a completion of its own, and submits one I/O at a time.
            now_ns = u64::max(now_ns, done_ns[number % depth as usize] + think_ns);
            task.queue(now_ns, 4096);
            let tag = number % tags as usize;
            now_ns = now_ns.max(free_ns[tag]);
            task.allocated.add(now_ns, 4096);
            free_ns[tag] = now_ns + service_ns;
            done_ns[number % depth as usize] = free_ns[tag];
            completed.add(free_ns[tag], 4096);
        }
        (task, completed)
    }

    fn shares(tasks: &[(u32, Submissions)], completed: &Moments) -> Vec<Blocked> {
        let end_ns = tasks.iter().map(|(_, task)| task.last_ns).max().unwrap_or(0) + 1_000_000;
        blocked(&tasks.iter().copied().collect(), completed, end_ns)
    }

    #[test]
    fn a_queue_that_is_too_small_hides_the_depth() {
        let (task, completed) = run(8, 4, 0);
        let found = shares(&[(7, task)], &completed);
        assert!(found.len() == 1 && found[0].pid == 7 && found[0].share > 0.1, "{found:?}");
    }

    #[test]
    fn a_queue_that_is_large_enough_hides_nothing() {
        for (depth, tags, think_ns) in [(4, 4, 0), (4, 8, 0), (8, 8, 50_000)] {
            let (task, completed) = run(depth, tags, think_ns);
            assert_eq!(shares(&[(7, task)], &completed), [], "{depth} {tags}");
        }
    }

    #[test]
    fn a_task_that_waits_for_each_io_hides_no_depth() {
        let (mut task, mut completed) = (Submissions::default(), Moments::default());
        for number in 0..1000 {
            task.queue(number * 1000, 4096);
            task.allocated.add(number * 1000 + 500, 4096);
            completed.add(number * 1000 + 900, 4096);
        }
        assert_eq!(shares(&[(7, task)], &completed), []);
    }

    #[test]
    fn the_views_of_a_task_from_two_cpus_are_merged() {
        let (task, completed) = run(8, 4, 0);
        let (mut submitted, mut allocated) = (task, task);
        (submitted.allocated, allocated.queued, allocated.ios) = (Moments::default(), Moments::default(), 0);
        allocated.merge(&submitted);
        assert_eq!(allocated, task);
        assert_eq!(shares(&[(7, allocated)], &completed).len(), 1);
    }
}
