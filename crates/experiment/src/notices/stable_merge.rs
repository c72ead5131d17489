//! A notice about jobs that bfq merges into one queue because they start together, which a comparison rarely intends.
//!
//! Rules: BFQ-109, as implemented in `blk::schedulers::bfq::stable_merge`.

use hoistway_blk::ground::{Kernel, Nanos};
use hoistway_blk::schedulers::{BFQ, BfqVariant};
use hoistway_load::process::start_times;
use hoistway_load::{Load, Process};

/// A queue merges with the queue of a process that started at most this long before.
const MERGE_WITHIN: Nanos = Nanos::from_millis(180);
/// A queue that starts later than this after the merge candidate replaces it.
const REPLACE_AFTER: Nanos = Nanos::from_millis(600);

/// A notice if bfq is among the schedulers and gives different jobs one queue.
pub(crate) fn notice(workload: &Load, schedulers: &[String], kernel: Kernel) -> Option<String> {
    if !BfqVariant::of(kernel).stable_merging || !schedulers.iter().any(|name| name == BFQ.name) {
        return None;
    }
    let mut jobs = merged_jobs(workload);
    jobs.sort_unstable();
    jobs.dedup();
    let names: Vec<_> = jobs.iter().map(|&(_, name)| name).collect();
    let names = if names.len() > 3 { format!("{} jobs", names.len()) } else { names.join(", ") };
    (!jobs.is_empty()).then(|| {
        format!(
            "bfq since Linux 5.13 treats processes of a cgroup that start within 180 ms as one application ({names}): \
             they share a queue and are not isolated from each other. Use startdelay=1 or a cgroup of its own to separate a job."
        )
    })
}

/// Number and name of each job with a process whose queue is merged with that of another job.
fn merged_jobs(workload: &Load) -> Vec<(usize, &str)> {
    // The time that fio takes to fork a process is negligible here.
    let starts = start_times(workload.processes.iter().map(|process| &process.schedule), Nanos::ZERO);
    let mut processes: Vec<(&Process, Nanos)> = workload.processes.iter().zip(starts).collect();
    processes.sort_by_key(|&(_, start)| start);
    let mut heads: Vec<(&Process, Nanos)> = Vec::new();
    let mut merged = Vec::new();
    for (process, start) in processes {
        let Some((head, head_start)) = heads.iter_mut().find(|(head, _)| may_merge(head, process)) else {
            heads.push((process, start));
            continue;
        };
        let delay = Nanos(start.0 - head_start.0);
        if delay > REPLACE_AFTER {
            (*head, *head_start) = (process, start);
        } else if delay <= MERGE_WITHIN && head.schedule.job != process.schedule.job {
            merged.extend([*head, process].map(|member| (member.schedule.job, member.name.as_str())));
        }
    }
    merged
}

/// Whether bfq would merge the queues of two processes that start together.
fn may_merge(first: &Process, second: &Process) -> bool {
    first.schedule.phase == second.schedule.phase
        && first.files.iter().any(|file| second.files.contains(file))
        && first.standing.cgroup == second.standing.cgroup
        && first.standing.io_priority == second.standing.io_priority
        && first.standing.nice == second.standing.nice
}

#[cfg(test)]
mod tests {
    use hoistway_fio::{Environment, JobFile};

    use super::*;

    fn notice_of(first: &str, second: &str, kernel: Kernel) -> Option<String> {
        let text = format!("[global]\nfilename=/dev/sda\ndirect=1\n[a]\n{first}\n[b]\n{second}\n");
        let workload = JobFile::parse(&text, "a.fio", &Environment::empty()).unwrap().load;
        notice(&workload, &["none".to_owned(), "bfq".to_owned()], kernel)
    }

    #[test]
    fn jobs_that_bfq_gives_one_queue_are_reported() {
        let text = notice_of("", "start=180ms", Kernel::DEFAULT).unwrap();
        assert!(text.contains("(a, b)"), "{text}");
        assert_eq!(notice_of("", "", Kernel::V5_10), None);
    }

    #[test]
    fn jobs_that_begin_apart_or_differ_in_group_or_priority_are_not() {
        for second in
            ["start=200ms", "startdelay=20ms", "startdelay=1", "cgroup=b", "prioclass=3", "nice=5", "stonewall"]
        {
            assert_eq!(notice_of("", second, Kernel::DEFAULT), None, "{second}");
        }
        let workload = JobFile::parse("[a]\nfilename=/dev/sda\ndirect=1\nnumjobs=4\n", "a.fio", &Environment::empty());
        assert_eq!(notice(&workload.unwrap().load, &["bfq".to_owned()], Kernel::DEFAULT), None, "clones of one job");
    }
}
