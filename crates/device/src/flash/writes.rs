//! The path of a write: through the front end into the buffer, up to its acknowledgement.
//!
//! Usually the dies take data from the buffer, and data that does not fit waits outside. If data is dealt to dies
//! ([`stripes`](super::stripes)), they also take it from waiting writes: then the buffer only limits how much may be
//! acknowledged before it is in the flash, and a large write is not acknowledged before that.

use hoistway_blk::ground::{Instant, Nanos, SECTOR_BYTES};

use super::Flash;
use crate::model::{Command, Schedule};

/// A write that passes the front end within this time counts as arrived, which saves an alarm.
const ARRIVAL_SLACK: Nanos = Nanos::from_micros(10);

/// The sectors of a write.
#[inline]
fn sectors_of(bytes: u64) -> u32 {
    (bytes / SECTOR_BYTES) as u32
}

/// A write that is not completely in the buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub(super) tag: u32,
    pub(super) fua: bool,
    pub(super) is_random: bool,
    pub(super) bytes: u64,
    /// Bytes that are not in the buffer yet, with the rest of pages that it covers in part.
    pub(super) unbuffered: u64,
    /// When its data has passed the front end.
    pub(super) ready: Instant,
}

/// A write that was dealt to dies but may not be acknowledged yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unacknowledged {
    tag: u32,
    fua: bool,
    bytes: u64,
    /// Total bytes put into the buffer including it.
    position: u64,
    ready: Instant,
}

impl Flash {
    /// A write whose data has arrived reads the pages that it covers in part. Returns when it has them, and the bytes of all its pages.
    pub(super) fn complete_pages(&mut self, at: Instant, command: &Command) -> (Instant, u64) {
        let (first, sectors) = (command.sector.0, u64::from(command.sectors));
        let Some(page_sectors) = self.write_page_sectors else { return (at, sectors * SECTOR_BYTES) };
        let end = first + sectors;
        let (first_page, end_page) = (first / page_sectors, end.div_ceil(page_sectors));
        let starts_within = first % page_sectors != 0;
        // A page that holds both ends is read once.
        let ends_within = end % page_sectors != 0 && !(starts_within && end_page == first_page + 1);
        let mut ready = at;
        for (is_partial, page) in [(starts_within, first_page), (ends_within, end_page.saturating_sub(1))] {
            if is_partial {
                let piece = page * page_sectors / self.piece_sectors;
                let may_suspend = self.write_through_bytes.is_none() || !self.buffer.is_full();
                ready = ready.max(self.dies.read(piece, at, Nanos::ZERO, may_suspend, &mut self.random));
            }
        }
        (ready, (end_page - first_page) * page_sectors * SECTOR_BYTES)
    }

    /// Moves arrived data that fits into the buffer, and drains the buffer.
    #[inline]
    pub(super) fn fill_buffer(&mut self, at: Instant, schedule: &mut Schedule) {
        if let Some(write_through_bytes) = self.write_through_bytes {
            return self.deal(at, write_through_bytes, schedule);
        }
        let mut programs_at = at;
        while let Some(write) = self.waiting.front_mut()
            && write.ready <= at + ARRIVAL_SLACK
        {
            programs_at = at.max(write.ready);
            let bytes_that_fit = write.unbuffered.min(self.buffer.room());
            self.buffer.put(bytes_that_fit, write.is_random);
            write.unbuffered -= bytes_that_fit;
            if write.unbuffered > 0 {
                break;
            }
            let Waiting { tag, fua, bytes, ready, .. } = *write;
            self.waiting.pop_front();
            self.end_write(at.max(ready), (tag, sectors_of(bytes)), fua, schedule);
        }
        self.buffer.start_programs(programs_at, &mut self.dies, &mut self.random);
    }

    /// Deals all arrived data to dies, and acknowledges as much as the buffer allows.
    fn deal(&mut self, at: Instant, write_through_bytes: u64, schedule: &mut Schedule) {
        let mut programs_at = at;
        while let Some(&Waiting { tag, fua, is_random, bytes, unbuffered, ready }) = self.waiting.front()
            && ready <= at + ARRIVAL_SLACK
        {
            programs_at = at.max(ready);
            self.waiting.pop_front();
            // The rest of pages that the write covers in part; 0 if pages are of no matter.
            self.buffer.put(unbuffered - bytes, is_random);
            if bytes >= write_through_bytes && is_random {
                self.buffer.put_write_through(tag, bytes, is_random, &self.dies, &mut self.random);
            } else {
                self.buffer.put(bytes, is_random);
                let position = self.buffer.total_put_bytes();
                self.unacknowledged.push_back(Unacknowledged { tag, fua, bytes, position, ready });
            }
        }
        self.buffer.start_programs(programs_at, &mut self.dies, &mut self.random);
        self.end_write_throughs(schedule);
        while let Some(&Unacknowledged { tag, fua, bytes, position, ready }) = self.unacknowledged.front()
            && self.buffer.may_acknowledge(position)
        {
            self.unacknowledged.pop_front();
            self.end_write(at.max(ready), (tag, sectors_of(bytes)), fua, schedule);
        }
    }

