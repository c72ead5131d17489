//! Commands over a ring: short transfers are continued, interrupted ones are retried, and zeroes are written if the file system
//! cannot zero a range.

use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use hoistway_blk::bio::{Op, Status};
use hoistway_blk::ground::{Instant, SECTOR_BYTES};

use super::table::{FileListing, FileTable, Tail};
use crate::backend::{Command, Ended, IoChannel, Started};
use crate::memory::{Buffer, RawSegment, Segments};
use crate::ring::{InlineAccess, Job, JobKind, Ring};
use crate::wake::Wake;

/// Length of a buffer of zeroes for file systems that cannot zero a range: a write refers to it repeatedly.
pub const ZEROES_BYTES: usize = 256 << 10;
/// Bytes that a worker copies inline in a turn while its other clients wait. More goes through the ring.
const INLINE_TURN_BYTES: u64 = 256 << 10;
/// Maximum length of a write-zeroes, in bytes.
pub const ZERO_BYTES_MAX: u64 = 32 << 20;

const EINTR: i32 = 4;
const EBADF: i32 = 9;
const EAGAIN: i32 = 11;
const EOPNOTSUPP: i32 = 95;

/// One worker's access to files.
pub struct FileChannel<R: Ring> {
    ring: R,
    table: Arc<FileTable>,
    /// The listing of the table that the ring has, and its generation.
    listing: Arc<FileListing>,
    generation: u64,
    /// Commands by number; grows as needed.
    commands: Vec<FileCommand>,
    /// Commands that the ring had no room for, or that have to be retried.
    retries: Vec<u32>,
    /// Commands whose volume was closed before they were passed to the ring.
    volume_closed: Vec<u32>,
    zeroes: Buffer,
    /// Whether the file system has refused to zero a range: one that has to stay allocated, and one that may become a hole.
    must_write_zeroes: [bool; 2],
    /// Bytes that may still be copied inline in this turn.
    inline_bytes_left: u64,
    results: Vec<(u64, i32)>,
}

/// A command in flight.
#[derive(Clone, Default)]
struct FileCommand {
    volume: usize,
    /// Index of the file in the ring.
    file: u32,
    /// Offset of the rest in the file, in bytes.
    offset: u64,
    /// Length of the rest, in bytes.
    remaining: u64,
    step: Step,
    may_unmap: bool,
    fast_only: bool,
    /// The data of the rest.
    segments: Vec<RawSegment>,
    /// Segments that have been transferred.
    segments_done: usize,
    /// The last bytes of the file when the command began.
    file_tail: Option<Tail>,
    /// The data of the last bytes of the file, which are transferred last.
    tail_segments: Vec<RawSegment>,
}

#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Step {
    /// Nothing is in flight.
    #[default]
    None,
    Read,
    Write {
        is_durable: bool,
    },
    Sync,
    Discard,
    Zero,
}

impl<R: Ring> FileChannel<R> {
    /// A channel over the files of this table. The ring has those that it lists now.
    pub fn new(ring: R, table: Arc<FileTable>) -> Self {
        let (generation, listing) = (table.generation(), table.listing());
        FileChannel {
            ring,
            table,
            listing,
            generation,
            commands: Vec::new(),
            retries: Vec::new(),
            volume_closed: Vec::new(),
            zeroes: Buffer::EMPTY,
            must_write_zeroes: [false; 2],
            inline_bytes_left: INLINE_TURN_BYTES,
            results: Vec::new(),
        }
    }

    /// Gives the ring the files that are in the table now.
    #[cold]
    fn update_files(&mut self) {
        self.generation = self.table.generation();
        let listing = self.table.listing();
        for (index, file) in listing.files.iter().enumerate() {
            let before = self.listing.files.get(index).and_then(Option::as_ref);
            let is_same = match (before, file) {
                (Some(before), Some(file)) => Arc::ptr_eq(before, file),
                (None, None) => true,
                _ => false,
            };
            if !is_same {
                self.ring.set_file(index as u32, file.as_ref());
            }
        }
        self.listing = listing;
    }

    /// Passes a command, or the rest of it, to the ring.
    fn push_to_ring(&mut self, id: u32) {
        let file_command = &self.commands[id as usize];
        // Another file may have its index in the ring by now.
        if !self.listing.volumes.get(file_command.volume).is_some_and(|volume| volume.is_open) {
            self.volume_closed.push(id);
            return;
        }
        let data = &file_command.segments[file_command.segments_done..];
        let kind = match file_command.step {
            Step::None => return,
            Step::Read => JobKind::Read(data),
            Step::Write { is_durable } => JobKind::Write(data, is_durable),
            Step::Sync => JobKind::Sync,
            Step::Discard => JobKind::Punch(file_command.remaining),
            Step::Zero if file_command.may_unmap => JobKind::Punch(file_command.remaining),
            Step::Zero => JobKind::Zero(file_command.remaining),
        };
        let job = Job { file: file_command.file, offset: file_command.offset, kind };
        if !push(&mut self.ring, id, job) {
            self.retries.push(id);
        }
    }

