//! Replay of schedulers that depend only on their calls: mq-deadline, deadline and noop.

use hoistway_blk::ground::Now;
use hoistway_blk::policy::Replayable;
use hoistway_trace::iosched::{Event, EventKind, InsertedBy, Mark};

use crate::conform::bench::baseline::DecisionCandidate;
use crate::conform::bench::{Bench, bio_of, doubts};
use crate::conform::consistency::Consistent;
use crate::conform::score::ReplayOutcome;

/// Replays a recording with the policy that `make` creates for a number of request ids.
pub fn replay<S: Replayable + Clone>(recording: &Consistent<'_>, make: impl FnOnce(u32) -> S) -> ReplayOutcome {
    let capacity = recording.slots_needed();
    let trace = recording.trace();
    let scheduler = match trace.header.scheduler.as_str() {
        "noop" => "noop",
        "deadline" => "deadline",
        _ => "mq-deadline",
    };
    let mut bench = Bench::new(scheduler, make(capacity), capacity);
    // Legacy kernels release a request at its completion, without an event.
    let is_legacy = matches!(trace.header.scheduler.as_str(), "noop" | "deadline");
    for (name, value) in &trace.header.tunables {
        bench.set_tunable(name, &value.to_string());
    }
    // All hardware queues share one scheduler.
    let in_doubt = doubts::in_doubt_before(&trace.events, |_, _| true);
    for (event, in_doubt) in trace.events.iter().zip(in_doubt) {
        in_doubt.into_iter().for_each(|decision| step(&mut bench, decision, true, is_legacy));
        step(&mut bench, event, false, is_legacy);
    }
    bench.outcome
}

fn step<S: Replayable + Clone>(bench: &mut Bench<S>, event: &Event, in_doubt: bool, is_legacy: bool) {
    let pid = event.pid.unwrap_or(0);
    bench.now.at = event.t;
    match &event.kind {
        EventKind::Insert(insert) if insert.by == InsertedBy::Scheduler => {
            bench.now.tick = insert.io.j.unwrap_or(bench.now.tick);
            if bench.arrive(insert.rq, bio_of(&insert.io, pid)) {
                bench.insert(insert, pid);
            }
        }
        EventKind::Backmerge(merge) => bench.grow(merge.rq, merge.io.sectors, None),
        EventKind::Frontmerge(merge) => bench.grow(merge.rq, merge.io.sectors, Some(merge.io.sector)),
        EventKind::Rqmerge(merge) => {
            let was_inside = bench.inside(merge.absorbed).is_some();
            if bench.absorb(merge).is_some() && was_inside && is_legacy {
                bench.release(merge.absorbed);
            }
        }
        EventKind::Dispatch(dispatch) => {
            let tick = std::mem::replace(&mut bench.now, Now { at: dispatch.called_at, tick: dispatch.j }).tick;
            bench.replay_dispatch(event, dispatch, in_doubt, |_, candidate| {
                let DecisionCandidate { rq, sector, sectors, op, prio, pid, .. } = candidate;
                format!("rq {} {op:?} {prio:?} {}+{sectors} of {pid}", rq.0, sector.0)
            });
            // A decision in doubt is replayed early, so its tick must not apply to the decisions before it.
            bench.now.tick = if in_doubt { tick } else { dispatch.j };
        }
        EventKind::Free(free) => bench.release(free.rq),
        EventKind::Complete(complete) if is_legacy => bench.release(complete.rq),
        EventKind::Mark(Mark::Tunable { name, value }) => bench.set_tunable(name, value),
        EventKind::Unknown(_) => bench.outcome.unknown_events += 1,
        _ => {}
    }
}
