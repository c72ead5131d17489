//! Validation of a submitted bio (BL-5 to BL-9, BL-133), common to both kinds of queue.

use crate::bio::limits::Limits;
use crate::bio::{Bio, BioFlags, Op, Status};

/// The result of the check.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Checked {
    /// The bio continues.
    Proceeds,
    /// The bio completes at once with this status.
    Ends(Status),
}

const DURABLE: BioFlags = BioFlags::PREFLUSH.with(BioFlags::FUA);

/// The modifiers of a direct write.
const DIRECT: BioFlags = BioFlags::SYNC.with(BioFlags::IDLE);

/// Whether a bio is a read or a direct write without other flags that [passes the check unchanged](check) and [needs no
/// split](super::split::split_point); such a bio is never throttled. Nearly all bios are, so this is a fast path.
#[inline]
pub(crate) fn is_plain(limits: &Limits, bio: &Bio) -> bool {
    let is_ordinary = match bio.op {
        Op::Read => bio.flags == BioFlags::NONE,
        Op::Write => bio.flags == DIRECT,
        _ => false,
    };
    let fits = u64::from(bio.sectors) + u64::from(limits.physical_block) <= u64::from(limits.max_sectors)
        && bio.segments <= limits.max_segments
        && limits.chunk_sectors == 0;
    let last_start = limits.capacity.0.checked_sub(u64::from(bio.sectors));
    is_ordinary
        && fits
        && bio.sectors > 0
        && last_start.is_some_and(|last_start| bio.sector.0 <= last_start)
        && limits.is_aligned(bio.sector, bio.sectors)
}

/// Checks a bio for a queue of requests, which must be aligned to logical blocks.
#[inline]
pub fn check(limits: &Limits, accepts_polled: bool, bio: &mut Bio) -> Checked {
    if !limits.is_aligned(bio.sector, bio.sectors) {
        return Checked::Ends(Status::IoError);
    }
    check_bio(limits, accepts_polled, bio)
}

/// Checks a bio. `accepts_polled` says whether polled I/O is allowed. Without a write cache its flush flags are removed.
#[inline]
pub(crate) fn check_bio(limits: &Limits, accepts_polled: bool, bio: &mut Bio) -> Checked {
    // An end that does not fit into 64 bits is beyond any device. Empty bios are never out of range.
    let end = bio.sector.0.checked_add(u64::from(bio.sectors));
    if bio.sectors > 0 && end.is_none_or(|end| end > limits.capacity.0) {
        return Checked::Ends(Status::IoError);
    }
    if bio.flags.intersects(DURABLE) {
        if bio.op != Op::Write {
            return Checked::Ends(Status::IoError);
        }
        if !limits.write_cache {
            bio.flags = bio.flags.without(DURABLE);
            if bio.sectors == 0 {
                return Checked::Ends(Status::Ok);
            }
        }
    }
    if bio.flags.contains(BioFlags::POLLED) && !accepts_polled {
        return Checked::Ends(Status::NotSupported);
    }
    let supported = match bio.op {
        Op::Read | Op::Write => true,
        // Flushes are submitted as empty writes with PREFLUSH.
        Op::Flush => false,
        Op::Discard => limits.max_discard_sectors > 0,
        Op::WriteZeroes => limits.max_write_zeroes_sectors > 0,
    };
    if supported { Checked::Proceeds } else { Checked::Ends(Status::NotSupported) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bio::split::split_point;
    use crate::ground::ids::Sector;
    use crate::wbt::Kind;
    use proptest::prelude::*;

    fn limits() -> impl Strategy<Value = Limits> {
        (1..5u32, 1..5u32, 1..64u32, prop_oneof![Just(0), 1..9u32], 1..4u16, 0..200u64).prop_map(
            |(logical_block, physical, max_sectors, chunks, max_segments, capacity)| Limits {
                logical_block,
                physical_block: logical_block * physical,
                max_sectors: max_sectors.max(logical_block),
                chunk_sectors: chunks * logical_block,
                max_segments,
                capacity: Sector(capacity),
                ..Limits::default()
            },
        )
    }

    fn bio() -> impl Strategy<Value = Bio> {
        let ops = prop::sample::select(vec![Op::Read, Op::Write, Op::Flush, Op::Discard, Op::WriteZeroes]);
        let flags = [BioFlags::NONE, DIRECT, BioFlags::SYNC, BioFlags::FUA, BioFlags::POLLED, BioFlags::NOWAIT];
        let sector = prop_oneof![0..200u64, u64::MAX - 9..=u64::MAX];
        (ops, prop::sample::select(flags.to_vec()), sector, 0..70u32, 1..5u16).prop_map(
            |(op, flags, sector, sectors, segments)| Bio { flags, segments, ..Bio::new(op, Sector(sector), sectors) },
        )
    }

    proptest! {
        #[test]
        fn a_plain_bio_passes_as_it_is_fits_and_is_not_throttled(limits in limits(), bio in bio()) {
            if is_plain(&limits, &bio) {
                let mut checked = bio.clone();
                prop_assert!(check(&limits, false, &mut checked) == Checked::Proceeds);
                prop_assert_eq!(&checked, &bio);
                prop_assert_eq!(split_point(&bio, &limits), None);
                prop_assert!(Kind::of(bio.op, bio.flags).is_none());
            }
        }
    }

    #[test]
    fn reads_and_direct_writes_of_a_usual_size_are_plain() {
        let limits = Limits { capacity: Sector(100), ..Limits::default() };
        let bio = |op, flags, sector| Bio { flags, ..Bio::new(op, Sector(sector), 8) };
        assert!(is_plain(&limits, &bio(Op::Read, BioFlags::NONE, 92)));
        assert!(is_plain(&limits, &bio(Op::Write, DIRECT, 0)));
        assert!(!is_plain(&limits, &bio(Op::Write, BioFlags::NONE, 0)), "write-back may be throttled");
        assert!(!is_plain(&limits, &bio(Op::Read, BioFlags::NONE, 93)));
    }

    #[test]
    fn a_bio_ends_at_the_end_of_the_device_at_the_latest_and_an_empty_one_may_be_anywhere() {
        let limits = Limits { capacity: Sector(100), ..Limits::default() };
        let goes = |sector, sectors| {
            check_bio(&limits, false, &mut Bio::new(Op::Write, Sector(sector), sectors)) == Checked::Proceeds
        };
        assert!(goes(92, 8) && !goes(93, 8) && !goes(101, 8) && !goes(u64::MAX, 8));
        assert!(goes(100, 0) && goes(101, 0));
    }
}
