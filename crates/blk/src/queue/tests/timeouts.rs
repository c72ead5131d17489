//! BL-74, BL-96, BL-97: requests that the device keeps for too long.

use super::*;
use crate::drive::driver::Expired;
use crate::drive::flights::Flights;
use crate::request::RequestPool;

impl Bench {
    /// Has workers deal with what is overdue; returns the moment of the scan that was asked for last, if any was.
    fn scan_due(&mut self) -> Option<Instant> {
        let mut due = None;
        while let Some(effect) = self.caller.effects.pop() {
            match effect {
                Effect::SetTimeout(at) => due = Some(at),
                Effect::TimedOut { cpu, id } => self.on(cpu.0).call(|queue, cx, _| queue.timed_out(cx, id)),
                _ => {}
            }
        }
        due
    }

    /// Scans on CPU 0; returns which requests are overdue, and the CPU that issued each.
    fn overdue(&mut self) -> Vec<(u32, RqId)> {
        self.on(0).call(|queue, cx, _| queue.scan_timeouts(cx));
        let told = std::iter::from_fn(|| self.caller.effects.pop()).filter_map(|effect| match effect {
            Effect::TimedOut { cpu, id } => Some((cpu.0, id)),
            _ => None,
        });
        told.collect()
    }

    /// Scans whenever a scan is due, until a moment or until none is due.
    fn scan_until(&mut self, end: Instant) {
        while let Some(due) = self.scan_due() {
            if due > end {
                return self.caller.effects.push(Effect::SetTimeout(due));
            }
            self.now = due;
            self.call(|queue, cx, _| queue.scan_timeouts(cx));
        }
    }
}

fn seconds(seconds: u64) -> Instant {
    Instant::ZERO + Nanos::from_secs(seconds)
}

#[test]
fn the_driver_is_notified_once_per_expiry_and_never_before_the_deadline() {
    let mut bench = Bench::new(Kernel::V6_18, "mq-deadline");
    bench.driver.keeps_expired = true;
    bench.now = Instant::ZERO + Nanos::from_millis(300);
    bench.submit(read(8));
    bench.scan_until(seconds(30));
    assert_eq!(bench.driver.expired, [], "30.3 s have not passed");
    bench.scan_until(seconds(100));
    let (told, id) = bench.driver.expired[0];
    assert!(told >= seconds(30) && told <= seconds(37), "{told:?}");
    assert_eq!((bench.driver.expired.len(), id), (1, bench.driver.in_flight[0].id()), "it is the driver's now");
}

#[test]
fn a_driver_that_waits_on_gets_the_whole_timeout_again() {
    let mut bench = Bench::new(Kernel::V6_18, "none");
    bench.submit(read(8));
    bench.scan_until(seconds(99));
    let told: Vec<u64> = bench.driver.expired.iter().map(|(at, _)| at.0 / 1_000_000_000).collect();
    assert_eq!(told, [30, 60, 90]);
}

#[test]
fn a_request_that_was_not_issued_never_times_out() {
    let mut bench = Bench::new(Kernel::V6_18, "mq-deadline");
    bench.queue.set_quiesced(true);
    bench.submit(read(8));
    assert_eq!(bench.scan_due(), None);
    bench.now = seconds(300);
    bench.call(|queue, cx, _| queue.scan_timeouts(cx));
    assert_eq!(bench.driver.expired, []);
    assert_eq!(bench.scan_due(), None, "nothing is in flight: no further scan");
}

#[test]
fn the_timer_is_set_once_and_at_most_five_seconds_ahead() {
    let mut bench = Bench::new(Kernel::V6_18, "none");
    bench.submit(read(8));
    assert_eq!(bench.scan_due(), Some(seconds(5)));
    bench.now = seconds(1);
    bench.submit(read(1000));
    assert_eq!(bench.scan_due(), None);
}

#[test]
fn the_timer_is_moved_to_an_earlier_deadline_if_that_gains_half_a_second_and_not_for_less() {
    for (first_ms, is_moved) in [(500, true), (499, false)] {
        let mut bench = Bench::new(Kernel::V6_18, "none");
        let at = |ms| Instant::ZERO + Nanos::from_millis(ms);
        bench.now = at(first_ms);
        bench.submit(read(8));
        assert_eq!(bench.scan_due(), Some(at(first_ms + 5000)));
        bench.now = at(600);
        bench.queue.set_attribute(Now::default(), "io_timeout", "4000", &mut bench.caller.effects).unwrap();
        bench.submit(read(1000));
        assert_eq!(bench.scan_due(), is_moved.then_some(seconds(5)), "the deadline at 4.6 s, rounded up");
    }
}

