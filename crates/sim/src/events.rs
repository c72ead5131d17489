//! The event queue: ordered by time, ties broken by the order of scheduling. A timing wheel holds near events, a 4-ary heap distant
//! ones.
//!
//! Used by: `simulation`, `workers`, `cpu`.
//! Tests: below.

use hoistway_blk::ground::Instant;

/// An event in two words. An `enum` with fields would need an unpredictable branch each time it is packed, unpacked and carried out;
/// a struct of four fields would be passed in memory, where a wide read after narrow writes stalls the processor.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Event {
    /// Upper half: kind. Lower half: target.
    kind_and_target: u64,
    /// Upper half: setting. Lower half: the tag, alarm or place on an agenda.
    rest: u64,
}

/// The kind of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// A device has completed a command: disk and tag.
    Complete,
    /// An alarm of a device model: disk and the model's number.
    Alarm,
    /// A task's wake-up is over.
    Run,
    /// A task in the middle of its turn submits another I/O.
    NextIoOfTurn,
    /// An entry of a disk's agenda: disk, place on the agenda and setting.
    Due,
    /// A CPU switches to its chosen task: CPU and setting.
    Cpu,
    /// A task's timer: task and setting.
    Task,
    /// A submitter other than a process runs: its kind and number.
    Actor,
    /// A file of all queues is written: index of the write.
    Write,
    /// The pending writes of a disk's queue are tried again: disk.
    Administer,
    /// A sample for a steady-state check: number of the check.
    Steady,
    /// A CPU continues a run of a hardware queue, or with work that others left to it: disk and CPU.
    Round,
    /// Interrupts that are late: number of their group.
    LateInterrupts,
}

impl Kind {
    /// The kind with this number.
    #[inline]
    fn numbered(number: u64) -> Kind {
        match number {
            0 => Kind::Complete,
            1 => Kind::Alarm,
            2 => Kind::Run,
            3 => Kind::NextIoOfTurn,
            4 => Kind::Due,
            5 => Kind::Cpu,
            6 => Kind::Task,
            7 => Kind::Actor,
            8 => Kind::Write,
            9 => Kind::Administer,
            10 => Kind::Steady,
            11 => Kind::Round,
            _ => Kind::LateInterrupts,
        }
    }
}

impl Event {
    /// An event of this kind. The target is a disk, a task, a CPU, a write or an actor.
    #[inline]
    pub(crate) fn new(kind: Kind, target: u32) -> Event {
        Event { kind_and_target: (kind as u64) << 32 | u64::from(target), rest: 0 }
    }

    /// Sets the tag, alarm or place on an agenda.
    #[inline]
    pub(crate) fn with_detail(self, detail: u32) -> Event {
        Event { rest: self.rest | u64::from(detail), ..self }
    }

    /// Sets the setting number: a newer setting invalidates the event.
    #[inline]
    pub(crate) fn with_setting(self, setting: u32) -> Event {
        Event { rest: self.rest | u64::from(setting) << 32, ..self }
    }

    #[inline]
    pub(crate) fn kind(self) -> Kind {
        Kind::numbered(self.kind_and_target >> 32)
    }

    #[inline]
    pub(crate) fn target(self) -> u32 {
        self.kind_and_target as u32
    }

    #[inline]
    pub(crate) fn detail(self) -> u32 {
        self.rest as u32
    }

    #[inline]
    pub(crate) fn setting(self) -> u32 {
        (self.rest >> 32) as u32
    }
}

/// A span is 2^10 ns long: under load, each has about one event.
const SPAN_BITS: u32 = 10;

/// Spans of the wheel, from the current one on: 4.2 ms, enough for nearly all events of hosts and flash devices and for the 3 ms
/// after which hardware queues are run again.
const SPANS: usize = 4096;

const WORDS: usize = SPANS / 64;

/// Marks the absence of a node.
const NONE: u32 = u32::MAX;

/// A span later than any event.
const NEVER: u64 = u64::MAX >> SPAN_BITS;

/// An event of the wheel, its time, and the next node of the same span.
#[derive(Clone, Copy, Default)]
struct Node {
    at: u64,
    event: Event,
    next: u32,
}

impl Node {
    /// Writes whole words: a wide read after narrow writes would stall.
    #[inline]
    fn set(&mut self, at: u64, event: Event) {
        self.at = at;
        self.event.kind_and_target = event.kind_and_target;
        self.event.rest = event.rest;
        self.next = NONE;
    }
}

/// The events of a span in order: the first and the last node.
#[derive(Clone, Copy)]
struct List {
    first: u32,
    last: u32,
}

impl List {
    const EMPTY: List = List { first: NONE, last: NONE };
}