    /// Transfers a command's data on this thread, as far as that is possible without waiting. Returns whether that was all; otherwise the
    /// ring continues.
    #[inline]
    fn transfer_inline(&mut self, id: u32) -> bool {
        let file_command = &mut self.commands[id as usize];
        let is_write = match file_command.step {
            Step::Read => false,
            Step::Write { is_durable: false } => true,
            _ => return false,
        };
        let access = &self.listing.volumes[file_command.volume].inline;
        if !access.allows(is_write) {
            return false;
        }
        while self.inline_bytes_left >= file_command.remaining {
            let Some(Some(file)) = self.listing.files.get(file_command.file as usize) else { return false };
            let Some(bytes) = transfer(access, file, is_write, file_command).filter(|&bytes| bytes > 0) else {
                return false;
            };
            self.inline_bytes_left -= bytes;
            file_command.advance(bytes);
            if file_command.is_transferred() {
                file_command.step = Step::None;
                return true;
            }
        }
        false
    }

    /// A system call has returned. Returns the status of the command if it has ended.
    fn handle_result(&mut self, id: u32, result: i32) -> Option<Status> {
        let file_command = &mut self.commands[id as usize];
        if result < 0 {
            return self.handle_error(id, -result);
        }
        match file_command.step {
            Step::Read | Step::Write { .. } => {
                // The file is shorter than before, or the device accepts no more data.
                if result == 0 {
                    return Some(Status::IoError);
                }
                file_command.advance(result as u64);
                if !file_command.is_transferred() {
                    self.push_to_ring(id);
                    return None;
                }
            }
            // A flush does not name its volume, so all files are synced in turn.
            Step::Sync => {
                let next = file_command.volume + 1;
                return if self.sync_from(id, next) { None } else { Some(Status::Ok) };
            }
            Step::Discard | Step::Zero => {
                let map = &self.listing.volumes[file_command.volume].map;
                map.forget(file_command.offset..file_command.offset + file_command.remaining);
            }
            Step::None => {}
        }
        Some(Status::Ok)
    }

    /// Syncs the next open file, from the volume with this index. Returns whether there is one.
    fn sync_from(&mut self, id: u32, volume: usize) -> bool {
        let Some(index) = self.listing.next_open_volume(volume) else { return false };
        let file_command = &mut self.commands[id as usize];
        (file_command.volume, file_command.file) = (index, self.listing.volumes[index].file);
        self.push_to_ring(id);
        true
    }

    fn handle_error(&mut self, id: u32, errno: i32) -> Option<Status> {
        let file_command = &mut self.commands[id as usize];
        match errno {
            EINTR | EAGAIN => self.retries.push(id),
            // The volume was closed meanwhile.
            EBADF if file_command.step == Step::Sync => return self.handle_result(id, 0),
            EOPNOTSUPP if file_command.step == Step::Zero && !file_command.fast_only => {
                self.must_write_zeroes[usize::from(file_command.may_unmap)] = true;
                self.write_zeroes(id);
            }
            errno => return Some(status_of(errno)),
        }
        None
    }

    /// Writes zeroes as data.
    fn write_zeroes(&mut self, id: u32) {
        if self.zeroes.is_empty() {
            self.zeroes = Buffer::zeroed(ZEROES_BYTES);
        }
        let start = self.zeroes.address();
        let file_command = &mut self.commands[id as usize];
        file_command.step = Step::Write { is_durable: false };
        file_command.segments.clear();
        let mut left = file_command.remaining;
        while left > 0 {
            let len = left.min(ZEROES_BYTES as u64);
            file_command.segments.push(RawSegment::at(start, len as usize));
            left -= len;
        }
        if let Some(tail) = file_command.file_tail {
            file_command.split(tail);
        }
        self.push_to_ring(id);
    }
}

