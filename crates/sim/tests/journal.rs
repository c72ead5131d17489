//! File systems with a journal: what an fsync waits for, and which of them share a commit.

use crate::support::observe;
use hoistway_blk::bio::BioFlags;
use hoistway_blk::ground::{CpuId, Kernel, Now};
use hoistway_blk::watch::{Event, Probe};
use hoistway_device::Preset;
use hoistway_fio::{Environment, JobFile};
use hoistway_legacy::ALL_SCHEDULERS;
use hoistway_measure::PageCacheSummary;
use hoistway_sim::{Host, QueueSettings, RunResult, RunSpec, Scenario};

/// What was submitted: where, how much and how.
#[derive(Default)]
struct Bios(Vec<(u64, u32, BioFlags)>);

impl Probe for Bios {
    fn event(&mut self, _: Now, _: CpuId, event: Event<'_>) {
        if let Event::Queue(bio) = event {
            self.0.push((bio.sector.0, bio.sectors, bio.flags));
        }
    }
}

/// Syncs that processes have had, what the page cache did, and all bios.
fn simulate(job: &str, scheduler: &str, journal: bool) -> (u64, PageCacheSummary, Bios) {
    let (result, bios) = simulate_probed(job, scheduler, journal, Bios::default());
    let syncs = result.processes.iter().map(|process| process.sync.total_ios).sum();
    (syncs, result.page_cache.unwrap(), bios)
}

fn simulate_probed<P: Probe>(job: &str, scheduler: &str, journal: bool, probe: P) -> (RunResult, P) {
    let text = format!("[global]\nbs=4k\nfilename=/dev/sda\n{job}");
    let workload = JobFile::parse(&text, "test.fio", &Environment::empty()).unwrap().load;
    let preset = Preset::builtin(DISK).unwrap();
    let host = Host { journal, memory_bytes: 256 << 20, ..Host::builtin(Host::DEFAULT).unwrap() };
    let queue = QueueSettings::new(Kernel::V6_18, 8);
    let scenario = Scenario { workload: &workload, devices: vec![&preset], guests: None, queue, host, runtime: None };
    let spec = RunSpec::new(scheduler, 1);
    let (result, probe) = observe(&scenario, &spec, probe).unwrap();
    assert!(result.processes.iter().all(|process| process.error == 0));
    (result, probe)
}

const DISK: &str = "intel-s3520-1600gb";

/// Journals lie in the middle of a disk.
fn is_of_journal(sector: u64) -> bool {
    sector >= Preset::builtin(DISK).unwrap().shape().capacity_sectors / 2 - 8
}

#[test]
fn an_fsync_writes_the_data_then_the_changed_blocks_and_when_they_are_there_the_record() {
    let (syncs, cache, Bios(bios)) = simulate("[one]\nrw=write\nsize=20k\nfsync=4\n", "none", true);
    assert_eq!((syncs, cache.commits), (1, 1));
    let [data, log, record] = &bios[..] else { panic!("{bios:?}") };
    assert_eq!((data.0, data.1), (0, 32));
    assert!(is_of_journal(log.0) && log.1 == 3 * 8, "what they are, the inode and the map of the blocks: {log:?}");
    assert_eq!((record.0, record.1), (log.0 + u64::from(log.1), 8));
    assert!(
        record.2.contains(BioFlags::PREFLUSH) && record.2.contains(BioFlags::FUA) && !log.2.contains(BioFlags::FUA)
    );
    assert_eq!(cache.journal_bytes, 4 * 4096);
    assert_eq!(cache.dirty_bytes, (2 + 1) * 4096, "the blocks themselves are written back later, as the last write is");
}

#[test]
fn without_a_journal_or_without_a_change_an_fsync_flushes_the_device() {
    let (_, cache, Bios(bios)) = simulate("[one]\nrw=write\nsize=20k\nfsync=4\n", "none", false);
    assert_eq!((bios.len(), cache.commits, cache.journal_bytes), (2, 0, 0), "{bios:?}");
    assert!(bios.last().is_some_and(|bio| bio.1 == 0 && bio.2.contains(BioFlags::PREFLUSH)));
    let (_, cache, Bios(bios)) = simulate("[one]\nrw=write\nsize=8k\nsync=1\nfsync=1\n", "none", true);
    assert_eq!(
        (bios.len(), cache.commits),
        (7, 2),
        "O_SYNC has committed what the fsync between the writes is about: {bios:?}"
    );
    assert!(bios[3].1 == 0 && bios[3].2.contains(BioFlags::PREFLUSH));
}

#[test]
fn fsyncs_during_a_commit_share_the_next_commit() {
    for scheduler in ALL_SCHEDULERS {
        let job = "[many]\nnumjobs=8\noffset_increment=1g\nsize=1m\nrw=write\nfsync=1\nruntime=200ms\ntime_based\n";
        let (syncs, cache, _) = simulate(job, scheduler, true);
        assert!(cache.commits > 10 && syncs > 3 * cache.commits, "{scheduler}: {syncs} by {}", cache.commits);
        let gone = cache.written_back_bytes + cache.synced_bytes + cache.discarded_bytes + cache.dirty_bytes;
        assert_eq!(
            cache.written_bytes - cache.overwritten_bytes,
            gone,
            "{scheduler}: nothing is lost or written twice"
        );
    }
}

#[test]
fn unsynced_changes_are_committed_after_five_seconds() {
    let job = "[slow]\nrw=write\nsize=1g\nrate_iops=10\nruntime=4\ntime_based\n";
    assert_eq!(simulate(job, "none", true).1.commits, 0);
    assert_eq!(simulate(&job.replace("runtime=4", "runtime=11"), "none", true).1.commits, 2);
}

/// What happens to what is submitted, in order: put forward, or handed to the device.
#[derive(Default)]
struct Order(Vec<(bool, u64)>);

impl Probe for Order {
    fn event(&mut self, _: Now, _: CpuId, event: Event<'_>) {
        match event {
            Event::Queue(bio) => self.0.push((false, bio.sector.0)),
            Event::Issue(rq) => self.0.push((true, rq.sector.0)),
            _ => {}
        }
    }
}

#[test]
fn the_blocks_of_a_commit_are_put_forward_in_one_plug() {
    // As many groups of blocks as it takes for what was changed of them to fill several bios.
    let job = "[many]\nrw=randwrite\nsize=400g\nnumber_ios=601\nfsync=600\n";
    let Order(order) = simulate_probed(job, "none", true, Order::default()).1;
    let of_journal = order.into_iter().filter(|&(_, sector)| is_of_journal(sector));
    let put_forward = of_journal.clone().take_while(|(is_issued, _)| !is_issued).count();
    let issued = of_journal.skip(put_forward).take_while(|(is_issued, _)| *is_issued).count();
    assert!(put_forward > 1 && issued < put_forward, "{put_forward} bios in {issued} requests");
}

#[test]
fn an_fsync_submits_the_data_of_a_file_in_one_plug() {
    let job = "[one]\nrw=randwrite\nsize=1g\nnumber_ios=5\nfsync=4\n";
    let Order(order) = simulate_probed(job, "none", false, Order::default()).1;
    assert_eq!(order.iter().position(|(is_issued, _)| *is_issued), Some(4), "{order:?}");
}
