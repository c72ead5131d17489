//! An index of a few hundred things by a number that may be that of several.

/// Entries in a row: they are few, so that moving them costs less than a tree.
#[derive(Clone, Debug)]
pub(super) struct Index {
    /// Keys and things, ascending.
    entries: Vec<(u64, usize)>,
}

impl Index {
    pub(super) fn new(most: u32) -> Index {
        Index { entries: Vec::with_capacity(most as usize) }
    }

    pub(super) fn add(&mut self, key: u64, thing: usize) {
        let at = self.entries.partition_point(|&entry| entry < (key, thing));
        self.entries.insert(at, (key, thing));
    }

    /// # Panics
    /// If it was not added with this key.
    pub(super) fn remove(&mut self, key: u64, thing: usize) {
        let at = self.entries.binary_search(&(key, thing)).expect("the index knows all");
        self.entries.remove(at);
    }

    /// The things whose keys are from `first` to `last`, highest first.
    pub(super) fn within(&self, first: u64, last: u64) -> impl Iterator<Item = usize> {
        let end = self.entries.partition_point(|&(key, _)| key <= last);
        self.entries[..end].iter().rev().take_while(move |&&(key, _)| key >= first).map(|&(_, thing)| thing)
    }

    /// All things, those with keys near `from` first.
    pub(super) fn outwards(&self, from: u64) -> impl Iterator<Item = usize> {
        let middle = self.entries.partition_point(|&(key, _)| key < from);
        let (mut below, mut above) =
            (self.entries[..middle].iter().rev().peekable(), self.entries[middle..].iter().peekable());
        std::iter::from_fn(move || {
            let is_below_nearer = match (below.peek(), above.peek()) {
                (Some(&&(below, _)), Some(&&(above, _))) => from - below < above - from,
                (below, _) => below.is_some(),
            };
            let nearer = if is_below_nearer { below.next() } else { above.next() };
            nearer.map(|&(_, thing)| thing)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(keys: &[u64]) -> Index {
        let mut index = Index::new(keys.len() as u32);
        keys.iter().enumerate().for_each(|(thing, &key)| index.add(key, thing));
        index
    }

    #[test]
    fn things_come_in_the_order_of_their_distance() {
        let index = index(&[50, 10, 47, 30, 30, 58]);
        assert_eq!(index.outwards(48).collect::<Vec<_>>(), [2, 0, 5, 4, 3, 1]);
        assert_eq!(index.outwards(0).collect::<Vec<_>>(), [1, 3, 4, 2, 0, 5]);
        assert_eq!(index.outwards(99).collect::<Vec<_>>(), [5, 0, 2, 4, 3, 1]);
    }

    #[test]
    fn a_range_has_both_its_ends() {
        let mut index = index(&[50, 10, 47, 30, 30, 58]);
        assert_eq!(index.within(30, 50).collect::<Vec<_>>(), [0, 2, 4, 3]);
        index.remove(30, 4);
        assert_eq!(index.within(11, 49).collect::<Vec<_>>(), [2, 3]);
    }
}
