//! The example of a scheduler of one's own: one file and one row run through the simulator beside those of Linux.

#[path = "../examples/turns.rs"]
mod turns;

use turns::iops;

#[test]
fn a_process_that_takes_turns_with_a_flood_is_served_sooner_than_one_that_waits_behind_it() {
    let [fair, in_order] = ["turns", "mq-deadline"].map(|scheduler| iops(scheduler, &[]));
    // It still waits for a tag among those of the flood, and in the device.
    assert!(2 * fair[0] > 3 * in_order[0], "{fair:?} against {in_order:?}");
    assert!(fair[1] > in_order[1] / 2, "the flood goes on: {fair:?} against {in_order:?}");
}

#[test]
fn its_tunable_is_written_as_any_other() {
    let [short, long] = ["1", "128"].map(|quantum| iops("turns", &[("quantum", quantum)]));
    assert!(short[0] > long[0], "{short:?} against {long:?}");
}
