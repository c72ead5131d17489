//! Doubts about loads whose results depend on an assumption of the model, or that never reached the device.

use std::collections::{BTreeMap, BTreeSet};

use hoistway_answer::document::Run;
use hoistway_device::{Parameters, Preset};
use hoistway_load::{Load, Process};

/// A command that has waited as long as the disk allows ends within this multiple of that time.
const AGE_LIMIT_FACTOR_MAX: f64 = 1.25;

/// Returns a clause for each such limit of the model that the load crosses. With guests all I/O goes to one device.
pub(crate) fn doubts(workload: &Load, devices: &[Preset], in_guests: bool, runs: &[Run]) -> Vec<String> {
    let mut doubts = Vec::new();
    // Disks of one model are named once.
    let mut full_caches = BTreeMap::<String, u32>::new();
    for (file, preset) in (0..).zip(devices) {
        let users: Vec<&Process> =
            workload.processes.iter().filter(|process| in_guests || process.files.contains(&file)).collect();
        let of_disk = [sequential_run_doubt(&users, preset), age_limit_doubt(&users, preset, runs)];
        if let Some((cache, outstanding)) = full_cache(&users, preset) {
            let most = full_caches.entry(cache).or_default();
            *most = outstanding.max(*most);
        }
        for doubt in of_disk.into_iter().flatten() {
            if !doubts.contains(&doubt) {
                doubts.push(doubt);
            }
        }
    }
    let beyond_fit =
        |(cache, most)| format!("{cache}, which was fitted with one read outstanding; here up to {most} are");
    doubts.extend(full_caches.into_iter().map(beyond_fit));
    doubts.extend(page_cache_doubt(workload, runs));
    doubts
}

/// Whether a disk has to choose between a sequential run and random reads that wait at the same time.
fn sequential_run_doubt(users: &[&Process], preset: &Preset) -> Option<String> {
    let Parameters::Hdd(parameters) = preset.parameters() else { return None };
    let limit_ms = parameters.run_limit_ms?;
    // With a queue depth of one, no request of the run waits in the drive while the random read does.
    let queues_sequential_io =
        |process: &&&Process| !process.plan.is_random() && (process.issue.depth > 1 || !process.caching.direct);
    let readers = || users.iter().filter(|process| reads(process));
    let random = names(readers().filter(|process| process.plan.is_random()));
    let sequential = names(readers().filter(queues_sequential_io));
    (!random.is_empty() && !sequential.is_empty()).then(|| {
        format!(
            "how often the disk itself turns from {sequential} to {random} ({limit_ms} ms, hdd.run_limit_ms of {}) was fitted to one \
             published ratio and decides the random reads",
            preset.name
        )
    })
}

/// What a disk does that has to choose between several reads and the writes for which its cache has no room, and how many reads it has.
fn full_cache(users: &[&Process], preset: &Preset) -> Option<(String, u32)> {
    let Parameters::Hdd(parameters) = preset.parameters() else { return None };
    let turn_ms = parameters.write_cache.as_ref()?.read_waits_ms;
    let readers = || users.iter().filter(|process| reads(process));
    let outstanding: u32 = readers().map(|process| process.issue.depth).sum();
    let writers = names(users.iter().filter(|process| process.plan.modifies() && process.pace.think.is_none()));
    (outstanding > 1 && !writers.is_empty()).then(|| {
        let cache = format!(
            "once its cache is full, the disk turns to the writes of {writers} for {turn_ms} ms after each read \
             (hdd.write_cache.read_waits_ms of {})",
            preset.name
        );
        (cache, outstanding)
    })
}

