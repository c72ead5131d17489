//! The tag bitmap: words of bits, a hint for each CPU, and the two rules of a shallow depth (BL-56 to BL-59).

use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};

use crate::ground::ids::CpuId;
use crate::ground::kernel::ShallowRule;
use crate::ground::sharing::{Padded, Sharing, Word};
use crate::ground::sparse::Sparse;

/// How much of a bitmap an allocation may use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Depth {
    /// All of it.
    Full,
    /// A shallow depth, applied by the bitmap's [`ShallowRule`].
    Shallow(u32),
    /// Only the numbers below this one.
    Below(u32),
}

/// A set of numbers below a depth, shared by CPUs without a lock.
///
/// A small map has words of few bits in the kernel, and a shallow depth counts bits of each word. Here all bits of a
/// small map are in one machine word, so that a free one is found with one load; what is a word in the kernel is called
/// a *group*.
pub struct TagBitmap<Sh: Sharing> {
    words: Vec<Sh::Word>,
    /// Where each CPU begins its search. With a map for each hardware queue, few CPUs ever use one.
    hints: Sparse<Padded<Sh::Word>, HINTS_AT_ONCE>,
    first_hints: FirstHints,
    depth: u32,
    /// log2 of the bits in a group.
    shift: u32,
    rule: ShallowRule,
    /// The bits that exist in the last word; all other words are full.
    last_word: u64,
    /// The first bit of each group of a word.
    group_starts: u64,
    /// The bits that each shallow depth may use of a map of one word; empty for larger maps, where they are computed for each group.
    shallow_masks: Box<[u64]>,
}

/// Hints that are made with a map.
const HINTS_AT_ONCE: usize = 16;

/// Where CPUs begin their first search.
#[derive(Clone, Copy)]
struct FirstHints {
    depth: u32,
    cpus: usize,
    /// They are drawn; otherwise they are spread evenly.
    seed: Option<u64>,
}

