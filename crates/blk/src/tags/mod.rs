//! Tags: the numbered slots whose count bounds how many requests exist (scheduler tags) or are at the driver (driver
//! tags), and the sleepers that wait for one.
//!
//! Used by: `queue`, `schedulers`, `policy`, `elevator`; crates `experiment`, `legacy`, `sim`.
//! Tests: below, `crates/blk/src/tags/` (in its files), `checks/tests/shuttle.rs`.
//!
//! **No wake-up is lost**: a sleeper counts itself as sleeping and then looks for a tag once more; a CPU that frees a
//! tag checks afterwards whether there are sleepers. At least one of the two must see the other, so these four accesses
//! are `SeqCst`, and so are those that use the same protocol with a restart mark instead of the count. Taking a tag is
//! (at least) `Acquire` and returning it (at least) `Release`, because the data that belong to a tag (its slot, the
//! state that a scheduler keeps for it) are passed on with it. Everything else is under the lock of the wait queues, or
//! only a statistic.

mod bitmap;
mod set;
mod wait;

pub use bitmap::{Depth, TagBitmap};
pub(crate) use bitmap::{wake_batch, word_bits};
pub(crate) use set::TagUser;
pub use set::{TagLayout, TagSet};
pub use wait::{Sleeper, WaitQueues};

use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use crate::ground::ids::CpuId;
use crate::ground::kernel::ShallowRule;
use crate::ground::meter::{Meter, NoMeter, Site};
use crate::ground::sharing::{Lock, Sharing, Word};

/// One tag space with its sleepers.
pub struct Tags<Sh: Sharing> {
    bitmap: TagBitmap<Sh>,
    /// The number of sleepers: those in all queues of `wait`, and submitters that were woken and have not [resumed](Tags::resume). A CPU
    /// that frees a tag reads it before taking the lock.
    sleeping: Sh::Word,
    wait: Sh::Lock<WaitQueues>,
    /// The site of that lock.
    wait_site: Site,
}

impl<Sh: Sharing> Tags<Sh> {
    /// A space of `depth` free tags, with allocation hints for `cpus` CPUs.
    ///
    /// `min_shallow` is the smallest shallow depth that will be asked for, if a scheduler announced one: sleepers
    /// are then woken in smaller batches, because fewer tags suffice to starve them.
    #[must_use]
    pub fn new(depth: u32, cpus: usize, rule: ShallowRule, min_shallow: Option<u32>) -> Self {
        let bitmap = TagBitmap::new(depth, cpus, rule);
        let batch = bitmap.wake_batch(min_shallow);
        Tags {
            bitmap,
            sleeping: Sh::Word::new(0),
            wait: Sh::Lock::new(WaitQueues::new(batch)),
            wait_site: Site::TagWaiters,
        }
    }

    /// The same, with its wait queues' lock taken at this site.
    pub(crate) fn with_wait_site(self, wait_site: Site) -> Self {
        Tags { wait_site, ..self }
    }

    /// Randomizes the allocation hints of this map, number `map` of its queue, if there is a seed.
    pub(crate) fn randomize_hints(&mut self, seed: Option<u64>, map: u32) {
        if let Some(seed) = seed {
            self.bitmap.randomize_hints(seed.wrapping_add(u64::from(map) << 32));
        }
    }

    /// Number of tags.
    #[must_use]
    pub fn depth(&self) -> u32 {
        self.bitmap.depth()
    }

    /// Number of tags that are taken: for statistics and invariants.
    #[must_use]
    pub fn in_use(&self) -> u32 {
        self.bitmap.in_use()
    }

    /// Takes a free tag within `depth`, if there is one.
    #[inline]
    pub fn try_take(&self, cpu: CpuId, depth: Depth) -> Option<u32> {
        self.bitmap.try_take(cpu, depth)
    }

    /// Updates the hint as a search without success does, if the failure is known without a search.
    #[inline]
    pub(crate) fn reset_hint(&self, cpu: CpuId) {
        self.bitmap.reset_hint(cpu);
    }

