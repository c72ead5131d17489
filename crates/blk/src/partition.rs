//! Partitions: a part of a disk as a device of its own (`block-layer.md` 1, 2.1 and 27.1). The queue below knows only the
//! disk: whoever has partitions remaps a bio before it is submitted.

use crate::bio::{Bio, Op, Status};
use crate::disk_stats::DiskStats;
use crate::ids::{CpuId, Sector};
use crate::kernel::Kernel;
use crate::probe::{Event, Probe};
use crate::request::Request;
use crate::time::Now;

/// A part of a disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Partition {
    /// Its first sector on the disk.
    pub start: Sector,
    /// Its length.
    pub sectors: u64,
}

impl Partition {
    /// Turns a bio of the partition into one of the disk.
    ///
    /// # Errors
    /// If it reaches beyond the end of the partition: it must end with this status and go no further. Empty bios are
    /// never out of range.
    pub fn remap(&self, bio: &mut Bio) -> Result<(), Status> {
        let end = bio.sector.0.checked_add(u64::from(bio.sectors));
        if bio.sectors > 0 && end.is_none_or(|end| end > self.sectors) {
            return Err(Status::IoError);
        }
        bio.sector = Sector(self.start.0.saturating_add(bio.sector.0));
        Ok(())
    }

    /// Whether a sector of the disk is one of the partition's.
    #[must_use]
    pub fn contains(&self, sector: Sector) -> bool {
        sector.0.checked_sub(self.start.0).is_some_and(|within| within < self.sectors)
    }
}

/// The statistics of one partition, a probe beside the [`DiskStats`] of the disk, which count all.
#[derive(Clone, Debug)]
pub struct PartitionStats {
    partition: Partition,
    stats: DiskStats,
    /// By request id: whether its first bio was the partition's. What joins a request later counts where that began.
    begun_here: Vec<bool>,
}

impl PartitionStats {
    /// Nothing counted yet.
    #[must_use]
    pub fn new(kernel: Kernel, partition: Partition) -> Self {
        PartitionStats { partition, stats: DiskStats::new(kernel), begun_here: Vec::new() }
    }

    /// What has been counted. Flush commands are counted on the disk only.
    pub fn stats(&mut self) -> &mut DiskStats {
        &mut self.stats
    }

    fn began_here(&self, rq: &Request) -> bool {
        rq.op != Op::Flush && self.begun_here.get(rq.id().0 as usize).copied().unwrap_or(false)
    }
}

impl Probe for PartitionStats {
    const WATCHES: bool = false;

    fn event(&mut self, now: Now, cpu: CpuId, event: Event<'_>) {
        let counts = match event {
            Event::GetRq(rq) => {
                let id = rq.id().0 as usize;
                if self.begun_here.len() <= id {
                    self.begun_here.resize(id + 1, false);
                }
                self.begun_here[id] = self.partition.contains(rq.sector);
                self.begun_here[id]
            }
            Event::Absorbed(rq) | Event::Issue(rq) | Event::Requeue(rq) | Event::Complete(rq, _) | Event::End(rq) => {
                self.began_here(rq)
            }
            _ => false,
        };
        if counts {
            self.stats.event(now, cpu, event);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;
    use crate::bio::BioFlags;
    use crate::driver::{Driver, Rejected};
    use crate::effects::Effects;
    use crate::ids::Waiter;
    use crate::limits::Limits;
    use crate::queue::{Cx, Queue, QueueConfig, Submission};
    use crate::request::Rq;
    use crate::sharing::Local;

    const SECOND: Partition = Partition { start: Sector(1000), sectors: 500 };

    #[test]
    fn item_2_a_bio_of_a_partition_is_remapped_by_its_start_and_one_past_its_end_is_refused() {
        let remapped = |sector, sectors| {
            let mut bio = Bio::new(Op::Read, Sector(sector), sectors);
            SECOND.remap(&mut bio).map(|()| bio.sector.0)
        };
        assert_eq!([remapped(0, 8), remapped(492, 8)], [Ok(1000), Ok(1492)]);
        assert_eq!([remapped(493, 8), remapped(500, 1), remapped(u64::MAX, 2)], [Err(Status::IoError); 3]);
        assert_eq!(remapped(0, 0), Ok(1000), "an fsync");
    }

    #[test]
    fn a_partition_has_the_sectors_from_its_start_to_before_its_end() {
        let inside = [999, 1000, 1499, 1500].map(|sector| SECOND.contains(Sector(sector)));
        assert_eq!(inside, [false, true, true, false]);
    }

    #[derive(Default)]
    struct Drive(VecDeque<Rq>);

    impl Driver for Drive {
        fn queue_rq(&mut self, _: Now, rq: Rq, _: bool) -> Result<(), Rejected> {
            self.0.push_back(rq);
            Ok(())
        }
    }

    #[test]
    fn item_2_statistics_count_for_the_partition_and_for_the_disk() {
        let kernel = Kernel::V6_18;
        let limits = Limits { write_cache: true, ..Limits::default() };
        let queue: Queue<Local> = Queue::new(&QueueConfig { limits, ..QueueConfig::new(kernel) }, "none").unwrap();
        let (mut drive, mut effects) = (Drive::default(), Effects::new());
        let first = Partition { start: Sector(0), sectors: 1000 };
        let parts = [first, SECOND].map(|partition| PartitionStats::new(kernel, partition));
        let [one, two] = parts;
        let mut probe = (DiskStats::new(kernel), (one, two));
        let read = |sectors| Bio::new(Op::Read, Sector(0), sectors);
        let fsync = Bio { flags: BioFlags::PREFLUSH, ..Bio::new(Op::Write, Sector(0), 0) };
        for (partition, mut bio) in [(first, read(8)), (SECOND, read(16)), (SECOND, read(32)), (SECOND, fsync)] {
            partition.remap(&mut bio).unwrap();
            let (driver, effects, probe) = (&mut drive, &mut effects, &mut probe);
            let cx = &mut Cx { now: Now::default(), cpu: CpuId(0), driver, effects, probe };
            queue.submit(cx, &mut Submission::new(bio, Waiter(0)), None);
            // A flush goes by way of a requeue.
            queue.kick_requeue(cx);
            queue.run_hctx(cx, crate::ids::HctxId(0));
            while let Some(rq) = cx.driver.0.pop_front() {
                queue.complete(cx, rq, Status::Ok);
            }
        }
        let (disk, (one, two)) = &mut probe;
        let counted = |stats: &DiskStats| [stats.reads().ios, stats.reads().sectors, stats.writes().ios];
        let all = [counted(disk), counted(one.stats()), counted(two.stats())];
        assert_eq!(all, [[3, 56, 1], [1, 8, 0], [2, 48, 1]]);
        let flushes = [disk.flushes().ios, one.stats().flushes().ios, two.stats().flushes().ios];
        assert_eq!(flushes, [1, 0, 0], "flush commands are the disk's");
        assert_eq!([disk.in_flight(), one.stats().in_flight(), two.stats().in_flight()], [0; 3]);
    }
}
