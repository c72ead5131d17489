//! A random map with blocks of several sizes.
//!
//! Tried with fio 3.33: if the drawn block was visited in this pass, the next unvisited block is used instead, and an I/O is
//! cut short at the next visited block. So a pass has more and smaller I/Os than its sizes suggest.

use std::collections::BTreeMap;

use crate::stream::Stream;

/// The blocks, in units of the smallest size, that were not visited in this pass.
#[derive(Clone, Debug)]
pub(super) struct Unvisited {
    block_bytes: u64,
    blocks: u64,
    /// Bitmap of visited blocks in words of 64. Words of zero are left out, since most of a large region is never
    /// visited.
    visited: BTreeMap<u64, u64>,
    stream: Stream,
}

impl Unvisited {
    pub(super) fn new(block_bytes: u64, blocks: u64, stream: Stream) -> Unvisited {
        Unvisited { block_bytes, blocks, visited: BTreeMap::new(), stream }
    }

    /// A block at random; `None` at the end of a pass.
    pub(super) fn next(&mut self) -> Option<u64> {
        let drawn = self.stream.below(self.blocks);
        self.first_unvisited_from(drawn).or_else(|| self.first_unvisited_from(0))
    }

    /// The first unvisited block from there on.
    fn first_unvisited_from(&self, block: u64) -> Option<u64> {
        let mut word_index = block / 64;
        // Blocks before it count as visited.
        let mut before = (1 << (block % 64)) - 1;
        for (&index, &word) in self.visited.range(word_index..) {
            if index != word_index || word | before != u64::MAX {
                break;
            }
            (word_index, before) = (word_index + 1, 0);
        }
        let word = self.visited.get(&word_index).copied().unwrap_or(0) | before;
        let found = 64 * word_index + u64::from(word.trailing_ones());
        (found < self.blocks).then_some(found)
    }

    /// Marks the blocks of an I/O as visited; returns its possible length.
    pub(super) fn visit(&mut self, start_bytes: u64, bytes: u32) -> u32 {
        let first = start_bytes / self.block_bytes;
        let requested_blocks = u64::from(bytes).div_ceil(self.block_bytes);
        let end = (first + requested_blocks).min(self.blocks);
        let mut block = first;
        while block < end {
            let word = self.visited.entry(block / 64).or_default();
            let bit = (block % 64) as u32;
            let blocks_in_word = (end - block).min(64 - u64::from(bit)) as u32;
            let free = (*word >> bit).trailing_zeros().min(blocks_in_word);
            *word |= u64::MAX.checked_shr(64 - free).unwrap_or(0) << bit;
            block += u64::from(free);
            if free < blocks_in_word {
                break;
            }
        }
        if block == end { bytes } else { ((block - first) * self.block_bytes) as u32 }
    }

    /// Begins a new pass.
    pub(super) fn restart(&mut self) {
        self.visited.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::Purpose;

    fn unvisited(blocks: u64) -> Unvisited {
        Unvisited::new(512, blocks, Stream::new(1, 0, Purpose::Offset))
    }

    #[test]
    fn an_io_is_cut_short_where_it_meets_one_before_it() {
        let mut map = unvisited(1000);
        assert_eq!(map.visit(512 * 70, 512), 512);
        assert_eq!(map.visit(512 * 60, 64 << 10), 512 * 10);
        assert_eq!(map.visit(512 * 71, 64 << 10), 64 << 10, "over several words");
        assert_eq!(map.visit(512 * 199, 1000), 1000, "as long as it was, if nothing is in its way");
        assert_eq!(
            (map.first_unvisited_from(0), map.first_unvisited_from(60), map.first_unvisited_from(150)),
            (Some(0), Some(201), Some(201))
        );
        assert_eq!(map.visit(512 * 998, 1024), 1024);
        assert_eq!((map.first_unvisited_from(998), map.first_unvisited_from(997)), (None, Some(997)));
        map.restart();
        assert_eq!(map.first_unvisited_from(60), Some(60));
    }

    #[test]
    fn a_pass_visits_each_block_once() {
        for blocks in [1, 63, 64, 65, 1000] {
            let mut map = unvisited(blocks);
            let mut visits = vec![0; blocks as usize];
            while let Some(block) = map.next() {
                let wanted = (1 + block % 9).min(blocks - block);
                let given = map.visit(512 * block, 512 * wanted as u32) / 512;
                assert!(given >= 1 && u64::from(given) <= wanted);
                visits[block as usize..][..given as usize].iter_mut().for_each(|visits| *visits += 1);
            }
            assert!(visits.iter().all(|&visits| visits == 1), "{blocks}: {visits:?}");
        }
    }
}
