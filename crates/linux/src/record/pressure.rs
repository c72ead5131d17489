//! Detects tasks that block during submission: then the queue hides the depth that they want (RP15).
//!
//! For each task and for the device, the times of submission, of getting a request and of completion are summed, weighted by
//! sectors. The difference of two sums is the total time between these points for all sectors, without matching I/Os, and
//! independent of the CPUs on which they were seen.

use rustc_hash::FxHashMap;

/// Minimum share of the time of I/Os during which their tasks were blocked.
const SHARE_MIN: f64 = 0.05;
/// Minimum mean number of outstanding I/Os: a task that waits for each I/O has at most one.
const DEPTH_MIN: f64 = 1.5;
/// Minimum I/Os of a task for a warning.
const IOS_MIN: u64 = 200;

/// A sum of times of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Moments {
    /// Sectors counted.
    sectors: u64,
    /// Sectors times nanoseconds.
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

    /// Sectors times nanoseconds from these times to the times `later`; sectors that have not arrived there by `now_ns`
    /// count until then.
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
    /// Times of getting a request, or of being merged into one.
    pub(crate) taken: Moments,
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

    /// The last I/O was refused, so it does not count.
    pub(crate) fn give_back(&mut self, time_ns: u64, bytes: u32) {
        self.ios = self.ios.saturating_sub(1);
        self.taken.add(time_ns, bytes);
    }

    /// Adds the sums of the same task on another CPU.
    pub(crate) fn merge(&mut self, other: &Submissions) {
        if other.ios > 0 {
            self.first_ns = if self.ios == 0 { other.first_ns } else { self.first_ns.min(other.first_ns) };
            self.last_ns = self.last_ns.max(other.last_ns);
        }
        self.ios += other.ios;
        self.queued.merge(&other.queued);
        self.taken.merge(&other.taken);
    }
}

/// A task that was blocked.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Blocked {
    pub(crate) pid: u32,
    /// Share of the time of its I/Os during which it was blocked.
    pub(crate) share: f64,
}

/// The tasks that are blocked so much that their depth is unknown, based on events until `now_ns`.
pub(crate) fn blocked(tasks: &FxHashMap<u32, Submissions>, completed: &Moments, now_ns: u64) -> Vec<Blocked> {
    let mut all = Submissions::default();
    tasks.values().for_each(|task| all.merge(task));
    let waiting = all.queued.until(&all.taken, now_ns).max(0.0);
    let total = all.queued.until(completed, now_ns);
    // Time at the device per sector, ns.
    let device = (total - waiting).max(0.0) / all.queued.sectors.max(1) as f64;
    let mut found: Vec<Blocked> = tasks
        .iter()
        .filter(|(_, task)| task.ios >= IOS_MIN && task.queued.sectors > 0)
        .filter_map(|(pid, task)| {
            let waiting = task.queued.until(&task.taken, now_ns);
            let total = waiting + device * task.queued.sectors as f64;
            let sectors_of_one = task.queued.sectors as f64 / task.ios as f64;
            let elapsed = task.last_ns.saturating_sub(task.first_ns) as f64;
            let (share, depth) = (waiting / total, total / sectors_of_one / elapsed);
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
            task.taken.add(now_ns, 4096);
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
            task.taken.add(number * 1000 + 500, 4096);
            completed.add(number * 1000 + 900, 4096);
        }
        assert_eq!(shares(&[(7, task)], &completed), []);
    }

    #[test]
    fn the_views_of_a_task_from_two_cpus_are_merged() {
        let (task, completed) = run(8, 4, 0);
        let (mut submitted, mut taken) = (task, task);
        (submitted.taken, taken.queued, taken.ios) = (Moments::default(), Moments::default(), 0);
        taken.merge(&submitted);
        assert_eq!(taken, task);
        assert_eq!(shares(&[(7, taken)], &completed).len(), 1);
    }
}
