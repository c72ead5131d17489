//! I/O that is not direct: what of it reaches the device, when, and what waits for it.

use crate::support::{observe, spec, writing};
use hoistway_blk::bio::{BioFlags, Op};
use hoistway_blk::ground::{CpuId, Kernel, Now};
use hoistway_blk::watch::{Event, Probe};
use hoistway_device::Preset;
use hoistway_fio::{Environment, JobFile};
use hoistway_legacy::ALL_SCHEDULERS;
use hoistway_measure::PageCacheSummary;
use hoistway_measure::ProcessResult;
use hoistway_sim::{Control, Host, QueueSettings, RunSpec, Scenario};

/// The requests that the device has finished, and the sectors at which bios of flushers begin and end, in order.
#[derive(Default)]
struct Requests(Vec<Seen>, Vec<(u64, u64)>);

struct Seen {
    op: Op,
    flags: BioFlags,
    kib: u32,
}

impl Probe for Requests {
    fn event(&mut self, _: Now, _: CpuId, event: Event<'_>) {
        match event {
            Event::Complete(rq, _) => self.0.push(Seen { op: rq.op, flags: rq.flags, kib: rq.sectors / 2 }),
            Event::Queue(bio) if bio.flags.contains(BioFlags::BACKGROUND) => self.1.push((bio.sector.0, bio.end().0)),
            _ => {}
        }
    }
}

impl Requests {
    fn kib(&self, op: Op) -> u64 {
        self.0.iter().filter(|seen| seen.op == op).map(|seen| u64::from(seen.kib)).sum()
    }
}

struct Outcome {
    processes: Vec<ProcessResult>,
    cache: PageCacheSummary,
    requests: Requests,
}

const MIB: u64 = 1 << 20;

fn simulate_on(job: &str, device: &str, memory_mib: u64, spec: &RunSpec) -> Outcome {
    simulate_with(job, device, memory_mib, spec, QueueSettings::new(Kernel::V6_18, 8))
}

fn simulate_with(job: &str, device: &str, memory_mib: u64, spec: &RunSpec, queue: QueueSettings) -> Outcome {
    let global = if job.contains("directory") || job.contains("filename") { "" } else { "filename=/dev/sda" };
    let text = format!("[global]\nbs=4k\n{global}\n{job}");
    let workload = JobFile::parse(&text, "test.fio", &Environment::empty()).unwrap().load;
    let preset = Preset::builtin(device).unwrap();
    let host = Host { memory_bytes: memory_mib * MIB, ..Host::builtin(Host::DEFAULT).unwrap() };
    let scenario = Scenario {
        workload: &workload,
        devices: vec![&preset; workload.files.len()],
        guests: None,
        queue,
        host,
        runtime: None,
    };
    let (result, requests) = observe(&scenario, spec, Requests::default()).unwrap();
    assert!(result.processes.iter().all(|process| process.error == 0));
    Outcome { processes: result.processes, cache: result.page_cache.unwrap(), requests }
}

fn simulate(job: &str, scheduler: &str, memory_mib: u64) -> Outcome {
    simulate_on(job, "intel-s3520-1600gb", memory_mib, &spec(scheduler, &[], 1))
}

/// Nothing that is dirtied is lost or written twice.
fn assert_conserved(cache: &PageCacheSummary) {
    let dirtied = cache.written_bytes - cache.overwritten_bytes;
    let gone = cache.written_back_bytes + cache.synced_bytes + cache.discarded_bytes;
    assert_eq!(dirtied, gone + cache.dirty_bytes, "{cache:?}");
}

