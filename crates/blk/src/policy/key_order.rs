//! Index of requests by a number, such as their sector or their deadline.
//!
//! A row of sorted blocks of pairs. A search compares adjacent keys without unpredictable branches, whereas a tree of a
//! few dozen requests, the usual number, has one at every level. Equal keys keep the order of insertion. Cost: O(log
//! n) comparisons and one short memory move; with many thousands of requests, moving the row of blocks would become
//! noticeable.

use std::cell::Cell;

/// Pairs in a block. A full block is split in two.
const BLOCK: usize = 32;

/// A block is searched in four groups of this many pairs.
const GROUP: usize = BLOCK / 4;

/// Counters of [`KeyFilter`].
const COUNTERS: usize = 256;

/// An index of (key, request) pairs. The user has to know the key that a request was inserted with, which is
/// below `u64::MAX`.
#[derive(Clone, Debug, Default)]
pub struct KeyOrder {
    /// Non-empty blocks in order.
    blocks: Vec<Block>,
    /// Result of the last search: a found request is often removed next.
    hint: Cell<Position>,
    filter: KeyFilter,
}

#[derive(Clone, Debug)]
struct Block {
    len: usize,
    /// Unused pairs at the end have the key [`PADDING`].
    pairs: [Pair; BLOCK],
}

#[derive(Clone, Copy, Debug)]
struct Pair {
    key: u64,
    id: u32,
}

const PADDING: Pair = Pair { key: u64::MAX, id: u32::MAX };

/// The position of a pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Position {
    block: usize,
    index: usize,
}

/// Counting filter over keys: decides most look-ups of an exact key.
#[derive(Clone, Debug)]
struct KeyFilter([u16; COUNTERS]);

impl Default for KeyFilter {
    fn default() -> Self {
        KeyFilter([0; COUNTERS])
    }
}

impl KeyFilter {
    #[inline]
    fn counter_index(key: u64) -> usize {
        (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as usize
    }

    #[inline]
    fn add(&mut self, key: u64) {
        let count = &mut self.0[Self::counter_index(key)];
        *count = count.saturating_add(1);
    }

    /// A saturated counter stays saturated, which only causes false positives.
    #[inline]
    fn remove(&mut self, key: u64) {
        let count = &mut self.0[Self::counter_index(key)];
        *count -= u16::from(*count != u16::MAX);
    }

    #[inline]
    fn may_contain(&self, key: u64) -> bool {
        self.0[Self::counter_index(key)] != 0
    }
}

impl Block {
    const EMPTY: Block = Block { len: 0, pairs: [PADDING; BLOCK] };

    fn pairs(&self) -> &[Pair] {
        &self.pairs[..self.len]
    }

    #[inline]
    fn last(&self) -> u64 {
        self.pairs[self.len - 1].key
    }

    /// Number of pairs with a key below this one.
    #[inline]
    fn below(&self, key: u64) -> usize {
        // Two rounds of independent comparisons, the same for any length: a loop with an early exit would be
        // mispredicted.
        let is_below = |index: usize| usize::from(self.pairs[index].key < key);
        let groups = is_below(GROUP - 1) + is_below(2 * GROUP - 1) + is_below(3 * GROUP - 1);
        let first = groups * GROUP;
        first + (0..GROUP).map(|index| is_below((first + index) % BLOCK)).sum::<usize>()
    }

    #[inline]
    fn insert(&mut self, index: usize, pair: Pair) {
        self.pairs.copy_within(index..self.len, index + 1);
        self.pairs[index] = pair;
        self.len += 1;
    }

    #[inline]
    fn remove(&mut self, index: usize) {
        self.pairs.copy_within(index + 1..self.len, index);
        self.len -= 1;
        self.pairs[self.len] = PADDING;
    }

    /// Moves everything from `from` on to the end of `other`.
    fn move_tail(&mut self, from: usize, other: &mut Block) {
        let count = self.len - from;
        other.pairs[other.len..other.len + count].copy_from_slice(&self.pairs[from..self.len]);
        other.len += count;
        self.pairs[from..self.len].fill(PADDING);
        self.len = from;
    }
}

impl KeyOrder {
    /// Whether there is nothing in it.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// The request with the lowest key of at least `key`, of equal ones the oldest.
    #[inline]
    #[must_use]
    pub fn at_or_after(&self, key: u64) -> Option<u32> {
        let position = self.seek(key)?;
        self.hint.set(position);
        Some(self.pair(position).id)
    }

    /// The oldest request with this key.
    #[inline]
    #[must_use]
    pub fn find(&self, key: u64) -> Option<u32> {
        if !self.filter.may_contain(key) {
            return None;
        }
        let pair = self.pair(self.seek(key)?);
        (pair.key == key).then_some(pair.id)
    }

    /// The request behind `id`, which has this key.
    #[inline]
    #[must_use]
    pub fn next(&self, id: u32, key: u64) -> Option<u32> {
        let position = self.after(self.position(id, key)?)?;
        Some(self.pair(position).id)
    }

    /// The request before `id`, which has this key.
    #[inline]
    #[must_use]
    pub fn previous(&self, id: u32, key: u64) -> Option<u32> {
        let position = self.position(id, key)?;
        if position.index > 0 {
            return Some(self.blocks[position.block].pairs[position.index - 1].id);
        }
        self.blocks[position.block.checked_sub(1)?].pairs().last().map(|pair| pair.id)
    }

