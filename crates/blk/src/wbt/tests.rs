//! Each rule of BL-119 to BL-125.

use super::control::{Control, WindowResult};
use super::depths::{Depths, depth};
use super::{Admission, Kind, Throttle};
use crate::bio::{BioFlags, Op};
use crate::ground::ids::Waiter;
use crate::ground::time::{Instant, Nanos};

const TARGET: Nanos = Nanos::from_millis(2);
const NONE: BioFlags = BioFlags::NONE;

fn ms(ms: u64) -> Instant {
    Instant::ZERO + Nanos::from_millis(ms)
}

/// The throttle of a device with 32 tags.
fn throttle() -> Throttle {
    let mut throttle = Throttle::new(32);
    throttle.follow_scheduler(false, false);
    throttle
}

/// How many of these go at once.
fn admitted(throttle: &mut Throttle, now: Instant, kind: Kind, flags: BioFlags) -> u32 {
    (0..100).take_while(|_| throttle.admit(now, kind, flags) == Admission::Counted).count() as u32
}

/// One of a kind ends; returns what is woken.
fn end_counted(throttle: &mut Throttle, now: Instant, kind: Kind, write_cache: bool) -> Vec<u32> {
    let mut woken = Vec::new();
    throttle.end_counted(now, kind, write_cache, |Waiter(number)| woken.push(number));
    woken
}

/// A window in which a read and three writes end.
fn window(throttle: &mut Throttle, now: Instant, latency: Nanos) -> Option<Instant> {
    throttle.read_ended(now, latency);
    (0..3).for_each(|_| throttle.write_ended());
    throttle.window_expired(now, None)
}

#[test]
fn a_scheduler_that_wants_no_throttling_makes_it_forget_its_step() {
    let step_after = |disables: bool| {
        let mut throttle = throttle();
        window(&mut throttle, ms(100), Nanos::from_millis(50));
        assert_eq!(throttle.depths().max, 8);
        throttle.follow_scheduler(disables, false);
        throttle.follow_scheduler(false, false);
        throttle.depths().max
    };
    assert_eq!((step_after(true), step_after(false)), (16, 8));
}

#[test]
fn the_depth_of_each_step_with_32_tags() {
    assert_eq!([0, 1, 2, 3, 4, 5].map(|step| depth(32, step)), [16, 8, 4, 2, 1, 1]);
    assert_eq!(depth(32, -1), 24);
    assert_eq!((depth(32, i32::MAX), depth(32, i32::MIN)), (1, 24));
    assert_eq!([-2, -1, 0, 1].map(|step| depth(1023, step)), [61, 31, 16, 8]);
    assert_eq!([-1, 0, 1, 2].map(|step| depth(8, step)), [6, 8, 4, 2], "no more tags than there are");
    assert_eq!([-1, 0, 1].map(|step| depth(1, step)), [2, 2, 1]);
}

#[test]
fn the_three_limits_of_a_depth() {
    let limits = |queue_depth, step| {
        let Depths { max, normal, background } = Depths::at(queue_depth, step);
        (max, normal, background)
    };
    assert_eq!(limits(32, 0), (16, 8, 4));
    assert_eq!(limits(32, -1), (24, 12, 6));
    assert_eq!(limits(32, 2), (4, 2, 1));
    assert_eq!((limits(32, 3), limits(32, 4)), ((2, 2, 1), (1, 1, 1)));
    assert_eq!(limits(7, 0), (7, 4, 2), "rounded up");
}

#[test]
fn reads_and_direct_writes_are_of_no_kind() {
    let direct = BioFlags::SYNC.with(BioFlags::IDLE);
    for (op, flags, kind) in [
        (Op::Read, NONE, None),
        (Op::Read, BioFlags::RAHEAD, None),
        (Op::Write, direct, None),
        (Op::Write, direct.with(BioFlags::FUA), None),
        (Op::Write, BioFlags::SYNC, Some(Kind::Normal)),
        (Op::Write, BioFlags::IDLE, Some(Kind::Normal)),
        (Op::Write, BioFlags::BACKGROUND, Some(Kind::Normal)),
        (Op::Write, BioFlags::SWAP, Some(Kind::Swap)),
        (Op::Discard, direct, Some(Kind::Discard)),
        (Op::WriteZeroes, NONE, None),
    ] {
        assert_eq!(Kind::of(op, flags), kind, "{op:?} {flags:?}");
    }
}