impl FileCommand {
    /// Cuts off the part beyond the end of the file, and splits off the last bytes of the file, which need a separate call.
    #[cold]
    fn split(&mut self, tail: Tail) {
        self.remaining = self.remaining.min(tail.end.saturating_sub(self.offset));
        if !matches!(self.step, Step::Read | Step::Write { .. }) {
            return;
        }
        self.tail_segments.clear();
        let mut before_tail = tail.start.saturating_sub(self.offset).min(self.remaining);
        let mut in_tail = self.remaining - before_tail;
        let segments = std::mem::take(&mut self.segments);
        for segment in segments {
            let first_len = (segment.len as u64).min(before_tail) as usize;
            if first_len > 0 {
                self.segments.push(segment.first(first_len));
            }
            before_tail -= first_len as u64;
            let rest = segment.after(first_len);
            let tail_len = (rest.len as u64).min(in_tail) as usize;
            if tail_len > 0 {
                self.tail_segments.push(rest.first(tail_len));
            }
            in_tail -= tail_len as u64;
        }
        self.remaining = self.segments.iter().map(|segment| segment.len as u64).sum();
        if self.remaining == 0 {
            self.transfer_tail(tail);
        }
    }

    /// Everything except the last bytes of the file has been transferred.
    #[cold]
    fn transfer_tail(&mut self, tail: Tail) {
        self.segments = std::mem::take(&mut self.tail_segments);
        self.offset = self.offset.max(tail.start);
        self.segments_done = 0;
        self.remaining = self.segments.iter().map(|segment| segment.len as u64).sum();
        self.file = tail.file;
    }

    /// Whether everything has been transferred; otherwise the last bytes of the file may be next.
    fn is_transferred(&mut self) -> bool {
        if self.remaining == 0
            && !self.tail_segments.is_empty()
            && let Some(tail) = self.file_tail
        {
            self.transfer_tail(tail);
        }
        self.remaining == 0
    }

    /// Accounts for this many transferred bytes.
    fn advance(&mut self, bytes: u64) {
        let mut bytes = bytes.min(self.remaining);
        self.offset += bytes;
        self.remaining -= bytes;
        while bytes > 0 {
            let segment = &mut self.segments[self.segments_done];
            let consumed = bytes.min(segment.len as u64);
            bytes -= consumed;
            if consumed == segment.len as u64 {
                self.segments_done += 1;
            } else {
                *segment = segment.after(consumed as usize);
            }
        }
    }
}

/// Transfers data of a command inline.
#[allow(unsafe_code)]
fn transfer(access: &InlineAccess, file: &File, is_write: bool, file_command: &FileCommand) -> Option<u64> {
    // SAFETY: a channel is promised that the memory of a command stays valid, and is used by nothing else, until the command has ended.
    unsafe {
        access.transfer(file, is_write, &file_command.segments[file_command.segments_done..], file_command.offset)
    }
}

/// Passes a job to the ring.
#[allow(unsafe_code)]
fn push(ring: &mut impl Ring, id: u32, job: Job<'_>) -> bool {
    // SAFETY: the list belongs to the command, which nothing touches until the job has come back; the memory that it refers
    // to stays valid until the command has ended, as every channel is promised, or is this channel's own zeroes.
    unsafe { ring.push(u64::from(id), job) }
}

impl<R: Ring> IoChannel for FileChannel<R> {
    fn start(&mut self, _: Instant, command: &Command, data: Segments<'_>) -> Started {
        if self.table.generation() != self.generation {
            self.update_files();
        }
        let index = self.listing.volume_of(command.sector);
        let step = match command.op {
            Op::Read => Step::Read,
            Op::Write => Step::Write { is_durable: command.fua },
            Op::Flush => Step::Sync,
            Op::Discard => Step::Discard,
            Op::WriteZeroes => Step::Zero,
        };
        if self.commands.len() <= command.id as usize {
            self.commands.resize(command.id as usize + 1, FileCommand::default());
        }
        let file_command = &mut self.commands[command.id as usize];
        file_command.step = step;
        if step == Step::Sync {
            return if self.sync_from(command.id, 0) { Started::Queued } else { Started::Done(Status::Ok) };
        }
        let Some(volume) = self.listing.volumes.get(index).filter(|volume| volume.is_open) else {
            return Started::Done(Status::Offline);
        };
        (file_command.volume, file_command.file, file_command.file_tail) = (index, volume.file, volume.tail);
        file_command.offset = command.sector.0.saturating_sub(volume.shape.first.0) * SECTOR_BYTES;
        file_command.remaining = u64::from(command.sectors) * SECTOR_BYTES;
        file_command.may_unmap = command.zeroing.may_unmap;
        file_command.fast_only = command.zeroing.fast_only;
        file_command.segments.clear();
        file_command.segments.extend_from_slice(data.raw());
        file_command.segments_done = 0;
        file_command.tail_segments.clear();
        if let Some(tail) = volume.tail {
            let end = file_command.offset + file_command.remaining;
            if end > tail.end && step == Step::Read {
                zero_past_end(tail.end.saturating_sub(file_command.offset), data);
            }
            if end > tail.start {
                file_command.split(tail);
            }
        }
        if step == Step::Zero && self.must_write_zeroes[usize::from(command.zeroing.may_unmap)] {
            if command.zeroing.fast_only {
                return Started::Done(Status::NotSupported);
            }
            self.write_zeroes(command.id);
        } else if self.transfer_inline(command.id) {
            return Started::Done(Status::Ok);
        } else {
            self.push_to_ring(command.id);
        }
        Started::Queued
    }

