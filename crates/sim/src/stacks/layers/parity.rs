//! raid5 and raid6: writes of stripes with their parity.
//!
//! The device's thread collects the writes of each stripe that have come until it runs. Where they cover all of a row, the
//! parity follows from them. Elsewhere it reads first: the old data and parity (read-modify-write), or the data that is not
//! written (reconstruct-write), whichever is fewer members, the latter if both are. Then it writes data and parity. Of a
//! stripe overlapping rows wait for each other, and no more rows are in progress than the stripe cache has.

use std::collections::VecDeque;

use hoistway_blk::bio::{Bio, BioFlags, Op, Status};
use hoistway_blk::ground::Sector;

use super::super::geometry::ParityLayout;
use super::super::joins::Then;
use super::Layers;

/// Rows of the stripe cache, each a page of every member: the default of `stripe_cache_size`.
const CACHE_ROWS: u32 = 256;
/// Sectors of a row.
const ROW_SECTORS: u32 = 8;

/// A write to one chunk of data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ChunkWrite {
    pub(super) stripe: u64,
    /// The chunk among those of data.
    pub(super) chunk: usize,
    /// First sector in the chunk.
    pub(super) from: u32,
    pub(super) sectors: u32,
    /// Whether it has to be on stable media when it completes.
    pub(super) flags: BioFlags,
    pub(super) join: u32,
}

/// Writes of a stripe in progress.
#[derive(Debug)]
struct StripeWrite {
    stripe: u64,
    /// The rows that they lie in, as sectors of a chunk.
    rows: (u32, u32),
    writes: Vec<ChunkWrite>,
    has_read: bool,
}

impl StripeWrite {
    fn row_count(&self) -> u32 {
        (self.rows.1 - self.rows.0).div_ceil(ROW_SECTORS)
    }
}

/// The state of a raid5 or raid6.
#[derive(Debug)]
pub(super) struct Parity {
    pub(super) layout: ParityLayout,
    queued: VecDeque<ChunkWrite>,
    active: Vec<Option<StripeWrite>>,
    /// Those whose reads have completed.
    ready: VecDeque<u32>,
    active_rows: u32,
}

/// Sectors of a chunk between two borders of writes, and what they need.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Rows {
    from: u32,
    to: u32,
    /// Chunks of data to read first.
    data_reads: Vec<usize>,
    reads_parity: bool,
}

impl Parity {
    pub(super) fn new(layout: ParityLayout) -> Parity {
        Parity { layout, queued: VecDeque::new(), active: Vec::new(), ready: VecDeque::new(), active_rows: 0 }
    }

    pub(super) fn queue(&mut self, write: ChunkWrite) {
        self.queued.push_back(write);
    }

    /// Begins the writes of the next stripe that can be in progress. Returns its number.
    fn begin_next(&mut self) -> Option<u32> {
        let mut tried: Vec<u64> = Vec::new();
        for index in 0..self.queued.len() {
            let stripe = self.queued[index].stripe;
            if tried.contains(&stripe) {
                continue;
            }
            tried.push(stripe);
            let of_stripe = || self.queued.iter().filter(|write| write.stripe == stripe);
            let from = of_stripe().map(|write| write.from).min()? / ROW_SECTORS * ROW_SECTORS;
            let to = of_stripe().map(|write| write.from + write.sectors).max()?;
            let write = StripeWrite { stripe, rows: (from, to), writes: Vec::new(), has_read: false };
            let overlaps = |other: &StripeWrite| other.stripe == stripe && other.rows.0 < to && from < other.rows.1;
            let fits = self.active_rows == 0 || self.active_rows + write.row_count() <= CACHE_ROWS;
            if fits && !self.active.iter().flatten().any(overlaps) {
                return Some(self.begin(write));
            }
        }
        None
    }

    fn begin(&mut self, mut write: StripeWrite) -> u32 {
        let is_of_stripe = |other: &ChunkWrite| other.stripe == write.stripe;
        write.writes = self.queued.iter().filter(|other| is_of_stripe(other)).cloned().collect();
        let stripe = write.stripe;
        self.queued.retain(|other| other.stripe != stripe);
        self.active_rows += write.row_count();
        let number = self.active.iter().position(Option::is_none).unwrap_or(self.active.len());
        if number == self.active.len() {
            self.active.push(None);
        }
        self.active[number] = Some(write);
        number as u32
    }

