//! I/O contexts: a record for each process that does I/O on a device.
//!
//! A record outlives its process while there are requests of it, and a process that gets the number of a dead one gets
//! a record of its own: records have numbers of their own. The scheduler defines the content of a record.
//!
//! Rules: BFQ-10, CFQ-7, CFQ-70 to CFQ-74.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::{Deref, DerefMut, Index, IndexMut};

use crate::ground::ids::IoContextId;

/// A record's index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ContextId(u32);

/// The record of a process: the common fields, and the scheduler's own content.
#[derive(Clone, Debug)]
pub struct Record<C> {
    /// The process's I/O context.
    pub id: IoContextId,
    /// The process has ended, but the record is still in use.
    pub exited: bool,
    /// The number of references to the record: allocated requests, and others that a scheduler counts.
    users: u32,
    content: C,
}

impl<C> Record<C> {
    /// The number of references to the record.
    #[inline]
    pub fn users(&self) -> u32 {
        self.users
    }
}

impl<C> Deref for Record<C> {
    type Target = C;
    #[inline]
    fn deref(&self) -> &C {
        &self.content
    }
}

impl<C> DerefMut for Record<C> {
    #[inline]
    fn deref_mut(&mut self) -> &mut C {
        &mut self.content
    }
}

/// All records.
#[derive(Clone, Debug)]
pub struct Contexts<C> {
    records: Vec<Record<C>>,
    /// Records without references.
    free: Vec<ContextId>,
    living: Living,
}

/// Processes with numbers below this are looked up in a table: those of a simulation, and of most engines.
const TABLE_MAX: usize = 1 << 12;

/// The record of each living process, by its I/O context.
#[derive(Clone, Debug, Default)]
struct Living {
    table: Vec<Option<ContextId>>,
    others: HashMap<IoContextId, ContextId, BuildHasherDefault<Scatter>>,
}

impl Living {
    #[inline]
    fn find(&self, id: IoContextId) -> Option<ContextId> {
        match self.table.get(id.0 as usize) {
            Some(&found) => found,
            None => self.others.get(&id).copied(),
        }
    }

    fn set(&mut self, id: IoContextId, context: Option<ContextId>) {
        let index = id.0 as usize;
        if index < TABLE_MAX {
            self.table.resize(self.table.len().max(index + 1), None);
            self.table[index] = context;
        } else if let Some(context) = context {
            self.others.insert(id, context);
        } else {
            self.others.remove(&id);
        }
    }
}

/// Spreads small numbers over 64 bits by a multiplication.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scatter(u64);

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
        self.write_u64(u64::from(number));
    }
    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

impl<C> Default for Contexts<C> {
    fn default() -> Self {
        Contexts { records: Vec::new(), free: Vec::new(), living: Living::default() }
    }
}

impl<C> Index<ContextId> for Contexts<C> {
    type Output = Record<C>;
    #[inline]
    fn index(&self, id: ContextId) -> &Record<C> {
        &self.records[id.0 as usize]
    }
}

impl<C> IndexMut<ContextId> for Contexts<C> {
    #[inline]
    fn index_mut(&mut self, id: ContextId) -> &mut Record<C> {
        &mut self.records[id.0 as usize]
    }
}

impl<C> Contexts<C> {
    /// The record of a living process.
    #[inline]
    pub fn find(&self, id: IoContextId) -> Option<ContextId> {
        self.living.find(id)
    }

    /// The record of a living process, created with this content if there is none.
    #[inline]
    pub fn find_or_create(&mut self, id: IoContextId, content: impl FnOnce() -> C) -> ContextId {
        match self.find(id) {
            Some(found) => found,
            None => self.create(id, content()),
        }
    }

    fn create(&mut self, id: IoContextId, content: C) -> ContextId {
        let record = Record { id, exited: false, users: 0, content };
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
        self.living.set(id, Some(context));
        context
    }

    /// Adds a reference to the record.
    #[inline]
    pub fn hold(&mut self, context: ContextId) {
        self[context].users += 1;
    }

    /// Removes a reference to the record.
    #[inline]
    pub fn release(&mut self, context: ContextId) {
        self[context].users -= 1;
        self.recycle(context);
    }

    /// The process has ended.
    pub fn exit(&mut self, context: ContextId) {
        let id = self[context].id;
        self.living.set(id, None);
        self[context].exited = true;
        self.recycle(context);
    }

    #[inline]
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
        for name in [7, TABLE_MAX as u32 - 1, TABLE_MAX as u32, u32::MAX].map(IoContextId) {
            let mut contexts = Contexts::default();
            let old = contexts.find_or_create(name, || "old");
            contexts.hold(old);
            contexts.exit(old);
            assert_eq!(contexts.find(name), None);
            let new = contexts.find_or_create(name, || "new");
            assert!(new != old && contexts[old].exited && !contexts[new].exited);
            assert_eq!((*contexts[old], *contexts[new]), ("old", "new"));
            assert_eq!(contexts.find(name), Some(new));
            contexts.release(old);
            assert_eq!(contexts.find_or_create(IoContextId(8), || "next"), old);
        }
    }

    #[test]
    fn the_record_of_a_process_that_ends_unused_is_used_again_at_once() {
        let mut contexts = Contexts::default();
        let old = contexts.find_or_create(IoContextId(7), || ());
        contexts.exit(old);
        assert_eq!(contexts.find_or_create(IoContextId(8), || ()), old);
    }

    #[test]
    fn small_numbers_are_scattered() {
        let hash = |number: u32| {
            let mut scatter = Scatter::default();
            scatter.write_u32(number);
            // The bits by which a table distinguishes most entries.
            scatter.finish() >> 57
        };
        let mut tops: Vec<u64> = (1..=128).map(hash).collect();
        tops.sort_unstable();
        tops.dedup();
        assert!(tops.len() > 64, "{tops:?}");
    }

    #[test]
    fn bytes_are_scattered_one_by_one() {
        let (mut bytes, mut numbers) = (Scatter::default(), Scatter::default());
        bytes.write(&[1, 2]);
        [1, 2].into_iter().for_each(|number| numbers.write_u32(number));
        assert_eq!(bytes.finish(), numbers.finish());
        assert_ne!(bytes.finish(), 0);
    }
}
