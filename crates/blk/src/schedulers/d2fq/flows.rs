//! Flows: the processes that are treated fairly (D2FQ-2).

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::atomic::Ordering::Relaxed;

use crate::ground::ids::IoContextId;
use crate::ground::sharing::{Padded, Sharing, Word};
use crate::request::cpu_map::QueueClass;
use crate::schedulers::process_queue::Scatter;

use super::global_time::TIME_MAX;

/// Most flows: their numbers have to fit a word beside the time.
const FLOWS_MAX: usize = u16::MAX as usize - 1;

/// One flow.
pub(super) struct Flow<Sh: Sharing> {
    /// Its virtual time.
    pub(super) virtual_time: Sh::Word,
    /// Its requests between allocation and completion.
    pub(super) in_flight: Sh::Word,
    /// Since when it has none, ns.
    pub(super) idle_since: Sh::Word,
    /// Whether it counts.
    pub(super) is_active: Sh::Word,
    /// Its process has exited; once its requests have ended, its place is free.
    pub(super) has_ended: Sh::Word,
    /// What it was charged for each class in the current period.
    costs: [Sh::Word; 3],
    /// Its virtual time when the period began.
    period_began_at: Sh::Word,
}

impl<Sh: Sharing> Default for Flow<Sh> {
    fn default() -> Self {
        let word = || Sh::Word::new(0);
        Flow {
            virtual_time: word(),
            in_flight: word(),
            idle_since: word(),
            is_active: word(),
            has_ended: word(),
            costs: [word(), word(), word()],
            period_began_at: word(),
        }
    }
}

impl<Sh: Sharing> Flow<Sh> {
    /// Adds the cost of a request that went through a class.
    #[inline]
    pub(super) fn charge(&self, class: QueueClass, cost: u64) {
        let before = self.virtual_time.fetch_add(cost, Relaxed);
        if before + cost > TIME_MAX {
            self.virtual_time.store(TIME_MAX, Relaxed);
        }
        self.costs[class as usize].fetch_add(cost, Relaxed);
    }

    /// What it was charged for each class in the current period.
    pub(super) fn costs(&self) -> [u64; 3] {
        [0, 1, 2].map(|class| self.costs[class].load(Relaxed))
    }

    /// How far it has come in the current period.
    pub(super) fn progress(&self) -> u64 {
        self.virtual_time.load(Relaxed).saturating_sub(self.period_began_at.load(Relaxed))
    }

    pub(super) fn begin_period(&self) {
        self.costs.iter().for_each(|cost| cost.store(0, Relaxed));
        self.period_began_at.store(self.virtual_time.load(Relaxed), Relaxed);
    }
}

/// All flows.
pub(super) struct Table<Sh: Sharing> {
    numbers: HashMap<u32, u16, BuildHasherDefault<Scatter>>,
    flows: Vec<Padded<Flow<Sh>>>,
    free: Vec<u16>,
    /// Whether a process has exited since places were last freed.
    exits: Sh::Word,
}

impl<Sh: Sharing> Default for Table<Sh> {
    fn default() -> Self {
        Table { numbers: HashMap::default(), flows: Vec::new(), free: Vec::new(), exits: Sh::Word::new(0) }
    }
}

impl<Sh: Sharing> Table<Sh> {
    #[inline]
    pub(super) fn find(&self, io_context: IoContextId) -> Option<(u16, &Flow<Sh>)> {
        let number = *self.numbers.get(&io_context.0)?;
        Some((number, &self.flows[usize::from(number)]))
    }

    /// A process has exited.
    pub(super) fn end(&self, flow: &Flow<Sh>) {
        flow.has_ended.store(1, Relaxed);
        self.exits.store(1, Relaxed);
    }

    /// Creates a flow, unless there are too many.
    pub(super) fn create(&mut self, io_context: IoContextId) {
        if self.exits.swap(0, Relaxed) != 0 {
            self.remove_ended();
        }
        let number = match self.free.pop() {
            Some(number) => {
                self.flows[usize::from(number)] = Padded::default();
                number
            }
            None if self.flows.len() < FLOWS_MAX => {
                self.flows.push(Padded::default());
                self.flows.len() as u16 - 1
            }
            None => return,
        };
        self.numbers.insert(io_context.0, number);
    }

    /// Frees the places of flows whose process has exited and whose requests have ended.
    fn remove_ended(&mut self) {
        let Table { numbers, flows, free, exits } = self;
        numbers.retain(|_, &mut number| {
            let flow = &flows[usize::from(number)];
            let has_ended = flow.has_ended.load(Relaxed) != 0;
            let is_gone = has_ended && flow.in_flight.load(Relaxed) == 0;
            if is_gone {
                free.push(number);
            } else if has_ended {
                exits.store(1, Relaxed);
            }
            !is_gone
        });
    }

    /// All flows with their numbers, active or not.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u16, &Flow<Sh>)> {
        self.flows.iter().enumerate().map(|(number, flow)| (number as u16, &**flow))
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.flows.len()
    }
}
