//! kyber, tested: worked examples, and each rule of docs/rules/kyber.md by itself.

mod controller;
mod dispatch;
mod queue;
mod replaying;
mod windows;

use crate::bio::limits::Limits;
use crate::bio::{Bio, BioFlags, Op};
use crate::ground::ids::{CpuId, HctxId, RqId, Sector};
use crate::ground::kernel::{Kernel, KyberGeneration, ShallowRule};
use crate::ground::meter::NoMeter;
use crate::ground::sharing::{Local, Sharing};
use crate::ground::time::{Hz, Instant, Now};
use crate::policy::{ElevatorCx, Place, RequestedActions, SchedulerEvent};
use crate::request::cpu_map::CpuMap;
use crate::request::merge::{MergeRules, Merging};
use crate::request::{RequestPool, Rq};

use super::domain::Domain;
use super::{Kyber, KyberConfig};

/// Request slots of a bench.
const SLOTS: u32 = 512;

fn config(generation: KyberGeneration) -> KyberConfig {
    KyberConfig {
        generation,
        hz: Hz(250),
        shallow: ShallowRule::WholeMap,
        nr_requests: 256,
        queue_depth: 128,
        async_depth: None,
    }
}

/// A kyber and requests for it.
struct Bench<Sh: Sharing = Local> {
    kyber: Kyber<Sh>,
    pool: RequestPool<Local>,
    next: u32,
    rules: MergeRules,
}

impl<Sh: Sharing> Bench<Sh> {
    fn new(generation: KyberGeneration, hctx_of_cpu: &[u16]) -> Self {
        let map: Vec<HctxId> = hctx_of_cpu.iter().copied().map(HctxId).collect();
        Bench {
            kyber: Kyber::new(config(generation), &CpuMap::of_one_type(&map), SLOTS),
            pool: RequestPool::new(SLOTS),
            next: 0,
            rules: MergeRules::new(&Kernel::V6_18.generation(), Limits::default(), Merging::Full),
        }
    }

    /// The current generation on one CPU.
    fn current() -> Self {
        Bench::new(KyberGeneration::Percentiles, &[0])
    }

    /// A request of one software queue, which is known by its sector.
    fn request(&mut self, cpu: u32, bio: Bio) -> Rq {
        let mut rq = self.pool.take(RqId(self.next));
        self.next += 1;
        rq.found(bio, Instant::ZERO);
        rq.ctx = CpuId(cpu);
        rq
    }

    fn insert(&mut self, cpu: u32, op: Op, sector: u64) {
        let rq = self.request(cpu, bio(op, sector));
        self.kyber.insert(&NoMeter, std::iter::once(rq), Place::Sorted);
    }

    /// Inserts requests of one operation at sectors 1000, 2000, ... .
    fn insert_many(&mut self, op: Op, count: u64) {
        (1..=count).for_each(|n| self.insert(0, op, n * 1000));
    }

    fn dispatch(&self, hctx: u16) -> Option<Rq> {
        self.kyber.dispatch(&NoMeter, HctxId(hctx)).0
    }

    /// Dispatches until nothing comes, and names what came: R1 is the read at sector 1000.
    fn drain(&self, hctx: u16) -> Vec<String> {
        std::iter::from_fn(|| self.dispatch(hctx)).map(|rq| name(&rq)).collect()
    }

    fn merges(&self, cpu: u32, bio: Bio) -> bool {
        self.kyber.merge_bio(&NoMeter, CpuId(cpu), &self.rules, &mut Some(bio)).is_some()
    }

    /// The hardware queues that the return of a request's token wakes.
    fn finish(&self, rq: &Rq) -> Vec<HctxId> {
        ElevatorCx::alone(Now::default(), |cx| {
            self.kyber.finish(&NoMeter, cx, rq.id());
            cx.requested.run_hctxs.iter().collect()
        })
    }
}

fn bio(op: Op, sector: u64) -> Bio {
    // A direct write is one that a task waits for.
    let flags = if op == Op::Write { BioFlags::SYNC } else { BioFlags::NONE };
    Bio { flags, ..Bio::new(op, Sector(sector), 8) }
}

fn name(rq: &Rq) -> String {
    let letter = match rq.op {
        Op::Read => 'R',
        Op::Write => 'W',
        Op::Discard => 'D',
        Op::Flush | Op::WriteZeroes => 'O',
    };
    format!("{letter}{}", rq.sector.0 / 1000)
}

fn names(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn at_ms(ms: u64) -> Now {
    Hz(250).now(Instant(ms * 1_000_000))
}
