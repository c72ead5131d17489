//! BL-73, BL-92, BL-93, BL-131: the end of a request.

use super::*;
use crate::caller::block_queue::BlockQueue;
use crate::elevator::Elevator;
use crate::ground::ids::RqId;
use crate::policy::{Choice, Needs, Place, PolicyCx, Scheduler, SchedulerEvent};
use crate::request::Request;
use crate::watch::reason::Reason;
use std::sync::{Arc, Mutex};

/// First in, first out; writes down what it is notified of.
struct Diary {
    queue: VecDeque<RqId>,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Diary {
    fn note(&self, line: String) {
        self.lines.lock().unwrap().push(line);
    }
}

impl Scheduler for Diary {
    fn needs(&self) -> Needs {
        Needs { preparation: true, ..Needs::default() }
    }
    fn prepare(&mut self, _: &mut PolicyCx<'_>, rq: &Request) {
        self.note(format!("prepare {}", rq.sector.0));
    }
    fn insert(&mut self, cx: &mut PolicyCx<'_>, id: RqId, place: Place) {
        self.note(format!("insert {}", cx.rq(id).sector.0));
        match place {
            Place::Sorted => self.queue.push_back(id),
            Place::Head => self.queue.push_front(id),
        }
    }
    fn dispatch(&mut self, cx: &mut PolicyCx<'_>, _: HctxId) -> Choice {
        let rq = self.queue.pop_front();
        rq.iter().for_each(|&id| self.note(format!("dispatch {}", cx.rq(id).sector.0)));
        Choice { rq, reason: Reason::Fifo }
    }
    fn finish(&mut self, _: &mut PolicyCx<'_>, id: RqId) {
        assert!(!self.queue.contains(&id), "a finished request is not queued");
        self.note("finish".into());
    }
    fn has_work(&self) -> bool {
        !self.queue.is_empty()
    }
    fn on_requeued(&mut self, _: &mut PolicyCx<'_>, _: RqId) {
        self.note("requeued".into());
    }
    fn on_dropped(&mut self, _: &mut PolicyCx<'_>, _: RqId) {
        self.note("dropped".into());
    }
    fn on_event(&mut self, _: &mut PolicyCx<'_>, event: SchedulerEvent) {
        self.note(format!("{event:?}"));
    }
}

pub(super) fn diary() -> (Bench, Arc<Mutex<Vec<String>>>) {
    diary_of(config(Kernel::V6_18))
}

fn diary_of(config: QueueConfig) -> (Bench, Arc<Mutex<Vec<String>>>) {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let policy = Diary { queue: VecDeque::new(), lines: Arc::clone(&lines) };
    let elevator = Elevator::custom("diary", Box::new(policy), config.scheduler_depth());
    (Bench::around(Queue::with_elevator(&config, elevator).unwrap()), lines)
}

pub(super) fn take(lines: &Mutex<Vec<String>>) -> String {
    std::mem::take(&mut *lines.lock().unwrap()).join(", ")
}

#[test]
fn bios_end_before_a_tag_waiter_is_woken() {
    let mut bench = Bench::with(&QueueConfig { queue_depth: 4, ..config(Kernel::V6_18) }, "none");
    bench.occupy(4);
    bench.submit_as(1, read(8));
    bench.complete(1_002_000);
    assert_eq!(bench.asked(), ["end 1002000", "wake 1"]);
}

#[test]
fn every_inserted_request_is_finished_exactly_once() {
    let (mut bench, lines) = diary();
    bench.submit(read(100));
    assert_eq!(take(&lines), "prepare 100, insert 100, dispatch 100");
    let rq = bench.take(100);
    bench.call(|queue, cx, _| BlockQueue::requeue(queue, cx, rq));
    bench.work();
    assert_eq!(take(&lines), "requeued, insert 100, dispatch 100");
    bench.complete(100);
    assert_eq!(take(&lines), "finish");
    bench.reply([Reply::End(Status::IoError)]);
    bench.submit(read(200));
    assert_eq!(take(&lines), "prepare 200, insert 200, dispatch 200, finish");
    bench.drain();
}

#[test]
fn a_request_that_is_absorbed_on_its_way_in_is_dropped_and_never_finished() {
    let (mut bench, lines) = diary();
    bench.queue.set_quiesced(true);
    bench.submit(write(100));
    bench.plug();
    bench.submit_all([write(5000), write(108)]);
    bench.unplug();
    // As a bio it had joined the queued request; as a request it does so at insertion.
    bench.submit(Bio { flags: BioFlags::SYNC, ..write(5008) });
    bench.queue.set_quiesced(false);
    bench.run(0);
    bench.drain();
    let lines = take(&lines);
    let count = |what: &str| lines.matches(what).count();
    assert_eq!((count("insert"), count("finish")), (2, 2), "{lines}");
}

#[test]
fn directly_issued_requests_have_no_insertion() {
    let mut bench = Bench::new(Kernel::V6_18, "none");
    bench.submit_all([read(0), read(1000)]);
    assert!(!bench.letters().contains('I'));
}

#[test]
fn every_issue_is_followed_by_one_completion_or_requeue() {
    for scheduler in SCHEDULERS {
        let mut bench = Bench::new(Kernel::V6_18, scheduler);
        bench.reply([Reply::Take, Reply::Refuse(Refusal::Busy), Reply::Take, Reply::End(Status::Medium)]);
        bench.submit_all((0..6).map(|n| read(n * 1000)));
        bench.drain();
        let letters = bench.letters();
        let count = |letter: char| letters.matches(letter).count();
        assert_eq!(count('D'), count('C') + count('R'), "{scheduler}: {letters}");
        assert_eq!((count('Q'), count('G'), count('C')), (6, 6, 6), "{scheduler}: {letters}");
    }
}

#[test]
fn effects_report_ended_bios_until_they_are_taken() {
    for run_sequentially in [false, true] {
        let mut bench = Bench::new(Kernel::V6_18, "none");
        bench.submit(read(8));
        assert!(!bench.caller.effects.has_ended());
        bench.complete(8);
        assert!(bench.caller.effects.has_ended());
        if run_sequentially {
            while bench.caller.effects.pop().is_some() {}
        } else {
            bench.caller.effects.pop_ended(|bio, status| assert_eq!((bio.sector.0, status), (8, Status::Ok)));
        }
        assert!(!bench.caller.effects.has_ended());
    }
}

#[test]
fn an_elevator_makes_room_for_all_requests_of_the_queue_that_it_is_given_to() {
    let config = config(Kernel::V6_18);
    let policy = Diary { queue: VecDeque::new(), lines: Arc::default() };
    let elevator = Elevator::custom("diary", Box::new(policy), 1);
    let mut bench = Bench::around(Queue::with_elevator(&config, elevator).unwrap());
    bench.submit_all((0..40).map(|n| read(n * 1000)));
    bench.drain();
    assert_eq!(bench.ended.len(), 40);
}

#[test]
fn actions_requested_during_insertion_are_performed_at_once() {
    let mut bench = Bench::new(Kernel::V6_18, "bfq");
    let io_context = crate::ground::ids::IoContextId(1);
    bench.submit(Bio { io_context, ..read(0) });
    bench.complete(0);
    assert!(bench.asked().contains(&"set timer".into()), "the process may go on");
    bench.queue.set_quiesced(true);
    bench.submit(Bio { io_context, ..read(8) });
    assert!(bench.asked().contains(&"cancel timer".into()), "and has");
    bench.queue.set_quiesced(false);
    bench.run(0);
    bench.drain();
}

#[test]
fn a_write_followed_by_a_flush_is_finished_once_in_the_scheduler() {
    let limits = Limits { write_cache: true, ..Limits::default() };
    let (mut bench, lines) = diary_of(QueueConfig { limits, ..config(Kernel::V6_18) });
    bench.submit(Bio { flags: BioFlags::FUA, ..write(8) });
    bench.drain();
    assert_eq!(bench.ended, [(8, Status::Ok)]);
    assert_eq!(take(&lines).matches("finish").count(), 1);
}
