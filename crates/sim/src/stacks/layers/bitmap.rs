//! The write-intent bitmap of a raid1: before the first write to a region, its bit is on all members.
//!
//! A write to a region without its bit waits: the thread writes the page of the bitmap to all members, with FUA, and then
//! submits the writes that waited. A bit goes when nothing was written to its region for a while; Linux then writes the page
//! again at leisure, which is not modelled.

use hoistway_blk::bio::{Bio, BioFlags, Op, Status};
use hoistway_blk::ground::{Instant, Nanos, Sector};

use super::super::joins::Then;
use super::super::thread::Assignment;
use super::Layers;
use crate::stacked_device::BITMAP_SECTORS;

/// Sectors of a region: 64 MiB, the least of an internal bitmap of mdadm.
const REGION_SECTORS: u64 = 1 << 17;
/// Regions whose bits are on one page of 4 KiB.
const REGIONS_OF_PAGE: u64 = 8 * 4096;
/// Sectors of a page.
const PAGE_SECTORS: u32 = 8;
/// Time without a write after which a bit goes: the default delay of mdadm.
const DELAY: Nanos = Nanos::from_secs(5);

/// A region that has or gets a bit.
#[derive(Clone, Copy, Default, Debug)]
struct Region {
    is_marked: bool,
    in_flight: u32,
    /// When its bit was set, or its last write ended.
    used: Instant,
}

/// A bitmap.
#[derive(Debug)]
pub(super) struct Bitmap {
    regions: Vec<Region>,
    /// First sector of the bitmap on each member: after the data.
    first: u64,
    /// Writes that wait for bits.
    waiting: Vec<(Bio, u32)>,
    /// Those whose bits are being written.
    marking: Vec<(Bio, u32)>,
}

impl Bitmap {
    /// The bitmap of a device with this many sectors.
    pub(super) fn new(sectors: u64) -> Bitmap {
        let regions = vec![Region::default(); sectors.div_ceil(REGION_SECTORS) as usize];
        Bitmap { regions, first: sectors, waiting: Vec::new(), marking: Vec::new() }
    }

    /// The regions of a bio.
    fn regions_of(bio: &Bio) -> std::ops::RangeInclusive<usize> {
        (bio.sector.0 / REGION_SECTORS) as usize..=((bio.end().0 - 1) / REGION_SECTORS) as usize
    }

    /// Whether all regions of a write have their bits; it is then in flight there.
    fn begin(&mut self, now: Instant, bio: &Bio) -> bool {
        let regions = &mut self.regions[Bitmap::regions_of(bio)];
        for region in regions.iter_mut().filter(|region| region.in_flight == 0 && now.since(region.used) > DELAY) {
            region.is_marked = false;
        }
        let are_marked = regions.iter().all(|region| region.is_marked);
        if are_marked {
            regions.iter_mut().for_each(|region| region.in_flight += 1);
        }
        are_marked
    }

    fn ended(&mut self, now: Instant, bio: &Bio) {
        for region in &mut self.regions[Bitmap::regions_of(bio)] {
            *region = Region { in_flight: region.in_flight - 1, used: now, ..*region };
        }
    }

    /// The pages to write for the writes that wait, if none are being written.
    fn take_pages(&mut self) -> Vec<u64> {
        if !self.marking.is_empty() {
            return Vec::new();
        }
        self.marking = std::mem::take(&mut self.waiting);
        let regions = self.marking.iter().flat_map(|(bio, _)| Bitmap::regions_of(bio));
        let mut pages: Vec<u64> = regions.map(|region| region as u64 / REGIONS_OF_PAGE).collect();
        pages.sort_unstable();
        pages.dedup();
        pages
    }

