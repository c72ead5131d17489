//! Read-ahead: the drive reads on where reads follow each other, so that the flash's time is hidden from a sequential stream.
//!
//! Tests: below.

use hoistway_blk::ground::Instant;

/// Streams that are distinguished.
const STREAMS: usize = 8;
/// Maximum pieces that a stream has ahead.
pub(super) const PIECES_MAX: u64 = 64;

/// A stream of reads, each of which begins where the one before ended.
#[derive(Clone, Copy, Debug)]
struct Stream {
    /// The sector after the last read.
    end: u64,
    /// Whether a read has continued it: one may do so by chance.
    is_known: bool,
    /// The first piece that has not been read from the flash.
    next: u64,
    /// How many pieces before that are in the drive's memory.
    count: u64,
    /// When each of them was there, by its number modulo [`PIECES_MAX`].
    ready: [Instant; PIECES_MAX as usize],
}

/// The streams of a drive.
#[derive(Clone, Debug)]
pub(super) struct ReadAhead {
    /// Pieces that it reads ahead.
    ahead: u64,
    streams: [Stream; STREAMS],
    oldest: usize,
}

impl ReadAhead {
    /// Reads `ahead` pieces ahead, at most [`PIECES_MAX`].
    pub(super) fn new(ahead: u64) -> ReadAhead {
        // No read begins there, since it would have to end beyond the largest device.
        let nowhere =
            Stream { end: u64::MAX, is_known: false, next: 0, count: 0, ready: [Instant::ZERO; PIECES_MAX as usize] };
        ReadAhead { ahead: ahead.clamp(1, PIECES_MAX), streams: [nowhere; STREAMS], oldest: 0 }
    }

    /// A read of sectors in these pieces at `at`: returns when all are there. `flash` reads a piece, and returns when it is there.
    #[inline]
    pub(super) fn read(
        &mut self,
        sectors: (u64, u64),
        (first, last): (u64, u64),
        at: Instant,
        mut flash: impl FnMut(u64) -> Instant,
    ) -> Instant {
        let (begin, end) = sectors;
        let continued = self.streams.iter().position(|stream| stream.end == begin);
        let Some(number) = continued.filter(|number| self.streams[*number].is_known) else {
            let (mut done, mut ready) = (at, at);
            for piece in first..=last {
                ready = flash(piece);
                done = done.max(ready);
            }
            self.remember(continued, end, last, ready);
            return done;
        };
        let stream = &mut self.streams[number];
        stream.end = end;
        let mut done = at;
        for piece in first..=last {
            done = done.max(stream.piece(piece, &mut flash));
        }
        while stream.next <= last + self.ahead {
            let next = stream.next;
            stream.piece(next, &mut flash);
        }
        done
    }

    /// Remembers a read that continues this stream for the first time, or may be the first of one, in place of the stream that began
    /// first.
    #[inline]
    fn remember(&mut self, continued: Option<usize>, end: u64, last: u64, ready: Instant) {
        let stream = &mut self.streams[continued.unwrap_or(self.oldest)];
        (stream.end, stream.is_known, stream.next, stream.count) = (end, continued.is_some(), last + 1, 1);
        stream.ready[(last % PIECES_MAX) as usize] = ready;
        if continued.is_none() {
            self.oldest = (self.oldest + 1) % STREAMS;
        }
    }
}

impl Stream {
    /// When this piece is there. One that is not in memory is read from the flash, and is the last one that was.
    #[inline]
    fn piece(&mut self, piece: u64, flash: &mut impl FnMut(u64) -> Instant) -> Instant {
        let slot = (piece % PIECES_MAX) as usize;
        if piece < self.next && piece + self.count >= self.next {
            return self.ready[slot];
        }
        let ready = flash(piece);
        if piece == self.next {
            self.ready[slot] = ready;
            self.next += 1;
            self.count = (self.count + 1).min(PIECES_MAX);
        }
        ready
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use hoistway_blk::ground::Nanos;
    use proptest::prelude::*;

    use super::*;

    const PIECE_SECTORS: u64 = 32;

    /// The pieces of some sectors.
    fn pieces(begin: u64, end: u64) -> (u64, u64) {
        (begin / PIECE_SECTORS, (end - 1) / PIECE_SECTORS)
    }

    #[test]
    fn a_stream_waits_for_the_flash_only_at_its_begin() {
        let mut ahead = ReadAhead::new(16);
        let waits: Vec<u64> = (0..100)
            .map(|number| {
                let (begin, at) = (number * 8, Instant(number * 20_000));
                let done = ahead.read((begin, begin + 8), pieces(begin, begin + 8), at, |_| at + Nanos(80_000));
                done.0 - at.0
            })
            .collect();
        assert_eq!(waits[0], 80_000);
        assert!(waits[10..].iter().all(|wait| *wait == 0), "{waits:?}");
    }

    proptest! {
        /// Nothing is there before the flash has delivered it, a stream reads each piece once, and reads elsewhere read nothing ahead.
        #[test]
        fn each_piece_is_there_after_the_flash_has_read_it(
            reads in prop::collection::vec((0..4_u64, any::<bool>(), 1..200_u64), 1..200), ahead in 1..80_u64,
        ) {
            let mut model = ReadAhead::new(ahead);
            let mut ends = [0, 1 << 30, 2 << 30, 3 << 30];
            let mut known: BTreeMap<u64, Instant> = BTreeMap::new();
            for (number, (stream, jumps, sectors)) in reads.into_iter().enumerate() {
                let at = Instant(number as u64 * 10_000);
                let begin = ends[stream as usize] + if jumps { 4096 * 32 } else { 0 };
                let end = begin + sectors;
                ends[stream as usize] = end;
                let (first, last) = pieces(begin, end);
                let mut read = Vec::new();
                let done = model.read((begin, end), (first, last), at, |piece| {
                    read.push(piece);
                    at + Nanos(50_000 + piece % 7 * 1000)
                });
                for piece in &read {
                    known.insert(*piece, at + Nanos(50_000 + piece % 7 * 1000));
                }
                let expected = (first..=last).map(|piece| known.get(&piece).copied()).collect::<Option<Vec<_>>>();
                let latest = expected.expect("every piece was read").into_iter().max().unwrap();
                prop_assert!(done >= at && done <= latest.max(at));
                if jumps {
                    prop_assert_eq!(read.len() as u64, last - first + 1, "no stream, no read-ahead");
                } else {
                    prop_assert!(read.iter().all(|piece| *piece <= last + ahead.min(PIECES_MAX)));
                }
            }
        }
    }
}
