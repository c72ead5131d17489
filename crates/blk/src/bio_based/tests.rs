//! Drivers that take bios (`legacy-queue.md` 1, `block-layer.md` 2.1 and 22.2).

use std::collections::VecDeque;

use super::*;
use crate::attributes::AttributeError;
use crate::bio::Op;
use crate::cgroup_stats::CgroupStats;
use crate::disk_stats::{DiskStats, IoCounts};
use crate::effects::{Effect, Effects};
use crate::ids::{CgroupId, CpuId, Sector, Waiter};
use crate::io_max::{Charge, IoMax, THROTTLE_SLICE, Throttle};
use crate::queue::{Queue, QueueConfig, Submission};
use crate::sharing::Local;
use crate::time::Instant;

/// A driver that keeps bios until it is told, or ends each at once.
#[derive(Default)]
struct Script {
    at_once: Option<Status>,
    kept: VecDeque<Bio>,
}

impl BioDriver for Script {
    fn submit_bio(&mut self, _: Now, bio: Bio) -> Option<(Bio, Status)> {
        if let Some(status) = self.at_once {
            return Some((bio, status));
        }
        self.kept.push_back(bio);
        None
    }
}

/// Letters with start sectors, as blktrace has them.
#[derive(Default)]
struct Letters(Vec<String>);

impl Probe for Letters {
    fn event(&mut self, _: Now, _: CpuId, event: Event<'_>) {
        self.0.push(match event {
            Event::Queue(bio) => format!("Q{}", bio.sector.0),
            Event::BioComplete(bio, _) => format!("C{}", bio.sector.0),
            other => panic!("there are no requests to tell of: {other:?}"),
        });
    }
}

struct Bench {
    queue: BioQueue,
    driver: Script,
    effects: Effects,
    probe: (Letters, (DiskStats, CgroupStats)),
}

impl Bench {
    fn new(kernel: Kernel, limits: Limits) -> Self {
        let (letters, stats) = (Letters::default(), (DiskStats::new(kernel), CgroupStats::default()));
        let queue = BioQueue::new(kernel, limits);
        Bench { queue, driver: Script::default(), effects: Effects::new(), probe: (letters, stats) }
    }