#[test]
fn a_second_reading_of_a_small_file_needs_no_device() {
    for scheduler in ALL_SCHEDULERS {
        let outcome = simulate("[reader]\nrw=randread\nsize=4m\nloops=3\n", scheduler, 64);
        assert_eq!(outcome.requests.kib(Op::Read), 4096, "{scheduler}");
        assert_eq!(outcome.processes[0].directions[0].bytes, 12 * MIB);
        // Some of so few blocks follow each other by chance.
        let PageCacheSummary { read_bytes, missed_bytes, read_ahead_bytes, .. } = outcome.cache;
        assert_eq!((read_bytes, missed_bytes + read_ahead_bytes), (12 * MIB, 4 * MIB));
        assert!(read_ahead_bytes < MIB / 2, "{scheduler}: {read_ahead_bytes}");
    }
}

#[test]
fn a_job_finds_pages_cached_by_an_earlier_one_only_without_invalidate() {
    for (invalidate, kib) in [(0, 4096), (1, 8192)] {
        let second = format!("[second]\nwait_for=first\nrw=read\nsize=4m\ninvalidate={invalidate}\n");
        let outcome = simulate(&format!("[first]\nrw=read\nsize=4m\n{second}"), "mq-deadline", 64);
        // The first one reads a little beyond what it was asked for, and so does the second.
        let read = outcome.requests.kib(Op::Read);
        assert!((kib..=kib + 512).contains(&read), "invalidate={invalidate}: {read} KiB");
    }
}

#[test]
fn data_that_exceeds_memory_is_read_again() {
    let outcome = simulate("[reader]\nrw=read\nsize=64m\nloops=2\n", "none", 16);
    let read = outcome.requests.kib(Op::Read) / 1024;
    assert!((127..=130).contains(&read), "{read} MiB");
}

#[test]
fn a_sequential_reader_makes_requests_of_128_kib_and_rarely_waits() {
    for scheduler in ALL_SCHEDULERS {
        let outcome = simulate("[reader]\nrw=read\nsize=64m\n", scheduler, 1024);
        let large = outcome.requests.0.iter().filter(|seen| seen.kib == 128).count();
        // 64 MiB are 512 of them; the first windows are smaller.
        assert!((505..=515).contains(&large) && outcome.requests.0.len() < 525, "{scheduler}: {large}");
        let ahead = outcome.requests.0.iter().filter(|seen| seen.flags.contains(BioFlags::RAHEAD)).count();
        assert!(ahead >= large, "{scheduler}: {ahead} of {large}");
        assert!(outcome.cache.missed_bytes <= 4096, "{scheduler}: {:?}", outcome.cache);
        let clat = &outcome.processes[0].directions[0].clat;
        let median_ns = clat.percentile(50.0).unwrap();
        assert!(median_ns < 10_000, "{scheduler}: {median_ns}");
    }
}

#[test]
fn a_writer_is_as_fast_as_memory_at_first_and_as_the_device_in_the_long_run() {
    let writer = |runtime: u32, direct: u32| {
        let job = format!(
            "[writer]\nrw=write\nbs=1m\nsize=50%\ntime_based\nruntime={runtime}\ndirect={direct}\nioengine=libaio\niodepth=32\n\
             [other]\ndirect=0\nrw=read\nsize=4k\n"
        );
        let outcome = simulate(&job, "mq-deadline", 1024);
        assert_conserved(&outcome.cache);
        (outcome.processes[0].directions[1].bytes / MIB, outcome.cache)
    };
    let (short, _) = writer(1, 0);
    let (long, cache) = writer(21, 0);
    let (direct, _) = writer(20, 1);
    // A fifth of 1 GiB is dirty before the writer waits.
    let steady = long - short;
    assert!(steady.abs_diff(direct) * 10 < direct, "{steady} MiB in 20 s, direct {direct}");
    assert!(short > 204 && cache.throttled_writes > 1000, "{short} MiB in the first second, {cache:?}");
    assert!(cache.dirty_bytes <= 206 * MIB, "{cache:?}");
}