    /// Takes the tag `tag`, if it is free.
    #[inline]
    pub fn try_take_exact(&self, tag: u32) -> bool {
        self.bitmap.try_take_exact(tag)
    }

    /// The smallest shallow depth that will be asked for from now on; see [`new`](Self::new). Sleepers that were given a smaller one
    /// keep it, so a batch does not grow while there are any.
    pub fn set_min_shallow(&self, min_shallow: Option<u32>) {
        let batch = self.bitmap.wake_batch(min_shallow);
        self.wait.aside(|wait| wait.set_batch(if self.sleepers() > 0 { batch.min(wait.batch()) } else { batch }));
    }

    /// Wakes sleepers in batches of this size from now on.
    pub fn set_wake_batch(&self, batch: u32) {
        self.wait.aside(|wait| wait.set_batch(batch));
    }

    /// Returns `tag` and calls `wake` for each sleeper to be woken.
    #[inline]
    pub fn free(&self, meter: &impl Meter, tag: u32, cpu: CpuId, wake: impl FnMut(Sleeper)) {
        self.bitmap.free(tag, cpu);
        if self.sleeping.load(SeqCst) > 0 {
            self.wake(meter, wake);
        }
    }

    #[cold]
    fn wake(&self, meter: &impl Meter, mut wake: impl FnMut(Sleeper)) {
        let mut has_woken = false;
        self.wait.with(&NoMeter, self.wait_site, |wait| {
            wait.freed(|sleeper| {
                has_woken = true;
                // Freed tags are counted until a woken submitter runs.
                if !matches!(sleeper, Sleeper::Submitter(_)) {
                    self.sleeping.fetch_sub(1, Relaxed);
                }
                wake(sleeper);
            });
        });
        if has_woken {
            // Linux counts freed tags without the lock, and takes it only to wake a batch: that alone is charged.
            self.wait.with(meter, self.wait_site, |_| ());
        }
    }

    /// Puts a sleeper in line, in this wait queue modulo their number. It must try once more afterwards, since a tag may have been freed
    /// in between. A submitter [resumes](Self::resume) when it got one or was woken, exactly once. Returns its place.
    pub fn wait(&self, meter: &impl Meter, queue: u64, sleeper: Sleeper) -> u64 {
        self.sleeping.fetch_add(1, SeqCst);
        self.wait.with(meter, self.wait_site, |wait| wait.join(queue, sleeper))
    }

    /// Puts a hardware queue in line, unless it is there already. Returns whether it has joined.
    pub(crate) fn enqueue_sleeper(&self, meter: &impl Meter, queue: impl FnOnce() -> u64, sleeper: Sleeper) -> bool {
        self.sleeping.fetch_add(1, SeqCst);
        let joined = self.wait.with(meter, self.wait_site, |wait| {
            let must_join = !wait.contains(sleeper);
            if must_join {
                wait.join(queue(), sleeper);
            }
            must_join
        });
        if !joined {
            self.sleeping.fetch_sub(1, Relaxed);
        }
        joined
    }

    /// Whether a sleeper is in line.
    pub(crate) fn is_waiting(&self, meter: &impl Meter, sleeper: Sleeper) -> bool {
        self.sleeping.load(Relaxed) > 0 && self.wait.with(meter, self.wait_site, |wait| wait.contains(sleeper))
    }

    /// A submitter that has waited at this place runs again. Returns whether it was still in line, so that nothing had woken it.
    pub fn resume(&self, meter: &impl Meter, position: u64) -> bool {
        let was_waiting = self.wait.with(meter, self.wait_site, |wait| wait.remove_sleeper_at(position));
        self.sleeping.fetch_sub(1, Relaxed);
        was_waiting
    }

