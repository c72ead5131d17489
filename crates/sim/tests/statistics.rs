//! What a kernel would count: of devices, of cgroups, and how often a scheduler could choose.

use crate::support::spec;
use hoistway_blk::ground::{Kernel, Nanos};
use hoistway_device::Preset;
use hoistway_fio::{Environment, JobFile};
use hoistway_measure::DiskSummary;
use hoistway_sim::{Control, Host, QueueSettings, Scenario, Write, run_with_statistics};

/// Of the only device of a job file.
fn statistics(job: &str, scheduler: &str) -> DiskSummary {
    of_all(&format!("filename=/dev/sda\n{job}"), scheduler, Vec::new()).swap_remove(0)
}

/// Of all devices of a job file, some of whose files are written meanwhile.
fn of_all(job: &str, scheduler: &str, writes: Vec<Write>) -> Vec<DiskSummary> {
    let text = format!("[global]\nioengine=libaio\ndirect=1\nsize=1g\n{job}");
    let workload = JobFile::parse(&text, "test.fio", &Environment::empty()).unwrap().load;
    let preset = Preset::builtin("intel-s3520-1600gb").unwrap();
    let scenario = Scenario {
        workload: &workload,
        devices: vec![&preset; workload.files.len()],
        guests: None,
        queue: QueueSettings { writes, ..QueueSettings::new(Kernel::V6_18, 4) },
        host: Host::builtin(Host::DEFAULT).unwrap(),
        runtime: None,
    };
    let spec = spec(scheduler, &[], 1);
    let (result, statistics) = run_with_statistics(&scenario, &spec, &Control::default()).unwrap();
    assert!(result.refused.is_empty(), "{:?}", result.refused);
    statistics.summaries(&scenario, result.simulated)
}

#[test]
fn a_device_and_its_cgroups_count_the_ios_of_their_processes() {
    let job =
        "[r]\ncgroup=a\nrw=randread\nbs=4k\nnumber_ios=200\n[w]\ncgroup=a/b\nrw=randwrite\nbs=8k\nnumber_ios=100\n";
    for scheduler in ["none", "mq-deadline", "bfq", "cfq"] {
        let disk = statistics(job, scheduler);
        assert_eq!(
            (disk.read_ios, disk.write_ios, disk.read_merges, disk.write_merges),
            (200, 100, 0, 0),
            "{scheduler}"
        );
        let io_stats: Vec<(&str, &str)> =
            disk.cgroups.iter().map(|group| (group.cgroup.as_str(), group.io_stat.as_str())).collect();
        let writes = "rbytes=0 wbytes=819200 rios=0 wios=100 dbytes=0 dios=0";
        let reads_and_writes = "rbytes=819200 wbytes=819200 rios=200 wios=100 dbytes=0 dios=0";
        assert_eq!(io_stats, [("a", reads_and_writes), ("a/b", writes)], "{scheduler}");
        let fields: Vec<u64> = disk.stat.split_whitespace().map(|field| field.parse().unwrap()).collect();
        assert_eq!([fields[0], fields[2], fields[4], fields[6]], [200, 1600, 100, 1600], "{}", disk.stat);
        assert_eq!([fields[3], fields[7], fields[10]], [disk.read_ms, disk.write_ms, disk.in_queue_ms]);
        // Two at a time, one of each process, none of them faster than the stage of the drive.
        assert!(disk.read_ms > 10 && disk.in_queue_ms >= disk.read_ms, "{}", disk.stat);
        assert!((1.0..=100.0).contains(&disk.util_percent), "{}", disk.util_percent);
    }
}

#[test]
fn a_device_that_rests_most_of_the_time_is_little_in_use() {
    // A read takes some ms, and the kernel counts in ticks.
    let disk = statistics("[r]\nrw=randread\nbs=1m\nrate_iops=40\nruntime=2\ntime_based\n", "none");
    assert!((4.0..30.0).contains(&disk.util_percent), "{}", disk.util_percent);
}

#[test]
fn a_scheduler_can_choose_only_where_requests_wait_for_it() {
    let readers = |depth| format!("[r]\nrw=randread\nbs=4k\niodepth={depth}\nnumber_ios=500\n");
    let choices = |scheduler, depth| statistics(&readers(depth), scheduler).choices;
    for scheduler in ["mq-deadline", "bfq", "cfq"] {
        assert_eq!(choices(scheduler, 1), Some(0), "{scheduler} has one request");
        let deep = choices(scheduler, 128).unwrap();
        // The drive takes 32 of 128.
        assert!((100..2000).contains(&deep), "{scheduler}: {deep}");
    }
    assert_eq!(choices("none", 128), Some(0), "there is nothing to choose");
}

#[test]
fn a_request_that_another_one_absorbed_is_no_choice_for_those_after_it() {
    // Each process reads what the other one skips, so requests grow towards each other.
    let closing_gaps = "[even]\nrw=read:4k\nbs=4k\niodepth=128\nnumber_ios=300\n\
        [odd]\nrw=read:4k\nbs=4k\noffset=4k\niodepth=128\nnumber_ios=300\n";
    let with_lone_reads = format!("{closing_gaps}[lone]\nstonewall\nrw=randread\nbs=4k\nnumber_ios=500\n");
    for scheduler in ["mq-deadline", "bfq", "deadline"] {
        let [before, after] = [closing_gaps, &with_lone_reads].map(|job| statistics(job, scheduler));
        assert!(before.read_merges > 0, "{scheduler}: {before:?}");
        assert_eq!(after.choices, before.choices, "{scheduler}: a lone read is no choice");
    }
}

#[test]
fn each_device_counts_its_own_ios_even_during_scheduler_changes() {
    let jobs = "rw=randread\nbs=4k\niodepth=128\n[a]\nfilename=/dev/sda\nnumber_ios=3000\n[b]\nfilename=/dev/sdb\nnumber_ios=2000\n";
    for scheduler in ["mq-deadline", "bfq", "kyber"] {
        let write = |ms, to: &str| Write {
            at: Nanos::from_millis(ms),
            only_under: None,
            file: "scheduler".to_owned(),
            text: to.to_owned(),
        };
        let disks = of_all(jobs, scheduler, vec![write(5, "none"), write(10, scheduler), write(15, "none")]);
        for (disk, ios) in disks.iter().zip([3000, 2000]) {
            let in_flight = disk.stat.split_whitespace().nth(8);
            assert_eq!((disk.read_ios, in_flight), (ios, Some("0")), "{scheduler}, {}: {}", disk.file, disk.stat);
            assert!(disk.choices.is_some_and(|choices| choices > 10 && choices < ios), "{:?}", disk.choices);
        }
    }
}