#[test]
fn the_limit_depends_on_the_kind_of_write() {
    for (flags, limit) in [
        (NONE, 8),
        (BioFlags::BACKGROUND, 4),
        (BioFlags::SYNC, 16),
        (BioFlags::META, 16),
        (BioFlags::PRIO, 16),
        (BioFlags::BACKGROUND.with(BioFlags::SYNC), 16),
    ] {
        assert_eq!(admitted(&mut throttle(), ms(0), Kind::Normal, flags), limit, "{flags:?}");
    }
    assert_eq!(admitted(&mut throttle(), ms(0), Kind::Discard, BioFlags::SYNC), 4);
    assert_eq!(admitted(&mut throttle(), ms(0), Kind::Swap, BioFlags::SWAP), 16);
}

#[test]
fn normal_swap_and_discard_are_counted_apart() {
    let mut throttle = throttle();
    assert_eq!(admitted(&mut throttle, ms(0), Kind::Normal, BioFlags::SYNC), 16);
    assert_eq!(admitted(&mut throttle, ms(0), Kind::Swap, BioFlags::SWAP), 16);
    assert_eq!(admitted(&mut throttle, ms(0), Kind::Discard, NONE), 4);
    assert_eq!(throttle.in_flight(), 36);
}

#[test]
fn a_read_within_100_ms_makes_plain_writes_background() {
    for (later, limit) in [(0, 4), (99, 4), (100, 8)] {
        let (mut issued, mut ended) = (throttle(), throttle());
        issued.read_issued(ms(1000));
        ended.read_ended(ms(1000), TARGET);
        for mut throttle in [issued, ended] {
            assert_eq!(admitted(&mut throttle, ms(1000 + later), Kind::Normal, NONE), limit, "{later} ms");
        }
    }
}

#[test]
fn a_task_held_up_by_dirty_pages_raises_every_limit_for_another_second() {
    let at = |now, is_over| {
        let mut throttle = throttle();
        throttle.set_dirty_throttled(ms(0), true);
        if is_over {
            throttle.set_dirty_throttled(ms(5000), false);
        }
        admitted(&mut throttle, ms(now), Kind::Normal, BioFlags::BACKGROUND)
    };
    assert_eq!([at(4999, false), at(60_000, false), at(5999, true), at(6000, true)], [16, 16, 16, 4]);
}

#[test]
fn throttled_waiters_go_in_arrival_order_and_are_never_overtaken() {
    let mut throttle = throttle();
    admitted(&mut throttle, ms(0), Kind::Normal, BioFlags::BACKGROUND);
    for (waiter, flags) in [(1, BioFlags::BACKGROUND), (2, BioFlags::SYNC), (3, BioFlags::BACKGROUND)] {
        assert_eq!(throttle.admit_or_join(ms(0), Kind::Normal, flags, Waiter(waiter)), Admission::Waits);
    }
    assert_eq!(throttle.admit(ms(0), Kind::Normal, BioFlags::SYNC), Admission::Waits, "below its limit, but behind");
    assert_eq!(throttle.admit(ms(0), Kind::Swap, BioFlags::SWAP), Admission::Counted, "another line");
    assert!(throttle.is_waiting(Kind::Normal, Waiter(2)));
    // 3 are in flight: the first makes it 4, the second may be one of 16, the third is above 4.
    assert_eq!(end_counted(&mut throttle, ms(1), Kind::Normal, false), [1, 2]);
    assert!(!throttle.is_waiting(Kind::Normal, Waiter(2)) && throttle.is_waiting(Kind::Normal, Waiter(3)));
    assert_eq!(throttle.in_flight(), 5 + 1);
}

#[test]
fn sleepers_are_woken_when_half_of_the_background_limit_is_free_below_the_normal_one() {
    let mut throttle = throttle();
    assert_eq!(admitted(&mut throttle, ms(0), Kind::Normal, BioFlags::SYNC), 16);
    for waiter in 0..4 {
        throttle.admit_or_join(ms(0), Kind::Normal, BioFlags::SYNC, Waiter(waiter));
    }
    // Until 6 are in flight: 8 - 6 is half of 4.
    for left in (7..16).rev() {
        assert_eq!(end_counted(&mut throttle, ms(1), Kind::Normal, false), [], "{left} left");
    }
    assert_eq!(end_counted(&mut throttle, ms(1), Kind::Normal, false), [0, 1, 2, 3]);
}

#[test]
fn with_a_write_cache_sleepers_wait_until_nothing_is_in_flight() {
    for (is_held_up, woken_at) in [(false, 0), (true, 6)] {
        let mut throttle = throttle();
        assert_eq!(admitted(&mut throttle, ms(0), Kind::Normal, BioFlags::SYNC), 16);
        throttle.admit_or_join(ms(0), Kind::Normal, BioFlags::SYNC, Waiter(7));
        if is_held_up {
            throttle.set_dirty_throttled(ms(0), true);
        }
        let left = (0..16).rev().find(|_| end_counted(&mut throttle, ms(1), Kind::Normal, true) == [7]);
        assert_eq!(left, Some(woken_at));
    }
}

