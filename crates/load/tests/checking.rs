//! What was written is read again: when, and what.

use hoistway_blk::bio::Op;
use hoistway_load::{Direction, Pattern, Process, Volume};

const BLOCK: u64 = 4096;

/// The I/Os of a process on four blocks that checks what it wrote after `backlog` writes at the latest.
fn ios(backlog: u64, pattern: Pattern) -> String {
    let pattern = Pattern { verify_backlog: Some(backlog), ..pattern };
    let generator = Process::new("p", 0, pattern).generator(0, 1, |_| 4 * BLOCK).unwrap();
    let named = generator.take(100).map(|io| {
        let op = match io.op {
            Op::Write => 'W',
            Op::Read => 'R',
            Op::Discard => 'T',
            _ => 'F',
        };
        format!("{op}{}", io.offset_bytes / BLOCK)
    });
    named.collect::<Vec<_>>().join(" ")
}

fn volume(volume: Volume) -> Pattern {
    Pattern { volume, ..Pattern::write(4096) }
}

const AT_THE_END: u64 = u64::MAX;

#[test]
fn each_pass_is_read_when_it_is_over() {
    let pass = "W0 W1 W2 W3 R0 R1 R2 R3";
    assert_eq!(ios(AT_THE_END, Pattern::write(4096)), pass);
    let twice = Volume { loops: 2, ..Volume::default() };
    assert_eq!(ios(AT_THE_END, volume(twice)), format!("{pass} {pass}"));
    let few = Volume { number_ios: 3, ..Volume::default() };
    assert_eq!(ios(AT_THE_END, volume(few)), "W0 W1 W2 R0 R1 R2");
    let few_twice = Volume { number_ios: 2, loops: 2, ..Volume::default() };
    assert_eq!(ios(AT_THE_END, volume(few_twice)), "W0 W1 R0 R1 W2 W3 R2 R3");
}

#[test]
fn verify_backlog_reads_after_every_n_writes_and_the_rest_at_the_end() {
    assert_eq!(ios(1, Pattern::write(4096)), "W0 R0 W1 R1 W2 R2 W3 R3");
    assert_eq!(ios(3, Pattern::write(4096)), "W0 W1 W2 R0 R1 R2 W3 R3");
    assert_eq!(ios(4, Pattern::write(4096)), "W0 W1 W2 W3 R0 R1 R2 R3");
}

#[test]
fn only_writes_are_read_again() {
    assert_eq!(ios(AT_THE_END, Pattern { sync_every: [3, 0], ..Pattern::write(4096) }), "W0 W1 W2 F0 W3 R0 R1 R2 R3");
    assert_eq!(ios(AT_THE_END, Pattern::new(Direction::TrimWrite, 4096)), "T0 W0 T1 W1 T2 W2 T3 W3 R0 R1 R2 R3");
}