/// Pending events: a list for each span of the wheel, and a heap for later ones. Within a span, events from the heap were scheduled
/// before those that went directly to the wheel.
pub(crate) struct EventQueue {
    /// Number of the current span since time 0.
    span: u64,
    /// The events of each span of the wheel, by its number modulo [`SPANS`].
    lists: Box<[List; SPANS]>,
    /// A bit for each span that has events, and one for each word that has bits.
    occupied: [u64; WORDS],
    words: u64,
    slab: Vec<Node>,
    /// The first free node.
    free: u32,
    far: Heap,
    /// Number of events scheduled so far.
    scheduled: u64,
}

impl Default for EventQueue {
    fn default() -> Self {
        EventQueue {
            span: 0,
            lists: Box::new([List::EMPTY; SPANS]),
            occupied: [0; WORDS],
            words: 0,
            slab: Vec::new(),
            free: NONE,
            far: Heap::default(),
            scheduled: 0,
        }
    }
}

impl EventQueue {
    /// Number of events scheduled so far: without a new one, nothing can come between the last one and another at its time.
    pub(crate) fn scheduled(&self) -> u64 {
        self.scheduled
    }

    /// Schedules an event. Rare cases are tail calls, so no registers have to be saved for them.
    #[inline(never)]
    pub(crate) fn push(&mut self, at: Instant, event: Event) {
        let at = at.0;
        self.scheduled += 1;
        let span = (at >> SPAN_BITS).max(self.span);
        if span - self.span >= SPANS as u64 {
            return self.far.push(at, event);
        }
        let slot = span as usize % SPANS;
        let number = self.free;
        let Some(node) = self.slab.get_mut(number as usize) else { return self.grow(slot, at, event) };
        self.free = node.next;
        node.set(at, event);
        self.put(slot, number, at);
    }

    #[cold]
    fn grow(&mut self, slot: usize, at: u64, event: Event) {
        let number = self.slab.len() as u32;
        self.slab.push(Node { at, event, next: NONE });
        self.put(slot, number, at);
    }

    /// Inserts a node after all nodes of its span that are not later.
    #[inline(always)]
    fn put(&mut self, slot: usize, number: u32, at: u64) {
        let List { first, last } = self.lists[slot];
        let Some(newest) = self.slab.get_mut(last as usize) else {
            self.lists[slot] = List { first: number, last: number };
            self.occupied[slot / 64] |= 1 << (slot % 64);
            self.words |= 1 << (slot / 64);
            return;
        };
        if newest.at <= at {
            newest.next = number;
            self.lists[slot].last = number;
        } else if self.slab[first as usize].at > at {
            self.slab[number as usize].next = first;
            self.lists[slot].first = number;
        } else {
            self.insert_in_span(first, number);
        }
    }

    /// Inserts a node between the first and the last of a span.
    #[inline(never)]
    fn insert_in_span(&mut self, first: u32, number: u32) {
        let (mut before, at) = (first, self.slab[number as usize].at);
        loop {
            let next = self.slab[before as usize].next;
            if self.slab[next as usize].at > at {
                break;
            }
            before = next;
        }
        self.slab[number as usize].next = std::mem::replace(&mut self.slab[before as usize].next, number);
    }

    /// Takes the earliest event.
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<(Instant, Event)> {
        let mut slot = self.span as usize % SPANS;
        if self.lists[slot].first == NONE {
            slot = self.advance_to_next_span()?;
        }
        let number = self.lists[slot].first;
        let node = &mut self.slab[number as usize];
        let (at, event, next) = (node.at, node.event, node.next);
        node.next = std::mem::replace(&mut self.free, number);
        self.lists[slot].first = next;
        if next == NONE {
            self.lists[slot].last = NONE;
            self.occupied[slot / 64] &= !(1 << (slot % 64));
            if self.occupied[slot / 64] == 0 {
                self.words &= !(1 << (slot / 64));
            }
        }
        Some((Instant(at), event))
    }

    /// Advances to the next span with events. Returns the index of its list.
    #[inline(always)]
    fn advance_to_next_span(&mut self) -> Option<usize> {
        let (near, far) = (self.next_in_wheel(), self.far.span);
        if near >= far {
            return self.refill_from_heap();
        }
        self.span = near;
        Some(near as usize % SPANS)
    }

    /// The number of the next span with events in the wheel; `NEVER` if there is none.
    #[inline]
    fn next_in_wheel(&self) -> u64 {
        let current = self.span as usize % SPANS;
        let (word, bit) = (current / 64, current % 64);
        let candidates = self.occupied[word] & (u64::MAX << bit);
        let slot = if candidates != 0 {
            word * 64 + candidates.trailing_zeros() as usize
        } else {
            // First the words after that of the current span, then from the beginning.
            let later_words = self.words & (u64::MAX << 1 << word);
            let words = if later_words != 0 { later_words } else { self.words };
            if words == 0 {
                return NEVER;
            }
            let word = words.trailing_zeros() as usize;
            word * 64 + self.occupied[word].trailing_zeros() as usize
        };
        self.span + (slot.wrapping_sub(current) % SPANS) as u64
    }

