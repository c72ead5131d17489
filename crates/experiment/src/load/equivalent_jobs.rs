//! Finds equivalent jobs, which verdicts treat as one group.

use hmac_sha256::Hash;
use hoistway_load::{Load, Process};
use serde_json::Value;

/// For each job the number of the first equivalent one, which may be its own; `None` if no other job is equivalent. Processes
/// of equivalent jobs differ only in names, files, offsets in files, start delays and cgroups.
pub(crate) fn equivalent_jobs(workload: &Load) -> Vec<Option<u32>> {
    let jobs = workload.processes.iter().map(|process| process.schedule.job + 1).max().unwrap_or(0);
    if jobs < 2 {
        return vec![None; jobs];
    }
    let job_processes = |job| workload.processes.iter().filter(move |process: &&Process| process.schedule.job == job);
    let hashes: Vec<Option<BehaviourHash>> = (0..jobs).map(|job| behaviour_of(job_processes(job))).collect();
    let first_equivalent = |job: usize| {
        let own_hash = hashes[job]?;
        let mut equivalents = (0..jobs).filter(|&other| hashes[other] == Some(own_hash));
        let first = equivalents.next()?;
        // A single job is not a group.
        (first != job || equivalents.next().is_some()).then_some(first as u32)
    };
    (0..jobs).map(first_equivalent).collect()
}

/// A hash of the behaviour of a job's processes. Hashes stay small where there are thousands of processes.
type BehaviourHash = [u8; 32];

/// The hash of a job with these processes, if it has any.
fn behaviour_of<'a>(processes: impl Iterator<Item = &'a Process>) -> Option<BehaviourHash> {
    let mut processes = processes.peekable();
    processes.peek()?;
    let mut hash = Hash::new();
    for process in processes {
        hash.update(behaviour(process)?.to_string());
    }
    Some(hash.finalize())
}

/// The behaviour of a process without its name, files and offsets. `None` for a replay: recorded streams are never
/// equivalent.
fn behaviour(process: &Process) -> Option<Value> {
    if process.plan.is_replay() {
        return None;
    }
    let mut value = serde_json::to_value(process).ok()?;
    for path in [
        "/name",
        "/options",
        "/files",
        "/schedule/job",
        "/schedule/clone",
        "/schedule/group",
        "/schedule/start_delay",
        "/schedule/polled_start",
        "/standing/cgroup",
        "/plan/origin",
        "/plan/pattern/volume",
        "/plan/pattern/seed",
    ] {
        if let Some(field) = value.pointer_mut(path) {
            *field = Value::Null;
        }
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use hoistway_fio::{Environment, JobFile};

    use super::*;

    fn first_equivalents(text: &str) -> Vec<Option<u32>> {
        equivalent_jobs(&JobFile::parse(text, "a.fio", &Environment::empty()).unwrap().load)
    }

    #[test]
    fn jobs_that_differ_only_in_names_files_and_places_are_equivalent() {
        let text = "[global]\ndirect=1\nrw=randread\n[a]\nfilename=/dev/vda\n[b]\nfilename=/dev/vdb\noffset=1g\ncgroup=b\n\
                    [log]\nfilename=/dev/vda\nrw=write\n[c]\nfilename=/dev/vda\nnumjobs=2\n[d]\nfilename=/dev/vdc\nstartdelay=1\n";
        assert_eq!(first_equivalents(text), [Some(0), Some(0), None, None, Some(0)]);
    }

    #[test]
    fn jobs_with_other_sizes_depths_or_weights_are_not() {
        for option in
            ["bs=8k", "iodepth=2\nioengine=libaio", "cgroup=g\ncgroup_weight=200", "rw=randwrite", "rate_iops=10"]
        {
            let text = format!("[global]\ndirect=1\nrw=randread\nfilename=/dev/sda\n[a]\n[b]\n{option}\n");
            assert_eq!(first_equivalents(&text), [None, None], "{option}");
        }
    }
}
