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

/// Garbage is collected below this number of free blocks, one for the host and one for moved pages; one more if hot ones are apart.
const FREE_BLOCKS_MIN: usize = 2;

/// A valid page of a block of hot pages counts like this many others where the block to collect is chosen: those that are left in it will
/// soon be written again, too (assumed).
const HOT_PAGE_COST: u32 = 2;

/// Writes of each page in the mean until the numbers of writes are halved.
const HISTORY: usize = 4;

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
    /// If pages that are often written go to blocks of their own: what is known of them.
    heat: Option<Heat>,
    /// Programmed pages per page of the host, averaged.
    amplification: f64,
}

/// How often pages were written recently.
#[derive(Clone, Debug)]
struct Heat {
    /// By page; halved once [`HISTORY`] times as many pages were written as there are, so that chance makes few pages hot.
    writes: Vec<u16>,
    /// Their sum.
    all_writes: u64,
    until_halved: usize,
    /// The open block of hot pages.
    open: OpenBlock,
    /// By block: whether hot pages were put into it.
    is_hot: Vec<bool>,
}

impl Heat {
    fn new(pages: usize, blocks: usize, open: OpenBlock) -> Heat {
        let mut is_hot = vec![false; blocks];
        is_hot[open.block as usize] = true;
        Heat { writes: vec![0; pages], all_writes: 0, until_halved: HISTORY * pages, open, is_hot }
    }

    /// Whether a page was written more than three times as often as the mean.
    #[inline]
    fn is_hot(&self, page: u32) -> bool {
        u64::from(self.writes[page as usize]) * self.writes.len() as u64 > 3 * self.all_writes
    }

    /// A page is written.
    #[inline]
    fn record(&mut self, page: u32) {
        if self.until_halved == 0 {
            self.writes.iter_mut().for_each(|writes| *writes /= 2);
            self.all_writes = self.writes.iter().map(|&writes| u64::from(writes)).sum();
            self.until_halved = HISTORY * self.writes.len();
        }
        self.until_halved -= 1;
        let writes = &mut self.writes[page as usize];
        if let Some(more) = writes.checked_add(1) {
            *writes = more;
            self.all_writes += 1;
        }
    }
}

/// A block being filled.
#[derive(Clone, Copy, Debug)]
struct OpenBlock {
    block: u32,
    filled: u32,
}

