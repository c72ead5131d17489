//! Merge rules: when a bio may be merged into a request, and a request into its neighbour (BL-34 to BL-44). Plug,
//! software queue and elevator find the candidates.

use std::collections::VecDeque;

use crate::bio::limits::Limits;
use crate::bio::{Bio, BioFlags, Op};
use crate::ground::ids::Sector;
use crate::ground::kernel::Generation;
use crate::request::{Marks, Request, Rq};

/// Number of requests of a software queue that a bio is compared with, newest first.
const MERGE_WINDOW: usize = 8;

/// The end of a request at which a bio fits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Edge {
    /// The bio comes before the request.
    Front,
    /// The bio comes after the request.
    Back,
}

/// Which kinds of merging are on (`queue/nomerges`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Merging {
    /// 0: all kinds.
    #[default]
    Full = 0,
    /// 1: only those with a cheap search for a candidate: plug, software queue and the one-hit cache.
    Simple = 1,
    /// 2: none.
    Off = 2,
}

/// The result of trying to merge a bio.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Merge {
    /// The bio was merged at this edge.
    Merged(Edge),
    /// The bio is not adjacent, or incompatible.
    No,
    /// The request would become too long; it is marked and never merges again.
    TooLong,
}

/// Settings that the rules depend on.
#[derive(Clone, Debug)]
pub struct MergeRules {
    /// The queue's limits.
    pub limits: Limits,
    /// Whether only bios of equal priority merge.
    pub equal_priority: bool,
    /// Whether only bios of the same cgroup merge.
    pub equal_cgroup: bool,
    /// Which kinds of merging are on.
    pub merging: Merging,
    /// Read-ahead of the page cache, KiB; only stored by the queue.
    pub read_ahead_kib: u32,
}

/// The default of `read_ahead_kb`.
const READ_AHEAD_KIB: u32 = 128;

/// I/O that is charged to the root instead of its cgroup.
const CHARGED_TO_ROOT: BioFlags = BioFlags::META.with(BioFlags::SWAP);

const NEVER: BioFlags = BioFlags(BioFlags::NOMERGE.0 | BioFlags::PREFLUSH.0 | BioFlags::FUA.0);

/// Requests with one of these marks no longer grow.
const CLOSED: Marks = Marks::STARTED.with(Marks::IN_SEQUENCE);

/// Whether a bio may merge at all.
#[inline]
#[must_use]
pub fn bio_mergeable(bio: &Bio) -> bool {
    !bio.flags.intersects(NEVER) && bio.sectors > 0
}

/// Whether a request may still grow.
#[inline]
#[must_use]
pub fn mergeable(rq: &Request) -> bool {
    !matches!(rq.op, Op::Flush | Op::WriteZeroes) && !rq.flags.intersects(NEVER) && !rq.marks.intersects(CLOSED)
}

impl MergeRules {
    /// Tries to merge a bio into one of the newest requests of a list; the first adjacent one decides.
    pub(crate) fn merge_with_newest(&self, list: &mut VecDeque<Rq>, bio: &mut Option<Bio>) -> Option<Edge> {
        let (start, end, op) = bio.as_ref().map(|bio| (bio.sector, bio.end(), bio.op))?;
        let may_join_anywhere = op == Op::Discard && self.limits.max_discard_segments > 1;
        for rq in list.iter_mut().rev().take(MERGE_WINDOW) {
            // Most are not adjacent, which is checked inline.
            if rq.end() != start && rq.sector != end && !may_join_anywhere {
                continue;
            }
            match self.merge(rq, bio) {
                Merge::No => {}
                Merge::Merged(edge) => return Some(edge),
                Merge::TooLong => return None,
            }
        }
        None
    }

    /// The rules of a kernel for a queue with these limits.
    #[must_use]
    pub fn new(generation: &Generation, limits: Limits, merging: Merging) -> Self {
        MergeRules {
            limits,
            equal_priority: generation.merge_needs_equal_priority,
            equal_cgroup: generation.merge_needs_equal_cgroup,
            merging,
            read_ahead_kib: READ_AHEAD_KIB,
        }
    }

