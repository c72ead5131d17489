//! Where requests wait for the CPU that is inserting already (CL-6): a bucket for each CPU, modulo their number.
//!
//! **No request is left behind.** A CPU that puts something in does three steps: it is in, the mark is set, then it looks whether
//! another still inserts. The inserter does them the other way round: nothing more is found, it says so, then it looks at the
//! mark again, all of it under the policy's lock. So one of the two sees the other: `SeqCst`. With the mark set first, as the
//! design was published, the inserter can take the mark before the request is there.

use std::sync::atomic::Ordering::SeqCst;

use crate::ground::ids::CpuId;
use crate::ground::meter::{Meter, Site, extra_request_counter};
use crate::ground::sharing::{Lock, Padded, Sharing, Word};
use crate::request::Rq;

const BUCKETS: usize = 32;

/// The buckets.
pub struct Buckets<Sh: Sharing> {
    lists: Vec<Padded<Sh::Lock<Vec<Rq>>>>,
    /// Whether a CPU inserts, under the policy's lock.
    inserting: Sh::Word,
    /// Which buckets there may be something in, a bit for each.
    filled: Sh::Word,
}

/// The turn of the CPU that inserts. A policy that panics ends that, too.
struct Inserter<'a, W: Word>(&'a W);

impl<W: Word> Drop for Inserter<'_, W> {
    fn drop(&mut self) {
        self.0.store(0, SeqCst);
    }
}

impl<Sh: Sharing> Default for Buckets<Sh> {
    fn default() -> Self {
        Buckets {
            lists: (0..BUCKETS).map(|_| Padded(Sh::Lock::new(Vec::new()))).collect(),
            inserting: Sh::Word::new(0),
            filled: Sh::Word::new(0),
        }
    }
}

impl<Sh: Sharing> Buckets<Sh> {
    /// Leaves requests of a CPU to the one that inserts now; `goes_on` knows of one whose call is over, but whose time is not.
    /// Returns whether they are taken care of: if not, no CPU inserted, or it is not sure that they were seen, and the caller
    /// has to insert, if only what is in the buckets.
    pub fn leave(
        &self,
        meter: &impl Meter,
        cpu: CpuId,
        list: &mut impl Iterator<Item = Rq>,
        goes_on: impl Fn() -> bool,
    ) -> bool {
        let is_inserting = || self.inserting.load(SeqCst) != 0 || goes_on();
        if !is_inserting() {
            return false;
        }
        let place = cpu.index() % BUCKETS;
        let mut count = extra_request_counter(meter);
        self.lists[place].with(meter, Site::Leave, |bucket| {
            bucket.extend(list.inspect(|_| count()));
        });
        self.filled.fetch_or(1 << place, SeqCst);
        is_inserting()
    }

    /// Inserts what is there, after `list`. The caller holds the policy's lock.
    pub fn insert(&self, meter: &impl Meter, list: &mut impl Iterator<Item = Rq>, mut insert: impl FnMut(Rq)) {
        loop {
            self.inserting.store(1, SeqCst);
            let inserter = Inserter(&self.inserting);
            list.for_each(&mut insert);
            while self.filled.load(SeqCst) != 0 {
                let filled = self.filled.swap(0, SeqCst);
                for bucket in
                    self.lists.iter().enumerate().filter(|(place, _)| (filled >> place) & 1 == 1).map(|(_, it)| it)
                {
                    let mut found = bucket.with(meter, Site::Take, std::mem::take);
                    found.drain(..).for_each(&mut insert);
                    // Its memory is used again, unless something has come meanwhile.
                    bucket.aside(|bucket| {
                        if bucket.is_empty() {
                            *bucket = found;
                        }
                    });
                }
            }
            drop(inserter);
            if self.filled.load(SeqCst) == 0 {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bio::{Bio, Op};
    use crate::ground::ids::{RqId, Sector};
    use crate::ground::meter::NoMeter;
    use crate::ground::sharing::Local;
    use crate::ground::time::Instant;
    use crate::request::RequestPool;

    #[test]
    fn cpus_share_buckets_and_an_insertion_drains_them_in_order() {
        let (buckets, pool) = (Buckets::<Local>::default(), RequestPool::<Local>::new(3));
        let rq = |id| {
            let mut rq = pool.take(RqId(id));
            rq.found(Bio::new(Op::Write, Sector(8), 8), Instant::ZERO);
            rq
        };
        for (id, cpu) in [(0, 41), (1, 40), (2, 9)] {
            assert!(buckets.leave(&NoMeter, CpuId(cpu), &mut std::iter::once(rq(id)), || true));
        }
        let mut inserted = Vec::new();
        buckets.insert(&NoMeter, &mut std::iter::empty(), |rq| inserted.push(rq));
        let order: Vec<u32> = inserted
            .into_iter()
            .map(|rq| {
                let id = rq.id().0;
                pool.put(rq);
                id
            })
            .collect();
        assert_eq!(order, [1, 0, 2]);
        assert!(!buckets.leave(&NoMeter, CpuId(0), &mut std::iter::empty(), || false), "no CPU inserts any more");
    }
}
