//! Interrupts that are late, because earlier ones of their CPU took longer than when their turns were reserved.
//!
//! Those of one CPU become due again at the same time. Each of them with an event of its own would be scheduled once for each one before
//! it, so together they have one.

use std::collections::VecDeque;

use hoistway_blk::ground::{CpuId, Instant};

use crate::events::{Event, Kind};

/// A completion whose interrupt is late: disk, tag, and what it has waited for.
pub(super) type LateCompletion = (u32, u32, u32);

/// The late interrupts of all CPUs.
#[derive(Default)]
pub(super) struct LateInterrupts {
    groups: Vec<Group>,
    /// Numbers of unused groups.
    unused: Vec<u32>,
    /// For each CPU the number of its group with the latest time.
    latest: Vec<u32>,
}

/// The late interrupts of a CPU that are due at the same time, in their order.
struct Group {
    at: Instant,
    cpu: CpuId,
    completions: VecDeque<LateCompletion>,
}

impl LateInterrupts {
    /// Adds an interrupt that is due at this time. Returns the event to schedule if it is the first of its group.
    pub(super) fn add(&mut self, at: Instant, cpu: CpuId, completion: LateCompletion) -> Option<Event> {
        if let Some(number) = self.group_at(at, cpu) {
            self.groups[number as usize].completions.push_back(completion);
            return None;
        }
        let number = self.unused.pop().unwrap_or(self.groups.len() as u32);
        if number as usize == self.groups.len() {
            self.groups.push(Group { at, cpu, completions: VecDeque::new() });
        }
        self.groups[number as usize].completions.push_back(completion);
        Some(self.schedule(number, at, cpu))
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

    /// All interrupts of a group become due at this time instead. Returns the event to schedule unless others are due then, too.
    pub(super) fn delay(&mut self, number: u32, at: Instant) -> Option<Event> {
        let cpu = self.groups[number as usize].cpu;
        let Some(other) = self.group_at(at, cpu).filter(|&other| other != number) else {
            return Some(self.schedule(number, at, cpu));
        };
        let mut completions = std::mem::take(&mut self.groups[number as usize].completions);
        self.groups[other as usize].completions.append(&mut completions);
        self.groups[number as usize].completions = completions;
        self.unused.push(number);
        None
    }

    /// The group of a CPU that is due at this time, if it is the CPU's latest.
    fn group_at(&self, at: Instant, cpu: CpuId) -> Option<u32> {
        let &number = self.latest.get(cpu.index())?;
        let group = self.groups.get(number as usize)?;
        (group.at == at && group.cpu == cpu && !group.completions.is_empty()).then_some(number)
    }

    fn schedule(&mut self, number: u32, at: Instant, cpu: CpuId) -> Event {
        if self.latest.len() <= cpu.index() {
            self.latest.resize(cpu.index() + 1, u32::MAX);
        }
        self.latest[cpu.index()] = number;
        let group = &mut self.groups[number as usize];
        (group.at, group.cpu) = (at, cpu);
        Event::new(Kind::LateInterrupts, number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_interrupts_of_a_cpu_that_are_due_together_keep_their_order_behind_one_event() {
        let mut late = LateInterrupts::default();
        let (first, second) = (CpuId(0), CpuId(3));
        let group = late.add(Instant(10), first, (0, 1, 1)).expect("the first has an event").target();
        assert!(late.add(Instant(10), first, (0, 2, 1)).is_none());
        let other = late.add(Instant(10), second, (0, 3, 1)).expect("another CPU has its own").target();
        let later = late.add(Instant(20), first, (0, 4, 1)).expect("another time has its own").target();
        assert!(late.delay(group, Instant(20)).is_none(), "it joins those that are due already");
        let mut order = Vec::new();
        while let Some((cpu, (_, tag, _))) = late.next(later) {
            late.take(later);
            order.push((cpu, tag));
        }
        assert_eq!(order, [(first, 4), (first, 1), (first, 2)]);
        assert!(late.delay(other, Instant(30)).is_some());
        assert_eq!(late.next(other), Some((second, (0, 3, 1))));
    }
}
