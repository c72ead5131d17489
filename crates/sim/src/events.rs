//! The event queue: a 4-ary heap ordered by time, ties broken by the order of scheduling. Most events come in a few
//! sequences that are in order by themselves; those wait in lanes beside the heap, which cost no sorting.

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
    /// Requeued requests, and flush commands, are put back in by a worker.
    KickRequeue {
        /// Which disk.
        disk: u32,
    },
    /// Bios that a limit kept may go.
    Release {
        /// Which disk.
        disk: u32,
    },
    /// A scheduler's timer, unless another setting has replaced it.
    Timer {
        /// Which disk.
        disk: u32,
        /// The setting that this event belongs to.
        setting: u32,
    },
    /// The scan for requests that the device keeps for too long, unless another setting has replaced it.
    Timeout {
        /// Which disk.
        disk: u32,
        /// The setting that this event belongs to.
        setting: u32,
    },
    /// Somebody writes a file of every queue.
    Write {
        /// Which write of the scenario.
        write: u32,
    },
    /// Somebody looks whether what was written can be done.
    Administer {
        /// Which disk.
        disk: u32,
    },
    /// A task's own alarm, unless another setting has replaced it.
    Task {
        /// Which task.
        task: u32,
        /// The setting that this event belongs to.
        setting: u32,
    },
    /// A task's wake-up is over.
    Run {
        /// Which task.
        task: u32,
    },
    /// A CPU that tasks wait for is free.
    Cpu {
        /// Which CPU.
        cpu: u32,
    },
}

/// An event and its moment. The event is packed into words: written field by field and copied as a whole, it would
/// stall the processor at every copy.
#[derive(Clone, Copy, Default)]
struct Entry {
    at: u64,
    /// Order of scheduling: makes the order of simultaneous events the same on any machine.
    order: u64,
    /// Kind in the upper half, disk or task in the lower.
    kind_and_place: u64,
    /// Setting in the upper half, what else there is in the lower.
    rest: u64,
}

const COMPLETE: u32 = 0;
const ALARM: u32 = 1;
const RUN_HCTX: u32 = 2;
const TIMER: u32 = 3;
const TASK: u32 = 4;
const KICK_REQUEUE: u32 = 5;
const RELEASE: u32 = 6;
const TIMEOUT: u32 = 9;
const WRITE: u32 = 10;
const ADMINISTER: u32 = 11;
const RUN: u32 = 7;
const CPU: u32 = 8;

#[inline]
fn words(upper: u32, lower: u32) -> u64 {
    u64::from(upper) << 32 | u64::from(lower)
}

impl Entry {
    #[inline]
    fn new(at: Instant, order: u64, event: Event) -> Entry {
        let (kind, place, setting, what) = match event {
            Event::Complete { disk, tag } => (COMPLETE, disk, 0, tag),
            Event::Alarm { disk, alarm } => (ALARM, disk, 0, alarm),
            Event::RunHctx { disk, hctx, setting } => (RUN_HCTX, disk, setting, u32::from(hctx)),
            Event::Timer { disk, setting } => (TIMER, disk, setting, 0),
            Event::Write { write } => (WRITE, write, 0, 0),
            Event::Administer { disk } => (ADMINISTER, disk, 0, 0),
            Event::Timeout { disk, setting } => (TIMEOUT, disk, setting, 0),
            Event::KickRequeue { disk } => (KICK_REQUEUE, disk, 0, 0),
            Event::Release { disk } => (RELEASE, disk, 0, 0),
            Event::Task { task, setting } => (TASK, task, setting, 0),
            Event::Run { task } => (RUN, task, 0, 0),
            Event::Cpu { cpu } => (CPU, cpu, 0, 0),
        };
        Entry { at: at.0, order, kind_and_place: words(kind, place), rest: words(setting, what) }
    }

    #[inline]
    fn event(&self) -> (Instant, Event) {
        let (place, setting, what) = (self.kind_and_place as u32, (self.rest >> 32) as u32, self.rest as u32);
        let event = match (self.kind_and_place >> 32) as u32 {
            COMPLETE => Event::Complete { disk: place, tag: what },
            ALARM => Event::Alarm { disk: place, alarm: what },
            RUN_HCTX => Event::RunHctx { disk: place, hctx: what as u16, setting },
            TIMER => Event::Timer { disk: place, setting },
            WRITE => Event::Write { write: place },
            ADMINISTER => Event::Administer { disk: place },
            TIMEOUT => Event::Timeout { disk: place, setting },
            KICK_REQUEUE => Event::KickRequeue { disk: place },
            RELEASE => Event::Release { disk: place },
            RUN => Event::Run { task: place },
            CPU => Event::Cpu { cpu: place },
            _ => Event::Task { task: place, setting },
        };
        (Instant(self.at), event)
    }

    /// Copies word by word: an entry that was just built that way cannot be read as a whole yet, and a processor that tries
    /// waits.
    #[inline]
    fn set(&mut self, entry: &Entry) {
        self.at = entry.at;
        self.order = entry.order;
        self.kind_and_place = entry.kind_and_place;
        self.rest = entry.rest;
    }

    #[inline]
    fn key(&self) -> u128 {
        u128::from(self.at) << 64 | u128::from(self.order)
    }
}

