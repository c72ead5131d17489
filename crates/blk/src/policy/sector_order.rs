//! Index of requests by sector, for a whole device.
//!
//! A row of sorted blocks of pairs. A search compares adjacent keys without unpredictable branches, whereas a tree of a
//! few dozen requests, the usual number, has one at every level. Equal sectors keep the order of insertion. Cost: O(log
//! n) comparisons and one short memory move; with many thousands of requests, moving the row of blocks would become
//! noticeable.

use std::cell::Cell;

/// Pairs in a block. A full block is split in two.
const BLOCK: usize = 32;

/// A block is searched in four groups of this many pairs.
const GROUP: usize = BLOCK / 4;

/// Counters of [`Starts`].
const COUNTERS: usize = 256;

/// An index of (sector, request) pairs. The user has to know the sector that a request was inserted with, which is
/// below `u64::MAX`.
#[derive(Clone, Debug, Default)]
pub struct SectorOrder {
    /// Non-empty blocks in order.
    blocks: Vec<Block>,
    /// Result of the last search: a found request is often removed next.
    hint: Cell<Position>,
    starts: Starts,
}

#[derive(Clone, Debug)]
struct Block {
    len: usize,
    /// Unused pairs at the end have the sector [`PADDING`].
    pairs: [Pair; BLOCK],
}

#[derive(Clone, Copy, Debug)]
struct Pair {
    sector: u64,
    id: u32,
}

const PADDING: Pair = Pair { sector: u64::MAX, id: u32::MAX };

/// The position of a pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Position {
    block: usize,
    index: usize,
}

/// Counting filter over start sectors: decides most look-ups of an exact sector.
#[derive(Clone, Debug)]
struct Starts([u16; COUNTERS]);

impl Default for Starts {
    fn default() -> Self {
        Starts([0; COUNTERS])
    }
}

impl Starts {
    #[inline]
    fn class(sector: u64) -> usize {
        (sector.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as usize
    }

    #[inline]
    fn add(&mut self, sector: u64) {
        let count = &mut self.0[Self::class(sector)];
        *count = count.saturating_add(1);
    }

    /// A saturated counter stays saturated, which only causes false positives.
    #[inline]
    fn remove(&mut self, sector: u64) {
        let count = &mut self.0[Self::class(sector)];
        *count -= u16::from(*count != u16::MAX);
    }

    #[inline]
    fn may_have(&self, sector: u64) -> bool {
        self.0[Self::class(sector)] != 0
    }
}

impl Block {
    const EMPTY: Block = Block { len: 0, pairs: [PADDING; BLOCK] };

    fn pairs(&self) -> &[Pair] {
        &self.pairs[..self.len]
    }

    #[inline]
    fn last(&self) -> u64 {
        self.pairs[self.len - 1].sector
    }

