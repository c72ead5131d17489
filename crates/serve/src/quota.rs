//! The limits of an export: `io.max`, with all its connections for one group.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use hoistway_blk::{Bio, CgroupId, Instant, Op, SECTOR_BYTES, Sector};
use hoistway_cgroup::{Charge, IoMax, THROTTLE_SLICE, Throttle};
use rustc_hash::FxHashMap;

use crate::lobby::VisitorId;

/// Bits of a ticket's own number in the word by which the throttle knows it, and of its visitor's.
const SLOT_BITS: u32 = 16;
const NUMBER_BITS: u32 = 40;
/// The group that is limited: throttles have limits for all but the root.
const GROUP: CgroupId = CgroupId(1);

/// A request that has to wait: whose it is, and which of his.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ticket {
    /// Whose.
    pub visitor: VisitorId,
    /// Which: less than 2^16.
    pub slot: u32,
}

impl Ticket {
    fn pack(self) -> u64 {
        let number = self.visitor.number & ((1 << NUMBER_BITS) - 1);
        (self.visitor.worker as u64) << (SLOT_BITS + NUMBER_BITS) | number << SLOT_BITS | u64::from(self.slot)
    }

    fn unpack(word: u64) -> Ticket {
        let number = word >> SLOT_BITS & ((1 << NUMBER_BITS) - 1);
        let visitor = VisitorId { worker: (word >> (SLOT_BITS + NUMBER_BITS)) as usize, number };
        Ticket { visitor, slot: (word & ((1 << SLOT_BITS) - 1)) as u32 }
    }
}

/// The limits of an export.
pub struct Quota {
    inside: Mutex<Inside>,
    /// Whether there is a limit, or was one for which somebody may still wait.
    is_limited: AtomicBool,
}

struct Inside {
    throttle: Throttle,
    /// Of each visitor that may wait, the tickets whose turn has come and that it has not been told of.
    turns: FxHashMap<VisitorId, Vec<u32>>,
}

/// What a look at the clock came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Turns {
    /// Tickets of whoever looked, whose turn it is.
    pub own: Vec<u32>,
    /// Others who should look.
    pub others: Vec<VisitorId>,
    /// When it is somebody's turn next.
    pub next: Instant,
}