    /// The edge at which `bio` may be merged into `rq` by position and kind; sizes are not checked.
    #[inline]
    #[must_use]
    pub fn edge(&self, rq: &Request, bio: &Bio) -> Option<Edge> {
        self.adjacent_edge(rq, bio.sector, bio.end()).filter(|_| self.alike(rq, bio))
    }

    /// The edge of `rq` that the range from `start` to `end` is adjacent to.
    #[inline]
    fn adjacent_edge(&self, rq: &Request, start: Sector, end: Sector) -> Option<Edge> {
        if rq.end() == start || self.accepts_ranges(rq) {
            Some(Edge::Back)
        } else if end == rq.sector {
            Some(Edge::Front)
        } else {
            None
        }
    }

    /// Whether a request accepts further ranges that need not be adjacent.
    #[inline]
    fn accepts_ranges(&self, rq: &Request) -> bool {
        rq.op == Op::Discard && self.limits.max_discard_segments > 1
    }

    /// Whether `bio` and `rq` are compatible, regardless of position.
    #[inline]
    #[must_use]
    pub fn alike(&self, rq: &Request, bio: &Bio) -> bool {
        mergeable(rq)
            && rq.op == bio.op
            && rq.write_hint == bio.write_hint
            && (!self.equal_priority || rq.ioprio == bio.ioprio)
            && (!self.equal_cgroup
                || (rq.cgroup == bio.cgroup
                    && rq.flags.intersects(CHARGED_TO_ROOT) == bio.flags.intersects(CHARGED_TO_ROOT)))
    }

    /// Whether the sizes allow merging `bio` into `rq` at `edge`.
    fn fits(&self, rq: &Request, bio: &Bio, edge: Edge) -> bool {
        if self.accepts_ranges(rq) {
            return rq.bios.len() < usize::from(self.limits.max_discard_segments)
                && rq.sectors + bio.sectors <= self.limits.max_discard_sectors;
        }
        let start = if edge == Edge::Front { bio.sector } else { rq.sector };
        rq.sectors + bio.sectors <= self.limits.max_at(rq.op, start)
            && u32::from(rq.segments) + u32::from(bio.segments) <= u32::from(self.limits.max_segments)
    }

    /// Merges `bio` into `rq` if allowed; on success the bio is taken out of its option.
    pub fn merge(&self, rq: &mut Request, bio: &mut Option<Bio>) -> Merge {
        let Some(candidate) = bio.as_ref() else { return Merge::No };
        let Some(edge) = self.edge(rq, candidate) else { return Merge::No };
        if !self.fits(rq, candidate, edge) {
            rq.flags = rq.flags.with(BioFlags::NOMERGE);
            return Merge::TooLong;
        }
        let Some(bio) = bio.take() else { return Merge::No };
        rq.sectors += bio.sectors;
        rq.segments += bio.segments;
        // Kernels that merge different priorities keep the smaller value, for which unset (0) is the highest.
        if !self.equal_priority {
            rq.ioprio.0 = rq.ioprio.0.min(bio.ioprio.0);
        }
        match edge {
            Edge::Back => rq.bios.push(bio),
            Edge::Front => {
                rq.sector = bio.sector;
                rq.bios.insert(0, bio);
            }
        }
        Merge::Merged(edge)
    }

    /// Whether `second` may be merged into `first`, which ends where it starts.
    #[must_use]
    pub fn may_absorb(&self, first: &Request, second: &Request) -> bool {
        first.end() == second.sector
            && mergeable(first)
            && mergeable(second)
            && first.op == second.op
            && first.write_hint == second.write_hint
            && (!self.equal_priority || first.ioprio == second.ioprio)
            && (!self.equal_cgroup
                || (first.cgroup == second.cgroup
                    && first.flags.intersects(CHARGED_TO_ROOT) == second.flags.intersects(CHARGED_TO_ROOT)))
            && first.sectors + second.sectors <= self.limits.max_at(first.op, first.sector)
            && u32::from(first.segments) + u32::from(second.segments) <= u32::from(self.limits.max_segments)
            && (!self.accepts_ranges(first)
                || first.bios.len() + second.bios.len() <= usize::from(self.limits.max_discard_segments))
    }
}

