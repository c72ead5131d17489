//! Places: where on which member a stretch of a stacked device lies.
//!
//! Used by: `layers`.
//! Tests: below.

/// A stretch of one member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stretch {
    /// The member, by its number.
    pub(crate) member: usize,
    /// Its first sector there.
    pub(crate) sector: u64,
    pub(crate) sectors: u32,
}

/// The first stretch of what begins at `sector`, on members one after the other. `ends` are the first sectors after
/// each. `None` beyond the last.
pub(crate) fn concatenated(ends: &[u64], sector: u64, sectors: u32) -> Option<Stretch> {
    let member = ends.partition_point(|&end| end <= sector);
    let end = *ends.get(member)?;
    let begin = if member == 0 { 0 } else { ends[member - 1] };
    Some(Stretch { member, sector: sector - begin, sectors: within(sectors, end - sector) })
}

/// The first stretch of what begins at `sector`, in chunks on each of `members` in turn.
pub(crate) fn striped(members: usize, chunk: u32, sector: u64, sectors: u32) -> Stretch {
    let (chunk, members) = (u64::from(chunk), members as u64);
    let (number, offset) = (sector / chunk, sector % chunk);
    Stretch {
        member: (number % members) as usize,
        sector: number / members * chunk + offset,
        sectors: within(sectors, chunk - offset),
    }
}

/// Where a raid5 or raid6 has chunks of data and of parity: left-symmetric, the default of mdadm. The parity of the first stripe
/// is on the last member, and moves back by one for each further stripe; data begins after it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ParityLayout {
    pub(crate) members: usize,
    /// Chunks of parity in a stripe: 1 or 2.
    pub(crate) parities: usize,
    /// Sectors of a chunk.
    pub(crate) chunk: u32,
}

impl ParityLayout {
    /// Chunks of data in a stripe.
    pub(crate) fn data(&self) -> usize {
        self.members - self.parities
    }

    /// The member with a chunk of parity of a stripe.
    pub(crate) fn parity_member(&self, stripe: u64, parity: usize) -> usize {
        let first = self.members - 1 - (stripe % self.members as u64) as usize;
        (first + parity) % self.members
    }

    /// The member with a chunk of data of a stripe.
    pub(crate) fn data_member(&self, stripe: u64, chunk: usize) -> usize {
        (self.parity_member(stripe, 0) + self.parities + chunk) % self.members
    }

    /// Stripe, chunk of data, first sector there and number of sectors of what begins at `sector`.
    pub(crate) fn chunk_at(&self, sector: u64, sectors: u32) -> (u64, usize, u32, u32) {
        let (chunk, data) = (u64::from(self.chunk), self.data() as u64);
        let (number, offset) = (sector / chunk, sector % chunk);
        (number / data, (number % data) as usize, offset as u32, within(sectors, chunk - offset))
    }

    /// The first stretch of what begins at `sector`.
    pub(crate) fn stretch(&self, sector: u64, sectors: u32) -> Stretch {
        let (stripe, chunk, offset, sectors) = self.chunk_at(sector, sectors);
        let first = stripe * u64::from(self.chunk) + u64::from(offset);
        Stretch { member: self.data_member(stripe, chunk), sector: first, sectors }
    }
}

/// The part of `sectors` that fits in a stretch.
fn within(sectors: u32, stretch: u64) -> u32 {
    u64::from(sectors).min(stretch) as u32
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// Every place of a device that is mapped in random pieces, which have to cover it.
    fn places(total: u64, pieces: &[u32], map: impl Fn(u64, u32) -> Stretch) -> Vec<(usize, u64)> {
        let (mut sector, mut places) = (0, Vec::new());
        let mut pieces = pieces.iter().cycle();
        while sector < total {
            let sectors = u64::from(*pieces.next().unwrap()).min(total - sector) as u32;
            let stretch = map(sector, sectors);
            assert!((1..=sectors).contains(&stretch.sectors));
            places.extend((0..u64::from(stretch.sectors)).map(|offset| (stretch.member, stretch.sector + offset)));
            sector += u64::from(stretch.sectors);
        }
        places
    }

    #[test]
    fn stripes_with_parity_are_left_symmetric() {
        let layout = ParityLayout { members: 4, parities: 1, chunk: 8 };
        let rows: Vec<Vec<usize>> =
            (0..5).map(|stripe| (0..3).map(|chunk| layout.data_member(stripe, chunk)).collect()).collect();
        assert_eq!(rows, [[0, 1, 2], [3, 0, 1], [2, 3, 0], [1, 2, 3], [0, 1, 2]]);
        assert_eq!([0, 1, 2, 3, 4].map(|stripe| layout.parity_member(stripe, 0)), [3, 2, 1, 0, 3]);
    }

    proptest! {
        #[test]
        fn data_and_parity_use_every_sector_of_every_member_once(
            (parities, more, chunk, stripes) in (1usize..3, 2usize..5, 1u32..9, 1u64..12),
            pieces in prop::collection::vec(1u32..30, 1..5),
        ) {
            let layout = ParityLayout { members: parities + more, parities, chunk };
            let total = layout.data() as u64 * u64::from(chunk) * stripes;
            let mut places = places(total, &pieces, |sector, sectors| layout.stretch(sector, sectors));
            for stripe in 0..stripes {
                for parity in 0..parities {
                    let member = layout.parity_member(stripe, parity);
                    places.extend((0..u64::from(chunk)).map(|offset| (member, stripe * u64::from(chunk) + offset)));
                }
            }
            let distinct: BTreeSet<_> = places.iter().copied().collect();
            prop_assert_eq!(distinct.len(), places.len());
            let size = u64::from(chunk) * stripes;
            prop_assert_eq!(distinct.len() as u64, layout.members as u64 * size);
            prop_assert!(distinct.iter().all(|&(member, sector)| member < layout.members && sector < size));
        }

        #[test]
        fn every_sector_of_a_concatenation_has_its_own_place_in_order(
            sizes in prop::collection::vec(1u64..50, 1..5),
            pieces in prop::collection::vec(1u32..30, 1..5),
        ) {
            let ends: Vec<u64> = sizes.iter().scan(0, |sum, size| { *sum += size; Some(*sum) }).collect();
            let expected: Vec<_> =
                sizes.iter().enumerate().flat_map(|(member, &size)| (0..size).map(move |sector| (member, sector))).collect();
            let total = sizes.iter().sum();
            prop_assert_eq!(places(total, &pieces, |sector, sectors| concatenated(&ends, sector, sectors).unwrap()), expected);
            prop_assert_eq!(concatenated(&ends, total, 1), None);
        }

        #[test]
        fn stripes_use_every_sector_of_every_member_once(
            (members, chunk, rows) in (1usize..5, 1u32..9, 1u64..6),
            pieces in prop::collection::vec(1u32..30, 1..5),
        ) {
            let total = members as u64 * u64::from(chunk) * rows;
            let places = places(total, &pieces, |sector, sectors| striped(members, chunk, sector, sectors));
            let distinct: BTreeSet<_> = places.iter().copied().collect();
            prop_assert_eq!(distinct.len() as u64, total);
            let all_in_range = places.iter().all(|&(member, sector)| member < members && sector < u64::from(chunk) * rows);
            prop_assert!(all_in_range);
            let in_turn = places.iter().step_by(chunk as usize).enumerate().all(|(chunk, place)| place.0 == chunk % members);
            prop_assert!(in_turn);
        }
    }
}
