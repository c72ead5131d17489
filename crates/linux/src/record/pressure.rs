//! Whether tasks are blocked while they submit: then the queue hides how many I/Os they want outstanding (RP15).
//!
//! Of each task and of the device the moments of submission, of getting a request, and of completion are added up, each times
//! its sectors. The difference of two sums is the time between these moments, of all sectors together, whichever I/O is which and
//! on whichever CPU it was seen.

use rustc_hash::FxHashMap;

/// Share of the time of I/Os for which their tasks were blocked.
const SHARE_MIN: f64 = 0.05;
/// I/Os outstanding on average: a task that waits for each I/O has at most one.
const DEPTH_MIN: f64 = 1.5;
/// I/Os of a task before anything is said of it.
const IOS_MIN: u64 = 200;

/// Moments of one kind, added up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Moments {
    /// Sectors that were there.
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

    /// Sectors times nanoseconds from here to the moments `later`; what has not been there by `now_ns` counts until then.
    fn until(&self, later: &Moments, now_ns: u64) -> f64 {
        let missing = i128::from(self.sectors) - i128::from(later.sectors);
        (later.sum + missing * i128::from(now_ns) - self.sum) as f64
    }
}

/// What is added up of one task.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Submissions {
    /// I/Os.
    pub(crate) ios: u64,
    /// When they were queued.
    pub(crate) queued: Moments,
    /// When they got a request, or were merged into one.
    pub(crate) taken: Moments,
    /// When the first was queued.
    pub(crate) first_ns: u64,
    /// When the last one was.
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

    /// The last I/O was refused, and is none.
    pub(crate) fn give_back(&mut self, time_ns: u64, bytes: u32) {
        self.ios = self.ios.saturating_sub(1);
        self.taken.add(time_ns, bytes);
    }

    /// Takes in what another CPU saw of the task.
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
    /// Share of the time of its I/Os.
    pub(crate) share: f64,
}

/// The tasks that are blocked so much that their depth is not known, as far as it was seen by `now_ns`.
pub(crate) fn blocked(tasks: &FxHashMap<u32, Submissions>, completed: &Moments, now_ns: u64) -> Vec<Blocked> {
    let mut all = Submissions::default();
    tasks.values().for_each(|task| all.merge(task));
    let waiting = all.queued.until(&all.taken, now_ns).max(0.0);
    let total = all.queued.until(completed, now_ns);
    // Sector times nanoseconds at the device, for one sector.
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

    /// A task that keeps `depth` outstanding over a queue with `tags`, where each I/O takes 100 us.
    fn run(depth: u64, tags: u64, think_ns: u64) -> (Submissions, Moments) {
        let (mut task, mut completed) = (Submissions::default(), Moments::default());
        let service_ns = 100_000;
        // Completions of the tags, the earliest of which is taken next.
        let mut free_ns = vec![0; tags as usize];
        let mut done_ns = vec![0; depth as usize];
        let mut now_ns = 0;
        for number in 0..2000 {
            // The task waits until one of its own completes, and submits one at a time.
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
    fn what_two_cpus_saw_of_a_task_is_one() {
        let (task, completed) = run(8, 4, 0);
        let (mut submitted, mut taken) = (task, task);
        (submitted.taken, taken.queued, taken.ios) = (Moments::default(), Moments::default(), 0);
        taken.merge(&submitted);
        assert_eq!(taken, task);
        assert_eq!(shares(&[(7, taken)], &completed).len(), 1);
    }
}
