//! Stacked devices: what the disks below them do for the I/O of the processes on top.

use std::sync::Arc;

use hoistway_blk::ground::Kernel;
use hoistway_device::Preset;
use hoistway_fio::{Environment, JobFile};
use hoistway_load::Load;
use hoistway_measure::{Direction, DiskSummary};
use hoistway_sim::{
    Control, Host, QueueSettings, RunError, RunResult, RunSpec, Scenario, StackKind, StackMember, StackedDevice,
    run_with_statistics,
};
use proptest::prelude::*;

const HDD: &str = "hgst-he10-8tb";
const SSD: &str = "intel-s3520-1600gb";
const KERNELS: [Kernel; 6] = [Kernel::V4_4, Kernel::V4_19, Kernel::V5_10, Kernel::V6_3, Kernel::V6_12, Kernel::DEFAULT];

/// A stacked device over the disks with these numbers.
fn over(kind: StackKind, disks: std::ops::Range<u32>) -> Vec<StackedDevice> {
    vec![StackedDevice { name: "/dev/md0".to_owned(), kind, members: disks.map(StackMember::Disk).collect() }]
}

/// The load of a job file whose only file is on a stacked device over this many disks, if it is one.
fn load(job: &str, disks: usize, is_stacked: bool) -> Load {
    let text = format!("[global]\nioengine=libaio\ndirect=1\nfilename=/dev/md0\n{job}");
    let mut load = JobFile::parse(&text, "job.fio", &Environment::empty()).unwrap_or_else(|e| panic!("{e}")).load;
    assert_eq!(load.files.len(), 1);
    if is_stacked {
        load.files = (0..disks).map(|number| format!("/dev/disk{number}")).chain(["/dev/md0".to_owned()]).collect();
        load.processes.iter_mut().for_each(|process| process.files = Arc::new([disks as u32]));
    }
    load
}

fn try_simulate(
    load: &Load,
    devices: &[&str],
    stacks: Vec<StackedDevice>,
    scheduler: &str,
    kernel: Kernel,
) -> Result<(RunResult, Vec<DiskSummary>), RunError> {
    let presets: Vec<Preset> = devices.iter().map(|name| Preset::builtin(name).unwrap()).collect();
    let scenario = Scenario {
        workload: load,
        devices: presets.iter().collect(),
        guests: None,
        queue: QueueSettings { stacks, ..QueueSettings::new(kernel, 4) },
        host: Host::builtin(Host::DEFAULT).unwrap(),
        runtime: None,
    };
    let (result, statistics) = run_with_statistics(&scenario, &RunSpec::new(scheduler, 1), &Control::default())?;
    let simulated = result.simulated;
    Ok((result, statistics.summaries(&scenario, simulated)))
}

fn simulate(job: &str, devices: &[&str], kind: StackKind, scheduler: &str) -> (RunResult, Vec<DiskSummary>) {
    let load = load(job, devices.len(), true);
    let stacks = over(kind, 0..devices.len() as u32);
    try_simulate(&load, devices, stacks, scheduler, Kernel::DEFAULT).unwrap_or_else(|e| panic!("{e}"))
}

/// I/Os and mean latency, us, of all processes in a direction.
fn done(result: &RunResult, direction: Direction) -> (u64, f64) {
    let of = |process: &hoistway_measure::ProcessResult| process.direction(direction).ios;
    let ios: u64 = result.processes.iter().map(of).sum();
    let sum: f64 =
        result.processes.iter().map(|process| process.direction(direction).lat.mean() * of(process) as f64).sum();
    (ios, sum / ios.max(1) as f64)
}

/// Sectors read and written, as in `/sys/block/DEV/stat`.
fn sectors(disk: &DiskSummary) -> [u64; 2] {
    let field = |number: usize| disk.stat.split_whitespace().nth(number).unwrap().parse().unwrap();
    [field(2), field(6)]
}

