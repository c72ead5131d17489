//! d2fq: its global time, which flows that come and go share on many CPUs.

use hoistway_blk::bio::Bio;
use hoistway_blk::ground::IoContextId;
use hoistway_blk::policy::{RequestedActions, Steering, SteeringFamily};
use hoistway_blk::request::{Arbitration, CpuMap, QueueClass};
use hoistway_blk::schedulers::{D2fq, D2fqFamily};

use super::*;

const CPUS: u16 = 2;
const REQUESTS: u32 = 8;
/// After this time without requests a flow no longer counts.
const IDLE_NS: u64 = 1_000_000;

struct Steered {
    policy: D2fq<Checked>,
    map: CpuMap,
    pool: RequestPool<Checked>,
}

impl Steered {
    fn new() -> Self {
        let map = CpuMap::of_classes(CPUS, 3 * CPUS).expect("enough queues");
        let arbitration = Some(Arbitration { weight_max: 256 });
        let policy = D2fqFamily { arbitration }.make::<Checked>(&map);
        let steered = Steered { policy, map, pool: RequestPool::new(REQUESTS) };
        steered.call(CpuId(0), 0, |policy, cx| policy.set_tunable(cx, "idle_ms", "1")).expect("a valid value");
        steered
    }

    fn call<R>(&self, cpu: CpuId, at: u64, body: impl FnOnce(&D2fq<Checked>, &mut ElevatorCx<'_>) -> R) -> R {
        let now = Hz::DEFAULT.now(Instant(at));
        let mut requested = RequestedActions::default();
        body(&self.policy, &mut ElevatorCx { now, cpu, requested: &mut requested, freed: &mut Vec::new() })
    }

    /// A request of a process from its submission at `from` to its end at `to`. Returns its class.
    fn serve(&self, cpu: u16, process: u32, slot: u32, from: u64, to: u64) -> QueueClass {
        let bio = Bio { io_context: IoContextId(process), ..Bio::new(Op::Read, Sector(0), 2048) };
        let (hctx, _) = self.call(CpuId(cpu.into()), from, |policy, cx| policy.place(cx, &bio, HctxId(cpu)));
        let mut rq = self.pool.take(RqId(slot));
        rq.found(bio, Instant(from));
        rq.hctx = hctx;
        self.call(CpuId(cpu.into()), from, |policy, cx| policy.on_issued(cx, &rq));
        self.call(CpuId(cpu.into()), to, |policy, cx| policy.on_ended(cx, &rq));
        self.pool.put(rq);
        self.map.classes()[hctx.index()]
    }
}

/// A process that is found idle just as it submits again, and then leaves, does not keep the time: of the others, the one that is behind
/// is not behind the time.
#[test]
fn the_time_advances_though_its_holder_left_while_it_was_found_idle() {
    check(|| {
        let steered = Arc::new(Steered::new());
        steered.serve(0, 0, 0, 0, 10);
        on_threads(&steered, 2, |steered, thread| match thread {
            0 => {
                steered.serve(0, 0, 1, 2 * IDLE_NS, 2 * IDLE_NS + 10);
            }
            _ => {
                steered.serve(1, 1, 2, 2 * IDLE_NS, 2 * IDLE_NS + 10);
            }
        });
        // The first one is long gone. Two others take turns.
        let at = |turn: u64| 10 * IDLE_NS + turn * IDLE_NS / 8;
        let mut classes = Vec::new();
        for turn in 0..64 {
            classes.push(steered.serve(1, 1 + (turn % 2) as u32, 3, at(turn), at(turn) + 10));
        }
        assert!(classes[32..].contains(&QueueClass::High), "all are ahead of a time that stands still: {classes:?}");
    });
}
