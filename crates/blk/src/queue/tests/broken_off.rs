//! Runs that wait for a scheduler's lock in virtual time.

use std::cell::Cell;

use super::*;
use crate::ground::meter::{Held, Meter, Site};

/// Whoever asks gets the lock later, but for so many times.
struct Later(Cell<u32>);

impl Meter for Later {
    fn enter(&self, _: &Held, _: Site) {}

    fn try_enter(&self, _: &Held, _: Site) -> bool {
        true
    }

    fn leave(&self, _: &Held, _: Site) {}

    fn asks_later(&self, _: &Held, hctx: HctxId, alone: bool) -> bool {
        assert_eq!((hctx, alone), (HctxId(0), false));
        let left = self.0.get();
        self.0.set(left.saturating_sub(1));
        left == 0
    }
}

fn run(bench: &mut Bench, cpu: u32, asks: u32) -> usize {
    let later = Later(Cell::new(asks));
    let now = Hz(1000).now(bench.now);
    let mut cx =
        bench.caller.cx::<(Script, Letters, Later)>(now, CpuId(cpu), &mut bench.driver, &mut bench.probe, &later);
    bench.queue.run_hctx(&mut cx, HctxId(0));
    bench.issued().len()
}

#[test]
fn a_run_keeps_what_it_has_drawn_until_its_cpu_goes_on_and_sends_it_then() {
    let mut bench = Bench::with(&QueueConfig { queue_depth: 8, ..config(Kernel::V6_18) }, "mq-deadline");
    bench.queue.set_quiesced(true);
    bench.submit_all((0..5).map(|n| read(n * 100)));
    bench.work();
    bench.queue.set_quiesced(false);
    assert_eq!(run(&mut bench, 0, 2), 0, "two are drawn, and none is sent");
    assert_eq!(run(&mut bench, 1, 0), 0, "another CPU has nothing of it");
    assert_eq!(run(&mut bench, 1, 1), 0, "and draws for itself");
    assert_eq!(run(&mut bench, 0, 9), 4, "it draws the rest, and sends all that is its own");
    assert_eq!(run(&mut bench, 1, 9), 5, "nothing is left to draw, but what was drawn is sent");
    bench.drain();
    assert_eq!(run(&mut bench, 0, 9), 5);
}