/// Merges `second` into `first`; `second` is then an empty slot to be freed.
pub fn absorb(first: &mut Request, second: &mut Rq) {
    first.sectors += second.sectors;
    first.segments += second.segments;
    first.start = first.start.min(second.start);
    // Priorities differ only on kernels that merge such bios: the smaller value is kept.
    first.ioprio.0 = first.ioprio.0.min(second.ioprio.0);
    first.bios.append(&mut second.bios);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bio::ioprio::{IoPriority, PriorityClass};
    use crate::ground::ids::{CgroupId, RqId};
    use crate::ground::kernel::Kernel;
    use crate::ground::sharing::Local;
    use crate::ground::time::Instant;
    use crate::request::RequestPool;

    fn request(bio: Bio) -> Rq {
        let mut rq = RequestPool::<Local>::new(1).take(RqId(0));
        rq.found(bio, Instant::ZERO);
        rq
    }

    fn rules(kernel: Kernel) -> MergeRules {
        MergeRules::new(
            &kernel.generation(),
            Limits { max_sectors: 64, max_segments: 4, ..Limits::default() },
            Merging::Full,
        )
    }

    fn merge(rq: &mut Rq, bio: Bio) -> Merge {
        rules(Kernel::V6_18).merge(rq, &mut Some(bio))
    }

    fn write(sector: u64) -> Bio {
        Bio::new(Op::Write, Sector(sector), 8)
    }

    #[test]
    fn back_and_front_merges_update_extent_and_keep_bios_in_sector_order() {
        let mut rq = request(write(100));
        assert_eq!(merge(&mut rq, write(108)), Merge::Merged(Edge::Back));
        assert_eq!(merge(&mut rq, write(92)), Merge::Merged(Edge::Front));
        assert_eq!((rq.sector, rq.sectors, rq.segments), (Sector(92), 24, 3));
        assert_eq!(rq.bios.iter().map(|bio| bio.sector.0).collect::<Vec<_>>(), [92, 100, 108]);
        assert_eq!(merge(&mut rq, write(300)), Merge::No);
    }

    #[test]
    fn different_operation_priority_cgroup_or_hint_never_merge() {
        let rt = IoPriority::new(PriorityClass::RealTime, 0);
        for bio in [
            Bio { op: Op::Read, ..write(108) },
            Bio { ioprio: rt, ..write(108) },
            Bio { cgroup: CgroupId(1), ..write(108) },
            Bio { write_hint: 3, ..write(108) },
        ] {
            assert_eq!(merge(&mut request(write(100)), bio), Merge::No);
        }
    }

    #[test]
    fn before_5_0_priorities_merge_and_the_smaller_value_wins() {
        let rt = IoPriority::new(PriorityClass::RealTime, 0);
        let mut rq = request(write(100));
        let merged = rules(Kernel::V4_12).merge(&mut rq, &mut Some(Bio { ioprio: rt, ..write(108) }));
        assert_eq!((merged, rq.ioprio), (Merge::Merged(Edge::Back), rt));
    }

    #[test]
    fn different_sync_flags_do_merge_and_the_request_keeps_its_own() {
        let mut rq = request(write(100));
        let sync = Bio { flags: BioFlags::SYNC, ..write(108) };
        assert_eq!(merge(&mut rq, sync), Merge::Merged(Edge::Back));
        assert!(!rq.is_sync());
    }

    #[test]
    fn a_request_that_would_become_too_long_never_merges_again() {
        let mut rq = request(Bio { sectors: 60, ..write(100) });
        assert_eq!(merge(&mut rq, write(160)), Merge::TooLong);
        assert_eq!(merge(&mut rq, Bio { sectors: 1, ..write(160) }), Merge::No);
        let mut rq = request(Bio { segments: 4, ..write(100) });
        assert_eq!(merge(&mut rq, write(108)), Merge::TooLong);
    }

    #[test]
    fn a_request_may_become_just_as_long_as_requests_may_be() {
        let of = |sector, sectors, segments| Bio { sectors, segments, ..write(sector) };
        let rules = rules(Kernel::V6_18);
        let absorbs = |one, other| rules.may_absorb(&request(one), &request(other));
        for (sectors, segments, fits) in [(8, 1, true), (9, 1, false), (8, 2, false)] {
            let mut rq = request(of(100, 56, 3));
            let merged = rules.merge(&mut rq, &mut Some(of(156, sectors, segments)));
            assert_eq!(merged == Merge::Merged(Edge::Back), fits, "a bio of {sectors} sectors, {segments} segments");
            assert_eq!(absorbs(of(100, 56, 3), of(156, sectors, segments)), fits, "a request of {sectors}, {segments}");
        }
        assert!(
            !absorbs(of(100, 8, 1), of(109, 8, 1)) && !absorbs(of(108, 8, 1), of(100, 8, 1)),
            "not one behind the other"
        );
    }

    #[test]
    fn preflush_fua_nomerge_and_started_never_merge() {
        for flag in [BioFlags::PREFLUSH, BioFlags::FUA, BioFlags::NOMERGE] {
            assert!(!bio_mergeable(&Bio { flags: flag, ..write(108) }));
            assert_eq!(merge(&mut request(Bio { flags: flag, ..write(100) }), write(108)), Merge::No);
        }
        let mut rq = request(write(100));
        rq.marks.set(Marks::STARTED);
        assert_eq!(merge(&mut rq, write(108)), Merge::No);
    }

    #[test]
    fn no_merge_across_a_chunk_boundary() {
        let mut rules = rules(Kernel::V6_18);
        rules.limits.chunk_sectors = 128;
        let mut rq = request(write(120));
        assert_eq!(rules.merge(&mut rq, &mut Some(write(128))), Merge::TooLong);
    }

    #[test]
    fn discards_join_up_to_the_ranges_of_one_command_wherever_they_are() {
        let discard = |sector| Bio::new(Op::Discard, Sector(sector), 8);
        let mut rules = rules(Kernel::V6_18);
        rules.limits.max_discard_segments = 3;
        let of = |count: u64, sector| {
            let mut rq = request(discard(sector));
            (1..count).for_each(|n| rq.bios.push(discard(sector + n * 1000)));
            rq
        };
        for (first, second, fits) in [(1, 1, true), (1, 2, true), (2, 2, false), (3, 1, false)] {
            assert_eq!(rules.may_absorb(&of(first, 100), &of(second, 108)), fits, "{first} and {second}");
        }
        for (ranges, merged) in [(2, Merge::Merged(Edge::Back)), (3, Merge::TooLong)] {
            assert_eq!(rules.merge(&mut of(ranges, 100), &mut Some(discard(9_000_000))), merged, "{ranges}");
        }
    }

    #[test]
    fn a_bio_without_data_does_not_merge() {
        assert!(bio_mergeable(&write(108)) && !bio_mergeable(&Bio { sectors: 0, ..write(108) }));
    }

    #[test]
    fn discards_join_up_to_the_largest_discard() {
        let discard = |sector, sectors| Bio::new(Op::Discard, Sector(sector), sectors);
        let mut rules = rules(Kernel::V6_18);
        (rules.limits.max_discard_segments, rules.limits.max_discard_sectors) = (4, 100);
        for (sectors, merged) in [(40, Merge::Merged(Edge::Back)), (41, Merge::TooLong)] {
            assert_eq!(rules.merge(&mut request(discard(0, 60)), &mut Some(discard(5000, sectors))), merged);
        }
    }
}
