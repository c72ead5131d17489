//! Splitting a bio that is longer than the queue allows (BL-15 to BL-20).
//!
//! The front part continues, and the remainder is submitted after it. Segments have a number but no positions: each part
//! gets a share of the bio's segments by its length.

use crate::bio::limits::Limits;
use crate::bio::{Bio, BioFlags, Op};

/// Where to split `bio`: length of the front part in sectors; `None` if the bio fits.
#[inline]
#[must_use]
pub fn split_point(bio: &Bio, limits: &Limits) -> Option<u32> {
    // Nearly every bio fits wherever it begins, which is checked without a division.
    let fits_anywhere = u64::from(bio.sectors) + u64::from(limits.physical_block) <= u64::from(limits.max_sectors);
    let is_data = matches!(bio.op, Op::Read | Op::Write);
    if is_data && fits_anywhere && limits.chunk_sectors == 0 && bio.segments <= limits.max_segments {
        return None;
    }
    exact_split_point(bio, limits)
}

fn exact_split_point(bio: &Bio, limits: &Limits) -> Option<u32> {
    let max = match bio.op {
        Op::Flush => return None,
        Op::WriteZeroes => limits.max_at(bio.op, bio.sector),
        Op::Discard => discard_part(bio, limits)?,
        Op::Read | Op::Write => {
            let max = limits.max_at(bio.op, bio.sector);
            // The *end* of a part is aligned to physical blocks if that leaves anything.
            let start = (bio.sector.0 % u64::from(limits.physical_block.max(1))) as u32;
            let end = start + max - (start + max) % limits.physical_block.max(1);
            if end > start { end - start } else { max - max % limits.logical_block.max(1) }
        }
    };
    let segment_limit = if bio.segments > limits.max_segments && matches!(bio.op, Op::Read | Op::Write) {
        let share = u64::from(bio.sectors) * u64::from(limits.max_segments) / u64::from(bio.segments);
        (share as u32) - (share as u32) % limits.logical_block.max(1)
    } else {
        u32::MAX
    };
    let length = max.min(segment_limit).max(limits.logical_block.max(1));
    (bio.sectors > length).then_some(length)
}

/// Number of parts that a bio will be split into.
#[must_use]
pub fn parts(bio: &Bio, limits: &Limits) -> u32 {
    let mut rest = bio.clone();
    let mut parts = 1;
    while let Some(split_at) = split_point(&rest, limits) {
        let _front = split(&mut rest, split_at);
        parts += 1;
    }
    parts
}

/// Length of the first part of a discard: at most the device's limit, and such that the next part begins at a multiple of
/// the granularity. `None` if the limit is less than one granule: the discard is then not split.
fn discard_part(bio: &Bio, limits: &Limits) -> Option<u32> {
    let granularity = limits.discard_granularity.max(1);
    let max = limits.max_discard_sectors - limits.max_discard_sectors % granularity;
    let overhang = ((bio.sector.0 + u64::from(max)) % u64::from(granularity)) as u32;
    (max > 0).then_some(if overhang < max { max - overhang } else { max })
}

/// Splits `bio` after `sectors`: shortens it to the remainder and returns the front part, which never merges.
#[must_use]
pub fn split(bio: &mut Bio, sectors: u32) -> Bio {
    debug_assert!(0 < sectors && sectors < bio.sectors);
    let mut front = bio.clone();
    let segments = (u64::from(bio.segments) * u64::from(sectors)).div_ceil(u64::from(bio.sectors)) as u16;
    front.sectors = sectors;
    front.segments = segments.max(1);
    front.flags = front.flags.with(BioFlags::NOMERGE);
    bio.sector = bio.sector + sectors;
    bio.sectors -= sectors;
    bio.segments = bio.segments.saturating_sub(segments).max(1);
    front
}

