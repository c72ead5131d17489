//! The read cache: segments of recent reads, and read-ahead: after a read the head stays and continues reading until
//! something else has to be done.

use hoistway_blk::ground::Instant;

use super::geometry::Geometry;

/// Contiguous sectors whose content is in the cache.
#[derive(Clone, Copy, Debug, Default)]
struct Segment {
    sector: u64,
    end: u64,
}

/// Read-ahead in progress.
#[derive(Clone, Copy, Debug)]
struct ReadAhead {
    segment: usize,
    /// Its first sector.
    sector: u64,
    /// Its start.
    since: Instant,
    /// Its last sector.
    end: u64,
}

#[derive(Clone, Debug)]
pub(super) struct ReadCache {
    segments: Vec<Segment>,
    /// The segment that is replaced next.
    oldest: usize,
    ahead_sectors: u64,
    capacity_sectors: u64,
    ahead: Option<ReadAhead>,
}

/// The result of a look-up for a read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Lookup {
    /// All data is in the cache.
    Hit,
    /// The head is reading it: the last sector arrives at this time.
    Coming(Instant),
    Miss,
}

impl ReadCache {
    pub(super) fn new(segments: u32, ahead_kb: f64, capacity_sectors: u64) -> ReadCache {
        ReadCache {
            segments: vec![Segment::default(); segments as usize],
            oldest: 0,
            ahead_sectors: (ahead_kb * 1000.0 / 512.0) as u64,
            capacity_sectors,
            ahead: None,
        }
    }

    /// Whether all these sectors have been read.
    pub(super) fn holds(&self, sector: u64, sectors: u64) -> bool {
        self.segments.iter().any(|segment| segment.sector <= sector && sector + sectors <= segment.end)
    }

    /// Looks up a read, called when the head is free. If its sectors are being read ahead, read-ahead continues for it.
    pub(super) fn look_up(&mut self, now: Instant, sector: u64, sectors: u64, geometry: &Geometry) -> Lookup {
        let end = sector + sectors;
        if self.holds(sector, sectors) {
            return Lookup::Hit;
        }
        let Some(ahead) = &mut self.ahead else { return Lookup::Miss };
        let segment = &mut self.segments[ahead.segment];
        if sector < segment.sector || sector > ahead.end || end > self.capacity_sectors {
            return Lookup::Miss;
        }
        // Read-ahead continues from the end of the read, unless it had stopped before.
        let has_stopped = ahead.since + geometry.transfer(ahead.sector, ahead.end - ahead.sector) <= now;
        if has_stopped && end > ahead.end {
            return Lookup::Miss;
        }
        let at = ahead.since + geometry.transfer(ahead.sector, end.max(ahead.sector) - ahead.sector);
        segment.end = segment.end.max(end);
        ahead.end = ahead.end.max((end + self.ahead_sectors).min(self.capacity_sectors));
        if at <= now { Lookup::Hit } else { Lookup::Coming(at) }
    }

    /// These sectors were read at `now`, and read-ahead starts.
    pub(super) fn record_read(&mut self, now: Instant, sector: u64, sectors: u64) {
        if self.segments.is_empty() {
            return;
        }
        let end = sector + sectors;
        self.segments[self.oldest] = Segment { sector, end };
        let ahead_end = (end + self.ahead_sectors).min(self.capacity_sectors);
        self.ahead = Some(ReadAhead { segment: self.oldest, sector: end, since: now, end: ahead_end });
        self.oldest = (self.oldest + 1) % self.segments.len();
    }

    /// The head is needed elsewhere. Returns the sector after the last one that was read ahead, if there was time for
    /// any.
    pub(super) fn stop_read_ahead(&mut self, now: Instant, geometry: &Geometry) -> Option<u64> {
        let ahead = self.ahead.take().filter(|ahead| ahead.since < now)?;
        let sectors_max = ahead.end - ahead.sector;
        let time = now.since(ahead.since);
        let is_complete = geometry.transfer(ahead.sector, sectors_max) <= time;
        let sectors = if is_complete { sectors_max } else { geometry.sectors_in(ahead.sector, time).min(sectors_max) };
        let segment = &mut self.segments[ahead.segment];
        segment.end = segment.end.max(ahead.sector + sectors);
        Some(segment.end)
    }

    /// These sectors are written, so their cached content is obsolete.
    pub(super) fn invalidate(&mut self, sector: u64, sectors: u64) {
        for segment in &mut self.segments {
            if segment.sector < sector + sectors && sector < segment.end {
                // What is read ahead from its end is still valid.
                segment.sector = segment.end;
            }
        }
    }
}

#[cfg(test)]
mod tests;
