//! What a kernel would count: of devices, of cgroups, and how often a scheduler could choose.

mod support;

use hoistway_blk::Kernel;
use hoistway_device::Preset;
use hoistway_fio::{Environment, JobFile};
use hoistway_results::document::DiskSummary;
use hoistway_sim::{Control, Host, QueueSettings, Scenario, Statistics, run_probed};
use support::spec;

/// Of the first device of a job file.
fn statistics(job: &str, scheduler: &str) -> DiskSummary {
    let text = format!("[global]\nioengine=libaio\ndirect=1\nfilename=/dev/sda\nsize=1g\n{job}");
    let workload = JobFile::parse(&text, "test.fio", &Environment::empty()).unwrap().load;
    let preset = Preset::builtin("intel-s3520-1600gb").unwrap();
    let scenario = Scenario {
        workload: &workload,
        devices: vec![&preset],
        guests: None,
        queue: QueueSettings::new(Kernel::V6_18, 4),
        host: Host::builtin(Host::DEFAULT).unwrap(),
        runtime: None,
    };
    let spec = spec(scheduler, &[], 1);
    let probe = Statistics::new(&scenario, &spec);
    let (result, probe) = run_probed(&scenario, &spec, &Control::default(), probe).unwrap();
    probe.summaries(&scenario, result.simulated).swap_remove(0)
}

#[test]
fn a_device_and_its_cgroups_count_what_their_processes_did() {
    let job =
        "[r]\ncgroup=a\nrw=randread\nbs=4k\nnumber_ios=200\n[w]\ncgroup=a/b\nrw=randwrite\nbs=8k\nnumber_ios=100\n";
    for scheduler in ["none", "mq-deadline", "bfq", "cfq"] {
        let disk = statistics(job, scheduler);
        assert_eq!(
            (disk.read_ios, disk.write_ios, disk.read_merges, disk.write_merges),
            (200, 100, 0, 0),
            "{scheduler}"
        );
        let of: Vec<(&str, &str)> =
            disk.cgroups.iter().map(|group| (group.cgroup.as_str(), group.io_stat.as_str())).collect();
        let writes = "rbytes=0 wbytes=819200 rios=0 wios=100 dbytes=0 dios=0";
        let both = "rbytes=819200 wbytes=819200 rios=200 wios=100 dbytes=0 dios=0";
        assert_eq!(of, [("a", both), ("a/b", writes)], "{scheduler}");
        let fields: Vec<u64> = disk.stat.split_whitespace().map(|field| field.parse().unwrap()).collect();
        assert_eq!([fields[0], fields[2], fields[4], fields[6]], [200, 1600, 100, 1600], "{}", disk.stat);
        assert_eq!([fields[3], fields[7], fields[10]], [disk.read_ms, disk.write_ms, disk.in_queue_ms]);
        // Two at a time, one of each process, none of them faster than the stage of the drive.
        assert!(disk.read_ms > 10 && disk.in_queue_ms >= disk.read_ms, "{}", disk.stat);
        assert!((1.0..=100.0).contains(&disk.util_percent), "{}", disk.util_percent);
    }
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
    assert_eq!(choices("none", 128), Some(0), "nobody is there to choose");
}
