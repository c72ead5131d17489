//! When a pause comes, how long it is, and rates beside pauses.

use super::*;

const START: Instant = Instant(100);

fn thinking(change: impl FnOnce(&mut Think)) -> Thinking {
    let mut think = Think { sleep: Nanos(10), spin: Nanos(5), blocks: 0, ..Think::default() };
    change(&mut think);
    Thinking::new(think, START)
}

#[test]
fn a_pause_comes_after_a_number_of_ios_of_the_counted_kind() {
    for (counting, other) in
        [(ThinkBlocks::Completed, ThinkBlocks::Issued), (ThinkBlocks::Issued, ThinkBlocks::Completed)]
    {
        let mut thinking = thinking(|think| (think.blocks, think.counting) = (3, counting));
        thinking.count(counting, 2);
        thinking.count(other, 9);
        assert!(!thinking.is_due(Instant(5000)));
        thinking.count(counting, 1);
        assert!(thinking.is_due(START));
        assert_eq!((thinking.until, thinking.begin(START)), (None, Instant(115)));
        assert_eq!(thinking.until, Some(Instant(115)));
        // They count on.
        thinking.count(counting, 2);
        assert!(!thinking.is_due(Instant(5000)));
        thinking.count(counting, 1);
        thinking.count(ThinkBlocks::Issued, u32::from(counting == ThinkBlocks::Completed));
        assert!(thinking.is_due(Instant(5000)));
    }
}

#[test]
fn the_number_of_all_ios_decides_and_a_pause_that_is_due_stays_due() {
    let mut thinking = thinking(|think| think.blocks = 2);
    // Seven more end while the job waits for them before its pause.
    thinking.count(ThinkBlocks::Issued, 9);
    thinking.count(ThinkBlocks::Completed, 2);
    assert!(thinking.is_due(START));
    thinking.count(ThinkBlocks::Completed, 6);
    assert!(thinking.is_due(START));
    thinking.begin(START);
    // The next I/O is a reason for the next pause before it ends, since their number is a multiple.
    assert!(!thinking.is_due(Instant(115)), "nothing was issued");
    thinking.count(ThinkBlocks::Issued, 1);
    assert!(thinking.is_due(Instant(115)));
    thinking.begin(Instant(115));
    thinking.count(ThinkBlocks::Completed, 1);
    thinking.count(ThinkBlocks::Issued, 1);
    assert!(!thinking.is_due(Instant(200)), "nine");
}

#[test]
fn a_pause_may_come_after_a_time_and_its_length_is_added() {
    let mut thinking = thinking(|think| think.io_time = Nanos(50));
    let due_at = |thinking: &mut Thinking| (0..).map(Instant).find(|&now| thinking.is_due(now));
    assert_eq!(due_at(&mut thinking), Some(Instant(165)));
    thinking.begin(Instant(200));
    thinking.count(ThinkBlocks::Completed, 1000);
    assert_eq!(due_at(&mut thinking), Some(Instant(265)), "I/Os do not count");
}

#[test]
fn the_earlier_of_block_count_and_io_time_triggers_the_pause() {
    let due = |ios, at| {
        let mut thinking = thinking(|think| (think.blocks, think.io_time) = (2, Nanos(50)));
        thinking.count(ThinkBlocks::Issued, ios);
        thinking.count(ThinkBlocks::Completed, ios);
        thinking.is_due(Instant(at))
    };
    assert_eq!([due(0, 164), due(0, 165), due(2, 101)], [false, true, true]);
}

#[test]
fn a_rate_makes_up_for_pauses_unless_they_are_lost_to_it() {
    let made_up_for = thinking(|_| {});
    assert_eq!((made_up_for.spin(), made_up_for.uncompensated_pause()), (Nanos(5), Nanos::ZERO));
    assert_eq!(thinking(|think| think.is_lost_to_rate = true).uncompensated_pause(), Nanos(15));
}
