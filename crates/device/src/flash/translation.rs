//! The scaled page map of the drive: of each group of neighbouring pages one is mapped, and the others are assumed to
//! behave the same. Write amplification depends on which fraction of the pages is rewritten when, not on their number,
//! so a map of some hundred thousand pages represents a terabyte (and takes some megabytes).
//!
//! New data goes to an open block. When free blocks run out, the block with the fewest valid pages is collected
//! (greedy): its valid pages move to another open block, and it is erased.

use super::parameters::TranslationParameters;
use crate::random::Random;

/// Marks the absence of a page.
const NONE: u32 = u32::MAX;

/// A block that must not be collected.
const NOT_COLLECTABLE: u32 = u32::MAX;

/// Garbage is collected below this number of free blocks: one for the host and one for moved pages.
const FREE_BLOCKS_MIN: usize = 2;

/// Sampled writes over which the amplification is averaged.
const WINDOW: f64 = 2048.0;

#[derive(Clone, Debug)]
pub(super) struct Translation {
    scale: u64,
    block_pages: u32,
    /// For each mapped logical page its position: block times `block_pages` plus page.
    positions: Vec<u32>,
    /// For each position its logical page.
    contents: Vec<u32>,
    /// For each block the number of valid pages.
    valid: Vec<u32>,
    /// The same for blocks that can be collected; [`NOT_COLLECTABLE`] for open or free ones. A separate, branch-free array, because the
    /// minimum is searched often: the compiler vectorises the search.
    collectable: Vec<u32>,
    free: Vec<u32>,
    host: OpenBlock,
    moving: OpenBlock,
    /// Programmed pages per page of the host, averaged.
    amplification: f64,
}

/// A block being filled.
#[derive(Clone, Copy, Debug)]
struct OpenBlock {
    block: u32,
    filled: u32,
}

impl Translation {
    pub(super) fn new(parameters: &TranslationParameters, capacity_pages: u64, random: &mut Random) -> Translation {
        let block_pages = parameters.block_pages;
        let pages_max = u64::from(NONE / 4);
        let pages = (capacity_pages / u64::from(parameters.scale)).clamp(1, pages_max) as u32;
        let with_spare = f64::from(pages) * (1.0 + parameters.over_provisioning_percent / 100.0);
        let blocks = (with_spare / f64::from(block_pages)).ceil() as u32 + 2 + FREE_BLOCKS_MIN as u32;
        let mut map = Translation {
            scale: u64::from(parameters.scale),
            block_pages,
            positions: vec![NONE; pages as usize],
            contents: vec![NONE; blocks as usize * block_pages as usize],
            valid: vec![0; blocks as usize],
            collectable: vec![NOT_COLLECTABLE; blocks as usize],
            free: (2..blocks).rev().collect(),
            host: OpenBlock { block: 0, filled: 0 },
            moving: OpenBlock { block: 1, filled: 0 },
            amplification: 1.0,
        };
        map.fill(parameters, random);
        map
    }

    /// Writes the pages that hold data when the load starts, in order, and, on a preconditioned drive, over and over at random.
    fn fill(&mut self, parameters: &TranslationParameters, random: &mut Random) {
        let pages = self.positions.len() as u64;
        let Some(percent) = parameters.fill_percent else {
            (0..pages).for_each(|page| self.write_page(page as u32));
            if parameters.preconditioned {
                (0..pages * 2).for_each(|_| self.write_page(random.below(pages) as u32));
            }
            return;
        };
        let filled: Vec<u32> = (0..pages as u32)
            .filter(|_| (random.below(1 << 20) as f64) < percent / 100.0 * f64::from(1 << 20))
            .collect();
        filled.iter().for_each(|&page| self.write_page(page));
        if parameters.preconditioned && !filled.is_empty() {
            (0..filled.len() * 2).for_each(|_| self.write_page(filled[random.below(filled.len() as u64) as usize]));
        }
    }

    /// The host writes these sectors.
    #[inline]
    pub(super) fn write(&mut self, sector: u64, sectors: u32) {
        let (first, last) = (sector / 8, (sector + u64::from(sectors).max(1) - 1) / 8);
        for group in first / self.scale..=last / self.scale {
            // The mapped page of the group: not always the first, so that strided writes do not hit all or none of
            // them.
            let mixed = group.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
            let offset = (mixed * self.scale) >> 32;
            let page = group * self.scale + offset;
            if (first..=last).contains(&page) && group < self.positions.len() as u64 {
                self.write_page(group as u32);
            }
        }
    }

    /// Programmed pages per page that the host writes.
    #[inline]
    pub(super) fn amplification(&self) -> f64 {
        self.amplification
    }

