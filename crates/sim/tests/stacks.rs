//! Stacked devices: what the disks below them do for the I/O of the processes on top.

use std::sync::Arc;

use crate::support::observe;
use hoistway_blk::bio::{BioFlags, IoPriority, Op, PriorityClass};
use hoistway_blk::ground::{CgroupId, CpuId, IoContextId, Kernel, Now};
use hoistway_blk::watch::{Event, Probe};
use hoistway_device::Preset;
use hoistway_fio::{Environment, JobFile};
use hoistway_load::Load;
use hoistway_measure::{Direction, DiskSummary};
use hoistway_sim::{
    Control, Encryption, Host, QueueSettings, RunError, RunResult, RunSpec, Scenario, StackKind, StackMember,
    StackedDevice, run_with_statistics,
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
        let (result, disks) = simulate(job, &devices, StackKind::Raid1 { bitmap: false }, "bfq");
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
        let (result, _) = simulate(job, devices, StackKind::Raid1 { bitmap: false }, "none");
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
fn a_process_may_use_a_stacked_device_and_a_disk() {
    for kind in [StackKind::Linear, StackKind::Raid5 { chunk_sectors: 8 }] {
        for call in ["psync", "libaio\niodepth=16\niodepth_batch=6"] {
            let job = format!("[m]\nrw=randrw\nbs=8k\nnumber_ios=200\nfsync=9\nioengine={call}\n");
            let mut load = load(&job, 4, true);
            // The first three disks are below the stacked device.
            load.processes[0].files = Arc::new([4, 3]);
            let text = format!("[global]\ndirect=1\nfilename=/dev/md0:/dev/disk3\n{job}");
            let two = JobFile::parse(&text, "job.fio", &Environment::empty()).unwrap().load;
            load.processes[0].plan = two.processes[0].plan.clone();
            let (result, disks) =
                try_simulate(&load, &[SSD; 4], over(kind, 0..3), "mq-deadline", Kernel::DEFAULT).unwrap();
            let (reads, writes) = (done(&result, Direction::Read).0, done(&result, Direction::Write).0);
            assert_eq!(reads + writes, 200, "{kind:?} {call}");
            let direct: u64 = sectors(&disks[3]).iter().sum();
            assert!(direct > 0 && disks[..3].iter().any(|disk| sectors(disk)[1] > 0));
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

#[test]
fn a_full_stripe_of_a_raid5_is_written_without_reads_and_a_page_with_two() {
    let kind = StackKind::Raid5 { chunk_sectors: 128 };
    let all =
        |disks: &[DiskSummary]| disks.iter().map(sectors).fold([0, 0], |sum, one| [sum[0] + one[0], sum[1] + one[1]]);
    let full = "[w]\nrw=write\nbs=320k\nnumber_ios=50\n";
    let (result, disks) = simulate(full, &[SSD; 6], kind, "mq-deadline");
    assert_eq!(done(&result, Direction::Write).0, 50);
    assert_eq!(all(&disks), [0, 50 * 6 * 128], "the parity as much as a chunk");
    let page = "[w]\nrw=randwrite\nbs=4k\nnumber_ios=50\n";
    let (_, disks) = simulate(page, &[SSD; 6], kind, "mq-deadline");
    assert_eq!(all(&disks), [50 * 2 * 8, 50 * 2 * 8]);
    let (_, disks) = simulate(page, &[SSD; 6], StackKind::Raid6 { chunk_sectors: 128 }, "mq-deadline");
    assert_eq!(all(&disks), [50 * 3 * 8, 50 * 3 * 8]);
    let (_, disks) = simulate("[r]\nrw=randread\nbs=4k\nnumber_ios=50\n", &[SSD; 6], kind, "bfq");
    assert_eq!(all(&disks), [50 * 8, 0]);
}

#[test]
fn a_small_write_to_a_raid5_waits_for_its_reads() {
    let job = "[w]\nrw=randwrite\nbs=4k\nnumber_ios=40\nfsync=1\n";
    let time = |kind| simulate(job, &[HDD; 4], kind, "mq-deadline").0.simulated.0;
    let (striped, with_parity) =
        (time(StackKind::Raid0 { chunk_sectors: 128 }), time(StackKind::Raid5 { chunk_sectors: 128 }));
    assert!(with_parity > striped * 5 / 4, "{with_parity} {striped}");
}

#[test]
fn a_bitmap_is_written_before_the_first_write_to_a_region_and_no_more() {
    let job = "[w]\nrw=randwrite\nbs=4k\nsize=32m\nnumber_ios=200\n";
    let (plain, plain_disks) = simulate(job, &[HDD; 2], StackKind::Raid1 { bitmap: false }, "mq-deadline");
    let (marked, disks) = simulate(job, &[HDD; 2], StackKind::Raid1 { bitmap: true }, "mq-deadline");
    for (disk, plain) in disks.iter().zip(&plain_disks) {
        assert_eq!(sectors(disk), [0, sectors(plain)[1] + 8], "one page on each member");
    }
    assert!(done(&marked, Direction::Write).1 > done(&plain, Direction::Write).1);
    let spread = "[w]\nrw=randwrite\nbs=4k\nnumber_ios=200\n";
    let (_, disks) = simulate(spread, &[HDD; 2], StackKind::Raid1 { bitmap: true }, "mq-deadline");
    assert!(sectors(&disks[0])[1] > 380 * 8, "nearly every write is in another region: {}", disks[0].stat);
}

fn encrypted(read_queue: bool, write_queue: bool, ns_per_kib: u32) -> StackKind {
    StackKind::Crypt(Encryption { read_queue, write_queue, ns_per_kib })
}

#[test]
fn encryption_takes_its_cpu_time_and_less_without_work_queues() {
    let read = "[r]\nrw=randread\nbs=64k\nnumber_ios=200\n";
    let write = "[w]\nrw=randwrite\nbs=64k\nnumber_ios=200\n";
    for (job, direction) in [(read, Direction::Read), (write, Direction::Write)] {
        let latency = |kind| done(&simulate(job, &["samsung-980pro-1tb"], kind, "none").0, direction).1;
        let plain = latency(StackKind::Linear);
        let (queued, inline) = (latency(encrypted(true, true, 400)), latency(encrypted(false, false, 400)));
        // 64 KiB take 25.6 us, and the wake-ups of workers come on top.
        assert!(inline >= plain + 25_000.0 && inline < plain + 40_000.0, "{direction:?}: {plain} {inline}");
        assert!(queued > inline + 1000.0, "{direction:?}: {queued} {inline}");
    }
}

#[test]
fn an_encrypted_device_sends_its_disk_the_same_sectors() {
    let job = "[m]\nrw=randrw\nbs=16k\niodepth=16\nnumber_ios=400\nfsync=32\n";
    for options in [(true, true), (false, true), (true, false), (false, false)] {
        let (result, disks) = simulate(job, &[SSD], encrypted(options.0, options.1, 400), "bfq");
        let (reads, writes) = (done(&result, Direction::Read).0, done(&result, Direction::Write).0);
        assert_eq!((reads + writes, sectors(&disks[0])), (400, [32 * reads, 32 * writes]));
    }
}

#[test]
fn what_a_layer_cannot_pass_on_is_not_supported() {
    let job = "[t]\nrw=randtrim\nbs=16k\nnumber_ios=4\n";
    for (kind, disks) in [(encrypted(true, true, 400), 1), (StackKind::Raid5 { chunk_sectors: 128 }, 3)] {
        let (result, _) = simulate(job, &vec![SSD; disks], kind, "none");
        assert_eq!(result.processes[0].error, 95, "EOPNOTSUPP");
    }
}

/// What the disks know of the bios of each operation.
#[derive(Default)]
struct Known(Vec<(Op, IoPriority, CgroupId, IoContextId, bool)>);

impl Probe for Known {
    fn event(&mut self, _: Now, _: CpuId, event: Event<'_>) {
        if let Event::Queue(bio) = event {
            let known = (bio.op, bio.ioprio, bio.cgroup, bio.io_context, bio.flags.contains(BioFlags::SYNC));
            if !self.0.contains(&known) {
                self.0.push(known);
            }
        }
    }
}

#[test]
fn the_disks_know_of_an_io_what_its_layers_keep() {
    let job = "[m]\nrw=randrw\nbs=4k\nprioclass=1\nprio=2\ncgroup=g\niodepth=4\nnumber_ios=60\n";
    let (own, none) = (IoPriority::new(PriorityClass::RealTime, 2), IoPriority::DEFAULT);
    let (group, task) = (CgroupId(1), IoContextId(1));
    let thread = |disks: u32| IoContextId(1 + 2 * disks + 1);
    let (read, write) = ((Op::Read, own, group, task, false), (Op::Write, own, group, task, true));
    let chunk_sectors = 128;
    for (kind, disks, expected) in [
        (StackKind::Linear, 2, vec![read, write]),
        (StackKind::Raid0 { chunk_sectors }, 2, vec![read, write]),
        (StackKind::Raid1 { bitmap: false }, 2, vec![read, write]),
        (encrypted(true, true, 400), 1, vec![read, (Op::Write, own, group, thread(1), true)]),
        (encrypted(true, false, 400), 1, vec![read, write]),
        (StackKind::Raid5 { chunk_sectors }, 3, {
            let lost = |op| (op, none, CgroupId::ROOT, thread(3), false);
            vec![read, lost(Op::Read), lost(Op::Write)]
        }),
    ] {
        let load = load(job, disks, true);
        let preset = Preset::builtin(SSD).unwrap();
        let scenario = Scenario {
            workload: &load,
            devices: vec![&preset; disks],
            guests: None,
            queue: QueueSettings { stacks: over(kind, 0..disks as u32), ..QueueSettings::new(Kernel::DEFAULT, 4) },
            host: Host::builtin(Host::DEFAULT).unwrap(),
            runtime: None,
        };
        let (_, known) = observe(&scenario, &RunSpec::new("bfq", 1), Known::default()).unwrap();
        let by_context = |known: &(Op, IoPriority, CgroupId, IoContextId, bool)| (known.3.0, known.0);
        let (mut known, mut expected) = (known.0, expected);
        known.sort_by_key(by_context);
        expected.sort_by_key(by_context);
        assert_eq!(known, expected, "{kind:?}");
    }
}

/// A stack over seven disks, and whether it takes trims.
fn random_stack() -> impl Strategy<Value = (Vec<StackedDevice>, bool)> {
    let chunk = || prop_oneof![Just(8u32), Just(64), Just(1024)];
    let simple = || {
        prop_oneof![
            Just(StackKind::Linear),
            any::<bool>().prop_map(|bitmap| StackKind::Raid1 { bitmap }),
            chunk().prop_map(|chunk_sectors| StackKind::Raid0 { chunk_sectors }),
        ]
    };
    let parity = || {
        prop_oneof![
            chunk().prop_map(|chunk_sectors| StackKind::Raid5 { chunk_sectors }),
            chunk().prop_map(|chunk_sectors| StackKind::Raid6 { chunk_sectors }),
        ]
    };
    let first = prop_oneof![simple(), chunk().prop_map(|chunk_sectors| StackKind::Raid5 { chunk_sectors })];
    let second = prop_oneof![simple(), parity()];
    let stack = |name: &str, kind, members: Vec<StackMember>| StackedDevice { name: name.to_owned(), kind, members };
    (first, second, prop::option::of((any::<bool>(), any::<bool>())), simple()).prop_map(
        move |(first, second, crypt, top)| {
            let has_parity = |kind| matches!(kind, StackKind::Raid5 { .. } | StackKind::Raid6 { .. });
            let takes_trims = crypt.is_none() && !has_parity(first) && !has_parity(second);
            let mut stacks = vec![
                stack("/dev/md1", first, (0..3).map(StackMember::Disk).collect()),
                stack("/dev/md2", second, (3..7).map(StackMember::Disk).collect()),
            ];
            let mut left = StackMember::Stack(0);
            if let Some((read_queue, write_queue)) = crypt {
                stacks.push(stack("crypt", encrypted(read_queue, write_queue, 400), vec![left]));
                left = StackMember::Stack(2);
            }
            stacks.push(stack("/dev/md0", top, vec![left, StackMember::Stack(1)]));
            (stacks, takes_trims)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_io_of_any_stack_is_lost(
        (stacks, takes_trims) in random_stack(),
        scheduler in prop::sample::select(vec!["none", "mq-deadline", "bfq", "kyber", "cfq", "noop"]),
        kernel in prop::sample::select(KERNELS.to_vec()),
        device in prop::sample::select(vec![HDD, SSD, "samsung-980pro-1tb"]),
        (size_kib, depth, batch) in (prop::sample::select(vec![4u32, 12, 256, 1020]), 1u32..200, 1u32..40),
        trims in any::<bool>(),
    ) {
        let other = if trims && takes_trims { "randtrim" } else { "randwrite" };
        let job = format!(
            "[a]\nrw=randrw\nbs={size_kib}k\niodepth={depth}\niodepth_batch={batch}\nnumber_ios=150\nfsync=7\nfile_service_type=random\n\
             [b]\nrw={other}\nbs=16k\nnumber_ios=60\niodepth=3\n"
        );
        let (result, _) = try_simulate(&load(&job, 7, true), &[device; 7], stacks, scheduler, kernel).unwrap();
        let of = |process: usize| {
            let directions = [Direction::Read, Direction::Write, Direction::Trim];
            directions.map(|direction| result.processes[process].direction(direction).ios).iter().sum::<u64>()
        };
        prop_assert_eq!((of(0), of(1)), (150, 60));
        prop_assert!(result.processes.iter().all(|process| process.error == 0));
    }
}