    /// Advances to the span of the heap's earliest event, and moves that span's events from the heap to the wheel.
    #[cold]
    fn refill_from_heap(&mut self) -> Option<usize> {
        let &Entry { at, .. } = self.far.first()?;
        self.span = at >> SPAN_BITS;
        let slot = self.span as usize % SPANS;
        let mut number = std::mem::replace(&mut self.lists[slot], List::EMPTY).first;
        while self.far.span == self.span {
            let Some(Entry { at, event, .. }) = self.far.pop() else { break };
            self.push(Instant(at), event);
        }
        while let Some(node) = self.slab.get_mut(number as usize) {
            let (at, next) = (node.at, std::mem::replace(&mut node.next, NONE));
            self.put(slot, std::mem::replace(&mut number, next), at);
        }
        Some(slot)
    }
}

/// A distant event.
#[derive(Clone, Copy, Default)]
struct Entry {
    at: u64,
    /// Order of scheduling, which decides between simultaneous events.
    order: u64,
    event: Event,
}

impl Entry {
    #[inline]
    fn key(&self) -> (u64, u64) {
        (self.at, self.order)
    }
}

/// A heap of entries, the earliest first.
struct Heap {
    entries: Vec<Entry>,
    /// The span of the earliest entry; `NEVER` if the heap is empty.
    span: u64,
    scheduled: u64,
}

impl Default for Heap {
    fn default() -> Self {
        Heap { entries: Vec::new(), span: NEVER, scheduled: 0 }
    }
}

/// Children of a node: four keep the heap flat and a node's children in one or two cache lines.
const ARITY: usize = 4;

impl Heap {
    fn first(&self) -> Option<&Entry> {
        self.entries.first()
    }

    #[inline(never)]
    fn push(&mut self, at: u64, event: Event) {
        let entry = Entry { at, order: self.scheduled, event };
        self.scheduled += 1;
        let heap = &mut self.entries;
        let mut hole = heap.len();
        heap.push(entry);
        while hole > 0 {
            let parent = (hole - 1) / ARITY;
            if heap[parent].at <= at {
                break;
            }
            heap[hole] = heap[parent];
            hole = parent;
        }
        heap[hole] = entry;
        self.span = heap[0].at >> SPAN_BITS;
    }

    /// Takes the earliest entry.
    fn pop(&mut self) -> Option<Entry> {
        let heap = &mut self.entries;
        let last = heap.pop()?;
        let first = heap.first().copied().unwrap_or(last);
        let mut hole = 0;
        loop {
            let children = hole * ARITY + 1..(hole * ARITY + 1 + ARITY).min(heap.len());
            match children.min_by_key(|&child| heap[child].key()) {
                Some(least) if heap[least].key() < last.key() => {
                    heap[hole] = heap[least];
                    hole = least;
                }
                _ => break,
            }
        }
        if let Some(slot) = heap.get_mut(hole) {
            *slot = last;
        }
        self.span = heap.first().map_or(NEVER, |first| first.at >> SPAN_BITS);
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_event_returns_the_parts_it_was_built_from() {
        for number in 0..=Kind::LateInterrupts as u64 {
            let kind = Kind::numbered(number);
            assert_eq!(kind as u64, number);
            let event = Event::new(kind, 7).with_detail(u32::MAX).with_setting(9);
            assert_eq!((event.kind(), event.target(), event.detail(), event.setting()), (kind, 7, u32::MAX, 9));
        }
    }

    /// At once, in the same span, within the wheel, at its end, or beyond it.
    fn after() -> impl Strategy<Value = u64> {
        let wheel = (SPANS as u64) << SPAN_BITS;
        prop_oneof![Just(0), 0u64..20, 0..2000u64, 0..wheel, wheel - 3000..wheel + 3000, 0..4 * wheel]
    }

    proptest! {
        #[test]
        fn events_come_in_the_order_of_time_and_then_of_scheduling(
            steps in prop::collection::vec(prop::option::of(after()), 1..300),
        ) {
            let mut now = 0;
            let mut queue = EventQueue::default();
            let mut model: Vec<(u64, u32)> = Vec::new();
            for (number, step) in steps.into_iter().enumerate() {
                let number = number as u32;
                match step {
                    Some(after) => {
                        queue.push(Instant(now + after), Event::new(Kind::Run, number));
                        model.push((now + after, number));
                    }
                    None => {
                        let next = model.iter().enumerate().min_by_key(|(_, entry)| **entry).map(|(index, _)| index);
                        let expected = next.map(|index| model.remove(index));
                        now = expected.map_or(now, |(at, _)| at);
                        let got = queue.pop().map(|(at, event)| (at.0, event.target()));
                        prop_assert_eq!(got, expected);
                    }
                }
            }
        }
    }
}