    /// Writes a mapped page.
    fn write_page(&mut self, page: u32) {
        let old = self.positions[page as usize];
        if old != NONE {
            self.contents[old as usize] = NONE;
            let block = (old / self.block_pages) as usize;
            self.valid[block] -= 1;
            if self.collectable[block] != NOT_COLLECTABLE {
                self.collectable[block] = self.valid[block];
            }
        }
        let mut host = self.host;
        self.append(&mut host, page);
        self.host = host;
        let mut moved = 0;
        while self.free.len() < FREE_BLOCKS_MIN {
            match self.collect() {
                Some(pages) => moved += pages,
                None => break,
            }
        }
        self.amplification += (1.0 + f64::from(moved) - self.amplification) / WINDOW;
    }

    fn append(&mut self, open: &mut OpenBlock, page: u32) {
        if open.filled == self.block_pages {
            self.collectable[open.block as usize] = self.valid[open.block as usize];
            // Collection keeps some blocks free; the other open block is never full of valid pages.
            let Some(block) = self.free.pop() else { return };
            *open = OpenBlock { block, filled: 0 };
        }
        let position = open.block * self.block_pages + open.filled;
        open.filled += 1;
        self.positions[page as usize] = position;
        self.contents[position as usize] = page;
        self.valid[open.block as usize] += 1;
    }

    /// Collects the block with the fewest valid pages, and returns the number of moved pages. `None` if that would gain
    /// nothing.
    fn collect(&mut self) -> Option<u32> {
        let moved = *self.collectable.iter().min()?;
        if moved >= self.block_pages {
            return None;
        }
        let block = self.collectable.iter().position(|&valid| valid == moved)?;
        let mut moving = self.moving;
        let first = block * self.block_pages as usize;
        for position in first..first + self.block_pages as usize {
            let page = std::mem::replace(&mut self.contents[position], NONE);
            if page != NONE {
                self.append(&mut moving, page);
            }
        }
        self.moving = moving;
        self.valid[block] = 0;
        self.collectable[block] = NOT_COLLECTABLE;
        self.free.push(block as u32);
        Some(moved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(over_provisioning_percent: f64, preconditioned: bool) -> Translation {
        let parameters = TranslationParameters {
            over_provisioning_percent,
            scale: 16,
            block_pages: 64,
            fill_percent: None,
            preconditioned,
        };
        Translation::new(&parameters, 16 * 50_000, &mut Random::from_seed(1))
    }

    fn amplification_of(map: &mut Translation, page: impl Fn(u64, &mut Random) -> u64) -> f64 {
        let mut random = Random::from_seed(2);
        for n in 0..4 * 16 * 50_000 {
            map.write(page(n, &mut random) * 8, 8);
        }
        map.amplification()
    }

    #[test]
    fn random_writes_amplify_the_less_the_more_spare_flash_there_is() {
        let measured = [7.0, 28.0, 100.0]
            .map(|spare| amplification_of(&mut map(spare, true), |_, random| random.below(16 * 50_000)));
        // Greedy collection of uniform random writes: about 1 / (2 * share of spare flash), a little more.
        assert!((6.0..9.5).contains(&measured[0]), "{measured:?}");
        assert!((2.0..2.9).contains(&measured[1]), "{measured:?}");
        assert!((1.1..1.5).contains(&measured[2]), "{measured:?}");
    }

    #[test]
    fn sequential_writes_do_not_amplify() {
        let measured = amplification_of(&mut map(7.0, true), |n, _| n % (16 * 50_000));
        assert!(measured < 1.02, "{measured}");
    }

    #[test]
    fn every_logical_page_is_in_exactly_one_place() {
        let mut map = map(10.0, true);
        let mut random = Random::from_seed(3);
        for _ in 0..100_000 {
            map.write_page(random.below(50_000) as u32);
        }
        for (page, &position) in map.positions.iter().enumerate() {
            assert_eq!(map.contents[position as usize] as usize, page);
        }
        assert_eq!(map.contents.iter().filter(|&&page| page != NONE).count(), 50_000);
        assert_eq!(map.valid.iter().sum::<u32>(), 50_000);
    }

    /// How many groups of 16 pages count a write to one of these pages.
    fn mapped(pages: impl Iterator<Item = u64>) -> usize {
        let mut map = map(10.0, false);
        let before = map.positions.clone();
        pages.for_each(|page| map.write(page * 8, 8));
        before.iter().zip(&map.positions).filter(|(before, after)| before != after).count()
    }

    #[test]
    fn one_page_represents_each_group_and_no_stride_hits_all_or_none_of_them() {
        assert_eq!(mapped(0..1600), 100);
        for first in 0..16 {
            let found = mapped((0..10_000).map(|group| group * 16 + first));
            assert!((400..900).contains(&found), "a sixteenth of 10,000 is 625: {found} of {first}");
        }
        assert_eq!(mapped(16 * 50_000..16 * 50_001), 0, "beyond the end");
        let mut whole = map(10.0, false);
        let before = whole.positions.clone();
        whole.write(0, 16 * 8);
        assert_ne!(whole.positions[0], before[0], "in one write");
        assert_eq!(whole.positions[1..], before[1..]);
    }
}
