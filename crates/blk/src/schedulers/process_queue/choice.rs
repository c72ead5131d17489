//! The choice between two requests of one queue: by whether a task waits for it, whether it is important, and which is
//! nearer.
//!
//! Rules: BFQ-58, CFQ-18, CFQ-19.

use crate::ground::ids::{RqId, Sector};

/// A request as input of the choice.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// The request.
    pub id: RqId,
    /// Its first sector.
    pub sector: Sector,
    /// Whether a task waits for it.
    pub sync: bool,
    /// Whether it is flagged as important.
    pub prio: bool,
}

/// How far behind the head a request may lie, and what going back costs.
#[derive(Clone, Copy, Debug)]
pub struct Chooser {
    /// How far behind the head a request still counts as near, sectors (`back_seek_max`).
    pub back_sectors_max: u64,
    /// What a sector backward costs in sectors forward (`back_seek_penalty`).
    pub back_penalty: u64,
}

impl Chooser {
    /// The better of two requests, seen from `position`.
    #[inline]
    pub fn better(&self, a: Option<Candidate>, b: Option<Candidate>, position: Sector) -> Option<RqId> {
        let (Some(a), Some(b)) = (a, b) else { return a.or(b).map(|candidate| candidate.id) };
        if a.sync != b.sync {
            return Some(if a.sync { a.id } else { b.id });
        }
        if a.prio != b.prio {
            return Some(if a.prio { a.id } else { b.id });
        }
        let a_wins = match (self.distance(a.sector, position), self.distance(b.sector, position)) {
            (Some(to_a), Some(to_b)) => to_a < to_b || (to_a == to_b && a.sector >= b.sector),
            (Some(_), None) => true,
            (None, Some(_)) => false,
            // Both are too far behind, so the head starts again from the lowest sector.
            (None, None) => a.sector <= b.sector,
        };
        Some(if a_wins { a.id } else { b.id })
    }

    /// The cost of going to `sector`; `None` if it is too far behind to go back to.
    #[inline]
    fn distance(&self, sector: Sector, position: Sector) -> Option<u64> {
        if sector >= position {
            return Some(sector - position);
        }
        let back = position - sector;
        (back <= self.back_sectors_max).then(|| back.saturating_mul(self.back_penalty))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHOOSER: Chooser = Chooser { back_sectors_max: 32_768, back_penalty: 2 };

    fn at(sector: u64) -> Candidate {
        Candidate { id: RqId(sector as u32), sector: Sector(sector), sync: true, prio: false }
    }

    #[test]
    fn the_nearer_request_wins_and_distance_backward_counts_double() {
        let table = [
            (101_000, 99_900, 99_900),
            (100_300, 99_900, 99_900),
            (100_200, 99_900, 100_200),
            (10, 20, 10),
            (66_000, 60_000, 60_000),
            (70_000, 200_000, 70_000),
            (50_000, 900_000, 900_000),
        ];
        for (a, b, winner) in table {
            for (a, b) in [(a, b), (b, a)] {
                let chosen = CHOOSER.better(Some(at(a)), Some(at(b)), Sector(100_000));
                assert_eq!(chosen, Some(RqId(winner as u32)), "of {a} and {b}");
            }
        }
    }

    #[test]
    fn sync_beats_async_and_prio_beats_plain_before_any_distance_counts() {
        let far_sync = at(1_000_000);
        let near_async = Candidate { sync: false, ..at(100) };
        assert_eq!(CHOOSER.better(Some(near_async), Some(far_sync), Sector(100)), Some(far_sync.id));
        let far_prio = Candidate { prio: true, ..at(1_000_000) };
        assert_eq!(CHOOSER.better(Some(at(100)), Some(far_prio), Sector(100)), Some(far_prio.id));
        let async_prio = Candidate { prio: true, ..near_async };
        assert_eq!(CHOOSER.better(Some(async_prio), Some(far_sync), Sector(100)), Some(far_sync.id));
    }

    #[test]
    fn a_single_request_wins_against_none() {
        assert_eq!(CHOOSER.better(None, Some(at(7)), Sector(0)), Some(RqId(7)));
        assert_eq!(CHOOSER.better(None, None, Sector(0)), None);
    }
}
