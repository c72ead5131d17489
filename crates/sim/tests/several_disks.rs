//! Processes that use several disks, single I/Os with priorities, and replays.

use crate::support::observe;
use hoistway_blk::ground::{CpuId, Kernel, Now, Waiter};
use hoistway_blk::watch::{Event, Probe};
use hoistway_device::Preset;
use hoistway_fio::{Environment, JobFile};
use hoistway_measure::{Direction, ProcessResult};
use hoistway_sim::{Control, Host, QueueSettings, RunResult, RunSpec, Scenario, run};

const LOG: &str = "fio version 3 iolog\n0 /dev/a add\n0 /dev/b add\n0 /dev/a read 0 4096\n100000 /dev/b write 4096 4096\n\
    100000 /dev/a sync 0 0\n400000 /dev/a read 8192 4096\n";

fn simulated(job: &str, devices: &[&str], scheduler: &str, kernel: Kernel) -> RunResult {
    let log = |_: &std::path::Path| Ok(hoistway_fio::log_in_memory(LOG.as_bytes()));
    let environment = Environment { log: &log, ..Environment::empty() };
    let workload = JobFile::parse(job, "job.fio", &environment).unwrap_or_else(|e| panic!("{e}")).load;
    let presets: Vec<Preset> = devices.iter().map(|name| Preset::builtin(name).unwrap()).collect();
    assert_eq!(workload.files.len(), presets.len());
    let scenario = Scenario {
        workload: &workload,
        devices: presets.iter().collect(),
        guests: None,
        queue: QueueSettings::new(kernel, 4),
        host: Host::builtin("server").unwrap(),
        runtime: None,
    };
    let spec = RunSpec::new(scheduler, 1);
    run(&scenario, &spec, &Control::default()).unwrap_or_else(|e| panic!("{e}"))
}

fn reads(process: &ProcessResult) -> u64 {
    process.direction(Direction::Read).ios
}

const HDD: &str = "hgst-he10-8tb";
const SSD: &str = "intel-s3520-1600gb";

#[test]
fn two_disks_do_twice_as_much_as_one_for_a_process_that_fills_both() {
    let job = |file: &str, depth: u32| {
        format!(
            "[a]\nioengine=libaio\ndirect=1\nrw=randread\niodepth={depth}\ntime_based\nruntime=2\nfilename={file}\n"
        )
    };
    for scheduler in ["none", "mq-deadline", "bfq", "kyber", "cfq"] {
        let one = simulated(&job("/dev/a", 16), &[HDD], scheduler, Kernel::V6_18);
        let two = simulated(&job("/dev/a:/dev/b", 32), &[HDD, HDD], scheduler, Kernel::V6_18);
        let ratio = reads(&two.processes[0]) as f64 / reads(&one.processes[0]) as f64;
        assert!((1.6..2.4).contains(&ratio), "{scheduler}: {ratio}");
    }
}

#[test]
fn a_process_in_turns_is_held_up_by_its_slowest_disk() {
    let job =
        |file: &str| format!("[a]\nioengine=psync\ndirect=1\nrw=randread\ntime_based\nruntime=2\nfilename={file}\n");
    let fast = simulated(&job("/dev/b"), &[SSD], "none", Kernel::V6_18);
    let mixed = simulated(&job("/dev/a:/dev/b"), &[HDD, SSD], "none", Kernel::V6_18);
    let slow = simulated(&job("/dev/a"), &[HDD], "none", Kernel::V6_18);
    let (fast, mixed, slow) = (reads(&fast.processes[0]), reads(&mixed.processes[0]), reads(&slow.processes[0]));
    assert!(mixed < fast / 10 && mixed > slow && mixed < 3 * slow, "{fast} {mixed} {slow}");
}

#[test]
fn every_io_of_a_batch_ends_on_every_kernel_for_any_mix_of_disks() {
    for kernel in
        [Kernel::V4_4, Kernel::V4_12, Kernel::V4_19, Kernel::V5_10, Kernel::V6_3, Kernel::V6_12, Kernel::V6_18]
    {
        for scheduler in ["none", "mq-deadline", "bfq", "kyber", "noop", "deadline", "cfq"] {
            let job = "[global]\nioengine=io_uring\ndirect=1\nbs=4k\nfilename=/dev/a:/dev/b:/dev/c\n\
                 [many]\nrw=rw\nsize=3m\niodepth=256\niodepth_batch=64\niodepth_low=32\nfsync=100\n\
                 [random]\nrw=randwrite\nnorandommap\nsize=3m\niodepth=32\nfile_service_type=random:3\n";
            let result = simulated(job, &[HDD, SSD, HDD], scheduler, kernel);
            for process in &result.processes {
                let ios = reads(process) + process.direction(Direction::Write).ios;
                assert_eq!(ios, 768, "{scheduler} on {kernel}: {}", process.name);
            }
        }
    }
}

#[test]
fn single_ios_with_a_high_priority_make_a_job_faster_where_priorities_count() {
    let job = |options: &str| {
        format!(
            "[global]\nioengine=libaio\ndirect=1\nfilename=/dev/a\nrw=randread\nruntime=20\ntime_based\nprioclass=3\n\
             [crowd]\niodepth=32\n[few]\niodepth=4\n{options}\n"
        )
    };
    let few =
        |options: &str, scheduler| reads(&simulated(&job(options), &[HDD], scheduler, Kernel::V6_18).processes[1]);
    let (plain, raised) = (few("", "mq-deadline"), few("cmdprio_percentage=50\ncmdprio_class=1", "mq-deadline"));
    assert!(raised * 4 > plain * 5, "{raised} against {plain}");
    assert_eq!(few("", "none"), few("cmdprio_percentage=50", "none"));
}