    /// Inserts `id` behind all that have the same key.
    #[inline]
    pub fn insert(&mut self, id: u32, key: u64) {
        self.filter.add(key);
        let mut block = self.block_of(key + 1);
        if block == self.blocks.len() {
            if block == 0 {
                self.blocks.push(Block::EMPTY);
            } else {
                block -= 1;
            }
        }
        if self.blocks[block].len == BLOCK {
            self.split(block);
            block += usize::from(self.blocks[block].last() <= key);
        }
        let block = &mut self.blocks[block];
        block.insert(block.below(key + 1), Pair { key, id });
    }

    /// Removes `id`, which was inserted with `key`. Returns whether it was present.
    #[inline]
    pub fn remove(&mut self, id: u32, key: u64) -> bool {
        let Some(position) = self.position(id, key) else { return false };
        self.filter.remove(key);
        let block = &mut self.blocks[position.block];
        block.remove(position.index);
        if block.len <= BLOCK / 4 {
            self.join(position.block);
        }
        true
    }

    /// Puts another request in the place of one that was inserted with this key.
    pub fn replace(&mut self, id: u32, key: u64, replacement: u32) {
        if let Some(position) = self.position(id, key) {
            self.blocks[position.block].pairs[position.index].id = replacement;
        }
    }

    #[inline]
    fn pair(&self, position: Position) -> &Pair {
        &self.blocks[position.block].pairs[position.index]
    }

    /// The first block that ends at or after `key`.
    #[inline]
    fn block_of(&self, key: u64) -> usize {
        // There is nearly always one block, which needs no search.
        match self.blocks.as_slice() {
            [] => 0,
            [only] => usize::from(only.last() < key),
            blocks => blocks.partition_point(|block| block.last() < key),
        }
    }

    #[inline]
    fn seek(&self, key: u64) -> Option<Position> {
        let block = self.block_of(key);
        let index = self.blocks.get(block)?.below(key);
        Some(Position { block, index })
    }

    /// The position of `id`: that of the last search, the first pair of its key, or shortly after it.
    #[inline]
    fn position(&self, id: u32, key: u64) -> Option<Position> {
        let hint = self.hint.get();
        if self.blocks.get(hint.block).is_some_and(|block| block.pairs[hint.index].id == id) {
            return Some(hint);
        }
        let mut position = self.seek(key)?;
        while self.pair(position).id != id {
            position = self.after(position)?;
            if self.pair(position).key != key {
                return None;
            }
        }
        Some(position)
    }

    #[inline]
    fn after(&self, position: Position) -> Option<Position> {
        if position.index + 1 < self.blocks[position.block].len {
            return Some(Position { index: position.index + 1, ..position });
        }
        (position.block + 1 < self.blocks.len()).then_some(Position { block: position.block + 1, index: 0 })
    }

    /// Splits a full block in the middle.
    #[cold]
    fn split(&mut self, block: usize) {
        let mut upper = Block::EMPTY;
        self.blocks[block].move_tail(BLOCK / 2, &mut upper);
        self.blocks.insert(block + 1, upper);
    }

    /// Removes a block that has become empty, or joins it with the next one if both fit into half a block.
    fn join(&mut self, block: usize) {
        if self.blocks[block].len == 0 {
            self.blocks.remove(block);
            return;
        }
        if let [this, next, ..] = &mut self.blocks[block..]
            && this.len + next.len <= BLOCK / 2
        {
            next.move_tail(0, this);
            self.blocks.remove(block + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn pairs_stay_in_the_order_of_sectors_and_then_of_insertion(
            steps in prop::collection::vec((0u32..300, 0u64..60), 1..1200),
        ) {
            let mut order = KeyOrder::default();
            let mut model: Vec<(u64, u32)> = Vec::new();
            for (id, key) in steps {
                if let Some(position) = model.iter().position(|&(_, other)| other == id) {
                    prop_assert!(order.remove(id, model[position].0));
                    model.remove(position);
                } else {
                    prop_assert!(!order.remove(id, key));
                    order.insert(id, key);
                    let position = model.partition_point(|&(other, _)| other <= key);
                    model.insert(position, (key, id));
                }
                prop_assert!(order.blocks.iter().all(|block| (1..=BLOCK).contains(&block.len)));
                let held: Vec<(u64, u32)> = order
                    .blocks
                    .iter()
                    .flat_map(|block| block.pairs().iter().map(|pair| (pair.key, pair.id)))
                    .collect();
                prop_assert_eq!(&held, &model);
                prop_assert_eq!(order.is_empty(), model.is_empty());
                prop_assert!(order.blocks.iter().all(|block| block.pairs[block.len..].iter().all(|p| p.key == u64::MAX)));
                let lowest = model.iter().find(|&&(other, _)| other >= key);
                prop_assert_eq!(order.at_or_after(key), lowest.map(|&(_, id)| id));
                let exact = lowest.filter(|&&(other, _)| other == key);
                prop_assert_eq!(order.find(key), exact.map(|&(_, id)| id));
            }
            for pair in model.windows(2) {
                prop_assert_eq!(order.next(pair[0].1, pair[0].0), Some(pair[1].1));
                prop_assert_eq!(order.previous(pair[1].1, pair[1].0), Some(pair[0].1));
            }
            if let (Some(first), Some(last)) = (model.first(), model.last()) {
                prop_assert_eq!(order.previous(first.1, first.0), None);
                prop_assert_eq!(order.next(last.1, last.0), None);
            }
        }
    }

    #[test]
    fn a_sector_where_no_request_begins_is_mostly_known_without_a_search() {
        let mut filter = KeyFilter::default();
        filter.add(4711);
        assert!(filter.may_contain(4711));
        assert!((0..1000u64).filter(|key| filter.may_contain(key * 8)).count() < 20);
        filter.remove(4711);
        assert!(!filter.may_contain(4711));
    }
}
