//! The log of a recording: short entries in the order of time, in a temporary file.
//!
//! Used by: `infer`, `track`, `gather`.
//! Tests: below.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek as _, SeekFrom};
use std::os::unix::fs::FileExt as _;

/// The kind of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// An I/O was submitted.
    Queued,
    /// The submission of an I/O has ended.
    Submitted,
    /// An I/O has completed.
    Completed,
    /// An I/O's completion was lost.
    GivenUp,
    /// A plug began.
    Plug,
    /// A plug ended.
    Unplug,
    /// A plug ended because its task went to sleep.
    UnplugScheduled,
    /// An I/O that was refused after its submission; readers skip it.
    Withdrawn,
}

const KINDS: [Kind; 8] = [
    Kind::Queued,
    Kind::Submitted,
    Kind::Completed,
    Kind::GivenUp,
    Kind::Plug,
    Kind::Unplug,
    Kind::UnplugScheduled,
    Kind::Withdrawn,
];

/// An entry of the log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) kind: Kind,
    /// Time by the recording's clock.
    pub(crate) time_ns: u64,
    /// `Queued`: the first sector. `Submitted`: how long the task was blocked, ns. `Completed` and `GivenUp`: time since the
    /// submission, ns.
    pub(crate) value: u64,
    pub(crate) bytes: u32,
    /// The task's number.
    pub(crate) task: u32,
    /// Bits of the I/O's flags.
    pub(crate) flags: u16,
    pub(crate) priority: u16,
}

const ENTRY_BYTES: usize = 32;
/// Offset of the kind in an encoded entry.
const KIND_OFFSET: usize = 28;
const BUFFER_BYTES: usize = 256 << 10;

impl Entry {
    fn to_bytes(self) -> [u8; ENTRY_BYTES] {
        let mut bytes = [0; ENTRY_BYTES];
        bytes[..8].copy_from_slice(&self.time_ns.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.value.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.bytes.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.task.to_le_bytes());
        bytes[24..26].copy_from_slice(&self.flags.to_le_bytes());
        bytes[26..28].copy_from_slice(&self.priority.to_le_bytes());
        bytes[KIND_OFFSET] = self.kind as u8;
        bytes
    }

    fn from_bytes(bytes: &[u8; ENTRY_BYTES]) -> Entry {
        let long = |offset: usize| u64::from_le_bytes(*bytes[offset..].first_chunk().expect("within the entry"));
        let word = |offset: usize| u32::from_le_bytes(*bytes[offset..].first_chunk().expect("within the entry"));
        let half = |offset: usize| u16::from_le_bytes(*bytes[offset..].first_chunk().expect("within the entry"));
        Entry {
            kind: KINDS[usize::from(bytes[KIND_OFFSET])],
            time_ns: long(0),
            value: long(8),
            bytes: word(16),
            task: word(20),
            flags: half(24),
            priority: half(26),
        }
    }
}

/// A log that is being written.
#[derive(Debug)]
pub(crate) struct Writer {
    file: File,
    /// Entries not yet in the file.
    buffer: Vec<u8>,
    /// Bytes in the file.
    written: u64,
}

impl Writer {
    pub(crate) fn new() -> io::Result<Writer> {
        Ok(Writer { file: tempfile::tempfile()?, buffer: Vec::with_capacity(BUFFER_BYTES), written: 0 })
    }

    /// Adds an entry and returns its number.
    #[inline]
    pub(crate) fn add(&mut self, entry: Entry) -> io::Result<u64> {
        if self.buffer.len() >= BUFFER_BYTES {
            self.flush()?;
        }
        let number = (self.written + self.buffer.len() as u64) / ENTRY_BYTES as u64;
        self.buffer.extend_from_slice(&entry.to_bytes());
        Ok(number)
    }