#[test]
fn a_replay_keeps_the_pauses_of_its_log() {
    let job = "[a]\ndirect=1\nread_iolog=log\nioengine=libaio\niodepth=8\n";
    let result = simulated(job, &[SSD, HDD], "none", Kernel::V6_18);
    let process = &result.processes[0];
    assert_eq!((reads(process), process.direction(Direction::Write).ios, process.sync.total_ios), (2, 1, 1));
    let ms = result.simulated.0 / 1_000_000;
    assert!((400..450).contains(&ms), "{ms}");
    let fast = simulated(&format!("{job}replay_no_stall=1\n"), &[SSD, HDD], "none", Kernel::V6_18);
    assert!(fast.simulated.0 < 100_000_000, "{}", fast.simulated.0);
}

#[test]
fn the_same_seed_gives_the_same_run_on_several_disks() {
    let job = "[a]\nioengine=libaio\ndirect=1\nrw=randrw\nfilename=/dev/a:/dev/b\niodepth=16\nruntime=1\ntime_based\n\
         file_service_type=zipf:1.2\n";
    let once = || simulated(job, &[HDD, SSD], "bfq", Kernel::V6_18).processes[0].clone();
    assert_eq!(format!("{:?}", once()), format!("{:?}", once()));
}

/// The most requests that disks have in flight at once, together.
#[derive(Default)]
struct InFlight {
    now: u32,
    most: u32,
}

impl Probe for InFlight {
    fn event(&mut self, _: Now, _: CpuId, event: Event<'_>) {
        match event {
            Event::Issue(_) => self.now += 1,
            Event::Complete(..) | Event::Requeue(_) => self.now -= 1,
            _ => {}
        }
        self.most = self.most.max(self.now);
    }
}

#[test]
fn disks_behind_one_controller_share_its_depth_and_none_stalls() {
    let job = "[global]\nioengine=libaio\ndirect=1\nrw=randread\niodepth=64\nruntime=300ms\ntime_based\n[a]\nfilename=/dev/a\n\
         [b]\nfilename=/dev/b\n[c]\nfilename=/dev/c\n";
    let workload = JobFile::parse(job, "job.fio", &Environment::empty()).unwrap().load;
    let preset = Preset::builtin(SSD).unwrap();
    for kernel in [Kernel::V4_12, Kernel::V6_18] {
        for scheduler in ["none", "mq-deadline", "kyber", "bfq"] {
            let in_flight = |shared_tags| {
                let queue = QueueSettings { shared_tags, ..QueueSettings::new(kernel, 4) };
                let host = Host::builtin("server").unwrap();
                let scenario = Scenario {
                    workload: &workload,
                    devices: vec![&preset; 3],
                    guests: None,
                    queue,
                    host,
                    runtime: None,
                };
                let spec = RunSpec::new(scheduler, 1);
                let (result, probe) = observe(&scenario, &spec, InFlight::default()).unwrap();
                let least = result.processes.iter().map(reads).min().unwrap();
                let most = result.processes.iter().map(reads).max().unwrap();
                assert!(least * 2 > most, "{scheduler} on {kernel}: {least} and {most} reads");
                probe.most
            };
            assert_eq!((in_flight(false), in_flight(true)), (96, 32), "{scheduler} on {kernel}");
        }
    }
}

/// Commands that went to a disk and that came back from one, in order.
#[derive(Default)]
struct Commands {
    device: u32,
    seen: Vec<(bool, u32)>,
}

impl Probe for Commands {
    fn enter(&mut self, device: u32, _: Option<Waiter>) {
        self.device = device;
    }

    fn event(&mut self, _: Now, _: CpuId, event: Event<'_>) {
        match event {
            Event::Issue(_) => self.seen.push((true, self.device)),
            Event::Complete(..) => self.seen.push((false, self.device)),
            _ => {}
        }
    }
}

#[test]
fn requests_plugged_for_other_disks_are_issued_before_a_tag_sleep() {
    let reads = |disk: &str, count: u64| {
        (0..count).map(|number| format!("0 {disk} read {} 4096\n", number << 20)).collect::<String>()
    };
    // The second disk has 32 tags.
    let log = format!("fio version 3 iolog\n0 /dev/a add\n0 /dev/b add\n{}{}", reads("/dev/a", 8), reads("/dev/b", 64));
    let log = |_: &std::path::Path| Ok(hoistway_fio::log_in_memory(log.as_bytes()));
    let environment = Environment { log: &log, ..Environment::empty() };
    let job = "[a]\ndirect=1\nread_iolog=log\nreplay_no_stall=1\nioengine=libaio\niodepth=72\niodepth_batch=72\n";
    let workload = JobFile::parse(job, "job.fio", &environment).unwrap_or_else(|e| panic!("{e}")).load;
    let (preset, host) = (Preset::builtin(SSD).unwrap(), Host::builtin("server").unwrap());
    let queue = QueueSettings::new(Kernel::V6_18, 1);
    let scenario =
        Scenario { workload: &workload, devices: vec![&preset; 2], guests: None, queue, host, runtime: None };
    let spec = RunSpec::new("none", 1);
    let (_, Commands { seen, .. }) = observe(&scenario, &spec, Commands::default()).unwrap_or_else(|e| panic!("{e}"));
    let first_end = seen.iter().position(|&(is_issued, _)| !is_issued);
    assert_eq!(seen.iter().rposition(|&command| command == (true, 0)).map(|at| Some(at) < first_end), Some(true));
    assert_eq!(seen.iter().filter(|(is_issued, _)| *is_issued).count(), 72);
}
