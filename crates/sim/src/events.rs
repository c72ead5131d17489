//! The event queue: a 4-ary heap ordered by time, ties broken by the order of scheduling. Events of one constant delay
//! come in order by themselves and have a lane of their own beside the heap.

use std::collections::VecDeque;

use hoistway_blk::Instant;

/// What happens at a moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    /// A device has finished a command.
    Complete {
        /// Which disk.
        disk: u32,
        /// The command.
        tag: u32,
    },
    /// A device model wanted to be called.
    Alarm {
        /// Which disk.
        disk: u32,
        /// The model's number.
        alarm: u32,
    },
    /// A delayed run of a hardware queue, unless another setting has replaced it.
    RunHctx {
        /// Which disk.
        disk: u32,
        /// Which hardware queue.
        hctx: u16,
        /// The setting that this event belongs to.
        setting: u32,
    },
    /// A scheduler's timer, unless another setting has replaced it.
    Timer {
        /// Which disk.
        disk: u32,
        /// The setting that this event belongs to.
        setting: u32,
    },
    /// A task's own alarm, unless another setting has replaced it.
    Task {
        /// Which task.
        task: u32,
        /// The setting that this event belongs to.
        setting: u32,
    },
}

#[derive(Clone, Copy)]
struct Entry {
    at: u64,
    /// Order of scheduling: makes the order of simultaneous events the same on any machine.
    order: u64,
    event: Event,
}

impl Entry {
    #[inline]
    fn key(&self) -> u128 {
        u128::from(self.at) << 64 | u128::from(self.order)
    }
}

/// Events to come.
#[derive(Default)]
pub(crate) struct EventQueue {
    heap: Vec<Entry>,
    lane: VecDeque<Entry>,
    scheduled: u64,
}

/// Children of a node: four keep the heap flat and a node's children in one or two cache lines.
const ARITY: usize = 4;

impl EventQueue {
    /// Schedules an event.
    #[inline]
    pub(crate) fn push(&mut self, at: Instant, event: Event) {
        let entry = Entry { at: at.0, order: self.scheduled, event };
        self.scheduled += 1;
        let mut hole = self.heap.len();
        self.heap.push(entry);
        while hole > 0 {
            let parent = (hole - 1) / ARITY;
            if self.heap[parent].key() <= entry.key() {
                break;
            }
            self.heap[hole] = self.heap[parent];
            hole = parent;
        }
        self.heap[hole] = entry;
    }

    /// Schedules an event that is not earlier than the last one that was scheduled this way.
    #[inline]
    pub(crate) fn push_in_order(&mut self, at: Instant, event: Event) {
        debug_assert!(self.lane.back().is_none_or(|last| last.at <= at.0));
        self.lane.push_back(Entry { at: at.0, order: self.scheduled, event });
        self.scheduled += 1;
    }

    /// Takes the earliest event.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(Instant, Event)> {
        if let Some(next) = self.lane.front()
            && self.heap.first().is_none_or(|first| next.key() < first.key())
        {
            let next = self.lane.pop_front()?;
            return Some((Instant(next.at), next.event));
        }
        let first = *self.heap.first()?;
        let last = self.heap.pop()?;
        if !self.heap.is_empty() {
            self.sift_down(last);
        }
        Some((Instant(first.at), first.event))
    }

    /// Puts `entry` into the hole at the root.
    #[inline]
    fn sift_down(&mut self, entry: Entry) {
        let len = self.heap.len();
        let mut hole = 0;
        loop {
            let first = hole * ARITY + 1;
            if first >= len {
                break;
            }
            let mut least = first;
            for child in first + 1..(first + ARITY).min(len) {
                if self.heap[child].key() < self.heap[least].key() {
                    least = child;
                }
            }
            if entry.key() <= self.heap[least].key() {
                break;
            }
            self.heap[hole] = self.heap[least];
            hole = least;
        }
        self.heap[hole] = entry;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn events_come_in_the_order_of_time_and_then_of_scheduling(
            steps in prop::collection::vec(prop::option::of((0u64..20, prop::bool::ANY)), 1..300),
        ) {
            let mut queue = EventQueue::default();
            let mut model: Vec<(u64, u32)> = Vec::new();
            let mut in_order = 0;
            for (number, step) in steps.into_iter().enumerate() {
                let number = number as u32;
                match step {
                    Some((at, false)) => {
                        queue.push(Instant(at), Event::Task { task: number, setting: 0 });
                        model.push((at, number));
                    }
                    Some((step, true)) => {
                        in_order += step / 8;
                        queue.push_in_order(Instant(in_order), Event::Task { task: number, setting: 0 });
                        model.push((in_order, number));
                    }
                    None => {
                        let next = model.iter().enumerate().min_by_key(|(_, entry)| **entry).map(|(index, _)| index);
                        let expected = next.map(|index| model.remove(index));
                        let got = queue.pop().map(|(at, event)| match event {
                            Event::Task { task, .. } => (at.0, task),
                            other => panic!("{other:?}"),
                        });
                        prop_assert_eq!(got, expected);
                    }
                }
            }
        }
    }
}