impl Translation {
    pub(super) fn new(
        parameters: &TranslationParameters,
        by_heat: bool,
        capacity_pages: u64,
        random: &mut Random,
    ) -> Translation {
        let block_pages = parameters.block_pages;
        let pages_max = u64::from(NONE / 4);
        let pages = (capacity_pages / u64::from(parameters.scale)).clamp(1, pages_max) as u32;
        let with_spare = f64::from(pages) * (1.0 + parameters.over_provisioning_percent / 100.0);
        let open_blocks = if by_heat { 3 } else { 2 };
        let blocks = (with_spare / f64::from(block_pages)).ceil() as u32 + open_blocks + open_blocks;
        let mut map = Translation {
            scale: u64::from(parameters.scale),
            block_pages,
            positions: vec![NONE; pages as usize],
            contents: vec![NONE; blocks as usize * block_pages as usize],
            valid: vec![0; blocks as usize],
            collectable: vec![NOT_COLLECTABLE; blocks as usize],
            free: (open_blocks..blocks).rev().collect(),
            host: OpenBlock { block: 0, filled: 0 },
            moving: OpenBlock { block: 1, filled: 0 },
            heat: by_heat.then(|| Heat::new(pages as usize, blocks as usize, OpenBlock { block: 2, filled: 0 })),
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
                self.collectable[block] = self.cost(block);
            }
        }
        if let Some(heat) = &mut self.heat {
            heat.record(page);
        }
        if !self.append_hot(page) {
            let mut host = self.host;
            self.append(&mut host, page);
            self.host = host;
        }
        let mut moved = 0;
        while self.free.len() < FREE_BLOCKS_MIN + usize::from(self.heat.is_some()) {
            match self.collect() {
                Some(pages) => moved += pages,
                None => break,
            }
        }
        self.amplification += (1.0 + f64::from(moved) - self.amplification) / WINDOW;
    }

    /// Puts a page into the open block of hot pages if it is one. Returns whether it is.
    #[inline]
    fn append_hot(&mut self, page: u32) -> bool {
        let Some(heat) = self.heat.as_ref().filter(|heat| heat.is_hot(page)) else { return false };
        let mut open = heat.open;
        let before = open.block;
        self.append(&mut open, page);
        if let Some(heat) = &mut self.heat {
            heat.open = open;
            if open.block != before {
                heat.is_hot[open.block as usize] = true;
            }
        }
        true
    }

    /// What counts where the block to collect is chosen: its valid pages.
    #[inline]
    fn cost(&self, block: usize) -> u32 {
        let valid = self.valid[block];
        match &self.heat {
            Some(_) if valid == self.block_pages => NOT_COLLECTABLE - 1,
            Some(heat) if heat.is_hot[block] => HOT_PAGE_COST * valid,
            _ => valid,
        }
    }

    fn append(&mut self, open: &mut OpenBlock, page: u32) {
        if open.filled == self.block_pages {
            self.collectable[open.block as usize] = self.cost(open.block as usize);
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
        let cost = *self.collectable.iter().min()?;
        let block = self.collectable.iter().position(|&of| of == cost)?;
        let moved = self.valid[block];
        if cost == NOT_COLLECTABLE || moved >= self.block_pages {
            return None;
        }
        let first = block * self.block_pages as usize;
        for position in first..first + self.block_pages as usize {
            let page = std::mem::replace(&mut self.contents[position], NONE);
            if page != NONE && !self.append_hot(page) {
                let mut moving = self.moving;
                self.append(&mut moving, page);
                self.moving = moving;
            }
        }
        self.valid[block] = 0;
        self.collectable[block] = NOT_COLLECTABLE;
        self.free.push(block as u32);
        if let Some(heat) = &mut self.heat {
            heat.is_hot[block] = false;
        }
        Some(moved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(over_provisioning_percent: f64, preconditioned: bool) -> Translation {
        map_by_heat(over_provisioning_percent, preconditioned, false)
    }

    fn map_by_heat(over_provisioning_percent: f64, preconditioned: bool, by_heat: bool) -> Translation {
        let parameters = TranslationParameters {
            over_provisioning_percent,
            scale: 16,
            block_pages: 64,
            fill_percent: None,
            preconditioned,
        };
        Translation::new(&parameters, by_heat, 16 * 50_000, &mut Random::from_seed(1))
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
    fn blocks_of_their_own_for_hot_pages_lower_the_amplification_of_skewed_writes_only() {
        const PAGES: u64 = 16 * 50_000;
        // Nine in ten writes go to a tenth of the pages.
        let skewed = |_: u64, random: &mut Random| match random.below(10) {
            0 => PAGES / 10 + random.below(PAGES - PAGES / 10),
            _ => random.below(PAGES / 10),
        };
        let of = |by_heat: bool| amplification_of(&mut map_by_heat(10.0, true, by_heat), skewed);
        let [mixed, apart] = [false, true].map(of);
        assert!(apart - 1.0 < 0.8 * (mixed - 1.0), "{mixed} {apart}");
        let uniform =
            |by_heat: bool| amplification_of(&mut map_by_heat(10.0, true, by_heat), |_, random| random.below(PAGES));
        let [mixed, apart] = [false, true].map(uniform);
        assert!((0.9..1.1).contains(&(apart / mixed)), "{mixed} {apart}");
    }

    #[test]
    fn sequential_writes_do_not_amplify() {
        let measured = amplification_of(&mut map(7.0, true), |n, _| n % (16 * 50_000));
        assert!(measured < 1.02, "{measured}");
    }

    #[test]
    fn every_logical_page_is_in_exactly_one_place() {
        for by_heat in [false, true] {
            let mut map = map_by_heat(10.0, true, by_heat);
            let mut random = Random::from_seed(3);
            for _ in 0..100_000 {
                let below = if random.below(2) == 0 { 500 } else { 50_000 };
                map.write_page(random.below(below) as u32);
            }
            for (page, &position) in map.positions.iter().enumerate() {
                assert_eq!(map.contents[position as usize] as usize, page);
            }
            assert_eq!(map.contents.iter().filter(|&&page| page != NONE).count(), 50_000);
            assert_eq!(map.valid.iter().sum::<u32>(), 50_000);
        }
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
