//! The state of a raid1: which member reads next.
//!
//! Used by: `layers`.
//! Tests: below.
//!
//! If all members rotate, the member whose last I/O ended nearest reads; otherwise that with the fewest bios in flight,
//! and of several the nearest. Where a head is counts from the I/O that a member was given last.

/// What a raid1 knows of a member.
#[derive(Clone, Copy, Default, Debug)]
struct Copy {
    /// The sector after its last I/O.
    head: u64,
    /// Its bios in flight.
    in_flight: u32,
}

/// The members of a raid1.
#[derive(Debug)]
pub(super) struct Mirror {
    copies: Vec<Copy>,
    all_rotate: bool,
}

impl Mirror {
    pub(super) fn new(members: usize, all_rotate: bool) -> Mirror {
        Mirror { copies: vec![Copy::default(); members], all_rotate }
    }

    /// The member that reads from this sector.
    pub(super) fn reader(&self, sector: u64) -> usize {
        let key = |&member: &usize| {
            let Copy { head, in_flight } = self.copies[member];
            (if self.all_rotate { 0 } else { in_flight }, head.abs_diff(sector))
        };
        (0..self.copies.len()).min_by_key(key).unwrap_or(0)
    }

    /// A member gets a bio that ends at this sector.
    pub(super) fn submitted(&mut self, member: usize, end: u64) {
        self.copies[member] = Copy { head: end, in_flight: self.copies[member].in_flight + 1 };
    }

    /// A bio of a member has completed.
    pub(super) fn ended(&mut self, member: usize) {
        self.copies[member].in_flight -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_that_rotate_read_what_is_nearest_to_their_heads() {
        let mut mirror = Mirror::new(2, true);
        mirror.submitted(0, 1000);
        mirror.submitted(1, 9000);
        assert_eq!([0, 1000, 4999, 5001, 9000, 20_000].map(|sector| mirror.reader(sector)), [0, 0, 0, 1, 1, 1]);
        mirror.submitted(0, 4000);
        assert_eq!(mirror.reader(5001), 0, "however much is in flight");
    }

    #[test]
    fn of_members_that_do_not_all_rotate_that_with_the_fewest_bios_reads() {
        let mut mirror = Mirror::new(3, false);
        mirror.submitted(0, 0);
        mirror.submitted(1, 500);
        mirror.submitted(2, 100);
        mirror.submitted(0, 0);
        assert_eq!((mirror.reader(400), mirror.reader(0)), (1, 2));
        mirror.ended(0);
        mirror.ended(0);
        assert_eq!(mirror.reader(500), 0);
    }
}
