//! I/O contexts: what is known of each process on this device.
//!
//! A record outlives its process while requests of it are under way, and a process that gets the number of a dead one
//! gets a record of its own: records are numbered by themselves.
//!
//! Rules: `cfq.md` 3.4, 3.5, 20.

use crate::ids::{CgroupId, IoContextId};
use crate::ioprio::IoPriority;

use super::super::process_queue::ThinkTime;
use super::class::Priority;
use super::queue::QueueId;

/// A record's index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ContextId(u32);

/// What is known of a process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context {
    pub(super) id: IoContextId,
    /// The async queue (0) and the sync queue (1) that it uses.
    pub(super) queues: [Option<QueueId>; 2],
    /// How long it thinks. Its sharers of a queue keep records of their own.
    pub(super) think: ThinkTime,
    /// The priority that the process was last told to have, for requests that do not carry one.
    pub(super) ioprio: IoPriority,
    /// Its priority as last seen at an allocation.
    pub(super) priority: Option<Priority>,
    /// Its cgroup as last seen at an allocation.
    pub(super) cgroup: Option<CgroupId>,
    /// It has ended.
    pub(super) exited: bool,
    /// Requests and turns that refer to the record.
    users: u32,
}

/// All records.
#[derive(Clone, Debug, Default)]
pub(super) struct Contexts {
    records: Vec<Context>,
    /// Records that nobody refers to.
    free: Vec<ContextId>,
    /// The record of each living process, by its number.
    living: Vec<Option<ContextId>>,
}

impl std::ops::Index<ContextId> for Contexts {
    type Output = Context;
    #[inline]
    fn index(&self, id: ContextId) -> &Context {
        &self.records[id.0 as usize]
    }
}

impl std::ops::IndexMut<ContextId> for Contexts {
    #[inline]
    fn index_mut(&mut self, id: ContextId) -> &mut Context {
        &mut self.records[id.0 as usize]
    }
}

impl Contexts {
    /// The record of a living process.
    #[inline]
    pub(super) fn find(&self, id: IoContextId) -> Option<ContextId> {
        self.living.get(id.index()).copied().flatten()
    }

    /// The record of a living process, made if there is none.
    pub(super) fn find_or_create(&mut self, id: IoContextId, now: i64) -> ContextId {
        if let Some(found) = self.find(id) {
            return found;
        }
        let record = Context {
            id,
            queues: [None; 2],
            think: ThinkTime::new(now),
            ioprio: IoPriority::UNSET,
            priority: None,
            cgroup: None,
            exited: false,
            users: 0,
        };
        let context = match self.free.pop() {
            Some(free) => {
                self[free] = record;
                free
            }
            None => {
                self.records.push(record);
                ContextId(self.records.len() as u32 - 1)
            }
        };
        if self.living.len() <= id.index() {
            self.living.resize(id.index() + 1, None);
        }
        self.living[id.index()] = Some(context);
        context
    }

    /// Somebody refers to the record from now on.
    pub(super) fn hold(&mut self, context: ContextId) {
        self[context].users += 1;
    }

    /// Somebody no longer refers to the record.
    pub(super) fn release(&mut self, context: ContextId) {
        self[context].users -= 1;
        self.recycle(context);
    }

    /// The process has ended.
    pub(super) fn exit(&mut self, context: ContextId) {
        let number = self[context].id.index();
        self.living[number] = None;
        self[context].exited = true;
        self.recycle(context);
    }

    fn recycle(&mut self, context: ContextId) {
        if self[context].exited && self[context].users == 0 {
            self.free.push(context);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_outlives_its_process_while_it_is_used_and_is_then_used_again() {
        let mut contexts = Contexts::default();
        let old = contexts.find_or_create(IoContextId(7), 0);
        contexts.hold(old);
        contexts.exit(old);
        let new = contexts.find_or_create(IoContextId(7), 10);
        assert!(new != old && contexts[old].exited && !contexts[new].exited);
        contexts.release(old);
        assert_eq!(contexts.find_or_create(IoContextId(8), 20), old);
    }
}