#[test]
fn a_little_dirty_data_is_written_in_the_background_after_30_s() {
    for scheduler in ["none", "bfq", "cfq"] {
        let load = |seconds: u32| {
            let job =
                format!("[writer]\nrw=randwrite\nsize=1m\n[clock]\nrw=read\nsize=4k\nbs=4k\nstartdelay={seconds}\n");
            simulate(&job, scheduler, 1024)
        };
        let early = load(29);
        assert_eq!((early.requests.kib(Op::Write), early.cache.dirty_bytes), (0, MIB), "{scheduler}");
        let late = load(36);
        assert_eq!((late.requests.kib(Op::Write), late.cache.dirty_bytes), (1024, 0), "{scheduler}");
        let writes: Vec<&Seen> = late.requests.0.iter().filter(|seen| seen.op == Op::Write).collect();
        let is_background =
            |seen: &&Seen| seen.flags.contains(BioFlags::BACKGROUND) && !seen.flags.contains(BioFlags::SYNC);
        assert!(writes.iter().all(is_background), "{scheduler}");
        assert!(writes.len() <= 4, "{scheduler}: {} requests, though the pages lie next to each other", writes.len());
        assert_conserved(&late.cache);
    }
}

#[test]
fn a_flusher_goes_through_the_disk_in_the_order_of_pages_round_after_round() {
    for scheduler in ["mq-deadline", "noop"] {
        let outcome = simulate("[writer]\nrw=randwrite\nbs=16k\nsize=256m\nio_size=256m\n", scheduler, 128);
        let bios = outcome.requests.1;
        let turns = bios.windows(2).filter(|pair| pair[1].0 < pair[0].1).count();
        assert!(bios.len() > 1000 && turns < 30, "{scheduler}: {turns} turns in {} bios", bios.len());
        // The limit of the device: 2560 sectors, or what the kernel allows of that.
        assert!(bios.iter().all(|(first, end)| end - first <= 2560), "{scheduler}");
    }
}

#[test]
fn each_disk_has_a_flusher_and_an_fsync_is_for_one_of_them() {
    let job = "[w]\nfilename=/dev/a:/dev/b\nrw=write\nbs=64k\nsize=8m\nfsync=4\nend_fsync=1\n\
               [x]\nfilename=/dev/b\nrw=randwrite\nsize=256m\nio_size=64m\n";
    for scheduler in ["none", "bfq", "cfq"] {
        let outcome = simulate(job, scheduler, 128);
        assert_eq!(outcome.processes[0].directions[1].bytes, 8 * MIB, "{scheduler}");
        assert!(outcome.cache.synced_bytes >= 4 * MIB && outcome.cache.written_back_bytes > 0, "{scheduler}");
        assert_conserved(&outcome.cache);
    }
}

#[test]
fn an_fsync_writes_dirty_pages_and_then_flushes() {
    for scheduler in ALL_SCHEDULERS {
        let outcome = simulate("[wal]\nrw=write\nsize=1m\nfsync=16\nend_fsync=1\n", scheduler, 64);
        // The last one is not measured.
        assert_eq!(outcome.processes[0].sync.total_ios, 15, "{scheduler}");
        assert_eq!(outcome.cache.synced_bytes, MIB, "{scheduler}");
        let ops: Vec<(Op, u32)> = outcome.requests.0.iter().map(|seen| (seen.op, seen.kib)).collect();
        let expected = [(Op::Write, 64), (Op::Flush, 0)].repeat(16);
        assert_eq!(ops, expected, "{scheduler}");
        let writes = outcome.requests.0.iter().filter(|seen| seen.op == Op::Write);
        assert!(writes.clone().all(|seen| seen.flags.contains(BioFlags::SYNC)), "{scheduler}");
        assert_conserved(&outcome.cache);
    }
}

#[test]
fn a_write_with_o_sync_goes_through_to_the_device() {
    let outcome = simulate("[log]\nrw=write\nsize=256k\nsync=1\n", "mq-deadline", 64);
    let ops: Vec<Op> = outcome.requests.0.iter().map(|seen| seen.op).collect();
    assert_eq!(ops, [Op::Write, Op::Flush].repeat(64));
    assert_eq!(outcome.cache.dirty_bytes, 0);
}