#[test]
fn a_device_on_one_whole_disk_is_that_disk() {
    let job = "[r]\nrw=randread\nbs=4k\niodepth=4\nnumjobs=2\nruntime=1\ntime_based\n[w]\nrw=write\nbs=256k\nfsync=16\n\
         iodepth=8\niodepth_batch=8\nruntime=1\ntime_based\n";
    for device in [HDD, SSD, "samsung-980pro-1tb"] {
        for scheduler in ["none", "mq-deadline", "bfq", "kyber", "cfq"] {
            for kernel in KERNELS {
                let plain = try_simulate(&load(job, 1, false), &[device], Vec::new(), scheduler, kernel);
                let stacks = over(StackKind::Linear, 0..1);
                let stacked = try_simulate(&load(job, 1, true), &[device], stacks, scheduler, kernel);
                let ((plain, plain_disks), (stacked, stacked_disks)) = (plain.unwrap(), stacked.unwrap());
                assert_eq!(plain.processes.len(), stacked.processes.len());
                for direction in [Direction::Read, Direction::Write] {
                    assert_eq!(done(&plain, direction), done(&stacked, direction), "{device} {scheduler} {kernel}");
                }
                assert_eq!(plain.ios, stacked.ios);
                let stats = |disks: &[DiskSummary]| disks.iter().map(|disk| disk.stat.clone()).collect::<Vec<_>>();
                assert_eq!(stats(&plain_disks), stats(&stacked_disks));
            }
        }
    }
}

#[test]
fn a_large_read_of_a_striped_device_is_split_and_its_chunks_merge_again_in_the_plug() {
    // A process waits for all four chunks of an I/O, two of which are next to each other on each disk.
    let job = "[r]\nrw=read\nbs=256k\niodepth=4\niodepth_batch=4\nnumber_ios=40\n";
    let (result, disks) = simulate(job, &[SSD; 2], StackKind::Raid0 { chunk_sectors: 128 }, "mq-deadline");
    assert_eq!(done(&result, Direction::Read).0, 40);
    for disk in &disks {
        assert_eq!(sectors(disk), [40 * 256, 0], "{}", disk.stat);
        assert!(disk.read_merges >= 40, "{}", disk.stat);
    }
}

#[test]
fn stripes_over_more_disks_do_more() {
    let job = "[r]\nrw=randread\nbs=4k\niodepth=32\nruntime=2\ntime_based\n";
    let kind = StackKind::Raid0 { chunk_sectors: 1024 };
    let rate = |disks: usize| done(&simulate(job, &vec![HDD; disks], kind, "mq-deadline").0, Direction::Read).0 as f64;
    let (one, two, four) = (rate(1), rate(2), rate(4));
    assert!((1.5..2.0).contains(&(two / one)) && (2.0..4.0).contains(&(four / one)), "{one} {two} {four}");
}

#[test]
fn each_write_of_a_mirror_goes_to_all_members_and_each_read_to_one() {
    for devices in [[HDD; 3], [SSD; 3], [HDD, SSD, SSD]] {
        let job = "[m]\nrw=randrw\nbs=8k\niodepth=8\nnumber_ios=600\n";
        let (result, disks) = simulate(job, &devices, StackKind::Raid1, "bfq");
        let (reads, writes) = (done(&result, Direction::Read).0, done(&result, Direction::Write).0);
        assert_eq!(reads + writes, 600);
        for disk in &disks {
            assert_eq!(sectors(disk)[1], 16 * writes, "{}", disk.stat);
            assert!(sectors(disk)[0] > 0, "{} reads nothing: {}", disk.file, disk.stat);
        }
        assert_eq!(disks.iter().map(|disk| sectors(disk)[0]).sum::<u64>(), 16 * reads);
    }
}

#[test]
fn a_write_to_a_mirror_takes_as_long_as_its_slower_member() {
    let job = "[w]\nrw=randwrite\nbs=4k\nfsync=1\nnumber_ios=100\n";
    let latency = |devices: &[&str]| {
        let (result, _) = simulate(job, devices, StackKind::Raid1, "none");
        result.simulated.0
    };
    let (fast, mixed) = (latency(&[SSD, SSD]), latency(&[SSD, HDD]));
    assert!(mixed > 3 * fast, "{mixed} {fast}");
}

