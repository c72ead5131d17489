//! Compares the shares that cfq gives to processes, if only the load is recorded. Sequential readers with one request
//! each pause as recorded, the disk takes as long as recorded, and everything between is simulated. A process that gets
//! less than in the kernel submits less, so that differences grow, whereas a replay of arrivals would correct them.

use std::collections::{BTreeMap, HashMap};

use hoistway_blk::bio::Status;
use hoistway_blk::ground::{Instant, Nanos, Sector};
use hoistway_trace::iosched::{Event, EventKind, RqNumber, Submitted, Trace};

use crate::legacy_front::replay::{ATTACHED_BEFORE, Replay};

/// A reader: what it does next and when.
struct Reader {
    next: Submitted,
    /// When it submits its next request; none while one is outstanding.
    arrives: Option<Instant>,
    /// Its recorded pauses from a completion to the next request, which are repeated in a cycle.
    pauses: Vec<Nanos>,
    made: usize,
}

/// The load of a recording.
struct Load {
    readers: BTreeMap<u32, Reader>,
    /// Service time of a request that begins where the last one ended.
    onward: Nanos,
    /// Service times of the other requests, in recorded order.
    jumps: Vec<Nanos>,
    /// The time of the last recorded request, at which the readers end.
    end: Instant,
    /// Sectors that each reader got in the recording.
    served: BTreeMap<u32, u64>,
}

impl Load {
    fn recorded(trace: &Trace) -> Load {
        let mut readers: BTreeMap<u32, Reader> = BTreeMap::new();
        let mut served = BTreeMap::new();
        let mut ended: HashMap<u32, Instant> = HashMap::new();
        let (mut owners, mut issued) = (HashMap::<RqNumber, u32>::new(), HashMap::new());
        let (mut onward, mut jumps, mut last_end) = (Vec::new(), Vec::new(), Sector(u64::MAX));
        let arrives = |event: &&Event| matches!(event.kind, EventKind::Queue(_));
        let end = trace.events.iter().rfind(arrives).expect("arrivals").t;
        for Event { t, pid, kind, .. } in trace.events.iter().take_while(|event| event.t <= end) {
            let pid = pid.unwrap_or(0);
            match kind {
                EventKind::Queue(bio) => {
                    let first = || Reader { next: *bio, arrives: Some(*t), pauses: Vec::new(), made: 0 };
                    let reader = readers.entry(pid).or_insert_with(first);
                    reader.pauses.extend(ended.remove(&pid).map(|ended| t.since(ended)));
                }
                EventKind::Getrq { rq: Some(rq), .. } => {
                    owners.insert(*rq, pid);
                }
                EventKind::Issue(issue) => {
                    issued.insert(issue.rq, *t);
                }
                EventKind::Complete(complete) => {
                    let (owner, io) = (owners[&complete.rq], &complete.io);
                    let times = if io.sector == last_end { &mut onward } else { &mut jumps };
                    times.push(t.since(issued[&complete.rq]));
                    last_end = io.sector + io.sectors;
                    *served.entry(owner).or_default() += u64::from(io.sectors);
                    ended.insert(owner, *t);
                }
                _ => {}
            }
        }
        onward.sort_unstable();
        Load { readers, onward: onward[onward.len() / 2], jumps, end, served }
    }
}

/// Sectors that each reader gets here.
fn served_by_us(trace: &Trace, load: &mut Load) -> BTreeMap<u32, u64> {
    let mut replay = Replay::new(trace);
    let mut served = BTreeMap::new();
    let (mut completes, mut last_end) = (None::<Instant>, Sector(u64::MAX));
    let mut jumps = load.jumps.clone().into_iter().cycle();
    loop {
        let timer = replay.host.timer().map(|at| Instant(at.0 - ATTACHED_BEFORE.0));
        let arrival = load.readers.iter().filter_map(|(&pid, reader)| Some((reader.arrives?, pid))).min();
        let next = [completes, arrival.map(|(at, _)| at), timer].into_iter().flatten().min();
        let Some(now) = next.filter(|&now| now <= load.end) else { return served };
        // This also fires the timer.
        replay.advance(now, None);
        if completes == Some(now) {
            completes = None;
            let id = replay.host.device.in_flight[0].id();
            let rq = replay.host.take(Some(id)).expect("the request at the device");
            let pid = rq.io_context.0;
            last_end = rq.end();
            *served.entry(pid).or_default() += u64::from(rq.sectors);
            replay.host.call(|queue, cx| queue.complete(cx, rq, Status::Ok));
            let reader = load.readers.get_mut(&pid).expect("a reader");
            reader.arrives = Some(now + reader.pauses[reader.made % reader.pauses.len()]);
            reader.made += 1;
        } else if let Some((at, pid)) = arrival
            && at == now
        {
            let reader = load.readers.get_mut(&pid).expect("a reader");
            reader.arrives = None;
            replay.submit(pid, &reader.next);
            reader.next.io.sector = reader.next.io.sector + reader.next.io.sectors;
        }
        replay.host.call(|queue, cx| queue.run(cx));
        if let (None, [rq, ..]) = (completes, &replay.host.device.in_flight[..]) {
            let takes = if rq.sector == last_end { Some(load.onward) } else { jumps.next() };
            completes = Some(now + takes.expect("recorded jumps"));
        }
    }
}

/// Recordings with several priorities or groups, and the maximum difference of a share.
const RECORDINGS: [(&str, f64); 8] = [
    ("prio-be-0-4-7", 0.012),
    ("prio-be-all8", 0.012),
    ("nice", 0.012),
    ("cg-100-900", 0.012),
    ("cg-250-500-1000", 0.012),
    ("cg-500-500", 0.012),
    ("cg-root-and-child", 0.012),
    // Of 3 s, one turn of 100 ms has gone to the other of two groups with equal shares.
    ("cg-nested", 0.04),
];

#[test]
fn processes_of_several_priorities_and_groups_get_the_shares_that_the_kernel_gave_them() {
    for (name, tolerance) in RECORDINGS {
        let trace = crate::legacy_front::recording("cfq", name);
        let mut load = Load::recorded(&trace);
        let ours = served_by_us(&trace, &mut load);
        let share = |served: &BTreeMap<u32, u64>, pid| {
            served.get(pid).copied().unwrap_or(0) as f64 / served.values().sum::<u64>() as f64
        };
        for process in &trace.header.processes {
            let (recorded, ours) = (share(&load.served, &process.pid), share(&ours, &process.pid));
            assert!((ours - recorded).abs() <= tolerance, "{name}: {}: {ours:.3}, recorded {recorded:.3}", process.job);
        }
    }
}
