//! blk-switch against its rules: the numbers in the names of sections are those of docs/rules/blk-switch.md.

use super::moving::smoothed;
use super::*;
use crate::bio::Op;
use crate::ground::ids::{IoContextId, RqId, Sector};
use crate::ground::sharing::Local;
use crate::ground::time::{Hz, Instant, Nanos};
use crate::policy::RequestedActions;
use crate::request::{RequestPool, Rq};

const CPUS: usize = 4;
const BATCH: u64 = 16;

/// The policy on four CPUs, and requests.
struct Bench {
    policy: BlkSwitch<Local>,
    pool: RequestPool<Local>,
    free: Vec<u32>,
    now: Instant,
    requested: RequestedActions,
}

fn latency(process: u32) -> Bio {
    let ioprio = IoPriority::new(PriorityClass::RealTime, 4);
    Bio { io_context: IoContextId(process), ioprio, ..Bio::new(Op::Read, Sector(0), 8) }
}

fn throughput(process: u32, kib: u32) -> Bio {
    Bio { io_context: IoContextId(process), ..Bio::new(Op::Read, Sector(0), 2 * kib) }
}

impl Bench {
    fn of_mode(mode: &str) -> Self {
        let map = CpuMap::of_transport(CPUS as u16, 8).expect("enough queues");
        let family = BlkSwitchFamily { batch: BATCH as u16, queue_depth: 256, seed: 7 };
        let bench = Bench {
            policy: family.make(&map),
            pool: RequestPool::new(2048),
            free: (0..2048).collect(),
            now: Instant(5_000_000_000),
            requested: RequestedActions::default(),
        };
        bench.with("mode", mode)
    }

    fn with(mut self, tunable: &str, text: &str) -> Self {
        self.set(tunable, text);
        self
    }

    fn set(&mut self, tunable: &str, text: &str) {
        self.call(0, |policy, cx| policy.set_tunable(cx, tunable, text)).expect("a valid value");
    }