    /// What the writes of a stripe need, by rows.
    fn plan(&self, write: &StripeWrite) -> Vec<Rows> {
        let mut borders: Vec<u32> = write.writes.iter().flat_map(|one| [one.from, one.from + one.sectors]).collect();
        borders.sort_unstable();
        borders.dedup();
        let data = self.layout.data();
        let rows = |pair: &[u32]| {
            let (from, to) = (pair[0], pair[1]);
            let covers = |chunk: usize| {
                write.writes.iter().any(|one| one.chunk == chunk && one.from <= from && to <= one.from + one.sectors)
            };
            let written: Vec<usize> = (0..data).filter(|&chunk| covers(chunk)).collect();
            if written.is_empty() {
                return None;
            }
            let others = data - written.len();
            let modifies = written.len() + self.layout.parities < others;
            let data_reads = if modifies { written } else { (0..data).filter(|&chunk| !covers(chunk)).collect() };
            Some(Rows { from, to, data_reads, reads_parity: modifies })
        };
        borders.windows(2).filter_map(rows).collect()
    }
}

impl Layers {
    /// Takes a write, whose parts the thread turns into writes of stripes.
    pub(super) fn queue_stripes(&mut self, number: u32, bio: &Bio, join: u32) {
        let mut done = 0;
        while done < bio.sectors {
            let (sector, left) = (bio.sector.0 + u64::from(done), bio.sectors - done);
            let Some(parity) = self.parity_of(number) else { return };
            let (stripe, chunk, from, sectors) = parity.layout.chunk_at(sector, left);
            let flags = BioFlags(bio.flags.0 & BioFlags::FUA.0);
            parity.queue(ChunkWrite { stripe, chunk, from, sectors, flags, join });
            self.joins.extend(join, sectors);
            done += sectors;
        }
        self.call(number);
    }

    /// The thread's run: begins what can be in progress, and writes what has been read.
    pub(super) fn work_stripes(&mut self, number: u32) {
        while let Some(ready) = self.parity_of(number).and_then(|parity| parity.ready.pop_front()) {
            self.write_stripe(number, ready);
        }
        while let Some(next) = self.parity_of(number).and_then(Parity::begin_next) {
            if !self.read_stripe(number, next) {
                self.write_stripe(number, next);
            }
        }
    }

    /// Reads what the parity of a stripe needs. Returns whether that is anything.
    fn read_stripe(&mut self, number: u32, stripe: u32) -> bool {
        let Some(parity) = self.parity_of(number) else { return false };
        let Some(Some(write)) = parity.active.get(stripe as usize) else { return false };
        let (layout, at) = (parity.layout, write.stripe);
        let mut reads: Vec<(usize, u32, u32)> = Vec::new();
        for rows in parity.plan(write) {
            let data = rows.data_reads.iter().map(|&chunk| layout.data_member(at, chunk));
            let parities = (0..layout.parities).filter(|_| rows.reads_parity).map(|p| layout.parity_member(at, p));
            reads.extend(data.chain(parities).map(|member| (member, rows.from, rows.to)));
        }
        if reads.is_empty() {
            return false;
        }
        let join = self.joins.add(0, Then::Stripe { layer: number, stripe });
        for (member, from, to) in reads {
            self.pass_stripe_bio(number, (Op::Read, BioFlags::NONE), member, (at, from, to), join);
        }
        true
    }

    /// Writes the data and the parity of a stripe.
    fn write_stripe(&mut self, number: u32, stripe: u32) {
        let Some(parity) = self.parity_of(number) else { return };
        let Some(Some(write)) = parity.active.get_mut(stripe as usize) else { return };
        write.has_read = true;
        let (layout, at) = (parity.layout, write.stripe);
        let flags = write.writes.iter().fold(BioFlags::NONE, |flags, one| flags.with(one.flags));
        let mut bios: Vec<(usize, u32, u32, BioFlags)> = write
            .writes
            .iter()
            .map(|one| (layout.data_member(at, one.chunk), one.from, one.from + one.sectors, one.flags))
            .collect();
        let Some(Some(write)) = parity.active.get(stripe as usize) else { return };
        let mut runs: Vec<(u32, u32)> = Vec::new();
        for rows in parity.plan(write) {
            match runs.last_mut() {
                Some(last) if last.1 == rows.from => last.1 = rows.to,
                _ => runs.push((rows.from, rows.to)),
            }
        }
        let parities = (0..layout.parities).flat_map(|p| runs.iter().map(move |&(from, to)| (p, from, to)));
        bios.extend(parities.map(|(p, from, to)| (layout.parity_member(at, p), from, to, flags)));
        let join = self.joins.add(0, Then::Stripe { layer: number, stripe });
        for (member, from, to, flags) in bios {
            self.pass_stripe_bio(number, (Op::Write, flags), member, (at, from, to), join);
        }
    }

