//! Insertion buckets (CL-6): requests wait there for the CPU that is already inserting; one bucket for each CPU, modulo their
//! number.
//!
//! **No request is left behind.** A CPU that leaves a request adds it to the bucket, sets the mark, and then checks whether
//! another CPU is still inserting. The inserter works in reverse, under the policy's lock: it finds no more requests, clears
//! `inserting`, and then checks the mark again. So at least one of the two sees the other (`SeqCst`). If the mark were set first,
//! as in the published design, the inserter could clear the mark before the request is in the bucket.

use std::sync::atomic::Ordering::SeqCst;

use crate::ground::ids::CpuId;
use crate::ground::meter::{Meter, Site, extra_request_counter};
use crate::ground::sharing::{Lock, Padded, Sharing, Word};
use crate::request::Rq;

const BUCKETS: usize = 32;

/// The buckets.
pub struct Buckets<Sh: Sharing> {
    lists: Vec<Padded<Sh::Lock<Vec<Rq>>>>,
    /// Whether a CPU is inserting, under the policy's lock.
    inserting: Sh::Word,
    /// Bits of the buckets that may be non-empty.
    filled: Sh::Word,
}

/// The turn of the inserting CPU; also ends if the policy panics.
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
    /// Leaves requests of a CPU for the inserting one. `is_inserting_in_virtual_time`: whether a CPU is still inserting
    /// in virtual time although its call is over. Returns whether the requests will be inserted. If not, no CPU was inserting, or may not have seen them: the
    /// caller has to insert, even if only from the buckets.
    pub fn leave(
        &self,
        meter: &impl Meter,
        cpu: CpuId,
        list: &mut impl Iterator<Item = Rq>,
        is_inserting_in_virtual_time: impl Fn() -> bool,
    ) -> bool {
        let is_inserting = || self.inserting.load(SeqCst) != 0 || is_inserting_in_virtual_time();
        if !is_inserting() {
            return false;
        }
        let index = cpu.index() % BUCKETS;
        let mut count = extra_request_counter(meter);
        self.lists[index].with(meter, Site::Leave, |bucket| {
            bucket.extend(list.inspect(|_| count()));
        });
        self.filled.fetch_or(1 << index, SeqCst);
        is_inserting()
    }

    /// Inserts `list` and then the contents of the buckets. The caller holds the policy's lock.
    pub fn insert(&self, meter: &impl Meter, list: &mut impl Iterator<Item = Rq>, mut insert: impl FnMut(Rq)) {
        loop {
            self.inserting.store(1, SeqCst);
            let inserter = Inserter(&self.inserting);
            list.for_each(&mut insert);
            while self.filled.load(SeqCst) != 0 {
                let filled = self.filled.swap(0, SeqCst);
                for bucket in self
                    .lists
                    .iter()
                    .enumerate()
                    .filter(|(index, _)| (filled >> index) & 1 == 1)
                    .map(|(_, bucket)| bucket)
                {
                    let mut requests = bucket.with(meter, Site::Take, std::mem::take);
                    requests.drain(..).for_each(&mut insert);
                    // Its memory is reused, unless requests have been added meanwhile.
                    bucket.aside(|bucket| {
                        if bucket.is_empty() {
                            *bucket = requests;
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
