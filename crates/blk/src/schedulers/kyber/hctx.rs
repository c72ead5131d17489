//! One hardware queue of kyber: its staged requests, and which domain's turn it is. Rules: KY-5 to KY-9, KY-13.
//!
//! **Locks**: one for each software queue, for insertion and merging; one for the hardware queue, for dispatching. A
//! flush takes a software queue's under the hardware queue's, never the other way round. Nothing is shared with other
//! hardware queues.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::bio::Bio;
use crate::ground::ids::HctxId;
use crate::ground::meter::{Meter, NoMeter, Site};
use crate::ground::sharing::{Lock, Padded, Sharing, Word};
use crate::policy::Place;
use crate::request::Rq;
use crate::request::merge::{Edge, MergeRules};
use crate::watch::reason::Reason;

use super::domain::{DOMAINS, Domain, Rules};
use super::tokens::TokenPool;

/// The staged requests of one software queue in the order of arrival, by domain or (first generation) all in the first list.
/// They may still be merged with bios.
type Staged = [VecDeque<Rq>; DOMAINS];

/// A hardware queue and the software queues that feed it.
pub(super) struct HctxQueues<Sh: Sharing> {
    id: HctxId,
    rules: &'static Rules,
    /// In ascending order of their CPUs; the index here is a software queue's bit in `marks`.
    staged: Vec<Padded<Sh::Lock<Staged>>>,
    /// For each 64 software queues, and of these for each list of [`Staged`], a bit for each software queue where it holds
    /// requests. Set under the software queue's lock, cleared under both locks, so that under the hardware queue's lock a set
    /// bit stays valid. Clearing is `Release`: a reader that sees a bit cleared also sees its requests counted in `flushed`.
    marks: Vec<[Sh::Word; DOMAINS]>,
    /// Requests in the flushed lists, to be read without the lock.
    flushed: Sh::Word,
    turns: Sh::Lock<Turns>,
}

/// The turn and the flushed requests, under the hardware queue's lock.
#[derive(Default)]
pub(super) struct Turns {
    /// The turn.
    turn: Turn,
    /// The requests that are dispatched next, by domain, oldest first. They are no longer merged.
    flushed: [VecDeque<Rq>; DOMAINS],
}

/// Which domain's turn it is.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Turn {
    /// The current domain, as an index into the circle.
    pub(super) current: usize,
    /// Requests it has been given in a row: the batch counter.
    pub(super) served: u32,
}

/// A request that is being dispatched, with its token.
pub(super) struct Drawn {
    pub(super) rq: Rq,
    pub(super) domain: Domain,
    pub(super) token: u32,
    pub(super) reason: Reason,
}

impl<Sh: Sharing> HctxQueues<Sh> {
    /// An empty hardware queue with its software queues.
    pub(super) fn new(id: HctxId, rules: &'static Rules, software_queues: usize) -> Self {
        let words = software_queues.div_ceil(64).max(1);
        HctxQueues {
            id,
            rules,
            staged: (0..software_queues).map(|_| Padded(Sh::Lock::new(Staged::default()))).collect(),
            marks: (0..words).map(|_| std::array::from_fn(|_| Sh::Word::new(0))).collect(),
            flushed: Sh::Word::new(0),
            turns: Sh::Lock::new(Turns::default()),
        }
    }

    /// The list of [`Staged`] that a domain's requests wait in.
    #[inline]
    fn list_of(&self, domain: Domain) -> usize {
        if self.rules.stages_by_domain { domain.index() } else { 0 }
    }

    #[inline]
    fn is_marked(&self, list: usize, queue: usize) -> bool {
        self.marks[queue / 64][list].load(Relaxed) & (1 << (queue % 64)) != 0
    }

    #[inline]
    fn any_marked(&self, list: usize) -> bool {
        self.marks.iter().any(|lists| lists[list].load(Acquire) != 0)
    }