    /// Passes a bio of the thread's own on to a member.
    fn pass_stripe_bio(
        &mut self,
        number: u32,
        (op, flags): (Op, BioFlags),
        member: usize,
        (stripe, from, to): (u64, u32, u32),
        join: u32,
    ) {
        let Some(parity) = self.parity_of(number) else { return };
        let sector = stripe * u64::from(parity.layout.chunk) + u64::from(from);
        let segments = (to - from).div_ceil(8).clamp(1, u32::from(u16::MAX)) as u16;
        let io_context = self.io_context_of(number);
        let bio = Bio { segments, flags, io_context, ..Bio::new(op, Sector(sector), to - from) };
        self.pass(self.member(number, member), bio, join);
    }

    /// The reads or the writes of a stripe have completed.
    pub(super) fn stripe_ended(&mut self, number: u32, stripe: u32, status: Status) {
        let Some(parity) = self.parity_of(number) else { return };
        let Some(slot) = parity.active.get_mut(stripe as usize) else { return };
        if status == Status::Ok && slot.as_ref().is_some_and(|write| !write.has_read) {
            parity.ready.push_back(stripe);
            return self.call(number);
        }
        let Some(write) = slot.take() else { return };
        parity.active_rows -= write.row_count();
        if !parity.queued.is_empty() {
            self.call(number);
        }
        for one in write.writes {
            self.part_ended(one.join, one.sectors, status);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(chunk: usize, from: u32, sectors: u32) -> ChunkWrite {
        ChunkWrite { stripe: 0, chunk, from, sectors, flags: BioFlags::NONE, join: 0 }
    }

    /// What a stripe with these writes needs, of this many members and parities.
    fn plan(members: usize, parities: usize, writes: Vec<ChunkWrite>) -> Vec<(u32, u32, Vec<usize>, bool)> {
        let parity = Parity::new(ParityLayout { members, parities, chunk: 128 });
        let plan = parity.plan(&StripeWrite { stripe: 0, rows: (0, 128), writes, has_read: false });
        plan.into_iter().map(|rows| (rows.from, rows.to, rows.data_reads, rows.reads_parity)).collect()
    }

    #[test]
    fn a_full_stripe_needs_no_read() {
        let writes = (0..4).map(|chunk| write(chunk, 0, 128)).collect();
        assert_eq!(plan(5, 1, writes), [(0, 128, vec![], false)]);
    }

    #[test]
    fn a_partial_write_reads_whatever_is_fewer() {
        assert_eq!(plan(3, 1, vec![write(0, 0, 8)]), [(0, 8, vec![1], false)], "reconstruct");
        assert_eq!(plan(6, 1, vec![write(3, 0, 8)]), [(0, 8, vec![3], true)], "read, modify, write");
        assert_eq!(plan(4, 1, vec![write(0, 0, 8)]), [(0, 8, vec![1, 2], false)], "as many: reconstruct");
        assert_eq!(plan(6, 2, vec![write(3, 0, 8)]), [(0, 8, vec![0, 1, 2], false)]);
        assert_eq!(plan(8, 2, vec![write(3, 0, 8)]), [(0, 8, vec![3], true)]);
    }

    #[test]
    fn each_row_needs_what_its_own_writes_leave_out() {
        let writes = vec![write(0, 0, 16), write(1, 8, 16), write(0, 64, 8)];
        let expected =
            [(0, 8, vec![1], false), (8, 16, vec![], false), (16, 24, vec![0], false), (64, 72, vec![1], false)];
        assert_eq!(plan(3, 1, writes), expected);
    }

    #[test]
    fn overlapping_rows_of_a_stripe_wait_for_each_other_and_others_do_not() {
        let mut parity = Parity::new(ParityLayout { members: 3, parities: 1, chunk: 128 });
        parity.queue(write(0, 0, 16));
        let first = parity.begin_next().unwrap();
        parity.queue(write(1, 8, 8));
        assert_eq!(parity.begin_next(), None);
        parity.queue(ChunkWrite { stripe: 1, ..write(1, 8, 8) });
        assert!(parity.begin_next().is_some());
        parity.active[first as usize] = None;
        assert!(parity.begin_next().is_some());
    }

    #[test]
    fn no_more_rows_are_in_progress_than_the_stripe_cache_has() {
        let mut parity = Parity::new(ParityLayout { members: 3, parities: 1, chunk: 1024 });
        (0..3).for_each(|stripe| parity.queue(ChunkWrite { stripe, ..write(0, 0, 1024) }));
        assert_eq!([parity.begin_next().is_some(), parity.begin_next().is_some()], [true, true]);
        assert_eq!(parity.begin_next(), None);
    }
}
