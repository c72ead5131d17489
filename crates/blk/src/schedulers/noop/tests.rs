//! The order in which noop dispatches, and its replay of recordings.

use super::*;
use crate::policy::{RequestedActions, Requests};

/// A scheduler that looks at no request, called at any time.
struct Bench(Noop, Requests);

impl Bench {
    /// With this number of requests inserted one after the other.
    fn with(requests: u32) -> Bench {
        let mut bench = Bench(Noop::new(requests), Requests::new(requests));
        (0..requests).for_each(|id| bench.call(|noop, cx| noop.insert(cx, RqId(id), Place::Sorted)));
        bench
    }

    fn call<R>(&mut self, body: impl FnOnce(&mut Noop, &mut PolicyCx<'_>) -> R) -> R {
        let mut requested = RequestedActions::default();
        let answer =
            body(&mut self.0, &mut PolicyCx { now: Default::default(), requests: &self.1, requested: &mut requested });
        assert_eq!(requested, RequestedActions::default());
        answer
    }

    /// What leaves, until nothing does.
    fn rest(&mut self) -> Vec<u32> {
        let mut rest = Vec::new();
        while let Choice { rq: Some(id), reason } = self.call(|noop, cx| noop.dispatch(cx, HctxId(0))) {
            assert_eq!(reason, Reason::Fifo);
            rest.push(id.0);
            self.call(|noop, cx| noop.finish(cx, id));
        }
        assert!(!self.0.has_work());
        rest
    }
}

#[test]
fn requests_leave_as_they_came_but_for_those_that_come_to_the_head() {
    let mut bench = Bench::with(3);
    bench.0.grow(5);
    bench.0.grow(4);
    bench.call(|noop, cx| noop.insert(cx, RqId(4), Place::Head));
    bench.call(|noop, cx| noop.insert(cx, RqId(3), Place::Sorted));
    assert!(bench.0.has_work());
    assert_eq!(bench.rest(), [4, 0, 1, 2, 3]);
    assert_eq!(bench.call(|noop, cx| noop.dispatch(cx, HctxId(0))), Choice { rq: None, reason: Reason::Empty });
}

#[test]
fn a_request_merged_or_dispatched_by_a_recorded_kernel_leaves_the_queue() {
    for takes_out in [
        (|noop, cx, id| noop.on_absorbed(cx, RqId(0), id)) as fn(&mut Noop, &mut PolicyCx<'_>, RqId),
        |noop, cx, id| noop.adopt(cx, HctxId(0), id),
    ] {
        let mut bench = Bench::with(4);
        let around = |bench: &Bench| [bench.0.previous(RqId(2)), bench.0.next(RqId(2))];
        assert_eq!(around(&bench), [Some(RqId(1)), Some(RqId(3))]);
        assert_eq!([bench.0.previous(RqId(0)), bench.0.next(RqId(3))], [None, None]);
        bench.call(|noop, cx| takes_out(noop, cx, RqId(1)));
        assert_eq!(around(&bench), [Some(RqId(0)), Some(RqId(3))]);
        assert_eq!([bench.0.previous(RqId(1)), bench.0.next(RqId(1))], [None, None]);
        // A kernel gives out what we have given out as well.
        bench.call(|noop, cx| noop.adopt(cx, HctxId(0), RqId(1)));
        assert_eq!(bench.rest(), [0, 2, 3]);
    }
}
