//! State lines: each is noted where what it tells of happens (BFQ-51).

use super::super::entity::QueueId;
use super::super::rate::RateEvent;
use super::super::{Bfq, Expiration, StateChange};
use super::machine::{MS, Machine, config};
use crate::bio::{Bio, Op};
use crate::ground::ids::{IoContextId, Sector};
use crate::policy::Scheduler;

/// The lines that something leaves: the process, if it is about one, and the name of the line.
fn noted<R>(machine: &mut Machine, body: impl FnOnce(&mut Machine) -> R) -> Vec<String> {
    let before = machine.lines.len();
    body(machine);
    let line = |(_, line): &(u64, super::super::StateLine)| {
        let what = format!("{:?}", line.what);
        let name = what.split(' ').next().unwrap().to_owned();
        match line.queue {
            Some(queue) => format!("{} {name}", queue.io_context.map_or("shared".to_owned(), |id| id.0.to_string())),
            None => name,
        }
    };
    machine.lines[before..].iter().map(line).collect()
}

fn inside(machine: &mut Machine, body: impl FnOnce(&mut Bfq)) -> Vec<String> {
    noted(machine, |machine| machine.inside(body))
}

#[test]
fn state_lines_record_the_queue_and_the_slot_of_a_request() {
    let mut machine = Machine::new(config(true));
    machine.decide_ncq(true);
    machine.set("slice_idle", 0);
    assert_eq!(noted(&mut machine, |machine| machine.read(1, 800, 8)), ["1 New", "1 Busy", "1 Vtime"]);
    assert_eq!(noted(&mut machine, |machine| machine.read(2, 1 << 30, 8)), ["2 New", "2 Busy", "2 Vtime"]);
    assert_eq!(noted(&mut machine, Machine::dispatch), ["1 Serve", "RateReset"]);
    let ended = ["1 Expire", "1 BudgetInputs", "1 Budget", "1 Idle", "1 Vtime", "2 Serve"];
    assert_eq!(noted(&mut machine, Machine::dispatch), ended);
    let (_, first) = machine.in_device[0];
    let (_, second) = machine.in_device[1];
    // It takes the device from one that has run dry. The interrupted queue learns no budget.
    let interrupts = ["1 Busy", "1 Vtime", "2 Expire", "2 BudgetInputs", "2 Idle", "2 Vtime"];
    assert_eq!(noted(&mut machine, |machine| machine.read(1, 1600, 8)), interrupts);
    // The first completion of all was waited for too long to tell of the rate.
    assert_eq!(noted(&mut machine, |machine| machine.finish(first)), ["RateReset"]);
    let last = noted(&mut machine, |machine| machine.finish(second));
    assert_eq!(last, ["Kick"], "nothing is out, and a request waits");
}

#[test]
fn state_lines_record_raising_late_requests_and_budget_changes() {
    let mut machine = Machine::new(config(true));
    machine.read(1, 800, 8);
    machine.read(1, 80, 8);
    machine.read(1, 8, 8);
    let q = machine.sync_queue(1);
    machine.bfq.queues[q].max_budget += 100;
    assert_eq!(inside(&mut machine, |bfq| bfq.update_budget_for_next_request(q)), ["1 Rebudget", "1 Vtime"]);
    assert!(inside(&mut machine, |bfq| bfq.update_budget_for_next_request(q)).is_empty(), "nothing has changed");
    machine.bfq.entity_mut(q).raise = 30;
    machine.bfq.raised_busy = 1;
    machine.bfq.queues[q].raising.duration = 10_000;
    machine.now = 1000 * MS;
    let lines = noted(&mut machine, Machine::dispatch);
    let raised = machine.lines_of(1, |what| matches!(what, StateChange::Raised { .. }));
    let line = StateChange::Raised { since_ms: 1000, max_ms: 10_000, coeff: 30, weight: 40, base_weight: 40 };
    assert_eq!(raised, [(1000 * MS, line)]);
    assert!(["1 Fifo", "1 Raised"].iter().all(|line| lines.iter().filter(|noted| noted == line).count() == 1));
    let lines = noted(&mut machine, Machine::dispatch);
    assert!(!lines.contains(&"1 Fifo".to_owned()), "once in a slot: {lines:?}");
}

#[test]
fn state_lines_record_merges_splits_and_wakers() {
    let mut machine = Machine::new(config(true));
    let [one, two] = [1, 2].map(|pid| {
        machine.read(pid, u64::from(pid) << 30, 8);
        machine.sync_queue(pid)
    });
    let context = machine.bfq.contexts.find(IoContextId(2)).unwrap();
    let lines = inside(&mut machine, |bfq| {
        bfq.plan_merge(two, one);
        bfq.execute_merge(context, two);
    });
    assert_eq!(lines, ["2 MergePlanned", "2 Merge"]);
    let lines = inside(&mut machine, |bfq| {
        bfq.leave_shared(context, one);
    });
    assert_eq!(lines, ["shared SplitQueue"]);

    let mut machine = Machine::new(config(true));
    let [one, two] = [1, 2].map(|pid| {
        machine.read(pid, u64::from(pid) << 30, 8);
        machine.sync_queue(pid)
    });
    machine.bfq.queues[two].short_think = false;
    machine.bfq.last_completed = Some(one);
    machine.bfq.rate.last_completion = 0;
    let mut look = |q: QueueId| inside(&mut machine, |bfq| bfq.look_for_waker(q));
    assert_eq!([look(two), look(two), look(two)], [vec!["2 WakerCandidate"], vec![], vec!["2 Waker"]]);
}

#[test]
fn state_lines_record_device_and_tag_changes() {
    let mut machine = Machine::new(config(true));
    machine.set("max_budget", 0);
    for (updated, reset, expected) in [
        (false, false, &[][..]),
        (true, false, &["MaxBudget"]),
        (false, true, &["RateReset"]),
        (true, true, &["MaxBudget", "RateReset"]),
    ] {
        assert_eq!(inside(&mut machine, |bfq| bfq.note_rate_event(RateEvent { updated, reset })), expected);
    }
    let bio = Bio { io_context: IoContextId(1), ..Bio::new(Op::Read, Sector(8), 8) };
    let limit = |machine: &mut Machine| noted(machine, |machine| machine.call(|bfq, cx| bfq.limit_depth(cx, &bio)));
    assert_eq!(limit(&mut machine), ["Limit"]);
    machine.read(1, 8, 8);
    machine.bfq.config.nr_requests = 1;
    assert_eq!(limit(&mut machine), ["1 OverLimit", "Limit"]);
    let q = machine.sync_queue(1);
    machine.dispatch();
    let lines = inside(&mut machine, |bfq| bfq.expire(q, false, Expiration::TooIdle));
    assert_eq!(lines[..3], ["1 Expire", "1 BudgetInputs", "1 Budget"]);
}