    /// Whether any request waits. Takes no lock. Checks the flushed lists again at the end, because marked requests move
    /// there.
    #[inline]
    pub(super) fn has_work(&self) -> bool {
        let has_flushed = || self.flushed.load(Relaxed) != 0;
        let is_any_marked = || self.marks.iter().flatten().any(|word| word.load(Acquire) != 0);
        has_flushed() || is_any_marked() || has_flushed()
    }

    /// Stages a request of software queue `queue`.
    #[inline]
    pub(super) fn stage(&self, meter: &impl Meter, queue: usize, domain: Domain, rq: Rq, place: Place) {
        let list = self.list_of(domain);
        self.staged[queue].with(meter, Site::SoftwareQueue, |staged| {
            match place {
                Place::Sorted => staged[list].push_back(rq),
                Place::Head => staged[list].push_front(rq),
            }
            self.marks[queue / 64][list].fetch_or(1 << (queue % 64), Relaxed);
        });
    }

    /// Tries to merge a bio into a staged request of software queue `queue`.
    #[inline]
    pub(super) fn merge(
        &self,
        meter: &impl Meter,
        queue: usize,
        domain: Domain,
        rules: &MergeRules,
        bio: &mut Option<Bio>,
    ) -> Option<Edge> {
        let list = self.list_of(domain);
        // Do not take the lock for a list that seems to be empty.
        if !self.is_marked(list, queue) {
            return None;
        }
        self.staged[queue].with(meter, Site::SoftwareQueue, |staged| rules.merge_with_newest(&mut staged[list], bio))
    }

    // --- dispatching ---

    /// Takes the next request, or says why there is none. `pools` are the domains' tokens.
    #[inline]
    pub(super) fn dispatch_one(&self, meter: &impl Meter, pools: &[TokenPool<Sh>; DOMAINS]) -> Result<Drawn, Reason> {
        self.turns.with(meter, Site::HardwareQueue, |turns| {
            let circle = self.rules.circle;
            let mut flushed_all = false;
            let mut tried = None;
            let spec = &circle[turns.turn.current];
            if turns.turn.served < spec.batch {
                if let Some((rq, token)) = self.try_domain(meter, turns, spec.domain, pools, &mut flushed_all) {
                    turns.turn.served += 1;
                    return Ok(Drawn { rq, domain: spec.domain, token, reason: Reason::DomainBatch });
                }
                tried = Some(spec.domain);
            }
            turns.turn.served = 0;
            let waiting = self.waiting_domains(turns);
            // The domain that was tried had no request, or no token and now waits for one.
            let others = tried.map_or(waiting, |domain: Domain| waiting & !(1 << domain.index()));
            // The round ends with the domain where it began. If no other domain has requests, there is no round.
            let round = if others == 0 { 0 } else { circle.len() };
            for _ in 0..round {
                let next = turns.turn.current + 1;
                turns.turn.current = if next == circle.len() { 0 } else { next };
                let domain = circle[turns.turn.current].domain;
                if others & 1 << domain.index() == 0 {
                    continue;
                }
                if let Some((rq, token)) = self.try_domain(meter, turns, domain, pools, &mut flushed_all) {
                    turns.turn.served = 1;
                    return Ok(Drawn { rq, domain, token, reason: Reason::DomainTurn });
                }
            }
            Err(if waiting != 0 { Reason::NoToken } else { Reason::Empty })
        })
    }

    /// A bit for each domain that may have requests. With one list for all domains that may be any domain.
    #[inline]
    fn waiting_domains(&self, turns: &Turns) -> u32 {
        let bit = |index: usize, waits: bool| u32::from(waits) << index;
        let mut waiting =
            turns.flushed.iter().enumerate().fold(0, |bits, (index, list)| bits | bit(index, !list.is_empty()));
        for lists in &self.marks {
            let marked = |bits, (index, word): (usize, &Sh::Word)| bits | bit(index, word.load(Acquire) != 0);
            waiting = lists.iter().enumerate().fold(waiting, marked);
        }
        if self.rules.stages_by_domain || waiting & 1 == 0 { waiting } else { u32::MAX }
    }

