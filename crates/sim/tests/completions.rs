//! BL-94: where the work of a completion is done, by `queue/rq_affinity`, and which CPU pays for it.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::{observe, spec, writing};
use hoistway_blk::ground::{CpuId, Kernel, Now};
use hoistway_blk::watch::{Event, Probe};
use hoistway_device::{Preset, PresetFile};
use hoistway_fio::{Environment, JobFile};
use hoistway_sim::{Host, QueueSettings, Scenario};

/// The CPUs on which requests end.
#[derive(Default)]
struct Ends(BTreeSet<u32>);

impl Probe for Ends {
    fn event(&mut self, _: Now, cpu: CpuId, event: Event<'_>) {
        if let Event::Complete(..) = event {
            self.0.insert(cpu.0);
        }
    }
}

/// Where the I/O of a process on a CPU of four completes, and the CPU time of each I/O.
fn completed(device: &str, scheduler: &str, affinity: &str, cpu: u32, cache_cpus: Option<u16>) -> (Vec<u32>, u64) {
    let job = format!("[a]\nfilename=/dev/sda\ndirect=1\nrw=randread\nsize=1m\ncpus_allowed={cpu}\n");
    let workload = JobFile::parse(&job, "test.fio", &Environment::empty()).unwrap().load;
    let preset = Preset::builtin(device).unwrap();
    let queue = QueueSettings::new(Kernel::V6_18, 4);
    let host = Host {
        cache_cpus,
        submit_ns: 1000,
        complete_ns: 300,
        redirect_ns: 20,
        // Neither what waking costs nor what schedulers do.
        switch_ns: Some(0),
        sections_ns: BTreeMap::new(),
        ..Host::builtin("server").unwrap()
    };
    let scenario = Scenario { workload: &workload, devices: vec![&preset], guests: None, queue, host, runtime: None };
    let spec = writing(spec(scheduler, &[], 1), "rq_affinity", affinity);
    let run = observe(&scenario, &spec, Ends::default());
    let (result, ends) = run.unwrap();
    // Its last turn, which finds nothing to submit, takes as long as a submission.
    (ends.0.into_iter().collect(), (result.processes[0].cpu.system_ns - 1000) / result.ios)
}

#[test]
fn rq_affinity_says_where_the_one_interrupt_of_a_device_passes_its_work_to() {
    for scheduler in ["none", "bfq", "cfq"] {
        let completed_on = |affinity, cpu, caches| completed("intel-s3520-1600gb", scheduler, affinity, cpu, caches);
        for cpu in [1, 3] {
            assert_eq!(completed_on("0", cpu, Some(1)), (vec![0], 1300), "{scheduler}: in the place of the interrupt");
            assert_eq!(completed_on("1", cpu, None), (vec![0], 1300), "{scheduler}: one cache");
            assert_eq!(completed_on("2", cpu, None), (vec![cpu], 1320), "{scheduler}: the submitter's CPU");
        }
        assert_eq!(completed_on("1", 1, Some(2)), (vec![0], 1300), "{scheduler}: shares a cache with CPU 0");
        assert_eq!(completed_on("1", 3, Some(2)), (vec![3], 1320), "{scheduler}: shares none");
        assert_eq!(completed_on("2", 0, None), (vec![0], 1300), "{scheduler}: it is the interrupted one");
    }
}

#[test]
fn a_private_hardware_queue_interrupts_the_submitter_for_any_rq_affinity() {
    for affinity in ["0", "1", "2"] {
        assert_eq!(completed("micron-9100-1600gb", "none", affinity, 3, Some(1)), (vec![3], 1300), "{affinity}");
    }
}

#[test]
fn equal_devices_interrupt_one_cpu_each_unless_behind_one_controller() {
    let job = |number: u32| format!("[j{number}]\nfilename=/dev/d{number}\nrw=randread\nsize=40k\n");
    let jobs: String = (0..3).map(job).collect();
    let text = format!("[global]\nioengine=libaio\ndirect=1\ncpus_allowed=1\n{jobs}");
    let workload = JobFile::parse(&text, "test.fio", &Environment::empty()).unwrap().load;
    let preset = Preset::builtin("intel-s3520-1600gb").unwrap();
    for scheduler in ["none", "mq-deadline", "cfq"] {
        for (shared_tags, expected) in [(false, vec![0, 1, 2]), (true, vec![0])] {
            if shared_tags && scheduler == "cfq" {
                continue; // A legacy queue has no tags to share.
            }
            let queue = QueueSettings { shared_tags, ..QueueSettings::new(Kernel::V4_19, 4) };
            let host = Host::builtin("server").unwrap();
            let scenario =
                Scenario { workload: &workload, devices: vec![&preset; 3], guests: None, queue, host, runtime: None };
            let spec = writing(spec(scheduler, &[], 1), "rq_affinity", "0");
            let (_, ends) = observe(&scenario, &spec, Ends::default()).unwrap();
            assert_eq!(ends.0.into_iter().collect::<Vec<_>>(), expected, "{scheduler}");
        }
    }
}

