//! Tables of which mostly few entries are used: they are made in blocks, when the first of a block is needed.

use std::sync::OnceLock;

/// A table of `BLOCK` entries a block. A table of a single block has it from the beginning, so that small ones allocate nothing later.
///
/// An entry can be changed only through itself: it is a lock, or made of words.
pub struct Sparse<T, const BLOCK: usize> {
    blocks: Vec<OnceLock<Box<[T]>>>,
    len: usize,
}

impl<T, const BLOCK: usize> Sparse<T, BLOCK> {
    /// A table of `len` entries; `make` makes one from its index.
    pub fn new(len: usize, make: impl Fn(usize) -> T) -> Self {
        let blocks = len.div_ceil(BLOCK);
        let table = Sparse { blocks: (0..blocks).map(|_| OnceLock::new()).collect(), len };
        if blocks == 1 {
            table.make_block(0, make);
        }
        table
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Makes a shorter table this long.
    pub fn grow(&mut self, len: usize, make: impl Fn(usize) -> T) {
        let last = self.blocks.last_mut().and_then(OnceLock::take);
        let old = self.len;
        self.len = len.max(old);
        self.blocks.resize_with(self.len.div_ceil(BLOCK), OnceLock::new);
        if let Some(entries) = last {
            // The last block may have been incomplete.
            let number = (old - 1) / BLOCK;
            let mut entries = entries.into_vec();
            entries.extend((old..self.len.min((number + 1) * BLOCK)).map(make));
            self.blocks[number] = OnceLock::from(entries.into_boxed_slice());
        }
    }

    /// An entry, which is made if it is the first of its block.
    ///
    /// # Panics
    /// If the table is shorter.
    #[inline]
    pub fn entry(&self, index: usize, make: impl Fn(usize) -> T) -> &T {
        let block = match self.blocks[index / BLOCK].get() {
            Some(block) => block,
            None => self.make_block(index / BLOCK, make),
        };
        &block[index % BLOCK]
    }

    #[cold]
    fn make_block(&self, number: usize, make: impl Fn(usize) -> T) -> &[T] {
        let indexes = number * BLOCK..self.len.min((number + 1) * BLOCK);
        self.blocks[number].get_or_init(|| indexes.map(make).collect())
    }

    /// The entries that have been made, with their indexes.
    pub fn made(&self) -> impl Iterator<Item = (usize, &T)> {
        let blocks = self.blocks.iter().enumerate();
        blocks.filter_map(|(number, block)| Some((number, block.get()?))).flat_map(|(number, block)| {
            block.iter().enumerate().map(move |(index, entry)| (number * BLOCK + index, entry))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn entries_are_made_in_blocks_when_the_first_of_them_is_needed() {
        let table: Sparse<Cell<usize>, 4> = Sparse::new(10, Cell::new);
        assert_eq!((table.len(), table.made().count()), (10, 0));
        table.entry(9, Cell::new).set(90);
        table.entry(5, Cell::new).set(50);
        let made: Vec<_> = table.made().map(|(index, entry)| (index, entry.get())).collect();
        assert_eq!(made, [(4, 4), (5, 50), (6, 6), (7, 7), (8, 8), (9, 90)]);
        assert_eq!(table.entry(9, |_| unreachable!("it is there")).get(), 90);
    }

    #[test]
    fn a_longer_table_keeps_its_entries() {
        for (from, to, made) in [(2, 3, 3), (2, 4, 4), (3, 9, 4), (4, 9, 4), (0, 3, 0), (9, 2, 1)] {
            let mut table: Sparse<Cell<usize>, 4> = Sparse::new(from, Cell::new);
            if from > 0 {
                table.entry(from - 1, Cell::new).set(70);
            }
            table.grow(to, Cell::new);
            assert_eq!((table.len(), table.made().count()), (from.max(to), made), "{from} to {to}");
            let value = |index: usize| table.entry(index, Cell::new).get();
            let expected = |index: usize| if index + 1 == from { 70 } else { index };
            assert!((0..from.max(to)).all(|index| value(index) == expected(index)), "{from} to {to}");
        }
    }

    #[test]
    fn a_table_of_one_block_is_made_at_once() {
        let made = |len| Sparse::<usize, 4>::new(len, |index| index).made().count();
        assert_eq!([0, 1, 4, 5].map(made), [0, 1, 4, 0]);
    }
}
