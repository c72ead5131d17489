//! BL-27, BL-73, BL-77, BL-80, BL-86 to BL-89: tags, refusals and the driver's calls.

use super::*;

/// Requests at these sectors wait in mq-deadline.
fn waiting(config: &QueueConfig, sectors: &[u64]) -> Bench {
    let mut bench = Bench::with(config, "mq-deadline");
    bench.queue.set_quiesced(true);
    bench.submit_all(sectors.iter().map(|&sector| read(sector)));
    bench.queue.set_quiesced(false);
    bench.forget();
    bench
}

#[test]
fn dequeuing_stops_at_the_first_request_without_a_driver_tag_since_5_15() {
    for (kernel, left_over, waiting_in_scheduler) in [(Kernel::V5_10, 3, false), (Kernel::V6_18, 1, true)] {
        let config = QueueConfig { queue_depth: 2, nr_requests: Some(8), ..config(kernel) };
        let mut bench = waiting(&config, &[100, 200, 300, 400, 500]);
        bench.run(0);
        assert_eq!(bench.issued(), [100, 200], "{kernel}");
        assert_eq!(bench.queue.elevator(|elevator| elevator.has_work(HctxId(0))), waiting_in_scheduler, "{kernel}");
        let mut list = VecDeque::new();
        bench.hctx(0).take_dispatch_list(&NoMeter, &mut list);
        assert_eq!(list.len(), left_over, "{kernel}");
        bench.hctx(0).append_to_dispatch_list(&NoMeter, &mut list, false);
        bench.drain();
    }
}

#[test]
fn resource_is_retried_in_3_ms_and_dev_resource_only_by_a_completion() {
    for (refusal, effects) in [(Refusal::Busy, vec!["run 0 in 3 ms"]), (Refusal::UntilCompletion, vec![])] {
        let mut bench = waiting(&config(Kernel::V6_18), &[100]);
        bench.refuse([Some(refusal), Some(refusal)]);
        bench.run(0);
        assert_eq!(bench.asked(), ["run 0"], "nothing would trigger a run yet, so it is tried once more");
        bench.run(0);
        assert_eq!(bench.asked(), effects, "{refusal:?}");
        assert_eq!(bench.letters(), "D R D R");
        assert_eq!(bench.queue.driver_tags_in_use(), 0, "the tag is given back");
        bench.run(0);
        bench.drain();
    }
}

#[test]
fn a_driver_error_ends_its_request_and_the_list_continues() {
    let mut bench = waiting(&config(Kernel::V6_18), &[100, 200, 300]);
    bench.reply([Reply::Take, Reply::End(Status::IoError)]);
    bench.run(0);
    assert_eq!(bench.letters(), "D D C D");
    bench.drain();
    assert_eq!(bench.ended, [(200, Status::IoError), (100, Status::Ok), (300, Status::Ok)]);
}

#[test]
fn last_is_true_for_the_last_request_of_a_list_only_and_a_short_list_is_committed() {
    let mut bench = waiting(&config(Kernel::V6_18), &[100, 200, 300]);
    bench.refuse([None, Some(Refusal::UntilCompletion)]);
    bench.run(0);
    assert_eq!(bench.calls().iter().map(|call| call.last).collect::<Vec<_>>(), [false, false]);
    assert_eq!(bench.driver.commits, [HctxId(0)]);
    bench.work();
    assert_eq!(bench.calls().last().map(|call| (call.sector, call.last)), Some((300, true)));
    assert_eq!(bench.driver.commits.len(), 1, "a list that ends as announced needs no commit");
    let mut bench = waiting(&config(Kernel::V6_18), &[100]);
    bench.refuse([Some(Refusal::UntilCompletion)]);
    bench.run(0);
    assert!(bench.driver.commits.is_empty(), "nothing was queued");
}

#[test]
fn requests_moved_to_the_dispatch_list_return_their_budget() {
    let mut bench = waiting(&config(Kernel::V6_18), &[100, 200, 300]);
    bench.driver.budget = Some(3);
    bench.refuse([None, Some(Refusal::UntilCompletion)]);
    bench.run(0);
    assert_eq!(bench.driver.budget, Some(2), "one is at the driver");
}

#[test]
fn direct_issue_without_budget_is_a_normal_insertion() {
    let mut bench = Bench::new(Kernel::V6_18, "none");
    bench.driver.budget = Some(0);
    bench.submit(read(8));
    assert_eq!(bench.letters(), "Q G P U1 I", "and no R");
    assert!(bench.issued().is_empty());
    bench.asked();
    bench.driver.budget = Some(1);
    bench.run(0);
    assert_eq!(bench.issued(), [8]);
}

