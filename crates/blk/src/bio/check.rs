//! What a bio must pass before it is on its way (BL-5 to BL-9, BL-133; both kinds of queue check the same).

use crate::bio::limits::Limits;
use crate::bio::{Bio, BioFlags, Op, Status};

/// What becomes of a bio that has been looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Checked {
    /// It goes on.
    Goes,
    /// It ends at once.
    Ends(Status),
}

const DURABLE: BioFlags = BioFlags::PREFLUSH.with(BioFlags::FUA);

/// Looks at a bio that is to become requests: those begin and end at borders of logical blocks.
#[inline]
pub fn check(limits: &Limits, takes_polled: bool, bio: &mut Bio) -> Checked {
    if !limits.is_aligned(bio.sector, bio.sectors) {
        return Checked::Ends(Status::IoError);
    }
    check_bio(limits, takes_polled, bio)
}

/// Looks at a bio. `takes_polled` says whether it may ask to be polled for. Without a write cache there is nothing to
/// flush, and its flags for that are taken away.
#[inline]
pub(crate) fn check_bio(limits: &Limits, takes_polled: bool, bio: &mut Bio) -> Checked {
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
    if bio.flags.contains(BioFlags::POLLED) && !takes_polled {
        return Checked::Ends(Status::NotSupported);
    }
    let supported = match bio.op {
        Op::Read | Op::Write => true,
        // A flush is asked for by an empty write.
        Op::Flush => false,
        Op::Discard => limits.max_discard_sectors > 0,
        Op::WriteZeroes => limits.max_write_zeroes_sectors > 0,
    };
    if supported { Checked::Goes } else { Checked::Ends(Status::NotSupported) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::ids::Sector;

    #[test]
    fn a_bio_ends_at_the_end_of_the_device_at_the_latest_and_an_empty_one_may_be_anywhere() {
        let limits = Limits { capacity: Sector(100), ..Limits::default() };
        let goes = |sector, sectors| {
            check_bio(&limits, false, &mut Bio::new(Op::Write, Sector(sector), sectors)) == Checked::Goes
        };
        assert!(goes(92, 8) && !goes(93, 8) && !goes(101, 8) && !goes(u64::MAX, 8));
        assert!(goes(100, 0) && goes(101, 0));
    }
}