#[test]
fn end_fsync_leaves_nothing_dirty_in_its_own_files_and_the_rest_alone() {
    let job = "[a]\ndirectory=/mnt\nrw=write\nsize=2m\nend_fsync=1\n[b]\ndirectory=/mnt\nrw=write\nsize=1m\n";
    let outcome = simulate(job, "none", 64);
    assert_eq!((outcome.cache.synced_bytes, outcome.cache.dirty_bytes), (2 * MIB, MIB));
}

#[test]
fn a_trim_drops_dirty_pages() {
    let outcome = simulate("[trim]\nrw=trimwrite\nsize=1m\nloops=2\n", "none", 64);
    assert_eq!(outcome.cache.discarded_bytes, MIB, "the second pass discards what the first one wrote");
    assert_eq!(outcome.requests.kib(Op::Discard), 2048);
    assert_conserved(&outcome.cache);
}

#[test]
fn all_that_is_dirtied_is_written_once_unless_it_is_overwritten_before() {
    for scheduler in ALL_SCHEDULERS {
        let job = "[a]\nrw=randrw\nsize=256m\nruntime=2\ntime_based\nnumjobs=3\nfsync=200\n\
                   [b]\nrw=randwrite\nbs=64k\nsize=512m\nruntime=2\ntime_based\n";
        let outcome = simulate(job, scheduler, 128);
        assert_conserved(&outcome.cache);
        assert!(outcome.cache.written_back_bytes > 0 && outcome.cache.overwritten_bytes > 0, "{scheduler}");
        let sent = outcome.cache.written_back_bytes + outcome.cache.synced_bytes;
        let done = outcome.requests.kib(Op::Write) * 1024;
        // The rest is in flight when the run ends.
        assert!(done <= sent && sent - done < 64 * MIB, "{scheduler}: {done} of {sent}");
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let job =
        "[w]\nrw=write\nbs=64k\nsize=1g\n[r]\nrw=randread\nsize=1g\nnumber_ios=2000\n[s]\nrw=write\nsize=4m\nfsync=8\n";
    for scheduler in ["none", "bfq", "deadline"] {
        let twice = [(); 2].map(|()| simulate(job, scheduler, 128));
        assert_eq!(format!("{:?}", twice[0].processes), format!("{:?}", twice[1].processes), "{scheduler}");
        assert_eq!(twice[0].cache, twice[1].cache);
    }
}

#[test]
fn bios_of_the_cache_may_end_on_another_cpu_than_the_interrupted_one() {
    let spec = writing(spec("mq-deadline", &[], 1), "rq_affinity", "2");
    let job = "size=16m\n[w]\nrw=write\nfsync=64\n[r]\nrw=randread\noffset=64m\nnumjobs=7";
    let outcome = simulate_on(job, "intel-s3520-1600gb", 64, &spec);
    assert_conserved(&outcome.cache);
    assert!(outcome.requests.kib(Op::Write) >= 15 << 10 && outcome.requests.kib(Op::Read) > 0);
}

#[test]
fn a_load_that_is_direct_has_no_page_cache() {
    let workload =
        JobFile::parse("[a]\nfilename=x\ndirect=1\nsize=1m\n", "test.fio", &Environment::empty()).unwrap().load;
    let preset = Preset::builtin("null").unwrap();
    let (queue, host) = (QueueSettings::new(Kernel::V6_18, 1), Host::builtin("instant").unwrap());
    let scenario = Scenario { workload: &workload, devices: vec![&preset], guests: None, queue, host, runtime: None };
    assert_eq!(hoistway_sim::run(&scenario, &spec("none", &[], 1), &Control::default()).unwrap().page_cache, None);
}