#[test]
fn direct_issue_that_is_refused_leaves_its_request_in_the_dispatch_list_and_runs_the_queue() {
    let mut bench = Bench::new(Kernel::V6_18, "none");
    bench.refuse([Some(Refusal::UntilCompletion), Some(Refusal::UntilCompletion)]);
    bench.submit(read(8));
    assert_eq!(bench.letters(), "Q G P U1 D R D R", "the run that follows tries again");
    assert!(bench.hctx(0).has_dispatch_list() && bench.hctx(0).wants_restart());
    assert_eq!(bench.queue.driver_tags_in_use(), 1, "without a scheduler the tag is the request's life");
    bench.run(0);
    bench.drain();
}

#[test]
fn direct_issue_that_is_refused_gives_its_budget_back() {
    let mut bench = Bench::new(Kernel::V6_18, "none");
    bench.driver.budget = Some(3);
    bench.refuse([Some(Refusal::UntilCompletion), Some(Refusal::UntilCompletion)]);
    bench.submit(read(8));
    assert_eq!(bench.driver.budget, Some(3), "nothing is at the driver");
    bench.run(0);
    assert_eq!(bench.driver.budget, Some(2));
    bench.drain();
}

#[test]
fn dispatch_results_are_reported_with_and_without_driver_budgets() {
    for scheduler in ["mq-deadline", "bfq"] {
        for budget in [None, Some(8)] {
            let mut bench = Bench::new(Kernel::V6_18, scheduler);
            bench.driver.budget = budget;
            bench.plug();
            bench.submit_all([read(100), read(200), read(300)]);
            bench.unplug();
            bench.drain();
            let given: Vec<u64> = bench.probe.answers.iter().copied().flatten().collect();
            assert_eq!(given, [100, 200, 300], "{scheduler} {budget:?}");
        }
    }
}

#[test]
fn direct_issue_that_fails_ends_the_bio() {
    let mut bench = Bench::new(Kernel::V6_18, "none");
    bench.reply([Reply::End(Status::NoSpace)]);
    bench.submit(write(8));
    assert_eq!(bench.letters(), "Q G P U1 D C");
    bench.drain();
    assert_eq!(bench.ended, [(8, Status::NoSpace)]);
}

#[test]
fn a_directly_issued_request_overtakes_those_in_the_software_queues() {
    let mut bench = Bench::new(Kernel::V6_18, "none");
    bench.queue.set_quiesced(true);
    bench.submit(read(100));
    bench.queue.set_quiesced(false);
    bench.submit(read(200));
    bench.run(0);
    assert_eq!(bench.issued(), [200, 100]);
}

#[test]
fn a_request_ended_by_the_driver_at_once_needs_no_doorbell() {
    for scheduler in SCHEDULERS {
        let mut bench = Bench::new(Kernel::V6_18, scheduler);
        bench.plug();
        bench.submit_all([100, 200, 300].map(read));
        bench.reply([Reply::End(Status::Ok); 3]);
        bench.unplug();
        bench.work();
        assert_eq!(bench.ended.len(), 3, "{scheduler}");
        assert!(bench.ended.iter().all(|&(_, status)| status == Status::Ok), "{scheduler}");
        assert!(bench.driver.commits.is_empty(), "{scheduler}");
        bench.drain();
    }
}

/// Refuses the first request, and writes down what is done with it.
#[derive(Default)]
struct Refusing {
    calls: Vec<&'static str>,
    taken: VecDeque<Rq>,
}

impl Driver for Refusing {
    fn get_budget(&mut self, _: HctxId) -> bool {
        self.calls.push("get");
        true
    }

    fn put_budget(&mut self, _: HctxId) {
        self.calls.push("put");
    }

    fn queue_rq(&mut self, _: Now, rq: Rq, _: bool) -> Answer {
        let is_first = !self.calls.contains(&"queue");
        self.calls.push("queue");
        if is_first {
            return Answer::Refused(rq, Refusal::Busy);
        }
        self.taken.push_back(rq);
        Answer::Queued
    }
}

#[test]
fn a_request_that_is_refused_when_it_is_issued_directly_gives_its_budget_back_before_it_is_tried_again() {
    let mut bench = Bench::new(Kernel::V6_18, "none");
    let mut driver = Refusing::default();
    let mut submission = QueueSubmission::new(read(8), Waiter(0));
    let now = Hz(1000).now(bench.now);
    let mut cx: Cx<'_, (Refusing, Letters)> = bench.caller.cx(now, bench.cpu, &mut driver, &mut bench.probe, &NoMeter);
    bench.queue.submit(&mut cx, &mut submission, None);
    bench.queue.run_hctx(&mut cx, HctxId(0));
    assert_eq!(driver.calls, ["get", "queue", "put", "get", "queue"]);
    bench.driver.in_flight = driver.taken;
    bench.drain();
}