#[test]
fn discards_are_woken_by_the_background_limit_write_cache_or_not() {
    for write_cache in [false, true] {
        let mut throttle = throttle();
        assert_eq!(admitted(&mut throttle, ms(0), Kind::Discard, NONE), 4);
        throttle.admit_or_join(ms(0), Kind::Discard, NONE, Waiter(7));
        assert_eq!(end_counted(&mut throttle, ms(1), Kind::Discard, write_cache), [], "3 of 4");
        assert_eq!(end_counted(&mut throttle, ms(1), Kind::Discard, write_cache), [7], "2 of 4");
    }
}

#[test]
fn the_window_becomes_shorter_with_each_step() {
    let mut control = Control::default();
    let mut windows = Vec::new();
    for _ in 0..4 {
        windows.push(control.window().0 / 1000);
        control.next_window(WindowResult::Exceeded, 32);
    }
    // 100 ms * 16 / 16, / isqrt(512) = 22, / isqrt(768) = 27, / isqrt(1024) = 32.
    assert_eq!(windows, [100_000, 72_727, 59_259, 50_000]);
    let mut control = Control::default();
    control.next_window(WindowResult::Ok, 32);
    assert_eq!((control.step(), control.window()), (-1, Nanos::from_millis(100)));
}

#[test]
fn the_fastest_read_of_a_window_decides_if_three_writes_ended() {
    let slow = Nanos::from_millis(3);
    let verdict = |reads: &[Nanos], writes: u32| {
        let mut control = Control::default();
        reads.iter().for_each(|&latency| control.read_ended(latency));
        (0..writes).for_each(|_| control.write_ended());
        control.window_result(TARGET, None)
    };
    assert_eq!(verdict(&[slow, slow], 3), WindowResult::Exceeded);
    assert_eq!(verdict(&[slow, TARGET, slow], 3), WindowResult::Ok, "the minimum, and the target itself is in time");
    assert_eq!(verdict(&[slow], 2), WindowResult::Unknown);
    assert_eq!(verdict(&[], 1), WindowResult::OnlyWrites);
    assert_eq!(verdict(&[], 0), WindowResult::Unknown);
}

#[test]
fn a_read_that_does_not_come_back_exceeds_too() {
    let verdict = |age_ms: u64, has_ended: bool| {
        let mut control = Control::default();
        if has_ended {
            control.read_ended(TARGET);
        }
        control.window_result(TARGET, Some(Nanos::from_millis(age_ms)))
    };
    assert_eq!(
        [verdict(2, false), verdict(3, false)],
        [WindowResult::Unknown, WindowResult::Exceeded],
        "longer than the target"
    );
    assert_eq!(
        [verdict(100, true), verdict(101, true)],
        [WindowResult::Unknown, WindowResult::Exceeded],
        "than the window"
    );
}

#[test]
fn exceeded_goes_up_from_0_at_least_ok_and_writes_alone_go_down() {
    let mut control = Control::default();
    let mut steps = Vec::new();
    for verdict in
        [WindowResult::Ok, WindowResult::Ok, WindowResult::Exceeded, WindowResult::Exceeded, WindowResult::Exceeded]
    {
        control.next_window(verdict, 1023);
        steps.push(control.step());
    }
    for verdict in [WindowResult::OnlyWrites, WindowResult::Ok, WindowResult::Ok] {
        control.next_window(verdict, 1023);
        steps.push(control.step());
    }
    assert_eq!(steps, [-1, -2, 0, 1, 2, 1, 0, -1]);
}

#[test]
fn five_unknown_windows_move_the_step_one_towards_0() {
    for (verdict, end) in [(WindowResult::Exceeded, 2), (WindowResult::Ok, -2)] {
        let mut control = Control::default();
        (0..2).for_each(|_| control.next_window(verdict, 1023));
        assert_eq!(control.step(), end);
        (0..4).for_each(|_| control.next_window(WindowResult::Unknown, 1023));
        assert_eq!(control.step(), end);
        control.next_window(WindowResult::Unknown, 1023);
        assert_eq!(control.step(), end - end.signum());
        (0..5).for_each(|_| control.next_window(WindowResult::Unknown, 1023));
        assert_eq!(control.step(), 0);
        (0..5).for_each(|_| control.next_window(WindowResult::Unknown, 1023));
        assert_eq!(control.step(), 0, "and stays there");
    }
}

