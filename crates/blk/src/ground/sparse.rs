//! Tables that may be large and of which then few entries are used.

use std::sync::OnceLock;

/// Entries of a block.
const BLOCK: usize = 64;

/// A table whose first `FIRST` entries are made at once; the others are made in blocks, when one of them is first needed. An access
/// to one of the first costs no more than to a list's, and small tables allocate nothing later.
///
/// An entry can be changed only through itself: it is a lock, or made of words.
pub struct Sparse<T, const FIRST: usize> {
    first: Vec<T>,
    blocks: Vec<OnceLock<Box<[T]>>>,
    len: usize,
}

impl<T, const FIRST: usize> Sparse<T, FIRST> {
    /// A table of `len` entries; `make` makes one from its index.
    pub fn new(len: usize, make: impl Fn(usize) -> T) -> Self {
        let mut table = Sparse { first: Vec::new(), blocks: Vec::new(), len: 0 };
        table.grow(len, make);
        table
    }

    /// Makes a shorter table this long.
    pub fn grow(&mut self, len: usize, make: impl Fn(usize) -> T) {
        self.first.extend((self.first.len()..len.min(FIRST)).map(&make));
        // The last block may be incomplete.
        let last = self.blocks.last_mut().and_then(OnceLock::take);
        let number = self.blocks.len().saturating_sub(1);
        self.len = self.len.max(len);
        self.blocks.resize_with(self.len.saturating_sub(FIRST).div_ceil(BLOCK), OnceLock::new);
        if let Some(entries) = last {
            let mut entries = entries.into_vec();
            let indexes = self.indexes_of_block(number);
            entries.extend((indexes.start + entries.len()..indexes.end).map(make));
            self.blocks[number] = OnceLock::from(entries.into_boxed_slice());
        }
    }

    fn indexes_of_block(&self, number: usize) -> std::ops::Range<usize> {
        let start = FIRST + number * BLOCK;
        start..self.len.min(start + BLOCK)
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.len
    }

    /// An entry.
    ///
    /// # Panics
    /// If the table is shorter.
    #[inline]
    pub fn entry(&self, index: usize, make: impl Fn(usize) -> T) -> &T {
        match self.first.get(index) {
            Some(entry) => entry,
            None => self.entry_of_block(index, make),
        }
    }

    #[inline(never)]
    fn entry_of_block(&self, index: usize, make: impl Fn(usize) -> T) -> &T {
        let place = index - FIRST;
        let make_block = || self.indexes_of_block(place / BLOCK).map(make).collect();
        &self.blocks[place / BLOCK].get_or_init(make_block)[place % BLOCK]
    }

    /// The entries that have been made, with their indexes.
    pub fn made(&self) -> impl Iterator<Item = (usize, &T)> {
        let blocks = self.blocks.iter().enumerate().flat_map(|(number, block)| {
            let entries = block.get().into_iter().flatten();
            (FIRST + number * BLOCK..).zip(entries)
        });
        self.first.iter().enumerate().chain(blocks)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn entries_beyond_the_first_are_made_in_blocks_when_one_of_them_is_needed() {
        let table: Sparse<Cell<usize>, 4> = Sparse::new(4 + 2 * BLOCK + 3, Cell::new);
        let made = || table.made().map(|(index, entry)| (index, entry.get())).collect::<Vec<_>>();
        assert_eq!((table.len(), made()), (4 + 2 * BLOCK + 3, vec![(0, 0), (1, 1), (2, 2), (3, 3)]));
        let last = 4 + 2 * BLOCK;
        table.entry(last + 1, Cell::new).set(7);
        assert_eq!(made()[4..], [(last, last), (last + 1, 7), (last + 2, last + 2)]);
        table.entry(4, Cell::new).set(9);
        assert_eq!((made().len(), made()[4], made()[5]), (4 + BLOCK + 3, (4, 9), (5, 5)));
        assert_eq!(table.entry(last + 1, |_| unreachable!("it is there")).get(), 7);
    }

    #[test]
    fn a_longer_table_keeps_its_entries() {
        for from in [0, 2, 4, 5, 4 + BLOCK, 7 + BLOCK] {
            for to in [from, from + 1, 4 + BLOCK, 9 + 3 * BLOCK] {
                let mut table: Sparse<Cell<usize>, 4> = Sparse::new(from, Cell::new);
                if from > 0 {
                    table.entry(from - 1, Cell::new).set(7000);
                }
                table.grow(to, Cell::new);
                let len = from.max(to);
                assert_eq!(table.len(), len, "{from} to {to}");
                let expected = |index: usize| if index + 1 == from { 7000 } else { index };
                assert!((0..len).all(|index| table.entry(index, Cell::new).get() == expected(index)), "{from} to {to}");
                assert!(table.made().map(|(index, _)| index).eq(0..len), "{from} to {to}");
            }
        }
    }

    #[test]
    #[should_panic(expected = "index out of bounds")]
    fn there_is_no_entry_beyond_the_end() {
        let table: Sparse<usize, 4> = Sparse::new(6, |index| index);
        table.entry(4 + BLOCK, |index| index);
    }
}
