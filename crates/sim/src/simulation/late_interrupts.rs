//! Interrupts that are late, because earlier ones of their CPU took longer than when their turns were reserved.
//!
//! Those of one CPU become due again at the same time. Each of them with an event of its own would be scheduled once for each one before
//! it, so together they have one.

use std::collections::VecDeque;

use hoistway_blk::ground::{CpuId, Instant};

use crate::events::{Event, EventQueue, Kind};

/// A completion whose interrupt is late: disk, tag, and what it has waited for.
pub(super) type LateCompletion = (u32, u32, u32);

/// The late interrupts of all CPUs.
#[derive(Default)]
pub(super) struct LateInterrupts {
    groups: Vec<Group>,
    /// Numbers of unused groups.
    unused: Vec<u32>,
    /// The group that was scheduled or enlarged last.
    latest: u32,
    /// Number of events scheduled until then.
    scheduled: u64,
}

/// Late interrupts of a CPU that are due at the same time, one right after the other.
struct Group {
    at: Instant,
    cpu: CpuId,
    completions: VecDeque<LateCompletion>,
}

impl LateInterrupts {
    /// Schedules an interrupt at this time.
    pub(super) fn add(&mut self, events: &mut EventQueue, at: Instant, cpu: CpuId, completion: LateCompletion) {
        if let Some(number) = self.latest_at(events, at, cpu) {
            self.groups[number as usize].completions.push_back(completion);
            return;
        }
        let number = self.unused.pop().unwrap_or(self.groups.len() as u32);
        if number as usize == self.groups.len() {
            self.groups.push(Group { at, cpu, completions: VecDeque::new() });
        }
        self.groups[number as usize].completions.push_back(completion);
        self.schedule(events, number, at, cpu);
    }

    /// The next interrupt of a group and its CPU. A group without any ends.
    pub(super) fn next(&mut self, number: u32) -> Option<(CpuId, LateCompletion)> {
        let group = &self.groups[number as usize];
        let next = group.completions.front().map(|&completion| (group.cpu, completion));
        if next.is_none() {
            self.unused.push(number);
        }
        next
    }

    /// Removes the next interrupt of a group.
    pub(super) fn take(&mut self, number: u32) {
        self.groups[number as usize].completions.pop_front();
    }

    /// Schedules all interrupts of a group at this time instead.
    pub(super) fn delay(&mut self, events: &mut EventQueue, number: u32, at: Instant) {
        let cpu = self.groups[number as usize].cpu;
        let Some(other) = self.latest_at(events, at, cpu).filter(|&other| other != number) else {
            return self.schedule(events, number, at, cpu);
        };
        let mut completions = std::mem::take(&mut self.groups[number as usize].completions);
        self.groups[other as usize].completions.append(&mut completions);
        self.groups[number as usize].completions = completions;
        self.unused.push(number);
    }

    /// The latest group, if it is this CPU's and due at this time, and no event has been scheduled since, which might come in between.
    fn latest_at(&self, events: &EventQueue, at: Instant, cpu: CpuId) -> Option<u32> {
        let group = self.groups.get(self.latest as usize)?;
        let is_last = events.scheduled() == self.scheduled && !group.completions.is_empty();
        (is_last && group.at == at && group.cpu == cpu).then_some(self.latest)
    }

    fn schedule(&mut self, events: &mut EventQueue, number: u32, at: Instant, cpu: CpuId) {
        let group = &mut self.groups[number as usize];
        (group.at, group.cpu) = (at, cpu);
        events.push(at, Event::new(Kind::LateInterrupts, number));
        (self.latest, self.scheduled) = (number, events.scheduled());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tags of the interrupts of all groups, in the order of their events.
    fn order(late: &mut LateInterrupts, events: &mut EventQueue) -> Vec<u32> {
        let mut tags = Vec::new();
        while let Some((_, event)) = events.pop() {
            while let Some((_, (_, tag, _))) = late.next(event.target()) {
                late.take(event.target());
                tags.push(tag);
            }
        }
        tags
    }

    #[test]
    fn interrupts_of_a_cpu_that_are_due_one_after_the_other_share_an_event() {
        let (mut late, mut events) = (LateInterrupts::default(), EventQueue::default());
        for (tag, at, cpu) in [(1, 10, 0), (2, 10, 0), (3, 10, 5), (4, 20, 0), (5, 20, 0), (6, 10, 0)] {
            late.add(&mut events, Instant(at), CpuId(cpu), (0, tag, 1));
        }
        // The last one comes after that of another CPU, and that of another time was scheduled meanwhile.
        assert_eq!(events.scheduled(), 4);
        assert_eq!(order(&mut late, &mut events), [1, 2, 3, 6, 4, 5]);
    }

    #[test]
    fn a_delayed_group_comes_after_what_is_due_already() {
        let (mut late, mut events) = (LateInterrupts::default(), EventQueue::default());
        late.add(&mut events, Instant(10), CpuId(0), (0, 1, 1));
        late.add(&mut events, Instant(10), CpuId(0), (0, 2, 1));
        late.add(&mut events, Instant(20), CpuId(0), (0, 3, 1));
        let (_, event) = events.pop().expect("a group is due");
        late.take(event.target());
        late.delay(&mut events, event.target(), Instant(20));
        assert_eq!(events.scheduled(), 2, "it joins the other one");
        assert_eq!(order(&mut late, &mut events), [3, 2]);
    }
}
