//! The volatile write cache: dirty extents that wait to be written to the platters (destaged), in whatever order is
//! quickest.
//!
//! There are some hundreds of extents, and two questions to them for each write: whether one joins it, and which the head
//! reaches first. So they are indexed by their first sector and by their cylinder.

use hoistway_blk::ground::Instant;

use super::geometry::Place;
use super::index::Index;
use super::mechanics::Mechanics;
use super::slices::Slices;

/// Sectors that are destaged in one go: a read need not wait for a whole stream.
const DESTAGE_SECTORS_MAX: u64 = 2048;

/// Dirty sectors in a row.
#[derive(Clone, Debug)]
struct Extent {
    sector: u64,
    sectors: u64,
    /// Where its first sector is.
    place: Place,
    /// Flushes that had been asked for when it became dirty.
    epoch: u64,
}

impl Extent {
    fn end(&self) -> u64 {
        self.sector + self.sectors
    }
}

#[derive(Clone, Debug)]
pub(super) struct WriteCache {
    /// At most `extents_max`, in no order; the one that is being destaged is among them.
    extents: Vec<Extent>,
    /// By first sector.
    by_sector: Index,
    /// By where they are.
    by_place: Slices,
    /// No extent has more sectors.
    longest: u64,
    /// The extent that is being destaged and how many of its sectors.
    destaging: Option<(usize, u64)>,
    extents_max: usize,
    sectors_max: u64,
    /// Dirty sectors.
    sectors: u64,
    /// Flushes that have been asked for.
    epoch: u64,
    /// How many extents are older than `epoch`.
    older: usize,
}

impl WriteCache {
    pub(super) fn new(extents_max: u32, bytes_max: f64, mechanics: &Mechanics) -> WriteCache {
        WriteCache {
            extents: Vec::with_capacity(extents_max as usize),
            by_sector: Index::new(extents_max as usize),
            by_place: Slices::new(extents_max, mechanics),
            longest: 0,
            destaging: None,
            extents_max: extents_max as usize,
            sectors_max: (bytes_max / 512.0) as u64,
            sectors: 0,
            epoch: 0,
            older: 0,
        }
    }

    /// Those that may hold `sector` or end at it.
    fn around(&self, sector: u64) -> impl Iterator<Item = (usize, &Extent)> {
        let around = self.by_sector.within(sector.saturating_sub(self.longest), sector);
        around.map(|index| (index, &self.extents[index]))
    }

    /// Takes a write, if there is room. One that overwrites dirty sectors needs none; one that continues an extent
    /// needs no extent. One that is larger than the whole cache gets in when the cache is empty.
    pub(super) fn admit(&mut self, sector: u64, sectors: u64, mechanics: &Mechanics) -> bool {
        let end = sector + sectors;
        let moving = self.destaging.map(|(index, _)| index);
        let mut joins = None;
        for (index, extent) in self.around(sector).filter(|&(index, _)| Some(index) != moving) {
            if extent.sector <= sector && end <= extent.end() {
                return true;
            }
            // Not to one that a flush waits for, or a stream could hold up the flush.
            if extent.end() == sector && extent.epoch == self.epoch {
                joins = joins.max(Some(index));
            }
        }
        if self.sectors + sectors > self.sectors_max && !self.extents.is_empty() {
            return false;
        }
        if let Some(index) = joins {
            self.extents[index].sectors += sectors;
            self.longest = self.longest.max(self.extents[index].sectors);
        } else if self.extents.len() < self.extents_max {
            let place = mechanics.geometry.place(sector);
            let index = self.extents.len();
            self.by_sector.add(sector, index);
            self.by_place.add(&place, index);
            self.longest = self.longest.max(sectors);
            self.extents.push(Extent { sector, sectors, place, epoch: self.epoch });
        } else {
            return false;
        }
        self.sectors += sectors;
        true
    }

    /// Whether all these sectors are in the cache.
    pub(super) fn holds(&self, sector: u64, sectors: u64) -> bool {
        self.around(sector).any(|(_, extent)| sector + sectors <= extent.end())
    }

    /// Begins to destage what the head reaches first, and answers from which sector and how many. While a flush is under way only
    /// what it waits for is considered.
    pub(super) fn destage(&mut self, now: Instant, mechanics: &Mechanics) -> Option<(u64, Place, u64)> {
        let flushing = self.older > 0;
        let (extents, epoch) = (&self.extents, self.epoch);
        let place_of = |index: usize| {
            let extent = &extents[index];
            (!flushing || extent.epoch < epoch).then_some(&extent.place)
        };
        let index = self.by_place.nearest_of(now, mechanics, place_of)?;
        let extent = &self.extents[index];
        let sectors = extent.sectors.min(DESTAGE_SECTORS_MAX);
        self.destaging = Some((index, sectors));
        Some((extent.sector, extent.place, sectors))
    }

    /// What was being destaged is on the platters.
    pub(super) fn destaged(&mut self, mechanics: &Mechanics) {
        let Some((index, sectors)) = self.destaging.take() else { return };
        self.sectors -= sectors;
        let was_longest = self.extents[index].sectors == self.longest;
        self.forget(index);
        let extent = &mut self.extents[index];
        if extent.sectors > sectors {
            extent.sector += sectors;
            extent.sectors -= sectors;
            extent.place = mechanics.geometry.place(extent.sector);
            self.index(index);
        } else {
            self.older -= usize::from(extent.epoch < self.epoch);
            let last = self.extents.len() - 1;
            self.extents.swap_remove(index);
            if let Some(Extent { sector, place, .. }) = self.extents.get(index) {
                self.by_sector.renumber(*sector, last, index);
                self.by_place.renumber(place, last, index);
            }
        }
        if was_longest && self.longest > DESTAGE_SECTORS_MAX {
            self.longest = self.extents.iter().map(|extent| extent.sectors).max().unwrap_or(0);
        }
    }

    /// An extent is where it says now.
    fn index(&mut self, index: usize) {
        let Extent { sector, place, .. } = self.extents[index];
        self.by_sector.add(sector, index);
        self.by_place.add(&place, index);
    }

    /// An extent is about to be elsewhere.
    fn forget(&mut self, index: usize) {
        let Extent { sector, place, .. } = self.extents[index];
        self.by_sector.remove(sector, index);
        self.by_place.remove(&place, index);
    }

    /// A flush: all that is dirty now is to be destaged. Answers the number of the flush.
    pub(super) fn flush(&mut self) -> u64 {
        self.epoch += 1;
        self.older = self.extents.len();
        self.epoch
    }

    /// Whether all that was dirty at this flush is on the platters.
    pub(super) fn is_flushed(&self, flush: u64) -> bool {
        self.older == 0 || self.extents.iter().all(|extent| extent.epoch >= flush)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.extents.is_empty()
    }
}

#[cfg(test)]
mod tests;