/// Whether the slowest I/Os took as long as the disk lets a command wait while it serves nearer ones.
fn age_limit_doubt(users: &[&Process], preset: &Preset, runs: &[Run]) -> Option<String> {
    let Parameters::Hdd(parameters) = preset.parameters() else { return None };
    let limit_ms = parameters.queue_age_limit_ms;
    let is_at_limit = |p99_ns: u64| (1.0..AGE_LIMIT_FACTOR_MAX).contains(&(p99_ns as f64 / 1e6 / limit_ms));
    let mut waiting = BTreeSet::new();
    let mut labels = BTreeSet::new();
    for run in runs {
        let is_user = |name: &str| users.iter().any(|process| process.name == name);
        for job in run.jobs.iter().filter(|job| is_user(&job.name)) {
            if job.operations.iter().any(|operation| operation.ios > 0 && is_at_limit(operation.lat_ns.p99)) {
                waiting.insert(job.name.as_str());
                labels.insert(run.variant.label.as_str());
            }
        }
    }
    (!waiting.is_empty()).then(|| {
        let all = runs.iter().all(|run| labels.contains(run.variant.label.as_str()));
        let under = if all { String::new() } else { format!(" under {}", Vec::from_iter(labels).join(", ")) };
        format!(
            "the p99 of {}{under} is how long the disk lets a command wait while it serves nearer ones ({limit_ms} ms, \
             hdd.queue_age_limit_ms of {}), which is assumed",
            Vec::from_iter(waiting).join(", "),
            preset.name
        )
    })
}

fn reads(process: &Process) -> bool {
    process.plan.is_replay() || process.plan.pattern.direction.lanes().contains(&0)
}

fn names<'a>(processes: impl Iterator<Item = &'a &'a Process>) -> String {
    let names: BTreeSet<&str> = processes.map(|process| process.name.as_str()).collect();
    names.into_iter().collect::<Vec<_>>().join(", ")
}

/// Whether everything that was written stayed in memory.
fn page_cache_doubt(workload: &Load, runs: &[Run]) -> Option<String> {
    if workload.processes.iter().any(|process| process.caching.direct && process.plan.modifies()) {
        return None;
    }
    let unwritten = runs.iter().filter(|run| {
        run.page_cache.as_ref().is_some_and(|cache| {
            cache.written_bytes > 0 && cache.written_back_bytes + cache.synced_bytes + cache.discarded_bytes == 0
        })
    });
    let labels: BTreeSet<&str> = unwritten.map(|run| run.variant.label.as_str()).collect();
    if labels.is_empty() {
        return None;
    }
    let all = runs.iter().all(|run| labels.contains(run.variant.label.as_str()));
    let under = labels.into_iter().collect::<Vec<_>>().join(", ");
    let variants_text = if all { String::new() } else { format!(" under {under}") };
    Some(format!(
        "nothing that was written reached the disk{variants_text}: it stayed in the page cache, so write figures are those of memory (a runtime \
         of more than 30 s, fsync or direct=1 shows the disk)"
    ))
}

#[cfg(test)]
mod tests {
    use hoistway_fio::{Environment, JobFile};
    use proptest::prelude::*;

    use super::*;
    use crate::comparison::{Comparison, Load as Asked};

    /// Each file of the job is a disk of this model.
    fn doubts_of(job: &str, device: &str) -> Vec<String> {
        let workload = JobFile::parse(job, "a.fio", &Environment::empty()).unwrap().load;
        let devices = vec![Preset::builtin(device).unwrap(); workload.files.len()];
        doubts(&workload, &devices, false, &[])
    }

