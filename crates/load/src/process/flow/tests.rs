//! How far a process may be ahead of its share, and when it is released.

use crate::{Flow, Pattern};

use super::*;

/// Processes in these balances with these weights.
fn flows<const N: usize>(parts: [Option<(u32, u32)>; N]) -> Flows {
    let process = |part: Option<(u32, u32)>| {
        let mut process = Process::new("p", 0, Pattern::read(4096));
        process.pace.flow = part.map(|(id, weight)| Flow { id, weight, ..Flow::default() });
        process
    };
    Flows::new(&parts.map(process))
}

/// I/Os that this process issues while no other does, 9 at most.
fn alone(flows: &mut Flows, process: u32) -> usize {
    let mut ios = 0;
    while ios < 9 && flows.allows_next_io(process) {
        flows.issued(process);
        ios += 1;
    }
    ios
}

fn released(flows: &mut Flows) -> Vec<u32> {
    std::iter::from_fn(|| flows.pop_released()).collect()
}

#[test]
fn no_process_is_more_than_an_io_ahead_of_its_share_of_the_flow() {
    let mut flows = flows([Some((7, 3)), Some((7, 1)), Some((8, 1)), None]);
    // Four is one more than three quarters of four; two is less than one more than a quarter of six.
    assert_eq!([0, 1].map(|process| alone(&mut flows, process)), [4, 2]);
    assert_eq!([2, 3].map(|process| alone(&mut flows, process)), [9, 9], "alone in a balance, and in none");
    let mut counts = [4, 2];
    for _ in 0..1000 {
        for process in [1, 0] {
            if flows.allows_next_io(process) {
                flows.issued(process);
                counts[process as usize] += 1;
            }
        }
    }
    let share = f64::from(counts[1]) / f64::from(counts[0] + counts[1]);
    assert!((share - 0.25).abs() < 0.01, "{counts:?}");
}

#[test]
fn a_held_process_is_released_once_when_others_have_caught_up() {
    let mut flows = flows([Some((7, 3)), Some((7, 1)), Some((8, 1))]);
    alone(&mut flows, 0);
    flows.hold(0);
    flows.hold(0);
    flows.issued(2);
    assert!(!flows.has_released() && released(&mut flows).is_empty(), "another balance");
    flows.issued(1);
    assert!(flows.has_released());
    assert_eq!(released(&mut flows), [0]);
    flows.issued(1);
    assert!(released(&mut flows).is_empty());
}

#[test]
fn an_ended_process_no_longer_counts_in_its_flow() {
    let mut flows = flows([Some((7, 3)), Some((7, 1)), Some((7, 4)), None]);
    assert_eq!(alone(&mut flows, 0), 1);
    (0..3).for_each(|process| flows.hold(process));
    // A process that has ended is not notified.
    flows.leave(1);
    assert_eq!(released(&mut flows), [2]);
    flows.leave(2);
    assert_eq!(released(&mut flows), [0]);
    assert_eq!(alone(&mut flows, 0), 9, "it is alone");
    assert!(flows.allows_next_io(1));
    // Processes without a balance, or that have left it, are unaffected.
    for process in [1, 3] {
        flows.hold(process);
        flows.issued(process);
        flows.leave(process);
    }
    assert!(!flows.has_released());
}
