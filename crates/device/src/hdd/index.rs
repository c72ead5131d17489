//! An index of a few hundred items by a key that need not be unique.

/// A key and an item.
type IndexEntry = (u64, usize);

/// A sorted array: entries are few, so moving them costs less than a tree.
#[derive(Clone, Debug)]
pub(super) struct SortedIndex {
    /// Ascending.
    entries: Vec<IndexEntry>,
}

impl SortedIndex {
    /// An index with room for this many items; it can grow.
    pub(super) fn new(capacity: usize) -> SortedIndex {
        SortedIndex { entries: Vec::with_capacity(capacity) }
    }

    pub(super) fn add(&mut self, key: u64, item: usize) {
        let slot = self.position(key, item);
        self.entries.insert(slot, (key, item));
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
        let slot = self.position_of(key, item);
        self.entries.remove(slot);
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

    /// The items with keys from `first` to `last`, highest first.
    #[inline]
    pub(super) fn within(&self, first: u64, last: u64) -> impl Iterator<Item = usize> {
        let end = self.entries.partition_point(|&(key, _)| key <= last);
        self.entries[..end].iter().rev().take_while(move |&&(key, _)| key >= first).map(|&(_, item)| item)
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

    #[test]
    fn a_range_includes_both_ends() {
        let mut index = index(&[50, 10, 47, 30, 30, 58]);
        assert_eq!(index.within(30, 50).collect::<Vec<_>>(), [0, 2, 4, 3]);
        index.remove(30, 4);
        assert_eq!(index.within(11, 49).collect::<Vec<_>>(), [2, 3]);
    }

    #[test]
    fn a_renumbered_entry_moves_to_its_sorted_place() {
        let mut index = index(&[30, 10, 30, 30, 58]);
        index.renumber(58, 4, 1);
        index.renumber(30, 3, 1);
        assert_eq!(index.entries, [(10, 1), (30, 0), (30, 1), (30, 2), (58, 1)]);
    }
}