    fn reap(&mut self, _: Instant, ended: &mut Vec<Ended>) {
        self.inline_bytes_left = INLINE_TURN_BYTES;
        if self.table.generation() != self.generation {
            self.update_files();
        }
        for _ in 0..self.retries.len() {
            let id = self.retries.remove(0);
            self.push_to_ring(id);
        }
        let mut results = std::mem::take(&mut self.results);
        self.ring.reap(&mut results);
        for (tag, result) in results.drain(..) {
            let id = tag as u32;
            if let Some(status) = self.handle_result(id, result) {
                self.commands[id as usize].step = Step::None;
                ended.push(Ended { id, status });
            }
        }
        self.results = results;
        for id in std::mem::take(&mut self.volume_closed) {
            let file_command = &self.commands[id as usize];
            if file_command.step != Step::Sync {
                self.commands[id as usize].step = Step::None;
                ended.push(Ended { id, status: Status::Offline });
            } else if !self.sync_from(id, file_command.volume + 1) {
                self.commands[id as usize].step = Step::None;
                ended.push(Ended { id, status: Status::Ok });
            }
        }
    }

    fn sleep(&mut self, timeout: Option<Duration>) {
        if self.retries.is_empty() && self.volume_closed.is_empty() {
            self.ring.sleep(timeout);
        }
    }

    fn next_at(&self) -> Option<Instant> {
        // Jobs that found no room in the ring are retried at once.
        (!self.retries.is_empty() || !self.volume_closed.is_empty()).then_some(Instant::ZERO)
    }

    fn descriptor(&mut self) -> io::Result<Option<BorrowedFd<'_>>> {
        self.ring.descriptor()
    }

    fn watch(&mut self, descriptor: BorrowedFd<'_>) -> io::Result<bool> {
        self.ring.watch(descriptor)
    }

    fn take_readiness(&mut self) -> bool {
        self.ring.take_readiness()
    }

    fn wake_instead(&mut self, waker: Arc<dyn Wake>) {
        self.ring.wake_instead(waker);
    }

    fn waker(&self) -> Arc<dyn Wake> {
        self.ring.waker()
    }
}

/// The part beyond the end of a file reads as zeroes.
#[cold]
fn zero_past_end(valid_bytes: u64, mut data: Segments<'_>) {
    data.for_each(|before, piece| {
        let valid = valid_bytes.saturating_sub(before).min(piece.len() as u64) as usize;
        piece[valid..].fill(0);
    });
}

