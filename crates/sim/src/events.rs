//! The event queue: ordered by time, ties broken by the order of scheduling. A timing wheel holds what is near, a 4-ary heap
//! what is far.

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
    /// A CPU turns to the task that it has chosen: CPU and setting.
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
    /// Whoever asks a scheduler for requests goes on with what others have left to it: disk and CPU.
    Round,
}

const KINDS: [Kind; 12] = [
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
    Kind::Round,
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
    fn key(&self) -> (u64, u64) {
        (self.at, self.order)
    }

    #[inline]
    fn span(&self) -> u64 {
        self.at >> SPAN_BITS
    }
}

/// A span is of 2^10 ns: under load there is about one event in each.
const SPAN_BITS: u32 = 10;

/// Spans that the wheel knows, from the present one on: 4.2 ms, in which nearly all that happens in a host and on flash has its
/// moment, and hardware queues that are to be run again in 3 ms.
const SPANS: usize = 4096;

const WORDS: usize = SPANS / 64;

/// No entry of the slab.
const NONE: u32 = u32::MAX;

/// When nothing happens any more, and the span of that.
const NEVER: u64 = u64::MAX;
const NEVER_SPAN: u64 = NEVER >> SPAN_BITS;

/// An entry of the wheel, and the one that was scheduled before it for the same span.
#[derive(Clone, Copy, Default)]
struct Node {
    entry: Entry,
    next: u32,
}

/// Events to come. One of those that were scheduled last stands apart, as long as no earlier one takes its place: much of what happens
/// leads to something that happens next of all. The others of the present span stand in order; those of the next spans in a list each,
/// newest first, which is put in order when its span begins; what is further away in a heap.
pub(crate) struct EventQueue {
    /// That which stands apart; `NEVER` if none does.
    apart: Entry,
    /// The present span, counted from the beginning of time.
    span: u64,
    /// The next one that has events in the wheel or in the heap; a span that never comes if none has.
    next_span: u64,
    /// Its events in order, those before `head` gone.
    present: Vec<Entry>,
    head: usize,
    /// The newest event of each span, by its number modulo [`SPANS`].
    newest: Box<[u32; SPANS]>,
    /// A bit for each span that has events, and one for each word that has bits.
    occupied: [u64; WORDS],
    words: u64,
    slab: Vec<Node>,
    /// The first of the nodes that are free.
    free: u32,
    far: Heap,
    scheduled: u64,
}