impl FirstHints {
    fn of(&self, cpu: usize) -> u64 {
        let depth = u64::from(self.depth);
        let Some(seed) = self.seed else { return cpu as u64 * depth / self.cpus as u64 };
        // The value of SplitMix64 at this place of its sequence; a few hints do not need a generator.
        let mut drawn = seed.wrapping_add(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(cpu as u64 + 1));
        drawn = (drawn ^ (drawn >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        drawn = (drawn ^ (drawn >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (((drawn ^ (drawn >> 31)) >> 32) * depth) >> 32
    }

    fn table<W: Word>(self) -> Sparse<Padded<W>, HINTS_AT_ONCE> {
        Sparse::new(self.cpus, |cpu| Padded(W::new(self.of(cpu))))
    }
}

/// log2 of the bits in a machine word.
const WORD_SHIFT: u32 = 6;

/// Largest word shift at most 6 for which at least four words exist; one word for fewer than four bits.
fn word_shift(depth: u32) -> u32 {
    let mut shift = 6;
    if depth >= 4 {
        while 4 << shift > depth {
            shift -= 1;
        }
    }
    shift
}

/// The lowest `count` bits of a word.
#[inline]
fn low_bits(count: u32) -> u64 {
    if count == 0 { 0 } else { u64::MAX >> (64 - count.min(64)) }
}

/// Bits in a word of the kernel's tag bitmap of this depth, the last word excepted.
#[must_use]
pub fn word_bits(depth: u32) -> u32 {
    1 << word_shift(depth)
}

impl<Sh: Sharing> TagBitmap<Sh> {
    /// A map of `depth` free bits. The CPU hints are spread evenly over the map, as the kernel's random ones are on average, until
    /// they are [randomized](Self::randomize_hints).
    #[must_use]
    pub fn new(depth: u32, cpus: usize, rule: ShallowRule) -> Self {
        TagBitmap::with_shift(depth, cpus, rule, word_shift(depth))
    }

    fn with_shift(depth: u32, cpus: usize, rule: ShallowRule, shift: u32) -> Self {
        let words = depth.div_ceil(1 << WORD_SHIFT);
        let first_hints = FirstHints { depth, cpus: cpus.max(1), seed: None };
        let mut map = TagBitmap {
            words: (0..words).map(|_| Sh::Word::new(0)).collect(),
            hints: first_hints.table(),
            first_hints,
            depth,
            shift,
            rule,
            last_word: low_bits(depth - (words.saturating_sub(1) << WORD_SHIFT)),
            group_starts: (0..64).step_by(1 << shift).fold(0, |starts, start| starts | 1 << start),
            shallow_masks: Box::default(),
        };
        if words == 1 {
            map.shallow_masks = (0..=depth).map(|shallow| map.usable_bits_of_word(shallow)).collect();
        }
        map
    }

    /// The bits of the only word that a shallow depth may use.
    fn usable_bits_of_word(&self, shallow: u32) -> u64 {
        let groups = 0..self.depth.div_ceil(1 << self.shift);
        groups.fold(0, |usable, group| usable | self.usable_bits_of_group(group, shallow) << (group << self.shift))
    }

    /// Number of bits.
    #[must_use]
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// Number of bits in each group but the last.
    #[must_use]
    pub fn word_bits(&self) -> u32 {
        1 << self.shift
    }

    /// Bits in group `index`.
    #[inline]
    fn bits_of_group(&self, index: u32) -> u32 {
        (self.depth - (index << self.shift)).min(1 << self.shift)
    }

    /// The bits of group `index` that a shallow depth may use: a number of each group, or its share of the whole map.
    fn usable_bits_of_group(&self, index: u32, shallow: u32) -> u64 {
        low_bits(match self.rule {
            ShallowRule::PerWord => shallow.min(self.bits_of_group(index)),
            ShallowRule::WholeMap => self.share_of_group(index, shallow),
        })
    }

    /// How many bits of group `index` an allocation may use if its shallow depth is for the whole map.
    #[inline]
    fn share_of_group(&self, index: u32, shallow: u32) -> u32 {
        let bits = self.bits_of_group(index);
        let product = u64::from(bits) * u64::from(shallow.min(self.depth));
        let depth = u64::from(self.depth);
        let extra = product % depth >= u64::from(index + 1) * u64::from(bits);
        (product / depth) as u32 + u32::from(extra)
    }

    /// Gives each CPU a random hint, as the kernel does when it creates a map.
    pub fn randomize_hints(&mut self, seed: u64) {
        self.first_hints.seed = Some(seed);
        self.hints = self.first_hints.table();
    }

    /// Where this CPU begins its search. CPUs beyond the number that the map was created for share the last one's hint.
    #[inline]
    fn hint_word(&self, cpu: CpuId) -> &Sh::Word {
        self.hints
            .entry(cpu.index().min(self.first_hints.cpus - 1), |cpu| Padded(Sh::Word::new(self.first_hints.of(cpu))))
    }

    /// Takes a free bit, if an allocation within `depth` may have one. Never waits.
    #[inline]
    pub fn try_take(&self, cpu: CpuId, depth: Depth) -> Option<u32> {
        let hint_word = self.hint_word(cpu);
        let hint = hint_word.load(Relaxed) as u32;
        let [word] = &self.words[..] else {
            // A search that succeeds nearly always does so in its first word.
            let taken = self.take_from_hint(hint, depth);
            return if taken.is_some() {
                self.update_hint(hint_word, hint, taken)
            } else {
                self.search(hint_word, hint, depth)
            };
        };
        let usable = match depth {
            Depth::Full => self.last_word,
            Depth::Below(end) => self.last_word & low_bits(end),
            Depth::Shallow(shallow) => self.shallow_masks[shallow.min(self.depth) as usize],
        };
        // With a single word, one load decides the search.
        let bit = Self::take_bit(word, usable, u64::MAX << (hint % (1 << WORD_SHIFT)));
        self.update_hint(hint_word, hint, bit.map(u64::trailing_zeros))
    }

    /// Takes the first free bit of several words from `hint` on, if it is in the same word, all of which may be taken.
    #[inline(always)]
    fn take_from_hint(&self, hint: u32, depth: Depth) -> Option<u32> {
        let end = match depth {
            Depth::Full => self.depth,
            Depth::Below(end) => end.min(self.depth),
            Depth::Shallow(_) => return None,
        };
        let index = hint >> WORD_SHIFT;
        if end >> WORD_SHIFT <= index {
            return None;
        }
        let bit = Self::take_bit(&self.words[index as usize], u64::MAX << (hint % (1 << WORD_SHIFT)), u64::MAX)?;
        Some(index << WORD_SHIFT | bit.trailing_zeros())
    }

    /// Updates the hint after a search that began at `hint` and has taken this bit.
    #[inline(always)]
    fn update_hint(&self, hint_word: &Sh::Word, hint: u32, taken: Option<u32>) -> Option<u32> {
        match taken {
            Some(tag) if tag == hint => {
                let next = tag + 1;
                hint_word.store(if next < self.depth { u64::from(next) } else { 0 }, Relaxed);
            }
            Some(_) => {}
            None => hint_word.store(0, Relaxed),
        }
        taken
    }

    /// Updates the hint as a search without success does, if the failure is known without a search: the CPU's next search begins at
    /// the first bit.
    #[inline]
    pub(crate) fn reset_hint(&self, cpu: CpuId) {
        self.hint_word(cpu).store(0, Relaxed);
    }

    /// Takes the first free bit of several words from `hint` on and around.
    #[inline(never)]
    fn search(&self, hint_word: &Sh::Word, hint: u32, depth: Depth) -> Option<u32> {
        let taken = match (depth, self.rule) {
            (Depth::Full, _) => self.search_words(hint, self.depth, u64::MAX),
            (Depth::Below(end), _) => self.search_words(hint, end.min(self.depth), u64::MAX),
            (Depth::Shallow(shallow), ShallowRule::PerWord) => {
                let per_group = low_bits(shallow.min(1 << self.shift));
                // Shares do not overlap, so a multiplication puts one into every group.
                self.search_words(hint, self.depth, per_group.wrapping_mul(self.group_starts))
            }
            (Depth::Shallow(shallow), ShallowRule::WholeMap) => {
                self.search_groups(hint, |group| low_bits(self.share_of_group(group, shallow)))
            }
        };
        self.update_hint(hint_word, hint, taken)
    }

    /// The same, for the bits below `end` that are in the `mask` of each word.
    #[inline(always)]
    fn search_words(&self, hint: u32, end: u32, mask: u64) -> Option<u32> {
        let from_hint = u64::MAX << (hint % (1 << WORD_SHIFT));
        let words = &self.words[..(end.div_ceil(1 << WORD_SHIFT) as usize).max(1)];
        let last_word = low_bits(end - ((words.len() as u32 - 1) << WORD_SHIFT));
        let first = (hint >> WORD_SHIFT) as usize;
        // A hint beyond the end counts as the first bit.
        let (first, from_hint) = if first < words.len() { (first, from_hint) } else { (0, u64::MAX) };
        let take = |index: usize, mask: u64| {
            let existing_bits = if index + 1 == words.len() { last_word } else { u64::MAX };
            let bit = Self::take_bit(&words[index], mask & existing_bits, u64::MAX)?;
            Some((index as u32) << WORD_SHIFT | bit.trailing_zeros())
        };
        take(first, mask & from_hint)
            .or_else(|| (first + 1..words.len()).find_map(|index| take(index, mask)))
            .or_else(|| (0..first).find_map(|index| take(index, mask)))
            .or_else(|| take(first, mask & !from_hint))
    }

    /// The same group by group; `usable` says which bits of a group may be taken.
    #[inline(always)]
    fn search_groups(&self, hint: u32, usable: impl Fn(u32) -> u64) -> Option<u32> {
        let first = hint >> self.shift;
        let from_hint = u64::MAX << (hint & ((1 << self.shift) - 1));
        let taken = self.take_in_group(first, from_hint & usable(first));
        if taken.is_some() {
            return taken;
        }
        let groups = self.depth.div_ceil(1 << self.shift);
        let others = (first + 1..groups).chain(0..first);
        for group in others {
            let taken = self.take_in_group(group, usable(group));
            if taken.is_some() {
                return taken;
            }
        }
        self.take_in_group(first, !from_hint & usable(first))
    }

    /// Takes a free bit of those in `mask` of one group.
    #[inline]
    fn take_in_group(&self, group: u32, mask: u64) -> Option<u32> {
        let start = group << self.shift;
        let index = (start >> WORD_SHIFT) as usize;
        let existing_bits = if index + 1 == self.words.len() { self.last_word } else { u64::MAX };
        let mask = (mask << (start & ((1 << WORD_SHIFT) - 1))) & existing_bits;
        let bit = Self::take_bit(&self.words[index], mask, u64::MAX)?;
        Some((index as u32) << WORD_SHIFT | bit.trailing_zeros())
    }

    /// Takes the lowest free bit in `mask` that is also in `preferred`, or, if there is none, the lowest free bit in `mask`.
    #[inline(always)]
    fn take_bit(word: &Sh::Word, mask: u64, preferred: u64) -> Option<u64> {
        loop {
            // `SeqCst`: sleepers depend on whether any bit is free.
            let free = !word.load(SeqCst) & mask;
            if free == 0 {
                return None;
            }
            let candidates = if free & preferred == 0 { free } else { free & preferred };
            let bit = candidates & candidates.wrapping_neg();
            if word.fetch_or(bit, Acquire) & bit == 0 {
                return Some(bit);
            }
        }
    }

    /// Takes this bit, if it is free.
    #[inline]
    pub fn try_take_exact(&self, tag: u32) -> bool {
        let bit = 1 << (tag & ((1 << WORD_SHIFT) - 1));
        tag < self.depth && self.words[(tag >> WORD_SHIFT) as usize].fetch_or(bit, Acquire) & bit == 0
    }

    /// Returns a bit; the next search of `cpu` starts there.
    #[inline]
    pub fn free(&self, tag: u32, cpu: CpuId) {
        let bit = 1 << (tag & ((1 << WORD_SHIFT) - 1));
        let previous = self.words[(tag >> WORD_SHIFT) as usize].fetch_and(!bit, SeqCst);
        debug_assert!(previous & bit != 0, "tag {tag} is freed only once");
        self.hint_word(cpu).store(u64::from(tag), Relaxed);
    }

    /// Number of bits that are taken.
    #[must_use]
    pub fn in_use(&self) -> u32 {
        self.words.iter().map(|word| word.load(Relaxed).count_ones()).sum()
    }

    /// How many sleepers are woken at once. A batch is never larger than the number of tags within the smallest shallow depth, since
    /// it might otherwise never be complete (BL-61).
    #[must_use]
    pub fn wake_batch(&self, min_shallow: Option<u32>) -> u32 {
        let usable = match min_shallow {
            None => self.depth,
            Some(min) if self.rule == ShallowRule::WholeMap => self.depth.min(min),
            Some(min) => {
                let groups = self.depth.div_ceil(1 << self.shift);
                (0..groups).map(|group| self.bits_of_group(group).min(min)).sum()
            }
        };
        wake_batch(usable)
    }
}

/// How many sleepers are woken at once where `usable` bits may be taken.
#[must_use]
pub fn wake_batch(usable: u32) -> u32 {
    (usable / 8).clamp(1, 8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::sharing::Local;
    use proptest::prelude::*;

    fn map(depth: u32, rule: ShallowRule) -> TagBitmap<Local> {
        TagBitmap::new(depth, 1, rule)
    }

    fn count(map: &TagBitmap<Local>, depth: Depth) -> usize {
        std::iter::from_fn(|| map.try_take(CpuId(0), depth)).count()
    }

    #[test]
    fn hints_that_are_drawn_lie_anywhere_in_the_map_and_depend_on_the_seed_and_the_cpu() {
        let first_tags = |seed| {
            let mut map = TagBitmap::<Local>::new(48, 64, ShallowRule::WholeMap);
            map.randomize_hints(seed);
            let take = |cpu| {
                let tag = map.try_take(CpuId(cpu), Depth::Full).unwrap();
                map.free(tag, CpuId(cpu));
                tag
            };
            (0..64).map(take).collect::<Vec<u32>>()
        };
        let tags = first_tags(1);
        assert_eq!(tags, first_tags(1));
        assert_ne!(tags, first_tags(2));
        let distinct: std::collections::BTreeSet<_> = tags.iter().collect();
        assert!(distinct.len() > 24 && tags.iter().any(|&tag| tag >= 40), "{tags:?}");
    }

    #[test]
    fn in_a_small_map_each_cpu_resumes_at_its_hint_and_wraps_around() {
        let map = TagBitmap::<Local>::new(16, 2, ShallowRule::WholeMap);
        let take = |cpu| map.try_take(CpuId(cpu), Depth::Full);
        assert_eq!((0..16).map_while(|_| take(1)).collect::<Vec<_>>(), (8..16).chain(0..8).collect::<Vec<_>>());
        assert_eq!(take(0), None);
        map.free(3, CpuId(0));
        map.free(12, CpuId(0));
        assert_eq!([take(0), take(0)], [Some(12), Some(3)], "from what it gave back last");
    }

    #[test]
    fn bitmap_words_for_depths_31_32_64_128_256_1023() {
        let bits = [31, 32, 64, 128, 256, 1023].map(|depth| map(depth, ShallowRule::PerWord).word_bits());
        assert_eq!(bits, [4, 8, 16, 32, 64, 64]);
        assert_eq!(map(3, ShallowRule::PerWord).words.len(), 1);
    }

    #[test]
    fn wake_batch_is_an_eighth_of_the_depth_between_1_and_8() {
        assert_eq!([8, 32, 64, 256].map(|depth| map(depth, ShallowRule::PerWord).wake_batch(None)), [1, 4, 8, 8]);
        assert_eq!(map(256, ShallowRule::WholeMap).wake_batch(Some(1)), 1);
        // By word there are 16 such tags, of the whole map only one.
        assert_eq!(map(1024, ShallowRule::PerWord).wake_batch(Some(1)), 2);
        assert_eq!(map(1024, ShallowRule::WholeMap).wake_batch(Some(1)), 1);
    }

    #[test]
    fn a_shallow_depth_of_10_admits_40_of_256_by_word_and_10_by_map() {
        assert_eq!(count(&map(256, ShallowRule::PerWord), Depth::Shallow(10)), 40);
        assert_eq!(count(&map(256, ShallowRule::WholeMap), Depth::Shallow(10)), 10);
    }

    #[test]
    fn the_whole_map_rule_spreads_a_shallow_depth_over_the_words() {
        // The example of the rule: 112 bits in words of 32.
        let map: TagBitmap<Local> = TagBitmap::with_shift(112, 1, ShallowRule::WholeMap, 5);
        let spread = |shallow| [0, 1, 2, 3].map(|word| map.share_of_group(word, shallow));
        assert_eq!(spread(1), [1, 0, 0, 0]);
        assert_eq!(spread(2), [1, 1, 0, 0]);
        assert_eq!(spread(5), [2, 1, 1, 1]);
        assert_eq!(spread(16), [5, 5, 4, 2]);
    }

    #[test]
    fn only_numbers_below_an_end_are_given_out_wherever_the_search_begins() {
        for (end, hint) in [(1, 0), (5, 40), (16, 16), (37, 63), (64, 10)] {
            let map = map(64, ShallowRule::PerWord);
            map.hint_word(CpuId(0)).store(hint, Relaxed);
            let mut given: Vec<u32> = std::iter::from_fn(|| map.try_take(CpuId(0), Depth::Below(end))).collect();
            given.sort_unstable();
            assert_eq!(given, (0..end).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_search_of_several_words_begins_at_the_hint_and_comes_around() {
        for (depth, whole) in [(200, Depth::Full), (256, Depth::Below(200))] {
            let map = map(depth, ShallowRule::PerWord);
            let take = |hint| {
                map.hint_word(CpuId(0)).store(hint, Relaxed);
                map.try_take(CpuId(0), whole)
            };
            assert_eq!([take(130), take(130), take(199), take(199)], [130, 131, 199, 0].map(Some));
            assert_eq!(take(210), Some(1), "a hint behind the end is one at the first");
        }
    }

    #[test]
    fn the_last_place_that_is_looked_at_is_below_the_hint_in_its_own_word() {
        let map = map(200, ShallowRule::PerWord);
        (0..200).filter(|&tag| tag != 129).for_each(|tag| assert!(map.try_take_exact(tag)));
        map.hint_word(CpuId(0)).store(140, Relaxed);
        assert_eq!([(); 2].map(|()| map.try_take(CpuId(0), Depth::Full)), [Some(129), None]);
        // Of each word 10, and these are all taken, whatever is free below the hint.
        let map = self::map(256, ShallowRule::PerWord);
        assert_eq!(count(&map, Depth::Shallow(10)), 40);
        map.hint_word(CpuId(0)).store(128 + 40, Relaxed);
        assert_eq!(map.try_take(CpuId(0), Depth::Shallow(10)), None);
        map.free(135, CpuId(0));
        map.hint_word(CpuId(0)).store(128 + 40, Relaxed);
        assert_eq!(map.try_take(CpuId(0), Depth::Shallow(10)), Some(135));
    }

    #[test]
    fn cpus_beyond_those_that_were_known_share_the_last_ones_place() {
        let map = TagBitmap::<Local>::new(16, 2, ShallowRule::WholeMap);
        let take = |cpu| map.try_take(CpuId(cpu), Depth::Full);
        assert_eq!([take(1), take(7), take(0), take(2)], [8, 9, 0, 10].map(Some));
    }

    #[test]
    fn a_certain_tag_is_given_once() {
        let map = map(64, ShallowRule::PerWord);
        assert!(map.try_take_exact(37) && !map.try_take_exact(37) && !map.try_take_exact(64));
        map.free(37, CpuId(0));
        assert!(map.try_take_exact(37));
    }

    proptest! {
        /// Otherwise the sleepers that wait for them would sleep forever if no other tag is freed.
        #[test]
        fn no_more_are_waited_for_than_there_are_of_the_smallest_shallow_depth(
            depth in 1u32..2048, min in 1u32..2048, rule in prop_oneof![Just(ShallowRule::PerWord), Just(ShallowRule::WholeMap)],
        ) {
            let map = map(depth, rule);
            let batch = map.wake_batch(Some(min)) as usize;
            let admitted = count(&map, Depth::Shallow(min));
            prop_assert!(batch <= admitted, "{batch} of {admitted}");
        }

        #[test]
        fn no_tag_is_given_twice_and_every_tag_is_given(depth in 1u32..300, hint in 0u64..300) {
            let map = map(depth, ShallowRule::WholeMap);
            map.hint_word(CpuId(0)).store(hint % u64::from(depth), Relaxed);
            let mut seen: Vec<u32> = std::iter::from_fn(|| map.try_take(CpuId(0), Depth::Full)).collect();
            seen.sort_unstable();
            prop_assert_eq!(seen, (0..depth).collect::<Vec<_>>());
            prop_assert_eq!(map.in_use(), depth);
        }

        #[test]
        fn a_whole_map_shallow_depth_admits_that_many_or_with_a_short_last_word_one_fewer(
            depth in 1u32..300, shallow in 1u32..300,
        ) {
            let map = map(depth, ShallowRule::WholeMap);
            let short = u32::from(depth % map.word_bits() != 0);
            let admitted = count(&map, Depth::Shallow(shallow)) as u32;
            let shallow = shallow.min(depth);
            prop_assert!((shallow - short..=shallow).contains(&admitted), "{} of {}", admitted, shallow);
        }
    }

    #[test]
    fn after_the_last_tag_a_cpu_continues_at_the_first_then_the_second() {
        let map = TagBitmap::<Local>::new(4, 1, ShallowRule::WholeMap);
        let take = || map.try_take(CpuId(0), Depth::Full);
        assert_eq!([(); 4].map(|()| take()), [0, 1, 2, 3].map(Some));
        (0..4).for_each(|tag| assert!(map.words[0].fetch_and(!(1 << tag), Relaxed) & (1 << tag) != 0));
        assert_eq!(take(), Some(0));
        map.words[0].fetch_and(!1, Relaxed);
        assert_eq!(take(), Some(1), "no return has moved its place");
    }

    #[test]
    fn a_share_of_the_whole_map_is_searched_from_the_hint_on_in_the_group_that_it_lies_in() {
        // 32 of each 64.
        let map = map(256, ShallowRule::WholeMap);
        let take = |hint| {
            map.hint_word(CpuId(0)).store(hint, Relaxed);
            map.try_take(CpuId(0), Depth::Shallow(128))
        };
        assert_eq!([take(64 + 10), take(64 + 10), take(64 + 31)], [74, 75, 95].map(Some));
        assert_eq!(take(64 + 40), Some(128), "none that it may have is left in the group");
    }

    #[test]
    fn a_shallow_whole_map_search_wraps_below_the_hint_within_its_share() {
        let map = map(256, ShallowRule::WholeMap);
        let take = |hint| {
            map.hint_word(CpuId(0)).store(hint, Relaxed);
            map.try_take(CpuId(0), Depth::Shallow(128))
        };
        assert_eq!(count(&map, Depth::Shallow(128)), 128);
        assert_eq!([64 + 10, 64 + 40].map(take), [None, None]);
        map.free(64 + 5, CpuId(0));
        assert_eq!([take(64 + 10), take(64 + 10)], [Some(64 + 5), None]);
    }
}