/// Undoes [`split`]: joins the front part and the remainder, if present, into one bio. A segment that was split counts in
/// both, and a split bio is not polled.
#[must_use]
pub fn rejoin(front: Option<Bio>, remainder: Option<Bio>) -> Option<Bio> {
    let (Some(front), Some(rest)) = (&front, &remainder) else { return front.or(remainder) };
    debug_assert_eq!(front.end(), rest.sector);
    Some(Bio {
        sector: front.sector,
        sectors: front.sectors + rest.sectors,
        segments: front.segments.saturating_add(rest.segments),
        ..rest.clone()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::ids::Sector;

    fn parts(mut bio: Bio, limits: &Limits) -> Vec<(u64, u32, bool)> {
        let mut out = Vec::new();
        while let Some(split_at) = split_point(&bio, limits) {
            let front = split(&mut bio, split_at);
            out.push((front.sector.0, front.sectors, front.flags.contains(BioFlags::NOMERGE)));
        }
        out.push((bio.sector.0, bio.sectors, bio.flags.contains(BioFlags::NOMERGE)));
        out
    }

    #[test]
    fn a_300_kib_write_under_a_limit_of_128_kib_gives_128_128_and_44() {
        let limits = Limits { max_sectors: 256, ..Limits::default() };
        let bio = Bio::new(Op::Write, Sector(0), 600);
        assert_eq!(parts(bio, &limits), [(0, 256, true), (256, 256, true), (512, 88, false)]);
    }

    #[test]
    fn a_write_is_split_at_a_chunk_boundary() {
        let limits = Limits { chunk_sectors: 128, ..Limits::default() };
        let bio = Bio::new(Op::Write, Sector(100), 128);
        assert_eq!(parts(bio, &limits), [(100, 28, true), (128, 100, false)]);
    }

    #[test]
    fn the_end_of_a_part_is_aligned_to_the_physical_block() {
        let limits = Limits { physical_block: 8, max_sectors: 20, ..Limits::default() };
        let bio = Bio::new(Op::Write, Sector(3), 40);
        assert_eq!(parts(bio, &limits)[0].1, 13);
    }

    #[test]
    fn a_part_ends_at_a_logical_block_if_it_cannot_end_at_a_physical_one() {
        let limits = Limits { logical_block: 4, physical_block: 16, max_sectors: 6, ..Limits::default() };
        let parts = parts(Bio::new(Op::Write, Sector(4), 16), &limits);
        assert_eq!(parts.iter().map(|part| (part.0, part.1)).collect::<Vec<_>>(), [(4, 4), (8, 4), (12, 4), (16, 4)]);
    }

    #[test]
    fn parts_of_a_discard_end_at_multiples_of_its_granularity_and_are_no_longer_than_allowed() {
        let limits = Limits { discard_granularity: 8, max_discard_sectors: 64, ..Limits::default() };
        let parts = parts(Bio::new(Op::Discard, Sector(4), 200), &limits);
        let ends: Vec<u64> = parts.iter().map(|&(sector, sectors, _)| sector + u64::from(sectors)).collect();
        assert_eq!(ends, [64, 128, 192, 204]);
        assert!(parts.iter().all(|&(_, sectors, _)| sectors <= 64));
    }

    #[test]
    fn a_discard_on_a_device_that_takes_less_than_a_granule_is_not_split() {
        let limits = Limits { discard_granularity: 128, max_discard_sectors: 64, ..Limits::default() };
        assert_eq!(parts(Bio::new(Op::Discard, Sector(4), 200), &limits), [(4, 200, false)]);
    }

    #[test]
    fn a_split_bio_can_be_rejoined() {
        let whole = Bio { segments: 5, flags: BioFlags::SYNC, ..Bio::new(Op::Write, Sector(8), 40) };
        let mut rest = whole.clone();
        let front = split(&mut rest, 16);
        assert_eq!(rejoin(Some(front), Some(rest.clone())), Some(whole), "it may merge again, too");
        assert_eq!(rejoin(None, Some(rest.clone())), Some(rest));
        assert_eq!(rejoin(None, None), None);
    }

    #[test]
    fn a_bio_of_too_many_segments_is_split() {
        let limits = Limits { max_segments: 2, ..Limits::default() };
        let bio = Bio { segments: 3, ..Bio::new(Op::Read, Sector(0), 24) };
        assert_eq!(parts(bio, &limits), [(0, 16, true), (16, 8, false)]);
    }

    #[test]
    fn each_part_has_its_share_of_the_segments_and_one_at_least() {
        for (segments, cut, shares) in [(3, 16, (2, 1)), (3, 17, (3, 1)), (24, 8, (8, 16)), (1, 8, (1, 1))] {
            let mut rest = Bio { segments, ..Bio::new(Op::Read, Sector(0), 24) };
            let front = split(&mut rest, cut);
            assert_eq!((front.segments, rest.segments), shares, "{segments} cut at {cut}");
        }
    }

    #[test]
    fn a_share_of_segments_is_cut_to_whole_logical_blocks() {
        let limits = Limits { max_segments: 5, logical_block: 8, physical_block: 8, ..Limits::default() };
        let bio = Bio { segments: 8, ..Bio::new(Op::Read, Sector(0), 64) };
        assert_eq!(split_point(&bio, &limits), Some(40));
        assert_eq!(split_point(&Bio { segments: 9, ..bio }, &limits), Some(32), "35 sectors are four blocks and a bit");
    }

    #[test]
    fn the_number_of_parts_of_a_split_is_known_in_advance() {
        let limits = Limits { max_sectors: 256, ..Limits::default() };
        let counted = [8, 256, 257, 600].map(|sectors| super::parts(&Bio::new(Op::Write, Sector(0), sectors), &limits));
        assert_eq!(counted, [1, 1, 2, 3]);
    }
}
