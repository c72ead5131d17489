//! The event queue: ordered by time, ties broken by the order of scheduling. Most events wait in two sorted lanes, near
//! whose ends new ones belong; the rest in a 4-ary heap.

use hoistway_blk::Instant;

/// What happens at a moment, in two words. An `enum` with fields would have to be told apart when it is packed, when it is
/// unpacked and when it is carried out, and each time the processor has to guess; four fields in a row would be passed in
/// memory, written one by one and read as a whole, and the processor would have to wait.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Event {
    /// Kind in the upper half, place in the lower.
    kind_and_place: u64,
    /// Setting in the upper half, what in the lower.
    rest: u64,
}

/// What an event is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// A device has finished a command: disk and tag.
    Complete,
    /// A device model wanted to be called: disk and the model's number.
    Alarm,
    /// A task's wake-up is over.
    Run,
    /// A task in the middle of its turn has put another I/O forward.
    GoOn,
    /// Something on a disk's agenda: disk, its place there and the setting.
    Due,
    /// A CPU that tasks wait for is free.
    Cpu,
    /// A task's own alarm: task and setting.
    Task,
    /// The moment of somebody who submits beside processes has come: who, and which.
    Actor,
    /// Somebody writes to files of all queues: which write.
    Write,
    /// Somebody looks whether what was written to a disk's queue can be done.
    Administer,
    /// A sample of results that are watched for being steady: which.
    Steady,
}

const KINDS: [Kind; 11] = [
    Kind::Complete,
    Kind::Alarm,
    Kind::Run,
    Kind::GoOn,
    Kind::Due,
    Kind::Cpu,
    Kind::Task,
    Kind::Actor,
    Kind::Write,
    Kind::Administer,
    Kind::Steady,
];

impl Event {
    /// An event of this kind. The place is a disk, a task, a CPU, a write or an actor.
    #[inline]
    pub(crate) fn of(kind: Kind, place: u32) -> Event {
        Event { kind_and_place: (kind as u64) << 32 | u64::from(place), rest: 0 }
    }

    /// About this tag, alarm or place on an agenda.
    #[inline]
    pub(crate) fn about(self, what: u32) -> Event {
        Event { rest: self.rest | u64::from(what), ..self }
    }

    /// With the setting that it belongs to: another one may replace it.
    #[inline]
    pub(crate) fn with_setting(self, setting: u32) -> Event {
        Event { rest: self.rest | u64::from(setting) << 32, ..self }
    }

    #[inline]
    pub(crate) fn kind(self) -> Kind {
        KINDS[(self.kind_and_place >> 32) as usize]
    }

    #[inline]
    pub(crate) fn place(self) -> u32 {
        self.kind_and_place as u32
    }

    #[inline]
    pub(crate) fn what(self) -> u32 {
        self.rest as u32
    }

    #[inline]
    pub(crate) fn setting(self) -> u32 {
        (self.rest >> 32) as u32
    }
}

/// An event and its moment.
#[derive(Clone, Copy, Default)]
struct Entry {
    at: u64,
    /// Order of scheduling: makes the order of simultaneous events the same on any machine.
    order: u64,
    event: Event,
}

impl Entry {
    /// Takes its words from registers: a processor cannot read as a whole what was just written word by word.
    #[inline]
    fn set(&mut self, at: u64, order: u64, event: Event) {
        self.at = at;
        self.order = order;
        self.event.kind_and_place = event.kind_and_place;
        self.event.rest = event.rest;
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

    /// Inserts an entry, scheduled last of all, before those that are later. Answers whether these were few enough.
    #[inline]
    fn insert(&mut self, at: u64, order: u64, event: Event) -> bool {
        if self.len == self.ring.len() {
            self.grow();
        }
        let mask = self.ring.len() - 1;
        if self.len > OVERTAKES_MAX && self.ring[(self.head + self.len - 1 - OVERTAKES_MAX) & mask].at > at {
            return false;
        }
        let mut hole = self.head + self.len;
        while hole > self.head {
            let before = self.ring[(hole - 1) & mask];
            if before.at <= at {
                break;
            }
            self.ring[hole & mask] = before;
            hole -= 1;
        }
        self.ring[hole & mask].set(at, order, event);
        self.len += 1;
        true
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
        let is_of_device = event.kind_and_place >> 32 <= Kind::Alarm as u64;
        let (at, order) = (at.0, self.scheduled);
        self.scheduled += 1;
        if !self.lanes[usize::from(is_of_device)].insert(at, order, event) {
            self.push_into_heap(at, order, event);
        }
    }

    #[inline(never)]
    fn push_into_heap(&mut self, at: u64, order: u64, event: Event) {
        let key = Entry { at, order, event }.key();
        let mut hole = self.heap.len();
        self.heap.push(Entry::default());
        while hole > 0 {
            let parent = (hole - 1) / ARITY;
            if self.heap[parent].key() <= key {
                break;
            }
            self.heap[hole] = self.heap[parent];
            hole = parent;
        }
        self.heap[hole].set(at, order, event);
    }

    /// Takes the earliest event.
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<(Instant, Event)> {
        let [host, device] = &mut self.lanes;
        let key = |entry: Option<&Entry>| entry.map_or(u128::MAX, Entry::key);
        let (of_host, of_device) = (key(host.front()), key(device.front()));
        let of_heap = key(self.heap.first());
        if of_heap < of_host.min(of_device) {
            return Some(self.pop_from_heap());
        }
        let lane = if of_host < of_device { host } else { device };
        if lane.len == 0 { None } else { lane.pop_front().map(|entry| (Instant(entry.at), entry.event)) }
    }

    #[inline(never)]
    fn pop_from_heap(&mut self) -> (Instant, Event) {
        let Entry { at, event, .. } = self.heap[0];
        if let Some(last) = self.heap.pop()
            && !self.heap.is_empty()
        {
            self.sift_down(last);
        }
        (Instant(at), event)
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

    #[test]
    fn an_event_is_what_it_was_made_of() {
        for (number, kind) in KINDS.into_iter().enumerate() {
            assert_eq!(kind as usize, number);
            let event = Event::of(kind, 7).about(u32::MAX).with_setting(9);
            assert_eq!((event.kind(), event.place(), event.what(), event.setting()), (kind, 7, u32::MAX, 9));
        }
    }

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
                        let kind = if is_of_device { Kind::Complete } else { Kind::Run };
                        queue.push(Instant(at), Event::of(kind, number));
                        model.push((at, number));
                    }
                    None => {
                        let next = model.iter().enumerate().min_by_key(|(_, entry)| **entry).map(|(index, _)| index);
                        let expected = next.map(|index| model.remove(index));
                        let got = queue.pop().map(|(at, event)| (at.0, event.place()));
                        prop_assert_eq!(got, expected);
                    }
                }
            }
        }
    }
}