    proptest! {
        /// The result depends on how the drive ages commands only if random reads compete with a sequential reader that
        /// keeps a queue.
        #[test]
        fn the_limit_of_a_run_is_named_where_it_decides(
            first in 0..4_usize, second in 0..4_usize, depth in 1..9_u32, is_disk in any::<bool>(),
        ) {
            let modes = ["read", "write", "randread", "randwrite"];
            let head = "[global]\nfilename=/dev/sda\ndirect=1\nioengine=libaio\n";
            let (a, b) = (modes[first], modes[second]);
            let job = format!("{head}iodepth={depth}\n[a]\nrw={a}\n[b]\nrw={b}\n");
            let decides = is_disk && depth > 1 && [(a, b), (b, a)].contains(&("read", "randread"));
            let found = doubts_of(&job, if is_disk { "hdd" } else { "sata-ssd" });
            prop_assert_eq!(found.iter().any(|doubt| doubt.contains("run_limit_ms")), decides, "{} {:?}", job, found);
        }

        /// The turns of reads and writes were fitted with one read outstanding: more of them beside writes are a guess.
        #[test]
        fn the_turn_of_writes_is_named_where_several_reads_are_outstanding(
            readers in 0..3_u32, depth in 1..4_u32, writes in any::<bool>(), thinks in any::<bool>(), is_disk in any::<bool>(),
        ) {
            let mut job = format!("[global]\nfilename=/dev/sda\ndirect=1\nioengine=libaio\niodepth={depth}\n[w]\n");
            job += if writes { "rw=randwrite\n" } else { "rw=read\nnumjobs=1\nio_size=4k\niodepth=1\n" };
            job += if thinks { "thinktime=100\n" } else { "" };
            if readers > 0 {
                job += &format!("[r]\nrw=randread\nnumjobs={readers}\n");
            }
            let decides = is_disk && writes && !thinks && readers * depth > 1;
            let found = doubts_of(&job, if is_disk { "hdd" } else { "sata-ssd" });
            prop_assert_eq!(found.iter().any(|doubt| doubt.contains("read_waits_ms")), decides, "{} {:?}", job, found);
        }
    }

    #[test]
    fn disks_of_one_model_are_one_doubt_with_the_most_reads_of_any() {
        let job = "[global]\ndirect=1\nioengine=libaio\n[w]\nrw=randwrite\nfilename=/dev/sda:/dev/sdb\n\
                   [a]\nrw=randread\niodepth=4\nfilename=/dev/sda\n[b]\nrw=randread\niodepth=6\nfilename=/dev/sdb\n";
        let found = doubts_of(job, "hdd");
        let caches: Vec<_> = found.iter().filter(|doubt| doubt.contains("read_waits_ms")).collect();
        assert!(caches.len() == 1 && caches[0].ends_with("here up to 6 are"), "{found:?}");
    }

    #[test]
    fn the_limit_of_age_is_named_where_p99_reaches_it() {
        let said = |readers: u32, device: &str| {
            let head = "[global]\nfilename=/dev/sda\ndirect=1\nioengine=libaio\nruntime=10\ntime_based\n";
            let text = format!(
                "{head}[stream]\nrw=write\nbs=128k\niodepth=8\n[random]\nrw=randread\nbs=64k\nnumjobs={readers}\n"
            );
            let asked = Comparison {
                load: Asked::text(&text),
                devices: vec![device.into()],
                schedulers: vec!["none".into()],
                repeats: 1,
                ..Comparison::default()
            };
            let document = asked.run(&crate::Alone).unwrap();
            document.doubts.iter().any(|doubt| doubt.contains("the p99 of random is how long"))
        };
        assert!(said(4, "laptop-hdd") && said(4, "hdd"), "reads near the stream go first");
        assert!(!said(1, "hdd"), "one read has no nearer one before it");
        assert!(!said(4, "sata-ssd"));
    }

    #[test]
    fn writes_that_stay_in_memory_are_said_to() {
        let said = |options: &str| {
            let text = format!("[a]\nfilename=/dev/sda\nrw=write\nbs=4k\nsize=8m\n{options}\n");
            let asked =
                Comparison { load: Asked::text(&text), devices: vec!["sata-ssd".into()], ..Comparison::default() };
            let document = asked.run(&crate::Alone).unwrap();
            document.doubts.iter().any(|doubt| doubt.contains("nothing that was written reached the disk"))
        };
        assert!(said(""));
        assert!(!said("direct=1") && !said("end_fsync=1"));
    }
}