    /// Withdraws an entry, which readers then skip.
    pub(crate) fn withdraw(&mut self, number: u64) -> io::Result<()> {
        let kind_offset = number * ENTRY_BYTES as u64 + KIND_OFFSET as u64;
        match kind_offset.checked_sub(self.written) {
            Some(index) => self.buffer[index as usize] = Kind::Withdrawn as u8,
            None => self.file.write_all_at(&[Kind::Withdrawn as u8], kind_offset)?,
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.write_all_at(&self.buffer, self.written)?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    pub(crate) fn finish(mut self) -> io::Result<EntryLog> {
        self.flush()?;
        Ok(EntryLog { file: self.file, window_ns: None })
    }
}

/// A complete log, which can be read several times.
#[derive(Debug)]
pub(crate) struct EntryLog {
    file: File,
    /// The kept period by the recording's clock; `None` for everything.
    window_ns: Option<(u64, u64)>,
}

impl EntryLog {
    /// Restricts reading to I/Os submitted in this period, and to their events until its end.
    pub(crate) fn keep(&mut self, from_ns: u64, to_ns: u64) {
        self.window_ns = Some((from_ns, to_ns));
    }

    /// Calls `visit` for every entry, in the order of time.
    pub(crate) fn for_each(&mut self, mut visit: impl FnMut(&Entry) -> io::Result<()>) -> io::Result<()> {
        let (from_ns, to_ns) = self.window_ns.unwrap_or((0, u64::MAX));
        let first = if from_ns == 0 { 0 } else { self.first_at(from_ns)? };
        self.file.seek(SeekFrom::Start(first * ENTRY_BYTES as u64))?;
        let mut reader = BufReader::with_capacity(BUFFER_BYTES, &self.file);
        let mut bytes = [0; ENTRY_BYTES];
        loop {
            match reader.read_exact(&mut bytes) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
                Err(error) => return Err(error),
            }
            let entry = Entry::from_bytes(&bytes);
            if entry.time_ns > to_ns {
                return Ok(());
            }
            if entry.submitted_ns() >= from_ns && entry.kind != Kind::Withdrawn {
                visit(&entry)?;
            }
        }
    }

    /// The number of the first entry at or after a time.
    fn first_at(&self, time_ns: u64) -> io::Result<u64> {
        let (mut low, mut high) = (0, self.file.metadata()?.len() / ENTRY_BYTES as u64);
        let mut bytes = [0; ENTRY_BYTES];
        while low < high {
            let middle = low + (high - low) / 2;
            self.file.read_exact_at(&mut bytes, middle * ENTRY_BYTES as u64)?;
            if Entry::from_bytes(&bytes).time_ns < time_ns { low = middle + 1 } else { high = middle }
        }
        Ok(low)
    }

    /// The shortest period with this many consecutive I/Os of the counted tasks; `None` if there are not more I/Os than that.
    pub(crate) fn busiest(&mut self, ios: usize, is_counted: impl Fn(u32) -> bool) -> io::Result<Option<Busiest>> {
        let mut times: VecDeque<u64> = VecDeque::new();
        let (mut count, mut best): (u64, Option<(u64, u64)>) = (0, None);
        self.for_each(|entry| {
            if entry.kind != Kind::Queued || !is_counted(entry.task) {
                return Ok(());
            }
            count += 1;
            times.push_back(entry.time_ns);
            if times.len() > ios {
                times.pop_front();
            }
            if times.len() == ios {
                let (from_ns, to_ns) = (times[0], entry.time_ns);
                if best.is_none_or(|(from, to)| to_ns - from_ns < to - from) {
                    best = Some((from_ns, to_ns));
                }
            }
            Ok(())
        })?;
        let is_more = count > ios as u64;
        Ok(best.filter(|_| is_more).map(|(from_ns, to_ns)| Busiest { from_ns, to_ns, all_ios: count }))
    }
}

/// The busiest stretch of a log, by the recording's clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Busiest {
    pub(crate) from_ns: u64,
    pub(crate) to_ns: u64,
    /// I/Os of the whole log.
    pub(crate) all_ios: u64,
}

impl Entry {
    /// The submission time of the entry's I/O; for a plug its own time.
    const fn submitted_ns(&self) -> u64 {
        match self.kind {
            Kind::Submitted | Kind::Completed | Kind::GivenUp => self.time_ns.saturating_sub(self.value),
            Kind::Queued | Kind::Plug | Kind::Unplug | Kind::UnplugScheduled | Kind::Withdrawn => self.time_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(times: &[(Kind, u64, u64)]) -> EntryLog {
        let mut writer = Writer::new().unwrap();
        for &(kind, time_ns, value) in times {
            writer.add(Entry { kind, time_ns, value, bytes: 0, task: 0, flags: 0, priority: 0 }).unwrap();
        }
        writer.finish().unwrap()
    }

    #[test]
    fn the_busiest_stretch_is_the_shortest_with_a_number_of_ios() {
        let queued = |time_ns: &u64| (Kind::Queued, *time_ns, 0);
        let mut log = log(&[0, 10, 20, 100, 101, 103, 200].iter().map(queued).collect::<Vec<_>>());
        let busiest = Busiest { from_ns: 100, to_ns: 103, all_ios: 7 };
        assert_eq!(log.busiest(3, |_| true).unwrap(), Some(busiest));
        assert_eq!(log.busiest(7, |_| true).unwrap(), None);
        assert_eq!(log.busiest(3, |task| task > 0).unwrap(), None);
    }

    #[test]
    fn withdrawn_entries_are_not_shown_wherever_they_are() {
        let mut writer = Writer::new().unwrap();
        let count = 3 * (BUFFER_BYTES / ENTRY_BYTES) as u64 / 2;
        for time_ns in 0..count {
            let entry = Entry { kind: Kind::Queued, time_ns, value: 0, bytes: 0, task: 0, flags: 0, priority: 0 };
            assert_eq!(writer.add(entry).unwrap(), time_ns);
        }
        for number in (0..count).step_by(3) {
            writer.withdraw(number).unwrap();
        }
        let mut shown = Vec::new();
        let mut log = writer.finish().unwrap();
        log.for_each(|entry| {
            shown.push(entry.time_ns);
            Ok(())
        })
        .unwrap();
        assert_eq!(shown, (0..count).filter(|number| number % 3 > 0).collect::<Vec<_>>());
    }

    #[test]
    fn ios_begun_before_the_kept_period_are_left_out_completely() {
        let all = [
            (Kind::Queued, 10, 0),
            (Kind::Queued, 50, 0),
            (Kind::Submitted, 51, 1),
            (Kind::Completed, 60, 50),
            (Kind::Completed, 70, 20),
            (Kind::Queued, 80, 0),
            (Kind::GivenUp, 90, 85),
            (Kind::Completed, 101, 21),
        ];
        let mut log = log(&all);
        log.keep(50, 100);
        let mut seen = Vec::new();
        log.for_each(|entry| {
            seen.push((entry.kind, entry.time_ns));
            Ok(())
        })
        .unwrap();
        let expected = [(Kind::Queued, 50), (Kind::Submitted, 51), (Kind::Completed, 70), (Kind::Queued, 80)];
        assert_eq!(seen, expected);
    }
}
