//! `block-layer.md` 19.2 and 32, items 116 to 118: requests that the device keeps for too long.

use super::*;
use crate::driver::Expired;

impl Bench {
    /// The moment of the scan that was asked for last, if any was.
    fn scan_due(&mut self) -> Option<Instant> {
        let mut due = None;
        while let Some(effect) = self.caller.effects.pop() {
            if let Effect::SetTimeout(at) = effect {
                due = Some(at);
            }
        }
        due
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
fn item_116_the_driver_is_told_once_for_each_expiry_and_never_before_the_deadline() {
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
fn item_117_a_driver_that_waits_on_gets_the_whole_timeout_again() {
    let mut bench = Bench::new(Kernel::V6_18, "none");
    bench.submit(read(8));
    bench.scan_until(seconds(99));
    let told: Vec<u64> = bench.driver.expired.iter().map(|(at, _)| at.0 / 1_000_000_000).collect();
    assert_eq!(told, [30, 60, 90]);
}

#[test]
fn item_118_what_has_not_been_issued_never_times_out() {
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