/// A device that does 64 commands at once, each in 10 us, and interrupts one CPU.
fn fast_with_interrupt() -> Preset {
    let mut file = PresetFile::from(Preset::builtin("intel-p4800x-375gb").unwrap());
    file.shape.hw_queues = 1;
    let optane = file.optane.as_mut().unwrap();
    (optane.host_to_device_us, optane.device_to_host_us) = (0.0, 0.0);
    (optane.read_command_us, optane.access_us) = (0.1, 10.0);
    (optane.channels, optane.access_jitter_percent) = (64, 0.0);
    Preset::try_from(file).unwrap()
}

/// When requests end on each CPU, ns.
#[derive(Default)]
struct Times([Vec<u64>; 2]);

impl Probe for Times {
    fn event(&mut self, now: Now, cpu: CpuId, event: Event<'_>) {
        if let Event::Complete(..) = event {
            self.0[cpu.index()].push(now.at.0);
        }
    }
}

#[test]
fn work_that_is_passed_on_is_done_after_the_interrupts_that_its_cpu_has_already() {
    // The device could do 6.4 million a second; its interrupts come to CPU 0, which passes on the work of every second process.
    let job = "[a]\nfilename=/dev/sda\nioengine=libaio\ndirect=1\nrw=randread\niodepth=8\nnumjobs=8\nsize=10m\n\
               cpus_allowed=0-1\ncpus_allowed_policy=split\n";
    let workload = JobFile::parse(job, "test.fio", &Environment::empty()).unwrap().load;
    let preset = fast_with_interrupt();
    let queue = QueueSettings::new(Kernel::V6_18, 2);
    let host = Host { complete_ns: 1000, redirect_ns: 20, ..Host::builtin("server").unwrap() };
    let scenario = Scenario { workload: &workload, devices: vec![&preset], guests: None, queue, host, runtime: None };
    let spec = writing(spec("none", &[], 1), "rq_affinity", "2");
    let (result, times) = observe(&scenario, &spec, Times::default()).unwrap();
    assert_eq!(result.ios, 8 * 2560);
    let shortest = |cpu: usize| times.0[cpu].windows(2).map(|pair| pair[1] - pair[0]).min();
    assert_eq!(times.0.each_ref().map(Vec::len), [4 * 2560; 2]);
    assert!(shortest(1) == Some(1000) && shortest(0) >= Some(1000), "{:?} {:?}", shortest(0), shortest(1));
}

#[test]
fn one_interrupt_is_taken_after_the_other_and_tasks_on_that_cpu_do_not_starve() {
    // The device could do 6.4 million a second; the CPU that it interrupts does a million.
    let job = "[a]\nfilename=/dev/sda\nioengine=libaio\ndirect=1\nrw=randread\niodepth=8\nnumjobs=12\nruntime=1\ntime_based\n";
    let workload = JobFile::parse(job, "test.fio", &Environment::empty()).unwrap().load;
    let preset = fast_with_interrupt();
    let queue = QueueSettings::new(Kernel::V6_18, 8);
    let host = Host { complete_ns: 1000, switch_ns: Some(0), waking_ns: Some(0), ..Host::builtin("server").unwrap() };
    let scenario = Scenario { workload: &workload, devices: vec![&preset], guests: None, queue, host, runtime: None };
    let (result, _) = observe(&scenario, &spec("none", &[], 1), Ends::default()).unwrap();
    // Four of the processes begin later: they share their CPUs with others, and beginning takes CPU time.
    assert!((950_000..=1_000_500).contains(&result.ios), "{}", result.ios);
    let least = result.processes.iter().map(|process| process.directions[0].ios).min();
    // Interrupts leave the CPU a moment every 2 ms, for which two processes take turns: eight I/Os of each every 44 ms.
    assert!(least > Some(150), "{least:?}");
}
