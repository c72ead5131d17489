//! A slot that has ended is used again at once, while others ask the policy.

use super::*;
use hoistway_blk::policy::{Choice, Completions, Needs, PolicyCx, Scheduler};

/// First come, first served; hears of ends with some later call, and of a slot's end before that is used again.
#[derive(Default)]
struct Strict {
    queue: VecDeque<RqId>,
    in_use: [bool; Reused::REQUESTS as usize],
}

impl Scheduler for Strict {
    fn needs(&self) -> Needs {
        Needs { completions: Completions::Deferred, ..Needs::default() }
    }
    fn insert(&mut self, _: &mut PolicyCx<'_>, id: RqId, _: Place) {
        let before = std::mem::replace(&mut self.in_use[id.index()], true);
        assert!(!before, "the end of the request before it was not reported");
        self.queue.push_back(id);
    }
    fn dispatch(&mut self, _: &mut PolicyCx<'_>, _: HctxId) -> Choice {
        Choice { rq: self.queue.pop_front(), reason: Reason::Empty }
    }
    fn finish(&mut self, _: &mut PolicyCx<'_>, id: RqId) {
        assert!(std::mem::replace(&mut self.in_use[id.index()], false));
    }
    fn has_work(&self) -> bool {
        !self.queue.is_empty()
    }
}

struct Reused {
    scheduler: Serialized<Strict, Checked>,
    pool: RequestPool<Checked>,
    given: Vec<AtomicU64>,
}

impl Reused {
    const REQUESTS: u32 = 2;
    const USES: u64 = 2;

    fn insert(&self, id: RqId) {
        let mut rq = self.pool.take(id);
        rq.found(Bio::new(Op::Read, Sector(u64::from(id.0) * 1000), 8), Instant::ZERO);
        let rules = MergeRules::new(&Kernel::V6_18.generation(), Limits::default(), Merging::Full);
        ElevatorCx::alone(Now::default(), |cx| {
            self.scheduler.insert(&NoMeter, cx, &rules, std::iter::once(rq), Place::Sorted);
        });
    }

    /// What is given out ends at once, and its slot is inserted again.
    fn run(&self) {
        while self.scheduler.has_work() {
            let drawn = ElevatorCx::alone(Now::default(), |cx| self.scheduler.dispatch(&NoMeter, cx, HctxId(0)).0);
            let Some(rq) = drawn else { return };
            let id = rq.id();
            let uses = self.given[id.index()].fetch_add(1, Ordering::SeqCst) + 1;
            ElevatorCx::alone(Now::default(), |cx| self.scheduler.finish(&NoMeter, cx, id));
            self.pool.put(rq);
            if uses < Self::USES {
                self.insert(id);
            }
        }
    }
}

#[test]
fn the_policy_is_notified_of_a_completion_before_its_slot_is_reused() {
    for contention_options in CONTENTION_OPTIONS {
        check(move || {
            let shared = Arc::new(Reused {
                scheduler: Serialized::new(Strict::default(), Reused::REQUESTS).with(contention_options),
                pool: RequestPool::new(Reused::REQUESTS),
                given: (0..Reused::REQUESTS).map(|_| AtomicU64::new(0)).collect(),
            });
            on_threads(&shared, Reused::REQUESTS, |shared, number| {
                shared.insert(RqId(number));
                shared.run();
            });
            assert!(!shared.scheduler.has_work(), "work is left");
            assert!(shared.given.iter().all(|given| given.load(Ordering::SeqCst) == Reused::USES));
        });
    }
}
