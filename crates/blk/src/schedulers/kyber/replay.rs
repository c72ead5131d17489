//! Following a recorded kernel: its choice of request and of token, and its depths.

use std::sync::atomic::Ordering::Relaxed;

use crate::ground::ids::{HctxId, RqId};
use crate::ground::meter::NoMeter;
use crate::ground::sharing::{Sharing, Word};
use crate::request::{Marks, Rq};

use super::domain::Domain;
use super::hctx::Turn;
use super::{Held, Kyber};

/// Whose turn it was in a hardware queue at some moment; see [`Kyber::turn`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KyberTurn(Turn);

/// What a recorded kernel dispatched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KyberChoice {
    /// The request.
    pub id: RqId,
    /// Its domain.
    pub domain: Domain,
    /// The token that it took.
    pub token: u32,
}

impl<Sh: Sharing> Kyber<Sh> {
    /// Whose turn it is in `hctx`, to be saved before a dispatch that may have to be undone.
    #[must_use]
    pub fn turn(&self, hctx: HctxId) -> KyberTurn {
        KyberTurn(self.hctxs[hctx.index()].turn())
    }

    /// The token that a request holds.
    #[must_use]
    pub fn token_of(&self, id: RqId) -> Option<u32> {
        Held::unpack(self.held[id.index()].load(Relaxed)).map(|held| held.token)
    }

    /// Sets a domain's depth, within its range.
    pub fn adopt_depth(&self, domain: Domain, depth: u32) {
        let pool = &self.pools[domain.index()];
        pool.set_depth(depth.clamp(1, pool.depth_max()));
    }

    /// Undoes a dispatch for `hctx` that began when [`turn`](Self::turn) was `before` and returned `ours`: the request, its token
    /// and the turn go back. Flushed requests stay flushed. Hardware queues that the token wakes are not reported, since in a
    /// replay the recording determines when hardware queues run.
    pub fn undo(&self, hctx: HctxId, before: KyberTurn, ours: Option<Rq>) {
        let queues = &self.hctxs[hctx.index()];
        if let Some(mut rq) = ours {
            if let Some(held) = Held::unpack(self.held[rq.id().index()].swap(Held::NOTHING, Relaxed)) {
                self.pools[held.domain.index()].give_back(&NoMeter, held.token, held.hctx, |_| {});
            }
            rq.marks.clear(Marks::STARTED);
            queues.put_back(rq);
        }
        queues.set_turn(before.0);
    }

    /// Makes the same choice for `hctx` as a recorded kernel. The token is the recorded one as well, or none if that is taken.
    pub fn adopt(&self, hctx: HctxId, kernel: Option<KyberChoice>) -> Option<Rq> {
        let queues = &self.hctxs[hctx.index()];
        let before = queues.turn();
        let Some(KyberChoice { id, domain, token }) = kernel else {
            queues.set_turn(Turn { served: 0, ..before });
            return None;
        };
        let mut rq = queues.take_out(domain, |rq| rq.id() == id)?;
        rq.marks.set(Marks::STARTED);
        if self.pools[domain.index()].try_take_exact(token) {
            self.held[id.index()].store(Held { token, domain, hctx }.pack(), Relaxed);
        }
        if let Some(current) = self.rules.circle.iter().position(|spec| spec.domain == domain) {
            let goes_on = current == before.current && before.served < self.rules.circle[current].batch;
            queues.set_turn(Turn { current, served: if goes_on { before.served + 1 } else { 1 } });
        }
        Some(rq)
    }

    /// Gives a dispatched request the token `wanted` instead of its own, if that is free.
    pub fn adopt_token(&self, id: RqId, wanted: u32) {
        let word = &self.held[id.index()];
        if let Some(held) = Held::unpack(word.load(Relaxed))
            && self.pools[held.domain.index()].exchange(held.token, wanted, held.hctx)
        {
            word.store(Held { token: wanted, ..held }.pack(), Relaxed);
        }
    }
}
