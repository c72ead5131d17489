use super::*;
use crate::ground::sharing::{Local, Threads};
use crate::ground::time::Now;
use crate::policy::{Choice, Scheduler};

/// A policy that holds requests until it is told that they have ended, and limits writes.
struct Holding {
    needs: Needs,
    held: u32,
    depth: u32,
}

impl Scheduler for Holding {
    fn needs(&self) -> Needs {
        self.needs
    }
    fn insert(&mut self, _: &mut PolicyCx<'_>, _: RqId, _: Place) {}
    fn dispatch(&mut self, _: &mut PolicyCx<'_>, _: HctxId) -> Choice {
        Choice { rq: None, reason: Reason::Empty }
    }
    fn finish(&mut self, _: &mut PolicyCx<'_>, _: RqId) {
        self.held -= 1;
    }
    fn has_work(&self) -> bool {
        self.held > 0
    }
    fn adopt(&mut self, _: &mut PolicyCx<'_>, _: HctxId, _: RqId) {}
    fn limit_depth(&mut self, _: &mut PolicyCx<'_>, bio: &Bio) -> Option<u32> {
        (bio.op == Op::Write).then_some(self.depth)
    }
    fn told(&mut self, _: &mut PolicyCx<'_>, _: News) {
        self.depth += 1;
    }
}

fn holding(needs: Needs) -> Holding {
    Holding { needs, held: 1, depth: 3 }
}

/// Whether a policy of which one request is left has work after that has ended, and after the next call besides.
fn work_after_the_end<Sh: Sharing>(completions: Completions) -> [bool; 2] {
    let serialized: Serialized<_, Sh> = Serialized::new(holding(Needs { completions, ..Needs::default() }), 4);
    ElevatorCx::alone(Now::default(), |cx| {
        serialized.with_policy(&NoMeter, cx, |_, _| {});
        assert!(serialized.has_work());
        serialized.finish(&NoMeter, cx, RqId(2));
        let told_at_once = serialized.has_work();
        serialized.with_policy(&NoMeter, cx, |_, _| {});
        [told_at_once, serialized.has_work()]
    })
}

#[test]
fn a_completion_waits_for_the_next_holder_of_the_lock_where_there_are_others_and_the_policy_allows_it() {
    assert_eq!(work_after_the_end::<Threads>(Completions::Deferred), [true, false]);
    assert_eq!(work_after_the_end::<Threads>(Completions::AtOnce), [false, false]);
    assert_eq!(work_after_the_end::<Local>(Completions::Deferred), [false, false]);
    assert_eq!(work_after_the_end::<Local>(Completions::AtOnce), [false, false]);
}

#[test]
fn limits_are_published_or_asked_for_and_follow_what_the_policy_is_told() {
    for depth_by_context in [false, true] {
        let serialized: Serialized<_, Local> =
            Serialized::new(holding(Needs { depth_by_context, ..Needs::default() }), 4);
        ElevatorCx::alone(Now::default(), |cx| {
            let depths = |cx: &mut ElevatorCx<'_>| {
                [Op::Read, Op::Write].map(|op| serialized.limit_depth(&NoMeter, cx, &Bio::new(op, Sector(0), 8)))
            };
            assert_eq!(depths(cx), [Depth::Full, Depth::Shallow(3)]);
            serialized.tell(&NoMeter, cx, News::Depths { nr_requests: 8, async_depth: None });
            assert_eq!(depths(cx), [Depth::Full, Depth::Shallow(4)], "asked: {depth_by_context}");
        });
    }
}
