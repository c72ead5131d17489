//! d2fq against its rules: the numbers in the names of sections are those of docs/rules/d2fq.md.

use super::*;
use crate::bio::Op;
use crate::ground::ids::{RqId, Sector};
use crate::ground::sharing::Local;
use crate::ground::time::{Hz, Instant};
use crate::policy::RequestedActions;
use crate::request::{RequestPool, Rq};

/// Virtual time of a KiB at the weight of a process without a priority.
const KIB: u64 = 210;

/// The policy on four CPUs with twelve queues, and requests.
struct Bench {
    d2fq: D2fq<Local>,
    pool: RequestPool<Local>,
    free: Vec<u32>,
    now: Instant,
    requested: RequestedActions,
}

fn read_by(process: u32, kib: u32) -> Bio {
    Bio { io_context: IoContextId(process), ioprio: IoPriority::UNSET, ..Bio::new(Op::Read, Sector(0), 2 * kib) }
}

fn of_level(level: u8, bio: Bio) -> Bio {
    Bio { ioprio: IoPriority::new(PriorityClass::BestEffort, level), ..bio }
}

impl Bench {
    fn new() -> Self {
        let map = CpuMap::of_classes(4, 12).expect("enough queues");
        Bench {
            d2fq: D2fq::new(&map, 256),
            pool: RequestPool::new(4096),
            free: (0..4096).collect(),
            now: Instant(1_000_000_000),
            requested: RequestedActions::default(),
        }
    }

    fn with(mut self, tunable: &str, text: &str) -> Self {
        self.call(|d2fq, cx| d2fq.set_tunable(cx, tunable, text)).expect("a valid value");
        self
    }