    /// A write is in the buffer.
    #[inline]
    fn end_write(&mut self, at: Instant, (tag, sectors): (u32, u32), fua: bool, schedule: &mut Schedule) {
        if fua {
            self.barrier(at, tag, sectors, schedule);
        } else {
            self.record_leaving(at, sectors);
            schedule.complete(at + self.acknowledge + self.write_outbound, tag);
        }
    }

    /// Ends writes whose arrival in the flash is known.
    pub(super) fn end_write_throughs(&mut self, schedule: &mut Schedule) {
        while let Some((tag, bytes, at)) = self.buffer.stripes().and_then(|stripes| stripes.pop_end()) {
            self.record_leaving(at, sectors_of(bytes));
            schedule.complete(at + self.acknowledge + self.write_outbound, tag);
        }
    }

    /// When the next write that the buffer has room for passes the front end.
    #[inline]
    pub(super) fn next_ready(&self) -> Option<Instant> {
        let write = self.waiting.front()?;
        (self.write_through_bytes.is_some() || self.buffer.room() > 0 || write.unbuffered == 0).then_some(write.ready)
    }

    /// Whether a command waits for data that is dealt to dies.
    #[inline]
    pub(super) fn waits_for_dealt_data(&self) -> bool {
        !self.unacknowledged.is_empty() || self.buffer.has_waiting_write_through()
    }
}

#[cfg(test)]
mod tests {
    use hoistway_blk::bio::Op;
    use hoistway_blk::ground::{Instant, Sector};

    use super::*;
    use crate::flash::parameters::FlashParameters;
    use crate::model::Device;
    use crate::preset::{Parameters, Preset};

    /// When writes of this size that begin so many sectors after each 64 KiB are acknowledged in the mean, us, and the KiB that a drive
    /// with pages of 16 KiB, or one that knows none, puts into its buffer for each.
    fn writes(name: &str, page_kib: Option<u32>, first: u64, sectors: u32) -> (f64, u64) {
        const WRITES: u64 = 16;
        let preset = Preset::builtin(name).unwrap();
        let Parameters::Flash(parameters) = preset.parameters() else { unreachable!() };
        let parameters = FlashParameters { write_page_kib: page_kib, ..(**parameters).clone() };
        let mut drive = Flash::new(preset.shape(), &parameters, 1);
        let mut schedule = Schedule::default();
        for tag in 0..WRITES {
            let now = Instant(tag * 1_000_000);
            let sector = Sector(tag * 128 + first);
            drive
                .submit(
                    now,
                    Command { tag: tag as u32, queue: 0, op: Op::Write, sector, sectors, fua: false },
                    &mut schedule,
                )
                .unwrap();
            while let Some((at, alarm)) = schedule.alarms.pop() {
                drive.wake(at, alarm, &mut schedule);
            }
        }
        let us: u64 = schedule.completions.iter().map(|end| end.at.0 - u64::from(end.tag) * 1_000_000).sum();
        assert_eq!(schedule.completions.len() as u64, WRITES);
        (us as f64 / 1e3 / WRITES as f64, drive.buffer.total_put_bytes() / 1024 / WRITES)
    }

    #[test]
    fn a_write_that_covers_parts_of_pages_reads_them_first_and_programs_all_of_them() {
        for name in ["micron-9100-1600gb", "samsung-980pro-1tb"] {
            let of = |page_kib, first, sectors| writes(name, page_kib, first, sectors);
            let [aligned, shifted, small, within] =
                [(0, 32), (8, 32), (0, 8), (8, 8)].map(|(first, sectors)| of(Some(16), first, sectors));
            assert_eq!([aligned.1, shifted.1, small.1, within.1], [16, 32, 16, 16], "{name}: KiB");
            assert_eq!((aligned, of(None, 8, 32).1), (of(None, 0, 32), 16), "{name}: whole pages cost nothing more");
            assert!(shifted.0 > aligned.0 + 30.0 && small.0 > of(None, 0, 8).0 + 30.0, "{name}: {shifted:?} {small:?}");
        }
    }
}
