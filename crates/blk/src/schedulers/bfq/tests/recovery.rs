//! A recorded exchange between two readers that the device outruns, step by step (BFQ-81): what a queue that runs empty
//! keeps for its return.

use super::super::{BfqConfig, BfqVariant, StateChange};
use super::machine::{Machine, config};
use crate::ground::kernel::Kernel;

const FAR: u64 = 1 << 30;

struct Readers {
    machine: Machine,
    /// Requests that a reader has made.
    made: [u64; 3],
}

impl Readers {
    /// A reader comes back with `requests` requests of 256 KiB.
    fn come(&mut self, us: u64, pid: u32, requests: u32) {
        self.machine.now = us * 1000;
        for _ in 0..requests {
            let made = &mut self.made[pid as usize];
            self.machine.read(pid, u64::from(pid) * FAR + *made * 512, 512);
            *made += 1;
        }
    }

    /// This number of requests leaves and completes; all are of this reader.
    fn serve(&mut self, us: u64, pid: u32, requests: u32) {
        self.machine.now = us * 1000;
        for _ in 0..requests {
            let sector = self.machine.serve();
            assert_eq!(sector / FAR, u64::from(pid), "{us} us");
        }
    }

    /// The stamps computed last.
    fn stamps(&self, pid: u32) -> (u64, u64) {
        self.machine.stamps(pid).last().copied().expect("stamps")
    }

    fn learned(&self, pid: u32) -> u64 {
        self.machine.bfq.queues[self.machine.sync_queue(pid)].max_budget
    }

    fn budget(&self, pid: u32) -> u64 {
        self.machine.bfq.entity(self.machine.sync_queue(pid)).budget
    }

    fn left(&self, pid: u32) -> i64 {
        self.machine.bfq.entity(self.machine.sync_queue(pid)).budget_left()
    }

    fn last_end(&self, pid: u32) -> &'static str {
        self.machine.expirations(pid).last().expect("the end of a slot").1
    }
}

#[test]
fn two_readers_that_run_empty_recover_their_budgets_as_recorded() {
    let config = BfqConfig { variant: BfqVariant::of(Kernel::V6_18), ..config(true) };
    let mut r = Readers { machine: Machine::new(config), made: [0; 3] };
    let (a, b) = (1, 2);
    r.come(0, a, 1);
    assert_eq!((r.stamps(a), r.budget(a)), ((0, 1_145_254_707), 10_922));
    let (first, _) = r.machine.dispatch().expect("the first request");
    r.come(229, b, 4);
    assert_eq!((r.stamps(b), r.budget(b)), ((53_687_091, 1_198_941_798), 10_922));
    r.come(300, a, 1);
    let (second, _) = r.machine.dispatch().expect("the second request");
    r.machine.finish(first);
    // A is empty with a request in flight, and not waited for.
    r.serve(1000, b, 1);
    r.machine.finish(second);
    assert_eq!((r.last_end(a), r.stamps(a), r.learned(a)), ("no_more_requests", (0, 107_374_182), 1024));
    r.serve(1100, b, 3);
    // A is back, and B, which is empty too, loses the device with what is left of its budget.
    r.come(2488, a, 4);
    assert_eq!((r.budget(a), r.machine.bfq.in_service), (1024, None));
    assert_eq!(r.stamps(a), (107_374_182, 214_748_364));
    assert_eq!((r.last_end(b), r.stamps(b), r.left(b)), ("preempted", (53_687_091, 268_435_455), 8874));
    // A uses up its budget, which becomes four times as large, and gets the device again.
    r.serve(2495, a, 2);
    r.serve(2649, a, 1);
    assert_eq!((r.last_end(a), r.learned(a)), ("budget_exhausted", 4096));
    assert_eq!((r.stamps(a), r.budget(a)), ((214_748_364, 644_245_093), 4096));
    r.serve(2650, a, 1);
    r.come(2698, b, 4);
    assert_eq!((r.budget(b), r.stamps(b)), (8874, (268_435_455, 1_198_941_797)));
    assert_eq!((r.last_end(a), r.stamps(a).1, r.left(a)), ("preempted", 322_122_546, 3072));
    r.serve(2700, b, 4);
    // (The example prints a finish time less by one than its own start time and budget give.)
    r.come(2854, a, 4);
    assert_eq!((r.budget(a), r.stamps(a)), (3072, (322_122_546, 644_245_093)));
    assert_eq!((r.last_end(b), r.stamps(b).1, r.left(b)), ("preempted", 483_183_819, 6826));
    r.serve(2860, a, 4);
    r.come(4263, b, 4);
    assert_eq!((r.budget(b), r.stamps(b).1), (6826, 1_198_941_796));
    assert_eq!((r.last_end(a), r.left(a)), ("preempted", 1024));
    r.serve(4270, b, 4);
    // Virtual time has gone on beyond the finish time that A would have: A starts later by as much.
    r.come(5476, a, 4);
    assert_eq!((r.budget(a), r.stamps(a)), (1024, (536_870_910, 644_245_092)));
    let entity = r.machine.bfq.entity(r.machine.sync_queue(a));
    assert_eq!((entity.start, entity.finish), (858_993_456, 966_367_638));
    assert_eq!((r.last_end(b), r.left(b)), ("preempted", 4778));
    r.serve(5480, a, 2);
    r.serve(5848, a, 2);
    assert_eq!((r.last_end(a), r.learned(a), r.stamps(a)), ("budget_exhausted", 16_384, (966_367_638, 2_684_354_556)));
    r.come(8230, b, 4);
    assert_eq!((r.budget(b), r.stamps(b).1), (4778, 1_198_941_795));
    // What preemption ended has never touched what was learned.
    assert_eq!(r.learned(b), 10_922);
    let served = r.machine.lines_of(b, |what| matches!(what, StateChange::Serve { .. }));
    assert_eq!(served.len(), 3, "not selected again before it came back");
}
