//! What schedulers' locks take is CPU time of processes, and of nothing else.

use crate::support::spec;
use hoistway_blk::ground::{Kernel, Nanos};
use hoistway_blk::policy::{ContentionOptions, Insertion};
use hoistway_device::Preset;
use hoistway_fio::{Environment, JobFile};
use hoistway_legacy::LEGACY_SCHEDULERS;
use hoistway_sim::{Control, Host, LockUse, QueueSettings, Scenario, run};

/// On a host on which nothing takes time but what is done under locks of schedulers: that, and CPU time of all processes.
fn simulated(job: &str, scheduler: &str, cpus: u16, contention_options: ContentionOptions) -> (LockUse, Nanos) {
    let text = format!("[global]\nfilename=/dev/sda\ndirect=1\nioengine=libaio\nrw=randrw\n{job}");
    let workload = JobFile::parse(&text, "test.fio", &Environment::empty()).unwrap().load;
    let host = "name = \"x\"\ndescription = \"x\"\nsubmit_ns = 0\ncomplete_ns = 0\nwake_ns = [0, 0]\nworker_ns = [0, 0]\n\
                idle_ns = []\nhandover_ns = 300\nwaiter_ns = 50\nlist_ns = 0\nlist_handover_ns = 0\n[sections_ns]\nothers = 1000\n";
    let (preset, host) = (Preset::builtin("intel-s3520-1600gb").unwrap(), Host::from_toml(host, "x.toml").unwrap());
    let kernel = if LEGACY_SCHEDULERS.contains(&scheduler) { Kernel::V4_12 } else { Kernel::V6_18 };
    let queue = QueueSettings { contention_options, ..QueueSettings::new(kernel, cpus) };
    let devices = vec![&preset; workload.files.len()];
    let scenario = Scenario { workload: &workload, devices, guests: None, queue, host, runtime: None };
    let result = run(&scenario, &spec(scheduler, &[], 1), &Control::default()).unwrap();
    let spent = result.processes.iter().map(|process| process.cpu.system_ns + process.cpu.user_ns).sum();
    assert!(result.locks.taken > 400, "{scheduler}: {:?}", result.locks);
    (result.locks, Nanos(spent))
}

const MANY: &str = "[a]\niodepth=16\nnumjobs=8\nnumber_ios=500\n";

#[test]
fn processes_pay_for_every_lock_section_and_wait_on_any_path() {
    let alone = "[a]\nnumber_ios=200\n";
    let deep = "[a]\niodepth=64\niodepth_batch=8\nnumber_ios=2000\n";
    let two_disks = "[a]\nfilename=/dev/sda:/dev/sdb\niodepth=512\niodepth_batch=256\nnumber_ios=2000\n";
    for scheduler in ["mq-deadline", "kyber", "bfq", "noop", "cfq"] {
        for (job, cpus) in [(alone, 1), (deep, 1), (two_disks, 1), (MANY, 4)] {
            let (locks, spent) = simulated(job, scheduler, cpus, ContentionOptions::NONE);
            assert_eq!(spent, locks.held + locks.waited, "{scheduler} on {cpus} CPUs: {job}");
        }
    }
}

#[test]
fn processes_pay_for_lock_sections_of_work_left_to_others() {
    for insertion in [Insertion::Direct, Insertion::Buckets, Insertion::Pending] {
        let contention_options =
            ContentionOptions { single_dispatcher: true, batch_dispatch: true, insertion, ..ContentionOptions::NONE };
        let (locks, spent) = simulated(MANY, "mq-deadline", 4, contention_options);
        assert_eq!(spent, locks.held + locks.waited, "{insertion:?}: {locks:?}");
        assert_eq!(locks.lists_taken > 0, insertion != Insertion::Direct, "{insertion:?}: {locks:?}");
    }
}

/// I/Os for each CPU in 2 ms of as many processes at iodepth 4 on a device without latency, and the time for which CPUs waited for locks.
fn ios_per_cpu(scheduler: &str, cpus: u16, handover_ns: u64, waiter_ns: u64) -> (f64, LockUse) {
    let text = format!(
        "[a]\nfilename=/dev/nullb0\ndirect=1\nioengine=io_uring\nrw=randread\nnorandommap=1\niodepth=4\n\
         iodepth_batch_submit=4\niodepth_batch_complete=4\nnumjobs={cpus}\ntime_based\nruntime=1\n"
    );
    let workload = JobFile::parse(&text, "test.fio", &Environment::empty()).unwrap().load;
    let host = Host { handover_ns, waiter_ns, ..Host::builtin(Host::DEFAULT).unwrap() };
    let preset = Preset::builtin("null").unwrap();
    let queue = QueueSettings::new(Kernel::V6_18, cpus);
    let runtime = Some(Nanos::from_millis(2));
    let scenario = Scenario { workload: &workload, devices: vec![&preset], guests: None, queue, host, runtime };
    let result = run(&scenario, &spec(scheduler, &[], 1), &Control::default()).unwrap();
    (result.ios as f64 / f64::from(cpus), result.locks)
}

#[test]
fn more_cpus_on_one_lock_never_raise_the_rate_of_each_and_dearer_hand_overs_never_raise_any() {
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut draw = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    for scheduler in ["mq-deadline", "bfq", "mq-deadline"] {
        let (handover_ns, waiter_ns) = (50 + draw(800), draw(20));
        let costs = format!("{scheduler}, {handover_ns} and {waiter_ns} ns");
        let rates = [1, 2, 4, 12].map(|cpus| ios_per_cpu(scheduler, cpus, handover_ns, waiter_ns));
        assert_eq!(rates[0].1.waited, Nanos::ZERO, "{costs}");
        for pair in rates.windows(2) {
            assert!(pair[1].0 < 1.01 * pair[0].0 && pair[1].1.waited > pair[0].1.waited, "{costs}: {rates:?}");
        }
        let dearer = ios_per_cpu(scheduler, 12, 2 * handover_ns, 2 * waiter_ns);
        assert!(dearer.0 < rates[3].0, "{costs}: {dearer:?} {rates:?}");
    }
}
