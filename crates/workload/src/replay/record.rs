//! What a process replays.

use std::sync::Arc;

use hoistway_blk::{Nanos, Op};

use super::{Log, ReplaySettings};
use crate::{Io, JobFileError};

/// When an I/O of a log is issued.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pause {
    /// So long after the I/O before.
    After(Nanos),
    /// So long after the start.
    Until(Nanos),
}

/// One I/O of a log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    pub(crate) io: Io,
    pub(crate) pause: Pause,
}

/// The I/Os of a log as a process replays them.
#[derive(Debug)]
pub(crate) struct Replay {
    /// The option, for messages.
    pub(crate) origin: JobFileError,
    pub(crate) records: Vec<Record>,
}

impl Replay {
    /// The log with the options applied. `devices` says on which of the process's devices each file is.
    pub(crate) fn new(log: &Log, settings: &ReplaySettings, devices: &[u8], origin: JobFileError) -> Arc<Replay> {
        let mut records = Vec::with_capacity(log.records.len());
        let mut skipped = Nanos::ZERO;
        for record in &log.records {
            let kind = match record.io.op {
                Op::Read => 0,
                Op::Write => 1,
                Op::Discard => 2,
                _ => 3,
            };
            // What is left out keeps its time.
            let pause = match settings.pause(record.pause) {
                Pause::After(gap) => Pause::After(Nanos(skipped.0.saturating_add(gap.0))),
                until => until,
            };
            if settings.skipped[kind] {
                skipped = if let Pause::After(gap) = pause { gap } else { skipped };
                continue;
            }
            skipped = Nanos::ZERO;
            let io = Io {
                offset_bytes: settings.offset(record.io.offset_bytes),
                file: devices.get(usize::from(record.io.file)).copied().unwrap_or(0),
                ..record.io
            };
            records.push(Record { io, pause });
        }
        Arc::new(Replay { origin, records })
    }

    /// Whether every I/O lies on its device, in whole sectors.
    pub(crate) fn check(&self, device_bytes: &dyn Fn(usize) -> u64) -> Result<(), JobFileError> {
        let complain = |message: String, hint: &str| {
            let origin = self.origin.clone();
            Err(JobFileError { message: message.into(), hint: Some(hint.into()), ..origin })
        };
        let mut sizes = [None; 256];
        for Record { io, .. } in &self.records {
            let size = *sizes[usize::from(io.file)].get_or_insert_with(|| device_bytes(usize::from(io.file)));
            let end = io.offset_bytes + u64::from(io.bytes);
            if end > size {
                let message = format!("the log goes to byte {end}, but the device has {size}");
                return complain(message, "use a larger device, or replay_scale");
            }
            if !io.offset_bytes.is_multiple_of(512) {
                let message = format!("the offset {} is not a multiple of a sector of 512", io.offset_bytes);
                return complain(message, "direct I/O needs whole sectors: set replay_align=512");
            }
        }
        Ok(())
    }

    /// Whether it waits at all.
    pub(crate) fn has_pauses(&self) -> bool {
        self.records.iter().any(|record| record.pause != Pause::After(Nanos::ZERO))
    }

    /// Lengths of its reads, writes and trims.
    pub(crate) fn sizes(&self) -> impl Iterator<Item = u32> {
        self.records.iter().filter(|record| record.io.op != Op::Flush).map(|record| record.io.bytes)
    }

    pub(crate) fn has(&self, is: impl Fn(Op) -> bool) -> bool {
        self.records.iter().any(|record| is(record.io.op))
    }

    /// Whether most I/Os begin elsewhere than where the one before has ended.
    pub(crate) fn is_random(&self) -> bool {
        let goes_on =
            |pair: &&[Record]| pair[1].io.offset_bytes == pair[0].io.offset_bytes + u64::from(pair[0].io.bytes);
        2 * self.records.windows(2).filter(goes_on).count() < self.records.len()
    }
}
