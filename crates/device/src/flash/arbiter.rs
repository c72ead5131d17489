//! Arbitration between submission queues: round robin, or NVMe's weighted round robin with an urgent class.

use std::collections::VecDeque;

use hoistway_blk::request::QueueClass;

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
    /// Commands that are fetched from a queue in one turn.
    burst: u32,
    /// For each class, how many were fetched in the turn of its first queue.
    fetched_in_turn: [u32; CLASSES],
    /// The weights at the start.
    initial_weights: [u32; CLASSES],
    len: usize,
}

#[derive(Clone, Debug, Default)]
struct FetchQueue {
    class: usize,
    /// The class at the start.
    initial_class: usize,
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
        let queue = |number: u16| {
            let class = class_of(u32::from(number));
            FetchQueue { class, initial_class: class, commands: VecDeque::new() }
        };
        let weights = parameters.map_or([1; CLASSES], |p| [1, p.high_weight, p.medium_weight, p.low_weight]);
        Arbiter {
            queues: (0..hw_queues.max(1)).map(queue).collect(),
            turns: Default::default(),
            weights,
            remaining: weights,
            burst: parameters.and_then(|p| p.burst).unwrap_or(1),
            fetched_in_turn: [0; CLASSES],
            initial_weights: weights,
            len: 0,
        }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Sets the classes of the first queues and the weights of high, medium and low, or those of the start. Waiting commands keep their
    /// order within their queues, and a new round begins.
    pub(super) fn arbitrate(&mut self, classes: &[QueueClass], weights: Option<[u16; 3]>) {
        self.weights = match weights {
            Some([high, medium, low]) => [1, u32::from(high), u32::from(medium), u32::from(low)],
            None => self.initial_weights,
        };
        self.remaining = self.weights;
        self.fetched_in_turn = [0; CLASSES];
        for (number, queue) in self.queues.iter_mut().enumerate() {
            let class = weights.and_then(|_| classes.get(number));
            // The urgent class comes before the others.
            queue.class = class.map_or(queue.initial_class, |&class| 1 + class as usize);
        }
        let turns = std::mem::take(&mut self.turns);
        for number in turns.into_iter().flatten() {
            self.turns[self.queues[usize::from(number)].class].push_back(number);
        }
    }

    /// Adds a command that the drive cannot fetch yet. A queue number out of range counts as the last queue.
    #[inline]
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
    #[inline]
    pub(super) fn pop(&mut self) -> Option<Command> {
        let class = self.next_class()?;
        let turns = &mut self.turns[class];
        let number = *turns.front()?;
        let queue = &mut self.queues[usize::from(number)];
        let command = queue.commands.pop_front()?;
        self.fetched_in_turn[class] += 1;
        if queue.commands.is_empty() || self.fetched_in_turn[class] >= self.burst {
            self.fetched_in_turn[class] = 0;
            turns.pop_front();
            if !queue.commands.is_empty() {
                turns.push_back(number);
            }
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

    fn arbiter_with(parameters: Option<&ArbitrationParameters>, submitted: &[u16]) -> Arbiter {
        let mut arbiter = Arbiter::new(4, parameters);
        for &queue in submitted {
            arbiter.push(Command { tag: 0, queue, op: Op::Read, sector: Sector(0), sectors: 8, fua: false });
        }
        arbiter
    }

    fn fetch_order(parameters: Option<&ArbitrationParameters>, submitted: &[u16]) -> Vec<u16> {
        let mut arbiter = arbiter_with(parameters, submitted);
        std::iter::from_fn(|| arbiter.pop()).map(|command| command.queue).collect()
    }

    /// All queues have the same class until the host assigns others.
    const ALL_MEDIUM: ArbitrationParameters = ArbitrationParameters {
        urgent_queues: 0,
        high_queues: 0,
        medium_queues: 4,
        high_weight: 1,
        medium_weight: 1,
        low_weight: 1,
        burst: None,
        weight_max: None,
    };

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
            ..ALL_MEDIUM
        };
        let submitted = [3, 3, 3, 2, 2, 2, 1, 1, 1, 1, 0, 0];
        assert_eq!(fetch_order(Some(&parameters), &submitted), [0, 0, 1, 1, 1, 2, 2, 3, 1, 2, 3, 3]);
    }

    #[test]
    fn weights_of_the_drive_change_between_two_commands() {
        let mut arbiter = arbiter_with(Some(&ALL_MEDIUM), &[0, 1, 2].repeat(12));
        let fetch = |arbiter: &mut Arbiter, count: usize| -> Vec<u16> {
            std::iter::from_fn(|| arbiter.pop()).take(count).map(|command| command.queue).collect()
        };
        assert_eq!(fetch(&mut arbiter, 4), [0, 1, 2, 0], "they take turns");
        arbiter.arbitrate(&QueueClass::ALL, Some([3, 2, 1]));
        assert_eq!(fetch(&mut arbiter, 7), [0, 0, 0, 1, 1, 2, 0]);
        arbiter.arbitrate(&QueueClass::ALL, Some([1, 1, 2]));
        assert_eq!(fetch(&mut arbiter, 5), [0, 1, 2, 2, 0], "from the next command on");
        arbiter.arbitrate(&[], None);
        assert_eq!(
            fetch(&mut arbiter, 3).into_iter().collect::<std::collections::BTreeSet<_>>().len(),
            3,
            "turns again"
        );
        assert_eq!(std::iter::from_fn(|| arbiter.pop()).count(), 36 - 19, "none is lost");
    }

    #[test]
    fn a_queue_sends_a_burst_in_its_turn() {
        let parameters = ArbitrationParameters { burst: Some(2), medium_weight: 4, ..ALL_MEDIUM };
        assert_eq!(fetch_order(Some(&parameters), &[0, 0, 0, 1, 1, 1, 2]), [0, 0, 1, 1, 2, 0, 1]);
    }
}
