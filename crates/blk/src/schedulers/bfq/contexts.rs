//! Processes as bfq knows them: each with its queues, and with what is remembered for it while it shares one.
//! Rules: bfq.md 3.5, 20.5.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::entity::QueueId;
use super::queue::{Injection, Raising};
use super::statistics::{IoBound, ThinkTime};
use crate::ids::{CgroupId, IoContextId};
use crate::ioprio::IoPriority;

/// A number into the table of contexts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ContextId(pub u32);

/// A process.
#[derive(Clone, Debug)]
pub(super) struct Context {
    /// The name it goes by outside.
    pub io_context: IoContextId,
    /// Its queues for each actuator.
    pub queues: Vec<ContextQueues>,
    /// Its priority.
    pub ioprio: IoPriority,
    /// Its cgroup, as its last sync I/O showed.
    pub cgroup: CgroupId,
    /// Its requests that are allocated: inside or in flight.
    pub requests: u32,
    /// It has ended; its requests are still on the way.
    pub exited: bool,
}

/// A process's queues for one actuator.
#[derive(Clone, Debug, Default)]
pub(super) struct ContextQueues {
    /// Its sync queue, perhaps shared.
    pub sync: Option<QueueId>,
    /// The async queue that it uses.
    pub async_: Option<QueueId>,
    /// The state of its own sync queue at the time when that was merged.
    pub saved: Option<Saved>,
    /// The queue that it is to be merged with for good, later.
    pub stable_merge: Option<QueueId>,
    /// It was merged for good, or its queue has absorbed one for good.
    pub stably_merged: bool,
}

/// The state of a queue that was merged away.
#[derive(Clone, Copy, Debug)]
pub(super) struct Saved {
    pub think: ThinkTime,
    pub short_think: bool,
    pub idle_window: bool,
    pub io_bound: IoBound,
    pub injection: Injection,
    /// Base weight.
    pub weight: u64,
    pub raise: u64,
    pub raising: Raising,
    pub service_since_backlogged: u64,
    pub in_large_burst: bool,
    pub in_burst_list: bool,
}

/// All processes.
#[derive(Clone, Debug, Default)]
pub(super) struct Contexts {
    list: Vec<Context>,
    free: Vec<ContextId>,
    by_name: HashMap<IoContextId, ContextId, BuildHasherDefault<Scatter>>,
    actuators: usize,
}

/// Spreads small numbers over 64 bits by a multiplication.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Scatter(u64);

impl Hasher for Scatter {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u32(u32::from(byte));
        }
    }
    fn write_u32(&mut self, number: u32) {
        self.0 = (self.0 ^ u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

impl Contexts {
    /// No processes; each will have queues for so many actuators.
    pub fn new(actuators: usize) -> Self {
        Contexts { actuators, ..Contexts::default() }
    }

    /// The process of this name, if it is known.
    pub fn find(&self, io_context: IoContextId) -> Option<ContextId> {
        self.by_name.get(&io_context).copied()
    }

    /// The process of this name.
    pub fn find_or_add(&mut self, io_context: IoContextId, ioprio: IoPriority, cgroup: CgroupId) -> ContextId {
        if let Some(id) = self.find(io_context) {
            return id;
        }
        let queues = vec![ContextQueues::default(); self.actuators];
        let context = Context { io_context, queues, ioprio, cgroup, requests: 0, exited: false };
        let id = match self.free.pop() {
            Some(id) => {
                self.list[id.0 as usize] = context;
                id
            }
            None => {
                self.list.push(context);
                ContextId(self.list.len() as u32 - 1)
            }
        };
        self.by_name.insert(io_context, id);
        id
    }

    /// Forgets the name of a process that has ended; its slot is free once its last request has been released.
    pub fn exit(&mut self, id: ContextId) {
        let context = &mut self.list[id.0 as usize];
        context.exited = true;
        self.by_name.remove(&context.io_context);
        self.free_if_gone(id);
    }

    /// A request of a process was allocated.
    pub fn add_request(&mut self, id: ContextId) {
        self.list[id.0 as usize].requests += 1;
    }

    /// A request of a process has been released.
    pub fn remove_request(&mut self, id: ContextId) {
        self.list[id.0 as usize].requests -= 1;
        self.free_if_gone(id);
    }

    fn free_if_gone(&mut self, id: ContextId) {
        let context = &self.list[id.0 as usize];
        if context.exited && context.requests == 0 {
            self.free.push(id);
        }
    }
}

impl std::ops::Index<ContextId> for Contexts {
    type Output = Context;
    #[inline]
    fn index(&self, id: ContextId) -> &Context {
        &self.list[id.0 as usize]
    }
}

impl std::ops::IndexMut<ContextId> for Contexts {
    #[inline]
    fn index_mut(&mut self, id: ContextId) -> &mut Context {
        &mut self.list[id.0 as usize]
    }
}
