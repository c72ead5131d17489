//! Joins: what of a bio is still outstanding below a stacked device, and what follows when nothing is.
//!
//! Used by: `layers`.
//! Tests: below.

use hoistway_blk::bio::{Bio, Status};
use hoistway_blk::ground::CpuId;

/// What follows when all of a join has completed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Then {
    /// The process's bio ends.
    End(Bio),
    /// The write behind this flush begins, as a part of the join `parent`.
    Write { layer: u32, bio: Bio, parent: u32 },
    /// The data of a read of an encrypted device is decrypted.
    Decrypt {
        layer: u32,
        bio: Bio,
        /// The CPU of the submitter.
        cpu: CpuId,
        parent: u32,
    },
    /// The reads or the writes of a stripe of a raid5 are over.
    Stripe { layer: u32, stripe: u32 },
    /// A write of a raid1 with a bitmap has ended on all members, as a part of the join `parent`.
    InBitmap { layer: u32, bio: Bio, parent: u32 },
    /// Pages of the bitmap of a raid1 have been written.
    Marked { layer: u32 },
    /// A member of a raid1 has one bio less, and the join `parent` as many sectors.
    Mirrored { layer: u32, member: u32, sectors: u32, parent: u32 },
}

/// Something that is outstanding.
#[derive(Debug)]
struct Join {
    /// Sectors that have not completed; what has none counts as one.
    outstanding: u32,
    status: Status,
    then: Then,
}

/// The joins of a run, by number.
#[derive(Default, Debug)]
pub(super) struct Joins {
    joins: Vec<Option<Join>>,
    free: Vec<u32>,
}

impl Joins {
    /// Adds a join of which this many sectors are outstanding.
    pub(super) fn add(&mut self, outstanding: u32, then: Then) -> u32 {
        let join = Some(Join { outstanding, status: Status::Ok, then });
        match self.free.pop() {
            Some(number) => {
                self.joins[number as usize] = join;
                number
            }
            None => {
                self.joins.push(join);
                self.joins.len() as u32 - 1
            }
        }
    }

    /// More of a join is outstanding.
    pub(super) fn extend(&mut self, number: u32, sectors: u32) {
        if let Some(join) = &mut self.joins[number as usize] {
            join.outstanding += sectors;
        }
    }

    /// Some of a join has completed. Returns what follows and with which status if that was all: an error if any of it
    /// had one.
    pub(super) fn ended(&mut self, number: u32, sectors: u32, status: Status) -> Option<(Then, Status)> {
        let slot = &mut self.joins[number as usize];
        let join = slot.as_mut()?;
        debug_assert!(join.outstanding >= sectors, "more has ended than was outstanding");
        join.outstanding = join.outstanding.saturating_sub(sectors);
        if status != Status::Ok {
            join.status = status;
        }
        if join.outstanding > 0 {
            return None;
        }
        self.free.push(number);
        slot.take().map(|join| (join.then, join.status))
    }
}

#[cfg(test)]
mod tests {
    use hoistway_blk::bio::Op;
    use hoistway_blk::ground::Sector;

    use super::*;

    #[test]
    fn a_join_ends_once_with_its_last_sector_and_the_error_of_any_and_its_number_is_used_again() {
        let mut joins = Joins::default();
        let then = Then::End(Bio::new(Op::Read, Sector(0), 16));
        let number = joins.add(1, then.clone());
        joins.extend(number, 16);
        assert_eq!(joins.ended(number, 8, Status::IoError), None);
        assert_eq!(joins.ended(number, 1, Status::Ok), None);
        assert_eq!(joins.ended(number, 8, Status::Ok), Some((then.clone(), Status::IoError)));
        assert_eq!(joins.add(1, then), number);
    }
}