    /// The first request of a domain with a token for it, if there are both.
    #[inline(always)]
    fn try_domain(
        &self,
        meter: &impl Meter,
        turns: &mut Turns,
        domain: Domain,
        pools: &[TokenPool<Sh>; DOMAINS],
        flushed_all: &mut bool,
    ) -> Option<(Rq, u32)> {
        let index = domain.index();
        let must_flush = turns.flushed[index].is_empty();
        if must_flush && !self.rules.stages_by_domain && !*flushed_all {
            *flushed_all = true;
            self.flush(meter, turns, 0);
        }
        let staged = must_flush && self.rules.stages_by_domain && self.any_marked(index);
        if (turns.flushed[index].is_empty() && !staged) || pools[index].refuses(self.id) {
            return None;
        }
        self.take_of(meter, turns, index, &pools[index], staged)
    }

    /// The first request of a domain that has one, if there is a token for it.
    #[inline(never)]
    fn take_of(
        &self,
        meter: &impl Meter,
        turns: &mut Turns,
        index: usize,
        pool: &TokenPool<Sh>,
        staged: bool,
    ) -> Option<(Rq, u32)> {
        let token = pool.take(meter, self.id)?;
        if staged {
            // Flush only when there is a token: requests that cannot be dispatched yet may still be merged.
            self.flush(meter, turns, index);
        }
        let rq = turns.flushed[index].pop_front().expect("a marked list holds a request");
        self.flushed.fetch_sub(1, Relaxed);
        Some((rq, token))
    }

    /// Moves a list of every software queue to the flushed lists: the queues in ascending order, each list completely and in
    /// order.
    fn flush(&self, meter: &impl Meter, turns: &mut Turns, list: usize) {
        for (index, lists) in self.marks.iter().enumerate() {
            let word = &lists[list];
            let mut marked = word.load(Relaxed);
            while marked != 0 {
                let bit = marked.trailing_zeros();
                marked &= marked - 1;
                self.staged[index * 64 + bit as usize].with(meter, Site::SoftwareQueue, |staged| {
                    // Count before clearing the mark, so that there is work at every moment.
                    self.flushed.fetch_add(staged[list].len() as u64, Relaxed);
                    word.fetch_and(!(1 << bit), Release);
                    for rq in staged[list].drain(..) {
                        turns.flushed[self.rules.domain_of(rq.op, rq.flags).index()].push_back(rq);
                    }
                });
            }
        }
    }

    // --- replay ---

    /// Which domain's turn it is.
    pub(super) fn turn(&self) -> Turn {
        self.turns.aside(|turns| turns.turn)
    }

    /// Sets whose turn it is.
    pub(super) fn set_turn(&self, turn: Turn) {
        self.turns.aside(|turns| turns.turn = turn);
    }

    /// Puts a request that was dispatched back to where it was.
    pub(super) fn put_back(&self, rq: Rq) {
        let domain = self.rules.domain_of(rq.op, rq.flags);
        self.turns.aside(|turns| turns.flushed[domain.index()].push_front(rq));
        self.flushed.fetch_add(1, Relaxed);
    }

    /// Takes out a certain request of a domain, staged or flushed.
    pub(super) fn take_out(&self, domain: Domain, is_it: impl Fn(&Rq) -> bool) -> Option<Rq> {
        self.turns.aside(|turns| {
            if !turns.flushed[domain.index()].iter().any(&is_it) {
                self.flush(&NoMeter, turns, self.list_of(domain));
            }
            let list = &mut turns.flushed[domain.index()];
            let at = list.iter().position(is_it)?;
            self.flushed.fetch_sub(1, Relaxed);
            list.remove(at)
        })
    }
}