    /// Number of pairs with a sector below this one.
    #[inline]
    fn below(&self, sector: u64) -> usize {
        // Two rounds of independent comparisons, the same for any length: a loop with an early exit would be
        // mispredicted.
        let is_below = |index: usize| usize::from(self.pairs[index].sector < sector);
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

impl SectorOrder {
    /// Whether there is nothing in it.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// The request with the lowest sector of at least `sector`, of equal ones the oldest.
    #[inline]
    #[must_use]
    pub fn at_or_after(&self, sector: u64) -> Option<u32> {
        let at = self.seek(sector)?;
        self.hint.set(at);
        Some(self.pair(at).id)
    }

    /// The oldest request that begins at `sector`.
    #[inline]
    #[must_use]
    pub fn find(&self, sector: u64) -> Option<u32> {
        if !self.starts.may_have(sector) {
            return None;
        }
        let pair = self.pair(self.seek(sector)?);
        (pair.sector == sector).then_some(pair.id)
    }

    /// The request behind `id`, which begins at `sector`.
    #[inline]
    #[must_use]
    pub fn next(&self, id: u32, sector: u64) -> Option<u32> {
        let at = self.after(self.position(id, sector)?)?;
        Some(self.pair(at).id)
    }

    /// The request before `id`, which begins at `sector`.
    #[inline]
    #[must_use]
    pub fn previous(&self, id: u32, sector: u64) -> Option<u32> {
        let at = self.position(id, sector)?;
        if at.index > 0 {
            return Some(self.blocks[at.block].pairs[at.index - 1].id);
        }
        self.blocks[at.block.checked_sub(1)?].pairs().last().map(|pair| pair.id)
    }

    /// Inserts `id` behind all that begin at `sector`.
    #[inline]
    pub fn insert(&mut self, id: u32, sector: u64) {
        self.starts.add(sector);
        let mut block = self.block_of(sector + 1);
        if block == self.blocks.len() {
            if block == 0 {
                self.blocks.push(Block::EMPTY);
            } else {
                block -= 1;
            }
        }
        if self.blocks[block].len == BLOCK {
            self.split(block);
            block += usize::from(self.blocks[block].last() <= sector);
        }
        let block = &mut self.blocks[block];
        block.insert(block.below(sector + 1), Pair { sector, id });
    }

    /// Removes `id`, which was inserted with `sector`. Returns whether it was present.
    #[inline]
    pub fn remove(&mut self, id: u32, sector: u64) -> bool {
        let Some(at) = self.position(id, sector) else { return false };
        self.starts.remove(sector);
        let block = &mut self.blocks[at.block];
        block.remove(at.index);
        if block.len <= BLOCK / 4 {
            self.join(at.block);
        }
        true
    }

    /// Puts another request in the place of one that was inserted with this sector.
    pub fn replace(&mut self, id: u32, sector: u64, with: u32) {
        if let Some(at) = self.position(id, sector) {
            self.blocks[at.block].pairs[at.index].id = with;
        }
    }

    #[inline]
    fn pair(&self, at: Position) -> &Pair {
        &self.blocks[at.block].pairs[at.index]
    }

    /// The first block that ends at or after `sector`.
    #[inline]
    fn block_of(&self, sector: u64) -> usize {
        // There is nearly always one block, which needs no search.
        match self.blocks.as_slice() {
            [] => 0,
            [only] => usize::from(only.last() < sector),
            blocks => blocks.partition_point(|block| block.last() < sector),
        }
    }

    #[inline]
    fn seek(&self, sector: u64) -> Option<Position> {
        let block = self.block_of(sector);
        let index = self.blocks.get(block)?.below(sector);
        Some(Position { block, index })
    }

    /// The position of `id`: that of the last search, the first pair of its sector, or shortly after it.
    #[inline]
    fn position(&self, id: u32, sector: u64) -> Option<Position> {
        let hint = self.hint.get();
        if self.blocks.get(hint.block).is_some_and(|block| block.pairs[hint.index].id == id) {
            return Some(hint);
        }
        let mut at = self.seek(sector)?;
        while self.pair(at).id != id {
            at = self.after(at)?;
            if self.pair(at).sector != sector {
                return None;
            }
        }
        Some(at)
    }

    #[inline]
    fn after(&self, at: Position) -> Option<Position> {
        if at.index + 1 < self.blocks[at.block].len {
            return Some(Position { index: at.index + 1, ..at });
        }
        (at.block + 1 < self.blocks.len()).then_some(Position { block: at.block + 1, index: 0 })
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
            let mut order = SectorOrder::default();
            let mut model: Vec<(u64, u32)> = Vec::new();
            for (id, sector) in steps {
                if let Some(at) = model.iter().position(|&(_, other)| other == id) {
                    prop_assert!(order.remove(id, model[at].0));
                    model.remove(at);
                } else {
                    prop_assert!(!order.remove(id, sector));
                    order.insert(id, sector);
                    let at = model.partition_point(|&(other, _)| other <= sector);
                    model.insert(at, (sector, id));
                }
                prop_assert!(order.blocks.iter().all(|block| (1..=BLOCK).contains(&block.len)));
                let held: Vec<(u64, u32)> = order
                    .blocks
                    .iter()
                    .flat_map(|block| block.pairs().iter().map(|pair| (pair.sector, pair.id)))
                    .collect();
                prop_assert_eq!(&held, &model);
                prop_assert_eq!(order.is_empty(), model.is_empty());
                prop_assert!(order.blocks.iter().all(|block| block.pairs[block.len..].iter().all(|p| p.sector == u64::MAX)));
                let lowest = model.iter().find(|&&(other, _)| other >= sector);
                prop_assert_eq!(order.at_or_after(sector), lowest.map(|&(_, id)| id));
                let exact = lowest.filter(|&&(other, _)| other == sector);
                prop_assert_eq!(order.find(sector), exact.map(|&(_, id)| id));
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
        let mut starts = Starts::default();
        starts.add(4711);
        assert!(starts.may_have(4711));
        assert!((0..1000u64).filter(|sector| starts.may_have(sector * 8)).count() < 20);
        starts.remove(4711);
        assert!(!starts.may_have(4711));
    }
}
