//! What a client knows about its disk: the possible contents of each block.

/// A possible content of a block.
#[derive(Clone, Copy, Debug)]
struct Entry {
    fill: u8,
    /// When it was reported.
    at: u64,
    /// Whether the block certainly had this content then, and no earlier one.
    is_sure: bool,
}

/// The blocks of a disk. Each is filled with a repeated byte.
#[derive(Debug)]
pub struct ContentModel {
    /// The possible contents of each block after a power cut, in the order of the reports.
    blocks: Vec<Vec<Entry>>,
    /// Changes whose outcome is unknown: they may take effect at any time.
    unresolved: Vec<(u64, u64, u8)>,
}

impl ContentModel {
    /// A disk of this many blocks of durable zeroes.
    pub fn new(blocks: u64) -> Self {
        ContentModel {
            blocks: vec![vec![Entry { fill: 0, at: 0, is_sure: true }]; blocks as usize],
            unresolved: Vec::new(),
        }
    }

    pub fn len(&self) -> u64 {
        self.blocks.len() as u64
    }

    fn entries_of(&mut self, first: u64, count: u64) -> &mut [Vec<Entry>] {
        &mut self.blocks[first as usize..(first + count) as usize]
    }

    /// A change has completed: it is visible, and possibly durable.
    pub fn changed(&mut self, (first, count): (u64, u64), fill: u8, at: u64, is_durable: bool) {
        for block in self.entries_of(first, count) {
            if is_durable {
                block.clear();
            }
            block.push(Entry { fill, at, is_sure: true });
        }
    }

    /// A change failed, or was only a hint: it may be visible.
    pub fn may_have_changed(&mut self, (first, count): (u64, u64), fill: u8, at: u64) {
        self.entries_of(first, count).iter_mut().for_each(|block| block.push(Entry { fill, at, is_sure: false }));
    }

    /// The outcome of a change stays unknown.
    pub fn leave_outcome_unknown(&mut self, (first, count): (u64, u64), fill: u8) {
        self.unresolved.push((first, count, fill));
    }

    /// A flush that was submitted at this time has completed.
    pub fn flushed(&mut self, submitted_at: u64) {
        for block in &mut self.blocks {
            if let Some(last) = block.iter().rposition(|entry| entry.is_sure && entry.at < submitted_at) {
                block.drain(..last);
            }
        }
    }

    /// All in-flight changes have ended.
    pub fn resolve_unknown_outcomes(&mut self, at: u64) {
        for (first, count, fill) in std::mem::take(&mut self.unresolved) {
            self.may_have_changed((first, count), fill, at);
        }
    }

    /// The power was cut: a change that was not durable may be lost.
    pub fn power_cut(&mut self, at: u64) {
        self.resolve_unknown_outcomes(at);
        self.blocks.iter_mut().flatten().for_each(|entry| entry.is_sure = false);
    }

    /// Whether a block may have this content.
    pub fn may_hold(&self, block: u64, fill: u8) -> bool {
        let entries = &self.blocks[block as usize];
        let from = entries.iter().rposition(|entry| entry.is_sure).unwrap_or(0);
        let covers_block = |(first, count, _): &&(u64, u64, u8)| (*first..first + count).contains(&block);
        entries[from..].iter().any(|entry| entry.fill == fill)
            || self.unresolved.iter().filter(covers_block).any(|change| change.2 == fill)
    }
}
