//! Disks over disks: the queues of guests over the queue of their host over a device.

use crate::support::observe;
use std::collections::BTreeSet;

use hoistway_blk::bio::Op;
use hoistway_blk::ground::{CpuId, Kernel, Nanos, Now, Waiter};
use hoistway_blk::watch::{Event, Probe};
use hoistway_cgroup::IoMax;
use hoistway_device::Preset;
use hoistway_fio::{Environment, JobFile};
use hoistway_measure::Setting;
use hoistway_measure::{Direction, ProcessResult};
use hoistway_sim::{
    Control, Guests, Host, QueueSettings, RunError, RunResult, RunSpec, Scenario, VirtualDisk, Write, run,
    run_with_statistics,
};

const SSD: &str = "intel-s3520-1600gb";
const ALL: [&str; 7] = ["none", "mq-deadline", "bfq", "kyber", "noop", "deadline", "cfq"];

/// What a test of guests sets.
struct Setup<'a> {
    job: &'a str,
    device: Preset,
    host: Host,
    disk: VirtualDisk,
    weights: &'a [(&'a str, u32)],
    queue: QueueSettings,
    spec: RunSpec,
}

impl<'a> Setup<'a> {
    fn new(job: &'a str, device: &str, guest: &str, host: &str) -> Setup<'a> {
        Setup {
            job,
            device: Preset::builtin(device).unwrap(),
            host: Host::builtin("vm").unwrap(),
            disk: VirtualDisk::builtin(VirtualDisk::DEFAULT).unwrap(),
            weights: &[],
            queue: QueueSettings::new(Kernel::V6_18, 4),
            spec: RunSpec { guest: Some(Setting::untouched(guest)), ..RunSpec::new(host, 1) },
        }
    }

    fn with<R>(&self, body: impl FnOnce(&Scenario<'_>) -> R) -> R {
        let workload =
            JobFile::parse(self.job, "job.fio", &Environment::empty()).unwrap_or_else(|e| panic!("{e}")).load;
        let weights = self.weights.iter().map(|&(file, weight)| (file.to_owned(), weight)).collect();
        body(&Scenario {
            workload: &workload,
            devices: vec![&self.device],
            guests: Some(Guests { disk: self.disk.clone(), weights }),
            queue: self.queue.clone(),
            host: self.host.clone(),
            runtime: None,
        })
    }

    fn run(&self) -> RunResult {
        self.with(|scenario| run(scenario, &self.spec, &Control::default())).unwrap_or_else(|e| panic!("{e}"))
    }

    fn run_watched<P: Probe>(&self, probe: P) -> (RunResult, P) {
        self.with(|scenario| observe(scenario, &self.spec, probe)).unwrap_or_else(|e| panic!("{e}"))
    }
}

fn ios(process: &ProcessResult) -> u64 {
    process.directions.iter().map(|direction| direction.ios).sum()
}

/// A virtual disk whose thread takes times that are easy to add.
fn plain_disk() -> VirtualDisk {
    let builtin = VirtualDisk::builtin(VirtualDisk::DEFAULT).unwrap();
    VirtualDisk { wake_ns: [7_000, 7_000], submit_ns: 300, complete_ns: 20, ..builtin }
}

#[test]
fn a_lone_io_takes_the_sum_of_the_stages() {
    let job = "[a]\nfilename=/dev/vda\ndirect=1\nrw=randread\nsize=1m\nio_size=64k\n";
    let setup = Setup {
        host: Host::builtin("instant").unwrap(),
        disk: plain_disk(),
        ..Setup::new(job, "null", "none", "none")
    };
    let result = setup.run();
    let lat = &result.processes[0].direction(Direction::Read).lat;
    // Doorbell 7 us, submission 0.3, device 10, wake-up 7, completion 0.02; the thread sleeps in between.
    assert_eq!(lat.min(), Some(24_320));
    assert!(lat.max() <= Some(24_321), "the process itself takes a nanosecond to come: {:?}", lat.max());
}

#[test]
fn a_busy_thread_is_not_woken_and_does_one_thing_at_a_time() {
    let job = "[a]\nfilename=/dev/vda\nioengine=libaio\ndirect=1\nrw=randread\niodepth=64\nruntime=1\ntime_based\n";
    let disk = VirtualDisk { submit_ns: 3_000, complete_ns: 2_000, ..plain_disk() };
    let setup = Setup { host: Host::builtin("instant").unwrap(), disk, ..Setup::new(job, "null", "none", "none") };
    let ios = ios(&setup.run().processes[0]);
    // 5 us of the thread for each I/O; the device alone would do 6.4 million a second.
    assert!((190_000..200_100).contains(&ios), "{ios}");
}

#[test]
fn a_thread_that_sleeps_for_requests_of_the_host_takes_its_time_for_each_command_all_the_same() {
    let job = "[a]\nfilename=/dev/vda\nioengine=libaio\ndirect=1\nrw=randread\niodepth=64\nruntime=1\ntime_based\n";
    let disk = VirtualDisk { wake_ns: [0, 0], submit_ns: 20_000, complete_ns: 0, ..plain_disk() };
    let host = Host::builtin("instant").unwrap();
    let mut setup = Setup { host, disk, ..Setup::new(job, "null", "none", "mq-deadline") };
    setup.spec.setting.write("nr_requests", "2");
    let ios = ios(&setup.run().processes[0]);
    assert!((40_000..50_100).contains(&ios), "{ios}");
}

#[test]
fn interrupts_of_the_hosts_device_take_no_time_of_the_guests_cpus() {
    let job = "[a]\nfilename=/dev/vda\ndirect=1\nrw=randread\nsize=1m\nio_size=64k\n";
    // Far longer than the thread takes from one interrupt to the other.
    let host = Host { complete_ns: 50_000, ..Host::builtin("instant").unwrap() };
    let setup = Setup { host, disk: plain_disk(), ..Setup::new(job, "null", "none", "none") };
    let result = setup.run();
    // As above, and the interrupt of the virtual disk.
    assert_eq!(result.processes[0].direction(Direction::Read).lat.min(), Some(24_320 + 50_000));
}

/// When commands went to the virtual disk and to the device below it, ns.
#[derive(Default)]
struct Issues {
    device: usize,
    at: [Vec<u64>; 2],
}

impl Probe for Issues {
    fn enter(&mut self, device: u32, _: Option<Waiter>) {
        self.device = device as usize;
    }

    fn event(&mut self, now: Now, _: CpuId, event: Event<'_>) {
        if let Event::Issue(_) = event {
            self.at[self.device].push(now.at.0);
        }
    }
}

#[test]
fn a_thread_delayed_by_completions_continues_even_on_a_busy_guest_cpu() {
    let job = "[a]\nfilename=/dev/vda\nioengine=libaio\ndirect=1\nrw=randread\niodepth=16\nruntime=100ms\ntime_based\n";
    let host = Host { complete_ns: 50_000, ..Host::builtin("instant").unwrap() };
    let mut setup = Setup { host, disk: plain_disk(), ..Setup::new(job, SSD, "none", "none") };
    setup.queue.cpus = 1;
    let (_, Issues { at: [guest, host], .. }) = setup.run_watched(Issues::default());
    let longest = guest.iter().zip(&host).map(|(guest, host)| host - guest).max();
    assert!(guest.len() > 1000, "{}", guest.len());
    // A wake-up, 16 submissions and 16 completions at most.
    assert!(longest <= Some(7000 + 16 * 320), "{longest:?}");
}

#[test]
fn workers_of_the_host_take_its_own_time_and_not_that_of_the_guests() {
    // The host's device refuses what is beyond its 32 tags, and a worker tries again. Nothing waits in the guests.
    let job = "[global]\nioengine=libaio\ndirect=1\nrw=randread\niodepth=64\nsize=4m\n\
         [a]\nfilename=/dev/vda\n[b]\nfilename=/dev/vdb\n";
    let runtimes = |of_guests: u64, of_host: u64| -> Vec<u64> {
        let host = Host { worker_ns: [of_guests; 2], ..Host::builtin("vm").unwrap() };
        let disk = VirtualDisk { worker_ns: [of_host; 2], ..plain_disk() };
        let result = Setup { host, disk, ..Setup::new(job, SSD, "none", "mq-deadline") }.run();
        result.processes.iter().map(|process| process.runtime_ns).collect()
    };
    assert_eq!(runtimes(1_000_000, 5_000), runtimes(0, 5_000));
    assert_ne!(runtimes(0, 1_000_000), runtimes(0, 5_000));
}

#[test]
fn ring_entries_are_submitted_in_one_call_so_neighbours_merge_on_the_host() {
    let job =
        "[a]\nfilename=/dev/vda\nioengine=libaio\ndirect=1\nrw=read\nbs=4k\nsize=1m\niodepth=32\niodepth_batch=1\n";
    let host = Host::builtin("instant").unwrap();
    let (_, seen) = Setup { host, ..Setup::new(job, "null", "none", "none") }.run_watched(Seen::default());
    assert_eq!(seen.issued[0], 256, "one at a time");
    assert!(seen.issued[1] < 64, "{:?}", seen.issued);
}

/// Commands, flushes and contexts on each of the disks.
#[derive(Default)]
struct Seen {
    device: u32,
    issued: [u64; 4],
    flushes: [u64; 4],
    largest_sectors: [u32; 4],
    contexts: [BTreeSet<u32>; 4],
}

impl Probe for Seen {
    fn enter(&mut self, device: u32, _: Option<Waiter>) {
        self.device = device;
    }

    fn event(&mut self, _: Now, _: CpuId, event: Event<'_>) {
        let device = self.device as usize;
        if let Event::Issue(rq) = event {
            self.issued[device] += 1;
            self.flushes[device] += u64::from(rq.op == Op::Flush);
            self.largest_sectors[device] = self.largest_sectors[device].max(rq.sectors);
            self.contexts[device].extend(rq.bios.iter().map(|bio| bio.io_context.0));
        }
    }
}

#[test]
fn every_io_ends_once_under_every_pair_of_schedulers_even_if_the_host_has_few_requests() {
    let job = "[global]\nioengine=io_uring\ndirect=1\n\
         [a]\nfilename=/dev/vda\nrw=rw\nbs=4k\nsize=2m\niodepth=128\niodepth_batch=32\nfsync=100\n\
         [b]\nfilename=/dev/vdb\nrw=randwrite\nbs=4k\nsize=2m\nnorandommap\niodepth=128\n\
         [c]\nfilename=/dev/vdb\nrw=trim\nbs=64k\nsize=2m\niodepth=4\n";
    for host in ALL {
        for guest in ALL {
            let mut setup = Setup::new(job, SSD, guest, host);
            setup.spec.setting.write("nr_requests", "4");
            let result = setup.run();
            let ended: Vec<u64> = result.processes.iter().map(ios).collect();
            assert_eq!(ended, [512, 512, 32], "{guest} over {host}");
            assert!(!result.partial);
        }
    }
}

#[test]
fn the_host_splits_large_ios_and_the_guest_sees_one_completion() {
    let job = "[a]\nfilename=/dev/vda\ndirect=1\nrw=read\nbs=512k\nsize=8m\n[b]\nfilename=/dev/vdb\ndirect=1\nrw=read\nbs=512k\nsize=8m\n";
    let mut setup = Setup::new(job, "null", "none", "none");
    setup.spec.setting.write("max_sectors_kb", "128");
    let (result, seen) = setup.run_watched(Seen::default());
    assert_eq!(result.processes.iter().map(ios).collect::<Vec<_>>(), [16, 16]);
    assert_eq!(seen.largest_sectors[..3], [1024, 1024, 256]);
    assert_eq!(seen.issued[2], 128);
}

#[test]
fn to_the_host_a_guest_is_one_process_and_its_flushes_reach_the_device() {
    let job = "[global]\ndirect=1\nrw=randwrite\nbs=4k\nsize=1m\nio_size=64k\n\
         [a]\nfilename=/dev/vda\nnumjobs=3\nfsync=4\n[b]\nfilename=/dev/vdb\n";
    let (_, seen) = Setup::new(job, SSD, "mq-deadline", "bfq").run_watched(Seen::default());
    assert_eq!(seen.contexts[0].len(), 3);
    assert_eq!(seen.contexts[2].len(), 2);
    assert!(seen.contexts[2].is_disjoint(&seen.contexts[0]));
    assert!(seen.flushes[0] > 0 && seen.flushes[1] == 0);
    assert!(seen.flushes[2] > 0 && seen.flushes[2] <= seen.flushes[0], "{:?}", seen.flushes);
}

#[test]
fn errors_of_the_device_reach_the_process_in_the_guest() {
    let faulty = "[faults]\nerrors_per_million = 1_000_000\nstalls_per_million = 0\nstall_ms = 0\nlost_per_million = 0\n\
        lost_after_ms = 0\ntorn_writes_per_million = 0\n";
    let text = include_str!("../../device/presets/null.toml");
    let job = "[a]\nfilename=/dev/vda\ndirect=1\nrw=read\nsize=1m\n";
    let mut setup = Setup::new(job, "null", "mq-deadline", "none");
    setup.device = Preset::from_toml(&format!("{text}\n{faulty}"), "faulty.toml").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(setup.run().processes[0].error, 5);
}

#[test]
fn weights_on_the_host_divide_its_device_among_guests_under_bfq_and_not_under_none() {
    let job = "[global]\nioengine=libaio\ndirect=1\nrw=read\nbs=128k\niodepth=8\nruntime=20\ntime_based\n\
         [a]\nfilename=/dev/vda\n[b]\nfilename=/dev/vdb\n";
    let ratio = |scheduler, tunables: &[(&str, &str)]| {
        let mut setup = Setup { weights: &[("/dev/vda", 300)], ..Setup::new(job, SSD, "none", scheduler) };
        tunables.iter().for_each(|(name, text)| setup.spec.setting.write(&Setting::file_of(name), text));
        let result = setup.run();
        ios(&result.processes[0]) as f64 / ios(&result.processes[1]) as f64
    };
    let (bfq, none) = (ratio("bfq", &[("low_latency", "0")]), ratio("none", &[]));
    assert!((2.85..3.15).contains(&bfq), "{bfq:.2}");
    assert!((0.95..1.05).contains(&none), "{none:.2}");
}

#[test]
fn limits_and_cgroups_of_the_load_act_inside_its_guest() {
    let job = "[global]\nioengine=libaio\ndirect=1\nrw=randread\niodepth=16\nruntime=5\ntime_based\n\
         [a]\nfilename=/dev/vda\ncgroup=slow\n[b]\nfilename=/dev/vdb\n";
    let mut setup = Setup::new(job, SSD, "none", "none");
    setup.queue.io_max = vec![("slow".to_owned(), IoMax { riops: Some(100), ..IoMax::default() })];
    let result = setup.run();
    assert!((450..=550).contains(&ios(&result.processes[0])), "{}", ios(&result.processes[0]));
    assert!(ios(&result.processes[1]) > 50_000);
}

#[test]
fn writes_to_queue_files_during_a_run_are_of_the_hosts_device() {
    let job = "[a]\nfilename=/dev/vda\ndirect=1\nrw=randread\nruntime=2\ntime_based\n";
    let mut setup = Setup::new(job, SSD, "kyber", "none");
    let write = |at, file: &str, text: &str| Write {
        at: Nanos::from_secs(at),
        only_under: None,
        file: file.to_owned(),
        text: text.to_owned(),
    };
    // Only the host's scheduler has this file, and only after the switch.
    setup.queue.writes = vec![write(1, "scheduler", "bfq"), write(1, "iosched/slice_idle", "0")];
    assert_eq!(setup.run().refused, Vec::<String>::new());
}

#[test]
fn results_name_both_schedulers_and_all_disks() {
    let job = "[a]\nfilename=/dev/vda\ndirect=1\nrw=randread\nsize=1m\n[b]\nfilename=/dev/vdb\ndirect=1\nrw=randread\nsize=1m\n";
    let setup = Setup { weights: &[("/dev/vdb", 200)], ..Setup::new(job, SSD, "none", "bfq") };
    assert_eq!(setup.spec.label(), "none-over-bfq");
    let (result, statistics) = setup.with(|scenario| {
        let (result, statistics) = run_with_statistics(scenario, &setup.spec, &Control::default()).unwrap();
        let simulated = result.simulated;
        (result, statistics.summaries(scenario, simulated))
    });
    assert!(!result.partial);
    let disks: Vec<_> = statistics.iter().map(|disk| (disk.file.as_str(), disk.read_ios)).collect();
    assert_eq!(disks, [("/dev/vda", 256), ("/dev/vdb", 256), (SSD, 512)]);
    let cgroups: Vec<_> = statistics[2].cgroups.iter().map(|group| group.cgroup.as_str()).collect();
    assert_eq!(cgroups, ["/dev/vda", "/dev/vdb"]);
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let job = "[global]\nioengine=libaio\ndirect=1\nrw=randrw\niodepth=8\nruntime=1\ntime_based\n\
         [a]\nfilename=/dev/vda\n[b]\nfilename=/dev/vdb\n";
    let once = || format!("{:?}", Setup::new(job, SSD, "kyber", "bfq").run());
    assert_eq!(once(), once());
}

#[test]
fn buffered_io_is_cached_by_the_guest() {
    let job =
        "[a]\nfilename=/dev/vda\nrw=write\nbs=64k\nsize=16m\nend_fsync=1\n[b]\nfilename=/dev/vdb\nrw=read\nsize=1m\n";
    let (result, seen) = Setup::new(job, SSD, "mq-deadline", "none").run_watched(Seen::default());
    let cache = result.page_cache.unwrap();
    assert_eq!(cache.written_bytes, 16 << 20);
    assert!(seen.issued[0] > 0 && seen.issued[2] >= seen.issued[0]);
}

#[test]
fn a_run_in_guests_needs_a_scheduler_for_them_and_one_device() {
    let setup = Setup::new("[a]\nfilename=/dev/vda\ndirect=1\nsize=1m\n", SSD, "none", "none");
    let without = RunSpec { guest: None, ..setup.spec.clone() };
    let refused = setup.with(|scenario| run(scenario, &without, &Control::default()).err());
    assert!(matches!(refused, Some(RunError::Guests)), "{refused:?}");
    let refused = setup.with(|scenario| {
        let devices = vec![scenario.devices[0]; 2];
        run(&Scenario { devices, ..scenario.clone() }, &setup.spec, &Control::default()).err()
    });
    assert!(matches!(refused, Some(RunError::Guests)), "{refused:?}");
}