/// Events that come nearly in order wait in lanes, those of devices and those of the host apart: completions are far
/// away, wake-ups are near, and each of them rarely overtakes many of its own kind.
const LANES: usize = 2;

/// An event that would overtake more than this in its lane goes into the heap.
const OVERTAKES_MAX: usize = 8;

/// Entries in order: a ring. `VecDeque` would be the same, but builds an entry beside the ring and copies it in, which
/// stalls the processor, because it cannot yet read as a whole what was just written word by word.
#[derive(Default)]
struct Lane {
    /// Its length is a power of two, or 0.
    ring: Vec<Entry>,
    head: usize,
    len: usize,
}

impl Lane {
    #[inline]
    fn front(&self) -> Option<&Entry> {
        if self.len == 0 { None } else { self.ring.get(self.head) }
    }

    /// Where an entry of this moment, scheduled last of all, belongs; none if that is too far from the end.
    #[inline]
    fn place(&self, at: u64) -> Option<usize> {
        let mask = self.ring.len().wrapping_sub(1);
        let mut place = self.len;
        while place > 0 && self.ring[(self.head + place - 1) & mask].at > at {
            place -= 1;
            if self.len - place > OVERTAKES_MAX {
                return None;
            }
        }
        Some(place)
    }

    #[inline]
    fn insert(&mut self, place: usize, entry: &Entry) {
        if self.len == self.ring.len() {
            self.grow();
        }
        let mask = self.ring.len() - 1;
        let mut hole = self.len;
        while hole > place {
            self.ring[(self.head + hole) & mask] = self.ring[(self.head + hole - 1) & mask];
            hole -= 1;
        }
        self.ring[(self.head + place) & mask].set(entry);
        self.len += 1;
    }

    #[inline]
    fn pop_front(&mut self) -> Option<&Entry> {
        let first = self.head;
        self.head = (first + 1) & (self.ring.len() - 1);
        self.len -= 1;
        self.ring.get(first)
    }

    #[cold]
    fn grow(&mut self) {
        self.ring.rotate_left(self.head);
        self.head = 0;
        self.ring.resize((2 * self.len).max(16), Entry::default());
    }
}

/// Events to come.
#[derive(Default)]
pub(crate) struct EventQueue {
    lanes: [Lane; LANES],
    heap: Vec<Entry>,
    scheduled: u64,
}

/// Children of a node: four keep the heap flat and a node's children in one or two cache lines.
const ARITY: usize = 4;

impl EventQueue {
    /// Schedules an event.
    #[inline]
    pub(crate) fn push(&mut self, at: Instant, event: Event) {
        let is_of_device = matches!(event, Event::Complete { .. } | Event::Alarm { .. });
        let entry = Entry::new(at, self.scheduled, event);
        self.scheduled += 1;
        let lane = &mut self.lanes[usize::from(is_of_device)];
        match lane.place(entry.at) {
            Some(place) => lane.insert(place, &entry),
            None => self.push_into_heap(&entry),
        }
    }

    fn push_into_heap(&mut self, entry: &Entry) {
        let mut hole = self.heap.len();
        self.heap.push(Entry::default());
        while hole > 0 {
            let parent = (hole - 1) / ARITY;
            if self.heap[parent].key() <= entry.key() {
                break;
            }
            self.heap[hole] = self.heap[parent];
            hole = parent;
        }
        self.heap[hole].set(entry);
    }

    /// Takes the earliest event.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(Instant, Event)> {
        let [host, device] = &mut self.lanes;
        let key = |entry: Option<&Entry>| entry.map_or(u128::MAX, Entry::key);
        let (of_host, of_device) = (key(host.front()), key(device.front()));
        let of_heap = key(self.heap.first());
        if of_heap < of_host.min(of_device) {
            return Some(self.pop_from_heap());
        }
        let lane = if of_host < of_device { host } else { device };
        if lane.len == 0 { None } else { lane.pop_front().map(Entry::event) }
    }

    fn pop_from_heap(&mut self) -> (Instant, Event) {
        let first = self.heap[0].event();
        if let Some(last) = self.heap.pop()
            && !self.heap.is_empty()
        {
            self.sift_down(last);
        }
        first
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
            steps in prop::collection::vec(prop::option::of((0u64..20, any::<bool>())), 1..300),
        ) {
            let mut queue = EventQueue::default();
            let mut model: Vec<(u64, u32)> = Vec::new();
            for (number, step) in steps.into_iter().enumerate() {
                let number = number as u32;
                match step {
                    Some((at, is_of_device)) => {
                        queue.push(Instant(at), match is_of_device {
                            true => Event::Complete { disk: 0, tag: number },
                            false => Event::Task { task: number, setting: 0 },
                        });
                        model.push((at, number));
                    }
                    None => {
                        let next = model.iter().enumerate().min_by_key(|(_, entry)| **entry).map(|(index, _)| index);
                        let expected = next.map(|index| model.remove(index));
                        let got = queue.pop().map(|(at, event)| match event {
                            Event::Task { task, .. } => (at.0, task),
                            Event::Complete { tag, .. } => (at.0, tag),
                            other => panic!("{other:?}"),
                        });
                        prop_assert_eq!(got, expected);
                    }
                }
            }
        }
    }
}