    /// The pages have been written: marks the regions, and returns the writes.
    fn marked(&mut self, now: Instant) -> Vec<(Bio, u32)> {
        let marked = std::mem::take(&mut self.marking);
        for region in marked.iter().flat_map(|(bio, _)| Bitmap::regions_of(bio)) {
            self.regions[region] = Region { is_marked: true, used: now, ..self.regions[region] };
        }
        marked
    }
}

impl Layers {
    /// Begins a write if the bitmap has its bits. Returns the join that it is then a part of; otherwise it waits.
    pub(super) fn begin_in_bitmap(&mut self, number: u32, bio: &Bio, join: u32) -> Option<u32> {
        let now = self.now;
        let Some(bitmap) = &mut self.layers[number as usize].bitmap else { return Some(join) };
        self.joins.extend(join, bio.sectors);
        if bitmap.begin(now, bio) {
            return Some(self.joins.add(0, Then::InBitmap { layer: number, bio: bio.clone(), parent: join }));
        }
        bitmap.waiting.push((bio.clone(), join));
        self.call(number);
        None
    }

    /// A write has ended on all members.
    pub(super) fn ended_in_bitmap(&mut self, number: u32, bio: &Bio) {
        let now = self.now;
        let bitmap = &mut self.layers[number as usize].bitmap;
        bitmap.iter_mut().for_each(|bitmap| bitmap.ended(now, bio));
    }

    /// The thread's run: writes pages of the bitmap for the writes that wait.
    pub(super) fn work_bitmap(&mut self, number: u32) {
        let Some(bitmap) = &mut self.layers[number as usize].bitmap else { return };
        let (first, pages) = (bitmap.first, bitmap.take_pages());
        if pages.is_empty() {
            return;
        }
        let join = self.joins.add(0, Then::Marked { layer: number });
        let flags = BioFlags::SYNC.with(BioFlags::FUA).with(BioFlags::META);
        for page in pages {
            let sector = Sector(first + page * u64::from(PAGE_SECTORS) % BITMAP_SECTORS);
            let bio =
                Bio { flags, io_context: self.io_context_of(number), ..Bio::new(Op::Write, sector, PAGE_SECTORS) };
            for member in 0..self.layers[number as usize].members.len() {
                self.pass(self.member(number, member), bio.clone(), join);
            }
        }
    }

    /// Pages of the bitmap have been written: the thread submits the writes that waited for them.
    pub(super) fn bitmap_marked(&mut self, number: u32, status: Status) {
        let now = self.now;
        let Some(bitmap) = &mut self.layers[number as usize].bitmap else { return };
        let marked = bitmap.marked(now);
        for (bio, join) in marked {
            match status {
                Status::Ok => self.hand_over(number, Assignment::Descend(bio, join), false),
                _ => self.part_ended(join, bio.sectors, status),
            }
        }
        self.call(number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(sector: u64) -> Bio {
        Bio::new(Op::Write, Sector(sector), 8)
    }

    #[test]
    fn a_region_is_marked_once_until_nothing_was_written_to_it_for_a_while() {
        let mut bitmap = Bitmap::new(4 * REGION_SECTORS);
        assert!(!bitmap.begin(Instant(0), &write(0)));
        bitmap.waiting.push((write(0), 0));
        assert_eq!((bitmap.take_pages(), bitmap.take_pages()), (vec![0], vec![]), "one write of the page at a time");
        assert_eq!(bitmap.marked(Instant(10)).len(), 1);
        assert!(
            bitmap.begin(Instant(20), &write(REGION_SECTORS - 8)) && !bitmap.begin(Instant(20), &write(REGION_SECTORS))
        );
        assert!(!bitmap.begin(Instant(20), &write(REGION_SECTORS - 4)), "it reaches into the next region");
        let later = Instant(30) + DELAY + DELAY;
        assert!(bitmap.begin(later, &write(0)), "a write is in flight there");
        bitmap.ended(later, &write(0));
        bitmap.ended(later, &write(0));
        assert!(!bitmap.begin(later + DELAY + Nanos(1), &write(0)));
    }
}