/// The block layer's status for an errno.
pub fn status_of(errno: i32) -> Status {
    let known =
        [Status::NotSupported, Status::Timeout, Status::NoSpace, Status::Medium, Status::Offline, Status::Invalid];
    known.into_iter().find(|status| status.errno() == errno).unwrap_or(Status::IoError)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::fs::FileExt as _;

    use hoistway_blk::ground::Sector;
    use rustix::fs::{Advice, fadvise};

    use super::*;
    use crate::backend::{FileSpec, Files, Zeroing};
    use crate::ring::Uring;

    const BYTES: usize = (1 << 20) + 700;

    /// A file that does not end with a full block, its content, and a channel over it through the page cache or not.
    fn file(buffered: bool) -> (tempfile::NamedTempFile, Vec<u8>, FileChannel<Uring>) {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let content: Vec<u8> = (0..BYTES).map(|at| (at / 512 + at) as u8).collect();
        file.write_all(&content).unwrap();
        file.as_file().sync_all().unwrap();
        let files = Files::open(&[FileSpec { buffered, ..FileSpec::new(file.path()) }]).unwrap();
        let ring = files.ring(|files| Uring::new(8, files)).unwrap();
        let channel = FileChannel::new(ring, Arc::clone(&files.table));
        (file, content, channel)
    }

    /// Carries a command out. Returns whether it completed inline.
    #[allow(unsafe_code)]
    fn carry_out(channel: &mut FileChannel<Uring>, op: Op, sector: u64, buffer: &mut Buffer) -> bool {
        let (start, half) = (buffer.address(), buffer.len() / 8192 * 4096);
        let mut raw = vec![RawSegment::at(start, half), RawSegment::at(start + half, buffer.len() - half)];
        raw.retain(|segment| segment.len > 0);
        let sectors = (buffer.len() as u64 / SECTOR_BYTES) as u32;
        let (sector, zeroing) = (Sector(sector), Zeroing::default());
        let command = Command { id: 0, queue: 0, tag: 0, op, sector, sectors, fua: false, zeroing };
        // SAFETY: the buffer is not used before the command has ended.
        match channel.start(Instant::ZERO, &command, unsafe { Segments::new(&raw) }) {
            Started::Done(status) => {
                assert_eq!(status, Status::Ok);
                true
            }
            Started::Full => unreachable!("the ring has room"),
            Started::Queued => {
                let mut ended = Vec::new();
                while ended.is_empty() {
                    let left = channel.inline_bytes_left;
                    channel.reap(Instant::ZERO, &mut ended);
                    channel.inline_bytes_left = left;
                    if ended.is_empty() {
                        channel.sleep(None);
                    }
                }
                assert_eq!(ended, [Ended { id: 0, status: Status::Ok }]);
                false
            }
        }
    }

    /// The content from a sector on, and zeroes behind its end.
    fn expected(content: &[u8], sector: u64, bytes: usize) -> Vec<u8> {
        let start = (sector * SECTOR_BYTES) as usize;
        (start..start + bytes).map(|at| content.get(at).copied().unwrap_or(0)).collect()
    }

    #[test]
    fn cached_data_is_read_inline_up_to_the_bytes_of_a_turn() {
        let (_file, content, mut channel) = file(true);
        let mut inline = Vec::new();
        for turn in 0..2 {
            channel.inline_bytes_left = INLINE_TURN_BYTES;
            for at in 0..6 {
                let (sector, mut buffer) = (turn * 7 + at * 128, Buffer::zeroed(64 << 10));
                inline.push(carry_out(&mut channel, Op::Read, sector, &mut buffer));
                assert!(*buffer == expected(&content, sector, 64 << 10), "{turn} {at}");
            }
        }
        // A file system without `RWF_NOWAIT` is asked once.
        if channel.listing.volumes[0].inline.allows(false) {
            assert_eq!(inline, [true, true, true, true, false, false, true, true, true, true, false, false]);
        } else {
            assert!(inline.iter().all(|inline| !inline));
        }
    }

    #[test]
    fn data_is_the_same_inline_and_through_the_ring() {
        for buffered in [false, true] {
            let (file, mut content, mut channel) = file(buffered);
            let mut random = crate::faults::Random::new(7);
            for round in 0..400_u32 {
                channel.inline_bytes_left = INLINE_TURN_BYTES;
                if round % 50 == 0 {
                    // What is not cached is read by the ring.
                    file.as_file().sync_all().unwrap();
                    fadvise(file.as_file(), 0, None, Advice::DontNeed).unwrap();
                }
                let sectors = 8 * (1 + random.below(12));
                let sector = random.below(2056 / 8 - sectors / 8 + 1) * 8;
                let bytes = (sectors * SECTOR_BYTES) as usize;
                let mut buffer = Buffer::zeroed(bytes);
                if random.one_in(2) {
                    carry_out(&mut channel, Op::Read, sector, &mut buffer);
                    assert!(*buffer == expected(&content, sector, bytes), "round {round}: {sector} {sectors}");
                } else {
                    buffer.fill(round as u8);
                    carry_out(&mut channel, Op::Write, sector, &mut buffer);
                    let start = (sector * SECTOR_BYTES) as usize;
                    content[start..(start + bytes).min(BYTES)].fill(round as u8);
                }
            }
            let mut after = vec![0; BYTES];
            file.as_file().read_exact_at(&mut after, 0).unwrap();
            assert!(after == content && file.as_file().metadata().unwrap().len() == BYTES as u64);
        }
    }

    #[test]
    fn direct_io_waits_in_the_ring() {
        let (_file, content, mut channel) = file(false);
        let inline = carry_out(&mut channel, Op::Read, 8, &mut Buffer::zeroed(4096));
        assert_eq!(inline, channel.listing.volumes[0].inline.allows(false), "only tmpfs reads inline");
        let mut buffer = Buffer::zeroed(4096);
        carry_out(&mut channel, Op::Read, 8, &mut buffer);
        assert!(*buffer == expected(&content, 8, 4096));
    }
}