    fn call(
        &mut self,
        body: impl FnOnce(&BioQueue, &mut Cx<'_, Script, (Letters, (DiskStats, CgroupStats))>),
    ) -> Vec<(u64, Status)> {
        let (driver, effects, probe) = (&mut self.driver, &mut self.effects, &mut self.probe);
        let cx = &mut Cx { now: Now::default(), cpu: CpuId(0), driver, effects, probe };
        body(&self.queue, cx);
        let mut ended = Vec::new();
        while let Some(effect) = self.effects.pop() {
            let Effect::EndBio { bio, status } = effect else { panic!("only bios end here: {effect:?}") };
            ended.push((bio.sector.0, status));
        }
        ended
    }

    fn submit(&mut self, bio: Bio) -> Vec<(u64, Status)> {
        self.call(|queue, cx| queue.submit(cx, bio))
    }

    /// Submits what never reaches the driver; answers how it ends.
    fn refused(&mut self, bio: Bio) -> Status {
        let ended = self.submit(bio);
        assert!(self.driver.kept.is_empty() && self.probe.0.0.is_empty(), "it goes no further");
        ended[0].1
    }
}

fn bench() -> Bench {
    Bench::new(Kernel::V4_12, Limits::default())
}

fn write(sector: u64, flags: BioFlags) -> Bio {
    Bio { flags, ..Bio::new(Op::Write, Sector(sector), 8) }
}

#[test]
fn bios_reach_the_driver_whole_one_by_one_and_in_order() {
    let mut bench = Bench::new(Kernel::V6_18, Limits { max_sectors: 8, chunk_sectors: 16, ..Limits::default() });
    // Neighbours, one that no request could hold, and one that ends inside a logical block of a larger size.
    let bios = [(8, 8), (16, 8), (100, 5000), (3, 1)].map(|(at, len)| Bio::new(Op::Read, Sector(at), len));
    for bio in bios.clone() {
        assert!(bench.submit(bio).is_empty(), "the driver has it");
    }
    assert_eq!(bench.driver.kept, bios);
}

#[test]
fn a_bio_is_announced_when_it_enters_and_when_it_ends_late_or_at_once() {
    let mut bench = bench();
    bench.submit(write(8, BioFlags::NONE));
    let kept = bench.driver.kept.pop_front().unwrap();
    assert_eq!(bench.call(|queue, cx| queue.complete(cx, kept, Status::Medium)), [(8, Status::Medium)]);
    bench.driver.at_once = Some(Status::Ok);
    assert_eq!(bench.submit(write(16, BioFlags::NONE)), [(16, Status::Ok)]);
    assert_eq!(bench.probe.0.0, ["Q8", "C8", "Q16", "C16"]);
}

#[test]
fn what_the_device_cannot_do_ends_before_the_driver_sees_it() {
    let limits = || Limits { capacity: Sector(100), max_discard_sectors: 0, ..Limits::default() };
    let old = || Bench::new(Kernel::V4_12, limits());
    assert_eq!(old().refused(Bio::new(Op::Read, Sector(93), 8)), Status::IoError);
    assert_eq!(old().refused(Bio::new(Op::Discard, Sector(0), 8)), Status::NotSupported);
    assert_eq!(old().refused(Bio::new(Op::WriteZeroes, Sector(0), 8)), Status::NotSupported);
    assert_eq!(old().refused(Bio::new(Op::Flush, Sector(0), 0)), Status::NotSupported);
    assert_eq!(old().refused(Bio { flags: BioFlags::FUA, ..Bio::new(Op::Read, Sector(0), 8) }), Status::IoError);
    assert!(old().submit(Bio::new(Op::Read, Sector(92), 8)).is_empty(), "it ends at the capacity");
    let mut new = Bench::new(Kernel::V5_10, limits());
    assert_eq!(new.refused(write(0, BioFlags::POLLED)), Status::NotSupported);
    assert!(old().submit(write(0, BioFlags::POLLED)).is_empty(), "an old kernel takes no notice");
}

#[test]
fn a_bio_that_must_not_wait_needs_a_driver_that_never_does() {
    assert_eq!(bench().refused(write(0, BioFlags::NOWAIT)), Status::NotSupported);
    let mut bench = bench();
    bench.queue = bench.queue.with_nowait();
    assert!(bench.submit(write(0, BioFlags::NOWAIT)).is_empty());
    assert_eq!(bench.driver.kept.len(), 1);
}

#[test]
fn what_must_be_durable_is_the_drivers_business_if_there_is_a_cache_and_nobodys_if_not() {
    let both = BioFlags::PREFLUSH.with(BioFlags::FUA);
    let fsync = || Bio { flags: BioFlags::PREFLUSH, ..Bio::new(Op::Write, Sector(0), 0) };
    let mut cached = Bench::new(Kernel::V6_18, Limits { write_cache: true, ..Limits::default() });
    cached.submit(write(8, both));
    cached.submit(fsync());
    assert_eq!(cached.driver.kept, [write(8, both), fsync()], "the driver sees both flags, and the empty bio");
    cached.driver.kept.clear();
    cached.queue.set_attribute("write_cache", "write through").unwrap();
    assert_eq!(cached.submit(fsync()), [(0, Status::Ok)]);
    cached.submit(write(8, both));
    assert_eq!(cached.driver.kept, [write(8, BioFlags::NONE)]);
}

#[test]
fn cgroups_are_charged_and_the_disk_counts_nothing() {
    let mut bench = bench();
    bench.driver.at_once = Some(Status::Ok);
    bench.submit(Bio { cgroup: CgroupId(2), ..Bio::new(Op::Read, Sector(0), 8) });
    let (disk, cgroups) = &bench.probe.1;
    assert_eq!((cgroups.own(CgroupId(2)).ios, cgroups.own(CgroupId(2)).bytes), ([1, 0, 0], [4096, 0, 0]));
    assert_eq!((disk.reads(), disk.in_flight()), (IoCounts::default(), 0));
}

#[test]
fn io_max_above_it_holds_bios_back_as_above_any_queue() {
    let mut bench = bench();
    let mut throttle = Throttle::new(THROTTLE_SLICE);
    throttle.set_limits(Instant::ZERO, CgroupId(1), IoMax { riops: Some(10), ..IoMax::default() });
    for sector in [0, 8] {
        let bio = Bio { cgroup: CgroupId(1), ..Bio::new(Op::Read, Sector(sector), 8) };
        if let Some(bio) = throttle.submit(Instant::ZERO, bio, Charge::Whole) {
            bench.submit(bio);
        }
    }
    assert_eq!(bench.driver.kept.len(), 1, "ten in a second: one in a slice");
    let mut released = Vec::new();
    throttle.release(throttle.due().unwrap(), &mut released);
    released.into_iter().for_each(|bio| assert!(bench.submit(bio).is_empty()));
    assert_eq!(bench.driver.kept.len(), 2);
}

#[test]
fn the_scheduler_reads_none_whatever_is_written_and_has_no_file_in_kernels_of_today() {
    for kernel in Kernel::EXAMPLES {
        let mut queue = BioQueue::new(kernel, Limits::default());
        let answers = ["deadline", "bfq", "nonsense"].map(|name| queue.set_attribute("scheduler", name));
        let (wrote, reads) = if !kernel.is_from(6, 0) {
            (Ok(()), Ok("none\n".to_owned()))
        } else {
            (Err(AttributeError::Unknown), Err(AttributeError::Unknown))
        };
        assert_eq!(answers, [wrote.clone(), wrote.clone(), wrote], "{kernel}");
        assert_eq!(queue.attribute("scheduler"), reads, "{kernel}");
    }
}

#[test]
fn files_that_tell_of_requests_do_not_exist_and_those_of_limits_do() {
    let mut queue = BioQueue::new(Kernel::V4_19, Limits::default());
    for file in ["nr_requests", "nomerges", "rq_affinity", "io_timeout", "io_poll", "iosched/quantum"] {
        assert_eq!(queue.attribute(file), Err(AttributeError::Unknown), "{file}");
        assert_eq!(queue.set_attribute(file, "1"), Err(AttributeError::Unknown), "{file}");
    }
    assert_eq!(queue.set_attribute("logical_block_size", "512"), Err(AttributeError::ReadOnly));
    queue.set_attribute("max_sectors_kb", "128").unwrap();
    assert_eq!((queue.attribute("max_sectors_kb"), queue.limits().max_sectors), (Ok("128\n".into()), 256));
}

/// A stripe of two disks: every other chunk of 8 sectors is the second's.
#[derive(Default)]
struct Stripe {
    /// For which disk, and what.
    below: Vec<(usize, Bio)>,
}

impl BioDriver for Stripe {
    fn submit_bio(&mut self, _: Now, bio: Bio) -> Option<(Bio, Status)> {
        let chunk = bio.sector.0 / 8;
        let sector = Sector(chunk / 2 * 8 + bio.sector.0 % 8);
        self.below.push(((chunk % 2) as usize, Bio { sector, ..bio }));
        None
    }
}

#[test]
fn a_stacking_driver_submits_to_the_disks_below_once_it_has_returned() {
    let stripe = BioQueue::new(Kernel::V6_18, Limits::default());
    let (mut driver, mut effects) = (Stripe::default(), Effects::new());
    let cpu = CpuId(0);
    for chunk in 0..4 {
        let bio = Bio { owner: chunk, ..Bio::new(Op::Read, Sector(chunk * 8), 8) };
        let (now, probe) = (Now::default(), &mut crate::probe::NoProbe);
        stripe.submit(&mut Cx { now, cpu, driver: &mut driver, effects: &mut effects, probe }, bio);
    }
    let disks = [(); 2].map(|()| Queue::<Local>::new(&QueueConfig::new(Kernel::V6_18), "none").unwrap());
    let mut drives = [(); 2].map(|()| Drive::default());
    for (disk, bio) in driver.below.drain(..) {
        let (driver, probe) = (&mut drives[disk], &mut crate::probe::NoProbe);
        let cx = &mut Cx { now: Now::default(), cpu, driver, effects: &mut effects, probe };
        disks[disk].submit(cx, &mut Submission::new(bio, Waiter(0)), None);
    }
    let seen = drives.map(|drive| drive.0.iter().map(|rq| (rq.sector.0, rq.bios[0].owner)).collect::<Vec<_>>());
    assert_eq!(seen, [vec![(0, 0), (8, 2)], vec![(0, 1), (8, 3)]]);
}

/// A drive that takes everything.
#[derive(Default)]
struct Drive(Vec<crate::request::Rq>);

impl crate::driver::Driver for Drive {
    fn queue_rq(&mut self, _: Now, rq: crate::request::Rq, _: bool) -> Result<(), crate::driver::Rejected> {
        self.0.push(rq);
        Ok(())
    }
}
