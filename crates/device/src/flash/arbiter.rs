//! Arbitration between submission queues: round robin, or NVMe's weighted round robin with an urgent class.

use std::collections::VecDeque;

use super::parameters::ArbitrationParameters;
use crate::model::Command;

/// Priority classes: urgent, high, medium, low.
const CLASSES: usize = 4;

#[derive(Clone, Debug)]
pub(super) struct Arbiter {
    queues: Vec<FetchQueue>,
    /// For each class its non-empty queues, in the order of their turns.
    turns: [VecDeque<u16>; CLASSES],
    /// Commands of each class per round; the urgent class has no limit.
    weights: [u32; CLASSES],
    /// Commands that each class may still send in this round.
    remaining: [u32; CLASSES],
    len: usize,
}

#[derive(Clone, Debug, Default)]
struct FetchQueue {
    class: usize,
    commands: VecDeque<Command>,
}

impl Arbiter {
    pub(super) fn new(hw_queues: u16, parameters: Option<&ArbitrationParameters>) -> Arbiter {
        let class_of = |queue: u32| {
            let Some(p) = parameters else { return CLASSES - 1 };
            let ends = [p.urgent_queues, p.urgent_queues + p.high_queues];
            let ends = [ends[0], ends[1], ends[1] + p.medium_queues];
            ends.iter().position(|&end| queue < end).unwrap_or(CLASSES - 1)
        };
        let weights = parameters.map_or([1; CLASSES], |p| [1, p.high_weight, p.medium_weight, p.low_weight]);
        Arbiter {
            queues: (0..hw_queues.max(1))
                .map(|queue| FetchQueue { class: class_of(u32::from(queue)), commands: VecDeque::new() })
                .collect(),
            turns: Default::default(),
            weights,
            remaining: weights,
            len: 0,
        }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds a command that the drive cannot fetch yet. A queue number out of range counts as the last queue.
    pub(super) fn push(&mut self, command: Command) {
        let number = usize::from(command.queue).min(self.queues.len() - 1);
        let queue = &mut self.queues[number];
        if queue.commands.is_empty() {
            self.turns[queue.class].push_back(number as u16);
        }
        queue.commands.push_back(command);
        self.len += 1;
    }

    /// The next command to fetch.
    pub(super) fn pop(&mut self) -> Option<Command> {
        let class = self.next_class()?;
        let number = self.turns[class].pop_front()?;
        let queue = &mut self.queues[usize::from(number)];
        let command = queue.commands.pop_front()?;
        if !queue.commands.is_empty() {
            self.turns[class].push_back(number);
        }
        self.len -= 1;
        Some(command)
    }

    /// The urgent class if it has commands; otherwise the first class with some of its weight left.
    fn next_class(&mut self) -> Option<usize> {
        if !self.turns[0].is_empty() {
            return Some(0);
        }
        let ready = |turns: &[VecDeque<u16>; CLASSES], remaining: &[u32; CLASSES]| {
            (1..CLASSES).find(|&class| remaining[class] > 0 && !turns[class].is_empty())
        };
        let class = ready(&self.turns, &self.remaining).or_else(|| {
            self.remaining = self.weights;
            ready(&self.turns, &self.remaining)
        })?;
        self.remaining[class] -= 1;
        Some(class)
    }
}

#[cfg(test)]
mod tests {
    use hoistway_blk::bio::Op;
    use hoistway_blk::ground::Sector;

    use super::*;

    fn fetch_order(parameters: Option<&ArbitrationParameters>, submitted: &[u16]) -> Vec<u16> {
        let mut arbiter = Arbiter::new(4, parameters);
        for &queue in submitted {
            arbiter.push(Command { tag: 0, queue, op: Op::Read, sector: Sector(0), sectors: 8, fua: false });
        }
        std::iter::from_fn(|| arbiter.pop()).map(|command| command.queue).collect()
    }

    #[test]
    fn queues_take_turns() {
        assert_eq!(fetch_order(None, &[0, 0, 0, 2, 2, 1]), [0, 2, 1, 0, 2, 0]);
    }

    #[test]
    fn urgent_goes_first_and_the_others_by_their_weights() {
        let parameters = ArbitrationParameters {
            urgent_queues: 1,
            high_queues: 1,
            medium_queues: 1,
            high_weight: 3,
            medium_weight: 2,
            low_weight: 1,
        };
        let submitted = [3, 3, 3, 2, 2, 2, 1, 1, 1, 1, 0, 0];
        assert_eq!(fetch_order(Some(&parameters), &submitted), [0, 0, 1, 1, 1, 2, 2, 3, 1, 2, 3, 3]);
    }
}
