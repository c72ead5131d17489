//! An index of a few hundred items by a key that need not be unique.

/// A key and an item.
type IndexEntry = (u64, usize);

/// The item of a vacant entry, higher than all others.
const VACANT: usize = usize::MAX;

/// A sorted array: entries are few, so moving them costs less than a tree.
#[derive(Clone, Debug)]
pub(super) struct SortedIndex {
    /// Ascending.
    entries: Vec<IndexEntry>,
    /// The entry that was removed last, if none was added since. It stays in the array, so that the next addition moves only the
    /// entries between the two.
    vacant: Option<usize>,
}

impl SortedIndex {
    /// An index with room for this many items; it can grow.
    pub(super) fn new(capacity: usize) -> SortedIndex {
        SortedIndex { entries: Vec::with_capacity(capacity + 1), vacant: None }
    }

    pub(super) fn add(&mut self, key: u64, item: usize) {
        self.add_at(self.position(key, item), key, item);
    }

    /// The same if it is known where the item belongs.
    pub(super) fn add_at(&mut self, slot: usize, key: u64, item: usize) {
        let entries = &mut self.entries;
        match self.vacant.take() {
            None => entries.insert(slot, (key, item)),
            Some(vacant) if vacant < slot => {
                entries.copy_within(vacant + 1..slot, vacant);
                entries[slot - 1] = (key, item);
            }
            Some(vacant) => {
                entries.copy_within(slot..vacant, slot + 1);
                entries[slot] = (key, item);
            }
        }
    }

    /// Where an item with this key is, or would be.
    #[inline]
    fn position(&self, key: u64, item: usize) -> usize {
        let mut slot = self.entries.partition_point(|&(other, _)| other < key);
        // Few keys are not unique.
        while self.entries.get(slot).is_some_and(|&entry| entry < (key, item)) {
            slot += 1;
        }
        slot
    }

    /// The same of an item that is there.
    ///
    /// # Panics
    /// If the item was not added with this key.
    #[inline]
    fn position_of(&self, key: u64, item: usize) -> usize {
        let slot = self.position(key, item);
        assert!(self.entries.get(slot) == Some(&(key, item)), "the index knows all");
        slot
    }

    /// # Panics
    /// If the item was not added with this key.
    pub(super) fn remove(&mut self, key: u64, item: usize) {
        if let Some(vacant) = self.vacant.take() {
            self.entries.remove(vacant);
        }
        let mut slot = self.position_of(key, item);
        self.entries[slot].1 = VACANT;
        while self.entries.get(slot + 1).is_some_and(|&(other, _)| other == key) {
            self.entries.swap(slot, slot + 1);
            slot += 1;
        }
        self.vacant = Some(slot);
    }

    /// Changes the number of an item to a lower one.
    ///
    /// # Panics
    /// If the item was not added with this key.
    pub(super) fn renumber(&mut self, key: u64, item: usize, lower: usize) {
        let mut slot = self.position_of(key, item);
        self.entries[slot].1 = lower;
        while slot > 0 && self.entries[slot - 1] > self.entries[slot] {
            self.entries.swap(slot - 1, slot);
            slot -= 1;
        }
    }

    /// The place after all entries with keys up to `last`, where a new item with that key and the highest number belongs.
    #[inline]
    pub(super) fn end(&self, last: u64) -> usize {
        self.entries.partition_point(|&(key, _)| key <= last)
    }

    /// The items before a place with keys from `first` on, highest first.
    #[inline]
    pub(super) fn before(&self, end: usize, first: u64) -> impl Iterator<Item = usize> {
        let entries = self.entries[..end].iter().rev().take_while(move |&&(key, _)| key >= first);
        entries.map(|&(_, item)| item).filter(|&item| item != VACANT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(keys: &[u64]) -> SortedIndex {
        let mut index = SortedIndex::new(keys.len());
        keys.iter().enumerate().for_each(|(item, &key)| index.add(key, item));
        index
    }

    fn within(index: &SortedIndex, first: u64, last: u64) -> Vec<usize> {
        index.before(index.end(last), first).collect()
    }

    #[test]
    fn a_range_includes_both_ends() {
        let mut index = index(&[50, 10, 47, 30, 30, 58]);
        assert_eq!(within(&index, 30, 50), [0, 2, 4, 3]);
        index.remove(30, 4);
        assert_eq!(within(&index, 11, 49), [2, 3]);
    }

    #[test]
    fn an_index_with_a_vacant_entry_holds_what_was_added_and_not_removed_in_order() {
        let keys = [50, 10, 47, 30, 30, 58, 30];
        for removed in 0..keys.len() {
            for removed_later in (0..keys.len()).filter(|&item| item != removed) {
                for key in [5, 30, 47, 60] {
                    let mut index = index(&keys);
                    index.remove(keys[removed], removed);
                    index.add(key, removed);
                    index.remove(key, removed);
                    index.remove(keys[removed_later], removed_later);
                    index.add_at(index.end(key), key, keys.len());
                    let mut left: Vec<IndexEntry> = keys.into_iter().zip(0..).chain([(key, keys.len())]).collect();
                    left.retain(|&(_, item)| item != removed && item != removed_later);
                    left.sort_unstable_by(|a, b| b.cmp(a));
                    assert_eq!(within(&index, 0, 100), left.iter().map(|&(_, item)| item).collect::<Vec<_>>());
                }
            }
        }
    }

    #[test]
    fn a_renumbered_entry_moves_to_its_sorted_place() {
        let mut index = index(&[30, 10, 30, 30, 58]);
        index.renumber(58, 4, 1);
        index.renumber(30, 3, 1);
        assert_eq!(index.entries, [(10, 1), (30, 0), (30, 1), (30, 2), (58, 1)]);
    }
}
