//! How many I/Os may be submitted at each fill of the window.

use super::*;
use crate::{Issue, Pattern};

fn window(issue: Issue) -> IoWindow {
    let mut process = Process::new("p", 0, Pattern::read(4096));
    process.issue = issue;
    IoWindow::new(&process)
}

/// Four I/Os in flight, two at a time.
fn four() -> Issue {
    Issue { batch: 2, complete_max: 4, ..Issue::asynchronous(4) }
}

fn read(offset_bytes: u64, bytes: u32) -> Io {
    Io { op: Op::Read, file: 0, priority: IoPriority::UNSET, bytes, offset_bytes }
}

impl IoWindow {
    fn add_reads(&mut self, count: u32) {
        for _ in 0..count {
            assert!(self.add(IoInFlight::new(&read(0, 4096), Instant(7))).is_some());
        }
    }

    /// How many may be submitted after this many more have ended and been reaped.
    fn room_after(&mut self, count: u32) -> u32 {
        for _ in 0..count {
            let busy = (0..self.slots.len() as u32).find(|index| !self.free.contains(index));
            self.ended(busy.expect("something is in flight"));
            self.reap().expect("it has ended");
        }
        self.room()
    }
}

#[test]
fn the_window_submits_up_to_its_free_depth_and_at_most_a_batch() {
    let mut window = window(four());
    let mut rooms = Vec::new();
    for _ in 0..4 {
        rooms.push(window.room());
        window.add_reads(1);
    }
    rooms.push(window.room());
    assert_eq!(rooms, [2, 2, 2, 1, 0]);
    assert!(window.add(IoInFlight::default()).is_none(), "there is no slot");
    assert_eq!((window.in_flight(), window.room_after(1)), (4, 1), "at once, without a lower mark");
}

#[test]
fn once_full_it_drains_to_its_lower_mark() {
    let mut window = window(Issue { depth_low: Some(1), ..four() });
    window.add_reads(3);
    assert_eq!(window.room_after(1), 2, "it was not full");
    window.add_reads(2);
    assert_eq!([window.room(), window.room_after(1), window.room_after(1), window.room_after(1)], [0, 0, 0, 2]);
    window.add_reads(1);
    assert_eq!(window.room(), 2);
}

#[test]
fn behind_a_fence_nothing_is_submitted_until_all_has_ended() {
    let mut window = window(four());
    window.add_reads(2);
    window.fence();
    assert_eq!([window.room(), window.room_after(1), window.room_after(1)], [0, 0, 2]);
    window.add_reads(1);
    assert_eq!(window.room(), 2, "only once");
}

#[test]
fn a_depth_below_the_ios_in_flight_leaves_no_room() {
    let mut window = window(four());
    window.add_reads(4);
    window.set_depth(2);
    assert_eq!([window.room(), window.room_after(1), window.room_after(1), window.room_after(1)], [0, 0, 0, 1]);
    window.set_depth(4);
    assert_eq!(window.room(), 2);
}

#[test]
fn the_window_reaps_when_enough_ios_have_ended_or_all() {
    for (complete_min, in_flight, first) in [(0, 3, 1), (1, 3, 1), (2, 3, 2), (3, 3, 3), (4, 3, 3), (4, 1, 1)] {
        let mut window = window(Issue { complete_min, ..four() });
        window.add_reads(in_flight);
        let mut ended = 0;
        while !window.can_reap() {
            window.ended(ended);
            ended += 1;
        }
        assert_eq!(ended, first, "{complete_min} of {in_flight}");
    }
    assert!(window(four()).reap().is_none());
}

#[test]
fn ios_are_reaped_in_the_order_of_their_ends() {
    let mut window = window(four());
    window.add_reads(2);
    assert!(!window.can_reap());
    window.ended(1);
    window.ended(0);
    let reaped: Vec<u32> = std::iter::from_fn(|| window.reap()).map(|(index, _)| index).collect();
    assert_eq!((reaped, window.in_flight()), (vec![1, 0], 0));
}

#[test]
fn a_system_call_counts_its_submissions_and_ends_when_they_were_issued() {
    let mut window = window(four());
    assert_eq!((window.call_size(), window.next_in_batch()), (0, None));
    window.add_reads(2);
    assert_eq!(window.call_size(), 2);
    assert_eq!([window.next_in_batch(), window.next_in_batch(), window.next_in_batch()], [Some(0), Some(1), None]);
    assert_eq!(window.call_size(), 2);
    assert_eq!((window.call_ended(Instant(9)), window.call_size()), (2, 0));
    assert_eq!(
        (window.slot(0).created, window.slot(0).issued, window.slot(1).issued),
        (Instant(7), Instant(9), Instant(9))
    );
}

#[test]
fn an_io_overlaps_those_of_its_device_with_which_it_has_bytes_in_common_until_they_have_ended() {
    let mut window = window(four());
    assert!(!window.overlaps(&read(0, 4096)), "nothing is in flight");
    window.add(IoInFlight::new(&read(8192, 4096), Instant::ZERO));
    let overlaps = |offset, bytes| window.overlaps(&read(offset, bytes));
    assert_eq!([overlaps(4096, 4096), overlaps(4096, 4097), overlaps(0, 1 << 20)], [false, true, true]);
    assert_eq!([overlaps(12_287, 1), overlaps(12_288, 1), overlaps(9000, 1)], [true, false, true]);
    assert!(!window.overlaps(&Io { file: 1, ..read(8192, 4096) }), "another device");
    window.forget(0);
    assert!(!window.overlaps(&read(8192, 4096)));
}

#[test]
fn sectors_are_all_those_that_are_touched() {
    let touched = [(0, 4096), (4096, 512), (511, 1), (511, 2), (100, 412), (100, 413), (512, 0)];
    assert_eq!(touched.map(|(offset, bytes)| sectors(offset, bytes)), [8, 1, 1, 2, 1, 2, 0]);
    assert_eq!(IoInFlight::new(&read(511, 514), Instant::ZERO).sectors(), 3);
}

#[test]
fn a_write_followed_by_a_flush_ends_with_the_flush() {
    let mut window = window(Issue::asynchronous(1));
    window.add_reads(1);
    assert_eq!((window.next_in_batch(), window.call_ended(Instant(9))), (Some(0), 1));
    window.ended(0);
    window.commit(0);
    assert!(window.first_ended().is_none() && !window.can_reap() && window.has_batch());
    assert_eq!((window.next_in_batch(), window.call_ended(Instant(11))), (Some(0), 1));
    window.ended(0);
    assert_eq!(window.reap().map(|(index, _)| index), Some(0));
    assert_eq!((window.in_flight(), window.can_reap()), (0, false));
}