impl Default for EventQueue {
    fn default() -> Self {
        EventQueue {
            apart: Entry { at: NEVER, ..Entry::default() },
            span: 0,
            next_span: NEVER_SPAN,
            present: Vec::new(),
            head: 0,
            newest: Box::new([NONE; SPANS]),
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
    /// Schedules an event.
    #[inline]
    pub(crate) fn push(&mut self, at: Instant, event: Event) {
        let (mut at, mut order, mut event) = (at.0, self.scheduled, event);
        self.scheduled += 1;
        if at < self.apart.at {
            let later = self.apart;
            self.apart.set(at, order, event);
            if later.at == NEVER {
                return;
            }
            (at, order, event) = (later.at, later.order, later.event);
        }
        self.put(at, order, event);
    }

    #[inline(never)]
    fn put(&mut self, at: u64, order: u64, event: Event) {
        let span = at >> SPAN_BITS;
        if span <= self.span {
            return self.put_into_present(at, order, event);
        }
        self.next_span = self.next_span.min(span);
        if span - self.span < SPANS as u64 {
            self.put_into_span(span, at, order, event);
        } else {
            self.far.push(at, order, event);
        }
    }

    /// Before those that are later.
    fn put_into_present(&mut self, at: u64, order: u64, event: Event) {
        let mut hole = self.present.len();
        self.present.push(Entry::default());
        while hole > self.head && self.present[hole - 1].key() > (at, order) {
            self.present[hole] = self.present[hole - 1];
            hole -= 1;
        }
        self.present[hole].set(at, order, event);
    }

    #[inline]
    fn put_into_span(&mut self, span: u64, at: u64, order: u64, event: Event) {
        let slot = span as usize % SPANS;
        let number = match self.slab.get(self.free as usize) {
            Some(node) => std::mem::replace(&mut self.free, node.next),
            None => self.grow(),
        };
        let node = &mut self.slab[number as usize];
        node.entry.set(at, order, event);
        node.next = std::mem::replace(&mut self.newest[slot], number);
        self.occupied[slot / 64] |= 1 << (slot % 64);
        self.words |= 1 << (slot / 64);
    }

    #[cold]
    fn grow(&mut self) -> u32 {
        self.slab.push(Node::default());
        self.slab.len() as u32 - 1
    }

    /// Takes the earliest event.
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<(Instant, Event)> {
        let Some(first) = self.present.get(self.head) else {
            return if self.apart.span() < self.next_span { Some(self.take_apart()) } else { self.first_of_next_span() };
        };
        if self.apart.key() < first.key() {
            return Some(self.take_apart());
        }
        let Entry { at, event, .. } = *first;
        self.head += 1;
        if self.head == self.present.len() {
            self.present.clear();
            self.head = 0;
        }
        Some((Instant(at), event))
    }

    #[inline]
    fn take_apart(&mut self) -> (Instant, Event) {
        let at = std::mem::replace(&mut self.apart.at, NEVER);
        (Instant(at), self.apart.event)
    }

    /// Nothing is left of the present span: the next one begins that has events.
    #[inline(never)]
    fn first_of_next_span(&mut self) -> Option<(Instant, Event)> {
        if self.next_span == NEVER_SPAN {
            return None;
        }
        self.span = self.next_span;
        let slot = self.span as usize % SPANS;
        let number = self.take_list(slot);
        let far = self.far.first().map_or(NEVER_SPAN, Entry::span);
        if far == self.span {
            return self.begin_with_far(number);
        }
        self.next_span = self.next_in_wheel().min(far);
        let node = self.slab[number as usize];
        if node.next != NONE || node.entry.key() > self.apart.key() {
            self.put_in_order(number);
            return self.pop();
        }
        self.slab[number as usize].next = std::mem::replace(&mut self.free, number);
        Some((Instant(node.entry.at), node.entry.event))
    }

    /// The number of the next span with events in the wheel; one that never comes if there is none.
    #[inline]
    fn next_in_wheel(&self) -> u64 {
        let present = self.span as usize % SPANS;
        let (word, bit) = (present / 64, present % 64);
        let here = self.occupied[word] & (u64::MAX << bit);
        let slot = if here != 0 {
            word * 64 + here.trailing_zeros() as usize
        } else {
            // Behind the word of the present span, and from the first one on again.
            let behind = self.words & (u64::MAX << 1 << word);
            let words = if behind != 0 { behind } else { self.words };
            if words == 0 {
                return NEVER_SPAN;
            }
            let word = words.trailing_zeros() as usize;
            word * 64 + self.occupied[word].trailing_zeros() as usize
        };
        self.span + (slot.wrapping_sub(present) % SPANS) as u64
    }

    /// Takes the list of a span out of the wheel.
    #[inline]
    fn take_list(&mut self, slot: usize) -> u32 {
        self.occupied[slot / 64] &= !(1 << (slot % 64));
        if self.occupied[slot / 64] == 0 {
            self.words &= !(1 << (slot / 64));
        }
        std::mem::replace(&mut self.newest[slot], NONE)
    }

    /// A list, newest first, becomes the events of the present span.
    fn put_in_order(&mut self, mut number: u32) {
        while let Some(node) = self.slab.get_mut(number as usize) {
            self.present.push(node.entry);
            let next = std::mem::replace(&mut node.next, self.free);
            self.free = std::mem::replace(&mut number, next);
        }
        self.present.sort_unstable_by_key(Entry::key);
    }

    /// The present span has events in the heap, and perhaps this list of the wheel as well.
    #[cold]
    fn begin_with_far(&mut self, number: u32) -> Option<(Instant, Event)> {
        while let Some(entry) = self.far.first().filter(|entry| entry.span() == self.span).copied() {
            self.far.pop();
            self.present.push(entry);
        }
        self.put_in_order(number);
        self.next_span = self.next_in_wheel().min(self.far.first().map_or(NEVER_SPAN, Entry::span));
        self.pop()
    }
}

/// A heap of entries, the earliest first.
#[derive(Default)]
struct Heap(Vec<Entry>);

/// Children of a node: four keep the heap flat and a node's children in one or two cache lines.
const ARITY: usize = 4;

impl Heap {
    #[inline]
    fn first(&self) -> Option<&Entry> {
        self.0.first()
    }

    #[inline(never)]
    fn push(&mut self, at: u64, order: u64, event: Event) {
        let heap = &mut self.0;
        let mut hole = heap.len();
        heap.push(Entry::default());
        while hole > 0 {
            let parent = (hole - 1) / ARITY;
            if heap[parent].key() <= (at, order) {
                break;
            }
            heap[hole] = heap[parent];
            hole = parent;
        }
        heap[hole].set(at, order, event);
    }

    /// Takes the first away.
    fn pop(&mut self) {
        let heap = &mut self.0;
        let Some(entry) = heap.pop() else { return };
        if heap.is_empty() {
            return;
        }
        let mut hole = 0;
        loop {
            let first = hole * ARITY + 1;
            if first >= heap.len() {
                break;
            }
            let mut least = first;
            for child in first + 1..(first + ARITY).min(heap.len()) {
                if heap[child].key() < heap[least].key() {
                    least = child;
                }
            }
            if entry.key() <= heap[least].key() {
                break;
            }
            heap[hole] = heap[least];
            hole = least;
        }
        heap[hole] = entry;
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
                        queue.push(Instant(now + after), Event::of(Kind::Run, number));
                        model.push((now + after, number));
                    }
                    None => {
                        let next = model.iter().enumerate().min_by_key(|(_, entry)| **entry).map(|(index, _)| index);
                        let expected = next.map(|index| model.remove(index));
                        now = expected.map_or(now, |(at, _)| at);
                        let got = queue.pop().map(|(at, event)| (at.0, event.place()));
                        prop_assert_eq!(got, expected);
                    }
                }
            }
        }
    }
}