#[test]
fn io_timeout_is_in_milliseconds_and_refuses_0() {
    let mut bench = Bench::new(Kernel::V6_18, "none");
    let now = Hz(1000).now(Instant::ZERO);
    assert_eq!(bench.queue.attribute("io_timeout").unwrap(), "30000\n");
    assert!(bench.queue.set_attribute(now, "io_timeout", "0", &mut bench.caller.effects).is_err());
    bench.queue.set_attribute(now, "io_timeout", "2000\n", &mut bench.caller.effects).unwrap();
    assert_eq!(bench.queue.io_timeout(), Nanos::from_secs(2));
    bench.submit(read(8));
    assert_eq!(bench.scan_due(), Some(seconds(2)));
}

#[test]
fn a_handled_request_is_the_drivers_to_end() {
    let mut bench = Bench::new(Kernel::V6_18, "none");
    bench.driver.keeps_expired = true;
    bench.submit(read(8));
    bench.scan_until(seconds(60));
    assert_eq!(bench.driver.timed_out(seconds(60), bench.driver.in_flight[0].id()), Expired::Handled);
    let rq = bench.take(8);
    bench.call(|queue, cx, _| queue.complete(cx, rq, Status::Timeout));
    bench.drain();
    assert_eq!(bench.ended, [(8, Status::Timeout)]);
}

#[test]
fn a_timeout_is_dealt_with_by_the_worker_that_issued_the_request_and_by_no_other() {
    let mut bench = Bench::new(Kernel::V6_18, "none");
    bench.on(2).submit(read(8));
    bench.on(3).submit(read(100));
    bench.now = seconds(31);
    let overdue = bench.overdue();
    assert_eq!(overdue.iter().map(|&(cpu, _)| cpu).collect::<Vec<_>>(), [2, 3]);
    let (_, id) = overdue[0];
    for other in [0, 1, 3] {
        bench.on(other).call(|queue, cx, _| queue.timed_out(cx, id));
    }
    assert_eq!(bench.driver.expired, []);
    for _ in 0..2 {
        // Two scans may have found it before its worker came.
        bench.on(2).call(|queue, cx, _| queue.timed_out(cx, id));
    }
    assert_eq!(bench.driver.expired, [(seconds(31), id)]);
    assert_eq!(bench.overdue(), overdue[1..], "the other one still is");
}

#[test]
fn a_request_completed_before_its_timeout_worker_runs_is_not_expired() {
    for is_used_again in [false, true] {
        let mut bench = Bench::new(Kernel::V6_18, "none");
        bench.on(2).submit(read(8));
        bench.now = seconds(31);
        let overdue = bench.overdue();
        let [(2, id)] = overdue[..] else { panic!("{overdue:?}") };
        bench.complete(8);
        if is_used_again {
            bench.on(2).submit(read(100));
            assert_eq!(bench.driver.in_flight[0].id(), id);
        }
        bench.on(2).call(|queue, cx, _| queue.timed_out(cx, id));
        assert_eq!(bench.driver.expired, []);
        bench.drain();
    }
}

#[test]
fn a_request_that_is_refused_or_given_back_is_not_at_the_device() {
    let mut bench = Bench::new(Kernel::V6_18, "mq-deadline");
    bench.refuse([Some(Refusal::UntilCompletion)]);
    bench.submit(read(8));
    bench.submit(read(100));
    bench.work();
    let rq = bench.take(100);
    bench.queue.set_quiesced(true);
    bench.call(|queue, cx, _| queue.requeue(cx, rq));
    bench.now = seconds(31);
    let at_driver = bench.driver.in_flight.len();
    assert_eq!((bench.overdue().len(), at_driver), (at_driver, at_driver));
}

#[test]
fn an_overdue_request_is_reported_and_rechecked_after_a_full_timeout() {
    let (flights, pool) = (Flights::<Local>::new(1, 0), RequestPool::<Local>::new(1));
    let mut rq = pool.take(RqId(0));
    rq.found(read(8), Instant::ZERO);
    rq.issued = Instant::ZERO;
    flights.begin(CpuId(3), &rq, seconds(30));
    let look = |now| {
        let mut told = Vec::new();
        let seen = flights.scan(now, seconds(60), |cpu, id| told.push((cpu, id)));
        (seen.any, seen.next, told)
    };
    assert_eq!(look(seconds(29)), (true, seconds(30), vec![]));
    assert_eq!(look(seconds(30)), (true, seconds(60), vec![(CpuId(3), RqId(0))]));
    flights.end(RqId(0));
    assert_eq!(look(seconds(31)), (false, Instant::NEVER, vec![]));
    pool.put(rq);
}