impl Quota {
    /// Without limits.
    #[must_use]
    pub fn new() -> Quota {
        let mut throttle = Throttle::new(THROTTLE_SLICE);
        throttle.add_group(GROUP, CgroupId::ROOT);
        Quota {
            inside: Mutex::new(Inside { throttle, turns: FxHashMap::default() }),
            is_limited: AtomicBool::new(false),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The limits.
    #[must_use]
    pub fn limits(&self) -> IoMax {
        self.lock().throttle.limits(GROUP)
    }

    /// Changes them. Whoever waits has to be called: his turn may come sooner now.
    pub fn set_limits(&self, now: Instant, limits: IoMax) {
        let throttle = &mut self.lock().throttle;
        if throttle.limits(GROUP) == limits {
            // Set anew, it would begin a slice, of which something may be done at once.
            return;
        }
        throttle.set_limits(now, GROUP, limits);
        let is_limited = limits != IoMax::default() || !throttle.is_empty();
        self.is_limited.store(is_limited, Relaxed);
    }

    /// Whether anybody may have to wait at all.
    #[inline]
    #[must_use]
    pub fn is_limited(&self) -> bool {
        self.is_limited.load(Relaxed)
    }

    /// Whether a request may go now. If not it will be its ticket's [turn](Self::turns) later.
    #[must_use]
    pub fn admits(&self, now: Instant, op: Op, bytes: u64, ticket: Ticket) -> bool {
        let sectors = u32::try_from(bytes / SECTOR_BYTES).unwrap_or(u32::MAX);
        let bio = Bio { cgroup: GROUP, owner: ticket.pack(), ..Bio::new(op, Sector(0), sectors) };
        let inside = &mut *self.lock();
        if inside.throttle.submit(now, bio, Charge::Whole).is_some() {
            return true;
        }
        inside.turns.entry(ticket.visitor).or_default();
        false
    }

    /// Whose turn it is by now.
    #[must_use]
    pub fn turns(&self, now: Instant, own: VisitorId) -> Turns {
        let (inside, mut bios) = (&mut *self.lock(), Vec::new());
        while inside.throttle.due().is_some_and(|due| due <= now) {
            inside.throttle.release(now, &mut bios);
        }
        let mut others = Vec::new();
        for Ticket { visitor, slot } in bios.iter().map(|bio| Ticket::unpack(bio.owner)) {
            // Who has departed is not missed.
            let Some(turns) = inside.turns.get_mut(&visitor) else { continue };
            turns.push(slot);
            if visitor != own && !others.contains(&visitor) {
                others.push(visitor);
            }
        }
        let own = inside.turns.get_mut(&own).map(std::mem::take).unwrap_or_default();
        Turns { own, others, next: inside.throttle.due().unwrap_or(Instant::NEVER) }
    }

    /// A visitor has departed.
    pub fn forget(&self, visitor: VisitorId) {
        self.lock().turns.remove(&visitor);
    }
}

impl Default for Quota {
    fn default() -> Self {
        Quota::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hoistway_blk::Nanos;

    const ONE: VisitorId = VisitorId { worker: 3, number: 0x12_3456_789a };
    const OTHER: VisitorId = VisitorId { worker: 0, number: 1 };

    fn later() -> Instant {
        Instant::ZERO + Nanos::from_secs(1)
    }

    fn admits(quota: &Quota, visitor: VisitorId, slot: u32) -> bool {
        quota.admits(Instant::ZERO, Op::Read, 4096, Ticket { visitor, slot })
    }

    #[test]
    fn a_limited_export_has_to_wait_and_its_neighbour_has_not() {
        let (quota, neighbour) = (Quota::new(), Quota::new());
        quota.set_limits(Instant::ZERO, IoMax { riops: Some(10), ..IoMax::default() });
        assert!(quota.is_limited() && !neighbour.is_limited());
        assert!(admits(&quota, ONE, 0) && !admits(&quota, ONE, 1) && !admits(&quota, ONE, 65535));
        assert!((0..100).all(|slot| admits(&neighbour, ONE, slot)));

        let turns = quota.turns(Instant::ZERO, ONE);
        assert!(turns.own.is_empty() && turns.next > Instant::ZERO && turns.next < Instant::NEVER);
        let turns = quota.turns(later(), ONE);
        assert_eq!(turns, Turns { own: vec![1, 65535], others: vec![], next: Instant::NEVER });
    }

    #[test]
    fn whoever_looks_first_has_the_others_called_but_those_who_have_gone() {
        let quota = Quota::new();
        quota.set_limits(Instant::ZERO, IoMax { riops: Some(10), ..IoMax::default() });
        let gone = VisitorId { worker: 1, number: 2 };
        assert!(admits(&quota, ONE, 0));
        assert!(!admits(&quota, ONE, 1) && !admits(&quota, OTHER, 2) && !admits(&quota, gone, 3));
        quota.forget(gone);
        let turns = quota.turns(later(), ONE);
        assert_eq!((turns.own, turns.others), (vec![1], vec![OTHER]));
        assert_eq!(quota.turns(later(), OTHER).own, [2]);
        assert!(!quota.lock().turns.contains_key(&gone));
    }

    #[test]
    fn a_limit_that_is_set_again_as_it_is_gives_nothing_away() {
        let (quota, limits) = (Quota::new(), IoMax { riops: Some(10), ..IoMax::default() });
        for slot in 0..100 {
            quota.set_limits(Instant::ZERO, limits);
            assert_eq!(admits(&quota, ONE, slot), slot == 0);
        }
    }

    #[test]
    fn without_a_limit_those_who_wait_go() {
        let quota = Quota::new();
        quota.set_limits(Instant::ZERO, IoMax { rbps: Some(4096), ..IoMax::default() });
        assert!(!quota.admits(Instant::ZERO, Op::Read, 1 << 20, Ticket { visitor: ONE, slot: 0 }));
        quota.set_limits(Instant::ZERO, IoMax::default());
        assert!(quota.is_limited(), "somebody waits");
        assert_eq!(quota.turns(Instant::ZERO, ONE).own, [0]);
    }
}