    /// Like [`leave`](Self::leave), for a hardware queue that knows its place.
    pub fn remove_sleeper_at(&self, meter: &impl Meter, position: u64) -> bool {
        let was_waiting = self.wait.with(meter, self.wait_site, |wait| wait.remove_sleeper_at(position));
        if was_waiting {
            self.sleeping.fetch_sub(1, Relaxed);
        }
        was_waiting
    }

    /// A sleeper was woken but does not need a tag: its wake-up is passed on to the others.
    pub fn forward_tag_wakeup(&self, meter: &impl Meter, wake: impl FnMut(Sleeper)) {
        if self.sleeping.load(SeqCst) > 0 {
            self.wake(meter, wake);
        }
    }

    /// Takes a hardware queue out of line; `false` if it has been woken meanwhile.
    pub fn leave(&self, meter: &impl Meter, sleeper: Sleeper) -> bool {
        let was_waiting = self.wait.with(meter, self.wait_site, |wait| wait.leave(sleeper));
        if was_waiting {
            self.sleeping.fetch_sub(1, Relaxed);
        }
        was_waiting
    }

    /// Number of sleepers, with submitters that were woken and have not resumed.
    #[must_use]
    pub fn sleepers(&self) -> u64 {
        self.sleeping.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::ids::{HctxId, Waiter};
    use crate::ground::sharing::Local;

    #[test]
    fn a_queued_sleeper_waits_until_it_leaves_or_is_woken() {
        let tags: Tags<Local> = Tags::new(1, 1, ShallowRule::WholeMap, None);
        let [first, second] = [Sleeper::Hctx(HctxId(1)), Sleeper::Hctx(HctxId(2))];
        assert!(!tags.is_waiting(&NoMeter, first));
        let joins = |sleeper| tags.enqueue_sleeper(&NoMeter, || 0, sleeper);
        assert!(joins(first) && !joins(first), "none stands in line twice");
        assert!(tags.is_waiting(&NoMeter, first) && !tags.is_waiting(&NoMeter, second));
        let position = tags.wait(&NoMeter, 1, second);
        assert!(tags.remove_sleeper_at(&NoMeter, position) && !tags.remove_sleeper_at(&NoMeter, position));
        assert!(tags.is_waiting(&NoMeter, first) && !tags.is_waiting(&NoMeter, second));
        let tag = tags.try_take(CpuId(0), Depth::Full).expect("it is free");
        let mut woken = Vec::new();
        tags.free(&NoMeter, tag, CpuId(0), |sleeper| woken.push(sleeper));
        assert_eq!(woken, [first]);
        assert!(!tags.is_waiting(&NoMeter, first));
    }

    #[test]
    fn one_freed_tag_wakes_a_sleeper_only_if_shallow_depths_could_starve_all() {
        for (min_shallow, woken) in [(None, 0), (Some(1), 1)] {
            let tags: Tags<Local> = Tags::new(64, 1, ShallowRule::WholeMap, None);
            tags.set_min_shallow(min_shallow);
            let tag = tags.try_take(CpuId(0), Depth::Full).expect("it is free");
            tags.wait(&NoMeter, 0, Sleeper::Hctx(HctxId(1)));
            let mut count = 0;
            tags.free(&NoMeter, tag, CpuId(0), |_| count += 1);
            assert_eq!(count, woken, "{min_shallow:?}");
        }
    }

    #[test]
    fn a_batch_grows_only_while_nobody_sleeps() {
        let tags: Tags<Local> = Tags::new(64, 1, ShallowRule::WholeMap, Some(1));
        let place = tags.wait(&NoMeter, 0, Sleeper::Submitter(Waiter(1)));
        tags.set_min_shallow(None);
        let woken_by_one = |tags: &Tags<Local>| {
            let mut woken = 0;
            tags.forward_tag_wakeup(&NoMeter, |_| woken += 1);
            woken
        };
        assert_eq!((woken_by_one(&tags), tags.resume(&NoMeter, place)), (1, false));
        tags.set_min_shallow(None);
        tags.wait(&NoMeter, 1, Sleeper::Submitter(Waiter(2)));
        assert_eq!(woken_by_one(&tags), 0, "a batch of eight");
    }

    #[test]
    fn freed_tags_count_until_a_woken_submitter_runs() {
        for (counted, then_woken) in [(2, 0), (3, 1)] {
            let tags: Tags<Local> = Tags::new(32, 1, ShallowRule::WholeMap, None);
            let free = |count| {
                let mut woken = 0;
                (0..count).for_each(|_| tags.forward_tag_wakeup(&NoMeter, |_| woken += 1));
                woken
            };
            let place = tags.wait(&NoMeter, 0, Sleeper::Submitter(Waiter(1)));
            assert_eq!(free(4), 1, "a batch");
            assert_eq!(free(counted), 0, "nobody is in line");
            assert!(!tags.resume(&NoMeter, place));
            assert_eq!(free(4), 0, "nobody waits, so they do not count");
            tags.wait(&NoMeter, 1, Sleeper::Submitter(Waiter(2)));
            assert_eq!(free(1), then_woken, "after {counted}");
        }
    }

    #[test]
    fn exactly_the_requested_number_of_tags_exists() {
        let tags: Tags<Local> = Tags::new(3, 1, ShallowRule::WholeMap, None);
        assert_eq!((tags.depth(), tags.in_use()), (3, 0));
        assert_eq!([(); 4].map(|()| tags.try_take(CpuId(0), Depth::Full).is_some()), [true, true, true, false]);
        assert_eq!((tags.depth(), tags.in_use()), (3, 3));
    }

    #[test]
    fn sleepers_are_counted_once_each_until_they_leave() {
        let tags: Tags<Local> = Tags::new(1, 1, ShallowRule::WholeMap, None);
        let first = Sleeper::Hctx(HctxId(1));
        let joins = |sleeper| tags.enqueue_sleeper(&NoMeter, || 0, sleeper);
        assert!(joins(first) && !joins(first));
        assert_eq!(tags.sleepers(), 1);
        let position = tags.wait(&NoMeter, 1, Sleeper::Hctx(HctxId(2)));
        assert_eq!(tags.sleepers(), 2);
        assert!(tags.remove_sleeper_at(&NoMeter, position) && !tags.remove_sleeper_at(&NoMeter, position));
        assert_eq!(tags.sleepers(), 1);
        assert!(tags.leave(&NoMeter, first) && !tags.leave(&NoMeter, first));
        assert_eq!(tags.sleepers(), 0);
    }

    #[test]
    fn a_search_after_one_in_vain_begins_at_the_first_tag() {
        for resets in [false, true] {
            let tags: Tags<Local> = Tags::new(8, 2, ShallowRule::WholeMap, None);
            let taken = [(); 3].map(|()| tags.try_take(CpuId(0), Depth::Full).expect("it is free"));
            tags.free(&NoMeter, taken[0], CpuId(1), |_| {});
            if resets {
                tags.reset_hint(CpuId(0));
            }
            let next = tags.try_take(CpuId(0), Depth::Full);
            assert_eq!(next == Some(taken[0]), resets, "else where the last one ended");
        }
    }

    #[test]
    fn tags_freed_or_passed_on_without_sleepers_do_not_count_for_later_ones() {
        let tags: Tags<Local> = Tags::new(64, 1, ShallowRule::WholeMap, None);
        let mut woken = 0;
        (0..7).for_each(|_| tags.forward_tag_wakeup(&NoMeter, |_| woken += 1));
        tags.wait(&NoMeter, 0, Sleeper::Hctx(HctxId(1)));
        tags.forward_tag_wakeup(&NoMeter, |_| woken += 1);
        assert_eq!(woken, 0);
        (0..7).for_each(|_| tags.forward_tag_wakeup(&NoMeter, |_| woken += 1));
        assert_eq!((woken, tags.sleepers()), (1, 0), "a batch of eight");
    }
}