    fn call<R>(&mut self, body: impl FnOnce(&D2fq<Local>, &mut ElevatorCx<'_>) -> R) -> R {
        self.requested = RequestedActions::default();
        let (now, requested) = (Hz::DEFAULT.now(self.now), &mut self.requested);
        body(&self.d2fq, &mut ElevatorCx { now, cpu: CpuId(1), requested, freed: &mut Vec::new() })
    }

    /// Submits a bio on CPU 1.
    fn submit(&mut self, bio: Bio) -> (Rq, Reason) {
        let (hctx, reason) = self.call(|d2fq, cx| d2fq.place(cx, &bio, HctxId(1)));
        let mut rq = self.pool.take(RqId(self.free.pop().expect("a free slot")));
        rq.found(bio, self.now);
        rq.hctx = hctx;
        self.call(|d2fq, cx| d2fq.on_issued(cx, &rq));
        (rq, reason)
    }

    fn end(&mut self, rq: Rq) {
        self.call(|d2fq, cx| d2fq.on_ended(cx, &rq));
        self.free.push(rq.id().0);
        self.pool.put(rq);
    }

    /// One request from submission to its end. Returns the reason of its class.
    fn serve(&mut self, bio: Bio) -> Reason {
        let (rq, reason) = self.submit(bio);
        self.end(rq);
        reason
    }

    fn wait_ms(&mut self, ms: u64) {
        self.now += Nanos::from_millis(ms);
    }

    /// The virtual time of a flow.
    fn local(&self, process: u32) -> u64 {
        let time = |_, flow: &Flow<Local>| flow.virtual_time.load(Relaxed);
        self.d2fq.with_flow(CpuId(0), IoContextId(process), time).expect("a flow")
    }

    fn set_local(&self, process: u32, time: u64) {
        let set = |_, flow: &Flow<Local>| flow.virtual_time.store(time, Relaxed);
        self.d2fq.with_flow(CpuId(0), IoContextId(process), set).expect("a flow");
    }

    fn number(&self, process: u32) -> u16 {
        self.d2fq.with_flow(CpuId(0), IoContextId(process), |number, _| number).expect("a flow")
    }

    /// The global time and the process that holds it.
    fn global(&self, processes: &[u32]) -> (u64, Option<u32>) {
        let holder = self.d2fq.time.holder();
        let process = processes.iter().copied().find(|&process| Some(self.number(process)) == holder);
        assert_eq!(holder.is_some(), process.is_some());
        (self.d2fq.time.value(), process)
    }

    fn active(&self) -> u64 {
        self.d2fq.active.load(Relaxed)
    }

    fn ratio(&self) -> u64 {
        self.d2fq.settings.ratio.load(Relaxed)
    }

    /// Two active flows, with the global time at 0.
    fn of_two() -> Self {
        let mut bench = Bench::new();
        for process in [1, 2] {
            let (rq, _) = bench.submit(read_by(process, 0));
            bench.end(rq);
        }
        bench
    }
}

#[test]
fn a_class_is_chosen_by_the_lead_strictly_above_each_threshold() {
    let mut bench = Bench::of_two();
    let classes = [
        (0, Reason::ClassHigh),
        (2457, Reason::ClassHigh),
        (2458, Reason::ClassMedium),
        (8192, Reason::ClassMedium),
        (8193, Reason::ClassLow),
    ];
    for (lead, class) in classes {
        bench.set_local(2, lead);
        let (rq, reason) = bench.submit(read_by(2, 0));
        // Of the twelve queues of four CPUs the first four are medium, then come high and low.
        let hctx = match class {
            Reason::ClassHigh => 5,
            Reason::ClassMedium => 1,
            _ => 9,
        };
        assert_eq!((reason, rq.hctx.0), (class, hctx), "at a lead of {lead}");
        bench.end(rq);
        bench.set_local(1, 0);
        bench.serve(read_by(1, 0));
    }
    let mut bench = Bench::of_two().with("threshold", "1000").with("md_ratio", "50");
    for (lead, class) in [(500, Reason::ClassHigh), (501, Reason::ClassMedium), (1001, Reason::ClassLow)] {
        bench.set_local(2, lead);
        let (rq, reason) = bench.submit(read_by(2, 0));
        assert_eq!(reason, class);
        bench.set_local(2, 0);
        bench.end(rq);
    }
}

#[test]
fn a_single_active_flow_goes_to_medium() {
    let mut bench = Bench::new();
    for _ in 0..100 {
        assert_eq!(bench.serve(read_by(1, 128)), Reason::OnlyFlow);
    }
    let (rq, _) = bench.submit(read_by(1, 4));
    assert_eq!(rq.hctx, HctxId(1));
    bench.end(rq);
    bench.serve(read_by(2, 4));
    assert_ne!(bench.serve(read_by(1, 4)), Reason::OnlyFlow);
}

#[test]
fn a_lead_below_zero_counts_as_none() {
    let mut bench = Bench::of_two();
    bench.d2fq.time.reset();
    bench.d2fq.time.on_completed(0, 1_000_000);
    assert_eq!(bench.serve(read_by(2, 0)), Reason::ClassHigh);
}

#[test]
fn a_flow_is_charged_at_completion_by_whole_units_of_its_weight() {
    let mut bench = Bench::new();
    let (rq, _) = bench.submit(read_by(1, 100));
    assert_eq!(bench.local(1), 0, "not before it has completed");
    bench.end(rq);
    assert_eq!(bench.local(1), 100 * KIB);
    let costs: Vec<u64> = (0..8)
        .map(|level| {
            let before = bench.local(1);
            bench.serve(of_level(level, read_by(1, 1)));
            bench.local(1) - before
        })
        .collect();
    assert_eq!(costs, [105, 120, 140, 168, 210, 280, 420, 840], "840 over 8 less the level");
    let before = bench.local(1);
    bench.serve(of_level(0, Bio { sectors: 3, ..read_by(1, 1) }));
    assert_eq!(bench.local(1) - before, 157, "105 times 1.5, rounded down");
    let before = bench.local(1);
    bench.serve(Bio { op: Op::Write, ..read_by(1, 1) });
    assert_eq!(bench.local(1) - before, KIB, "reads and writes alike");
    let before = bench.local(1);
    bench.serve(Bio { ioprio: IoPriority::new(PriorityClass::Idle, 0), ..read_by(1, 1) });
    assert_eq!(bench.local(1) - before, 105, "the class is not looked at");
    let mut bench = bench.with("unset_weight", "8");
    let before = bench.local(1);
    bench.serve(read_by(1, 1));
    assert_eq!(bench.local(1) - before, 105, "as the prototype has it");
}

#[test]
fn the_holder_advances_the_global_time_and_a_flow_behind_it_takes_over() {
    let time = GlobalTime::<Local>::new();
    let state = |time: &GlobalTime<Local>| (time.value(), time.holder());
    time.on_completed(7, 100);
    assert_eq!(state(&time), (100, Some(7)), "without a holder the next to complete is it");
    time.on_completed(7, 150);
    assert_eq!(state(&time), (150, Some(7)), "the holder advances it");
    time.on_completed(7, 140);
    assert_eq!(state(&time), (150, Some(7)), "and does not set it back");
    time.on_completed(8, 151);
    time.on_completed(8, 150);
    assert_eq!(state(&time), (150, Some(7)), "another that is not behind changes nothing");
    time.on_completed(8, 90);
    assert_eq!(state(&time), (90, Some(8)), "another that is behind takes over: time steps back");
    time.release(7);
    assert_eq!(state(&time), (90, Some(8)), "only the holder can give up");
    time.release(8);
    assert_eq!(state(&time), (90, None), "the time stays");
    time.on_completed(0, 5000);
    assert_eq!(state(&time), (5000, Some(0)));
}

#[test]
fn an_idle_flow_gives_up_its_role_and_comes_back_without_credit() {
    let mut bench = Bench::of_two();
    bench.serve(read_by(1, 1));
    bench.serve(read_by(2, 10));
    assert_eq!((bench.global(&[1, 2]), bench.active()), ((KIB, Some(1)), 2));
    bench.wait_ms(150);
    bench.serve(read_by(2, 10));
    bench.wait_ms(49);
    bench.serve(read_by(2, 0));
    assert_eq!(bench.active(), 2, "199 ms are not 200");
    bench.wait_ms(1);
    let (rq, reason) = bench.submit(read_by(2, 0));
    assert_eq!((bench.active(), reason), (1, Reason::OnlyFlow));
    assert_eq!(bench.global(&[1, 2]), (KIB, None), "the time stays");
    bench.end(rq);
    assert_eq!(bench.global(&[1, 2]), (20 * KIB, Some(2)));
    bench.wait_ms(100);
    bench.serve(read_by(2, 10));
    bench.serve(read_by(1, 0));
    assert_eq!((bench.local(1), bench.active()), (30 * KIB, 2), "it comes back at the global time");
    // A flow with a request in flight does not become inactive, however long that takes.
    let (rq, _) = bench.submit(read_by(1, 1));
    bench.wait_ms(10_000);
    bench.serve(read_by(2, 0));
    bench.serve(read_by(2, 0));
    assert_eq!(bench.active(), 2);
    bench.end(rq);
}

#[test]
fn everything_starts_from_zero_5_s_after_the_last_flow_has_gone() {
    for (ms, time) in [(5199, 100 * KIB), (5200, 0)] {
        let mut bench = Bench::new();
        bench.serve(read_by(1, 100));
        bench.wait_ms(ms);
        let (rq, _) = bench.submit(read_by(2, 0));
        assert_eq!(
            (bench.d2fq.time.value(), bench.local(2)),
            (time, time),
            "after {ms} ms, 200 of which count as active"
        );
        bench.end(rq);
        let (rq, _) = bench.submit(read_by(1, 0));
        assert_eq!(bench.local(1), time);
        bench.end(rq);
    }
}

#[test]
fn weights_come_from_the_ratio() {
    let expected =
        [(3, [255, 170, 85]), (6, [252, 126, 42]), (256, [256, 16, 1]), (0, [255, 170, 85]), (9999, [256, 16, 1])];
    for (ratio, expected) in expected {
        assert_eq!(weights(ratio, 256), expected, "ratio {ratio}");
    }
    assert_eq!(weights(200, 16), [16, 4, 1], "as far as the drive can");
    let mut bench = Bench::new();
    assert_eq!(bench.d2fq.weights(), Some([252, 126, 42]));
    bench = bench.with("ratio", "3");
    assert_eq!(bench.requested.arbitrate, Some([255, 170, 85]), "the new weights are requested");
    bench = bench.with("ratio", "3");
    assert_eq!(bench.requested.arbitrate, None, "once");
}

#[test]
fn a_slowdown_is_the_mean_over_the_cost_rounded_up() {
    let weights = [252, 126, 42];
    let cases = [
        ([0, 0, 0], None),
        ([10, 0, 0], Some(1)),
        ([0, 10, 0], Some(2)),
        ([0, 0, 10], Some(6)),
        ([1, 0, 1], Some(4)),
        ([5, 1, 0], Some(2)),
        ([1_000_000_000_000, 0, 1], Some(2)),
    ];
    for (costs, expected) in cases {
        assert_eq!(adaptation::slowdown(costs, weights), expected, "{costs:?}");
    }
}

/// Two flows adapt: in the current period they were charged this in each class; the second leads by so much.
fn adapted(ratio: &str, costs: [[u64; 3]; 2], lead: u64) -> (u64, Option<[u16; 3]>) {
    let mut bench = Bench::of_two().with("ratio", ratio).with("adapt", "1");
    bench.serve(read_by(1, 0));
    bench.set_local(1, 0);
    bench.set_local(2, lead);
    for (process, costs) in [1, 2].into_iter().zip(costs) {
        let charge = |_, flow: &Flow<Local>| {
            flow.begin_period();
            for (class, cost) in QueueClass::ALL.into_iter().zip(costs) {
                flow.charge(class, cost);
            }
        };
        bench.d2fq.with_flow(CpuId(0), IoContextId(process), charge).expect("a flow");
    }
    // Neither has been idle for long enough when the period ends.
    let (rq, _) = bench.submit(read_by(1, 0));
    bench.wait_ms(199);
    bench.end(rq);
    assert_eq!(bench.requested.arbitrate, None, "not before the period ends");
    let (rq, _) = bench.submit(read_by(2, 0));
    bench.wait_ms(1);
    bench.end(rq);
    (bench.ratio(), bench.requested.arbitrate)
}

#[test]
fn the_ratio_falls_to_the_largest_slowdown() {
    assert_eq!(
        adapted("20", [[100, 0, 0], [0, 100, 0]], 0),
        (4, Some([256, 128, 64])),
        "medium is a fourth of high, since 5 is the root of 20, rounded up"
    );
    assert_eq!(adapted("12", [[100, 0, 0], [100, 0, 0]], 0), (3, Some([255, 170, 85])), "not below 3");
    assert_eq!(adapted("3", [[100, 0, 0], [100, 0, 0]], 0), (3, None), "3 is the least");
    assert_eq!(adapted("12", [[0, 0, 0], [0, 0, 0]], 0), (12, None), "nothing was sent");
}

#[test]
fn the_ratio_rises_if_the_slowest_flow_leads_although_it_is_in_low() {
    let far = 20_000;
    assert_eq!(adapted("6", [[100, 0, 0], [0, 0, 250]], far), (15, Some([255, 68, 17])), "6 times 250 over 100");
    assert_eq!(adapted("6", [[1, 0, 0], [0, 0, 5000]], far).0, 256, "256 is the most");
    assert_eq!(adapted("6", [[0, 0, 0], [0, 0, 50]], far).0, 256, "one that makes no progress");
    assert_eq!(adapted("256", [[100, 0, 0], [0, 0, 250]], far), (256, None));
    assert_eq!(adapted("6", [[100, 0, 0], [0, 0, 250]], 2 * 8192 - 150), (6, None), "a lead of twice the threshold");
    assert_eq!(adapted("6", [[100, 0, 0], [0, 0, 250]], 2 * 8192 - 149).0, 15, "and one more");
    assert_eq!(adapted("6", [[100, 0, 0], [0, 0, 100]], far), (6, None), "the leader is no faster");
    // Less than half through low: the slowdown is below the ratio, which falls.
    assert_eq!(adapted("6", [[100, 0, 0], [126, 0, 124]], far).0, 4);
}

#[test]
fn one_change_of_weights_is_requested_in_a_period_and_none_by_a_single_flow() {
    let mut bench = Bench::new().with("adapt", "1").with("ratio", "12");
    let mut requests = 0;
    for ms in 0..1000 {
        bench.wait_ms(1);
        bench.serve(read_by(1, 4));
        requests += u32::from(bench.requested.arbitrate.is_some());
        assert_eq!((bench.ratio(), requests), (12, 0), "after {ms} ms");
    }
    let mut changes = Vec::new();
    for ms in 0..1000 {
        bench.wait_ms(1);
        bench.serve(read_by(1, 4));
        let changed = bench.requested.arbitrate.is_some();
        bench.serve(read_by(2, 4));
        if changed || bench.requested.arbitrate.is_some() {
            changes.push(ms);
        }
    }
    assert!(!changes.is_empty() && changes.windows(2).all(|pair| pair[1] - pair[0] >= 200), "{changes:?}");
    assert_eq!(bench.ratio(), 3, "both are in high");
}

#[test]
fn shares_the_drive_gives_are_corrected_until_flows_are_level() {
    // A drive that serves the classes by their weights, and flows that always wait.
    let mut bench = Bench::new().with("ratio", "6");
    let mut served = [0_u64; 2];
    let mut waiting: [Vec<Rq>; 3] = Default::default();
    for round in 0..20_000_usize {
        for (process, depth) in [(1, 8), (2, 2)] {
            let queued = waiting.iter().flatten().filter(|rq| rq.io_context.0 == process).count();
            for _ in queued..depth {
                let (rq, _) = bench.submit(read_by(process, 4));
                let class = bench.d2fq.class_of(rq.hctx) as usize;
                waiting[class].push(rq);
            }
        }
        // Twelve turns: of high, medium and low as 6 : 3 : 1, whatever waits.
        let class = [0, 0, 0, 1, 0, 0, 0, 1, 1, 2][round % 10];
        let class =
            if waiting[class].is_empty() { (0..3).find(|&class| !waiting[class].is_empty()).unwrap() } else { class };
        let rq = waiting[class].remove(0);
        served[rq.io_context.0 as usize - 1] += u64::from(rq.sectors);
        bench.end(rq);
    }
    let share = served[0] as f64 / (served[0] + served[1]) as f64;
    assert!((share - 0.5).abs() < 0.05, "a share of {share} for the deeper one");
    waiting.into_iter().flatten().for_each(|rq| bench.end(rq));
}

#[test]
fn a_flow_ends_with_requests_in_flight_and_its_place_is_used_again() {
    let mut bench = Bench::new();
    let (rq, _) = bench.submit(read_by(1, 4));
    bench.call(|d2fq, cx| d2fq.on_event(cx, SchedulerEvent::IoContextExited(IoContextId(1))));
    bench.serve(read_by(2, 4));
    assert_eq!(bench.active(), 2, "it has a request in flight");
    bench.end(rq);
    assert_eq!(bench.active(), 1);
    for process in 3..10_003 {
        bench.serve(read_by(process, 4));
        bench.call(|d2fq, cx| d2fq.on_event(cx, SchedulerEvent::IoContextExited(IoContextId(process))));
    }
    assert_eq!(bench.active(), 1);
    assert!(bench.d2fq.flows.read(CpuId(0), |flows| flows.len()) <= 4, "places are used again");
    for process in 20_000..90_000 {
        bench.serve(read_by(process, 4));
    }
    assert_eq!(bench.active(), 65_534, "as many flows as there are places");
    let (rq, reason) = bench.submit(read_by(90_000, 4));
    assert_eq!((rq.hctx, reason), (HctxId(1), Reason::Steered), "others take the medium class, unaccounted");
    bench.end(rq);
}

#[test]
fn tunables_keep_their_values_where_a_text_is_refused() {
    let mut bench = Bench::new();
    let ranges = [
        ("threshold", 1, 1 << 31, 8192),
        ("md_ratio", 0, 100, 70),
        ("ratio", 3, 256, 6),
        ("idle_ms", 1, 60_000, 200),
        ("adapt", 0, 1, 0),
        ("adapt_ms", 10, 60_000, 200),
        ("unset_weight", 1, 8, 4),
    ];
    let shown = |bench: &Bench, name: &str| {
        bench.d2fq.tunables().into_iter().find(|(tunable, _)| tunable.name == name).map(|(_, value)| value)
    };
    for (name, min, max, default) in ranges {
        let set = |bench: &mut Bench, text: &str| bench.call(|d2fq, cx| d2fq.set_tunable(cx, name, text));
        for text in ["", "-1", "x", "1.5"] {
            assert!(set(&mut bench, text).is_err(), "{name}={text}");
        }
        for outside in [min - 1, max + 1] {
            assert!(set(&mut bench, &outside.to_string()).is_err(), "{name}={outside}");
        }
        assert_eq!(shown(&bench, name), Some(default), "{name}");
        for value in [min, max] {
            assert_eq!(set(&mut bench, &value.to_string()), Ok(()), "{name}={value}");
            assert_eq!(shown(&bench, name), Some(value), "{name}");
        }
    }
    assert_eq!(bench.call(|d2fq, cx| d2fq.set_tunable(cx, "slots", "1")), Err(StoreError::Unknown));
}