#[test]
fn known_windows_in_between_restart_the_count_of_unknown_ones() {
    let mut control = Control::default();
    control.next_window(WindowResult::Exceeded, 32);
    (0..4).for_each(|_| control.next_window(WindowResult::Unknown, 32));
    control.next_window(WindowResult::Exceeded, 32);
    (0..4).for_each(|_| control.next_window(WindowResult::Unknown, 32));
    assert_eq!(control.step(), 2);
}

#[test]
fn a_step_that_changes_nothing_is_not_taken() {
    let mut control = Control::default();
    (0..10).for_each(|_| control.next_window(WindowResult::Exceeded, 32));
    assert_eq!(control.step(), 4, "1 is the least");
    (0..10).for_each(|_| control.next_window(WindowResult::OnlyWrites, 32));
    assert_eq!(control.step(), -1, "24 is the most");
}

#[test]
fn the_timer_runs_while_the_step_is_not_0_or_something_is_in_flight() {
    let mut throttle = throttle();
    assert_eq!(throttle.begin_window(ms(0)), None, "nothing is in flight");
    throttle.admit(ms(0), Kind::Normal, NONE);
    assert_eq!((throttle.begin_window(ms(0)), throttle.begin_window(ms(1))), (Some(ms(100)), None), "one at a time");
    let second = window(&mut throttle, ms(100), Nanos::from_millis(3)).unwrap();
    assert_eq!(second, ms(100) + Nanos(100_000_000 * 16 / 22), "the step is 1");
    end_counted(&mut throttle, ms(110), Kind::Normal, false);
    assert!(throttle.is_tracking());
    assert_eq!(throttle.depths(), Depths::at(32, 1));
    assert_eq!(window(&mut throttle, second, TARGET), None, "the step is 0 again");
    assert!(!throttle.is_tracking());
}

#[test]
fn disabling_throttling_releases_waiters_and_counts_only_counted_bios() {
    let mut throttle = throttle();
    admitted(&mut throttle, ms(0), Kind::Discard, NONE);
    throttle.begin_window(ms(0));
    throttle.admit_or_join(ms(0), Kind::Discard, NONE, Waiter(7));
    window(&mut throttle, ms(100), Nanos::from_millis(3));
    let mut woken = Vec::new();
    throttle.set_target(Nanos::ZERO, |waiter| woken.push(waiter));
    assert_eq!((woken, throttle.in_flight()), (vec![Waiter(7)], 5));
    assert_eq!(throttle.admit(ms(1), Kind::Discard, NONE), Admission::Free);
    assert_eq!((throttle.window_expired(ms(200), None), throttle.depths()), (None, Depths::at(32, 0)));
    (0..5).for_each(|_| assert_eq!(end_counted(&mut throttle, ms(200), Kind::Discard, false), []));
    assert!(!throttle.is_tracking());
}

#[test]
fn a_scheduler_may_switch_it_off_unless_the_target_was_written_by_hand() {
    let us = |throttle: &Throttle| throttle.target().0 / 1000;
    let mut throttle = Throttle::new(32);
    assert_eq!(us(&throttle), 0);
    for (disables, rotational, target) in
        [(false, false, 2000), (true, false, 0), (false, false, 2000), (false, true, 75_000), (true, true, 0)]
    {
        throttle.follow_scheduler(disables, rotational);
        assert_eq!(us(&throttle), target);
    }
    throttle.set_target(TARGET, |_| {});
    throttle.follow_scheduler(true, true);
    assert_eq!(us(&throttle), 2000);
}

#[test]
fn waiters_are_woken_only_below_the_normal_limit_and_if_they_have_room() {
    let mut throttle = throttle();
    (1..=2).for_each(|n| {
        window(&mut throttle, ms(100 * n), Nanos::from_millis(50));
    });
    assert_eq!(throttle.depths(), Depths { max: 4, normal: 2, background: 1 });
    assert_eq!(admitted(&mut throttle, ms(300), Kind::Normal, BioFlags::SYNC), 4);
    assert_eq!(throttle.admit_or_join(ms(300), Kind::Normal, BioFlags::SYNC, Waiter(7)), Admission::Waits);
    let woken = [(); 3].map(|()| end_counted(&mut throttle, ms(300), Kind::Normal, false));
    assert_eq!(woken, [vec![], vec![], vec![7]]);
}

#[test]
fn a_window_that_ends_after_it_was_switched_off_teaches_nothing() {
    let mut throttle = throttle();
    throttle.set_target(Nanos::ZERO, |_| {});
    let depths = throttle.depths();
    window(&mut throttle, ms(100), Nanos::from_millis(50));
    assert_eq!(throttle.depths().max, depths.max);
}
