//! The volatile write cache: dirty extents that wait to be destaged (written to the platters) in the fastest order.
//!
//! There are some hundreds of extents, and each write has to find an extent to join, and the extent that the head reaches
//! first. So they are indexed by their first sector and by their position.

use hoistway_blk::ground::Instant;

use super::geometry::HeadPosition;
use super::index::SortedIndex;
use super::mechanics::Mechanics;
use super::slices::Slices;

/// Maximum sectors destaged at a time, so that a read does not wait for a whole stream.
const DESTAGE_SECTORS_MAX: u64 = 2048;

/// Contiguous dirty sectors.
#[derive(Clone, Debug)]
struct DirtyExtent {
    sector: u64,
    sectors: u64,
    /// The position of its first sector.
    position: HeadPosition,
    /// Number of flushes requested before it became dirty.
    epoch: u64,
}

impl DirtyExtent {
    fn end(&self) -> u64 {
        self.sector + self.sectors
    }
}

#[derive(Clone, Debug)]
pub(super) struct WriteCache {
    /// At most `extents_max`, unordered; includes the one being destaged.
    extents: Vec<DirtyExtent>,
    /// By first sector.
    by_sector: SortedIndex,
    /// By position.
    by_position: Slices,
    /// Maximum length of an extent so far, in sectors.
    longest: u64,
    /// The extent being destaged, and the number of its sectors being destaged.
    destaging: Option<(usize, u64)>,
    extents_max: usize,
    sectors_max: u64,
    /// Dirty sectors.
    sectors: u64,
    /// Number of flushes requested.
    epoch: u64,
    /// Number of extents older than `epoch`.
    older: usize,
}

impl WriteCache {
    pub(super) fn new(extents_max: u32, bytes_max: f64, mechanics: &Mechanics) -> WriteCache {
        WriteCache {
            extents: Vec::with_capacity(extents_max as usize),
            by_sector: SortedIndex::new(extents_max as usize),
            by_position: Slices::new(extents_max, mechanics),
            longest: 0,
            destaging: None,
            extents_max: extents_max as usize,
            sectors_max: (bytes_max / 512.0) as u64,
            sectors: 0,
            epoch: 0,
            older: 0,
        }
    }

    /// Extents that may contain `sector` or end at it. `slot` is the place after it in `by_sector`.
    fn extents_near(&self, sector: u64, slot: usize) -> impl Iterator<Item = (usize, &DirtyExtent)> {
        let indices = self.by_sector.before(slot, sector.saturating_sub(self.longest));
        indices.map(|index| (index, &self.extents[index]))
    }

    /// Adds a write if there is room. One that overwrites dirty sectors needs no room; one that continues an extent
    /// needs no new extent. One that is larger than the whole cache is accepted when the cache is empty.
    pub(super) fn admit(&mut self, sector: u64, sectors: u64, mechanics: &Mechanics) -> bool {
        let end = sector + sectors;
        let destaging = self.destaging.map(|(index, _)| index);
        let mut extendable = None;
        let slot = self.by_sector.end(sector);
        for (index, extent) in self.extents_near(sector, slot).filter(|&(index, _)| Some(index) != destaging) {
            if extent.sector <= sector && end <= extent.end() {
                return true;
            }
            // Not an extent that a flush waits for, or a stream could delay the flush forever.
            if extent.end() == sector && extent.epoch == self.epoch {
                extendable = extendable.max(Some(index));
            }
        }
        if self.sectors + sectors > self.sectors_max && !self.extents.is_empty() {
            return false;
        }
        if let Some(index) = extendable {
            self.extents[index].sectors += sectors;
            self.longest = self.longest.max(self.extents[index].sectors);
        } else if self.extents.len() < self.extents_max {
            let position = mechanics.geometry.position(sector);
            let index = self.extents.len();
            self.by_sector.add_at(slot, sector, index);
            self.by_position.add(&position, index);
            self.longest = self.longest.max(sectors);
            self.extents.push(DirtyExtent { sector, sectors, position, epoch: self.epoch });
        } else {
            return false;
        }
        self.sectors += sectors;
        true
    }

    /// Whether all these sectors are in the cache.
    pub(super) fn holds(&self, sector: u64, sectors: u64) -> bool {
        self.extents_near(sector, self.by_sector.end(sector)).any(|(_, extent)| sector + sectors <= extent.end())
    }

    /// Starts to destage the extent that the head reaches first, and returns its first sector and number of sectors. During a
    /// flush only extents that the flush waits for are considered.
    pub(super) fn destage(&mut self, now: Instant, mechanics: &Mechanics) -> Option<(u64, HeadPosition, u64)> {
        let flushing = self.older > 0;
        let (extents, epoch) = (&self.extents, self.epoch);
        let position_of = |index: usize| {
            let extent = &extents[index];
            (!flushing || extent.epoch < epoch).then_some(&extent.position)
        };
        let index = self.by_position.nearest(now, mechanics, position_of)?;
        let extent = &self.extents[index];
        let sectors = extent.sectors.min(DESTAGE_SECTORS_MAX);
        self.destaging = Some((index, sectors));
        Some((extent.sector, extent.position, sectors))
    }

    /// The sectors being destaged are on the platters.
    pub(super) fn finish_destage(&mut self, mechanics: &Mechanics) {
        let Some((index, sectors)) = self.destaging.take() else { return };
        self.sectors -= sectors;
        let was_longest = self.extents[index].sectors == self.longest;
        self.remove_from_indexes(index);
        let extent = &mut self.extents[index];
        if extent.sectors > sectors {
            extent.sector += sectors;
            extent.sectors -= sectors;
            extent.position = mechanics.geometry.position(extent.sector);
            self.add_to_indexes(index);
        } else {
            self.older -= usize::from(extent.epoch < self.epoch);
            let last = self.extents.len() - 1;
            self.extents.swap_remove(index);
            if let Some(DirtyExtent { sector, position, .. }) = self.extents.get(index) {
                self.by_sector.renumber(*sector, last, index);
                self.by_position.renumber(position, last, index);
            }
        }
        if was_longest && self.longest > DESTAGE_SECTORS_MAX {
            self.longest = self.extents.iter().map(|extent| extent.sectors).max().unwrap_or(0);
        }
    }

    /// Adds an extent to the indexes.
    fn add_to_indexes(&mut self, index: usize) {
        let DirtyExtent { sector, position, .. } = self.extents[index];
        self.by_sector.add(sector, index);
        self.by_position.add(&position, index);
    }

    /// Removes an extent from the indexes.
    fn remove_from_indexes(&mut self, index: usize) {
        let DirtyExtent { sector, position, .. } = self.extents[index];
        self.by_sector.remove(sector, index);
        self.by_position.remove(&position, index);
    }

    /// A flush: everything that is dirty now must be destaged. Returns the number of the flush.
    pub(super) fn flush(&mut self) -> u64 {
        self.epoch += 1;
        self.older = self.extents.len();
        self.epoch
    }

    /// Whether everything that was dirty at this flush is on the platters.
    pub(super) fn is_flushed(&self, flush: u64) -> bool {
        self.older == 0 || self.extents.iter().all(|extent| extent.epoch >= flush)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.extents.is_empty()
    }
}

#[cfg(test)]
mod tests;