    fn call<R>(&mut self, cpu: u32, body: impl FnOnce(&BlkSwitch<Local>, &mut ElevatorCx<'_>) -> R) -> R {
        self.requested = RequestedActions::default();
        let (now, requested) = (Hz::DEFAULT.now(self.now), &mut self.requested);
        body(&self.policy, &mut ElevatorCx { now, cpu: CpuId(cpu), requested, freed: &mut Vec::new() })
    }

    fn place(&mut self, cpu: u32, bio: &Bio) -> (HctxId, Reason) {
        self.call(cpu, |policy, cx| policy.place(cx, bio, HctxId(cpu as u16)))
    }

    /// Submits a bio on a CPU. Returns the request and the CPU to which its process is moved.
    fn submit(&mut self, cpu: u32, bio: Bio) -> (Rq, Option<u32>) {
        let (hctx, _) = self.place(cpu, &bio);
        let mut rq = self.pool.take(RqId(self.free.pop().expect("a free slot")));
        rq.found(bio, self.now);
        (rq.hctx, rq.ctx) = (hctx, CpuId(cpu));
        self.call(cpu, |policy, cx| policy.on_issued(cx, &rq));
        let moved = self.requested.move_submitter.map(|(process, to)| {
            assert_eq!(process, rq.io_context, "the submitter itself");
            to.0
        });
        (rq, moved)
    }

    fn end(&mut self, rq: Rq) {
        self.call(0, |policy, cx| policy.on_ended(cx, &rq));
        self.free.push(rq.id().0);
        self.pool.put(rq);
    }

    /// Sets the loads at the beginning of the current turn.
    fn snapshot(&mut self, loads: [[u64; 2]; CPUS]) {
        for (core, loads) in self.policy.cores.iter().zip(loads) {
            for class in [LATENCY, THROUGHPUT] {
                core.snapshot[class].store(loads[class], Relaxed);
            }
        }
    }

    /// Sets the outstanding requests of each CPU's throughput queue, and how many it has had.
    fn queues(&mut self, counts: [[u64; 2]; CPUS]) {
        for (core, [outstanding, issued]) in self.policy.cores.iter().zip(counts) {
            core.outstanding.store(outstanding, Relaxed);
            core.issued.store(issued, Relaxed);
        }
    }

    fn loads(&self, cpu: usize) -> [u64; 2] {
        [LATENCY, THROUGHPUT].map(|class| self.policy.cores[cpu].loads[class].load(Relaxed))
    }

    fn bytes(&self) -> [u64; 2] {
        [LATENCY, THROUGHPUT].map(|class| self.policy.cores.iter().map(|core| core.bytes[class].load(Relaxed)).sum())
    }

    /// Has the next submission be in a turn of a class, with these loads.
    fn in_turn(&mut self, class: usize, loads: [[u64; 2]; CPUS]) {
        self.policy.turn.store(class as u64, Relaxed);
        self.policy.last_submission.store(self.now.0, Relaxed);
        self.policy.turn_ends.store(self.now.0 + 1, Relaxed);
        self.snapshot(loads);
    }
}

// --- BS-2 to BS-4: classes and their queues ---

#[test]
fn real_time_io_without_fua_is_latency_and_all_else_throughput() {
    let mut bench = Bench::of_mode("0");
    let fua = Bio { flags: BioFlags::FUA, ..latency(1) };
    let levels = [PriorityClass::BestEffort, PriorityClass::Idle]
        .map(|class| Bio { ioprio: IoPriority::new(class, 0), ..latency(1) });
    assert_eq!(bench.place(2, &latency(1)), (HctxId(2), Reason::ForLatency));
    for bio in [fua, throughput(1, 4)].into_iter().chain(levels) {
        assert_eq!(bench.place(2, &bio), (HctxId(6), Reason::ForThroughput));
    }
}

#[test]
fn the_mode_can_change_at_any_time_and_counts_stay_right() {
    let mut bench = Bench::of_mode("0").with("thresh_b", "1");
    let mut requests = Vec::new();
    for (mode, steers) in [("0", false), ("1", true), ("0", false), ("2", true)] {
        bench.set("mode", mode);
        bench.queues([[20, 20], [0, 0], [0, 0], [0, 0]]);
        let (hctx, _) = bench.place(0, &throughput(1, 64));
        assert_eq!(hctx != HctxId(4), steers, "mode {mode}");
        bench.queues([[0; 2]; CPUS]);
        requests.push(bench.submit(0, throughput(1, 64)).0);
        requests.push(bench.submit(1, latency(2)).0);
        bench.queues([[0; 2]; CPUS]);
    }
    assert_eq!(bench.bytes(), [4096, 65_536], "only mode 2 counts bytes");
    bench.queues([[4, 4]; CPUS]);
    requests.into_iter().for_each(|rq| bench.end(rq));
    assert_eq!(bench.bytes(), [0, 0]);
}

// --- BS-5 to BS-8: steering ---

#[test]
fn twice_the_threshold_stays_on_its_cpu() {
    let mut bench = Bench::of_mode("1");
    let mut requests = Vec::new();
    for _ in 0..17 {
        requests.push(bench.submit(1, throughput(1, 64)).0);
    }
    assert!(requests.iter().all(|rq| rq.hctx == HctxId(5)), "16 outstanding is not more than 2 * 8");
    let (rq, _) = bench.submit(1, throughput(1, 64));
    assert_ne!(rq.hctx, HctxId(5));
    let (low, _) = bench.submit(1, latency(1));
    assert_eq!(low.hctx, HctxId(1), "latency requests are never steered");
    requests.extend([rq, low]);
    requests.into_iter().for_each(|rq| bench.end(rq));
    assert!(
        bench.policy.cores.iter().all(|core| core.outstanding.load(Relaxed) == 0),
        "each in the queue that it was in"
    );
}

#[test]
fn a_steered_request_goes_to_the_batch_nearest_to_full_then_to_the_fewest_then_stays() {
    let mut bench = Bench::of_mode("1").with("thresh_b", "1");
    let goes_to = |bench: &mut Bench, counts| {
        bench.queues(counts);
        let (hctx, reason) = bench.place(0, &throughput(1, 64));
        assert_eq!(reason, Reason::SteeredToBatch);
        hctx.0 - CPUS as u16
    };
    assert_eq!(goes_to(&mut bench, [[9, 9], [2, 10], [2, 14], [1, 13]]), 2, "two are missing");
    assert_eq!(goes_to(&mut bench, [[9, 9], [5, 30], [2, 14], [1, 13]]), 2, "of two that miss as many, the fewest");
    assert_eq!(goes_to(&mut bench, [[5, 14], [5, 14], [20, 15], [6, 14]]), 0, "its own of those that are the same");
    let mut chosen: Vec<u16> = (0..64).map(|_| goes_to(&mut bench, [[9, 9], [3, 12], [3, 12], [5, 5]])).collect();
    chosen.sort_unstable();
    chosen.dedup();
    assert_eq!(chosen, [1, 2], "a coin decides");
}

#[test]
fn cpus_with_latency_load_or_a_whole_batch_outstanding_are_no_candidates() {
    let mut bench = Bench::of_mode("1").with("thresh_b", "1");
    bench.queues([[16, 15], [16, 15], [2, 2], [3, 15]]);
    bench.policy.cores[3].loads[LATENCY].store(4096, Relaxed);
    assert_eq!(bench.place(0, &throughput(1, 64)).0, HctxId(6));
    // None is left: two are drawn, and the one with fewer is taken.
    bench.queues([[40, 0], [30, 0], [20, 0], [10, 0]]);
    let mut counts = [0; CPUS];
    for _ in 0..1200 {
        let (hctx, reason) = bench.place(0, &throughput(1, 64));
        assert_eq!(reason, Reason::SteeredOfTwo);
        counts[hctx.index() - CPUS] += 1;
    }
    // Of six pairs, three contain CPU 3, two more CPU 2, and one more CPU 1; the two draws are distinct.
    for (count, expected) in counts.into_iter().zip([0, 200, 400, 600]) {
        assert!((expected - 90..=expected + 90).contains(&count), "{counts:?}");
    }
    let draws = |seed| {
        let map = CpuMap::of_transport(CPUS as u16, 8).expect("enough queues");
        let policy: BlkSwitch<Local> = BlkSwitchFamily { batch: 16, queue_depth: 1, seed }.make(&map);
        (0..20).map(|_| policy.draw(1000)).collect::<Vec<_>>()
    };
    assert_eq!(draws(1), draws(1), "the draws come of the seed");
    assert_ne!(draws(1), draws(2));
}

// --- BS-9 to BS-14: moving ---

#[test]
fn loads_are_smoothed_by_an_eighth_and_less_than_ten_bytes_are_none() {
    assert_eq!([smoothed(0, 4096), smoothed(8000, 16_000), smoothed(8000, 0), smoothed(10, 0)], [4096, 9000, 7000, 0]);
    let mut bench = Bench::of_mode("2").with("thresh_b", "1");
    let requests: Vec<Rq> = (0..4).map(|_| bench.submit(0, throughput(1, 64)).0).collect();
    let loads = [65_536, 65_536 + 8192, 65_536 + 8192 + 15_360];
    assert_eq!(bench.loads(0), [0, smoothed(loads[2], 4 * 65_536)], "samples of one to four requests outstanding");
    bench.queues([[20, 20], [0, 0], [0, 0], [0, 0]]);
    let (steered, _) = bench.submit(0, throughput(1, 64));
    assert_ne!(steered.hctx, HctxId(4));
    assert_eq!(bench.bytes(), [0, 4 * 65_536], "a steered request counts nowhere");
    requests.into_iter().chain([steered]).for_each(|rq| bench.end(rq));
    assert_eq!(bench.bytes(), [0, 0]);
}

#[test]
fn turns_alternate_and_decide_by_the_loads_at_their_beginning() {
    let mut bench = Bench::of_mode("2");
    // The first submission after a second without any begins a turn of latency processes.
    let (first, _) = bench.submit(0, latency(1));
    let turn = |bench: &Bench| bench.policy.turn.load(Relaxed) % 2;
    let snapshot = |bench: &Bench| bench.policy.cores[0].snapshot[LATENCY].load(Relaxed);
    assert_eq!((turn(&bench), snapshot(&bench)), (LATENCY as u64, 0), "its load counts from the next turn on");
    for (ms, class, load) in [(9, LATENCY, 0), (1, THROUGHPUT, 4608), (9, THROUGHPUT, 4608), (1, LATENCY, 6920)] {
        bench.now += Nanos::from_millis(ms);
        let (rq, _) = bench.submit(0, latency(1));
        assert_eq!((turn(&bench), snapshot(&bench)), (class as u64, load), "after {ms} ms more");
        bench.free.pop();
        std::mem::forget(rq);
    }
    std::mem::forget(first);
}

#[test]
fn a_latency_process_leaves_throughput_load_for_the_cpu_with_the_least_that_has_latency_processes() {
    let mut bench = Bench::of_mode("2");
    let moves_to = |bench: &mut Bench, loads| {
        bench.in_turn(LATENCY, loads);
        let (rq, moved) = bench.submit(0, latency(1));
        bench.end(rq);
        moved
    };
    let own = [4096, 500_000];
    assert_eq!(moves_to(&mut bench, [own, [8192, 100], [4096, 100], [0, 0]]), Some(2), "the last has no latency load");
    assert_eq!(moves_to(&mut bench, [[4096, 0], [1, 0], [1, 0], [1, 0]]), None, "nothing disturbs it");
    assert_eq!(moves_to(&mut bench, [own, [98_305, 0], [98_304, 0], [0, 0]]), Some(2), "the limit");
    assert_eq!(moves_to(&mut bench, [own, [98_305, 0], [0, 0], [4096, 500_000]]), None, "no better one");
    bench.in_turn(THROUGHPUT, [own, [8192, 100], [4096, 100], [0, 0]]);
    let (rq, moved) = bench.submit(0, latency(1));
    assert_eq!(moved, None, "it is not its turn");
    bench.end(rq);
}

#[test]
fn a_throughput_process_leaves_the_cpu_with_the_most_latency_load_for_the_least_throughput_load() {
    let mut bench = Bench::of_mode("2");
    let moves_to = |bench: &mut Bench, loads| {
        bench.in_turn(THROUGHPUT, loads);
        let (rq, moved) = bench.submit(0, throughput(1, 64));
        bench.end(rq);
        moved
    };
    assert_eq!(moves_to(&mut bench, [[8192, 10], [4096, 300], [0, 200], [0, 400]]), Some(2));
    assert_eq!(moves_to(&mut bench, [[4096, 10], [8192, 0], [0, 0], [0, 0]]), None, "latency processes go first");
    assert_eq!(
        moves_to(&mut bench, [[4096, 10], [98_305, 0], [0, 9], [0, 10]]),
        Some(2),
        "beyond the limit they do not"
    );
    let full = (8 << 20) - 1;
    assert_eq!(moves_to(&mut bench, [[8192, 10], [0, full + 1], [0, full + 1], [0, full]]), Some(3));
    assert_eq!(moves_to(&mut bench, [[8192, 10], [0, full + 1], [0, full + 1], [0, full + 1]]), None);
    assert_eq!(moves_to(&mut bench, [[0, 10], [0, 0], [0, 0], [0, 0]]), None, "nothing to make room for");
}

#[test]
fn a_class_without_a_process_for_a_turn_has_no_load_and_a_second_without_io_resets_all() {
    let mut bench = Bench::of_mode("2");
    let (rq, _) = bench.submit(2, throughput(1, 64));
    bench.end(rq);
    for (ms, load) in [(10, 65_536), (10, 0)] {
        bench.now += Nanos::from_millis(ms);
        let (rq, _) = bench.submit(0, latency(2));
        bench.end(rq);
        assert_eq!(bench.policy.cores[2].snapshot[THROUGHPUT].load(Relaxed), load);
    }
    let (held, _) = bench.submit(1, throughput(1, 64));
    bench.now += Nanos::from_millis(1000);
    let (rq, _) = bench.submit(0, latency(2));
    assert_eq!((bench.loads(1), bench.policy.turn.load(Relaxed)), ([0, 0], LATENCY as u64));
    bench.end(rq);
    bench.end(held);
    assert_eq!(bench.bytes(), [0, 0]);
}

// --- invariants ---

#[test]
fn in_random_runs_counts_end_at_zero_and_latency_requests_stay_on_their_cpu() {
    for seed in 0..60 {
        let mut bench = Bench::of_mode(["1", "2"][seed % 2]).with("thresh_b", "1");
        bench.policy.random.store(seed as u64, Relaxed);
        let mut requests: Vec<Rq> = Vec::new();
        for step in 0..600 {
            bench.now += Nanos(bench.policy.draw(200_000) as u64);
            if step % 97 == 0 {
                let mode = bench.policy.draw(3).to_string();
                bench.set("mode", &mode);
            }
            if !requests.is_empty() && bench.policy.draw(2) == 0 {
                let index = bench.policy.draw(requests.len());
                let mut rq = requests.swap_remove(index);
                // Merging makes requests larger, and may change their priority.
                rq.sectors += 8;
                rq.ioprio = IoPriority::new(PriorityClass::RealTime, 0);
                bench.end(rq);
                continue;
            }
            let (cpu, process) = (bench.policy.draw(CPUS) as u32, bench.policy.draw(9) as u32);
            let is_latency = process < 4;
            let bio = if is_latency { latency(process) } else { throughput(process, 64) };
            let (rq, moved) = bench.submit(cpu, bio);
            assert!(!is_latency || rq.hctx == HctxId(cpu as u16), "seed {seed}");
            assert!(is_latency || rq.hctx.index() >= CPUS, "seed {seed}");
            assert!(moved.is_none_or(|to| to != cpu && (to as usize) < CPUS), "seed {seed}");
            requests.push(rq);
        }
        requests.into_iter().for_each(|rq| bench.end(rq));
        assert_eq!(bench.bytes(), [0, 0], "seed {seed}");
        assert!(bench.policy.cores.iter().all(|core| core.outstanding.load(Relaxed) == 0), "seed {seed}");
        assert_eq!(bench.free.len(), 2048);
    }
}

// --- BS-16: tunables ---

#[test]
fn values_out_of_range_are_refused_and_the_old_ones_stay() {
    let mut bench = Bench::of_mode("1");
    for (name, text) in [
        ("mode", "3"),
        ("mode", "-1"),
        ("thresh_b", "0"),
        ("thresh_b", "1025"),
        ("app_ms", "0"),
        ("app_ms", "ten"),
        ("l_max_bytes", "4095"),
        ("l_max_bytes", ""),
        ("batch", "1"),
    ] {
        assert!(bench.call(0, |policy, cx| policy.set_tunable(cx, name, text)).is_err(), "{name}={text}");
    }
    let values: Vec<(&str, i128)> =
        bench.policy.tunables().iter().map(|(tunable, value)| (tunable.name, *value)).collect();
    assert_eq!(values, [("mode", 1), ("thresh_b", 8), ("app_ms", 10), ("l_max_bytes", 98_304)]);
}