#[test]
fn an_fsync_of_a_stacked_device_flushes_every_disk_below() {
    let job = "[w]\nrw=write\nbs=4k\nfsync=1\nnumber_ios=50\n";
    let (_, disks) = simulate(job, &[SSD; 3], StackKind::Linear, "mq-deadline");
    let flushes = |disk: &DiskSummary| disk.stat.split_whitespace().nth(15).unwrap().parse::<u64>().unwrap();
    for disk in &disks {
        assert!(flushes(disk) >= 49, "{}", disk.stat);
    }
}

#[test]
fn a_processes_plugged_bios_on_a_striped_device_are_sent_when_its_call_ends() {
    let job = "[r]\nrw=randread\nbs=4k\niodepth=64\niodepth_batch=32\nnumber_ios=640\n";
    for kernel in KERNELS {
        for scheduler in ["none", "mq-deadline", "bfq", "kyber", "cfq"] {
            let stacks = over(StackKind::Raid0 { chunk_sectors: 8 }, 0..3);
            let load = load(job, 3, true);
            let (result, _) = try_simulate(&load, &[SSD; 3], stacks, scheduler, kernel).unwrap();
            assert_eq!(done(&result, Direction::Read).0, 640, "{scheduler} on {kernel}");
        }
    }
}

#[test]
fn stacked_devices_that_do_not_fit_the_load_are_errors() {
    let stacks = || over(StackKind::Linear, 0..1);
    let refused = |load: &Load, stacks| try_simulate(load, &[SSD], stacks, "none", Kernel::DEFAULT).unwrap_err();
    let job = "[r]\nrw=read\nbs=4k\nnumber_ios=1\n";
    assert!(matches!(refused(&load(job, 1, false), stacks()), RunError::Stacks), "the load has only a disk");
    let mut buffered = load(job, 1, true);
    buffered.processes[0].caching.direct = false;
    assert!(matches!(refused(&buffered, stacks()), RunError::Stacks));
}

/// A stack of random depth over four disks.
fn random_stack() -> impl Strategy<Value = Vec<StackedDevice>> {
    let chunk = || prop_oneof![Just(8u32), Just(64), Just(1024)];
    let kind = || {
        prop_oneof![
            Just(StackKind::Linear),
            Just(StackKind::Raid1),
            chunk().prop_map(|chunk_sectors| StackKind::Raid0 { chunk_sectors }),
        ]
    };
    let stack = |name: &str, kind, members: Vec<StackMember>| StackedDevice { name: name.to_owned(), kind, members };
    let disk = StackMember::Disk;
    (kind(), kind(), kind()).prop_map(move |(first, second, top)| {
        let both = vec![StackMember::Stack(0), StackMember::Stack(1)];
        vec![
            stack("/dev/md1", first, vec![disk(0), disk(1)]),
            stack("/dev/md2", second, vec![disk(2), disk(3)]),
            stack("/dev/md0", top, both),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_io_of_any_stack_is_lost(
        stacks in random_stack(),
        scheduler in prop::sample::select(vec!["none", "mq-deadline", "bfq", "kyber", "cfq", "noop"]),
        kernel in prop::sample::select(KERNELS.to_vec()),
        device in prop::sample::select(vec![HDD, SSD, "samsung-980pro-1tb"]),
        (size_kib, depth, batch) in (prop::sample::select(vec![4u32, 12, 256, 1020]), 1u32..200, 1u32..40),
        trims in any::<bool>(),
    ) {
        let other = if trims { "randtrim" } else { "randwrite" };
        let job = format!(
            "[a]\nrw=randrw\nbs={size_kib}k\niodepth={depth}\niodepth_batch={batch}\nnumber_ios=150\nfsync=7\nfile_service_type=random\n\
             [b]\nrw={other}\nbs=16k\nnumber_ios=60\niodepth=3\n"
        );
        let (result, _) = try_simulate(&load(&job, 4, true), &[device; 4], stacks, scheduler, kernel).unwrap();
        let of = |process: usize| {
            let directions = [Direction::Read, Direction::Write, Direction::Trim];
            directions.map(|direction| result.processes[process].direction(direction).ios).iter().sum::<u64>()
        };
        prop_assert_eq!((of(0), of(1)), (150, 60));
    }
}
